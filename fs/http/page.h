/* The page for people: models, the names of their files, and the command that runs each. Plans nothing, which would
 * take half a minute for hundreds of models. Plain HTML without scripts or styles from
 * elsewhere; names from files are escaped. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/repository.h"

/* `origin` is the server as the client addresses it: "http://127.0.0.1:8090". */
void page_answer(const struct repositories *repositories, const char *origin, struct answer *answer);

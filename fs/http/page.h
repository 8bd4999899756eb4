/* Pages for people, which are indices for programs, too: a page has a relative link to each of its directories and
 * files, as the indices of web servers do, so that rclone, wget and fsspec list what is here.
 *
 * The pages of all models plan nothing, which would take half a minute for hundreds of them. The page of a model plans
 * its files, so that each of its links leads to a file, and programs may ask for all of them without waiting. The form
 * that opens the viewer (viewer.h) is no link. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/repository.h"
#include "fs/http/route.h"

/* Answers ROUTE_PAGE and ROUTE_OWNER with an index, and ROUTE_PATH with an index or a file. */
void page_answer(const struct repositories *repositories, const struct http_request *request, const struct route *route,
                 struct answer *answer);

/* Appends the commands that run a repository's files from this server, which the client addresses as `origin`. */
void page_put_commands(struct buffer *out, const struct repository *repository, const char *origin,
                       struct arena *arena);

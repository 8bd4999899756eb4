/* What the environment of the hub's own programs says: where the hub is, and the user's token. */
#pragma once

#include "base/arena.h"

/* The hub: $HF_ENDPOINT, else https://huggingface.co. Without a '/' at its end. */
const char *hub_endpoint(struct arena *arena);

/* The header that lets the hub know the user: from $HF_TOKEN, $HUGGING_FACE_HUB_TOKEN, or the file $HF_TOKEN_PATH,
 * $HF_HOME/token or ~/.cache/huggingface/token. NULL: there is none, or $HF_HUB_DISABLE_IMPLICIT_TOKEN is 1. It must
 * not be shown. *ret_from says where it came from, and may be. */
const char *hub_authorization(struct arena *arena, const char **ret_from);

/* Returns the paths that credentials and certificates are read from, for a sandbox, in the arena; NULL at the end.
 * Those of AWS are the folders of its files. */
const char *const *credential_files(struct arena *arena);

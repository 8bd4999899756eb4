/* Layout files by name: "trtllm" is trtllm.json in share/wfs/layouts beside the program's bin/, or in models/layouts of
 * the program's own directory. A text with a slash, or with .json at its end, is a path, which must not contain ':'.
 *
 * A layout is asked for as NAME or NAME:PARAMETER=VALUE,... */
#pragma once

#include "models/layouts/layout_file.h"

struct layout_request {
    const struct layout_file *file;
    const char *parameters; /* NULL: none */
};

struct layout_requests {
    const struct layout_request *items;
    size_t count;
};

/* Returns the names of the installed layouts, in the arena; NULL at the end. */
const char *const *layout_names(struct arena *arena);

/* Returns the directories where they may be installed, in the arena; NULL at the end. */
const char *const *layout_directories(struct arena *arena);

/* Reads the layout file that `text` asks for. Everything is made in the arena. */
bool layout_find(const char *text, struct arena *arena, struct layout_request *ret_request, struct error *error);

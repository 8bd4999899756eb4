/* The files of a GGUF model that a converter writes, in one precision each: at the top the usual one, in gguf/ one for
 * each precision. For mmproj.gguf and adapter.gguf; model.gguf has more outputs than a converter's (gguf_files.c). */
#pragma once

#include "fs/tree/lazy.h"
#include "fs/tree/tree.h"

struct converter_output {
    bool at_top;                /* otherwise in gguf/ */
    const char *name, *outtype; /* as gguf_plan_converter() takes it */
};

struct converter_files {
    struct tree *tree;
    struct lazy model; /* a gguf_model; freed with the tree */
    lazy_maker *make;  /* the model, with `context` */
    void *context;
    const char *left_out; /* which files are, for the note that says why: "mmproj.gguf and gguf/mmproj-* are" */
};

/* Adds the files, up to an output without a name. `files` lives as long as the tree; its model is made when the first
 * file is planned. */
void converter_files_add(struct converter_files *files, const struct converter_output *outputs);

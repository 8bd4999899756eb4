/* What differs between two sources of any format: wfs_diff(), `wfs diff`. */
#pragma once

#include "fs/lib/match.h"
#include "fs/options/options.h"
#include "text/json_write.h"

struct gguf_model;

/* Two sources after the comparison. */
struct diff {
    const struct checkpoint *a, *b;
    const char *names; /* the names by which both were compared: "GGUF", "Hugging Face"; NULL: their own */
    struct matches tensors;
    struct key_matches keys;
    size_t n_tensors, n_values, n_keys; /* numbers of tensors, tensor values and keys that differ */
    struct gguf_model *models[2];       /* a and b as GGUF; NULL: impossible */
    struct arena *arena;
};

/* Compares two sources, which are opened as the options say, as a stage (fs/lib/stage.h): tensors and keys by the
 * sources' own names if they share them; by GGUF's if both sources are understood; or by Hugging Face's, which match a
 * file without config.json with a GGUF. diff_free() frees the result. */
bool diff_make(const char *a, const char *b, const struct options *options, struct diff *ret_diff, struct error *error);
void diff_free(struct diff *diff);

/* Writes the members of the object that `wfs diff --json` prints: docs/metadata.md. */
void diff_put(struct json_writer *writer, const struct diff *diff);

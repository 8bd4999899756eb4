/* Pages of `wfs info` about a source: one that fits a screen, its lists, and the texts
 * that they share. */
#pragma once

#include "base/buffer.h"
#include "fs/lib/info/profile.h"
#include "fs/lib/info/quantization.h"
#include "fs/options/options.h"

/* Prints the source, the files read, the files of a mount and the files left out. On a terminal, breaks lines at words
 * and shortens long lists, but no message. */
void print_summary(struct tree *tree, const struct profile *profile, bool colour);

/* Prints metadata, types, the largest tensors, all files, the types of tensor files, and everything left out. */
void print_lists(struct tree *tree, const struct profile *profile);

/* The file that most people take of those in gguf/. */
#define USUAL_GGUF "model-Q4_K_M.gguf"

/* Prints the command to try next with the source and options of this one: it writes USUAL_GGUF, or mounts the source if
 * there is no such file. */
void print_next(struct tree *tree, const char *source, const struct options *options);

/* Prints the models of a library, none of which is opened. */
void print_library(struct tree *tree, const char *source);

/* Appends a text about a component: "unet/: UNet2DConditionModel, 860 million parameters ...". */
void component_text(const struct component_profile *component, struct buffer *text);

/* Appends a text about a top directory that holds a directory for each variant of the model: to `text` "mlx/:
 * plain 92.0 MB, 4bit 26.1 MB", or if `is_brief` "mlx/: 2 from 26.1 MB", one text for all directories; or to
 * `refusal` why no variant has weights. Each text ends with a NUL. Returns false for other directories. */
bool engine_text(struct tree *tree, const char *name, node_id directory, bool is_brief, struct buffer *text,
                 struct buffer *refusal);

/* Appends one line about the merge; returns false if the checkpoint is none. */
bool append_merge(struct buffer *text, const struct checkpoint *checkpoint);

/* Prints a line for each tensor of a merge: its name, the method, the models and their parameters. */
void print_merge(const struct checkpoint *checkpoint);

/* Pages about GGUF: the known families, and the size and error of each quantization of a model. */

/* Print the table of families: Hugging Face's classes, and the GGUF architecture for each. */
void print_architectures(void);
void print_architectures_json(void);

struct quantization_page {
    bool all; /* measure all weights, not a sample */
    bool json, html, colour;
};

/* Prints size, bits per weight, error and a word for the loss of every quantization, and recommends one. Shows its
 * progress on a terminal. Fails for adapters and for unknown families. */
bool print_quantizations(const struct tree *tree, const struct quantization_page *page, struct error *error);

/* The measurements of `wfs info --quantization` as a self-contained HTML page. */

struct quantization_report {
    const struct gguf_model *model;
    const struct quantization *rows;
    size_t n_rows;
    const struct weight_kind *kinds;
    size_t n_kinds;
    bool all, by_importance; /* all weights were measured; errors are weighted by importance */
};

/* Prints plots of error against size, error by layer and kind of tensor, the distribution of weights, and the table. */
void print_quantization_html(const struct quantization_report *report);

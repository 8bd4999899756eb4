/* llama-quantize: which type every tensor gets in gguf/model-Q4_K_M.gguf and its kin.
 *
 * Source: src/llama-quant.cpp of llama.cpp 34af94cd9. */
#pragma once

#include "formats/gguf/model.h"

/* A file type of llama-quantize; its rows say what the tool's tables say. */
struct mix {
    const char *name;         /* "Q4_K_M", as the tool spells it */
    uint32_t file_type;       /* general.file_type */
    const char *default_type; /* name of the dtype most tensors get */
};

/* NULL name at the end; the order in which the files are listed. */
extern const struct mix mixes[];

/* The tool's options; zeroed: its defaults. */
struct quantize_options {
    bool pure, leave_output_tensor;
    const struct dtype *token_embedding_type, *output_tensor_type; /* NULL: by the rules */
    const char *const *tensor_types;                               /* "PATTERN=TYPE", NULL-terminated; NULL: none */
};

/* Checks patterns and types, for a message when options are read rather than when a file is. */
bool quantize_options_check(const struct quantize_options *options, struct error *error);

/* Fails, with the reason, where the tool refuses. */
bool gguf_plan_quantize(const struct gguf_model *model, const struct mix *mix, const struct quantize_options *options,
                        struct gguf_plan *ret_plan, struct error *error);

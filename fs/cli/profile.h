/* What there is to say of a source: for the pages of `wfs info`. */
#pragma once

#include "formats/checkpoint.h"
#include "fs/cli/progress.h"

enum { PROFILE_MAX_DTYPES = 128 };

struct family;

struct dtype_total {
    const struct dtype *dtype;
    uint64_t n_tensors, n_elements, n_bytes;
};

/* 0 and NULL: not known, or there is none. */
struct profile {
    const char *adapter;      /* of what, for people; NULL: it is a model */
    const char *parts;        /* of a model of several: what its tensors are of, and how many each */
    const char *architecture; /* as the source names it: "LlamaForCausalLM", "llama" */
    const char *family;       /* the one that it is of: "Llama 1 to 3, Mistral, Mixtral and their kin" */
    const char *gguf;         /* general.architecture */
    const char *tokenizer;    /* what llama.cpp calls its kind: "BPE" */
    const char *file_type;    /* of a GGUF: "Q4_K_M" */
    uint64_t n_layers, context_length, n_tokens;
    const struct family *projector;                       /* of the part that sees or hears */
    struct dtype_total tower;                             /* the tensors of that part, of whatever type */
    struct dtype_total all, by_dtype[PROFILE_MAX_DTYPES]; /* the latter by bytes, the most first */
    size_t n_dtypes;
    uint64_t n_parameters; /* all.n_elements, packed weights as what they stand for */
};

/* Texts live in the arena, or as long as the checkpoint. Makes the GGUF model, and what it notes. */
void profile_gather(struct profile *profile, const struct checkpoint *checkpoint, struct arena *arena);

uint64_t tensor_bytes(const struct tensor *tensor);

/* "7.24 billion" and the like; the number itself below a million. Returns `out`. */
enum { NUMBER_TEXT = 32 };
char *number_text(uint64_t number, char out[NUMBER_TEXT]);

/* The facts about a source on the pages of `wfs info`. */
#pragma once

#include "formats/checkpoint.h"
#include "fs/cli/progress.h"

enum { PROFILE_MAX_KINDS = 128 };

struct family;

struct total {
    uint64_t n_tensors, n_elements, n_bytes;
};

/* Tensors of one dtype, or weights of one packing and as many bits: each weight counts once, with the elements that it
 * has unpacked and the bytes of all its parts, which count nowhere else. */
struct kind_total {
    const char *name;              /* "BF16", "GPTQ 4 bit" */
    const struct packing *packing; /* NULL: a dtype */
    unsigned bits;                 /* of an element of a packed weight */
    struct total total;
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
    const struct family *projector;             /* of the part that sees or hears */
    struct total tower;                         /* the tensors of that part, of whatever kind */
    struct total all;                           /* packed weights as in their kind */
    struct kind_total kinds[PROFILE_MAX_KINDS]; /* by bytes, the most first */
    size_t n_kinds;
    uint64_t n_stored; /* tensors, the parts of packed weights each */
};

/* Texts live in the arena, or as long as the checkpoint. Makes the GGUF model, and what it notes. */
void profile_gather(struct profile *profile, const struct checkpoint *checkpoint, struct arena *arena);

uint64_t tensor_bytes(const struct tensor *tensor);

/* "7.24 billion" and the like; the number itself below a million. Returns `out`. */
enum { NUMBER_TEXT = 32 };
char *number_text(uint64_t number, char out[NUMBER_TEXT]);

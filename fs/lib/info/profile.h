/* The facts about a source that `wfs info` shows. */
#pragma once

#include "formats/checkpoint.h"
#include "fs/tree/tree.h"
#include "text/json_write.h"

enum { PROFILE_MAX_KINDS = 128 };

struct family;

struct total {
    uint64_t n_tensors, n_elements, n_bytes;
};

/* The tensors of one dtype, or the weights of one packing with equal bits. A packed weight counts once, with its
 * unpacked elements and the bytes of all its parts, which count nowhere else. */
struct kind_total {
    const char *name;              /* "BF16", "GPTQ 4 bit" */
    const struct packing *packing; /* NULL: a dtype */
    unsigned bits;                 /* of an element of a packed weight */
    struct total total;
};

/* 0 and NULL: unknown, or absent. */
struct profile {
    const char *adapter;      /* description of an adapter; NULL: the source is a model */
    const char *parts;        /* of a multimodal model: its modules, with the number of tensors of each */
    const char *architecture; /* the source's class or general.architecture: "LlamaForCausalLM", "llama" */
    const char *family;       /* summary of the model's family: "Llama 1 to 3, Mistral, Mixtral and their kin" */
    const char *gguf;         /* general.architecture */
    const char *tokenizer;    /* llama.cpp's name for its kind: "BPE" */
    const char *file_type;    /* of a GGUF: "Q4_K_M" */
    uint64_t n_layers, context_length, n_tokens;
    const struct family *projector;             /* the vision or audio tower's family */
    struct total tower;                         /* all tensors of that tower */
    struct total all;                           /* packed weights count as in their kind */
    struct kind_total kinds[PROFILE_MAX_KINDS]; /* the one with most bytes first */
    size_t n_kinds;
    uint64_t n_stored; /* tensors in the files, counting each part of a packed weight */
};

/* Gathers the facts about a tree's source; none without weights. Texts live as long as the arena and the tree. Makes
 * the tree's GGUF model, which adds its notes to the checkpoint. */
void profile_gather(struct profile *profile, const struct tree *tree, struct arena *arena);

/* Returns the bytes of the stored values. */
uint64_t tensor_bytes(const struct tensor *tensor);

/* Writes the members of the object that `wfs info --json` prints: docs/metadata.md. Opens the source's components and
 * plans all files, which adds notes to the checkpoint. */
void info_put(struct json_writer *writer, struct tree *tree);

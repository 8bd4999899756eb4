/* The facts about a source that `wfs info` shows. */
#pragma once

#include "formats/checkpoint.h"
#include "fs/tree/tree.h"
#include "text/json_write.h"

enum { PROFILE_MAX_KINDS = 128 };

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
    const char *list;         /* of a pipeline: the file that lists its components, or config.json */
    const char *adapter;      /* description of an adapter; NULL: the source is a model */
    const char *parts;        /* of a multimodal model: its modules, with the number of tensors of each */
    const char *architecture; /* the source's class or general.architecture: "LlamaForCausalLM", "llama" */
    const char *family;       /* summary of the model's family: "Llama 1 to 3, Mistral, Mixtral and their kin" */
    const char *gguf;         /* general.architecture */
    const char *tokenizer;    /* llama.cpp's name for its kind: "BPE" */
    const char *file_type;    /* of a GGUF: "Q4_K_M" */
    uint64_t n_layers, context_length, n_tokens;
    const char *tower;                          /* summary of the vision or audio tower's family */
    const char *tower_parts;                    /* beginnings of its tensors' names: "visual.*" */
    struct total tower_total;                   /* all its tensors */
    struct total all;                           /* packed weights count as in their kind */
    struct kind_total kinds[PROFILE_MAX_KINDS]; /* the one with most bytes first */
    size_t n_kinds;
    uint64_t n_stored; /* tensors in the files, counting each part of a packed weight */
};

/* Gathers the facts about a tree's source; none without weights. Texts live as long as the arena and the tree. Makes
 * the tree's GGUF model, which adds its notes to the checkpoint. */
void profile_gather(struct profile *profile, const struct tree *tree, struct arena *arena);

/* Returns the number of the components of a pipeline. */
size_t profile_components(const struct tree *tree);

struct component_profile {
    const char *name, *class_name; /* that the pipeline declares; the class may be NULL */
    struct tree *tree;             /* NULL: it is not shown or cannot be opened, and has no facts */
    struct profile facts;
};

/* Gathers the facts about component `number`, which is opened if necessary. Lives like profile_gather()'s. */
void profile_component(struct component_profile *component, struct tree *tree, size_t number, struct arena *arena);

/* What a merge is made from. */
struct merge_profile {
    const char *method, *base, *config; /* of mergekit; the base model or NULL; the model that has config.json */
    const char *const *models;
    size_t n_models;
    uint64_t n_bytes; /* of all inputs */
    const char *cost; /* one line about the bytes that a read needs */
    struct merged_tensor {
        const char *name;
        struct buffer plan; /* "t 0.25; Mistral-base, Mistral-half"; in the arena */
    } * tensors;            /* NULL: not asked for */
    size_t n_tensors;
};

/* Gathers what a merge is made from, with the plan of each tensor or without; returns false if the checkpoint is none.
 */
bool profile_merge(struct merge_profile *merge, const struct checkpoint *checkpoint, bool with_tensors,
                   struct arena *arena);

/* The kinds of file that tensors have in tensors/NAME/. */
struct file_kinds {
    struct file_kind {
        const char *name; /* "f32", "raw.npy" */
        size_t n_tensors; /* that have it; 0 unless they are to be counted */
    } * items;
    size_t count;
};
struct file_kinds profile_tensor_files(const struct tree *tree, bool counts, struct arena *arena);

/* Returns the tool whose files gguf/ agrees with, "llama.cpp b11549", in the arena; NULL: there is no gguf/. */
const char *profile_reference(struct tree *tree, struct arena *arena);

/* Returns the bytes of the stored values. */
uint64_t tensor_bytes(const struct tensor *tensor);

/* Writes the members of the object that `wfs info --json` prints: docs/metadata.md. Opens the source's components and
 * plans all files, which adds notes to the checkpoint. */
void info_put(struct json_writer *writer, struct tree *tree);

/* Architectures of diffusion models, a row each: how ComfyUI-GGUF recognizes a model by the names of its tensors, and
 * which tensors its converter and its llama-quantize treat differently.
 *
 * A part of a name matches wherever a name contains it; a part that begins with '=' matches a whole name. To add an
 * architecture, write its row in architectures.c, in the order in which the converter tries them.
 *
 * Source: tools/convert.py, tools/fix_5d_tensors.py and tools/lcpp.patch of ComfyUI-GGUF. */
#pragma once

#include "formats/tensor_set.h"

/* Lists of texts end with NULL; a list that is NULL is empty. */
enum { DIFFUSION_MAX_LISTS = 3 };

/* A tensor that keeps leading dimensions of 1, up to this number of dimensions, where llama-quantize drops them. */
struct diffusion_rank {
    const char *part;
    unsigned rank;
};

struct diffusion_architecture {
    const char *name;    /* general.architecture: "flux" */
    const char *summary; /* for people: "Flux" */

    /* A model has all names of one list. A model that also has the banned name is refused; NULL: none is banned. */
    const char *const *names[DIFFUSION_MAX_LISTS + 1];
    const char *banned;

    const char *const *precise; /* parts of the names of tensors that are F32 unless they are stored in fewer bits */
    const char *const *ignored; /* parts of the names of tensors that are left out */
    const char *const *kept;    /* parts of the names of tensors that are not quantized */
    const struct diffusion_rank *ranks; /* up to a row without part; NULL: none */

    bool rearranges;        /* tensors whose rows are not whole blocks of 256 become rows of 256 */
    bool holds_videos;      /* tensors of five dimensions are allowed, and always F32 */
    bool spares_both_ends;  /* the first and the last block get larger types */
    bool names_attention_v; /* names may contain llama.cpp's own names for attention, where its checks stop other models
                             */
};

/* Up to NULL. */
extern const struct diffusion_architecture *const diffusion_architectures[];

/* Returns the architecture of that name, or NULL; the name may be NULL. */
const struct diffusion_architecture *diffusion_architecture_named(const char *name);

/* Returns the architecture of a model whose sealed tensors have the makers' names; NULL: none is recognized. */
const struct diffusion_architecture *diffusion_architecture_of(const struct tensor_set *tensors);

/* Reports whether a part of the list matches the name. */
bool diffusion_name_matches(const char *const *parts, const char *name);

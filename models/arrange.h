/* Arrangements: how the elements of a GGUF tensor lie in the Hugging Face tensor they come from.
 *
 * A family's name map (families/family.h) gives one of these with every name, so that a table says all about a tensor and can be
 * read in both directions. All but two only move elements; a dimension that does not fit is an error for the user, since
 * dimensions and head counts come from files.
 *
 * Source: conversion/ of llama.cpp 34af94cd9, modify_tensors() of the families. */
#pragma once

#include "models/hparams.h"
#include "quant/view.h"

enum arrangement {
    AS_IS,
    ROTARY_Q,           /* rows of a query head: (first half, second half) of a head become pairs */
    ROTARY_K,           /* the same for key heads */
    PLUS_ONE,           /* x + 1 */
    MINUS_EXP,          /* -exp(x) */
    TRANSPOSED,         /* the last two axes swapped; vectors as they are */
    SQUEEZED,           /* axes of length 1 dropped */
    QKV_OF_HEADS,       /* rows (head, q|k|v, dimension) become (q|k|v, head, dimension) */
    QKV_OF_GROUPS,      /* rows (key head, its queries|k|v, dimension) become all q, all k, all v */
    FIRST_HALF,         /* of the rows: the last axis but one */
    SECOND_HALF,        /* of the rows */
    EVEN_MEMBERS,       /* 0, 2, ... of axis 1 */
    ODD_MEMBERS,        /* 1, 3, ... of axis 1 */
    TRANSPOSED_EVEN,    /* transposed, then EVEN_MEMBERS */
    TRANSPOSED_ODD,     /* transposed, then ODD_MEMBERS */
    MLA_KEYS,           /* of rows (key head, nope|value, dimension): the keys, transposed in each head */
    MLA_VALUES,         /* of the same: the values */
    WITHOUT_PADDING,    /* rows behind the padding position: pad_token_id + 1 and on */
    WITHIN_VOCABULARY,  /* the rows that have a token: dimensions.n_tokens */
    ROWS_OF_EXPERTS,    /* rows (expert, row) become [expert, row] */
    COLUMNS_OF_EXPERTS, /* the same, each expert transposed */
    ONE_EXPERT,         /* member {} of a stack of n_experts */
    ONE_QUERY_HEAD,     /* member {} of a stack of n_heads */
    ONE_KEY_HEAD,       /* member {} of a stack of n_kv_heads */
};

/* What of config.json arrangements need; 0 where it is missing or out of bounds. */
struct dimensions {
    uint64_t n_blocks;
    uint64_t hidden, n_heads, n_kv_heads; /* n_kv_heads is n_heads where config.json has none */
    uint64_t n_experts;
    uint64_t n_tokens;     /* rows of the embedding that have a token; 0: all */
    uint64_t n_padding;    /* pad_token_id + 1, 0 where there is none */
    uint64_t nope, v_head; /* of multi-head latent attention */
    bool shared_kv;        /* config.json has no count of key heads: one is shared by all queries in QKV_OF_GROUPS */
};

void dimensions_read(struct dimensions *dimensions, const struct hparams *hparams);

/* How many tensors make up one, for the ONE_... arrangements; 0 for all others. Where the count is not known, an error. */
bool arrangement_is_stacked(enum arrangement arrangement);
uint64_t arrangement_members(enum arrangement arrangement, const struct dimensions *dimensions);

/* The view of a GGUF tensor made from that of a Hugging Face tensor. NULL where the shape does not fit. */
const struct view *arrange(struct arena *arena, const struct view *view, enum arrangement arrangement,
                           const struct dimensions *dimensions, struct error *error);

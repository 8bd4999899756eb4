/* The viewer: pages for people about what is in a model.
 *
 *     /view/ORG/NAME                       its files with the command for each engine, tensors, configuration, keys
 *     /view/ORG/NAME?q=TEXT&from=N         the tensors whose names have TEXT, from the N-th on
 *     /view/ORG/NAME?tensor=NAME&matrix=N  a tensor, by its name in tensors/; NAME is /INDEX if it was cut
 *     /view/ORG/NAME?tokenizer&q=TEXT&from=N  the tokenizer; its tokens that have TEXT, from the N-th on
 *     /view/ORG/NAME?diff=ORG/OTHER        differences from another model, by layer
 *
 * Pages are apart from the indices of page.c, which programs follow: looking at a tensor computes, for a bounded
 * time. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/repository.h"
#include "fs/http/route.h"

/* Appends the relative link to the page of a tensor. */
void viewer_put_tensor_link(struct buffer *out, const struct shown_tensors *shown, size_t index);

/* Appends the form that filters a table of names by a text; the parameter `page` stays in the address. NULL: none. */
void viewer_put_filter(struct buffer *out, const char *page, const char *text);

/* The rows of a table that a page shows. */
struct viewer_page {
    uint64_t first, most, n_found;
};

/* Appends the link to the rows that follow, if there are any. */
void viewer_put_next(struct buffer *out, const char *page, const char *text, const struct viewer_page *rows);

/* Answers with the page of tensor number `index` of tensors/, and of matrix number `matrix` if it has several: shape,
 * type, places, and from a sample of ranges (fs/tree/tensor_sample.h) statistics, a histogram, a map of one matrix, and
 * the error of each type of blocks. Pictures are SVG, made here. */
void viewer_answer_tensor(const struct repository *model, size_t index, uint64_t matrix, struct answer *answer);

/* Answers with the page that compares two models: how much each layer and each tensor of the same name and shape
 * differs, measured in samples. `wfs diff` compares exactly. */
void viewer_answer_diff(const struct repository *model, const struct repository *other, struct answer *answer);

/* Returns the keys of the model's GGUF, where wfs makes one or the source is one, if they describe a tokenizer; else
 * NULL. They live as long as the tree. */
const struct gguf_kvs *viewer_tokenizer(const struct repository *model);

/* Answers with the page of the tokenizer: keys, the chat template, and the tokens that have `text`, from the first-th
 * of them on, with types and scores. */
void viewer_answer_tokenizer(const struct repository *model, const char *text, uint64_t first, struct answer *answer);

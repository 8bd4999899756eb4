/* The viewer: pages for people about what is in a model.
 *
 *     /view/ORG/NAME                       its files with the command for each engine, tensors, configuration, keys
 *     /view/ORG/NAME?q=TEXT&from=N         the tensors whose names have TEXT, from the N-th on
 *     /view/ORG/NAME?tensor=NAME&matrix=N  a tensor (viewer_tensor.h), by its name in tensors/, or /INDEX
 *     /view/ORG/NAME?tokenizer&q=TEXT&from=N  its tokenizer (viewer_tokenizer.h)
 *     /view/ORG/NAME?diff=ORG/OTHER        differences from another model, by layer (viewer_diff.h)
 *
 * Pages are apart from the indices of page.h, which programs follow: looking at a tensor computes, for a bounded
 * time. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/repository.h"
#include "fs/http/route.h"

void viewer_answer(const struct repositories *repositories, const struct http_request *request,
                   const struct route *route, struct answer *answer);

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

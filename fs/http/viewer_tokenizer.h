/* The page of a model's tokenizer: the keys that its GGUF has of it, the chat template, and a table of tokens, a page
 * of them, with their types and scores. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/repository.h"

/* Returns the keys of the model's GGUF, where wfs makes one or the source is one, if they describe a tokenizer; else
 * NULL. They live as long as the tree. */
const struct gguf_kvs *viewer_tokenizer(const struct repository *model);

/* Answers with the page: the tokens that have `text`, from the first-th of them on. */
void viewer_answer_tokenizer(const struct repository *model, const char *text, uint64_t first, struct answer *answer);

/* A config.json that is written from the shapes of a component's tensors. */
#pragma once

#include "formats/tensor_set.h"
#include "text/json_write.h"

/* The component while its configuration is written; `failed` is set by the first tensor that does not fit. */
struct describing {
    const struct tensor_set *set; /* sealed */
    struct json_writer *writer;
    struct error *error;
    bool failed;
};

/* Returns a dimension of a tensor; 0, and a failure, if the tensor is missing or has no such dimension. */
uint64_t describing_size(struct describing *describing, const char *name, unsigned axis);

/* Puts a dimension of a tensor. */
void describing_put_size(struct describing *describing, const char *key, const char *tensor, unsigned axis);

/* Returns the number of blocks whose names begin so, by the highest number that follows. */
uint64_t describing_blocks(const struct tensor_set *set, const char *beginning);

/* Records a failure, unless there was one before. */
void describing_fail(struct describing *describing, const char *format, ...) __attribute__((format(printf, 2, 3)));

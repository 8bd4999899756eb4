/* The page of a tensor: shape, type, places, and from a sample of ranges (fs/tree/tensor_sample.h) statistics, a
 * histogram, a map of one matrix, and the error of each type of blocks. Pictures are SVG, made here. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/repository.h"

/* Answers with the page of tensor number `index` of tensors/, and of matrix number `matrix` if it has several. */
void viewer_answer_tensor(const struct repository *model, size_t index, uint64_t matrix, struct answer *answer);

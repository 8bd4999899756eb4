/* The protocol of the model hub: what its clients ask for, and its errors.
 *
 * Every model has one revision: "main", and the commit that stands for it. Errors carry X-Error-Code as the hub's do,
 * from which clients tell a missing repository from a missing file.
 *
 * Source: the Hub API's OpenAPI description; huggingface_hub 0.36 (hf_api.py, file_download.py), llama.cpp
 * (common/hf-cache.cpp, and before it common/download.cpp). */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/repository.h"
#include "fs/http/route.h"

/* Answers a request for /api/models, a model, its branches, its tree, or llama.cpp's manifest. */
void hub_answer(const struct repositories *repositories, const struct http_request *request, const struct route *route,
                struct answer *answer);

/* Answers a request for a file, whole or a range of it. HEAD requests plan the file and read nothing. */
void hub_answer_file(const struct repositories *repositories, const struct http_request *request,
                     const struct route *route, struct answer *answer);

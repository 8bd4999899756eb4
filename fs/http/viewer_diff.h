/* The page that compares two models: how much each layer and each tensor of the same name and shape differs, measured
 * in samples. `wfs diff` compares exactly. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/repository.h"

void viewer_answer_diff(const struct repository *model, const struct repository *other, struct answer *answer);

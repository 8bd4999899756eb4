/* Recognizes ChatGLM 3, which has a SentencePiece tokenizer where related models have byte-level BPE. */
#pragma once

#include "models/config/hparams.h"

bool is_chatglm3(const struct hparams *hparams);

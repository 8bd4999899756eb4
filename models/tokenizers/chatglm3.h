/* ChatGLM 3, whose tokenizer is SentencePiece where its kin have byte-level BPE: told by the name in config.json. */
#pragma once

#include "models/config/hparams.h"

bool is_chatglm3(const struct hparams *hparams);

/* chat_template.jinja, which transformers takes out of tokenizer_config.json when it saves a tokenizer. */
#pragma once

#include "base/buffer.h"
#include "formats/checkpoint.h"

/* Appends its text; fails if tokenizer_config.json has no template. */
bool chat_template_write(const struct checkpoint *checkpoint, struct buffer *out, struct error *error);

/* generation_config.json from the keys of a GGUF: special tokens, and general.sampling.*. */
#pragma once

#include "base/buffer.h"
#include "formats/gguf/kv.h"

void generation_config_of_keys(const struct gguf_kvs *kvs, struct buffer *out);

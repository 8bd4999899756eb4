/* The files that tell sentence-transformers how tokens become one embedding, from the key ARCHITECTURE.pooling_type of
 * a GGUF. */
#pragma once

#include "base/buffer.h"
#include "formats/gguf/kv.h"

/* Reports whether the GGUF has a kind of pooling that these files can express. */
bool pooling_is_known(const struct gguf_kvs *kvs);

/* Append modules.json, and the 1_Pooling/config.json that it names; only if pooling_is_known(). */
void pooling_write_modules(const struct gguf_kvs *kvs, struct buffer *out);
void pooling_write_config(const struct gguf_kvs *kvs, struct buffer *out);

/* Changes to a GGUF's metadata by the options override-kv and chat-template; tensors do not change.
 *
 * Source: string_parse_kv_override() in common/common.cpp and llama_model_quantize_impl() in src/llama-quant.cpp of
 * llama.cpp: KEY=TYPE:VALUE, with the types int, float, bool and str; an existing key moves to the end; whole numbers
 * are stored as u32, without their sign. */
#pragma once

#include "formats/gguf/kv.h"

struct gguf_edits {
    const char *const *override_kvs; /* "KEY=TYPE:VALUE", NULL-terminated; NULL: none */
    const char *chat_template;       /* NULL: unchanged */
    size_t chat_template_length;
};

/* Checks an override, so that an invalid one fails when options are read. Keys and texts have at most 127 bytes. */
bool gguf_override_check(const char *override_kv, struct error *error);

bool gguf_edits_are_none(const struct gguf_edits *edits);

/* Changes the keys of a file; `edits` may be NULL. The overrides must have been checked. A new chat template becomes
 * key number `template_place`; 0: the last one. */
void gguf_edit(struct gguf_kvs *kvs, const struct gguf_edits *edits, size_t template_place);

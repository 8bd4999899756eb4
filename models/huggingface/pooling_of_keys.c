#include "models/huggingface/hf_of_gguf.h"

#include "base/arena.h"
#include "text/json_write.h"

static bool architecture_number(const struct gguf_kvs *kvs, const char *name, uint64_t *ret_number)
{
    struct arena *arena = arena_new();
    const char *architecture = gguf_get_text(kvs, "general.architecture", arena);
    bool found =
        architecture != NULL && gguf_get_u64(kvs, arena_printf(arena, "%s.%s", architecture, name), ret_number);
    arena_free(arena);
    return found;
}

bool pooling_is_known(const struct gguf_kvs *kvs)
{
    uint64_t type;
    return architecture_number(kvs, "pooling_type", &type) && type >= 1 && type <= 3;
}

void pooling_write_modules(const struct gguf_kvs *kvs, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    json_put_template(&writer,
                      "[{'idx': 0, 'name': '0', 'path': '', 'type': 'sentence_transformers.models.Transformer'},"
                      "{'idx': 1, 'name': '1', 'path': '1_Pooling', 'type': 'sentence_transformers.models.Pooling'}]");
}

void pooling_write_config(const struct gguf_kvs *kvs, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    uint64_t type = 0, width = 0;
    architecture_number(kvs, "pooling_type", &type);
    architecture_number(kvs, "embedding_length", &width);
    json_put_template(&writer,
                      "{'word_embedding_dimension': %u, 'pooling_mode_cls_token': %b, 'pooling_mode_mean_tokens': %b,"
                      " 'pooling_mode_max_tokens': false, 'pooling_mode_mean_sqrt_len_tokens': false,"
                      " 'pooling_mode_lasttoken': %b}",
                      width, type == 2, type == 1, type == 3);
}

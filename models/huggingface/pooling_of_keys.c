#include "models/huggingface/pooling_of_keys.h"

#include "base/arena.h"
#include "formats/json_write.h"

static bool architecture_number(const struct gguf_kvs *kvs, const char *name, uint64_t *ret_number)
{
    struct arena *arena = arena_new();
    struct error error;
    size_t length;
    const char *architecture = gguf_get_string(kvs, "general.architecture", arena, &length, &error);
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

static void put_module(struct json_writer *writer, uint64_t number, const char *path, const char *type)
{
    const char digit[] = {(char)('0' + number), '\0'};
    json_begin_object(writer, NULL);
    json_put_number(writer, "idx", number);
    json_put_text(writer, "name", digit);
    json_put_text(writer, "path", path);
    json_put_text(writer, "type", type);
    json_end(writer);
}

void pooling_write_modules(const struct gguf_kvs *kvs, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    (void)kvs;
    json_begin_array(&writer, NULL);
    put_module(&writer, 0, "", "sentence_transformers.models.Transformer");
    put_module(&writer, 1, "1_Pooling", "sentence_transformers.models.Pooling");
    json_end(&writer);
}

void pooling_write_config(const struct gguf_kvs *kvs, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    uint64_t type = 0, width = 0;
    architecture_number(kvs, "pooling_type", &type);
    architecture_number(kvs, "embedding_length", &width);
    json_begin_object(&writer, NULL);
    json_put_number(&writer, "word_embedding_dimension", width);
    json_put_bool(&writer, "pooling_mode_cls_token", type == 2);
    json_put_bool(&writer, "pooling_mode_mean_tokens", type == 1);
    json_put_bool(&writer, "pooling_mode_max_tokens", false);
    json_put_bool(&writer, "pooling_mode_mean_sqrt_len_tokens", false);
    json_put_bool(&writer, "pooling_mode_lasttoken", type == 3);
    json_end(&writer);
}

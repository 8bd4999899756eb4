/* Any bytes as a GGUF file.
 *
 * Holds for what is accepted: tensors lie in the file one after the other, in whole rows of blocks, and can be read;
 * every value can be shown and written, and what was written is read as the same. What is refused is refused with one
 * line. */
#include "tests/fuzz/read_tensors.h"

#include "formats/gguf/kv.h"

static void check_tensors(const struct checkpoint *checkpoint)
{
    uint64_t end = 0;
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        uint64_t row = tensor->rank > 0 ? tensor->shape[tensor->rank - 1] : 1;
        require(tensor->rank <= 5 && tensor->name_length < 128 && row % tensor->dtype->block_elements == 0);
        require(tensor->offset >= end);
        end = tensor->offset + tensor->length;
    }
}

/* What is written again, read and written once more is the same. */
static void check_values(const struct gguf_kvs *kvs)
{
    struct buffer first = {0}, second = {0}, text = {0};
    struct gguf_kvs again = {0};
    struct error error;
    for (size_t i = 0; i < kvs->n_kvs; i++) {
        gguf_put_json(&(struct json_writer){.out = &text, .letters = JSON_UTF8, .compact = true}, NULL, &kvs->kvs[i],
                      16);
        gguf_append_text(&text, &kvs->kvs[i], UINT64_MAX);
        require(gguf_write_kv(&first, &kvs->kvs[i], &error));
    }
    struct source *source =
        source_of_bytes(first.bytes != NULL ? first.bytes : (const uint8_t *)"", first.length, "written");
    struct gguf_cursor cursor = gguf_cursor_at(source, 0, 3, GGUF_LITTLE_ENDIAN);
    for (size_t i = 0; i < kvs->n_kvs; i++)
        require(gguf_kvs_read(&again, &cursor, &error) && gguf_write_kv(&second, &again.kvs[i], &error));
    require(gguf_remaining(&cursor) == 0);
    require(first.length == second.length &&
            (first.length == 0 || memcmp(first.bytes, second.bytes, first.length) == 0));
    gguf_cursor_free(&cursor);
    gguf_kvs_free(&again);
    source_close(source);
    buffer_free(&first);
    buffer_free(&second);
    buffer_free(&text);
}

static void check_arrays(const struct gguf_kvs *kvs)
{
    struct arena *arena = arena_new();
    struct gguf_array array;
    struct error error;
    size_t length;
    for (size_t i = 0; i < kvs->n_kvs; i++) {
        if (kvs->kvs[i].type != GGUF_ARRAY)
            continue;
        require(gguf_get_array(kvs, kvs->kvs[i].key, arena, &array, &error));
        for (uint64_t at = 0; at < array.count && at < 100; at++)
            require((gguf_array_string(&array, at, &length) != NULL) == (array.type == GGUF_STRING));
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct open_options options = {.format = NULL};
    struct error error = {""};
    struct checkpoint *checkpoint = checkpoint_new("input.gguf");
    struct source *file = source_of_bytes(data, size, "input.gguf");
    checkpoint_add_source(checkpoint, file);
    if (gguf_format.read_file(checkpoint, file, checkpoint->unsealed, &options, &error)) {
        check_tensors(checkpoint);
        read_tensors(checkpoint);
        check_values(&checkpoint->metadata);
        check_arrays(&checkpoint->metadata);
    } else {
        require_one_line(&error);
    }
    checkpoint_close(checkpoint);
    return 0;
}

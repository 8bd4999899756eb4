#include "fs/tree/gguf_architecture.h"

#include "formats/gguf/cursor.h"
#include "formats/gguf/kv.h"
#include "sources/source.h"

enum { LAST_VERSION = 3, PREAMBLE_BYTES = 8 /* magic and version */ };

static const char key[] = "general.architecture";

/* The key is among the first in every file that wfs makes: the others are not read. */
static bool read_key(struct gguf_cursor *cursor, struct gguf_kvs *kvs, struct error *error)
{
    uint64_t n_tensors, n_kvs;
    if (!gguf_take_count(cursor, &n_tensors, error) || !gguf_take_count(cursor, &n_kvs, error))
        return false;
    for (; n_kvs > 0 && gguf_kvs_find(kvs, key) == NULL; n_kvs--)
        if (!gguf_kvs_read(kvs, cursor, error))
            return false;
    return true;
}

const char *gguf_architecture(const struct vfile *file, struct arena *arena, struct error *error)
{
    size_t length;
    struct gguf_kvs kvs = {0};
    struct source *source = source_of_vfile(file, "GGUF");
    struct gguf_cursor cursor = gguf_cursor_at(source, PREAMBLE_BYTES, LAST_VERSION, GGUF_LITTLE_ENDIAN);
    const char *architecture =
        read_key(&cursor, &kvs, error) ? gguf_get_string(&kvs, key, arena, &length, error) : NULL;
    gguf_cursor_free(&cursor);
    gguf_kvs_free(&kvs);
    source_close(source);
    return architecture;
}

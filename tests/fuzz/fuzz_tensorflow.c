/* Any bytes as the index of a TensorFlow checkpoint, as Snappy's data, and as the key of a slice.
 *
 * Holds: whatever is refused is refused with one line, and nothing is larger than its limit. */
#include "formats/tensorflow/bundle.h"
#include "formats/tensorflow/table.h"

#include "tests/fuzz/fuzz.h"

static void read_slice_key(const char *key, size_t length)
{
    struct bundle_slice slice;
    size_t name_length;
    char *name = malloc(length + 1);
    if (bundle_read_slice_key(key, length, name, &name_length, &slice))
        require(name_length <= length && slice.rank <= SHAPE_MAX_RANK);
    free(name);
}

static bool take(void *context, const struct table_entry *entry, struct error *error)
{
    static struct window window;
    struct bundle_header header;
    struct bundle_entry found;
    size_t *n_entries = context;
    require(entry->key_length <= TABLE_MAX_KEY);
    window = (struct window){.source = entry->value};
    const struct protobuf message = {.window = &window, .name = "input", .end = source_size(entry->value)};
    if ((*n_entries)++ == 0)
        return bundle_read_header(message, &header, error);
    read_slice_key(entry->key, entry->key_length);
    return bundle_read_entry(message, &found, error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 1 << 20 };
    struct error error = {""};
    size_t n_entries = 0, length;
    struct source *file = source_of_bytes(data, size, "input.index");
    if (!table_read(file, take, &n_entries, &error))
        require_one_line(&error);
    source_close(file);
    unsigned char *bytes = snappy_decompress(data, size, MOST, &length);
    require(bytes == NULL || length <= MOST);
    free(bytes);
    read_slice_key((const char *)data, size);
    return 0;
}

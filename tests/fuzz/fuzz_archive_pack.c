/* A pack: two bytes are the length of the list of tensors, as text, two the number of chunks; then the list, the size
 * of each chunk in four bytes, and the frames.
 *
 * Holds: a refusal is one line, and tensors are read the same twice, whole and in part. */
#include "base/arena.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "sources/archive/lines.h"
#include "sources/archive/pack.h"
#include "tests/fuzz/fuzz.h"

enum { HEAD = 4, LARGEST_READ = 1 << 20 };

static bool find_self(void *context, const struct digest *digest, struct pack **ret_pack, struct error *error)
{
    *ret_pack = *(struct pack **)context;
    return true;
}

static struct source *pack_of(const uint8_t *data, size_t size)
{
    struct buffer text = {0}, frame = {0}, out = {0};
    size_t list = (size_t)read_le(data, 2), n_chunks = (size_t)read_le(data + 2, 2), left = size - HEAD;
    list = list < left ? list : left;
    n_chunks = n_chunks < (left - list) / 4 ? n_chunks : (left - list) / 4;
    const uint8_t *sizes = data + HEAD + list, *frames = sizes + 4 * n_chunks;
    buffer_append(&text, data + HEAD, list);
    lines_append_frame(&text, &frame);
    buffer_append(&out, frames, (size_t)(data + size - frames));
    buffer_append_le(&out, PACK_SKIPPABLE, 4);
    buffer_append_le(&out, frame.length + 4 * n_chunks + PACK_FOOTER, 4);
    buffer_append(&out, frame.bytes, frame.length);
    buffer_append(&out, sizes, 4 * n_chunks);
    buffer_append_le(&out, frame.length, 8);
    buffer_append_le(&out, n_chunks, 8);
    buffer_append(&out, PACK_MAGIC, 8);
    struct source *source = source_of_bytes(out.bytes, out.length, "pack");
    buffer_free(&text);
    buffer_free(&frame);
    buffer_free(&out);
    return source;
}

static void read_tensor(struct pack *pack, size_t index)
{
    struct error error = {""};
    uint64_t length = pack_tensor(pack, index)->length;
    size_t n = length < LARGEST_READ ? (size_t)length : LARGEST_READ;
    unsigned char *whole = memory_alloc(n), *part = memory_alloc(n);
    if (!pack_read(pack, index, 0, n, whole, &error)) {
        require_one_line(&error);
    } else {
        require(pack_read(pack, index, n / 3, n - n / 3, part, &error));
        require(memcmp(whole + n / 3, part, n - n / 3) == 0);
    }
    free(whole);
    free(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 8 };
    struct error error = {""};
    struct pack *pack = NULL;
    if (size < HEAD)
        return 0;
    pack = pack_open(pack_of(data, size), find_self, &pack, &error);
    if (pack == NULL)
        require_one_line(&error);
    for (size_t i = 0; pack != NULL && i < pack_count(pack) && i < MOST; i++)
        read_tensor(pack, i);
    pack_close(pack);
    return 0;
}

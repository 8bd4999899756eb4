/* code CODING [BASE] <chunk >frames: codes one chunk (sources/archive/coding.h). BASE is a file with as many values: of
 * the base, or F32 values in little-endian order. */
#include "base/arena.h"
#include "base/buffer.h"
#include "base/little_endian.h"
#include "sources/archive/coding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_all(FILE *file, struct buffer *out)
{
    unsigned char piece[65536];
    for (size_t length; file != NULL && (length = fread(piece, 1, sizeof piece, file)) > 0;)
        buffer_append(out, piece, length);
}

struct base {
    const struct coding *coding;
    struct buffer bytes;
};

static bool read_base(void *context, uint64_t first, size_t count, void *out, struct error *error)
{
    const struct base *base = context;
    const bool values = base->coding->input == CODING_VALUES;
    const size_t width = values ? sizeof(float) : base->coding->unit_bytes;
    if ((first + count) * width > base->bytes.length)
        return error_set(error, "the base is too short");
    memcpy(out, base->bytes.bytes + first * width, count * width);
    if (values)
        little_endian(out, count, width);
    return true;
}

int main(int n, char **arguments)
{
    struct error error = {"code CODING [BASE] <chunk >frames"};
    struct base base = {n < 2 ? NULL : coding_by_name(arguments[1]), {0}};
    struct buffer bytes = {0};
    const struct coding_input input = {read_base, &base};
    read_all(stdin, &bytes);
    if (n > 2)
        read_all(fopen(arguments[2], "rb"), &base.bytes);
    size_t length = 0;
    unsigned char *out = base.coding == NULL ? NULL : memory_alloc(coding_bound(base.coding, bytes.length));
    const struct coding_chunk chunk = {.n_bytes = bytes.length, .input = &input};
    bool done = out != NULL && coding_encode(base.coding, coder_new(), &chunk, bytes.bytes, out, &length, &error);
    if (done)
        fwrite(out, 1, length, stdout);
    else
        fprintf(stderr, "code: %s\n", error.message);
    free(out);
    return !done;
}

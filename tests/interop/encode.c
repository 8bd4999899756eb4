/* encode DTYPE <values >blocks, or encode -d DTYPE <blocks >values: one dtype's kernels as a filter of F32 values.
 * encode -c DTYPE BLOCKS <values >blocks: the codes that follow from the scales of the blocks in a file
 * (quant/blocks/codes.h). encode DTYPE IMPORTANCE: by the importance of columns, F32 numbers in a file; rows have as
 * many values. Rows of 256 otherwise. WFS_CPU chooses the kernels, as everywhere. */
#include "base/arena.h"
#include "base/buffer.h"
#include "quant/blocks/codes.h"
#include "quant/views/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_all(FILE *file, struct buffer *out)
{
    unsigned char piece[65536];
    for (size_t length; (length = fread(piece, 1, sizeof piece, file)) > 0;)
        buffer_append(out, piece, length);
}

static bool convert(const struct dtype *from, struct encoding to, uint64_t n_columns, const struct buffer *input,
                    struct error *error)
{
    struct arena *arena = arena_new();
    uint64_t row = n_columns / from->block_elements * from->block_bytes, shape[] = {input->length / row, n_columns};
    const struct view *view = view_literal(arena, from, 2, shape, input->bytes);
    unsigned char *out = memory_alloc(convert_bytes(view, to.dtype) + 1);
    bool converted = convert_possible(view, to, &(const char *){NULL}) &&
                     convert_read(view, to, 0, view->n_elements / to.dtype->block_elements, out, error);
    if (converted)
        fwrite(out, 1, convert_bytes(view, to.dtype), stdout);
    free(out);
    arena_free(arena);
    return converted;
}

static void read_file(const char *path, struct buffer *out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return;
    read_all(file, out);
    fclose(file);
}

static int make_codes(const struct dtype *dtype, const char *path)
{
    struct buffer blocks = {0}, values = {0};
    read_file(path, &blocks);
    read_all(stdin, &values);
    size_t n_blocks = blocks.length / dtype->block_bytes;
    bool fits = codes_of(dtype) != NULL && values.length == n_blocks * dtype->block_elements * sizeof(float);
    if (fits) {
        unsigned char *scales = memory_alloc(blocks.length);
        codes_split(dtype, blocks.bytes, n_blocks, scales);
        codes_join(dtype, scales, n_blocks, blocks.bytes);
        codes_of(dtype)((const float *)(const void *)values.bytes, blocks.bytes, n_blocks);
        fwrite(blocks.bytes, 1, n_blocks * dtype->block_bytes, stdout);
        free(scales);
    }
    buffer_free(&blocks);
    buffer_free(&values);
    return fflush(stdout) != 0 || !fits;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "-c") == 0 && dtype_by_name(argv[2]) != NULL)
        return make_codes(dtype_by_name(argv[2]), argv[3]);
    bool decode = argc == 3 && strcmp(argv[1], "-d") == 0;
    const struct dtype *dtype = argc >= 2 ? dtype_by_name(argv[decode ? 2 : 1]) : NULL;
    struct encoding encoding = encoding_of(dtype);
    struct buffer columns = {0}, input = {0};
    uint64_t n_columns = 256;
    struct error error = {"not possible"};
    if (dtype == NULL || argc > 3) {
        fprintf(stderr, "usage: encode [-d] DTYPE [IMPORTANCE] | encode -c DTYPE BLOCKS\n");
        return 2;
    }
    if (argc == 3 && !decode) {
        read_file(argv[2], &columns);
        encoding.importance = (const float *)(const void *)columns.bytes;
        n_columns = columns.length / sizeof(float);
    }
    read_all(stdin, &input);
    bool converted = decode ? convert(dtype, encoding_of(&f32_dtype), n_columns, &input, &error)
                            : convert(&f32_dtype, encoding, n_columns, &input, &error);
    if (!converted)
        fprintf(stderr, "encode: %s\n", error.message);
    buffer_free(&columns);
    buffer_free(&input);
    return fflush(stdout) != 0 || !converted;
}

#include "formats/orbax/zarr.h"

#include "base/arena.h"
#include "base/checked.h"
#include "formats/tensorflow/table.h"

#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST /* what is read is const */
#include <zlib.h>
#include <zstd.h>

static const char *decode_zstd(const unsigned char *bytes, size_t n_bytes, unsigned char *out, size_t length)
{
    size_t n = ZSTD_decompress(out, length, bytes, n_bytes);
    if (ZSTD_isError(n))
        return "its compressed data (zstd) are damaged, or larger than a chunk";
    return n == length ? NULL : "its compressed data (zstd) are smaller than a chunk";
}

/* Both of gzip's and of zlib's headers are understood. */
static const char *decode_gzip(const unsigned char *bytes, size_t n_bytes, unsigned char *out, size_t length)
{
    enum { ANY_HEADER = 32 + 15 };
    unsigned char nothing;
    z_stream stream = {.next_in = bytes, .avail_in = (uInt)n_bytes};
    if (inflateInit2(&stream, ANY_HEADER) != Z_OK)
        return "not enough memory to inflate a chunk";
    stream.next_out = length > 0 ? out : &nothing;
    stream.avail_out = (uInt)length;
    int status = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    return status == Z_STREAM_END && stream.avail_out == 0 && stream.avail_in == 0
               ? NULL
               : "its compressed data (gzip) are damaged, or of another size than a chunk";
}

static const char *decode_crc32c(const unsigned char *bytes, size_t n_bytes, unsigned char *out, size_t length)
{
    enum { CHECKSUM = 4 };
    if (n_bytes != length + CHECKSUM)
        return "it does not have the size of a chunk and its checksum";
    if (read_le(bytes + length, CHECKSUM) != crc32c(bytes, length))
        return "its checksum is wrong";
    memcpy(out, bytes, length);
    return NULL;
}

const char *codec_decode(enum codec codec, const unsigned char *bytes, size_t n_bytes, unsigned char *out,
                         size_t length)
{
    return codec == CODEC_ZSTD   ? decode_zstd(bytes, n_bytes, out, length)
           : codec == CODEC_GZIP ? decode_gzip(bytes, n_bytes, out, length)
                                 : decode_crc32c(bytes, n_bytes, out, length);
}

unsigned char *codec_decode_zstd(const unsigned char *bytes, size_t n_bytes, size_t limit, size_t *ret_length)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {bytes, n_bytes, 0};
    ZSTD_outBuffer out = {NULL, 0, 0};
    size_t left = stream != NULL ? 1 : (size_t)-1;
    while (left != 0 && !ZSTD_isError(left) && out.pos <= limit) {
        size_t before = in.pos + out.pos;
        if (out.pos == out.size) {
            out.size = out.size > 0 ? 2 * out.size : 4 * n_bytes + 1;
            out.size = out.size < limit + 1 ? out.size : limit + 1;
            out.dst = memory_resize(out.dst, out.size);
        }
        left = ZSTD_decompressStream(stream, &out, &in);
        if (in.pos + out.pos == before)
            break; /* truncated, or at the limit */
    }
    ZSTD_freeDStream(stream);
    *ret_length = out.pos;
    if (left == 0 && in.pos == n_bytes && out.pos <= limit)
        return out.dst;
    free(out.dst);
    return NULL;
}

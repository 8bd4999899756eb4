#include "sources/archive/lines.h"

#include "base/arena.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    PIECE = 64 * 1024, /* bytes of the frame that are read at once */
    WINDOW_LOG = 23,   /* 8 MiB: the memory of a decoder */
    LEVEL = 12,
    KEPT_ALWAYS = 24 << 20,
    KEPT_FOR_BYTE = 16, /* a folder's line of 10 compressed bytes takes some 150 in memory */
};

/* A list while it is read. */
struct reading {
    const struct source *blob;
    take_line *take;
    void *context;
    struct error *error;
    ZSTD_DStream *stream;
    struct sha256_ctx hash;
    uint64_t n_lines;
    size_t length; /* of the line so far */
    bool ended;    /* the frame is complete */
    unsigned char in[PIECE];
    char text[PIECE];
    char line[LINES_LONGEST];
};

static bool take_text(struct reading *reading)
{
    struct error *error = reading->error;
    struct json_document *document = json_parse(reading->line, reading->length, error);
    reading->n_lines++;
    bool taken = document != NULL && reading->take(reading->context, json_root(document), reading->n_lines, error);
    json_free(document);
    reading->length = 0;
    return taken ||
           error_prefix(error, "%s: line %" PRIu64 " of its list", source_name(reading->blob), reading->n_lines);
}

/* Takes the lines that end in the next bytes of the text. */
static bool take_bytes(struct reading *reading, const char *text, size_t length)
{
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        size_t n = end != NULL ? (size_t)(end - text) : length;
        if (n > sizeof reading->line - reading->length)
            return error_set(reading->error, "%s: line %" PRIu64 " of its list is longer than %d bytes",
                             source_name(reading->blob), reading->n_lines + 1, LINES_LONGEST);
        memcpy(reading->line + reading->length, text, n);
        reading->length += n;
        if (end != NULL && !take_text(reading))
            return false;
        n += end != NULL;
        text += n;
        length -= n;
    }
    return true;
}

static bool expand(struct reading *reading, size_t length)
{
    ZSTD_inBuffer in = {reading->in, length, 0};
    for (;;) {
        ZSTD_outBuffer out = {reading->text, sizeof reading->text, 0};
        if (reading->ended && in.pos < in.size)
            return error_set(reading->error, "%s: bytes follow the frame of its list", source_name(reading->blob));
        size_t left = ZSTD_decompressStream(reading->stream, &out, &in);
        if (ZSTD_isError(left))
            return error_set(reading->error, "%s: its list is damaged: %s", source_name(reading->blob),
                             ZSTD_getErrorName(left));
        reading->ended = left == 0;
        if (!take_bytes(reading, reading->text, out.pos))
            return false;
        if (in.pos == in.size && out.pos < out.size)
            return true;
        if (reading->ended && in.pos == in.size)
            return true;
    }
}

static bool read_frame(struct reading *reading, uint64_t offset, uint64_t length)
{
    for (uint64_t at = 0; at < length;) {
        size_t n = length - at < PIECE ? (size_t)(length - at) : PIECE;
        if (!source_read(reading->blob, offset + at, n, reading->in, reading->error))
            return false;
        sha256_update(&reading->hash, n, reading->in);
        if (!expand(reading, n))
            return false;
        at += n;
    }
    if (reading->ended && reading->length == 0)
        return true;
    return error_set(reading->error, "%s: its list ends within a line", source_name(reading->blob));
}

static bool is_intact(struct reading *reading, const struct digest *digest)
{
    struct digest found;
    char wanted[SHA256_HEX + 1], hex[SHA256_HEX + 1];
    if (digest == NULL)
        return true;
    sha256_digest(&reading->hash, sizeof found.bytes, found.bytes);
    digest_hex(digest, wanted);
    digest_hex(&found, hex);
    return digest_same(digest, &found) ||
           error_set(reading->error, "%s: damaged: its SHA-256 is %s, and the archive states %s",
                     source_name(reading->blob), hex, wanted);
}

bool lines_read(const struct source *blob, uint64_t offset, uint64_t length, const struct digest *digest,
                take_line *take, void *context, struct error *error)
{
    if (length > LINES_FRAME)
        return error_set(error, "%s: its list has %" PRIu64 " bytes, the limit is %d", source_name(blob), length,
                         LINES_FRAME);
    struct reading *reading = memory_alloc(sizeof *reading);
    reading->blob = blob;
    reading->take = take;
    reading->context = context;
    reading->error = error;
    reading->n_lines = reading->length = 0;
    reading->ended = false;
    reading->stream = ZSTD_createDStream();
    if (reading->stream == NULL)
        memory_exhausted(PIECE);
    ZSTD_DCtx_setParameter(reading->stream, ZSTD_d_windowLogMax, WINDOW_LOG);
    sha256_init(&reading->hash);
    bool good = read_frame(reading, offset, length) && is_intact(reading, digest);
    ZSTD_freeDStream(reading->stream);
    free(reading);
    return good;
}

uint64_t lines_budget(uint64_t length)
{
    return KEPT_ALWAYS + KEPT_FOR_BYTE * length;
}

void lines_append_frame(const struct buffer *text, struct buffer *out)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t bound = ZSTD_compressBound(text->length), start = out->length;
    if (context == NULL)
        memory_exhausted(bound);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, WINDOW_LOG);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    buffer_append_zeros(out, bound);
    size_t length = ZSTD_compress2(context, out->bytes + start, bound, text->bytes, text->length);
    ZSTD_freeCCtx(context);
    if (ZSTD_isError(length))
        memory_exhausted(bound);
    out->length = start + length;
}

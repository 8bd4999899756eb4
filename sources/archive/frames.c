#include "sources/archive/frames.h"

#include "base/arena.h"
#include "base/checked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* Bytes between buffers. Copies between places that are at almost the same distance from the start
 * of a page are several times slower, and other large buffers begin with one. */
enum { OFFSET = 512 };

struct coder {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
    unsigned char *memory;
    struct coder_buffers buffers;
};

struct coder *coder_new(void)
{
    struct coder *coder = memory_alloc(sizeof *coder);
    *coder = (struct coder){.compressor = ZSTD_createCCtx(), .decompressor = ZSTD_createDCtx()};
    if (coder->compressor == NULL || coder->decompressor == NULL)
        memory_exhausted(sizeof *coder);
    coder->memory = memory_alloc(2 * (size_t)FRAME_MOST + CODING_CHUNK * sizeof(float) + 3 * (size_t)OFFSET);
    coder->buffers.planes = coder->memory + OFFSET;
    coder->buffers.more = coder->buffers.planes + FRAME_MOST + OFFSET;
    coder->buffers.values = (float *)(void *)(coder->buffers.more + FRAME_MOST + OFFSET);
    return coder;
}

void coder_free(struct coder *coder)
{
    if (coder == NULL)
        return;
    ZSTD_freeCCtx(coder->compressor);
    ZSTD_freeDCtx(coder->decompressor);
    free(coder->memory);
    free(coder);
}

struct coder_buffers *coder_buffers(struct coder *coder)
{
    return &coder->buffers;
}

size_t frame_bound(size_t n)
{
    return ZSTD_compressBound(n);
}

/* Parameters of zstd's stable interface. The fastest strategy with the smallest table finds hardly any matches, which
 * leaves all bytes to the Huffman codes; with a target length it neither uses these, nor spends time. */
static bool set_parameters(ZSTD_CCtx *compressor, enum frame_kind kind)
{
    enum { HASH_BITS = 6, LEAST_MATCH = 7, LONGEST_STEP = 131072, TEXT_LEVEL = 6 };
    bool fast = kind == FRAME_RAW || kind == FRAME_HUFFMAN;
    const struct {
        ZSTD_cParameter parameter;
        int value;
    } rows[] = {
        {ZSTD_c_compressionLevel, kind == FRAME_TEXT ? TEXT_LEVEL : 1},
        {ZSTD_c_checksumFlag, 1},
        {ZSTD_c_strategy, fast ? ZSTD_fast : 0},
        {ZSTD_c_hashLog, fast ? HASH_BITS : 0},
        {ZSTD_c_minMatch, fast ? LEAST_MATCH : 0},
        {ZSTD_c_targetLength, kind == FRAME_RAW ? LONGEST_STEP : 0},
    };
    ZSTD_CCtx_reset(compressor, ZSTD_reset_session_and_parameters);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (ZSTD_isError(ZSTD_CCtx_setParameter(compressor, rows[i].parameter, rows[i].value)))
            return false;
    return true;
}

/* Returns the length of the frame; 0 if zstd fails. */
static size_t compress(const struct frames_out *out, enum frame_kind kind, const void *bytes, size_t n)
{
    if (!set_parameters(out->coder->compressor, kind))
        return 0;
    size_t length = ZSTD_compress2(out->coder->compressor, out->at, (size_t)(out->end - out->at), bytes, n);
    return ZSTD_isError(length) ? 0 : length;
}

/* Reports whether a sample of the bytes has so much entropy that Huffman codes cannot save 1 %. */
static bool looks_random(const unsigned char *bytes, size_t n)
{
    enum { RUNS = 16, RUN = 256, SAMPLE = RUNS * RUN };
    const double most = 7.915; /* 7.96 bits: a sample of this size has 0.045 less than the whole */
    unsigned counts[256] = {0};
    double bits = 0;
    if (n < 4 * (size_t)SAMPLE)
        return false;
    for (size_t i = 0; i < RUNS; i++)
        for (size_t j = 0; j < RUN; j++)
            counts[bytes[i * (n / RUNS) + j]]++;
    for (size_t i = 0; i < 256; i++)
        if (counts[i] != 0)
            bits += counts[i] * log2((double)SAMPLE / counts[i]);
    return bits / SAMPLE > most;
}

/* Codes by the Huffman codes if they save 1 %, and also by matches where these may save more, because Huffman codes
 * need at least a bit a byte. Returns 0 if neither saves 1 %. */
static size_t compress_best(const struct frames_out *out, enum frame_kind kind, const void *bytes, size_t n)
{
    enum { LEAST_SAVED = 100, FEW_BITS = 4 };
    size_t length = 0, matched = 0;
    if (kind == FRAME_MATCHED || kind == FRAME_TEXT)
        matched = compress(out, kind, bytes, n);
    else if (!looks_random(bytes, n))
        length = compress(out, FRAME_HUFFMAN, bytes, n);
    if (kind == FRAME_SPARSE && length != 0 && length < n / FEW_BITS)
        matched = compress(out, FRAME_MATCHED, bytes, n);
    if (matched != 0 && length != 0 && matched > length)
        length = compress(out, FRAME_HUFFMAN, bytes, n);
    else if (matched != 0)
        length = matched;
    return length > n - n / LEAST_SAVED ? 0 : length;
}

bool frame_write(struct frames_out *out, enum frame_kind kind, const void *bytes, size_t n, struct error *error)
{
    size_t length = kind == FRAME_RAW ? 0 : compress_best(out, kind, bytes, n);
    if (length == 0)
        length = compress(out, FRAME_RAW, bytes, n);
    if (length == 0)
        return error_set(error, "libzstd %s cannot compress %zu bytes", ZSTD_versionString(), n);
    out->at += length;
    return true;
}

/* Finds the end of the next frame. Frames of zstd's versions before 1.0 are not taken, whatever libzstd reads. */
static bool find_frame(const struct frames_in *in, size_t n, size_t *ret_length, struct error *error)
{
    enum { MAGIC_BYTES = 4, DESCRIPTOR = 4, HAS_CHECKSUM = 1 << 2 };
    if (in->left <= MAGIC_BYTES || read_le(in->at, MAGIC_BYTES) != ZSTD_MAGICNUMBER)
        return error_set(error, in->left == 0 ? "a frame is missing" : "no zstd frame begins where one should");
    size_t length = ZSTD_findFrameCompressedSize(in->at, in->left);
    if (ZSTD_isError(length))
        return error_set(error, "a frame is damaged: %s", ZSTD_getErrorName(length));
    unsigned long long content = ZSTD_getFrameContentSize(in->at, in->left);
    if (content != n)
        return error_set(error, "a frame does not contain the %zu bytes that belong there", n);
    if ((in->at[DESCRIPTOR] & HAS_CHECKSUM) == 0)
        return error_set(error, "a frame has no checksum");
    *ret_length = length;
    return true;
}

bool frame_read(struct frames_in *in, void *bytes, size_t n, struct error *error)
{
    size_t length = 0;
    if (!find_frame(in, n, &length, error))
        return false;
    size_t got = ZSTD_decompressDCtx(in->coder->decompressor, bytes, n, in->at, length);
    if (ZSTD_isError(got))
        return error_set(error, "a frame is damaged: %s", ZSTD_getErrorName(got));
    if (got != n)
        return error_set(error, "a frame contains %zu bytes instead of %zu", got, n);
    in->at += length;
    in->left -= length;
    return true;
}

uint64_t frame_content(const struct frames_in *in)
{
    return ZSTD_getFrameContentSize(in->at, in->left);
}

bool frame_write_changes(struct frames_out *out, unsigned char *computed, const unsigned char *stored, size_t n,
                         struct error *error)
{
    unsigned any = 0;
    for (size_t i = 0; i < n; i++)
        any |= computed[i] ^= stored[i];
    return any == 0 || frame_write(out, FRAME_MATCHED, computed, n, error);
}

bool frame_read_changes(struct frames_in *in, unsigned char *bytes, size_t n, struct error *error)
{
    unsigned char *changes = coder_buffers(in->coder)->planes;
    if (in->left == 0)
        return true;
    if (!frame_read(in, changes, n, error))
        return false;
    for (size_t i = 0; i < n; i++)
        bytes[i] ^= changes[i];
    return frames_end(in, error);
}

bool frames_end(const struct frames_in *in, struct error *error)
{
    return in->left == 0 || error_set(error, "%zu bytes follow the last frame", in->left);
}

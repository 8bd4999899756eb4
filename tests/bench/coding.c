/* Codes the numbers of a file, and decodes them again: how much smaller they are, and the rates on one core, of the
 * processor's time. Arguments: a coding, a file of numbers or safetensors, and for differences the base's file. For
 * codings of blocks the numbers are F32, and are quantized first. */
#include "sources/archive/coding.h"

#include "base/arena.h"
#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TURNS = 5 };

struct bytes {
    unsigned char *all, *numbers;
    size_t n;
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static _Noreturn void stop(const char *what, const char *why)
{
    fprintf(stderr, "coding: %s: %s\n", what, why);
    exit(1);
}

/* Reads a file. The numbers of safetensors follow the header, whose length is before it. */
static struct bytes read_file(const char *path)
{
    enum { LENGTH = 8 };
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        stop(path, "cannot open it");
    struct bytes bytes = {.n = (size_t)ftell(file)};
    bytes.all = bytes.numbers = memory_alloc(bytes.n + LENGTH);
    rewind(file);
    if (fread(bytes.all, 1, bytes.n, file) != bytes.n)
        stop(path, "cannot read it");
    fclose(file);
    uint64_t header = read_le(bytes.all, LENGTH) + LENGTH;
    if (header < bytes.n && bytes.all[LENGTH] == '{') {
        bytes.numbers += header;
        bytes.n -= header;
    }
    return bytes;
}

struct job {
    const struct coding *coding;
    struct coder *coder;
    struct bytes bytes, base;
    unsigned char *coded, *decoded;
    size_t *ends; /* of the chunks, coded */
    struct coding_input input;
};

static bool read_base(void *context, uint64_t first, size_t count, void *out, struct error *error)
{
    const struct job *job = context;
    const size_t width = job->coding->input == CODING_VALUES ? sizeof(float) : job->coding->unit_bytes;
    memcpy(out, job->base.numbers + first * width, count * width);
    return true;
}

static struct coding_chunk chunk_at(const struct job *job, size_t at)
{
    size_t left = job->bytes.n - at, whole = coding_bytes(job->coding, coding_chunk(job->coding));
    return (struct coding_chunk){.first = at / job->coding->unit_bytes * job->coding->unit_values,
                                 .n_bytes = left < whole ? left : whole,
                                 .input = &job->input};
}

/* Returns the bytes of all chunks, coded. */
static size_t encode(const struct job *job)
{
    struct error error;
    size_t end = 0, length;
    for (size_t at = 0, i = 0; at < job->bytes.n; at += coding_bytes(job->coding, coding_chunk(job->coding))) {
        const struct coding_chunk chunk = chunk_at(job, at);
        if (!coding_encode(job->coding, job->coder, &chunk, job->bytes.numbers + at, job->coded + end, &length, &error))
            stop(job->coding->name, error.message);
        end += length;
        job->ends[i++] = end;
    }
    return end;
}

/* Decodes all chunks into the same buffer, as a reader does, and compares them if `compared`. */
static void decode(const struct job *job, bool compared)
{
    struct error error;
    size_t begin = 0;
    for (size_t at = 0, i = 0; at < job->bytes.n;
         at += coding_bytes(job->coding, coding_chunk(job->coding)), begin = job->ends[i++]) {
        const struct coding_chunk chunk = chunk_at(job, at);
        if (!coding_decode(job->coding, job->coder, &chunk, job->coded + begin, job->ends[i] - begin, job->decoded,
                           &error))
            stop(job->coding->name, error.message);
        if (compared && memcmp(job->decoded, job->bytes.numbers + at, chunk.n_bytes) != 0)
            stop(job->coding->name, "decoded bytes differ");
    }
}

static void measure(const struct job *job)
{
    double encoding = 1e9, decoding = 1e9;
    size_t length = 0;
    for (int i = 0; i < TURNS; i++) {
        double start = seconds();
        length = encode(job);
        double middle = seconds();
        decode(job, false);
        double end = seconds();
        encoding = middle - start < encoding ? middle - start : encoding;
        decoding = end - middle < decoding ? end - middle : decoding;
    }
    decode(job, true);
    printf("%-14s %5.2f %% saved, encodes %5.2f GB/s, decodes %5.2f GB/s\n", job->coding->name,
           100 - 100 * (double)length / (double)job->bytes.n, (double)job->bytes.n / encoding / 1e9,
           (double)job->bytes.n / decoding / 1e9);
}

/* Replaces numbers by their blocks, and keeps them as the base. */
static void quantize(struct job *job)
{
    const struct dtype *dtype = job->coding->dtype;
    size_t n_blocks = job->bytes.n / sizeof(float) / dtype->block_elements;
    job->base = job->bytes;
    job->bytes.n = n_blocks * dtype->block_bytes;
    job->bytes.numbers = memory_alloc(job->bytes.n);
    dtype_kernels(dtype).encode((const float *)(const void *)job->base.numbers, job->bytes.numbers, n_blocks);
}

int main(int n, char **arguments)
{
    struct job job = {.coding = n < 3 ? NULL : coding_by_name(arguments[1]), .coder = coder_new()};
    if (job.coding == NULL)
        stop("usage", "coding CODING FILE [BASE]");
    job.bytes = read_file(arguments[2]);
    if (job.coding->dtype != NULL)
        quantize(&job);
    job.bytes.n -= job.bytes.n % job.coding->unit_bytes;
    job.input = (struct coding_input){read_base, &job};
    if (job.coding->input == CODING_BASE)
        job.base = read_file(n > 3 ? arguments[3] : "");
    if (job.coding->input == CODING_BASE && job.base.n < job.bytes.n)
        stop(job.coding->name, "the base is shorter");
    size_t whole = coding_bytes(job.coding, coding_chunk(job.coding)), n_chunks = job.bytes.n / whole + 1;
    job.coded = memory_alloc(n_chunks * coding_bound(job.coding, whole));
    job.decoded = memory_alloc(whole);
    job.ends = memory_alloc(n_chunks * sizeof *job.ends);
    measure(&job);
    coder_free(job.coder);
    return 0;
}

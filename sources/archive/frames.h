/* The zstd frames that a coding writes, and reads one after the other. For the codings alone (coding.h). */
#pragma once

#include "sources/archive/coding.h"

enum { FRAME_MOST = CODING_CHUNK * 8 /* bytes of content */ };

/* Buffers of a coder, for the codings; no coding calls another. */
struct coder_buffers {
    unsigned char *planes, *more; /* FRAME_MOST bytes each */
    float *values;                /* CODING_CHUNK */
};
struct coder_buffers *coder_buffers(struct coder *coder);

/* How the content of a frame is coded. */
enum frame_kind {
    FRAME_RAW,     /* not at all, unless it repeats */
    FRAME_HUFFMAN, /* by Huffman codes, or raw where these save less than 1 % */
    FRAME_MATCHED, /* as zstd usually does, for what is mostly the same */
    FRAME_SPARSE,  /* by the better of the two */
    FRAME_TEXT,    /* as FRAME_MATCHED, smaller and more slowly */
};

/* Frames that are written one after the other. */
struct frames_out {
    struct coder *coder;
    unsigned char *at, *end;
};

/* Frames that are read one after the other. */
struct frames_in {
    struct coder *coder;
    const unsigned char *at;
    size_t left;
};

/* Returns the most bytes that a frame of `n` bytes takes. */
size_t frame_bound(size_t n);

/* Appends a frame of `n` bytes. Fails if it has no room for the bound. */
bool frame_write(struct frames_out *out, enum frame_kind kind, const void *bytes, size_t n, struct error *error);

/* Reads the next frame, which must have exactly `n` bytes of content. */
bool frame_read(struct frames_in *in, void *bytes, size_t n, struct error *error);

/* Returns what the next frame claims as its content's size; above 2^63 if there is no frame. */
uint64_t frame_content(const struct frames_in *in);

/* Appends a frame of what stored bytes differ in from computed ones, by exclusive or, which replaces the computed ones;
 * none if they are equal. Its bound is frame_bound(). */
bool frame_write_changes(struct frames_out *out, unsigned char *computed, const unsigned char *stored, size_t n,
                         struct error *error);

/* Reads that frame, which is the last, and turns computed bytes into stored ones. Uses the coder's buffer of planes. */
bool frame_read_changes(struct frames_in *in, unsigned char *bytes, size_t n, struct error *error);

/* Fails if bytes are left after the last frame. */
bool frames_end(const struct frames_in *in, struct error *error);

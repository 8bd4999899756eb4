/* The plan of a copy in parts, and the markers of parts that are done: texts in the directory of the parts (parts.h).
 *
 * All workers agree on a plan: the first to write it decides, and the others compare theirs with it. A plan says what
 * is copied, from which sources, by which wfs, and where it is cut. It is a line of JSON, and a line with the SHA-256
 * of the first; a marker is, too. */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/encodings.h"
#include "base/error.h"
#include "fs/tree/vfile.h"
#include "sources/source.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PARTS_MOST = 100000,          /* parts: a marker is a file */
    PARTS_MOST_TEXT = 16 << 20,   /* bytes of a plan or a marker */
    PARTS_CHECKED_PIECE = 1 << 20 /* bytes of a file that one CRC is of */
};

struct parts_plan {
    const char *wfs;             /* version and build */
    const char *path;            /* what is copied: "gguf/model-Q4_K_M.gguf" */
    const char *model;           /* the model's name, which files contain */
    const char *options;         /* as words of -o, a line each */
    char layout[SHA256_HEX + 1]; /* names and sizes of the files */
    char stamp[SHA256_HEX + 1];  /* of the sources, by source_stamp() ... */
    char source[SHA256_HEX + 1]; /* ... and by source_digest(); "" until it is needed */
    uint64_t bytes;              /* of all files */
    uint64_t header_bytes;       /* of the header that is kept beside the plan (parts.h); 0: none is */
    char header[SHA256_HEX + 1]; /* of its bytes, and of the records in it */
    char table[SHA256_HEX + 1];
    size_t n_parts;
    const uint64_t *ends;      /* where each part ends (cut_files()) */
    char hash[SHA256_HEX + 1]; /* of the plan's text, set by those who read or write one */
};

/* Appends the text of a plan and sets plan->hash. */
void parts_plan_write(struct parts_plan *plan, struct buffer *out);

/* Parses the text of a plan; texts are in the arena. The error has no path. */
bool parts_plan_read(const struct buffer *text, struct arena *arena, struct parts_plan *ret_plan, struct error *error);

/* Compares the plan that was found with the one of this worker, whose sources are given. Sets own->source if it has to.
 * The error names what differs, without a path. */
bool parts_plan_agrees(const struct parts_plan *found, struct parts_plan *own, struct source *const *sources,
                       size_t n_sources, struct error *error);

/* A part that is done: its bytes are durable. */
struct parts_marker {
    char plan[SHA256_HEX + 1];     /* parts_plan.hash */
    uint64_t from, to;             /* positions (cut_files()) */
    char checksum[SHA256_HEX + 1]; /* SHA-256 of the CRC-32s of pieces of PARTS_CHECKED_PIECE, from the beginning of the
                                      part in each file on */
};

void parts_marker_write(const struct parts_marker *marker, struct buffer *out);

/* Returns false for a text that is no marker. */
bool parts_marker_read(const struct buffer *text, struct parts_marker *ret_marker);

/* Cuts: where files are divided into parts that take about equal time to compute.
 *
 * Positions count the bytes of all files, one file after the other. A cut is at the end of a file or at a multiple of
 * CUT_UNIT in it: two clients of a network file system that write to one page overwrite each other's bytes, and pages
 * have up to 64 KiB. A block or a tensor may lie across a cut: both workers compute what they need of it.
 *
 * A tensor of which any byte needs all of its sources first, as the methods of merges that compute statistics do, is
 * not divided: each worker would read all of them. Cuts are then before and after it, up to CUT_UNIT away.
 *
 * Cuts depend on the files and the number of parts alone, not on the machine. */

enum { CUT_UNIT = 64 * 1024 /* bytes */ };

/* Sets ret_ends[i] to the position where part i of `n_parts` ends; part 0 begins at 0, and the last one ends at the end
 * of the files. Parts may be empty. Equal cost is only approximate: convert_cost() and a constant for each byte. */
void cut_files(const struct vfile *const *files, size_t n_files, size_t n_parts, uint64_t *ret_ends);

/* What the first reader of a view finds out about whole tensors, and every later one shares: a norm, a threshold.
 *
 * A finding is one piece of memory without pointers, so that a program may keep it beyond the process: the same view of
 * the same inputs finds the same bytes. Readers that come while a finding is made wait. After a failure, also of
 * memory, the next reader tries again. */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* The findings of a checkpoint's views: they live as long as the arena. */
struct findings;
struct findings *findings_new(struct arena *arena);

/* Where findings are kept. Called from any thread, loading and saving a finding by one at a time; none fails visibly.
 */
struct finding_keeper {
    void *(*load)(void *context, uint32_t number); /* returns memory of finding_alloc(); NULL: it is not there */
    void (*save)(void *context, uint32_t number, const void *bytes, size_t length);
    void *context;

    /* Reads a part of a finding of `size` bytes; false: none of that size is there. NULL: findings are short. */
    bool (*read)(void *context, uint32_t number, uint64_t size, uint64_t offset, size_t length, void *out);
};

/* Keeps findings from now on. Call it before the first reader comes, and again with NULL before the keeper ends. */
void findings_keep(struct findings *findings, const struct finding_keeper *keeper);

/* Load, read a part of, and save what is found in a checkpoint otherwise than by a view, under a number of its own from
 * FINDINGS_OF_VIEWS on. Loading returns memory of finding_alloc(); NULL: it is not kept. Reading fails if nothing of
 * `size` bytes is kept. */
#define FINDINGS_OF_VIEWS (UINT32_C(1) << 31)
bool findings_are_kept(const struct findings *findings);
void *findings_load(const struct findings *findings, uint32_t number);
bool findings_read(const struct findings *findings, uint32_t number, uint64_t size, uint64_t offset, size_t length,
                   void *out);
void findings_save(const struct findings *findings, uint32_t number, const struct buffer *bytes);

/* Like findings_keep(), load and save, for findings of at most some hundred bytes, which a process may keep that keeps
 * no others. Saving nothing drops what is kept. */
void findings_keep_short(struct findings *findings, const struct finding_keeper *keeper);
bool findings_short_are_kept(const struct findings *findings);
void *findings_load_short(const struct findings *findings, uint32_t number);
void findings_save_short(const struct findings *findings, uint32_t number, const struct buffer *bytes);

/* A finding: the part of a view that changes, which the view points to. Its number is that of its place among all, in
 * the order of finding_new(). */
struct finding {
    _Atomic(const void *) value;
    struct findings *findings;
    uint32_t number;
    _Atomic(bool) sought; /* among those that are kept */
};

struct finding *finding_new(struct arena *arena, struct findings *findings);

/* Returns memory for a finding, with zeros; the one that returns it from finding_function or load() gives it up. All
 * other memory of it is released by finding_discard(). */
void *finding_alloc(size_t length);
size_t finding_length(const void *value);
void finding_discard(void *value);

/* Returns a finding of `length` bytes and then those of `then`, which may be NULL, like finding_alloc(). */
void *finding_of(const void *bytes, size_t length, const struct buffer *then);

/* Returns the finding; NULL: an error. */
typedef void *finding_function(const void *context, struct error *error);
const void *finding_get(struct finding *finding, finding_function *find, const void *context, struct error *error);

/* Reports whether the finding is there already, or kept. */
bool finding_known(struct finding *finding);

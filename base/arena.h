/* An arena: memory that is freed all at once.
 *
 * Whoever creates an arena owns everything allocated from it. Memory is zeroed and aligned for any type of at most 8
 * bytes, and what is made of such.
 * Running out of memory ends the attempt (base/attempt.h) that the thread makes, and the process where it makes none,
 * with a message, in the log where there is no terminal. Nothing may be asked for here whose size a file merely names:
 * a reader bounds it first, by the size of the file, by a limit or by a budget that it states (tokenizers/work.h is
 * one), and fails with an error.
 */
#pragma once

#include <stddef.h>

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *arena); /* NULL is allowed */

/* Calls release(context) when the arena is freed, before any of its memory goes: for what its inhabitants own besides.
 * The last one asked for is called first. */
void arena_on_free(struct arena *arena, void (*release)(void *context), void *context);

void *arena_alloc(struct arena *arena, size_t size);
void *arena_array(struct arena *arena, size_t count, size_t element_size); /* overflow ends the process */
void *arena_copy(struct arena *arena, const void *bytes, size_t size);
char *arena_strndup(struct arena *arena, const char *text, size_t length); /* adds a NUL */
char *arena_strdup(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* malloc, realloc and strdup that end the attempt or the process when there is no memory; free() releases. */
void *memory_alloc(size_t size);
/* a size that is a multiple of the alignment, a power of two */
void *memory_alloc_aligned(size_t alignment, size_t size);
void *memory_resize(void *memory, size_t size);
char *memory_strdup(const char *text);
char *memory_strndup(const char *text, size_t length);

/* Gives back to the system what has been freed, and would else be kept for what is allocated next: for a process that
 * lives on after work that took much. */
void memory_trim(void);

/* What these do where there is no memory: for what others have failed to allocate. */
_Noreturn void memory_exhausted(size_t size);

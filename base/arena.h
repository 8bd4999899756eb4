/* An arena: memory that is freed all at once.
 *
 * The creator of an arena owns everything allocated from it. Memory that it allocates is zeroed, and aligned to 8
 * bytes. A new arena takes about 1 KiB, so lists of a server's files can have one each. Running out of memory ends the
 * thread's attempt (base/attempt.h), or the process if the thread makes none: with a message, by exit(1) if the program
 * allows it (base/process.h) and else by abort(). A reader must bound every size that comes from a file before it
 * allocates: by the size of the file, by a limit, or by a stated budget such as tokenizers/hf_encode.h, and fail with
 * an error. */
#pragma once

#include <stddef.h>

struct arena;

struct arena *arena_new(void);
struct arena *arena_new_shared(void); /* belongs to no attempt: for memory that another thread frees */
void arena_free(struct arena *arena); /* NULL is allowed */

/* Calls release(context) when the arena is freed, before its memory: for resources that objects in the arena own. Calls
 * run in reverse order. */
void arena_on_free(struct arena *arena, void (*release)(void *context), void *context);

/* Returns how many bytes of memory the arena takes. */
size_t arena_bytes(const struct arena *arena);

void *arena_alloc(struct arena *arena, size_t size);
void *arena_array(struct arena *arena, size_t count, size_t element_size); /* overflow counts as lack of memory */
/* Gives the arena memory from malloc(): free() releases it with the arena. */
void arena_adopt(struct arena *arena, void *memory, size_t size);
void *arena_copy(struct arena *arena, const void *bytes, size_t size);
char *arena_strndup(struct arena *arena, const char *text, size_t length); /* adds a NUL */
char *arena_strdup(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* malloc, realloc, strdup and strndup that end the attempt or the process if memory runs out; free() releases. */
void *memory_alloc(size_t size);
/* `size` must be a multiple of `alignment`, which must be a power of two. */
void *memory_alloc_aligned(size_t alignment, size_t size);
void *memory_resize(void *memory, size_t size);

/* Like realloc(), or malloc() if `memory` is NULL: returns NULL if memory runs out. For libraries that handle it. */
void *memory_try(void *memory, size_t size);

/* Return an array with room for one more element after `count` of them, on the heap or in the arena. The room doubles.
 * The array begins as NULL, and no other function resizes it. */
void *memory_grow(void *array, size_t count, size_t element_size);
void *arena_grow(struct arena *arena, void *array, size_t count, size_t element_size);

char *memory_strdup(const char *text);
char *memory_strndup(const char *text, size_t length);

/* Returns freed memory to the system instead of keeping it for later allocations, if the program allows it
 * (base/process.h): for a process that goes on after work that needed much memory. Each thread that did such work must
 * call it, because what ends a thread's own heap is returned by that thread alone. */
void memory_trim(void);

/* Ends the attempt or the process as the functions above do: for allocations that failed elsewhere. */
_Noreturn void memory_exhausted(size_t size);

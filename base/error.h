/* Errors: one line for a person, filled in where the failure is known.
 *
 * A function that can fail returns bool (true on success) or a pointer (NULL on failure) and takes a
 * `struct error *` as its last parameter. It writes the error only when it fails, and results only when it
 * succeeds. Callers pass the error on; they may put a place before it with error_prefix(), nothing else.
 * The line names the file, the place in it and the reason, without "wfs:" and without a newline. Text that
 * comes from a file has its control and invalid bytes replaced, so that a line is safe on a terminal. Of a line that is
 * too long, by a path of thousands of bytes, " ... " stands for the middle: the reason at its end stays. */
#pragma once

#include <stdbool.h>

struct error {
    char message[1024];
    int code; /* an errno value for the program whose read fails: EIO unless error_set_code() set another */
};

/* The outcome of a step, for callers that report failures themselves: REPORTED means that nothing is left to report,
 * because the failure was reported before or is no fault. After FAILED and REPORTED the error holds the reason. */
enum outcome { OK, FAILED, REPORTED };

/* Sets the message and the code EIO, and returns false, so that a failure reads `return error_set(error, ...)`. */
bool error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like error_set(), with ": " and the text of `errno_value` after the message. */
bool error_set_errno(struct error *error, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Replaces the code of an error that is set: ESTALE for an object that has changed, EINTR for an interrupted reader.
 * Returns false. */
bool error_set_code(struct error *error, int code);

/* Puts "<prefix>: " before the message and keeps the code; returns false. */
bool error_prefix(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The XML of answers of S3. Source: Amazon S3 API Reference. */
#pragma once

#include "fs/http/answer.h"

/* Begins an answer with the start of its root element, which the caller ends. */
struct buffer *s3_begin(struct answer *answer, const char *element);

/* Appends text, escaped. Control characters become references, as S3 writes them, and bytes that are not UTF-8
 * U+FFFD. */
void s3_put_text(struct buffer *out, const char *text, size_t length);

/* Append an element: a text, a number, or a time, "2026-01-31T12:00:00.000Z". */
void s3_put(struct buffer *out, const char *element, const char *text);
void s3_put_number(struct buffer *out, const char *element, uint64_t number);
void s3_put_time(struct buffer *out, const char *element, time_t time);

/* Makes the answer an error of S3, in place of what it has. */
void s3_fail(struct answer *answer, unsigned status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

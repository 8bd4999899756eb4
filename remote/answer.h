/* What a server answers, and whether that is what was asked for.
 *
 * libcurl checks nothing about ranges: an answer with other bytes, or with more or fewer, is a success to it. So every
 * answer is judged here, by its status and headers, before a byte of its body is used. Nothing here does I/O. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define SIZE_UNKNOWN UINT64_MAX

enum {
    ANSWER_TAG = 256,
    ANSWER_URL = 8192,
    ANSWER_WORDS = 256,
    /* A file up to this size is read from a server that ignores ranges: each range then costs all of it. */
    ANSWER_WHOLE_LIMIT = 16 << 20,
    ANSWER_LONGEST_PAUSE = 60, /* seconds */
};

/* The headers of one answer. A value that is too long for its field counts as absent. */
struct answer {
    int status;
    bool has_range, has_length; /* Content-Range, Content-Length */
    bool is_malformed;          /* one of these two cannot be understood */
    bool is_encoded;            /* a Content-Encoding other than identity */
    bool is_multipart;
    uint64_t first, last, total; /* of Content-Range; SIZE_UNKNOWN for a total of "*" */
    bool is_unsatisfied;         /* the Content-Range states only the total */
    uint64_t length;
    time_t modified;           /* Last-Modified; 0: not there */
    unsigned pause;            /* seconds until the next request may be sent, ANSWER_LONGEST_PAUSE at most */
    char etag[ANSWER_TAG];     /* with its quotes, and W/ if weak; "": none */
    char type[ANSWER_WORDS];   /* Content-Type */
    char location[ANSWER_URL]; /* of a redirect */
    char next[ANSWER_URL];     /* the URL of a Link with rel="next" */
    char error_code[ANSWER_WORDS], error_message[ANSWER_WORDS]; /* X-Error-Code, X-Error-Message of the hub */
};

/* Adds one line of a header, with or without its line end. A status line begins a new answer. */
void answer_add_line(struct answer *answer, const char *line, size_t length);

/* What was asked for. */
struct question {
    bool is_range;          /* else all of it */
    bool is_conditional;    /* the request has a condition, such as If-None-Match */
    uint64_t first, length; /* of the range: at least one byte, which may go past the end if the size is unknown */
    uint64_t size;          /* of the object, or SIZE_UNKNOWN */
    const char *etag;       /* that the object had, or NULL. A question with one refuses other bytes */
};

enum verdict {
    VERDICT_TAKE,     /* the body is what was asked for: `*ret_length` bytes, or as many as come if SIZE_UNKNOWN */
    VERDICT_WHOLE,    /* a range was asked for, and the body is all of the object */
    VERDICT_EMPTY,    /* the object has no bytes; the body is not its */
    VERDICT_SAME,     /* 304, to a question with a condition: the object is the one that is known */
    VERDICT_REDIRECT, /* the object is at `location` */
    VERDICT_RETRY,    /* the server cannot answer now */
    VERDICT_CHANGED,  /* the object is not the one that was asked for any more; the error has the code ESTALE */
    VERDICT_REFUSED,  /* there will be no other answer */
};

/* Judges the headers of an answer. From VERDICT_RETRY on the error is set, without the object's name. `ret_length` is
 * how many bytes the body must have. */
enum verdict answer_judge(const struct answer *answer, const struct question *question, uint64_t *ret_length,
                          struct error *error);

/* Sets the error of an object that has another ETag than before, and returns VERDICT_CHANGED. */
enum verdict answer_changed(struct error *error);

/* Reports whether an entity tag is strong, so that If-Match can name it. */
bool answer_tag_is_strong(const char *etag);

/* Answers to HTTP requests, before they are sent: a status, headers, and a text or a part of a file.
 *
 * A handler fills an answer; the server (server.h) sends and frees it. */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "fs/tree/vfile.h"

#include <time.h>

/* What handlers need to know of a request. Headers that were not sent are NULL. */
struct http_header {
    const char *name, *value;
};

struct http_request {
    const char *method;
    const char *path, *query;          /* as they were sent; a query without its "?", "": none */
    const struct http_header *headers; /* all, in order */
    size_t n_headers;
    const char *body;   /* no more than REQUEST_MOST_BODY of its bytes */
    size_t body_length; /* of the whole */
    bool head;          /* the answer's body is not sent */
    const char *range, *if_range, *if_match, *if_none_match, *if_modified_since, *user_agent;
    const char *origin; /* the server as the client addresses it: "http://127.0.0.1:8090" */
    const char *accept; /* all Accept headers, joined by commas */
    bool is_cross_site; /* a page of another site asks, in a browser */
    bool recursive;     /* ?recursive=true */
    size_t cursor;      /* ?cursor=N: entries of a listing that earlier pages had */
    size_t limit;       /* ?limit=N: entries of a page; 0: as many as a page may have */
};

enum { REQUEST_MOST_BODY = 8 * 1024 }; /* only PROPFIND has one */

/* Returns the value of the first header of that name, in letters of any case; NULL if there is none. */
const char *request_header(const struct http_request *request, const char *name);

enum { ANSWER_MAX_HEADERS = 12 };

struct answer {
    struct arena *arena; /* holds the headers and the file's spans */
    unsigned status;     /* 200 ... */
    struct http_header headers[ANSWER_MAX_HEADERS];
    size_t n_headers;
    struct buffer text; /* the body, unless it is a file */
    bool is_file;
    struct vfile file;
    uint64_t file_key;      /* tells files apart (read_ahead_follow()) */
    uint64_t first, length; /* the part of the file to send, in bytes */
};

void answer_begin(struct answer *answer);
void answer_free(struct answer *answer);

/* Adds a header; the value is formatted and copied. Line ends in it become blanks. */
void answer_header(struct answer *answer, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes a date of HTTP: "Mon, 23 Nov 2026 14:45:00 GMT". Returns false for a time without a year. */
enum { HTTP_DATE = 48 };
bool http_date(time_t time, char out[HTTP_DATE]);

/* Adds a header with a date, if the time has one. */
void answer_date(struct answer *answer, const char *name, time_t time);

/* Makes the answer a failure: JSON with the message for programs, in the forms of the hub and of registries, and the
 * headers X-Error-Code, unless `code` is NULL, and X-Error-Message. */
void answer_fail(struct answer *answer, unsigned status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

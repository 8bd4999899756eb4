/* Requests whose answers are small and kept in memory: lists, and the first contact with files. */
#pragma once

#include "remote/http.h"

struct exchange {
    /* what to ask: of the request all but its functions. The texts are copied */
    struct http_request request;
    size_t limit; /* more bytes than this are a failure */

    /* what came: texts and bytes in the arena of the call */
    enum verdict verdict;
    struct answer answer;
    struct uri uri;       /* that answered, after redirects */
    unsigned char *bytes; /* and a NUL after them */
    size_t length;
    struct error error;  /* of a failure, without a name */
    const char *refusal; /* as in struct http_result */
};

/* Makes all requests at once and waits until each is done or has failed. Returns false only if the waiting ends
 * earlier: the reader was interrupted, or wfs is ending. */
bool exchange_all(struct exchange *exchanges, size_t count, struct arena *arena, struct error *error);

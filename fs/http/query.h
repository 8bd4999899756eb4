/* Queries of requests: their parameters, in order and as the client sent them. */
#pragma once

#include "base/arena.h"

struct query_parameter {
    const char *name, *value; /* decoded; "" for a parameter without a value */
};

struct query {
    const struct query_parameter *items;
    size_t count;
};

/* Parses a query without its "?" in `arena`. A '+' stays one: clients of S3 encode blanks as %20. An invalid escape
 * stays as it is, and a value ends at an encoded NUL. */
struct query query_parse(const char *text, struct arena *arena);

/* Returns the value of the first parameter of that name; NULL if there is none. */
const char *query_value(const struct query *query, const char *name);

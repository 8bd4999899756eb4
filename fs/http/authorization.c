#include "fs/http/authorization.h"

#include "base/arena.h"
#include "base/base64.h"

#include <nettle/memops.h>
#include <string.h>
#include <strings.h>

static bool is_token(const char *given, size_t length, const char *token)
{
    return length == strlen(token) && memeql_sec(given, token, length);
}

/* Returns the parameters of a scheme; NULL if the header has another scheme. */
static const char *parameters_of(const char *header, const char *scheme)
{
    size_t length = strlen(scheme);
    return strncasecmp(header, scheme, length) == 0 && header[length] == ' ' ? header + length + 1 : NULL;
}

bool authorization_has_token(const char *header, const char *token)
{
    const char *bearer = header != NULL ? parameters_of(header, "Bearer") : NULL,
               *basic = header != NULL ? parameters_of(header, "Basic") : NULL;
    if (bearer != NULL)
        return is_token(bearer, strlen(bearer), token);
    if (basic == NULL)
        return false;
    size_t length;
    struct arena *arena = arena_new();
    const char *pair = base64_decode(arena, basic, strlen(basic), &length),
               *colon = pair != NULL ? memchr(pair, ':', length) : NULL;
    bool has_token = colon != NULL && is_token(colon + 1, length - (size_t)(colon + 1 - pair), token);
    arena_free(arena);
    return has_token;
}

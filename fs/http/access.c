#include "fs/http/admission.h"

#include "base/arena.h"
#include "base/encodings.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nettle/memops.h>
#include <stdint.h>
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

bool access_has_token(const char *header, const char *token)
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

/* The host without its port and brackets. */
struct name {
    const char *text;
    size_t length;
};

static struct name name_of(const char *host)
{
    if (*host == '[')
        return (struct name){host + 1, strcspn(host + 1, "]")};
    struct name name = {host, strcspn(host, ":")};
    if (name.length > 0 && host[name.length - 1] == '.') /* the root of all names */
        name.length--;
    return name;
}

static bool ends_with(struct name name, const char *ending)
{
    size_t length = strlen(ending);
    return name.length >= length && strncasecmp(name.text + name.length - length, ending, length) == 0;
}

static bool is_loopback(struct name name)
{
    char text[INET6_ADDRSTRLEN];
    struct in_addr four;
    struct in6_addr six;
    if (name.length == 0 || name.length >= sizeof text)
        return false;
    memcpy(text, name.text, name.length);
    text[name.length] = '\0';
    if (inet_pton(AF_INET, text, &four) == 1)
        return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
    return inet_pton(AF_INET6, text, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static bool is_among(struct name name, const char *names)
{
    for (const char *at = names; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        struct name one = {at, strcspn(at, ",")};
        if (one.length == name.length && strncasecmp(one.text, name.text, one.length) == 0)
            return true;
    }
    return false;
}

bool access_by_name(const char *host, const char *names)
{
    struct name name = name_of(host);
    bool is_local =
        (name.length == strlen("localhost") && ends_with(name, "localhost")) || ends_with(name, ".localhost");
    return name.length > 0 && (is_local || is_loopback(name) || is_among(name, names));
}

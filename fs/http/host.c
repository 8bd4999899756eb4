#include "fs/http/host.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

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

bool host_is_allowed(const char *host, const char *names)
{
    struct name name = name_of(host);
    bool is_local =
        (name.length == strlen("localhost") && ends_with(name, "localhost")) || ends_with(name, ".localhost");
    return name.length > 0 && (is_local || is_loopback(name) || is_among(name, names));
}

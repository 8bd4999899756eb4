#include "fs/http/admission.h"

#include <string.h>
#include <strings.h>

struct headers {
    unsigned n_lengths, n_codings, n_hosts;
    bool has_odd_name, has_odd_coding;
};

/* Reports whether a name has only the letters of a token: "Content-Length " is another header to some. */
static bool is_token(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";
    return *name != '\0' && name[strspn(name, letters)] == '\0';
}

static enum MHD_Result look_at(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct headers *headers = context;
    headers->has_odd_name |= !is_token(name);
    headers->n_lengths += strcasecmp(name, "Content-Length") == 0;
    headers->n_hosts += strcasecmp(name, "Host") == 0;
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        headers->n_codings++;
        headers->has_odd_coding |= value == NULL || strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

unsigned framing_judge(struct MHD_Connection *connection, const char *version, const char **ret_reason)
{
    struct headers headers = {0};
    libmicrohttpd.get_connection_values(connection, MHD_HEADER_KIND, look_at, &headers);
    if (headers.has_odd_name)
        *ret_reason = "the name of a header has characters that no name has";
    else if (headers.n_lengths > 1 || headers.n_codings > 1 || headers.n_hosts > 1 ||
             (headers.n_lengths > 0 && headers.n_codings > 0))
        *ret_reason = "the length or the host of the request is given twice";
    else if (headers.n_codings > 0 && strcmp(version, "HTTP/1.0") == 0)
        *ret_reason = "HTTP/1.0 has no Transfer-Encoding";
    else if (headers.has_odd_coding) {
        *ret_reason = "the only Transfer-Encoding that wfs knows is chunked";
        return 501;
    } else
        return 0;
    return 400;
}

bool framing_is_too_long(const char *target)
{
    unsigned n_parameters = 0;
    for (const char *at = strchr(target, '?'); at != NULL; at = strchr(at + 1, '&'))
        n_parameters++;
    return n_parameters > FRAMING_PARAMETERS;
}

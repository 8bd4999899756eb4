#include "remote/options.h"

#include <stdlib.h>
#include <strings.h>

static const struct remote_options *used;

void remote_use(const struct remote_options *options)
{
    used = options;
}

const char *remote_variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static bool is_on(const char *variable)
{
    static const char *const words[] = {"1", "on", "yes", "true"};
    const char *value = remote_variable(variable);
    for (size_t i = 0; value != NULL && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(value, words[i]) == 0)
            return true;
    return false;
}

struct remote_options remote_options(void)
{
    struct remote_options options = {0};
    if (used != NULL)
        options = *used;
    if (options.timeout == 0)
        options.timeout = REMOTE_TIMEOUT;
    if (options.cacert == NULL)
        options.cacert = remote_variable("SSL_CERT_FILE");
    options.offline |= is_on("HF_HUB_OFFLINE") || is_on("TRANSFORMERS_OFFLINE");
    return options;
}

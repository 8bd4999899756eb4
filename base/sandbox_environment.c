#include "base/sandbox.h"

#include "base/text.h"

#include <string.h>

extern char **environ;

static bool is_kept(const char *variable, const char *const *names)
{
    static const char *const kept[] = {"HOME=",
                                       "PATH=",
                                       "TZ=",
                                       "LANG=",
                                       "LC_",
                                       "TMPDIR=",
                                       "XDG_CACHE_HOME=",
                                       "CACHE_DIRECTORY=",
                                       "WFS_",
                                       "HF_HOME=",
                                       "HF_HUB_CACHE=",
                                       "OLLAMA_MODELS=",
                                       "HUGGINGFACE_HUB_CACHE=",
                                       NULL};
    for (const char *const *start = kept; *start != NULL; start++)
        if (text_starts_with(variable, *start))
            return true;
    for (; names != NULL && *names != NULL; names++)
        if (text_starts_with(variable, *names))
            return true;
    return false;
}

/* Through a volatile pointer, or the compiler would leave it out. */
static void overwrite(char *text)
{
    for (volatile char *at = text; *at != '\0'; at++)
        *at = '\0';
}

void sandbox_clear_environment(const char *const *names)
{
    char **to = environ;
    for (char **from = environ; from != NULL && *from != NULL; from++)
        if (is_kept(*from, names))
            *to++ = *from;
        else
            overwrite(*from);
    if (to != NULL)
        *to = NULL;
}

void sandbox_empty_environment(const char *kept)
{
    char **to = environ;
    for (char **from = environ; from != NULL && *from != NULL; from++)
        if (kept != NULL && text_starts_with(*from, kept))
            *to++ = *from;
        else
            overwrite(*from);
    if (to != NULL)
        *to = NULL;
}

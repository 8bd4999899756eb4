#include "fs/cli/unfinished.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

static const char *volatile named_temporary;

static void remove_and_die(int number)
{
    const char *path = named_temporary;
    if (path != NULL)
        unlink(path);
    raise(number); /* SA_RESETHAND: the default action */
}

void unfinished_is(const struct output *output)
{
    struct sigaction action = {.sa_handler = remove_and_die, .sa_flags = (int)SA_RESETHAND};
    if (!output->is_file || output->has_no_name)
        return;
    named_temporary = output->temporary;
    for (size_t i = 0; i < sizeof ending_signals / sizeof *ending_signals; i++) {
        struct sigaction before;
        if (sigaction(ending_signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ending_signals[i], &action, NULL);
    }
}

void unfinished_none(void)
{
    named_temporary = NULL;
}

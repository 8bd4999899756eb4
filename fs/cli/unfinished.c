#include "fs/cli/unfinished.h"

#include "sources/paths.h"

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

static void guard(const struct output *output)
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

/* A signal waits until the name is guarded. A FIFO has none, and may be waited for. */
bool unfinished_open(struct output *output, const char *path, uint64_t size, mode_t mode, struct error *error)
{
    sigset_t ending, before;
    enum location_kind kind = local_kind(path);
    if (kind != LOCATION_FILE && kind != LOCATION_NOTHING)
        return output_open(output, path, size, mode, error);
    sigemptyset(&ending);
    for (size_t i = 0; i < sizeof ending_signals / sizeof *ending_signals; i++)
        sigaddset(&ending, ending_signals[i]);
    pthread_sigmask(SIG_BLOCK, &ending, &before);
    bool opened = output_open(output, path, size, mode, error);
    if (opened)
        guard(output);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return opened;
}

void unfinished_none(void)
{
    named_temporary = NULL;
}

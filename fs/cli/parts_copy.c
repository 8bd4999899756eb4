#include "fs/cli/parts_copy.h"

#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/cli/progress.h"
#include "fs/lib/parts_contents.h"

#include <stdlib.h>

static void add_progress(void *context, uint64_t n_bytes)
{
    progress_add(context, n_bytes);
}

static bool run_task(struct parts_copy *copy, const struct parts_task *task, struct error *error)
{
    struct progress progress;
    if (task->number == 0)
        return parts_join(copy, task->verify, error);
    copy->progress = add_progress;
    copy->context = &progress;
    progress_begin(&progress, copy->destination, parts_length(copy, task->number));
    bool made = parts_make(copy, task->number, error);
    progress_end(&progress);
    return made;
}

/* Returns the status for a failure, which is reported. A server that did not answer may answer later. */
static int failed(const struct error *error, bool is_final)
{
    report("%s", error->message);
    return is_final ? EXIT_BAD_INPUT : EXIT_TRY_AGAIN;
}

int parts_copy_run(struct tree *tree, const struct found *found, const char *destination, const struct options *options,
                   const struct parts_task *task)
{
    struct arena *arena = arena_new();
    struct parts_copy copy;
    struct error error;
    uint64_t n_unreached = source_unreached();
    int status = EXIT_SUCCESS;
    if (!parts_contents_find(tree, found, destination, options, task->count, arena, &copy, &error))
        status = failed(&error, source_unreached() == n_unreached);
    else if (!run_task(&copy, task, &error))
        status = failed(&error, parts_is_refusal(&error));
    arena_free(arena);
    return status;
}

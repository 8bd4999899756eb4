/* Contexts, and what every call has in common. */
#include "fs/lib/lib.h"

#include "base/attempt.h"
#include "base/process.h"
#include "base/stop.h"
#include "fs/tree/identity.h"
#include "models/references/references.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *wfs_version(void)
{
    return WFS_VERSION;
}

void wfs_stop_by(const volatile int *flag)
{
    stop_use(flag);
}

void lib_append_version(const char *commit, struct buffer *out)
{
    buffer_printf(out, "wfs " WFS_VERSION " (build %s; ", wfs_build);
    if (strcmp(commit, "none") != 0)
        buffer_printf(out, "git %s; ", commit);
    for (const struct reference_tool *tool = reference_tools; tool->name != NULL; tool++)
        buffer_printf(out, "%s%s %s", tool > reference_tools ? ", " : "", tool->name, tool->version);
    buffer_append_text(out, ")\n");
}

void wfs_allow(unsigned changes)
{
    process_allow(changes & (PROCESS_SIGBUS | PROCESS_DESCRIPTORS | PROCESS_ALLOCATOR));
}

bool lib_misuse(struct error *error, const char *format, ...)
{
    char message[sizeof error->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    error_set(error, "%s", message);
    return error_set_code(error, EINVAL);
}

struct running {
    lib_work *work;
    void *call;
    struct error error;
    bool done;
};

static void run(void *context)
{
    struct running *running = context;
    running->done = running->work(running->call, &running->error);
}

static void fill_in(struct wfs_error *ret_error, const struct error *error)
{
    if (ret_error == NULL)
        return;
    ret_error->code = error->code;
    size_t length = strnlen(error->message, sizeof ret_error->message - 1);
    memcpy(ret_error->message, error->message, length);
    ret_error->message[length] = '\0';
}

bool lib_call(const wfs_context *context, lib_work *work, void *call, struct wfs_error *ret_error)
{
    struct running running = {.work = work, .call = call};
    uint64_t n_stopped = stop_count();
    const volatile int *stop = stop_flag();
    bool is_program = context->pool == NULL;
    struct pool *pool = pool_use(context->pool);
    const struct report_sink *sink = is_program ? NULL : report_use(&context->sink);
    if (!attempt(run, &running, &running.error))
        error_set_code(&running.error, ENOMEM);
    if (!is_program)
        report_use(sink);
    pool_use(pool);
    stop_use(stop);
    if (stop_count() != n_stopped && stop_is_due(&running.error)) /* what it has made may lack something */
        running.done = false;
    if (!running.done)
        fill_in(ret_error, &running.error);
    return running.done;
}

static void take_line(void *context, const char *line)
{
    const struct wfs_context *sender = context;
    if (sender->log != NULL)
        sender->log(sender->user, line);
}

struct context_call {
    unsigned n_threads;
    wfs_context *context;
};

static bool make_context(void *context, struct error *error)
{
    struct context_call *call = context;
    call->context = memory_alloc(sizeof *call->context);
    call->context->pool = pool_new(call->n_threads);
    return true;
}

wfs_context *wfs_context_new(unsigned n_threads, wfs_log *log, void *user)
{
    static const struct wfs_context none = {.pool = NULL};
    struct context_call call = {.n_threads = n_threads};
    if (!lib_call(&none, make_context, &call, NULL))
        return NULL;
    *call.context = (struct wfs_context){call.context->pool, {take_line, call.context}, log, user};
    return call.context;
}

void wfs_context_free(wfs_context *context)
{
    if (context == NULL)
        return;
    pool_free(context->pool);
    free(context);
}

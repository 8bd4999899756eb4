#include "fs/http/body.h"

#include "base/attempt.h"
#include "base/report.h"
#include "formats/source.h"

#include <stdlib.h>

enum { BLOCK_BYTES = 256 * 1024 };

struct body {
    struct suspended suspended;
    struct bodies *bodies;
    struct answer answer;
    const char *target;
    uint64_t wanted, length; /* the block that is read or waited for, in the file */
    uint64_t arrived;        /* the end of the last block that was waited for, in the file */
    char *out;
    bool has_failed;
    struct error error;
};

void suspended_resume(void *suspended)
{
    MHD_resume_connection(((struct suspended *)suspended)->connection);
}

static void await_block(void *context)
{
    struct body *body = context;
    const struct vfile *file = &body->answer.file;
    vfile_want(file, body->wanted, body->length, true);
    read_ahead_follow(body->bodies->ahead, body->answer.file_key, file, body->wanted, (size_t)body->length);
    body->has_failed = !vfile_wait(file, body->wanted, body->length, &body->error);
}

/* Waits for a block on a thread that nothing depends on. */
static void await_and_resume(void *context)
{
    struct body *body = context;
    if (!attempt(await_block, body, &body->error))
        body->has_failed = true;
    body->arrived = body->wanted + body->length;
    suspended_resume(body);
}

/* Suspends the connection until the block is here. */
static void suspend(struct body *body)
{
    MHD_suspend_connection(body->suspended.connection);
    if (waits_add(body->bodies->waits, await_and_resume, body))
        return;
    body->has_failed = true;
    error_set(&body->error, "no thread can wait for the source, or the server ends");
    suspended_resume(body);
}

static void read_block(void *context)
{
    struct body *body = context;
    body->has_failed = !vfile_read(&body->answer.file, body->wanted, (size_t)body->length, body->out, &body->error);
    if (!body->has_failed && origin_changed(&body->answer.file.origin)) {
        body->has_failed = true;
        error_set(&body->error, "a source has changed since it was opened; restart wfs serve");
    }
}

static ssize_t fill(void *context, uint64_t position, char *out, size_t most)
{
    struct body *body = context;
    uint64_t left = body->answer.length - position;
    body->wanted = body->answer.first + position;
    body->length = left < most ? left : most;
    body->out = out;
    if (!body->has_failed && source_any_remote() && body->wanted + body->length > body->arrived) {
        suspend(body);
        return 0;
    }
    if (!body->has_failed && !attempt(read_block, body, &body->error))
        body->has_failed = true;
    if (body->has_failed) {
        report("%s: %s", body->target, body->error.message);
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    metrics_add_bytes(body->bodies->metrics, body->length);
    return (ssize_t)body->length;
}

static void free_body(void *context)
{
    struct body *body = context;
    answer_free(&body->answer);
    free(body);
}

struct MHD_Response *body_response(struct bodies *bodies, struct MHD_Connection *connection, struct answer *answer,
                                   const char *target)
{
    struct body *body = memory_alloc(sizeof *body);
    *body = (struct body){{connection}, bodies, *answer, arena_strdup(answer->arena, target)};
    struct MHD_Response *response =
        MHD_create_response_from_callback(answer->length, BLOCK_BYTES, fill, body, free_body);
    if (response == NULL)
        free_body(body);
    return response;
}

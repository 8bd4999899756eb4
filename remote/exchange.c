#include "remote/http.h"

#include "base/arrival.h"
#include "base/buffer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The requests of one call. Its last user frees it: the caller, or the last answer to one that did not wait. */
struct group {
    struct arena *arena;
    struct member {
        struct group *group;
        struct exchange exchange;
        struct buffer body;
    } * members;
    size_t count;
    atomic_size_t n_waiting; /* requests that are not done */
    atomic_size_t n_users;
};

static void leave(struct group *group)
{
    if (atomic_fetch_sub(&group->n_users, 1) > 1)
        return;
    for (size_t i = 0; i < group->count; i++)
        buffer_free(&group->members[i].body);
    arena_free(group->arena);
    free(group);
}

static bool take(void *context, uint64_t offset, const void *bytes, size_t length)
{
    struct member *member = context;
    uint64_t at = offset - (member->exchange.verdict == VERDICT_WHOLE ? 0 : member->exchange.request.question.first);
    if (at > member->body.length)
        return false;
    member->body.length = (size_t)at; /* it begins again after a failure */
    bool fits = length <= member->exchange.limit - member->body.length;
    if (fits)
        buffer_append(&member->body, bytes, length);
    return fits;
}

static void done(void *context, const struct http_result *result)
{
    struct member *member = context;
    struct group *group = member->group;
    struct exchange *exchange = &member->exchange;
    exchange->verdict = result->verdict;
    exchange->answer = *result->answer;
    exchange->uri = uri_copy(result->uri, group->arena);
    exchange->error = *result->error;
    exchange->refusal = arena_strdup(group->arena, result->refusal);
    atomic_fetch_sub(&group->n_waiting, 1);
    arrival_announce();
    leave(group);
}

static struct group *group_new(const struct exchange *exchanges, size_t count)
{
    struct group *group = memory_alloc(sizeof *group);
    *group = (struct group){.arena = arena_new_shared(), .count = count, .n_waiting = count, .n_users = count + 1};
    group->members = arena_array(group->arena, count, sizeof *group->members);
    for (size_t i = 0; i < count; i++) {
        struct member *member = &group->members[i];
        struct http_request *request = &member->exchange.request;
        *member = (struct member){.group = group, .exchange = exchanges[i]};
        request->uri = uri_copy(&request->uri, group->arena);
        request->credential = http_credential_copy(request->credential, group->arena);
        if (request->condition != NULL)
            request->condition = arena_strdup(group->arena, request->condition);
        if (request->question.etag != NULL)
            request->question.etag = arena_strdup(group->arena, request->question.etag);
        request->take = take;
        request->done = done;
        request->context = member;
    }
    return group;
}

static bool is_done(void *context)
{
    return atomic_load(&((struct group *)context)->n_waiting) == 0;
}

static void copy_results(const struct group *group, struct exchange *exchanges, struct arena *arena)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct member *member = &group->members[i];
        struct exchange *exchange = &exchanges[i];
        const struct http_request asked = exchange->request;
        *exchange = member->exchange;
        exchange->request = asked;
        exchange->uri = uri_copy(&member->exchange.uri, arena);
        exchange->refusal = arena_strdup(arena, member->exchange.refusal);
        exchange->length = member->body.length;
        exchange->bytes = arena_alloc(arena, exchange->length + 1);
        if (exchange->length > 0)
            memcpy(exchange->bytes, member->body.bytes, exchange->length);
    }
}

bool exchange_all(struct exchange *exchanges, size_t count, struct arena *arena, struct error *error)
{
    struct group *group = group_new(exchanges, count);
    for (size_t i = 0; i < count; i++)
        http_submit(&group->members[i].exchange.request);
    bool waited = arrival_wait(is_done, group, NULL, error);
    if (waited)
        copy_results(group, exchanges, arena);
    leave(group);
    return waited;
}

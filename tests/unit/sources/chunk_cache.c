/* The cache of inflated chunks: what is dropped and when, and who waits. Chunks are large and never touched, so that
 * they take no memory. */
#include "sources/chunk_cache.h"

#include "base/arena.h"

#include "tests/unit/check.h"

#include <pthread.h>
#include <stdint.h>

enum { QUARTER = CHUNK_CACHE_BYTES / 4 - 4096 };

static void fill(struct chunk **place)
{
    chunk_publish(chunk_reserve(QUARTER), place);
}

/* The chunk that was used longest ago goes, unless somebody reads from it. */
static void test_order(void)
{
    struct chunk *places[7] = {NULL};
    for (size_t i = 0; i < 4; i++)
        fill(&places[i]);
    CHECK(places[0] != NULL && places[0]->length == QUARTER && places[3] != NULL);
    struct chunk *used = chunk_pin(&places[0]);
    CHECK(used == places[0]);
    chunk_unpin(used); /* used since the others were */
    fill(&places[4]);
    CHECK(places[0] != NULL && places[1] == NULL && places[2] != NULL && places[3] != NULL && places[4] != NULL);
    struct chunk *pinned = chunk_pin(&places[2]);
    fill(&places[5]); /* after a use of number 2, which is pinned besides */
    fill(&places[6]);
    CHECK(places[3] == NULL && places[0] == NULL && places[2] == pinned && places[4] != NULL);
    CHECK(chunk_pin(&places[3]) == NULL);
    chunk_unpin(pinned);
    chunk_drop_all(places, 7);
    for (size_t i = 0; i < 7; i++)
        CHECK(places[i] == NULL);
}

/* Of two that were made of the same place the first stays. */
static void test_twice(void)
{
    struct chunk *place = NULL, *first = chunk_reserve(1), *second = chunk_reserve(1);
    first->bytes[0] = 1;
    second->bytes[0] = 2;
    chunk_publish(first, &place);
    chunk_publish(second, &place);
    CHECK(place == first && place->bytes[0] == 1);
    chunk_drop_all(&place, 1);
}

/* A chunk that is given up leaves its room: more of them than there is room for, one after the other. */
static void test_given_up(void)
{
    struct chunk *place = NULL;
    fill(&place);
    for (int i = 0; i < 16; i++)
        chunk_give_up(chunk_reserve(QUARTER));
    CHECK(place != NULL);
    struct chunk *rest = chunk_reserve(2 * (size_t)QUARTER);
    CHECK(place != NULL);
    chunk_give_up(rest);
    chunk_drop_all(&place, 1);
}

static void reserve_and_fail(void *unused)
{
    chunk_reserve(QUARTER);
    memory_exhausted(1);
}

/* What an attempt had reserved when memory ran out does not take the room of others. */
static void test_attempt_fails(void)
{
    struct chunk *place = NULL;
    for (int i = 0; i < 16; i++)
        CHECK(attempt_lacking(reserve_and_fail, NULL) == 1);
    fill(&place);
    CHECK(place != NULL);
    chunk_drop_all(&place, 1);
}

static struct chunk *late_place;

static void *fill_late(void *pinned)
{
    fill(&late_place);
    return pinned;
}

/* All are pinned: who wants room waits for the first that is not. */
static void test_waiting(void)
{
    struct chunk *places[4] = {NULL}, *pinned[4];
    pthread_t thread;
    for (size_t i = 0; i < 4; i++) {
        fill(&places[i]);
        pinned[i] = chunk_pin(&places[i]);
    }
    CHECK(pthread_create(&thread, NULL, fill_late, NULL) == 0);
    for (size_t i = 0; i < 4; i++)
        CHECK(chunk_pin(&places[i]) == pinned[i]);
    chunk_unpin(pinned[2]);
    for (size_t i = 0; i < 4; i++)
        chunk_unpin(pinned[i]); /* of number 2 the last */
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(late_place != NULL && places[2] == NULL);
    for (size_t i = 0; i < 4; i++)
        CHECK((places[i] == NULL) == (i == 2));
    for (size_t i = 0; i < 4; i++)
        if (places[i] != NULL)
            chunk_unpin(pinned[i]);
    chunk_drop_all(places, 4);
    chunk_drop_all(&late_place, 1);
}

int main(void)
{
    test_order();
    test_twice();
    test_given_up();
    test_attempt_fails();
    test_waiting();
    return check_done();
}

#include "base/pool.h"

#include "base/arena.h"
#include "base/stop.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static void count_up(void *context, size_t index)
{
    atomic_uint *hits = context;
    atomic_fetch_add(&hits[index], 1);
}

struct use {
    struct pool *pool;
    atomic_uint *hits;
};

static void *use_pool(void *context)
{
    const struct use *use = context;
    struct pool *before = pool_use(use->pool);
    for (int i = 0; i < 200; i++)
        pool_run(100, count_up, use->hits);
    pool_use(before);
    return NULL;
}

static void pool(void)
{
    static atomic_uint hits[100];
    pthread_t threads[4];
    struct pool *three = pool_new(3);
    struct use uses[] = {{three, hits}, {three, hits}, {pool_new(2), hits}, {NULL, hits}};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, use_pool, &uses[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    bool all = true;
    for (int i = 0; i < 100; i++)
        all &= hits[i] == 800;
    CHECK_NAMED(all, "every task of every job runs once");
    CHECK_NAMED(pool_width() == 1, "a thread without a pool works alone");
    CHECK(pool_use(three) == NULL && pool_width() == 3 && pool_use(NULL) == three);
    pool_share(three);
    CHECK_NAMED(pool_width() == 3, "or with the shared one");
    use_pool(&uses[2]);
    pool_share(NULL);
    pool_free(three);
    pool_free(uses[2].pool);
    pool_free(pool_new(2));
}

static void see_stop(void *context, size_t index)
{
    struct error error;
    if (stop_is_due(&error))
        atomic_fetch_add((atomic_uint *)context, 1);
}

/* All threads of a job work under the flag of its caller, who learns that they may have stopped. */
static void stop(void)
{
    atomic_uint n_seen = 0;
    const volatile int flag = 1;
    struct pool *three = pool_new(3);
    pool_use(three);
    uint64_t before = stop_count();
    pool_run(100, see_stop, &n_seen);
    CHECK(n_seen == 0 && stop_count() == before);
    CHECK(stop_use(&flag) == NULL);
    pool_run(100, see_stop, &n_seen);
    CHECK(n_seen == 100 && stop_count() > before && stop_use(NULL) == &flag);
    pool_run(100, see_stop, &n_seen);
    CHECK(n_seen == 100);
    pool_use(NULL);
    pool_free(three);
}

int main(void)
{
    pool();
    stop();
    return check_done();
}

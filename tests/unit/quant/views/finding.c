/* Findings: made by one thread, again after a failure, and kept beyond their findings where there is a keeper. */
#include "quant/views/finding.h"

#include "tests/unit/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { N_THREADS = 6, ANSWER = 42, MOST_KEPT = 4 };

static atomic_int n_made, n_failures_left;

static void *make(const void *context, struct error *error)
{
    int *value = finding_alloc(sizeof *value);
    usleep(10000);
    atomic_fetch_add(&n_made, 1);
    if (atomic_load(&n_failures_left) > 0) {
        atomic_fetch_sub(&n_failures_left, 1);
        finding_discard(value);
        error_set(error, "not yet");
        return NULL;
    }
    *value = *(const int *)context;
    return value;
}

static bool get(struct finding *finding, int answer)
{
    struct error error;
    const int *value = finding_get(finding, make, &answer, &error);
    return value != NULL && *value == answer;
}

static void *get_answer(void *finding)
{
    return get(finding, ANSWER) ? finding : NULL;
}

/* Gets the value in several threads at once; returns how many have it. */
static int get_together(struct finding *finding)
{
    pthread_t threads[N_THREADS];
    int n = 0;
    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, get_answer, finding);
    for (int i = 0; i < N_THREADS; i++) {
        void *got;
        pthread_join(threads[i], &got);
        n += got != NULL;
    }
    return n;
}

static void made_by_one(void)
{
    struct arena *arena = arena_new();
    struct findings *findings = findings_new(arena);
    struct finding *finding = finding_new(arena, findings), *unused = finding_new(arena, findings);
    CHECK(!finding_known(finding));
    atomic_store(&n_failures_left, 2);
    CHECK(get_together(finding) == N_THREADS - 2 && atomic_load(&n_made) == 3);
    CHECK(finding_known(finding) && !finding_known(unused));
    CHECK(get_together(finding) == N_THREADS && atomic_load(&n_made) == 3);
    arena_free(arena);
}

/* What is kept, by number; 0: nothing. */
struct kept {
    int values[MOST_KEPT];
    int n_loaded;
};

static void *load(void *context, uint32_t number)
{
    struct kept *kept = context;
    kept->n_loaded++;
    if (kept->values[number] == 0)
        return NULL;
    int *value = finding_alloc(sizeof *value);
    *value = kept->values[number];
    return value;
}

static void save(void *context, uint32_t number, const void *bytes, size_t length)
{
    struct kept *kept = context;
    CHECK(length == sizeof(int));
    kept->values[number] = *(const int *)bytes;
}

static void kept_by_number(void)
{
    struct kept kept = {{0}, 0};
    const struct finding_keeper keeper = {load, save, &kept, NULL};
    atomic_store(&n_made, 0);
    for (int round = 0; round < 2; round++) {
        struct arena *arena = arena_new();
        struct findings *findings = findings_new(arena);
        struct finding *all[3];
        for (int i = 0; i < 3; i++)
            all[i] = finding_new(arena, findings);
        findings_keep(findings, &keeper);
        CHECK(finding_known(all[2]) == (round == 1)); /* known before the first reader if it is kept */
        CHECK(get(all[2], 12) && get(all[0], 10) && !finding_known(all[1]));
        CHECK(atomic_load(&n_made) == (round == 0 ? 2 : 3)); /* the third is what the first round made at its end */
        CHECK(kept.values[0] == 10 && kept.values[1] == 0 && kept.values[2] == 12);
        CHECK(kept.n_loaded == 3 * (round + 1)); /* each is looked for once */
        findings_keep(findings, NULL);
        CHECK(get(all[1], 11) && kept.values[1] == 0);
        arena_free(arena);
    }
}

static void nothing_is_kept_of_a_failure(void)
{
    struct kept kept = {{0}, 0};
    const struct finding_keeper keeper = {load, save, &kept, NULL};
    struct arena *arena = arena_new();
    struct findings *findings = findings_new(arena);
    struct finding *finding = finding_new(arena, findings);
    findings_keep(findings, &keeper);
    atomic_store(&n_failures_left, 1);
    CHECK(!get(finding, ANSWER) && kept.values[0] == 0 && !finding_known(finding));
    CHECK(get(finding, ANSWER) && kept.values[0] == ANSWER);
    arena_free(arena);
}

int main(void)
{
    made_by_one();
    kept_by_number();
    nothing_is_kept_of_a_failure();
    return check_done();
}

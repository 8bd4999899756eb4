#include "fs/tree/tree.h"

#include "fs/tree/content_options.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

enum { PATIENCE = 60 }; /* seconds; what hangs ends the program */

static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";

static sem_t slow_began, slow_may_end;
static int n_plans;

static bool slow(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    (void)error;
    n_plans++;
    sem_post(&slow_began);
    sem_wait(&slow_may_end);
    struct vfile_builder builder = {.arena = arena};
    vfile_add_literal(&builder, context, strlen(context));
    *ret_file = vfile_finish(&builder);
    return true;
}

static bool quick(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct vfile_builder builder = {.arena = arena};
    if (context == NULL)
        return error_set(error, "nobody knows it");
    vfile_add_literal(&builder, context, strlen(context));
    *ret_file = vfile_finish(&builder);
    return true;
}

static bool look_up(struct tree *tree, const char *name, uint64_t size)
{
    struct node_attributes attributes;
    return tree_lookup(tree, TREE_ROOT, name, &attributes) && !attributes.pending && attributes.size == size;
}

static void *ask_for_slow(void *tree)
{
    return look_up(tree, "slow", 4) ? tree : NULL;
}

/* Others are planned, found and listed while one file is being planned; all who ask for that one get the one plan. */
static void one_slow_plan(struct tree *tree)
{
    pthread_t asking[3];
    pthread_create(&asking[0], NULL, ask_for_slow, tree);
    sem_wait(&slow_began);
    CHECK(look_up(tree, "quick", 5));
    CHECK(!look_up(tree, "absent", 0));
    CHECK(!tree_prepare(tree, TREE_ROOT, "slow"));
    CHECK(tree_prepare(tree, TREE_ROOT, "quick"));
    CHECK(tree_prepare(tree, TREE_ROOT, "nothing"));
    for (int i = 1; i < 3; i++)
        pthread_create(&asking[i], NULL, ask_for_slow, tree);
    sem_post(&slow_may_end);
    for (int i = 0; i < 3; i++) {
        void *found = NULL;
        pthread_join(asking[i], &found);
        CHECK_NAMED(found == tree, "who asks for the slow file gets it");
    }
    CHECK(n_plans == 1);
    CHECK(tree_prepare(tree, TREE_ROOT, "slow"));
}

struct seen {
    int n_pending, n_slow, n_absent, n_certain;
};

static bool see(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    (void)index;
    struct seen *seen = context;
    bool is_certain = strcmp(name, "certain") == 0 || strcmp(name, "metadata.json") == 0;
    seen->n_pending += attributes->pending && !is_certain;
    seen->n_certain += is_certain;
    seen->n_slow += strcmp(name, "later") == 0;
    seen->n_absent += strcmp(name, "absent") == 0;
    return true;
}

static sem_t plan_ended;

static void planned(void *context)
{
    sem_post(context);
}

/* Who must not wait has files planned for him, and lists them meanwhile. */
static void prepared_listing(struct tree *tree)
{
    struct seen seen = {0};
    sem_init(&plan_ended, 0, 0);
    tree_on_planned(tree, planned, &plan_ended);
    CHECK(!tree_prepare(tree, TREE_ROOT, NULL));
    sem_wait(&slow_began);
    tree_list_prepared(tree, TREE_ROOT, 0, see, &seen);
    CHECK(seen.n_slow == 1 && seen.n_pending >= 1 && seen.n_absent == 0);
    sem_post(&slow_may_end);
    while (!tree_prepare(tree, TREE_ROOT, NULL))
        sem_wait(&plan_ended);
    seen = (struct seen){0};
    tree_list_prepared(tree, TREE_ROOT, 0, see, &seen);
    CHECK(seen.n_slow == 1 && seen.n_pending == 0);
    tree_on_planned(tree, NULL, NULL);
    CHECK(n_plans == 2);
}

static bool is_planned;

static bool certain(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    is_planned = true;
    return quick(context, arena, ret_file, error);
}

/* A file that cannot turn out to be absent is not planned for a listing, but for its size. */
static void certain_file(struct tree *tree)
{
    struct seen seen = {0};
    tree_list_names(tree, TREE_ROOT, 0, see, &seen);
    CHECK(seen.n_certain == 2 && seen.n_slow == 1 && seen.n_absent == 0 && seen.n_pending == 0);
    CHECK(tree_prepare(tree, TREE_ROOT, NULL) && !is_planned);
    CHECK(look_up(tree, "certain", 7) && is_planned);
}

static bool lead_back(struct tree *tree, const char *path)
{
    struct node_attributes attributes;
    struct error error;
    struct arena *arena = arena_new();
    bool same = tree_walk(tree, path, &attributes, &error) && strcmp(tree_path(tree, attributes.id, arena), path) == 0;
    arena_free(arena);
    return same;
}

static void paths(struct tree *tree)
{
    static const char *const some[] = {"", "quick", "tensors", "tensors/a", "tensors/a/raw", "tensors/a/f32.npy"};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        CHECK_NAMED(lead_back(tree, some[i]), "the path of a node is the one that leads to it");
}

int main(void)
{
    struct error error;
    struct content_options content_options = {0};
    alarm(PATIENCE);
    files_begin();
    files_write_safetensors("a.safetensors", header, sizeof header - 1, 4);
    struct checkpoint *checkpoint = checkpoint_open("a.safetensors", &(struct open_options){0}, &error);
    struct tree *tree = checkpoint == NULL ? NULL : tree_new(checkpoint, &content_options, &error);
    sem_init(&slow_began, 0, 0);
    sem_init(&slow_may_end, 0, 0);
    if (CHECK(tree != NULL) && CHECK(tree_add_file(tree, TREE_ROOT, "slow", slow, "slow"))) {
        tree_add_file(tree, TREE_ROOT, "later", slow, "later");
        tree_add_file(tree, TREE_ROOT, "quick", quick, "quick");
        tree_add_file(tree, TREE_ROOT, "absent", quick, NULL);
        tree_add_certain_file(tree, TREE_ROOT, "certain", certain, "certain");
        one_slow_plan(tree);
        prepared_listing(tree);
        certain_file(tree);
        paths(tree);
    }
    tree_free(tree);
    if (checkpoint != NULL)
        checkpoint_close(checkpoint);
    files_remove();
    return check_done();
}

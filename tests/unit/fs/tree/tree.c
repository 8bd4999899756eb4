#include "fs/tree/tree.h"
#include "formats/checkpoint_builder.h"
#include "models/formats.h"

#include "fs/tree/content_options.h"
#include "tests/unit/check.h"
#include "tests/unit/unreached.h"
#include "tests/unit/write_safetensors.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

enum { PATIENCE = 60 }; /* seconds; what hangs ends the program */

static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";

static sem_t slow_began, slow_may_end;
static int n_plans;

static enum outcome slow(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    (void)error;
    n_plans++;
    sem_post(&slow_began);
    sem_wait(&slow_may_end);
    struct span_list spans = {.arena = arena};
    spans_add_literal(&spans, context, strlen(context));
    *ret_file = vfile_of_spans(&spans, (struct origin){0});
    return OK;
}

static enum outcome quick(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct span_list spans = {.arena = arena};
    if (context == NULL)
        return error_set(error, "nobody knows it") ? OK : FAILED;
    spans_add_literal(&spans, context, strlen(context));
    *ret_file = vfile_of_spans(&spans, (struct origin){0});
    return OK;
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

static enum outcome certain(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
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

/* A tree of two branches: one of the checkpoint itself, which waits until it may be opened, and one that fails. */

static sem_t opening, may_open;
static int n_openings;

static struct tree *open_slowly(void *context, struct error *error)
{
    const struct checkpoint *const *checkpoint = context;
    static const struct content_options content_options = {0};
    n_openings++;
    sem_post(&opening);
    sem_wait(&may_open);
    struct tree *tree = tree_new(*checkpoint, &content_options, error);
    if (tree != NULL)
        tree_add_file(tree, TREE_ROOT, "slow", slow, "slow");
    return tree;
}

static struct tree *fail_to_open(void *context, struct error *error)
{
    (void)context;
    error_set(error, "it is broken");
    return NULL;
}

static void *look_into_branch(void *tree)
{
    struct node_attributes attributes;
    struct error error;
    return tree_walk(tree, "branch/tensors/a/f32", &attributes, &error) && attributes.size == 4 ? tree : NULL;
}

static void count_checkpoint(void *context, const struct checkpoint *checkpoint)
{
    (void)checkpoint;
    ++*(int *)context;
}

/* It is opened once somebody looks into it, and not for its attributes; whoever must not wait need not. */
static void opened_when_looked_into(struct tree *tree)
{
    struct node_attributes top, inner;
    struct seen seen = {0};
    pthread_t asking[3];
    int n_checkpoints = 0;
    tree_on_checkpoint(tree, count_checkpoint, &n_checkpoints);
    CHECK(n_checkpoints == 1);
    CHECK(tree_lookup(tree, TREE_ROOT, "branch", &top) && top.directory && top.branch && top.n_links == 1);
    CHECK(tree_prepare(tree, TREE_ROOT, "branch"));
    tree_list(tree, TREE_ROOT, 0, see, &seen);
    CHECK(n_openings == 0 && tree_parent(tree, top.id) == TREE_ROOT);
    CHECK(!tree_is_open(tree, top.id) && tree_is_open(tree, TREE_ROOT));
    CHECK(!tree_prepare(tree, top.id, "tensors"));
    sem_wait(&opening);
    CHECK(!tree_prepare(tree, top.id, NULL) && !tree_is_open(tree, top.id));
    for (int i = 0; i < 3; i++)
        pthread_create(&asking[i], NULL, look_into_branch, tree);
    sem_post(&may_open);
    for (int i = 0; i < 3; i++) {
        void *found = NULL;
        pthread_join(asking[i], &found);
        CHECK_NAMED(found == tree, "who looks into the branch finds what is there");
    }
    CHECK(n_openings == 1 && n_checkpoints == 2 && tree_is_open(tree, top.id));
    CHECK(tree_prepare(tree, top.id, "tensors"));
    CHECK(tree_lookup(tree, top.id, "tensors", &inner) && inner.directory && !inner.branch);
    CHECK(tree_parent(tree, inner.id) == top.id && inner.id != top.id);
    CHECK(lead_back(tree, "branch") && lead_back(tree, "branch/tensors/a/f32") && lead_back(tree, "branch/gguf"));
    CHECK(tree_branch(tree, top.id) != NULL && tree_branch(tree, inner.id) == NULL);
    CHECK(tree_branch(tree, TREE_ROOT) == NULL);
    tree_on_checkpoint(tree, NULL, NULL);
}

/* Plans in it are waited for as those of the tree are. */
static void plans_in_branch(struct tree *tree)
{
    struct node_attributes top;
    sem_t ended;
    sem_init(&ended, 0, 0);
    tree_on_planned(tree, planned, &ended);
    tree_lookup(tree, TREE_ROOT, "branch", &top);
    CHECK(!tree_prepare(tree, top.id, "slow"));
    sem_wait(&slow_began);
    CHECK(!tree_prepare(tree, top.id, "slow"));
    sem_post(&slow_may_end);
    while (!tree_prepare(tree, top.id, "slow"))
        sem_wait(&ended);
    CHECK(lead_back(tree, "branch/slow"));
    tree_on_planned(tree, NULL, NULL);
}

struct numbers {
    uint64_t sum;
    int count;
};

static void add_number(void *context, node_id id)
{
    struct numbers *numbers = context;
    numbers->sum += id;
    numbers->count++;
}

static bool reads_as(struct tree *tree, const char *path, const struct vfile *expected)
{
    struct node_attributes attributes;
    struct error error;
    struct vfile file;
    unsigned char bytes[4096], wanted[4096];
    struct arena *arena = arena_new();
    bool same = tree_walk(tree, path, &attributes, &error) && tree_file(tree, attributes.id, arena, &file, &error) &&
                file.size == expected->size && file.size == attributes.size && file.size <= sizeof bytes &&
                vfile_read(&file, 0, (size_t)file.size, bytes, &error) &&
                vfile_read(expected, 0, (size_t)file.size, wanted, &error) &&
                memcmp(bytes, wanted, (size_t)file.size) == 0;
    arena_free(arena);
    return same;
}

/* The files of a branch are those of its tree, under numbers that no others have. */
static void files_in_branch(struct tree *tree)
{
    static const char *const some[] = {"model.gguf", "model.safetensors", "tensors/a/raw", "tensors/a/metadata.json"};
    struct numbers all = {0}, own = {0};
    struct node_attributes top, here, there;
    struct error error;
    struct arena *arena = arena_new();
    struct vfile file;
    char path[64];
    tree_lookup(tree, TREE_ROOT, "branch", &top);
    struct tree *branch = tree_branch(tree, top.id);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        snprintf(path, sizeof path, "branch/%s", some[i]);
        bool found = tree_walk(branch, some[i], &there, &error) && tree_walk(tree, path, &here, &error);
        CHECK_NAMED(found && here.id != there.id && here.size == there.size, "another number, the same size");
        CHECK_NAMED(tree_file(branch, there.id, arena, &file, &error) && reads_as(tree, path, &file), some[i]);
    }
    tree_number_files(tree, add_number, &all);
    tree_number_files(branch, add_number, &own);
    CHECK(all.count == 2 * own.count && own.count > 0); /* the tree is of the same checkpoint */
    CHECK((all.sum - 2 * own.sum) >> 37 == (uint64_t)own.count);
    CHECK(!tree_walk(tree, "branch/nothing/f32", &here, &error));
    CHECK_TEXT(error.message, "branch: there is no 'nothing'");
    CHECK(!tree_walk(tree, "branch/..", &here, &error));
    CHECK(tree_walk(tree, "branch//./", &here, &error) && here.id == top.id && here.branch);
    CHECK(!tree_attributes(tree, UINT64_C(3) << 37 | 5, &here) && !tree_attributes(tree, UINT64_C(65535) << 37, &here));
    arena_free(arena);
}

/* A directory of a branch in another place: the same files, under numbers of their own. */
static void part_of_branch(struct tree *tree)
{
    struct node_attributes top, part, file, other;
    struct error error;
    struct vfile bytes;
    struct arena *arena = arena_new();
    tree_lookup(tree, TREE_ROOT, "branch", &top);
    node_id place = tree_add_directory(tree, TREE_ROOT, "place");
    CHECK(tree_add_part_of_branch(tree, place, "part", top.id, "hf"));
    CHECK(!tree_add_part_of_branch(tree, place, "part", top.id, "hf"));
    CHECK(!tree_add_part_of_branch(tree, place, "none", TREE_ROOT, "hf"));
    CHECK(tree_walk(tree, "place/part", &part, &error) && part.directory && part.branch);
    CHECK(tree_parent(tree, part.id) == place && tree_branch(tree, part.id) == NULL);
    CHECK(tree_walk(tree, "place/part/model.safetensors", &file, &error) && tree_parent(tree, file.id) == part.id);
    CHECK(tree_walk(tree, "branch/hf/model.safetensors", &other, &error) && other.id != file.id);
    CHECK(tree_file(tree, other.id, arena, &bytes, &error) && reads_as(tree, "place/part/model.safetensors", &bytes));
    CHECK(lead_back(tree, "place/part") && lead_back(tree, "place/part/model.safetensors"));
    CHECK(!tree_lookup(tree, part.id, "metadata.json", &other) && n_openings == 1);
    CHECK(tree_add_part_of_branch(tree, place, "all", top.id, "nowhere") && lead_back(tree, "place/all/metadata.json"));
    arena_free(arena);
}

/* A branch that cannot be opened is empty, and says why. */
static void broken_branch(struct tree *tree)
{
    struct node_attributes broken, attributes;
    struct error error;
    struct seen seen = {0};
    size_t n_notes = checkpoint_notes(tree_checkpoint(tree));
    CHECK(tree_lookup(tree, TREE_ROOT, "broken", &broken) && broken.directory);
    tree_list(tree, broken.id, 0, see, &seen);
    CHECK(seen.n_certain == 0 && !tree_lookup(tree, broken.id, "metadata.json", &attributes));
    CHECK(tree_branch(tree, broken.id) == NULL && tree_is_open(tree, broken.id));
    CHECK(checkpoint_notes(tree_checkpoint(tree)) == n_notes + 1);
    CHECK_TEXT(checkpoint_note_at(tree_checkpoint(tree), n_notes).text, "broken is left out: it is broken");
    CHECK(!tree_walk(tree, "broken/x", &attributes, &error));
    CHECK(tree_walk(tree, "broken", &attributes, &error) && attributes.id == broken.id);
}

static void branches(const struct checkpoint *checkpoint)
{
    struct error error;
    struct content_options content_options = {0};
    struct tree *tree = tree_new(checkpoint, &content_options, &error);
    sem_init(&opening, 0, 0);
    sem_init(&may_open, 0, 0);
    CHECK(tree_add_branch(tree, TREE_ROOT, "branch", open_slowly, &checkpoint));
    CHECK(tree_add_branch(tree, TREE_ROOT, "broken", fail_to_open, NULL));
    CHECK(!tree_add_branch(tree, TREE_ROOT, "tensors", fail_to_open, NULL));
    CHECK(tree_add_directory(tree, TREE_ROOT, "branch") == 0);
    opened_when_looked_into(tree);
    plans_in_branch(tree);
    tree_add_file(tree, TREE_ROOT, "slow", quick, "quick");
    files_in_branch(tree);
    part_of_branch(tree);
    broken_branch(tree);
    tree_free(tree);
}

/* Deferred directories: one waits until it may be filled, and its first source is not reached. */

static sem_t preparing, may_fill;
static int n_preparations, n_fillings;
static bool is_reached;

static void prepare_slowly(void *context)
{
    (void)context;
    n_preparations++;
    sem_post(&preparing);
    sem_wait(&may_fill);
    if (!is_reached)
        source_count_unreached();
}

static void fill_inner(void *tree, node_id directory)
{
    CHECK(tree_add_file(tree, directory, "file", quick, "inner"));
}

static void fill(void *tree, node_id directory)
{
    n_fillings++;
    for (int i = 0; i < 1000; i++)
        CHECK(tree_add_file(tree, directory, arena_printf(tree_arena(tree), "%d", i), quick, "quick"));
    CHECK(!tree_add_file(tree, directory, "7", quick, "again"));
    CHECK(tree_add_directory(tree, directory, "7") == 0);
    CHECK(tree_add_deferred(tree, directory, "inner", NULL, fill_inner, tree) != 0);
    CHECK(tree_add_deferred(tree, directory, "inner", NULL, fill_inner, tree) == 0);
    tree_unlist(tree, tree_add_directory(tree, directory, "unlisted"));
}

static void *look_into_deferred(void *tree)
{
    struct node_attributes attributes;
    struct error error;
    return tree_walk(tree, "deferred/inner/file", &attributes, &error) && attributes.size == 5 ? tree : NULL;
}

static bool count_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    (void)index, (void)name, (void)attributes;
    ++*(int *)context;
    return true;
}

/* Its attributes do not fill it, nor does a list of the directory above. */
static void filled_when_looked_into(struct tree *tree)
{
    struct node_attributes top, inside, unused;
    struct error error;
    pthread_t asking[3];
    int n_entries = 0;
    is_reached = true;
    CHECK(tree_lookup(tree, TREE_ROOT, "deferred", &top) && top.directory && top.deferred && !top.branch);
    CHECK(top.n_links == 1 && tree_prepare(tree, TREE_ROOT, "deferred"));
    tree_list(tree, TREE_ROOT, 0, count_entry, &n_entries);
    CHECK(n_entries > 0 && n_preparations == 0 && !tree_is_open(tree, top.id));
    CHECK(!tree_prepare(tree, top.id, "7") && !tree_is_open(tree, top.id));
    sem_wait(&preparing);
    CHECK_NAMED(look_up(tree, "quick", 5), "others are found meanwhile");
    for (int i = 0; i < 3; i++)
        pthread_create(&asking[i], NULL, look_into_deferred, tree);
    sem_post(&may_fill);
    for (int i = 0; i < 3; i++) {
        void *found = NULL;
        pthread_join(asking[i], &found);
        CHECK_NAMED(found == tree, "who looks into the directory finds what is there");
    }
    CHECK(n_preparations == 1 && n_fillings == 1 && tree_is_open(tree, top.id));
    n_entries = 0;
    tree_list(tree, top.id, 0, count_entry, &n_entries);
    CHECK(n_entries == 1001); /* one is not listed */
    CHECK(tree_lookup(tree, top.id, "unlisted", &unused) && tree_lookup(tree, top.id, "999", &unused));
    CHECK(lead_back(tree, "deferred/inner/file") && lead_back(tree, "deferred/7") && lead_back(tree, "deferred"));
    CHECK(tree_walk(tree, "deferred/inner/file", &inside, &error) && inside.id < UINT32_MAX);
    CHECK_NAMED(!tree_attributes(tree, inside.id + (64 << 16), &top) && !tree_attributes(tree, inside.id + 1, &top),
                "numbers that no node has");
}

/* A source that is not reached leaves it empty for a while, without a reason to leave anything out. */
static void filled_again(struct tree *tree)
{
    struct node_attributes top, unused;
    n_preparations = n_fillings = 0;
    is_reached = false;
    sem_post(&may_fill);
    CHECK(tree_lookup(tree, TREE_ROOT, "deferred", &top));
    CHECK(!tree_lookup(tree, top.id, "7", &unused) && unused.unreached && tree_is_unreached(tree, top.id));
    CHECK(n_preparations == 1 && n_fillings == 0);
    is_reached = true;
    sem_post(&may_fill);
    while (!tree_lookup(tree, top.id, "7", &unused)) {
        usleep(10000);
        tree_prepare(tree, top.id, "7"); /* which fills it sooner than a lookup */
    }
    CHECK(unused.size == 5 && n_preparations == 2 && n_fillings == 1 && !tree_is_unreached(tree, top.id));
}

static void deferred(const struct checkpoint *checkpoint, void test(struct tree *tree))
{
    struct error error;
    struct content_options content_options = {0};
    struct tree *tree = tree_new(checkpoint, &content_options, &error);
    sem_init(&preparing, 0, 0);
    sem_init(&may_fill, 0, 0);
    CHECK(tree_add_file(tree, TREE_ROOT, "quick", quick, "quick"));
    CHECK(tree_add_deferred(tree, TREE_ROOT, "deferred", prepare_slowly, fill, tree) != 0);
    CHECK(tree_add_deferred(tree, TREE_ROOT, "deferred", prepare_slowly, fill, tree) == 0);
    CHECK(tree_add_directory(tree, TREE_ROOT, "deferred") == 0);
    CHECK(!tree_add_file(tree, TREE_ROOT, "deferred", quick, "quick"));
    test(tree);
    tree_free(tree);
}

enum { N_LARGE = 3, LARGE = 5 * 1024 * 1024 };

static int n_large_plans, n_large_kept;

static void let_go(void *context)
{
    (void)context;
    n_large_kept--;
}

static enum outcome large(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    n_large_plans++;
    n_large_kept++;
    arena_on_free(arena, let_go, NULL);
    arena_alloc(arena, LARGE);
    return quick(context, arena, ret_file, error);
}

static void *read_large(void *tree)
{
    struct node_attributes attributes;
    struct vfile file;
    struct error error;
    char text[4];
    bool good = tree_lookup(tree, TREE_ROOT, "large2", &attributes) &&
                tree_file(tree, attributes.id, tree_arena(tree), &file, &error) && file.size == sizeof text &&
                vfile_read(&file, 0, sizeof text, text, &error) && memcmp(text, "cccc", sizeof text) == 0;
    return good ? tree : NULL;
}

/* A plan that is made again for another size: its source has been written to. */
static void large_plan_of_another_size(struct tree *tree, char text[5])
{
    struct node_attributes attributes;
    struct vfile file;
    struct error error;
    text[0] = '\0';
    CHECK(tree_lookup(tree, TREE_ROOT, "large1", &attributes) && attributes.size == 2);
    CHECK(!tree_file(tree, attributes.id, tree_arena(tree), &file, &error));
    CHECK_TEXT(error.message, "its size would be 0 bytes, and was 2: a source has changed; mount again");
    CHECK(n_large_kept == 1);
}

/* Sizes are kept, and spans up to a limit: beyond it the first read makes them again, once for all readers. */
static void large_plans(const struct checkpoint *checkpoint)
{
    static const char *const names[N_LARGE] = {"large0", "large1", "large2"};
    static char texts[N_LARGE][5] = {"a", "bb", "cccc"};
    enum { N_READERS = 3 };
    struct error error;
    struct content_options content_options = {0};
    struct tree *tree = tree_new(checkpoint, &content_options, &error);
    pthread_t readers[N_READERS];
    for (size_t i = 0; i < N_LARGE; i++)
        tree_add_file(tree, TREE_ROOT, names[i], large, texts[i]);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < N_LARGE; i++)
            CHECK_NAMED(look_up(tree, names[i], strlen(texts[i])), names[i]);
    CHECK(n_large_plans == N_LARGE && n_large_kept == 1);
    large_plan_of_another_size(tree, texts[1]);
    n_large_plans = N_LARGE;
    for (int i = 0; i < N_READERS; i++)
        pthread_create(&readers[i], NULL, read_large, tree);
    for (int i = 0; i < N_READERS; i++) {
        void *read = NULL;
        pthread_join(readers[i], &read);
        CHECK(read == tree);
    }
    CHECK(n_large_plans == N_LARGE + 1 && n_large_kept == 2);
    tree_free(tree);
    CHECK(n_large_kept == 0);
}

/* Which files there are follows config.json: no tree is made while that cannot be reached. */
static void outage(void)
{
    for (int i = 0; i < 2; i++) {
        struct error error;
        struct content_options content_options = {0};
        struct checkpoint *checkpoint = checkpoint_new("here");
        checkpoint->format = "safetensors";
        checkpoint_add_source(checkpoint, unreached_source("model.safetensors", ""));
        checkpoint_add_side_file(checkpoint, "config.json", unreached_source("config.json", "{}"));
        CHECK(checkpoint_seal(checkpoint, &error));
        unreached_now = i == 0;
        struct tree *tree = tree_new(checkpoint, &content_options, &error);
        CHECK((tree == NULL) == unreached_now);
        if (unreached_now)
            CHECK_TEXT(error.message, "no server");
        tree_free(tree);
        checkpoint_close(checkpoint);
    }
}

/* A text above PLANS_KEPT that counts how often it is written. */
enum { LONG_TEXT = 9 * 1024 * 1024 };

static int n_writes;

static enum outcome write_long(void *context, struct buffer *out, struct error *error)
{
    n_writes++;
    buffer_append_zeros(out, LONG_TEXT);
    memcpy(out->bytes + LONG_TEXT - 4, context, 4);
    return OK;
}

static bool ends_with(struct tree *tree, const char *name, const char *ending)
{
    struct node_attributes attributes;
    struct vfile file;
    struct error error;
    char text[4];
    return tree_lookup(tree, TREE_ROOT, name, &attributes) && attributes.size == LONG_TEXT &&
           tree_file(tree, attributes.id, tree_arena(tree), &file, &error) &&
           vfile_read(&file, LONG_TEXT - sizeof text, sizeof text, text, &error) &&
           memcmp(text, ending, sizeof text) == 0;
}

/* A long text is written once for its size and its reader, and again once another took its place. */
static void long_texts(const struct checkpoint *checkpoint)
{
    struct error error;
    struct content_options content_options = {0};
    struct tree *tree = tree_new(checkpoint, &content_options, &error);
    static char one[] = "one", two[] = "two";
    tree_add_text(tree, TREE_ROOT, "long1", origin_of_weights(checkpoint), write_long, one);
    tree_add_text(tree, TREE_ROOT, "long2", origin_of_weights(checkpoint), write_long, two);
    CHECK(ends_with(tree, "long1", "one") && n_writes == 1);
    CHECK(ends_with(tree, "long2", "two") && ends_with(tree, "long2", "two") && n_writes == 2);
    CHECK(ends_with(tree, "long1", "one") && n_writes == 3);
    tree_free(tree);
}

/* A directory with so many files that their names are indexed finds each by name and by alias. */
static void many_names(struct tree *tree)
{
    node_id directory = tree_add_directory(tree, TREE_ROOT, "many");
    struct node_attributes attributes;
    char name[16];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%d", i);
        CHECK(tree_add_file(tree, directory, name, quick, "many"));
        CHECK(!tree_add_file(tree, directory, name, quick, "twice"));
        if (i == 1 || i == 98)
            tree_add_alias(tree, directory, name, i == 1 ? "early" : "late");
    }
    CHECK(!tree_add_file(tree, directory, "early", quick, "twice"));
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%d", i);
        CHECK(tree_lookup(tree, directory, name, &attributes) && attributes.size == strlen("many"));
    }
    node_id at_1 = tree_lookup(tree, directory, "1", &attributes) ? attributes.id : 0;
    CHECK(tree_lookup(tree, directory, "early", &attributes) && attributes.id == at_1);
    node_id at_98 = tree_lookup(tree, directory, "98", &attributes) ? attributes.id : 0;
    CHECK(tree_lookup(tree, directory, "late", &attributes) && attributes.id == at_98);
    CHECK(!tree_lookup(tree, directory, "100", &attributes));
}

int main(void)
{
    struct error error;
    struct content_options content_options = {0};
    alarm(PATIENCE);
    files_begin();
    files_write_safetensors("a.safetensors", header, sizeof header - 1, 4);
    const struct checkpoint *checkpoint = checkpoint_open("a.safetensors", formats, &(struct open_options){0}, &error);
    struct tree *tree = checkpoint == NULL ? NULL : tree_new(checkpoint, &content_options, &error);
    sem_init(&slow_began, 0, 0);
    sem_init(&slow_may_end, 0, 0);
    if (CHECK(tree != NULL) && CHECK(tree_add_file(tree, TREE_ROOT, "slow", slow, "slow"))) {
        tree_add_file(tree, TREE_ROOT, "later", slow, "later");
        tree_add_file(tree, TREE_ROOT, "quick", quick, "quick");
        tree_add_file(tree, TREE_ROOT, "absent", quick, NULL);
        tree_add_certain_file(tree, TREE_ROOT, "certain", certain, "certain");
        outage();
        one_slow_plan(tree);
        prepared_listing(tree);
        certain_file(tree);
        paths(tree);
        many_names(tree);
        branches(checkpoint);
        deferred(checkpoint, filled_when_looked_into);
        deferred(checkpoint, filled_again);
        large_plans(checkpoint);
        long_texts(checkpoint);
    }
    tree_free(tree);
    if (checkpoint != NULL)
        checkpoint_close(checkpoint);
    files_remove();
    return check_done();
}

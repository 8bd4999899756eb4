/* The watch on sources that change: which files the kernel is made to forget, and what may still be sent. */
#include "fs/mount/watch.h"

#include "formats/origin.h"
#include "fs/tree/content_options.h"
#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

#include <semaphore.h>
#include <time.h>

enum { PATIENCE = 60, MOST_FORGOTTEN = 256 }; /* seconds: what hangs fails */

static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";

static sem_t forgot;
static node_id forgotten[MOST_FORGOTTEN];
static size_t n_forgotten;

static void forget(void *context, node_id id)
{
    if (n_forgotten < MOST_FORGOTTEN)
        forgotten[n_forgotten++] = id;
    sem_post(context);
}

static bool forgets_another(void)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE;
    return sem_timedwait(&forgot, &end) == 0;
}

static node_id find(struct tree *tree, const char *path)
{
    struct node_attributes attributes;
    struct error error = {""};
    return CHECK_NAMED(tree_walk(tree, path, &attributes, &error), path) ? attributes.id : 0;
}

static struct tree *open_tree(const struct checkpoint **ret_checkpoint)
{
    static const struct content_options options = {0};
    struct error error;
    *ret_checkpoint = checkpoint_open("model.safetensors", formats, &(struct open_options){0}, &error);
    files_must(*ret_checkpoint != NULL, "model.safetensors");
    n_forgotten = 0;
    sem_init(&forgot, 0, 0);
    return tree_new(*ret_checkpoint, &options, &error);
}

static bool append_byte(void)
{
    FILE *file = fopen("model.safetensors", "ab");
    return file != NULL && fputc('x', file) == 'x' && fclose(file) == 0;
}

/* From the change on nothing that is computed from the source is sent, and what was read of it is forgotten. */
static void changed_source(void)
{
    const struct checkpoint *checkpoint;
    struct tree *tree = open_tree(&checkpoint);
    struct watch *watch = watch_new(tree);
    struct origin origin = origin_of_weights(checkpoint);
    node_id raw = find(tree, "tensors/a/raw"), f32 = find(tree, "tensors/a/f32");
    CHECK(watch_start(watch, forget, &forgot) == 0);
    watch_reading(watch, raw);
    CHECK(watch_intact(watch, &origin) && !watch_explains(watch, &origin));
    CHECK(append_byte());
    CHECK(!watch_intact(watch, &origin) && watch_explains(watch, &origin));
    CHECK(forgets_another() && forgotten[0] == raw && raw != f32);
    watch_stop(watch);
    CHECK_NAMED(n_forgotten == 1, "what nobody has read is not forgotten");
    CHECK(!watch_intact(watch, &origin));
    watch_free(watch);
    tree_free(tree);
    checkpoint_close(checkpoint);
}

/* A change from before the thread began counts, too. */
static void changed_before(void)
{
    const struct checkpoint *checkpoint;
    struct tree *tree = open_tree(&checkpoint);
    CHECK(append_byte());
    struct watch *watch = watch_new(tree);
    struct origin origin = origin_of_weights(checkpoint);
    watch_reading(watch, find(tree, "tensors/a/f32"));
    CHECK(watch_start(watch, forget, &forgot) == 0 && forgets_another());
    CHECK(!watch_intact(watch, &origin));
    watch_stop(watch);
    watch_free(watch);
    tree_free(tree);
    checkpoint_close(checkpoint);
}

/* A refused write makes the kernel forget just that file, once; of more than are noted, all that were read. */
static void refused_writes(void)
{
    enum { MORE_THAN_NOTED = 65 };
    const struct checkpoint *checkpoint;
    struct tree *tree = open_tree(&checkpoint);
    struct watch *watch = watch_new(tree);
    struct origin origin = origin_of_weights(checkpoint);
    node_id raw = find(tree, "tensors/a/raw"), f32 = find(tree, "tensors/a/f32");
    watch_refused_write(watch, f32);
    watch_refused_write(watch, f32);
    CHECK(watch_start(watch, forget, &forgot) == 0 && forgets_another());
    watch_stop(watch);
    CHECK(n_forgotten == 1 && forgotten[0] == f32 && watch_intact(watch, &origin));
    watch_free(watch);

    n_forgotten = 0;
    watch = watch_new(tree);
    watch_reading(watch, raw);
    for (node_id id = 1000; id < 1000 + MORE_THAN_NOTED; id++)
        watch_refused_write(watch, id);
    CHECK(watch_start(watch, forget, &forgot) == 0 && forgets_another());
    watch_stop(watch);
    CHECK(n_forgotten == 1 && forgotten[0] == raw);
    watch_free(watch);
    watch_free(NULL);
    tree_free(tree);
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    files_write_safetensors("model.safetensors", header, sizeof header - 1, 4);
    refused_writes();
    changed_source();
    files_write_safetensors("model.safetensors", header, sizeof header - 1, 4);
    changed_before();
    sem_destroy(&forgot);
    files_remove();
    return check_done();
}

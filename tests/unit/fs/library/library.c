/* A library opens a model when its directory is looked into, and no other; one that fails leaves the others. */
#include "fs/library/library.h"

#include "formats/checkpoint_builder.h"
#include "fs/tree/content_options.h"
#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

enum { N_MODELS = 300 }; /* more than a byte of a node's number counts */

struct source {
    struct content_options options;
    const struct checkpoint *checkpoint;
    int n_opened;
};

static struct source sources[N_MODELS];
static struct library_model models[N_MODELS];
static char ids[N_MODELS][32];

static struct tree *open_model(void *context, struct error *error)
{
    struct source *source = context;
    source->n_opened++;
    if (source == &sources[1]) {
        error_set(error, "broken");
        return NULL;
    }
    source->checkpoint = checkpoint_open("model.safetensors", formats, &(struct open_options){0}, error);
    return source->checkpoint != NULL ? tree_new(source->checkpoint, &source->options, error) : NULL;
}

static struct tree *make(const struct library *library, struct checkpoint **ret_checkpoint, struct error *error)
{
    static const struct content_options options = {0};
    *ret_checkpoint = checkpoint_new("library");
    (*ret_checkpoint)->format = (*ret_checkpoint)->model_name = "library";
    CHECK(checkpoint_seal(*ret_checkpoint, error));
    return library_new(*ret_checkpoint, &options, library, error);
}

static bool take_name(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    char *names = context;
    snprintf(names + strlen(names), 256 - strlen(names), "%s ", name);
    return true;
}

/* Expects the names in a directory. */
static void expect(struct tree *tree, const char *path, const char *expected)
{
    char names[256] = "";
    struct node_attributes attributes;
    struct error error = {""};
    if (CHECK_NAMED(tree_walk(tree, path, &attributes, &error) && attributes.directory, path))
        tree_list(tree, attributes.id, 0, take_name, names);
    CHECK_TEXT(names, expected);
}

static int n_opened(void)
{
    int n = 0;
    for (size_t i = 0; i < N_MODELS; i++)
        n += sources[i].n_opened;
    return n;
}

static void is_lazy(void)
{
    struct error error = {""};
    struct node_attributes one, other, parent;
    struct checkpoint *checkpoint;
    struct tree *tree = make(&(struct library){models, N_MODELS}, &checkpoint, &error);
    expect(tree, "models", "org0 org1 ");
    CHECK(tree_walk(tree, "models/org0/model-0", &one, &error) && one.branch && n_opened() == 0);
    expect(tree, "models/org0/model-0", "model-0-F16.gguf ");
    CHECK(n_opened() == 1 && sources[0].n_opened == 1);
    expect(tree, "models/org1/model-1", "");
    expect(tree, "models/org1/model-299", "model-299-F16.gguf ");
    CHECK(n_opened() == 3 && sources[299].n_opened == 1);
    CHECK(tree_walk(tree, "models/org0/model-0/model-0-F16.gguf", &one, &error));
    CHECK(tree_walk(tree, "models/org1/model-299/model-299-F16.gguf", &other, &error));
    CHECK(one.id != other.id && one.size == other.size && one.size > 0);
    CHECK(tree_attributes(tree, tree_parent(tree, other.id), &parent) && parent.branch);
    CHECK(tree_walk(tree, "models/org1/model-299/tensors/a/f16", &other, &error) && other.size == 64);
    CHECK(tree_attributes(tree, other.id, &one) && one.size == 64);
    tree_free(tree);
    for (size_t i = 0; i < N_MODELS; i++)
        checkpoint_close(sources[i].checkpoint);
    checkpoint_close(checkpoint);
}

static void refused_id(const char *id)
{
    struct error error = {""};
    struct checkpoint *checkpoint;
    const struct library_model model = {id, "model.safetensors", open_model, &sources[0]};
    CHECK_NAMED(make(&(struct library){&model, 1}, &checkpoint, &error) == NULL, id);
    CHECK(strstr(error.message, "is no name of a model; write ORG/NAME=SOURCE") != NULL);
    checkpoint_close(checkpoint);
}

static void names_twice(void)
{
    struct error error = {""};
    struct checkpoint *checkpoint;
    const struct library_model twice[] = {models[0], models[0]};
    CHECK(make(&(struct library){twice, 2}, &checkpoint, &error) == NULL);
    CHECK_TEXT(error.message, "org0/model-0: two sources have this name; give one another: ORG/NAME=SOURCE");
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    safetensors_write_ramps("model.safetensors", "a 0 32");
    for (int i = 0; i < N_MODELS; i++) {
        snprintf(ids[i], sizeof ids[i], "org%d/model-%d", i % 2, i);
        sources[i].options.name_in_library = strchr(ids[i], '/') + 1;
        models[i] = (struct library_model){ids[i], "model.safetensors", open_model, &sources[i]};
    }
    is_lazy();
    names_twice();
    static const char *const ids_of_none[] = {"", "a", "a/", "/a", "a/..", "../a", "a/b/c", "a/."};
    for (size_t i = 0; i < sizeof ids_of_none / sizeof *ids_of_none; i++)
        refused_id(ids_of_none[i]);
    files_remove();
    return check_done();
}

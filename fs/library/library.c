#include "fs/library/library.h"

#include "fs/tree/content.h"
#include "fs/tree/content_options.h"

#include <string.h>

struct listed_library {
    const struct library *library;
    bool true_digests;
};

static enum outcome write_metadata(void *context, struct buffer *out, struct error *error)
{
    const struct listed_library *listed = context;
    struct json_writer writer = {.out = out, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    json_put_template(&writer, "'wfs': %s, 'schema': 1, \n'format': 'library', \n'models': [", WFS_VERSION);
    for (size_t i = 0; i < listed->library->n_models; i++) {
        const struct library_model *model = &listed->library->models[i];
        struct arena *arena = arena_new();
        json_break_line(&writer);
        json_put_template(&writer, "{'path': %s, 'source': %s}", arena_printf(arena, "models/%s", model->id),
                          model->source);
        arena_free(arena);
    }
    json_end(&writer);
    json_put_template(&writer, "\n'ollama': {'digests': %s}", listed->true_digests ? "sha256" : "identity");
    json_end(&writer);
    buffer_append_text(out, "\n");
    return OK;
}

bool library_is_id(const char *id)
{
    const char *slash = strchr(id, '/'), *name = slash != NULL ? slash + 1 : "";
    return slash != id && *id != '.' && *name != '\0' && *name != '.' && strchr(name, '/') == NULL;
}

/* Adds the directory of a model; returns its number, or 0 with an error. */
static node_id add_model(struct tree *tree, node_id models, const struct library_model *model, struct error *error)
{
    const char *name;
    struct node_attributes attributes;
    if (!library_is_id(model->id)) {
        error_set(error, "'%s' is no name of a model; write ORG/NAME=SOURCE", model->id);
        return 0;
    }
    node_id publisher = tree_add_path(tree, models, model->id, &name);
    node_id branch = publisher != 0 ? tree_add_branch(tree, publisher, name, model->open, model->context) : 0;
    if (branch == 0 && publisher != 0 && !tree_lookup(tree, publisher, name, &attributes))
        error_set(error, "more models than a tree can hold");
    else if (branch == 0)
        error_set(error, "%s: two sources have this name; give one another: ORG/NAME=SOURCE", model->id);
    return branch;
}

struct tree *library_new(const struct checkpoint *checkpoint, const struct content_options *options,
                         const struct library *library, struct error *error)
{
    struct tree *tree = tree_empty(checkpoint, options);
    struct listed_library *listed = arena_alloc(tree_arena(tree), sizeof *listed);
    node_id *branches = arena_array(tree_arena(tree), library->n_models, sizeof *branches);
    node_id models = tree_add_directory(tree, TREE_ROOT, "models");
    *listed = (struct listed_library){library, options->true_digests};
    for (size_t i = 0; i < library->n_models; i++)
        if ((branches[i] = add_model(tree, models, &library->models[i], error)) == 0) {
            tree_free(tree);
            return NULL;
        }
    ollama_add(tree, library, branches);
    tree_add_text(tree, TREE_ROOT, "metadata.json", (struct origin){0}, write_metadata, listed);
    cache_tag_add(tree);
    return tree;
}

/* What `wfs info --json` prints of a source, and wfs_info_json() returns. */

#include "fs/lib/info/profile.h"
#include "fs/tree/content_options.h"
#include "fs/tree/inventory.h"
#include "models/packings/packing.h"

/* Writes a number unless it is 0, which means unknown. */
static void put_known(struct json_writer *writer, const char *key, uint64_t number)
{
    if (number != 0)
        json_put_number(writer, key, number);
    else
        json_put_null(writer, key);
}

/* Writes the kinds of stored tensors, or of packed weights. */
static void put_kinds(struct json_writer *writer, const char *key, const struct profile *profile, bool packed)
{
    json_break_line(writer);
    json_begin_array(writer, key);
    for (size_t i = 0; i < profile->n_kinds; i++) {
        const struct kind_total *kind = &profile->kinds[i];
        if ((kind->packing != NULL) != packed)
            continue;
        if (packed)
            json_put_template(writer, "{'name': %s, 'packing': %s, 'bits': %u", kind->name, kind->packing->name,
                              (uint64_t)kind->bits);
        else
            json_put_template(writer, "{'dtype': %s", kind->name);
        json_put_template(writer, "'tensors': %u, 'parameters': %u, 'bytes': %u}", kind->total.n_tensors,
                          kind->total.n_elements, kind->total.n_bytes);
    }
    json_end(writer);
}

static void put_left_out(struct json_writer *writer, const struct checkpoint *checkpoint)
{
    json_put_template(writer, "\n'hidden': [");
    for (size_t i = 0; i < checkpoint->n_hidden; i++)
        json_put_template(writer, "\n{'name': %s, 'reason': %s}", checkpoint->hidden[i].name,
                          checkpoint->hidden[i].reason);
    json_put_template(writer, "], \n'notes': [");
    struct arena *arena = arena_new();
    for (size_t i = 0, n_notes = checkpoint_notes(checkpoint); i < n_notes; i++)
        json_put_template(writer, "\n%s", note_line(checkpoint_note_at(checkpoint, i), arena));
    json_end(writer);
    arena_free(arena);
}

static void put_model(struct json_writer *writer, const struct profile *profile)
{
    json_put_template(writer,
                      "\n'adapter': %s, 'parts': %s, 'architecture': %s, 'family': %s, 'gguf': %s, 'file_type': %s,"
                      " 'tower': %s",
                      profile->adapter, profile->parts, profile->architecture, profile->family, profile->gguf,
                      profile->file_type, profile->tower);
    put_known(writer, "tower_tensors", profile->tower_total.n_tensors);
    put_known(writer, "tower_parameters", profile->tower_total.n_elements);
    json_put_text(writer, "tokenizer", profile->tokenizer);
    put_known(writer, "tokens", profile->n_tokens);
    put_known(writer, "layers", profile->n_layers);
    put_known(writer, "context_length", profile->context_length);
    json_put_template(writer, "\n'tensors': %u, 'parameters': %u, 'bytes': %u", (uint64_t)profile->n_stored,
                      profile->all.n_elements, profile->all.n_bytes);
}

static void put_profile(struct json_writer *writer, const struct profile *profile)
{
    put_model(writer, profile);
    put_kinds(writer, "dtypes", profile, false);
    put_kinds(writer, "packings", profile, true);
}

/* Writes the member "merge": null if the checkpoint is none. */
static void put_merge(struct json_writer *writer, const struct checkpoint *checkpoint)
{
    struct merge_profile merge;
    struct arena *arena = arena_new();
    if (!profile_merge(&merge, checkpoint, true, arena)) {
        json_put_null(writer, "merge");
        arena_free(arena);
        return;
    }
    json_put_template(writer,
                      "\n'merge': {'method': %s, 'base': %s, 'config': %s, 'reads': %u, 'cost': %s, 'models': [",
                      merge.method, merge.base, merge.config, merge.n_bytes, merge.cost);
    for (size_t i = 0; i < merge.n_models; i++)
        json_put_text(writer, NULL, merge.models[i]);
    json_put_template(writer, "], 'tensors': [");
    for (size_t i = 0; i < merge.n_tensors; i++)
        json_put_template(writer, "\n{'name': %s, 'plan': %t}", merge.tensors[i].name,
                          (const char *)merge.tensors[i].plan.bytes, merge.tensors[i].plan.length);
    arena_free(arena);
    json_put_template(writer, "]}");
}

/* Writes "components": an object for each, with the same members as for a source. */
static void put_components(struct json_writer *writer, struct tree *tree)
{
    json_put_template(writer, "\n'components': [");
    for (size_t i = 0; i < profile_components(tree); i++) {
        struct component_profile component;
        struct arena *arena = arena_new();
        profile_component(&component, tree, i, arena);
        const struct checkpoint *own = component.tree != NULL ? tree_checkpoint(component.tree) : NULL;
        json_put_template(writer, "\n{'name': %s, 'class': %s, 'format': %s, 'failure': %s", component.name,
                          component.class_name, own != NULL ? own->format : NULL, own != NULL ? own->failure : NULL);
        put_profile(writer, &component.facts);
        if (own != NULL)
            put_sources(writer, own);
        json_end(writer);
        arena_free(arena);
    }
    json_end(writer);
}

void info_put(struct json_writer *writer, struct tree *tree)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct profile profile;
    struct arena *arena = arena_new();
    uint64_t n_cached, n_bytes;
    profile_gather(&profile, tree, arena);
    json_put_template(writer, "'name': %s, 'path': %s, 'format': %s", checkpoint->model_name, checkpoint->path,
                      checkpoint->format);
    put_references(writer, &tree_options(tree)->request.references);
    put_profile(writer, &profile);
    put_merge(writer, checkpoint);
    put_components(writer, tree);
    put_sources(writer, checkpoint);
    if (checkpoint_cached(checkpoint, &n_cached, &n_bytes))
        json_put_template(writer, "\n'cached': %u", n_cached);
    put_files(writer, tree, true);
    put_left_out(writer, checkpoint);
    arena_free(arena);
}

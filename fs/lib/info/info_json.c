/* What `wfs info --json` prints of a source, and wfs_info_json() returns. */

#include "formats/components.h"
#include "fs/lib/info/profile.h"
#include "fs/tree/content_options.h"
#include "fs/tree/inventory.h"
#include "fs/tree/subjects.h"
#include "models/derive/recipe_plan.h"
#include "models/families/families.h"
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
                      profile->file_type, profile->projector != NULL ? profile->projector->summary : NULL);
    put_known(writer, "tower_tensors", profile->tower.n_tensors);
    put_known(writer, "tower_parameters", profile->tower.n_elements);
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
    const struct recipe_plan *plan = recipe_plan_of(checkpoint);
    if (plan == NULL) {
        json_put_null(writer, "merge");
        return;
    }
    struct arena *arena = arena_new();
    const struct recipe_steps steps = recipe_plan_steps(plan, arena);
    const struct recipe *recipe = plan->recipe;
    json_put_template(writer,
                      "\n'merge': {'method': %s, 'base': %s, 'config': %s, 'reads': %u, 'cost': %s, 'models': [",
                      recipe->method->name, recipe->base != NO_MODEL ? recipe->models[recipe->base].text : NULL,
                      plan->donor, recipe_steps_bytes(&steps), recipe_plan_cost(plan));
    for (size_t i = 0; i < recipe->n_models; i++)
        json_put_text(writer, NULL, recipe->models[i].text);
    json_put_template(writer, "], 'tensors': [");
    for (size_t i = 0; i < steps.count; i++) {
        struct buffer line = {0};
        recipe_plan_describe(plan, &steps.items[i], &line);
        json_put_template(writer, "\n{'name': %s, 'plan': %t}", steps.items[i].name, (const char *)line.bytes,
                          line.length);
        buffer_free(&line);
    }
    arena_free(arena);
    json_put_template(writer, "]}");
}

/* Writes "components": an object for each, with the same members as for a source. */
static void put_components(struct json_writer *writer, struct tree *tree)
{
    const struct components *components = tree_checkpoint(tree)->components;
    json_put_template(writer, "\n'components': [");
    for (size_t i = 0; components != NULL && i < components->count; i++) {
        struct tree *own = tree_of_component(tree, &components->items[i]);
        struct profile profile = {0};
        struct arena *arena = arena_new();
        if (own != NULL)
            profile_gather(&profile, own, arena);
        json_put_template(writer, "\n{'name': %s, 'class': %s, 'format': %s, 'failure': %s", components->items[i].name,
                          components->items[i].class_name, own != NULL ? tree_checkpoint(own)->format : NULL,
                          own != NULL ? tree_checkpoint(own)->failure : NULL);
        put_profile(writer, &profile);
        if (own != NULL)
            put_sources(writer, tree_checkpoint(own));
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

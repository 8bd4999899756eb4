#include "models/derive/derive.h"

#include "base/text.h"
#include "formats/components.h"
#include "formats/documents.h"
#include "models/derive/recipe_merging.h"
#include "models/derive/recipe_plan.h"
#include "models/facts.h"
#include "models/packings/packings.h"
#include "quant/views/convert.h"
#include "sources/paths.h"

#include <stdlib.h>
#include <string.h>

/* Reads the recipe, into the merged checkpoint's arena. */
static bool read_recipe(struct recipe_merge *merge)
{
    size_t length;
    char *text = source_read_text(merge->from->sources[0], RECIPE_MAX_TEXT, &length, merge->error);
    merge->recipe = text != NULL ? recipe_read(merge->merged->arena, text, length, merge->error) : NULL;
    free(text);
    return merge->recipe != NULL;
}

static bool check_options(const struct recipe_merge *merge)
{
    const struct method *method = merge->recipe->method;
    return method->cost != COST_RANDOM || merge->options->recipe.has_seed ||
           error_set(merge->error, "%s drops weights at random; -o seed=N chooses which, as mergekit's --random-seed",
                     method->name);
}

/* Keeps what the merge consists of, for recipe_plan_of(). */
static void keep_plan(struct recipe_merge *merge)
{
    struct arena *arena = merge->merged->arena;
    struct recipe_plan *plan = arena_alloc(arena, sizeof *plan);
    struct recipe_merge *kept = arena_copy(arena, merge, sizeof *merge);
    kept->vocabulary = NULL;
    kept->error = NULL;
    *plan = (struct recipe_plan){merge->recipe, kept, merge->donor->named->text};
    merge->merged->plan = plan;
}

static void note_left_out(const struct recipe_merge *merge, const struct recipe_jobs *jobs)
{
    if (jobs->n_left_out > 0)
        checkpoint_note(merge->merged, SUBJECT_SOURCE,
                        "%zu tensors that not all models have are left out of the merge, first '%.200s'",
                        jobs->n_left_out, jobs->left_out);
}

static bool make(struct recipe_merge *merge)
{
    struct recipe_jobs jobs = {.arena = arena_new()};
    bool made = read_recipe(merge) && check_options(merge) && recipe_open_inputs(merge) &&
                recipe_find_vocabulary(merge, jobs.arena) && recipe_find_jobs(merge, &jobs) &&
                recipe_make_tensors(merge, &jobs) && recipe_make_config(merge) && recipe_make_files(merge);
    note_left_out(merge, &jobs);
    arena_free(jobs.arena);
    recipe_close_inputs(merge);
    if (made)
        keep_plan(merge);
    return made;
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    if (from->kind != CHECKPOINT_RECIPE)
        return true;
    struct checkpoint *merged = *ret_derived = checkpoint_derive(from);
    struct recipe_merge merge = {.from = from, .merged = merged, .options = options, .error = error};
    merged->kind = CHECKPOINT_WEIGHTS;
    return make(&merge) || error_prefix(error, "%s", from->path);
}

const struct derivation recipe_derivation = {.apply = apply};

enum { MAX_DEPTH = 4 }; /* of recipes within recipes: each level opens all models again */

static const char config_name[] = "config.json";

/* Returns the path to open for a name in the recipe: beside the recipe, if there is such a file or directory. */
static const char *resolve(const struct recipe_merge *merge, const char *name)
{
    const char *slash = strrchr(merge->from->path, '/');
    if (slash == NULL || *name == '/' || strstr(name, "://") != NULL)
        return name;
    const char *beside =
        arena_printf(merge->merged->arena, "%.*s/%s", (int)(slash - merge->from->path), merge->from->path, name);
    return local_kind(beside) != LOCATION_NOTHING ? beside : name;
}

static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || text_ends_with(folder, "/"));
}

/* Reports whether the recipe may name a model: a recipe comes from a stranger, and must not make other files of this
 * machine part of a model, or reach servers, unless the user wants that. Names of the hub's cache are no paths. */
static bool may_name(const struct recipe_merge *merge, const char *name)
{
    struct arena *arena = merge->merged->arena;
    const char *slash = strrchr(merge->from->path, '/');
    const char *folder =
        slash == NULL ? "." : arena_strndup(arena, merge->from->path, (size_t)(slash + 1 - merge->from->path));
    const char *real = local_real_path(resolve(merge, name), arena);
    if (merge->from->follows_links)
        return true;
    if (strstr(name, "://") != NULL)
        return error_set(merge->error, "a URL, which a recipe names only with -o follow-links");
    if (real == NULL)
        return true;
    folder = local_real_path(folder, arena);
    return (folder != NULL && is_below(real, folder)) ||
           error_set(merge->error, "%s is outside of the recipe's directory; -o follow-links opens it", real);
}

/* Returns the repository that a name in the recipe is on the hub, without its revision; NULL: the name is a path. */
static const char *repository_of(const struct recipe_merge *merge, const char *name)
{
    static const char hub[] = "hf://";
    bool is_url = text_starts_with(name, hub);
    const char *id = is_url ? name + strlen(hub) : name, *slash = strchr(id, '/');
    bool is_path = !is_url && (resolve(merge, name) != name || local_kind(name) != LOCATION_NOTHING);
    if (is_path || slash == NULL || slash == id || *id == '.' || strstr(id, "://") != NULL)
        return NULL;
    size_t length = (size_t)(slash + 1 - id) + strcspn(slash + 1, "/@");
    return arena_strndup(merge->merged->arena, id, length);
}

/* Returns the checkpoint with its floating-point weights in one dtype, for an adapter to be merged into them. Takes
 * ownership of it, also on failure. */
static const struct checkpoint *cast(const struct checkpoint *from, const struct dtype *dtype, struct error *error)
{
    if (!facts_of(from).has_class_names || packings_of(from)->found.n_weights > 0) {
        error_set(error, "-o lora-merge-dtype= needs weights that are not quantized");
        checkpoint_close(from);
        return NULL;
    }
    struct checkpoint *derived = checkpoint_derive(from);
    size_t n_tensors = from->tensors->n_tensors;
    const struct view **views = arena_array(derived->arena, n_tensors, sizeof *views);
    for (size_t i = 0; i < n_tensors; i++) {
        const struct tensor *tensor = &from->tensors->tensors[i];
        bool is_float = tensor->refusal == NULL && tensor->dtype->kind == DTYPE_FLOAT;
        if (is_float && tensor->dtype != dtype && dtype_kernels(tensor->dtype).decode != NULL)
            views[i] = view_convert(derived->arena, tensor_view(tensor, derived->arena), dtype);
    }
    derived->tensors = tensor_set_with_views(derived->arena, from->tensors, views);
    return derived;
}

/* Opens a model, with its adapter merged. */
static const struct checkpoint *open_model(const struct recipe_merge *merge, const struct recipe_model *named)
{
    const struct checkpoint *from = merge->from;
    const struct open_options opening = {.follow_links = from->follows_links};
    struct derive_options wanted = {.recipe = merge->options->recipe};
    struct lora_request lora = {NULL, 1};
    if (!may_name(merge, named->path) || (named->lora != NULL && !may_name(merge, named->lora)))
        return NULL;
    const struct checkpoint *read = checkpoint_open(resolve(merge, named->path), from->formats, &opening, merge->error);
    wanted.recipe.depth++;
    if (read != NULL && named->lora != NULL) {
        lora.path = resolve(merge, named->lora);
        wanted.loras = (struct lora_requests){&lora, 1};
        if (wanted.recipe.lora_dtype != NULL)
            read = cast(read, wanted.recipe.lora_dtype, merge->error);
    }
    return read != NULL ? derive(read, &wanted, merge->error) : NULL;
}

static bool check_kind(const struct recipe_merge *merge, const struct checkpoint *checkpoint)
{
    if (facts_of(checkpoint).is_adapter)
        return error_set(merge->error, "a LoRA adapter, not a model; write MODEL+ADAPTER");
    return checkpoint->n_sources > 0 || components_ask_for_one(checkpoint->components, merge->error);
}

/* Finds the text of config.json: made from a GGUF's keys, or the file. */
static bool read_config(const struct recipe_merge *merge, struct recipe_input *input)
{
    bool is_absent;
    if (input->model->kept_names != NULL)
        return error_set(merge->error, "the tensors' Hugging Face names are unknown: %s", input->model->kept_names);
    input->config = input->model->config;
    input->config_length = input->model->config_length;
    if (input->config == NULL) {
        char *text = document_text(input->checkpoint, config_name, &input->config_length, &is_absent, merge->error);
        if (text == NULL)
            return is_absent ? error_set(merge->error, "config.json is missing, which a merge needs") : false;
        input->config = arena_strndup(merge->merged->arena, text, input->config_length);
        free(text);
    }
    input->hparams = hparams_parse(input->config, input->config_length, merge->error);
    if (input->hparams == NULL)
        return error_prefix(merge->error, "%s", config_name);
    const char *class_name = hparams_class(input->hparams);
    input->class_name = class_name != NULL ? arena_strdup(merge->merged->arena, class_name) : "";
    return hparams_count(input->hparams, "num_hidden_layers|n_layer|n_layers|num_layers", 1, RECIPE_MAX_LAYERS,
                         &input->n_layers, merge->error) ||
           error_prefix(merge->error, "%s", config_name);
}

/* Lists the small files of a model that the merge depends on as guides: its configuration, and for a tokenizer that is
 * made of the models' own, those too. */
static void share_guides(const struct recipe_merge *merge, const struct checkpoint *input)
{
    bool makes_tokenizer = merge->recipe->vocabulary != VOCABULARY_COPIED || merge->recipe->chat_template != NULL;
    for (size_t i = 0; i < input->n_side_files; i++) {
        const struct side_file *file = &input->side_files[i];
        if (document_says_packing(file->name) || (makes_tokenizer && document_is_declared(file->name)))
            checkpoint_share_guide(merge->merged, file->source);
    }
}

static bool open_input(struct recipe_merge *merge, struct recipe_input *input)
{
    input->repository = repository_of(merge, input->named->path);
    input->checkpoint = open_model(merge, input->named);
    if (input->checkpoint == NULL)
        return false;
    checkpoint_join(merge->merged, BASE_MERGED, input->checkpoint);
    share_guides(merge, input->checkpoint);
    if (!check_kind(merge, input->checkpoint))
        return false;
    input->model = hf_model_of(input->checkpoint, merge->error);
    return input->model != NULL && read_config(merge, input);
}

static bool check_class(const struct recipe_merge *merge, const struct recipe_input *input)
{
    return strcmp(input->class_name, merge->inputs[0].class_name) == 0 ||
           error_set(merge->error,
                     "'%.200s' is a %.80s, but '%.200s' is a %.80s; models of a merge must be of one class",
                     input->named->text, input->class_name, merge->inputs[0].named->text, merge->inputs[0].class_name);
}

bool recipe_open_inputs(struct recipe_merge *merge)
{
    const struct recipe *recipe = merge->recipe;
    if (merge->options->recipe.depth >= MAX_DEPTH)
        return error_set(merge->error, "recipes name each other more than %d deep; does one name itself?", MAX_DEPTH);
    merge->inputs = arena_array(merge->merged->arena, recipe->n_models, sizeof *merge->inputs);
    for (size_t i = 0; i < recipe->n_models; i++) {
        merge->inputs[i].named = &recipe->models[i];
        if (!open_input(merge, &merge->inputs[i]))
            return error_prefix(merge->error, "model '%.200s'", recipe->models[i].text);
        if (!check_class(merge, &merge->inputs[i]))
            return false;
    }
    int first = recipe->slices[0].sources[0].model;
    merge->donor = &merge->inputs[recipe->base != NO_MODEL ? recipe->base : first];
    return true;
}

void recipe_close_inputs(struct recipe_merge *merge)
{
    for (size_t i = 0; merge->inputs != NULL && i < merge->recipe->n_models; i++) {
        hparams_free(merge->inputs[i].hparams);
        merge->inputs[i].hparams = NULL;
    }
}

bool recipe_layers(const struct recipe_merge *merge, const struct recipe_slice *slice,
                   const struct recipe_source *source, uint64_t *ret_first, uint64_t *ret_count)
{
    const struct recipe_input *input = &merge->inputs[source->model], *first = &merge->inputs[slice->sources[0].model];
    *ret_first = source->has_range ? source->first_layer : 0;
    *ret_count = source->has_range ? source->end_layer - source->first_layer : input->n_layers;
    if (source->has_range && source->end_layer > input->n_layers)
        return error_set(merge->error, "layer_range ends at %llu, but '%.200s' has %llu layers",
                         (unsigned long long)source->end_layer, input->named->text,
                         (unsigned long long)input->n_layers);
    return source->has_range || input->n_layers == first->n_layers ||
           error_set(merge->error, "'%.200s' has %llu layers, but '%.200s' has %llu; slices choose layers",
                     input->named->text, (unsigned long long)input->n_layers, first->named->text,
                     (unsigned long long)first->n_layers);
}

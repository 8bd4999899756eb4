#include "fs/lib/info/profile.h"

#include "base/text.h"
#include "formats/components.h"
#include "fs/tree/content_options.h"
#include "fs/tree/tensor_views.h"
#include "models/derive/adapter.h"
#include "models/derive/recipe_plan.h"
#include "models/diffusion/state_dict.h"
#include "models/facts.h"
#include "models/packings/packings.h"
#include "models/projectors/projector.h"
#include "models/quantize/mix.h"
#include "products/product.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t tensor_bytes(const struct tensor *tensor)
{
    return dtype_bytes(tensor->dtype, tensor_elements(tensor));
}

/* A packed weight, or a tensor that is no part of one. */
struct counted {
    const char *name;
    struct kind_total kind; /* with its own elements and bytes */
};

static void add(struct total *total, const struct total *more)
{
    total->n_tensors += more->n_tensors;
    total->n_elements += more->n_elements;
    total->n_bytes += more->n_bytes;
}

static struct counted count_packed(const struct unpacked *weight, const struct tensor_set *set, bool *is_part,
                                   struct arena *arena)
{
    struct counted counted = {weight->name, {packing_label(weight, arena), weight->packing, weight->bits, {0}}};
    counted.kind.total = (struct total){1, weight->view->n_elements, 0};
    for (unsigned i = 0; i < weight->n_parts; i++) {
        counted.kind.total.n_bytes += tensor_bytes(weight->parts[i]);
        is_part[weight->parts[i] - set->tensors] = true;
    }
    return counted;
}

static struct counted count_stored(const struct tensor *tensor)
{
    const struct total own = {1, tensor_elements(tensor), tensor_bytes(tensor)};
    return (struct counted){tensor->name, {tensor->dtype->name, NULL, 0, own}};
}

/* Lists tensors and packed weights to count, each once. A packed weight whose parts disagree counts as its parts. */
static struct counted *list_counted(const struct checkpoint *checkpoint, struct arena *arena, size_t *ret_count)
{
    const struct tensor_set *set = checkpoint->tensors;
    const struct unpacked_weights *found = &packings_of(checkpoint)->found;
    struct counted *list = memory_alloc((set->n_tensors + found->n_weights + 1) * sizeof *list);
    bool *is_part = arena_array(arena, set->n_tensors + 1, sizeof *is_part);
    size_t count = 0;
    for (size_t i = 0; i < found->n_weights; i++)
        if (found->weights[i].view != NULL)
            list[count++] = count_packed(&found->weights[i], set, is_part, arena);
    for (size_t i = 0; i < set->n_tensors; i++)
        if (!is_part[i])
            list[count++] = count_stored(&set->tensors[i]);
    *ret_count = count;
    return list;
}

static int more_bytes_first(const void *a, const void *b)
{
    const struct kind_total *left = a, *right = b;
    return (left->total.n_bytes < right->total.n_bytes) - (left->total.n_bytes > right->total.n_bytes);
}

static void sum_up(struct profile *profile, const struct counted *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct kind_total *kind = &list[i].kind;
        size_t at = 0;
        while (at < profile->n_kinds && strcmp(profile->kinds[at].name, kind->name) != 0)
            at++;
        add(&profile->all, &kind->total);
        if (at < profile->n_kinds)
            add(&profile->kinds[at].total, &kind->total);
        else if (at < PROFILE_MAX_KINDS)
            profile->kinds[profile->n_kinds++] = *kind;
    }
    qsort(profile->kinds, profile->n_kinds, sizeof *profile->kinds, more_bytes_first);
}

static const char *kind_of_tokenizer(const char *model)
{
    static const struct {
        const char *model, *kind;
    } kinds[] = {{"gpt2", "BPE"}, {"llama", "SPM"}, {"bert", "WPM"}, {"t5", "UGM"}, {"gemma4", "BPE"}};
    for (size_t i = 0; model != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].model, model) == 0)
            return kinds[i].kind;
    return model;
}

/* Gathers facts from GGUF's keys. */
static void gather_keys(struct profile *profile, const struct gguf_kvs *kvs, struct arena *arena)
{
    enum gguf_type type;
    uint64_t file_type;
    const struct gguf_kv *tokens = gguf_kvs_find(kvs, "tokenizer.ggml.tokens");
    profile->gguf = gguf_get_text(kvs, "general.architecture", arena);
    if (profile->gguf != NULL) {
        gguf_get_u64(kvs, arena_printf(arena, "%s.block_count", profile->gguf), &profile->n_layers);
        gguf_get_u64(kvs, arena_printf(arena, "%s.context_length", profile->gguf), &profile->context_length);
    }
    profile->tokenizer = kind_of_tokenizer(gguf_get_text(kvs, "tokenizer.ggml.model", arena));
    if (tokens != NULL)
        gguf_array_outline(tokens, &type, &profile->n_tokens);
    if (gguf_get_u64(kvs, "general.file_type", &file_type)) {
        const struct mix *mix = mix_of_file_type(file_type);
        profile->file_type = mix != NULL ? mix->name : arena_printf(arena, "%" PRIu64, file_type);
    }
}

/* Returns the length of a name's module: "model.visual" in "model.visual.blocks.0.norm1.weight". */
static size_t part_length(const char *name)
{
    size_t length = strcspn(name, ".");
    if (length == strlen("model") && strncmp(name, "model.", length + 1) == 0)
        length += 1 + strcspn(name + length + 1, ".");
    return length;
}

/* Returns "tensors of visual 390, model.language_model 398, lm_head 1", in the order of the tensors; NULL: too many. */
static const char *parts_of(const struct tensor_set *set, struct arena *arena)
{
    enum { MOST_PARTS = 12 };
    struct {
        const char *name;
        size_t length, n_tensors;
    } parts[MOST_PARTS];
    size_t n_parts = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *name = set->tensors[i].name;
        size_t length = part_length(name), at = 0;
        while (at < n_parts && (parts[at].length != length || strncmp(parts[at].name, name, length) != 0))
            at++;
        if (at == MOST_PARTS)
            return NULL;
        if (at == n_parts) {
            parts[n_parts].name = name;
            parts[n_parts].length = length;
            parts[n_parts++].n_tensors = 0;
        }
        parts[at].n_tensors++;
    }
    const char *text = NULL;
    for (size_t i = 0; i < n_parts; i++)
        text = arena_printf(arena, "%s%s%.*s %zu", i > 0 ? text : "tensors of ", i > 0 ? ", " : "",
                            (int)parts[i].length, parts[i].name, parts[i].n_tensors);
    return text;
}

/* Returns the beginnings that names of tensors have: "model.visual.*, visual.*". */
static const char *tower_parts(const struct tower *tower, const struct tensor_set *set, struct arena *arena)
{
    const char *text = "";
    for (const char *const *part = tower->parts; *part != NULL; part++)
        for (size_t i = 0; i < set->n_tensors; i++)
            if (text_starts_with(set->tensors[i].name, *part)) {
                text = arena_printf(arena, "%s%s%s*", text, *text != '\0' ? ", " : "", *part);
                break;
            }
    return text;
}

/* Gathers facts about the vision or audio tower, if the source has its tensors. */
static void gather_tower(struct profile *profile, const struct config_facts *config, const struct tensor_set *set,
                         const struct references *references, const struct counted *list, size_t count,
                         struct arena *arena)
{
    struct error unused;
    const struct family *projector = config_projector(config, references, &unused);
    for (size_t i = 0; projector != NULL && i < count; i++)
        if (tower_has(projector->tower, list[i].name))
            add(&profile->tower_total, &list[i].kind.total);
    if (profile->tower_total.n_tensors == 0)
        return;
    profile->tower = projector->summary;
    profile->tower_parts = tower_parts(projector->tower, set, arena);
}

/* Gathers facts from config.json, even if no GGUF can be made. */
static void gather_config(struct profile *profile, const struct checkpoint *checkpoint,
                          const struct references *references, const struct counted *list, size_t count,
                          struct arena *arena)
{
    struct error unused;
    const struct config_facts *config = config_facts_of(checkpoint, &unused);
    struct hparams *hparams = config != NULL ? hparams_of(checkpoint, &unused) : NULL;
    if (hparams == NULL)
        return;
    const struct family *family = config_family(config, references);
    uint64_t number;
    if (config->class_name != NULL)
        profile->architecture = config->class_name;
    if (family != NULL)
        profile->family = family->summary;
    if (profile->n_layers == 0 && hparams_count(hparams, BLOCK_COUNT, 0, UINT32_MAX, &number, &unused))
        profile->n_layers = number;
    if (profile->context_length == 0 &&
        hparams_count(hparams, "max_position_embeddings|n_positions|n_ctx|max_seq_len|seq_length", 0, UINT32_MAX,
                      &number, &unused))
        profile->context_length = number;
    if (config->describes_towers)
        profile->parts = parts_of(checkpoint->tensors, arena);
    gather_tower(profile, config, checkpoint->tensors, references, list, count, arena);
    hparams_free(hparams);
}

/* Gathers facts about a diffusion model; `dict` may be NULL. */
static void gather_diffusion(struct profile *profile, const struct state_dict *dict)
{
    const struct diffusion_architecture *architecture =
        dict != NULL ? dict->architecture : diffusion_architecture_named(profile->gguf);
    if (architecture == NULL)
        return;
    profile->family = architecture->summary;
    profile->architecture = architecture->summary;
    if (dict == NULL || dict->refusal == NULL)
        profile->gguf = architecture->name;
}

void profile_gather(struct profile *profile, const struct tree *tree, struct arena *arena)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    const struct references *references = &tree_options(tree)->request.references;
    *profile = (struct profile){.list = checkpoint->components != NULL ? checkpoint->components->list : NULL};
    if (checkpoint->n_sources == 0)
        return;
    size_t count;
    struct counted *list = list_counted(checkpoint, arena, &count);
    sum_up(profile, list, count);
    profile->n_stored = checkpoint->tensors->n_tensors;
    struct facts facts = facts_of(checkpoint);
    if (facts.is_adapter) {
        profile->adapter = adapter_summary(checkpoint, arena);
        free(list);
        return;
    }
    const struct state_dict *dict = state_dict_of(checkpoint);
    const struct gguf_edition *edition = facts.keys == NULL ? tree_object(tree, &gguf_product, OBJECT_WHOLE) : NULL;
    const struct gguf_model *model = edition != NULL ? edition->model : NULL;
    if (facts.keys != NULL || (model != NULL && model->family != NULL)) {
        gather_keys(profile, facts.keys != NULL ? facts.keys : &model->kvs, arena);
        profile->file_type = facts.keys != NULL ? profile->file_type : NULL;
        profile->architecture = profile->gguf;
    }
    gather_config(profile, checkpoint, references, list, count, arena);
    gather_diffusion(profile, dict);
    free(list);
}

size_t profile_components(const struct tree *tree)
{
    const struct components *components = tree_checkpoint(tree)->components;
    return components != NULL ? components->count : 0;
}

void profile_component(struct component_profile *component, struct tree *tree, size_t number, struct arena *arena)
{
    const struct component *of = &tree_checkpoint(tree)->components->items[number];
    *component = (struct component_profile){of->name, of->class_name, tree_of_component(tree, of), {0}};
    if (component->tree != NULL)
        profile_gather(&component->facts, component->tree, arena);
}

static void describe_tensors(struct merge_profile *merge, const struct recipe_plan *plan,
                             const struct recipe_steps *steps, struct arena *arena)
{
    merge->n_tensors = steps->count;
    merge->tensors = arena_array(arena, steps->count + 1, sizeof *merge->tensors);
    for (size_t i = 0; i < steps->count; i++) {
        struct buffer *text = &merge->tensors[i].plan;
        merge->tensors[i].name = steps->items[i].name;
        recipe_plan_describe(plan, &steps->items[i], text);
        arena_adopt(arena, text->bytes, text->length);
    }
}

bool profile_merge(struct merge_profile *merge, const struct checkpoint *checkpoint, bool with_tensors,
                   struct arena *arena)
{
    const struct recipe_plan *plan = recipe_plan_of(checkpoint);
    if (plan == NULL)
        return false;
    const struct recipe *recipe = plan->recipe;
    const struct recipe_steps steps = recipe_plan_steps(plan, arena);
    const char **models = arena_array(arena, recipe->n_models + 1, sizeof *models);
    for (size_t i = 0; i < recipe->n_models; i++)
        models[i] = recipe->models[i].text;
    *merge = (struct merge_profile){
        .method = recipe->method->name,
        .base = recipe->base != NO_MODEL ? recipe->models[recipe->base].text : NULL,
        .config = plan->donor,
        .models = models,
        .n_models = recipe->n_models,
        .n_bytes = recipe_steps_bytes(&steps),
        .cost = recipe_plan_cost(plan),
    };
    if (with_tensors)
        describe_tensors(merge, plan, &steps, arena);
    return true;
}

static size_t count_files(const struct shown_tensors *shown, const struct content_options *options, unsigned slot)
{
    struct tensor_file unused;
    size_t count = 0;
    for (size_t i = 0, n = shown_tensors_count(shown); i < n; i++)
        count += tensor_file_at(shown, i, options, slot, &unused);
    return count;
}

struct file_kinds profile_tensor_files(const struct tree *tree, bool counts, struct arena *arena)
{
    const struct shown_tensors *shown = tree_shown(tree);
    const struct content_options *options = tree_options(tree);
    unsigned n_slots = tensor_slots();
    size_t *firsts = arena_array(arena, n_slots, sizeof *firsts);
    struct file_kinds kinds = {arena_array(arena, n_slots, sizeof *kinds.items), 0};
    struct tensor_file file;
    tensor_first_files(shown, options, firsts);
    for (unsigned slot = SLOT_RAW; slot < n_slots; slot++)
        if (firsts[slot] != SIZE_MAX && tensor_file_at(shown, firsts[slot], options, slot, &file))
            kinds.items[kinds.count++] =
                (struct file_kind){arena_printf(arena, "%s%s", file.name, file.numpy ? ".npy" : ""),
                                   counts ? count_files(shown, options, slot) : 0};
    return kinds;
}

const char *profile_reference(struct tree *tree, struct arena *arena)
{
    struct node_attributes unused;
    const struct reference_tool *tool = reference_of_path("gguf/", state_dict_of(tree_checkpoint(tree)) != NULL);
    return tree_lookup(tree, TREE_ROOT, "gguf", &unused)
               ? arena_printf(arena, "%s %s", tool->name,
                              reference_version(tool, &tree_options(tree)->request.references, arena))
               : NULL;
}

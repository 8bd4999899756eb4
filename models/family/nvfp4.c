#include "models/family/nvfp4.h"

#include "base/text.h"
#include "formats/documents.h"
#include "models/packings/packings.h"
#include "models/relation/pattern.h"
#include "quant/views/convert.h"

#include <ctype.h>
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"blk.{}.ffn_down_exps.weight", "blk.{}.ffn_gate_exps.weight",
                                    "blk.{}.ffn_up_exps.weight"};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* A weight and the scales after it. */
struct group {
    size_t at, n_tensors;
    uint64_t layer; /* of experts; UINT64_MAX: no experts */
    size_t turn;    /* the turn of the layer's first experts */
    size_t kind;
};

static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static struct group group_of(const struct tensor *tensor, size_t at)
{
    struct group group = {.at = at, .n_tensors = 1, .layer = UINT64_MAX};
    uint64_t numbers[PATTERN_NUMBERS];
    for (size_t kind = 0; kind < N_KINDS; kind++)
        if (pattern_match(kinds[kind], tensor->name, tensor->name_length, numbers)) {
            group.layer = numbers[0];
            group.kind = kind;
        }
    return group;
}

static size_t find_groups(const struct tensor_set *set, size_t first, size_t end, bool experts_are_last,
                          struct group *groups)
{
    size_t n_groups = 0;
    for (size_t i = first; i < end; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (n_groups > 0 && !text_ends_with(tensor->name, ".weight")) {
            groups[n_groups - 1].n_tensors++;
            continue;
        }
        struct group group = group_of(tensor, i);
        bool is_of_experts = group.layer != UINT64_MAX;
        if (n_groups > 0 && is_of_experts && groups[n_groups - 1].layer == group.layer)
            group.turn = groups[n_groups - 1].turn;
        else
            group.turn = n_groups + (is_of_experts && experts_are_last ? end : 0);
        groups[n_groups++] = group;
    }
    return n_groups;
}

void nvfp4_order(struct tensor_set *set, size_t first, size_t end, bool experts_are_last)
{
    struct tensor *moved = memory_alloc((end - first + 1) * sizeof *moved);
    struct group *groups = memory_alloc((end - first + 1) * sizeof *groups);
    size_t n_groups = find_groups(set, first, end, experts_are_last, groups), n_moved = 0;
    qsort(groups, n_groups, sizeof *groups, compare_groups);
    for (size_t i = 0; i < n_groups; i++) {
        memcpy(moved + n_moved, set->tensors + groups[i].at, groups[i].n_tensors * sizeof *moved);
        n_moved += groups[i].n_tensors;
    }
    memcpy(tensor_set_edit(set) + first, moved, n_moved * sizeof *moved);
    free(groups);
    free(moved);
}

enum { KINDS = 2 };

static const char *const suffixes[KINDS] = {"scale", "input_scale"};

/* The scales of one weight of the GGUF. */
struct of_weight {
    const char *name;
    uint64_t n_members; /* experts, or 1 */
    bool is_gathered;
    float *values[KINDS];
};

struct nvfp4_scales {
    struct arena *arena;
    void *tree; /* of struct of_weight, by name */
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct of_weight *)a)->name, ((const struct of_weight *)b)->name);
}

static struct of_weight *find_or_add(struct nvfp4_scales *factors, const char *name, uint64_t n_members,
                                     bool is_gathered)
{
    const struct of_weight key = {.name = name};
    void *const *found = tfind(&key, &factors->tree, compare);
    if (found != NULL)
        return *found;
    struct of_weight *weight = arena_alloc(factors->arena, sizeof *weight);
    *weight = (struct of_weight){.name = name, .n_members = n_members, .is_gathered = is_gathered};
    for (unsigned kind = 0; kind < KINDS; kind++) {
        weight->values[kind] = arena_array(factors->arena, n_members, sizeof *weight->values[kind]);
        for (uint64_t i = 0; i < n_members; i++)
            weight->values[kind][i] = 1;
    }
    if (tsearch(weight, &factors->tree, compare) == NULL)
        memory_exhausted(sizeof *weight);
    return weight;
}

static bool read_weight(struct nvfp4_scales *factors, const struct relation_job *job, const struct tensor *tensor,
                        const struct unpacked *unpacked, struct error *error)
{
    struct relation_match match;
    uint64_t member, n_members = 1;
    if (!relation_find(job->relation, job->direction, job->dimensions, NULL, tensor->name, &match) ||
        match.entry->row->there == NULL)
        return true; /* relating the tensors reports the cause */
    const char *name = relation_target(job, &match, &member);
    bool is_gathered = member != UINT64_MAX;
    if (is_gathered)
        n_members = dimensions_get(job->dimensions, match.entry->member[job->direction]);
    if (n_members > job->set->n_tensors || (is_gathered && member >= n_members))
        return true;
    struct of_weight *weight = find_or_add(factors, name, n_members, is_gathered);
    if (is_gathered && member >= weight->n_members)
        return true; /* another tensor has that name */
    for (unsigned kind = 0; kind < KINDS; kind++)
        if (unpacked->forms->factors[kind] != NULL &&
            !convert_values(unpacked->forms->factors[kind], 0, 1, &weight->values[kind][is_gathered ? member : 0],
                            error))
            return error_prefix(error, "tensor '%.200s'", unpacked->name);
    return true;
}

struct nvfp4_scales *nvfp4_scales_read(const struct relation_job *job, const struct unpacked *const *unpacked,
                                       struct error *error)
{
    struct nvfp4_scales *factors = memory_alloc(sizeof *factors);
    *factors = (struct nvfp4_scales){.arena = job->arena};
    for (size_t i = 0; i < job->set->n_tensors; i++)
        if (unpacked[i] != NULL && unpacked[i]->forms->blocks != NULL &&
            (unpacked[i]->forms->factors[0] != NULL || unpacked[i]->forms->factors[1] != NULL) &&
            !read_weight(factors, job, &job->set->tensors[i], unpacked[i], error)) {
            nvfp4_scales_free(factors);
            return NULL;
        }
    return factors;
}

void nvfp4_scales_free(struct nvfp4_scales *factors)
{
    if (factors == NULL)
        return;
    while (factors->tree != NULL)
        tdelete(*(void **)factors->tree, &factors->tree, compare);
    free(factors);
}

/* Reports whether all scales count as 1, in the converter's comparison: numpy's for several scales. NaN does not. */
static bool are_ones(const struct of_weight *weight, const float *values)
{
    bool all = true;
    for (uint64_t i = 0; i < weight->n_members; i++) {
        double distance = fabs((double)values[i] - 1);
        all &= weight->is_gathered ? distance <= 1e-6 + 1e-5 : distance < 1e-6;
    }
    return all;
}

void nvfp4_scales_beside(const struct nvfp4_scales *factors, const char *name,
                         void (*add)(void *context, const char *name, const struct view *view), void *context)
{
    const struct of_weight key = {.name = name};
    void *const *found = tfind(&key, (void *const *)&factors->tree, compare);
    const char *dot = strrchr(name, '.');
    for (unsigned kind = 0; found != NULL && dot != NULL && kind < KINDS; kind++) {
        const struct of_weight *weight = *found;
        if (are_ones(weight, weight->values[kind]))
            continue;
        const char *beside = arena_printf(factors->arena, "%.*s.%s", (int)(dot - name), name, suffixes[kind]);
        add(context, beside, view_numbers(factors->arena, 1, &weight->n_members, weight->values[kind]));
    }
}

/* The algorithm of a module's weights. */
struct nvfp4_activations_layer {
    const char *name, *algorithm;
};

struct algorithms {
    const char *usual; /* NULL: none */
    void *layers;      /* a tree of struct layer, by name */
};

static int compare_layers(const void *a, const void *b)
{
    return strcmp(((const struct nvfp4_activations_layer *)a)->name, ((const struct nvfp4_activations_layer *)b)->name);
}

static void add_layers(struct algorithms *algorithms, const struct model_builder *builder, const struct json *layers)
{
    struct arena *arena = builder->model->arena;
    for (struct json_member member = {0}; json_next_member(layers, &member);) {
        const char *algorithm = json_string(json_get(member.value, "quant_algo"), NULL);
        const char *name = family_tensor_name(builder->family, builder->hf, &builder->dimensions,
                                              arena_strdup(arena, member.key), arena);
        if (name == NULL || !json_is(member.value, JSON_OBJECT))
            continue;
        struct nvfp4_activations_layer *nvfp4_activations_layer = arena_alloc(arena, sizeof *nvfp4_activations_layer);
        *nvfp4_activations_layer =
            (struct nvfp4_activations_layer){name, algorithm != NULL ? arena_strdup(arena, algorithm) : ""};
        if (tsearch(nvfp4_activations_layer, &algorithms->layers, compare_layers) == NULL)
            memory_exhausted(sizeof *nvfp4_activations_layer);
    }
}

/* Reads what config.json says, and what it lacks from hf_quant_config.json. */
static bool read_algorithms(const struct model_builder *builder, struct algorithms *algorithms, struct error *error)
{
    struct packing_config config;
    struct arena *arena = builder->model->arena;
    if (!packing_config_open(builder->model->checkpoint, arena, &config, error))
        return false;
    const struct json *own = json_get(document_root(config.documents[1]), "quantization"),
                      *layers = json_get(config.quantization, "quantized_layers"),
                      *usual = json_get(config.quantization, "quant_algo");
    if (json_string(usual, NULL) == NULL || json_count_members(layers) == 0) {
        usual = json_get(own, "quant_algo") != NULL ? json_get(own, "quant_algo") : usual;
        layers = json_get(own, "quantized_layers") != NULL ? json_get(own, "quantized_layers") : layers;
    }
    const char *text = json_string(usual, NULL);
    *algorithms = (struct algorithms){.usual = text != NULL ? arena_strdup(arena, text) : NULL};
    add_layers(algorithms, builder, layers);
    packing_config_close(&config);
    return true;
}

/* Removes the number of an expert: "mlp.experts.3.up_proj" becomes "mlp.experts.up_proj". */
static void drop_expert(char *name)
{
    static const char experts[] = ".experts.";
    char *at = strstr(name, experts), *end;
    if (at == NULL)
        return;
    at += strlen(experts);
    for (end = at; isdigit((unsigned char)*end);)
        end++;
    if (end > at && *end == '.')
        memmove(at, end + 1, strlen(end + 1) + 1);
}

static bool is_weights_only(const struct algorithms *algorithms, const char *tensor, bool is_gathered,
                            struct arena *arena)
{
    const char *algorithm = algorithms->usual;
    char *name = arena_strdup(arena, tensor);
    if (is_gathered)
        drop_expert(name);
    for (char *dot; (dot = strrchr(name, '.')) != NULL;) {
        *dot = '\0';
        const struct nvfp4_activations_layer key = {.name = name};
        void *const *found = tfind(&key, (void *const *)&algorithms->layers, compare_layers);
        if (found == NULL)
            continue;
        algorithm = (*(const struct nvfp4_activations_layer *const *)found)->algorithm;
        break;
    }
    return algorithm != NULL && strcmp(algorithm, "W4A16_NVFP4") == 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool nvfp4_find_weights_only(struct model_builder *builder, const struct relation_job *job,
                             const struct unpacked *const *unpacked, struct error *error)
{
    struct gguf_model *model = builder->model;
    struct algorithms algorithms;
    if (!packings_of(model->checkpoint)->is_nvfp4 || !follows(&model->references, WEIGHTS_ONLY_NVFP4))
        return true;
    if (!read_algorithms(builder, &algorithms, error))
        return false;
    const char **names = arena_array(model->arena, job->set->n_tensors + 1, sizeof(const char *));
    size_t n = 0, n_kept = 0;
    for (size_t i = 0; i < job->set->n_tensors; i++) {
        struct relation_match match;
        uint64_t member;
        const char *name = job->set->tensors[i].name;
        const struct view *blocks = unpacked[i] != NULL ? unpacked[i]->forms->blocks : NULL;
        if (blocks == NULL || strcmp(blocks->dtype->name, "NVFP4") != 0 ||
            !relation_find(job->relation, job->direction, job->dimensions, NULL, name, &match) ||
            match.entry->row->there == NULL)
            continue;
        const char *target = relation_target(job, &match, &member);
        if (is_weights_only(&algorithms, name, member != UINT64_MAX, model->arena))
            names[n++] = target;
    }
    while (algorithms.layers != NULL)
        tdelete(*(void **)algorithms.layers, &algorithms.layers, compare_layers);
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 0; i < n; i++)
        if (n_kept == 0 || strcmp(names[n_kept - 1], names[i]) != 0)
            names[n_kept++] = names[i];
    model->weights_only = names;
    model->n_weights_only = n_kept;
    return true;
}

void nvfp4_write_weights_only(struct gguf_model *model)
{
    struct buffer names = {0}, values = {0};
    if (model->n_weights_only == 0)
        return;
    for (size_t i = 0; i < model->n_weights_only; i++) {
        gguf_append_string(&names, model->weights_only[i], strlen(model->weights_only[i]));
        buffer_append_le(&values, 0, 1);
    }
    gguf_set_array(&model->kvs, "general.tensor_extra.name", GGUF_STRING, model->n_weights_only, &names);
    gguf_set_array(&model->kvs, "general.tensor_extra.prec_a4", GGUF_BOOL, model->n_weights_only, &values);
}

#include "models/family/nvfp4.h"

#include "formats/documents.h"
#include "models/packings/packings.h"

#include <ctype.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* The algorithm of a module's weights. */
struct layer {
    const char *name, *algorithm;
};

struct algorithms {
    const char *usual; /* NULL: none */
    void *layers;      /* a tree of struct layer, by name */
};

static int compare_layers(const void *a, const void *b)
{
    return strcmp(((const struct layer *)a)->name, ((const struct layer *)b)->name);
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
        struct layer *layer = arena_alloc(arena, sizeof *layer);
        *layer = (struct layer){name, algorithm != NULL ? arena_strdup(arena, algorithm) : ""};
        if (tsearch(layer, &algorithms->layers, compare_layers) == NULL)
            memory_exhausted(sizeof *layer);
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
        const struct layer key = {.name = name};
        void *const *found = tfind(&key, (void *const *)&algorithms->layers, compare_layers);
        if (found == NULL)
            continue;
        algorithm = (*(const struct layer *const *)found)->algorithm;
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

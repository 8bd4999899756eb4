#include "models/engines/compressed_tensors.h"

#include "base/text.h"
#include "formats/documents.h"
#include "formats/json_write.h"
#include "formats/safetensors/write.h"
#include "models/derive/plain_config.h"
#include "quant/convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char weight[] = ".weight";

struct ct_model {
    const struct hf_model *model;
    const struct tensor_set *tensors;
    uint32_t *file_of; /* by tensor */
    const char **names;
    size_t n_files;
    bool keeps_files; /* the files are the source's */
    bool has_experts; /* config.json has a key for them */
};

/* Files. */

bool ct_keeps_files(const struct checkpoint *checkpoint, bool is_packed)
{
    for (size_t i = 0; i < checkpoint->n_sources; i++)
        if (!text_ends_with(source_name(checkpoint->sources[i]), ".safetensors"))
            return false;
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++)
        if (checkpoint->tensors->tensors[i].view != NULL || checkpoint->tensors->tensors[i].source == NULL)
            return false;
    return !is_packed;
}

/* Sets the file of each tensor. Those of a file most often follow each other. */
static void find_files(struct ct_model *made)
{
    const struct checkpoint *checkpoint = made->model->checkpoint;
    for (size_t i = 0, file = 0; i < made->tensors->n_tensors; i++) {
        for (size_t k = 0; k < made->n_files && checkpoint->sources[file] != made->tensors->tensors[i].source; k++)
            file = (file + 1) % made->n_files;
        made->file_of[i] = (uint32_t)file;
    }
}

/* Experts in one tensor are taken apart: [experts, rows, columns]. */
static const struct stacked {
    const char *name;     /* part of the tensor's name */
    const char *parts[2]; /* the names of an expert's matrices, below each other */
} stacked[] = {
    {"gate_up_proj", {"gate_proj", "up_proj"}},
    {"down_proj", {"down_proj"}},
};

static const struct stacked *find_stacked(const struct tensor *tensor)
{
    for (size_t i = 0; i < sizeof stacked / sizeof *stacked && tensor->rank == 3 && tensor->refusal == NULL; i++)
        if (strstr(tensor->name, stacked[i].name) != NULL)
            return &stacked[i];
    return NULL;
}

static size_t n_parts(const struct stacked *kind)
{
    return kind->parts[1] != NULL ? 2 : 1;
}

/* Counts the tensors after experts are taken apart; 0 if there are none in one tensor. */
static bool count_taken_apart(const struct tensor_set *set, size_t *ret_n, struct error *error)
{
    uint64_t n = 0;
    bool any = false;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        const struct stacked *kind = find_stacked(tensor);
        if (kind != NULL && tensor->shape[1] % n_parts(kind) != 0)
            return error_set(error, "'%.200s': its %" PRIu64 " rows are not those of two matrices", tensor->name,
                             tensor->shape[1]);
        if (kind != NULL && tensor->shape[0] > TENSOR_SET_MAX)
            return error_set(error, "'%.200s': %" PRIu64 " experts are too many", tensor->name, tensor->shape[0]);
        any = any || kind != NULL;
        n += kind != NULL ? tensor->shape[0] * n_parts(kind) : 1;
        if (n > TENSOR_SET_MAX)
            return error_set(error, "taking the experts apart makes more than %d tensors", TENSOR_SET_MAX);
    }
    *ret_n = any ? n : 0;
    return true;
}

static void take_apart(struct tensor_set *to, struct arena *arena, const struct tensor *tensor,
                       const struct stacked *kind)
{
    const struct view *view = tensor_view(tensor, arena);
    const char *at = strstr(tensor->name, kind->name), *rest = at + strlen(kind->name);
    uint64_t rows = tensor->shape[1] / n_parts(kind), shape[2] = {rows, tensor->shape[2]};
    for (uint64_t expert = 0; expert < tensor->shape[0]; expert++)
        for (size_t part = 0; part < n_parts(kind); part++) {
            const struct view *matrix =
                view_slice(arena, view_slice(arena, view, 0, expert, 1, 1), 1, part * rows, rows, 1);
            const char *name =
                arena_printf(arena, "%.*s%" PRIu64 ".%s%s%s", (int)(at - tensor->name), tensor->name, expert,
                             kind->parts[part], rest, text_ends_with(rest, weight) ? "" : weight);
            tensor_set_add_view(to, name, view_reshape(arena, matrix, 2, shape));
        }
}

/* Replaces tensors of several experts by those of each. */
static bool take_experts_apart(struct ct_model *made, struct arena *arena, struct error *error)
{
    const struct tensor_set *from = made->tensors;
    struct tensor_set *to = tensor_set_new(arena);
    size_t n = 0;
    if (!count_taken_apart(from, &n, error))
        return false;
    if (n == 0)
        return true;
    uint32_t *file_of = arena_array(arena, n, sizeof *file_of);
    for (size_t i = 0; i < from->n_tensors; i++) {
        const struct stacked *kind = find_stacked(&from->tensors[i]);
        size_t first = to->n_tensors;
        if (kind != NULL)
            take_apart(to, arena, &from->tensors[i], kind);
        else
            tensor_set_add(to, &from->tensors[i]);
        for (size_t k = first; k < to->n_tensors; k++)
            file_of[k] = made->file_of[i];
    }
    made->tensors = to;
    made->file_of = file_of;
    return tensor_set_seal(to, error);
}

/* Reads config.json without the packing that it describes; *ret_config is NULL if there is none. */
static bool read_config(const struct hf_model *model, struct json_document **ret_config, struct error *error)
{
    struct buffer text = {0};
    struct document *document = NULL;
    if (model->config != NULL)
        buffer_append(&text, model->config, model->config_length);
    else if (!document_open(model->checkpoint, "config.json", &document, error))
        return false;
    else if (document != NULL)
        plain_config(document_root(document), &text);
    document_close(document);
    *ret_config = text.length > 0 ? json_parse_python((const char *)text.bytes, text.length, error) : NULL;
    bool good = *ret_config != NULL || text.length == 0;
    buffer_free(&text);
    return good;
}

static bool names_experts(const struct json *config)
{
    for (struct json_member member = {0}; json_next_member(config, &member);)
        if (strstr(member.key, "experts") != NULL)
            return true;
    return false;
}

struct ct_model *ct_model_new(struct arena *arena, const struct hf_model *model, bool keeps_files, struct error *error)
{
    const struct checkpoint *checkpoint = model->checkpoint;
    struct ct_model *made = arena_alloc(arena, sizeof *made);
    struct json_document *config;
    *made = (struct ct_model){.model = model, .keeps_files = keeps_files};
    made->tensors = keeps_files ? checkpoint->tensors : model->tensors;
    made->n_files = keeps_files ? checkpoint->n_sources : 1;
    made->names = arena_array(arena, made->n_files, sizeof *made->names);
    made->file_of = arena_array(arena, made->tensors->n_tensors, sizeof *made->file_of);
    for (size_t i = 0; i < made->n_files; i++)
        made->names[i] = keeps_files ? source_name(checkpoint->sources[i]) : "model.safetensors";
    if (keeps_files)
        find_files(made);
    else
        memset(made->file_of, 0, made->tensors->n_tensors * sizeof *made->file_of);
    if (!take_experts_apart(made, arena, error) || !read_config(model, &config, error))
        return NULL;
    made->has_experts = config != NULL && names_experts(json_root(config));
    json_free(config);
    return made;
}

/* Which tensors are quantized. */

/* Modules that stay as they are: the rules that the tool's own examples use. */
static const struct ignored {
    const char *pattern, *name, *ending; /* a name, or the ending that a regular expression stands for */
    bool of_experts;                     /* only in models with experts */
} ignored[] = {
    {"re:.*gate$", NULL, "gate", true},
    {"lm_head", "lm_head", NULL, false},
    {"model.embed_tokens", "model.embed_tokens", NULL, false},
};

static bool ends_with(const char *text, size_t length, const char *ending)
{
    size_t n = strlen(ending);
    return length >= n && memcmp(text + length - n, ending, n) == 0;
}

static bool is_ignored(const struct ct_model *model, const char *module, size_t length)
{
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        const struct ignored *rule = &ignored[i];
        if (rule->of_experts && !model->has_experts)
            continue;
        if (rule->name != NULL ? length == strlen(rule->name) && memcmp(module, rule->name, length) == 0
                               : ends_with(module, length, rule->ending))
            return true;
    }
    return false;
}

/* Reports whether a tensor is the weight of a module that the tool quantizes; *ret_length is that of its name. */
static bool is_target(const struct ct_model *model, const struct tensor *tensor, size_t *ret_length)
{
    size_t length = tensor->name_length;
    if (!ends_with(tensor->name, length, weight))
        return false;
    *ret_length = length - strlen(weight);
    return !ends_with(tensor->name, *ret_length, "norm") && !is_ignored(model, tensor->name, *ret_length);
}

/* Modules that engines fuse, and that share the scale of a tensor: the ends of their names. The first is the one whose
 * file has all of them. */
enum { FUSED_MOST = 3 };
static const struct fused_set {
    const char *within[2]; /* the end of the module that holds them; none: any */
    const char *ends[FUSED_MOST];
} fused_sets[] = {
    {{"attn", "attention"}, {".q_proj", ".k_proj", ".v_proj"}},
    {{"attn", "attention"}, {".wq_a", ".wkv_a_with_mqa"}},
    {{"mlp"}, {".gate_proj", ".up_proj"}},
    {{NULL}, {".w1", ".w3"}},
};

static bool is_within(const struct fused_set *set, const char *name, size_t stem)
{
    for (size_t i = 0; i < sizeof set->within / sizeof *set->within && set->within[i] != NULL; i++)
        if (ends_with(name, stem, set->within[i]))
            return true;
    return set->within[0] == NULL;
}

/* Returns the set of a module, and the length of the name's start that its members share; NULL: none. */
static const struct fused_set *set_of(const char *module, size_t length, size_t *ret_stem)
{
    for (size_t i = 0; i < sizeof fused_sets / sizeof *fused_sets; i++)
        for (size_t k = 0; k < FUSED_MOST && fused_sets[i].ends[k] != NULL; k++) {
            const char *end = fused_sets[i].ends[k];
            if (ends_with(module, length, end) && is_within(&fused_sets[i], module, length - strlen(end))) {
                *ret_stem = length - strlen(end);
                return &fused_sets[i];
            }
        }
    return NULL;
}

/* Finds the targets that are fused with a target, itself included, in the order of their set; returns their number. */
static size_t find_fused(const struct ct_model *model, const struct tensor *tensor, size_t length,
                         const struct tensor *fused[FUSED_MOST])
{
    size_t n = 0, stem, member_length;
    const struct fused_set *set = set_of(tensor->name, length, &stem);
    struct arena *scratch = arena_new();
    for (size_t k = 0; set != NULL && k < FUSED_MOST && set->ends[k] != NULL; k++) {
        const char *name = arena_printf(scratch, "%.*s%s%s", (int)stem, tensor->name, set->ends[k], weight);
        const struct tensor *member = tensor_set_find_text(model->tensors, name);
        if (member != NULL && member->rank == 2 && is_target(model, member, &member_length))
            fused[n++] = member;
    }
    arena_free(scratch);
    if (n == 0)
        fused[n++] = tensor;
    return n;
}

/* The artifact of a file. */

struct maker {
    const struct ct_model *model;
    const struct ct_scheme *scheme;
    struct artifact *artifact;
    size_t capacity;
    struct arena *arena;
    struct error *error;
};

static void put(struct maker *maker, const struct tensor *tensor, const struct dtype *dtype)
{
    struct artifact *artifact = maker->artifact;
    if (artifact->n_tensors == maker->capacity)
        return;
    artifact->tensors[artifact->n_tensors++] = (struct artifact_tensor){tensor, encoding_of(dtype)};
}

static void put_part(struct maker *maker, const struct tensor *of, size_t module, const char *suffix,
                     const struct view *view)
{
    struct arena *arena = maker->arena;
    struct tensor *part = arena_alloc(arena, sizeof *part);
    char *name = arena_alloc(arena, module + strlen(suffix) + 1);
    memcpy(name, of->name, module);
    strcpy(name + module, suffix);
    *part = (struct tensor){.name = name,
                            .name_length = (uint32_t)(module + strlen(suffix)),
                            .rank = (uint8_t)view->rank,
                            .dtype = view->dtype,
                            .shape = view->shape,
                            .view = view};
    put(maker, part, view->dtype);
}

static const struct dtype *written_dtype(const struct ct_model *model, const struct tensor *tensor)
{
    return model->keeps_files ? tensor->dtype : hf_written(model->model, tensor);
}

static const struct view *matrix_of(struct maker *maker, const struct tensor *tensor)
{
    struct arena *arena = maker->arena;
    return view_convert(arena, tensor_view(tensor, arena), written_dtype(maker->model, tensor));
}

static const struct view *shape_of(struct arena *arena, const struct view *matrix)
{
    enum { NUMBER = 8 };
    static const uint64_t two[1] = {2};
    uint8_t *bytes = arena_alloc(arena, 2 * NUMBER);
    for (unsigned i = 0; i < 2 * NUMBER; i++)
        bytes[i] = (uint8_t)(matrix->shape[i / NUMBER] >> 8 * (i % NUMBER));
    return view_literal(arena, &i64_dtype, 1, two, bytes);
}

static struct fused *fuse(struct maker *maker, const struct tensor *tensor, size_t module)
{
    const struct tensor *members[FUSED_MOST];
    const struct view *matrices[FUSED_MOST];
    size_t n = find_fused(maker->model, tensor, module, members);
    for (size_t i = 0; i < n; i++)
        matrices[i] = matrix_of(maker, members[i]);
    return fused_new(maker->arena, matrices, n);
}

static bool put_quantized(struct maker *maker, const struct tensor *tensor, size_t module)
{
    struct arena *arena = maker->arena;
    const struct ct_scheme *scheme = maker->scheme;
    const struct grouping *grouping = &scheme->grouping;
    if (tensor->refusal != NULL)
        return error_set(maker->error, "'%.200s': %s", tensor->name, tensor->refusal);
    const struct view *matrix = matrix_of(maker, tensor);
    if (!grouped_possible(matrix, grouping, maker->error))
        return error_prefix(maker->error, "'%.200s'", tensor->name);
    struct fused *fused = grouping->scale == SCALE_OF_TENSOR ? fuse(maker, tensor, module) : NULL;
    const struct view *codes = view_group_codes(arena, matrix, grouping, fused, dtype_by_name(scheme->code_dtype));
    put_part(maker, tensor, module, scheme->form == CT_PLAIN ? ".weight" : ".weight_packed", codes);
    put_part(maker, tensor, module, ".weight_scale", view_group_scales(arena, matrix, grouping, fused));
    if (scheme->form == CT_PACKED)
        put_part(maker, tensor, module, ".weight_shape", shape_of(arena, matrix));
    if (grouping->scale == SCALE_ASYMMETRIC)
        put_part(maker, tensor, module, ".weight_zero_point", view_group_zero_points(arena, matrix, grouping));
    if (fused != NULL)
        put_part(maker, tensor, module, ".weight_global_scale", view_fused_scale(arena, fused));
    return true;
}

/* Returns the file of a tensor's parts: for fused weights that of the first of them. */
static size_t file_of(const struct maker *maker, const struct tensor *tensor, bool is_quantized, size_t module)
{
    const struct tensor *fused[FUSED_MOST] = {tensor};
    if (is_quantized && maker->scheme->grouping.scale == SCALE_OF_TENSOR)
        find_fused(maker->model, tensor, module, fused);
    return maker->model->file_of[fused[0] - maker->model->tensors->tensors];
}

bool ct_artifact(const struct ct_model *model, const struct ct_scheme *scheme, size_t file, struct arena *arena,
                 struct artifact *ret_artifact, struct error *error)
{
    enum { MOST_PARTS = 4 };
    struct artifact artifact = {.container = &safetensors_container};
    struct maker maker = {model, scheme, &artifact, MOST_PARTS * model->tensors->n_tensors, arena, error};
    bool good = true;
    artifact_reserve(&artifact, maker.capacity);
    artifact.n_tensors = 0;
    for (size_t i = 0; i < model->tensors->n_tensors && good; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        size_t module = 0;
        bool is_quantized = is_target(model, tensor, &module);
        if (file_of(&maker, tensor, is_quantized, module) != file)
            continue;
        else if (is_quantized)
            good = put_quantized(&maker, tensor, module);
        else
            put(&maker, tensor, written_dtype(model, tensor));
    }
    if (good)
        *ret_artifact = artifact;
    else
        artifact_free(&artifact);
    return good;
}

/* Documents. */

struct index {
    struct tensor *tensors; /* names and sizes alone; the texts live in the arena */
    uint32_t *file_of;
    size_t n;
    uint64_t total_size;
};

static void add_to_index(struct index *index, const struct artifact *artifact, size_t file)
{
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        const struct artifact_tensor *written = &artifact->tensors[i];
        index->tensors[index->n] = *written->tensor;
        index->file_of[index->n++] = (uint32_t)file;
        index->total_size += artifact_tensor_bytes(written);
    }
}

static void put_index(const struct ct_model *model, const struct index *index, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    uint32_t *by_name = tensors_by_name(index->tensors, index->n);
    json_put_template(&writer, "{'metadata': {'total_size': %u}, 'weight_map': {", index->total_size);
    for (size_t i = 0; i < index->n; i++) {
        const struct tensor *tensor = &index->tensors[by_name[i]];
        json_put_key(&writer, tensor->name, tensor->name_length);
        json_put_text(&writer, NULL, model->names[index->file_of[by_name[i]]]);
    }
    json_end(&writer);
    json_end(&writer);
    free(by_name);
}

bool ct_write_index(const struct ct_model *model, const struct ct_scheme *scheme, struct buffer *out,
                    struct error *error)
{
    struct artifact *artifacts = memory_alloc((model->n_files + 1) * sizeof *artifacts);
    struct arena *arena = arena_new();
    struct index index = {0};
    size_t n_artifacts = 0, n_tensors = 0;
    while (n_artifacts < model->n_files &&
           ct_artifact(model, scheme, n_artifacts, arena, &artifacts[n_artifacts], error))
        n_tensors += artifacts[n_artifacts++].n_tensors;
    bool good = n_artifacts == model->n_files;
    index.tensors = memory_alloc((n_tensors + 1) * sizeof *index.tensors);
    index.file_of = memory_alloc((n_tensors + 1) * sizeof *index.file_of);
    for (size_t i = 0; i < n_artifacts && good; i++)
        add_to_index(&index, &artifacts[i], i);
    if (good)
        put_index(model, &index, out);
    free(index.tensors);
    free(index.file_of);
    for (size_t i = 0; i < n_artifacts; i++)
        artifact_free(&artifacts[i]);
    free(artifacts);
    arena_free(arena);
    return good;
}

static void put_numbers(struct json_writer *writer, const char *key, const struct ct_scheme *scheme,
                        const struct ct_numbers *numbers)
{
    bool is_weight = numbers == &scheme->weights;
    const struct grouping *grouping = &scheme->grouping;
    bool is_asymmetric = is_weight && grouping->scale == SCALE_ASYMMETRIC;
    if (numbers->type == NULL) {
        json_put_null(writer, key);
        return;
    }
    json_begin_object(writer, key);
    if (is_weight && grouping->rows > 1)
        json_put_template(writer, "'block_structure': [%u, %u]", (uint64_t)grouping->rows, (uint64_t)grouping->columns);
    else
        json_put_null(writer, "block_structure");
    if (numbers->group != 0)
        json_put_number(writer, "group_size", numbers->group);
    else
        json_put_null(writer, "group_size");
    json_put_template(writer,
                      "'actorder': null, 'dynamic': %b, 'num_bits': %u, 'observer': null, 'observer_kwargs': {},"
                      " 'scale_dtype': %s, 'strategy': %s, 'symmetric': %b, 'type': %s, 'zp_dtype': %s}",
                      !is_weight, (uint64_t)numbers->bits, numbers->scale_dtype, numbers->strategy, !is_asymmetric,
                      numbers->type, is_asymmetric ? "torch.int8" : NULL);
}

/* Returns {"quantization_config": ...}. */
static struct json_document *describe(const struct ct_model *model, const struct ct_scheme *scheme, struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII};
    json_put_template(
        &writer,
        "{'quantization_config': {'format': %s, 'global_compression_ratio': null, 'kv_cache_scheme': null,"
        " 'quant_method': 'compressed-tensors', 'quantization_status': 'compressed',"
        " 'transform_config': {}, 'version': '0.19.0', 'ignore': [",
        scheme->format);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (!ignored[i].of_experts || model->has_experts)
            json_put_text(&writer, NULL, ignored[i].pattern);
    json_end(&writer);
    json_begin_object(&writer, "config_groups");
    json_begin_object(&writer, scheme->name);
    put_numbers(&writer, "weights", scheme, &scheme->weights);
    put_numbers(&writer, "input_activations", scheme, &scheme->activations);
    json_put_template(&writer, "'format': %s, 'output_activations': null, 'targets': ['Linear']}}}}", scheme->format);
    struct json_document *document = json_parse((const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return document;
}

bool ct_write_config(const struct ct_model *model, const struct ct_scheme *scheme, struct buffer *out,
                     struct error *error)
{
    struct json_document *config, *more = describe(model, scheme, error);
    bool good = more != NULL && read_config(model->model, &config, error);
    if (good && config == NULL)
        good = error_set(error, "there is no config.json to add the scheme to");
    if (good)
        json_put_sorted(&(struct json_writer){.out = out, .letters = JSON_ASCII}, json_root(config), json_root(more));
    json_free(good ? config : NULL);
    json_free(more);
    return good;
}

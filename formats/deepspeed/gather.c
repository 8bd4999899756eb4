#include "formats/deepspeed/gather.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/shape.h"
#include "formats/torch/tensors.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 4096, SHOWN_NAME = 200, LEAST_BYTES = 16 /* of a parameter in a file */ };

struct gather {
    const struct zero_ranks *ranks;
    struct tensor_set *set;
    struct arena *arena;
    uint64_t most; /* parameters: pickles can repeat a dict in two bytes */
    struct error *error;
};

/* A parameter's name and shape, from a dict. */
struct parameter {
    const char *name; /* without a NUL at its end */
    size_t name_length;
    unsigned rank;
    uint64_t shape[SHAPE_MAX_RANK], n_elements;
};

static bool refuse(const struct gather *gather, const char *reason)
{
    return error_set(gather->error, "%s: %s", gather->ranks->place, reason);
}

static bool refuse_parameter(const struct gather *gather, const struct parameter *parameter, const char *reason)
{
    char shown[SHOWN_NAME];
    text_printable(parameter->name, parameter->name_length, shown, sizeof shown);
    return error_set(gather->error, "%s: parameter '%s': %s", gather->ranks->place, shown, reason);
}

static const struct pickle_items *pairs_of(const struct pickle_node *dict)
{
    static const struct pickle_items none;
    if (pickle_is(dict, PICKLE_DICT))
        return &dict->items;
    return pickle_object_is(dict, GLOBAL_DICT) ? &dict->object->pairs : &none;
}

static bool read_parameter(const struct gather *gather, const struct pickle_items *pairs, uint32_t at,
                           struct parameter *parameter)
{
    const struct pickle_node *name = pairs->nodes[at];
    uint64_t n_bytes;
    if (gather->set->n_tensors >= gather->most)
        return refuse(gather, "more parameters than a file of its size describes");
    if (!pickle_is(name, PICKLE_TEXT) || name->text.length > MAX_NAME)
        return refuse(gather, "a parameter without a name");
    parameter->name = name->text.bytes;
    parameter->name_length = name->text.length;
    if (!torch_sizes(pairs->nodes[at + 1], parameter->shape, &parameter->rank) ||
        !shape_size(&f32_dtype, parameter->shape, parameter->rank, &parameter->n_elements, &n_bytes, NULL))
        return refuse_parameter(gather, parameter, "its shape is damaged");
    return true;
}

static void add(const struct gather *gather, const struct parameter *parameter, const struct view *flat)
{
    const struct view *view = view_reshape(gather->arena, flat, parameter->rank, parameter->shape);
    const struct tensor tensor = {
        .name = arena_strndup(gather->arena, parameter->name, parameter->name_length),
        .name_length = (uint32_t)parameter->name_length,
        .rank = (uint8_t)parameter->rank,
        .dtype = view->dtype,
        .shape = view->shape,
        .view = view,
    };
    tensor_set_add(gather->set, &tensor);
}

/* Adds the elements from `at` on of a vector, which has them. */
static void add_slice(const struct gather *gather, const struct parameter *parameter, const struct view *flat,
                      uint64_t at)
{
    static const uint64_t none = 0;
    if (parameter->n_elements == 0)
        add(gather, parameter, view_literal(gather->arena, flat->dtype, 1, &none, ""));
    else
        add(gather, parameter, view_slice(gather->arena, flat, 0, at, parameter->n_elements, 1));
}

/* Returns a tensor of a file by its name there; NULL: none, or one without values. */
static const struct tensor *find(const struct zero_file *file, const char *prefix, const char *name, size_t length)
{
    char full[2 * MAX_NAME];
    int n = snprintf(full, sizeof full, "%s%.*s", prefix, (int)length, name);
    const struct tensor *tensor = tensor_set_find(file->tensors, full, (size_t)n);
    return tensor != NULL && tensor->refusal == NULL ? tensor : NULL;
}

/* Flat vectors of the optimizer. */

/* Returns vector `number` of a list, of each rank. *ret_found is false, without an error, if no rank has it. */
static const struct view **find_flats(const struct gather *gather, const char *list, unsigned number, bool *ret_found)
{
    const struct zero_ranks *ranks = gather->ranks;
    const struct view **of_rank = arena_array(gather->arena, ranks->n_ranks, sizeof *of_rank);
    char index[16];
    size_t n_found = 0;
    snprintf(index, sizeof index, "%u", number);
    for (unsigned rank = 0; rank < ranks->n_ranks; rank++) {
        const struct tensor *tensor = find(&ranks->optimizers[rank], list, index, strlen(index));
        if (tensor == NULL)
            continue;
        if (tensor->rank != 1 || tensor->dtype != &f32_dtype) {
            refuse(gather, "the flat weights of a rank are not a vector of F32");
            return NULL;
        }
        of_rank[rank] = tensor_view(tensor, gather->arena);
        n_found++;
    }
    *ret_found = n_found > 0;
    if (n_found == 0 || n_found == ranks->n_ranks)
        return of_rank;
    refuse(gather, "a rank lacks a part of the flat weights");
    return NULL;
}

static const struct view *join(const struct gather *gather, const struct view **parts, size_t n_parts)
{
    return n_parts == 1 ? parts[0] : view_concatenate(gather->arena, parts, n_parts, 0);
}

/* Stages 1 and 2: the ranks' parts of a group follow each other, and its parameters, too. What is left is less than
 * the alignment, of twice the number of ranks. */
static bool add_group(const struct gather *gather, const struct pickle_node *shapes, const struct view **flats)
{
    const struct pickle_items *pairs = pairs_of(shapes);
    uint64_t total, at = 0, alignment = 2 * (uint64_t)gather->ranks->n_ranks;
    const struct view *whole = join(gather, flats, gather->ranks->n_ranks);
    total = whole->n_elements;
    for (uint32_t i = 0; i + 1 < pairs->n; i += 2) {
        struct parameter parameter;
        if (!read_parameter(gather, pairs, i, &parameter))
            return false;
        if (parameter.n_elements > total - at)
            return refuse_parameter(gather, &parameter, "the ranks have too few elements");
        add_slice(gather, &parameter, whole, at);
        at += parameter.n_elements;
    }
    return total - at < alignment || refuse(gather, "the ranks have more elements than the parameters");
}

static bool add_groups(const struct gather *gather, const struct pickle_node *groups)
{
    static const char list[] = "optimizer_state_dict.single_partition_of_fp32_groups.";
    for (unsigned number = 0; number < pickle_count(groups); number++) {
        bool found;
        const struct view **flats = find_flats(gather, list, number, &found);
        if (flats == NULL)
            return false;
        if (!found)
            return refuse(gather, "a parameter group without flat weights");
        if (!add_group(gather, pickle_at(groups, number), flats))
            return false;
    }
    return true;
}

/* Adds a parameter from parts of each rank, which begin at `at` of vectors. */
static bool add_partitioned(const struct gather *gather, const struct parameter *parameter,
                            const struct view *const *of_rank, uint64_t at, uint64_t part)
{
    unsigned n_ranks = gather->ranks->n_ranks;
    const struct view **parts = arena_array(gather->arena, n_ranks, sizeof *parts);
    if (part == 0) {
        add_slice(gather, parameter, of_rank[0], 0);
        return true;
    }
    for (unsigned rank = 0; rank < n_ranks; rank++) {
        if (at > of_rank[rank]->n_elements || part > of_rank[rank]->n_elements - at)
            return refuse_parameter(gather, parameter, "a rank has too few elements");
        parts[rank] = view_slice(gather->arena, of_rank[rank], 0, at, part, 1);
    }
    add_slice(gather, parameter, join(gather, parts, n_ranks), 0);
    return true;
}

static uint64_t part_of(const struct gather *gather, const struct parameter *parameter)
{
    unsigned n_ranks = gather->ranks->n_ranks;
    return parameter->n_elements / n_ranks + (parameter->n_elements % n_ranks > 0);
}

static const char stage_3_list[] = "optimizer_state_dict.fp32_flat_groups.";

/* Returns the vectors of each rank joined; NULL, with an error. */
static const struct view **join_vectors(const struct gather *gather)
{
    unsigned n_ranks = gather->ranks->n_ranks;
    size_t n = 0, most = gather->ranks->optimizers[0].tensors->n_tensors;
    const struct view ***of_group = arena_array(gather->arena, most + 1, sizeof *of_group);
    for (bool found = true; n <= most; n++) {
        of_group[n] = find_flats(gather, stage_3_list, (unsigned)n, &found);
        if (of_group[n] == NULL)
            return NULL;
        if (!found)
            break;
    }
    const struct view **whole = arena_array(gather->arena, n_ranks, sizeof *whole);
    for (unsigned rank = 0; rank < n_ranks; rank++) {
        const struct view **parts = arena_array(gather->arena, n, sizeof *parts);
        for (size_t i = 0; i < n; i++)
            parts[i] = of_group[i][rank];
        whole[rank] = join(gather, parts, n);
    }
    return whole;
}

/* Stage 3: the vectors of a rank follow each other, and have an equal part of each parameter, rounded up. */
static bool add_stage_3(const struct gather *gather, const struct pickle_node *groups)
{
    const struct view **whole = join_vectors(gather);
    uint64_t at = 0;
    if (whole == NULL)
        return false;
    for (uint32_t group = 0; group < pickle_count(groups); group++) {
        const struct pickle_items *pairs = pairs_of(pickle_at(groups, group));
        for (uint32_t i = 0; i + 1 < pairs->n; i += 2) {
            struct parameter parameter;
            if (!read_parameter(gather, pairs, i, &parameter))
                return false;
            uint64_t part = part_of(gather, &parameter);
            if (!add_partitioned(gather, &parameter, whole, at, part))
                return false;
            at += part;
        }
    }
    return whole[0]->n_elements == at || refuse(gather, "the ranks have more elements than the parameters");
}

/* Frozen parameters: whole with stages 1 and 2, in fragments with stage 3. */

static bool add_frozen_parameter(const struct gather *gather, const struct parameter *parameter, bool is_cut)
{
    static const char prefix[] = "frozen_param_fragments.";
    const struct zero_ranks *ranks = gather->ranks;
    unsigned n_files = is_cut ? ranks->n_ranks : 1;
    const struct view **fragments = arena_array(gather->arena, n_files, sizeof *fragments);
    for (unsigned i = 0; i < n_files; i++) {
        const struct tensor *tensor = find(&ranks->models[i], prefix, parameter->name, parameter->name_length);
        if (tensor == NULL || (i > 0 && tensor->dtype != fragments[0]->dtype) || tensor->dtype->block_elements > 1)
            return refuse_parameter(gather, parameter, "a fragment of this frozen parameter is missing");
        uint64_t n_elements = tensor_elements(tensor);
        fragments[i] = view_reshape(gather->arena, tensor_view(tensor, gather->arena), 1, &n_elements);
    }
    if (is_cut)
        return add_partitioned(gather, parameter, fragments, 0, part_of(gather, parameter));
    if (fragments[0]->n_elements != parameter->n_elements)
        return refuse_parameter(gather, parameter, "this frozen parameter has another shape than it should");
    add(gather, parameter, fragments[0]);
    return true;
}

static bool add_frozen(const struct gather *gather, const struct pickle_node *model, bool is_cut)
{
    const struct pickle_items *pairs = pairs_of(pickle_get(model, "frozen_param_shapes"));
    for (uint32_t i = 0; i + 1 < pairs->n; i += 2) {
        struct parameter parameter;
        if (!read_parameter(gather, pairs, i, &parameter) || !add_frozen_parameter(gather, &parameter, is_cut))
            return false;
    }
    return true;
}

/* The rest of the model: buffers, parameters under other names, and, with stages 1 and 2, frozen parameters that are
 * nowhere else. */

static void add_renamed(const struct gather *gather, const struct tensor *tensor, const char *name, size_t length,
                        bool as_f32)
{
    struct tensor added = *tensor;
    added.name = arena_strndup(gather->arena, name, length);
    added.name_length = (uint32_t)length;
    if (as_f32 && tensor->dtype != &f32_dtype && tensor->dtype->kind == DTYPE_FLOAT) {
        added.view = view_convert(gather->arena, tensor_view(tensor, gather->arena), &f32_dtype);
        added.dtype = &f32_dtype;
        added.source = NULL;
        added.strides = NULL;
        added.offset = added.length = 0;
    }
    tensor_set_add(gather->set, &added);
}

/* Returns a tensor of the module; names omit "module." if all of the file begin with it. */
static const struct tensor *find_in_module(const struct gather *gather, const char *name, size_t length)
{
    const struct zero_file *model = &gather->ranks->models[0];
    const struct tensor *tensor = find(model, "module.", name, length);
    return tensor != NULL ? tensor : find(model, "", name, length);
}

static void add_buffers(const struct gather *gather, const struct pickle_node *names)
{
    for (uint32_t i = 0; i < pickle_count(names); i++) {
        const struct pickle_node *name = pickle_at(names, i);
        if (!pickle_is(name, PICKLE_TEXT) || name->text.length > MAX_NAME)
            continue;
        const struct tensor *tensor = find_in_module(gather, name->text.bytes, name->text.length);
        if (tensor != NULL)
            add_renamed(gather, tensor, name->text.bytes, name->text.length, true);
    }
}

/* Returns a tensor of the set, which is not sealed yet; NULL: none. */
static const struct tensor *find_added(const struct tensor_set *set, const struct pickle_node *name)
{
    for (size_t i = 0; pickle_is(name, PICKLE_TEXT) && i < set->n_tensors; i++)
        if (text_compare(set->tensors[i].name, set->tensors[i].name_length, name->text.bytes, name->text.length) == 0)
            return &set->tensors[i];
    return NULL;
}

static bool add_aliases(const struct gather *gather, const struct pickle_node *shared)
{
    enum { MAX_ALIASES = 256 };
    const struct pickle_items *pairs = pairs_of(shared);
    if (pairs->n / 2 > MAX_ALIASES)
        return refuse(gather, "too many shared parameters");
    for (uint32_t i = 0; i + 1 < pairs->n; i += 2) {
        const struct pickle_node *alias = pairs->nodes[i];
        const struct tensor *tensor = find_added(gather->set, pairs->nodes[i + 1]);
        if (!pickle_is(alias, PICKLE_TEXT) || alias->text.length > MAX_NAME || tensor == NULL)
            return refuse(gather, "a shared parameter whose other name is missing");
        add_renamed(gather, tensor, alias->text.bytes, alias->text.length, false);
    }
    return true;
}

/* Adds tensors of the module that the set, sealed, does not have, to another set. */
static void add_rest(const struct gather *gather, const struct tensor_set *have, struct tensor_set *to)
{
    static const char prefix[] = "module.";
    const struct tensor_set *model = gather->ranks->models[0].tensors;
    bool has_prefix = false;
    for (size_t i = 0; i < model->n_tensors; i++)
        has_prefix |= text_starts_with(model->tensors[i].name, prefix);
    for (size_t i = 0; i < have->n_tensors; i++)
        tensor_set_add(to, &have->tensors[i]);
    for (size_t i = 0; i < model->n_tensors; i++) {
        struct tensor tensor = model->tensors[i];
        size_t skipped = text_starts_with(tensor.name, prefix) ? strlen(prefix) : 0;
        if (has_prefix && skipped == 0)
            continue;
        tensor.name += skipped;
        tensor.name_length -= (uint32_t)skipped;
        if (tensor_set_find(have, tensor.name, tensor.name_length) == NULL)
            tensor_set_add(to, &tensor);
    }
}

/* Returns the number of ranks that the optimizer was cut for: a number, or one for each group, of which the largest
 * counts; 0 if it is missing. */
static int64_t partition_count(const struct pickle_node *count)
{
    int64_t most = 0, one;
    if (pickle_integer(count, &one))
        return one;
    for (uint32_t i = 0; i < pickle_count(count); i++)
        if (pickle_integer(pickle_at(count, i), &one) && one > most)
            most = one;
    return most;
}

/* Reports whether elements lie between parameters to align them. */
static bool has_paddings(const struct pickle_node *paddings)
{
    int64_t padding;
    uint32_t n_seen = 0;
    for (uint32_t i = 0; i < pickle_count(paddings); i++)
        for (uint32_t j = 0; j < pickle_count(pickle_at(paddings, i)); j++)
            if (!pickle_integer(pickle_at(pickle_at(paddings, i), j), &padding) || padding != 0 ||
                n_seen++ == TENSOR_SET_MAX)
                return true;
    return false;
}

static bool check_optimizer(const struct gather *gather)
{
    const struct pickle_node *state = pickle_get(gather->ranks->optimizers[0].values, "optimizer_state_dict");
    int64_t expected = partition_count(pickle_get(state, "partition_count"));
    if (expected != gather->ranks->n_ranks)
        return error_set(gather->error, "%s: found the files of %u of %" PRId64 " ranks", gather->ranks->place,
                         gather->ranks->n_ranks, expected);
    return !has_paddings(pickle_get(state, "param_alignment_paddings")) ||
           refuse(gather, "parameters with paddings between them are not supported; use zero_to_fp32.py");
}

bool zero_gather(const struct zero_ranks *ranks, struct tensor_set *set, struct arena *arena, struct error *error)
{
    const struct gather gather = {ranks, tensor_set_new(arena), arena,
                                  source_size(ranks->models[0].source) / LEAST_BYTES, error};
    const struct pickle_node *model = ranks->models[0].values, *groups = pickle_get(model, "param_shapes");
    bool is_stage_3;
    if (pickle_count(groups) == 0)
        return refuse(&gather, "the model's file has no shapes of parameters");
    if (!check_optimizer(&gather))
        return false;
    if (find_flats(&gather, stage_3_list, 0, &is_stage_3) == NULL)
        return false;
    if (is_stage_3 && ranks->n_model_files != ranks->n_ranks)
        return refuse(&gather, "the model's file of a rank is missing");
    add_buffers(&gather, pickle_get(model, "buffer_names"));
    if (!add_frozen(&gather, model, is_stage_3) ||
        !(is_stage_3 ? add_stage_3(&gather, groups) : add_groups(&gather, groups)) ||
        !add_aliases(&gather, pickle_get(model, "shared_params")) || !tensor_set_seal(gather.set, error))
        return false;
    if (!is_stage_3) {
        add_rest(&gather, gather.set, set);
        return true;
    }
    for (size_t i = 0; i < gather.set->n_tensors; i++)
        tensor_set_add(set, &gather.set->tensors[i]);
    return true;
}

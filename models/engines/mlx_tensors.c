#include "models/engines/mlx_tensors.h"

#include "base/text.h"
#include "models/relation/rearrangement.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char weight[] = ".weight", bias[] = ".bias", outside[] = "";

enum { SIZES = 5 };

struct making {
    struct arena *arena;
    const struct mlx_family *family;
    const struct hf_model *model;
    const struct json *config, *text; /* of the whole model, and of its language model */
    const enum mlx_part *part;        /* that is made; NULL: values */
    const char *reason;               /* why a tensor of the one being made has no part */
    struct axis_size sizes[SIZES];
    bool *is_used; /* by tensor of the model */
    bool is_tied;
    uint64_t n_experts; /* of matrices that hold the rows of all; 0: unknown */
    uint64_t n_shared;  /* layers, the last ones, that use the keys and values of earlier ones */
    struct mlx_tensors *made;
    struct error *error;
};

/* Numbers of the configuration. */

static uint64_t number_of(const struct json *config, const char *const *keys)
{
    uint64_t number;
    for (; *keys != NULL; keys++)
        if (json_u64(json_get(config, *keys), &number))
            return number;
    return 0;
}

static void read_sizes(struct making *making)
{
    static const char *const heads[] = {"num_attention_heads", NULL};
    static const char *const nope[] = {"qk_nope_head_dim", "head_dim", NULL};
    static const char *const value[] = {"v_head_dim", "head_dim", NULL};
    static const char *const layers[] = {"num_hidden_layers",      "n_layer", "num_layers", "n_layers",
                                         "num_transformer_layers", NULL};
    static const char *const shared[] = {"num_kv_shared_layers", NULL};
    static const char *const experts[] = {"moe_num_experts", NULL};
    const struct json *tied = json_get(making->text, "tie_word_embeddings");
    making->sizes[0] = (struct axis_size){.name = "head", .size = number_of(making->text, heads)};
    making->sizes[1] = (struct axis_size){.name = "nope", .size = number_of(making->text, nope)};
    making->sizes[2] = (struct axis_size){.name = "value", .size = number_of(making->text, value)};
    making->sizes[3] = (struct axis_size){.name = "one", .size = 1}; /* for interleaved rows */
    making->sizes[4] = (struct axis_size){.name = "other", .size = 1};
    making->made->n_layers = number_of(making->text, layers);
    making->n_shared = number_of(making->text, shared);
    making->n_experts = number_of(json_get(making->text, "ffn_config"), experts);
    tied = tied != NULL ? tied : json_get(making->config, "tie_word_embeddings");
    making->is_tied = json_bool(tied, !making->family->is_untied);
}

/* Finding tensors. */

enum { LONGEST_NAME = 512 }; /* patterns are much shorter, and so are the names that they fit */

/* Finds the tensor whose name is these three texts in a row. */
static const struct tensor *find(struct making *making, const char *prefix, const char *middle, const char *name)
{
    const struct tensor_set *set = making->model->tensors;
    char whole[LONGEST_NAME];
    int length = snprintf(whole, sizeof whole, "%s%s%s", prefix, middle, name);
    const struct tensor *tensor = length < LONGEST_NAME ? tensor_set_find_text(set, whole) : NULL;
    if (tensor != NULL)
        making->is_used[tensor - set->tensors] = true;
    return tensor;
}

/* Finds the tensor that the class calls `name`, without its prefix: checkpoints put other texts before it. */
static const struct tensor *find_stored(struct making *making, const char *name)
{
    static const char model[] = "model.";
    const struct mlx_family *family = making->family;
    const char *prefixes[] = {family->prefix, "", "language_model.", family->stored};
    const struct tensor *tensor = NULL;
    size_t layers = family->stored_layers != NULL ? strlen(family->layers) : 0;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && tensor == NULL; i++)
        if (prefixes[i] != NULL)
            tensor = find(making, prefixes[i], "", name);
    if (tensor == NULL && text_starts_with(name, model))
        tensor = find(making, "model.language_model.", "", name + strlen(model));
    if (tensor == NULL && layers > 0 && text_starts_with(name, family->layers) && name[layers] == '.')
        tensor = find(making, family->stored, family->stored_layers, name + layers);
    return tensor;
}

static const struct view *view_of(struct making *making, const struct tensor *tensor)
{
    if (tensor->refusal != NULL) {
        error_set(making->error, "'%.200s': %s", tensor->name, tensor->refusal);
        return NULL;
    }
    const struct view *view = tensor_view(tensor, making->arena), *part = NULL;
    const struct dtype *type = hf_written(making->model, tensor);
    if (making->model->keeps_codes && view_unrounded(view) != view) { /* a weight that was dequantized to be joined */
        view = view_unrounded(view);
        type = view->dtype;
    }
    if (making->part != NULL &&
        !mlx_part_of(making->arena, view, *making->part, &part, &making->reason, making->error)) {
        error_prefix(making->error, "'%.200s'", tensor->name);
        return NULL;
    }
    return part != NULL ? part : view_convert(making->arena, view, type);
}

/* Makes tensors of several types F32, as some experts are quantized in another way than others. */
static void unify(struct arena *arena, const struct view **parts, size_t n)
{
    size_t n_same = 0;
    while (n_same < n && parts[n_same]->dtype == parts[0]->dtype)
        n_same++;
    for (size_t i = 0; n_same < n && i < n; i++)
        parts[i] = view_convert(arena, parts[i], &f32_dtype);
}

static bool stack(struct making *making, const struct view **parts, size_t n, const char *name,
                  const struct view **ret_view)
{
    if (making->model->keeps_codes)
        unify(making->arena, parts, n);
    for (size_t i = 1; i < n; i++)
        if (parts[i]->rank != parts[0]->rank || parts[i]->dtype != parts[0]->dtype ||
            memcmp(parts[i]->shape, parts[0]->shape, parts[0]->rank * sizeof *parts[0]->shape) != 0)
            return error_set(making->error, "number %zu of '%.200s' has another shape or type than the first", i, name);
    if (parts[0]->rank + 1 > VIEW_MAX_RANK)
        return error_set(making->error, "'%.200s' would have too many dimensions", name);
    *ret_view = view_stack(making->arena, parts, n);
    return true;
}

/* Gets all experts of a name with {}, one after the other; *ret_view stays NULL if there is none. */
static bool read_experts(struct making *making, const char *name, const char *suffix, const struct view **ret_view)
{
    const char *at = strstr(name, "{}");
    const struct view **parts = NULL;
    size_t n = 0;
    bool good = true;
    for (; good; n++) {
        const struct tensor *tensor =
            find_stored(making, arena_printf(making->arena, "%.*s%zu%s%s", (int)(at - name), name, n, at + 2, suffix));
        if (tensor == NULL)
            break;
        parts = arena_grow(making->arena, parts, n, sizeof *parts);
        parts[n] = view_of(making, tensor);
        good = parts[n] != NULL;
    }
    if (good && n > 0)
        good = stack(making, parts, n, name, ret_view);
    return good;
}

/* Gets the tensor of a name, with or without the suffix. */
static bool read_name(struct making *making, const char *name, const char *suffix, const struct view **ret_view)
{
    *ret_view = NULL;
    if (strstr(name, "{}") != NULL)
        return read_experts(making, name, suffix, ret_view);
    const struct tensor *tensor = find_stored(making, arena_printf(making->arena, "%s%s", name, suffix));
    if (tensor == NULL)
        return true;
    *ret_view = view_of(making, tensor);
    return *ret_view != NULL;
}

/* Gets the tensors of a list of names; *ret_n is 0 if one is missing. */
static bool read_names(struct making *making, const char *before, const char *names, const char *suffix,
                       const struct view *views[AXES_MAX_TENSORS], size_t *ret_n)
{
    size_t n = 0;
    *ret_n = 0;
    for (size_t length; *names != '\0' && n < AXES_MAX_TENSORS; names += length + strspn(names + length, ", ")) {
        length = strcspn(names, ",");
        const char *name = arena_printf(making->arena, "%s%.*s", before, (int)length, names);
        if (!read_name(making, name, suffix, &views[n]))
            return false;
        if (views[n++] == NULL)
            return true;
    }
    *ret_n = n;
    return true;
}

/* Gets the tensors that a row names: those of the first of its alternatives that are there. */
static bool read_alternatives(struct making *making, const char *before, const char *from, const char *suffix,
                              const struct view *views[AXES_MAX_TENSORS], size_t *ret_n)
{
    *ret_n = 0;
    while (*from != '\0' && *ret_n == 0) {
        size_t length = strcspn(from, "|");
        const char *names = arena_printf(making->arena, "%.*s", (int)length, from);
        if (!read_names(making, before, names, suffix, views, ret_n) ||
            (*ret_n == 0 && strcmp(suffix, weight) == 0 && !read_names(making, before, names, outside, views, ret_n)))
            return false;
        from += length + (from[length] == '|');
    }
    return true;
}

/* Making tensors. */

static const struct mlx_row *find_row(const struct mlx_family *family, const char *module)
{
    for (const struct mlx_row *row = family->rows; row != NULL && row->module != NULL; row++)
        if (strcmp(row->module, module) == 0)
            return row;
    return NULL;
}

/* A kernel of a convolution that mlx wrote is in its arrangement already. */
static bool is_arranged(const char *axes, const struct view *view)
{
    return strcmp(axes, MLX_CONVOLUTION) == 0 && (view->rank != 3 || view->shape[1] != 1);
}

/* Takes the part of one expert. */
static bool take_part(struct making *making, const char *axes, uint64_t number, const struct view **view)
{
    uint64_t n = making->n_experts, n_rows = (*view)->rank == 2 ? (*view)->shape[0] : 0;
    if (n == 0 || n_rows == 0 || n_rows % n != 0)
        return error_set(making->error, "%" PRIu64 " rows are not those of %" PRIu64 " experts", n_rows, n);
    *view = view_slice(making->arena, *view, 0, number * (n_rows / n), n_rows / n, 1);
    if (strcmp(axes, MLX_TURNED_PART) == 0)
        *view = view_transpose(making->arena, *view);
    return true;
}

static bool rearrange(struct making *making, const char *axes, uint64_t number, const struct view **views)
{
    const struct axis_sizes sizes = {making->sizes, SIZES};
    const struct view *to[AXES_MAX_TENSORS];
    if (strcmp(axes, MLX_FLAT) == 0) {
        views[0] = view_reshape(making->arena, views[0], 1, &views[0]->n_elements);
        return true;
    }
    if (strcmp(axes, MLX_PART) == 0 || strcmp(axes, MLX_TURNED_PART) == 0)
        return take_part(making, axes, number, &views[0]);
    if (strcmp(axes, MLX_SCALAR) == 0 && views[0]->n_elements == 1)
        views[0] = view_reshape(making->arena, views[0], 0, NULL);
    if (strcmp(axes, MLX_SCALAR) == 0 || is_arranged(axes, views[0]))
        return true;
    const struct rearrangement *parsed = rearrangement_parse(making->arena, axes, making->error);
    if (parsed == NULL || !rearrangement_apply(making->arena, parsed, FORWARD, &sizes, views, to, making->error))
        return false;
    views[0] = to[0];
    return true;
}

/* A module of a list, in a layer or outside. */
struct place {
    const char *before; /* "model.layers.0.", or "" */
    uint64_t layer;
    const char *module, *pattern; /* pattern: with {} for its number; NULL: it has none */
    uint64_t number;
    char mark;
};

static bool make_tensor(struct making *making, const struct place *place, const char *suffix)
{
    const struct mlx_family *family = making->family;
    const struct mlx_row *row = find_row(family, place->pattern != NULL ? place->pattern : place->module);
    const struct view *views[AXES_MAX_TENSORS];
    size_t n;
    making->reason = NULL;
    const char *from = row != NULL && row->from != NULL ? row->from : place->module;
    if (!read_alternatives(making, place->before, from, suffix, views, &n))
        return false;
    if (n == 0)
        return true;
    const char *name = arena_printf(making->arena, "%s%s", place->before, place->module);
    if (row != NULL && row->axes != NULL && suffix != bias && !rearrange(making, row->axes, place->number, views))
        return error_prefix(making->error, "'%.200s'", name);
    const struct view *unchanged = views[0];
    if (family->change != NULL && suffix == weight && making->part == NULL)
        views[0] = family->change(making->arena, making->text, name, views[0]);
    if (views[0] == NULL)
        return error_set(making->error, "'%.200s' does not have the rows that config.json says", name);
    struct mlx_tensor tensor = {
        .module = arena_printf(making->arena, "%s%s", family->prefix != NULL ? family->prefix : "", name),
        .suffix = suffix,
        .view = views[0],
        .layer = place->layer,
        .is_matrix = suffix == weight && place->mark == 0 && views[0]->rank >= 2 && views[0]->n_elements > 0,
        .is_plain = mlx_list_ends(family->plain, name),
        .keeps_type = views[0]->dtype->kind != DTYPE_FLOAT || mlx_list_within(family->uncast, name),
        .is_changed = views[0] != unchanged,
        .reason = making->reason};
    struct mlx_tensors *made = making->made;
    made->tensors = arena_grow(making->arena, made->tensors, made->n_tensors, sizeof *made->tensors);
    made->tensors[made->n_tensors++] = tensor;
    return true;
}

/* A tied head is left out, like the keys and values of layers that use those of others. */
static bool is_left_out(const struct making *making, const struct place *place)
{
    static const char shared[] = "self_attn.k_proj self_attn.v_proj self_attn.k_norm";
    if (making->family->drops_shared && place->layer + making->n_shared >= making->made->n_layers &&
        mlx_list_has(shared, place->module))
        return true;
    return making->is_tied && mlx_list_has("lm_head output", place->module);
}

static void leave_out(struct making *making, const struct place *place)
{
    find_stored(making, arena_printf(making->arena, "%s%s%s", place->before, place->module, weight));
    find_stored(making, arena_printf(making->arena, "%s%s%s", place->before, place->module, bias));
}

static bool make_module(struct making *making, const struct place *place)
{
    if (place->mark == '#')
        return make_tensor(making, place, outside);
    if (is_left_out(making, place)) {
        leave_out(making, place);
        return true;
    }
    return make_tensor(making, place, weight) && make_tensor(making, place, bias);
}

/* Makes the modules of one number of a name with {}: one for each ending. */
static bool make_of_number(struct making *making, const struct place *place, uint64_t number)
{
    const char *at = strstr(place->module, "{}"), *endings = at + strlen("{}"), *dot = strrchr(endings, '.');
    int before = (int)(at - place->module), middle = dot != NULL ? (int)(dot + 1 - endings) : 0;
    struct place numbered = *place;
    numbered.number = number;
    for (const char *end = endings + middle; end != NULL; end = strchr(end, ',') ? strchr(end, ',') + 1 : NULL) {
        int length = (int)strcspn(end, ",");
        numbered.pattern =
            arena_printf(making->arena, "%.*s{}%.*s%.*s", before, place->module, middle, endings, length, end);
        numbered.module = arena_printf(making->arena, "%.*s%" PRIu64 "%.*s%.*s", before, place->module, number, middle,
                                       endings, length, end);
        if (!make_module(making, &numbered))
            return false;
    }
    return true;
}

/* Makes the modules of a name with {}, up to the first number without one. */
static bool make_numbered(struct making *making, const struct place *place)
{
    size_t before = SIZE_MAX;
    for (uint64_t i = 0; making->made->n_tensors != before && (making->n_experts == 0 || i < making->n_experts); i++) {
        before = making->made->n_tensors;
        if (!make_of_number(making, place, i))
            return false;
    }
    return true;
}

static bool make_list(struct making *making, const char *list, const char *before, uint64_t layer)
{
    while (*(list += strspn(list, " ")) != '\0') {
        struct place place = {.before = before, .layer = layer};
        if (*list == '=' || *list == '#')
            place.mark = *list++;
        size_t length = strcspn(list, " ");
        place.module = arena_printf(making->arena, "%.*s", (int)length, list);
        if (strstr(place.module, "{}") != NULL ? !make_numbered(making, &place) : !make_module(making, &place))
            return false;
        list += length;
    }
    return true;
}

/* Reports whether the module that holds a tensor has modules of its own, among the tensors from `first` on. */
static bool holds_modules(const struct mlx_tensors *made, size_t first, const char *tensor)
{
    const char *end = strrchr(tensor, '.');
    size_t length = end != NULL ? (size_t)(end + 1 - tensor) : 0;
    for (size_t i = first; i < made->n_tensors; i++) {
        const struct mlx_tensor *other = &made->tensors[i];
        if (strncmp(other->module, tensor, length) == 0 &&
            (other->suffix != outside || strchr(other->module + length, '.') != NULL))
            return true;
    }
    return false;
}

/* Marks tensors of modules that hold others, from tensor `first` on. */
static void mark_branches(struct making *making, size_t first)
{
    struct mlx_tensors *made = making->made;
    for (size_t i = first; i < made->n_tensors; i++)
        made->tensors[i].is_of_branch =
            made->tensors[i].suffix == outside && holds_modules(made, first, made->tensors[i].module);
}

/* Marks modules of a layer, which begins with tensor `first`, that are plain because of another module of it. */
static void mark_plain(struct making *making, size_t first)
{
    const struct mlx_family *family = making->family;
    struct mlx_tensor *tensors = making->made->tensors;
    bool has_other = false;
    for (size_t i = first; i < making->made->n_tensors; i++)
        has_other |= mlx_list_ends(family->beside, tensors[i].module);
    for (size_t i = first; i < making->made->n_tensors && has_other; i++)
        tensors[i].is_plain |= mlx_list_ends(family->plain_beside, tensors[i].module);
}

static bool make_layers(struct making *making)
{
    const struct mlx_family *family = making->family;
    for (uint64_t i = 0; i < making->made->n_layers; i++) {
        size_t before = making->made->n_tensors;
        const char *name = arena_printf(making->arena, "%s.%" PRIu64 ".", family->layers, i);
        if (!make_list(making, family->layer, name, i))
            return false;
        if (making->made->n_tensors == before)
            return error_set(making->error, "layer %" PRIu64 " of %" PRIu64 " has no tensors", i,
                             making->made->n_layers);
        mark_plain(making, before);
        mark_branches(making, before);
    }
    return true;
}

static bool make_after(struct making *making)
{
    size_t first = making->made->n_tensors;
    bool good = make_list(making, making->family->after, "", 0);
    mark_branches(making, first);
    return good;
}

/* Reports whether a tensor belongs to a layer beyond those of the model. */
static bool is_beyond(const struct making *making, const char *name)
{
    static const char layers[] = "layers.";
    const char *at = strstr(name, layers);
    return at != NULL && strtoull(at + strlen(layers), NULL, 10) >= making->made->n_layers;
}

/* The tool refuses a checkpoint with a tensor that its class does not have. */
static bool check_rest(const struct making *making)
{
    const struct tensor_set *set = making->model->tensors;
    const struct mlx_family *family = making->family;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *name = set->tensors[i].name;
        if (!making->is_used[i] && !mlx_list_within(family->dropped, name) &&
            !(family->drops_layers && is_beyond(making, name)))
            return error_set(making->error, "mlx-lm's class for this model has no place for the tensor '%.200s'", name);
    }
    return true;
}

bool mlx_tensors_make(struct arena *arena, const struct mlx_family *family, const struct hf_model *model,
                      const struct json *config, const enum mlx_part *part, struct mlx_tensors *ret_tensors,
                      struct error *error)
{
    const struct json *text = json_get(config, "text_config");
    struct making making = {.arena = arena,
                            .family = family,
                            .model = model,
                            .config = config,
                            .text = json_is(text, JSON_OBJECT) ? text : config,
                            .part = part,
                            .made = ret_tensors,
                            .error = error};
    *ret_tensors = (struct mlx_tensors){0};
    read_sizes(&making);
    making.is_used = memory_alloc(model->tensors->n_tensors + 1);
    memset(making.is_used, 0, model->tensors->n_tensors + 1);
    bool good =
        make_list(&making, family->before, "", 0) && make_layers(&making) && make_after(&making) && check_rest(&making);
    free(making.is_used);
    return good;
}

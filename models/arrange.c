#include "models/arrange.h"

#include "formats/layout.h"
#include "quant/convert.h"

#include <inttypes.h>
#include <math.h>

enum { MAX_DIMENSION = 1 << 24 };

static uint64_t dimension(const struct hparams *hparams, const char *keys)
{
    struct error error;
    uint64_t value;
    return hparams_count(hparams, keys, 0, MAX_DIMENSION, &value, &error) ? value : 0;
}

void dimensions_read(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t kv_heads = dimension(hparams, "num_key_value_heads|n_kv_heads|num_kv_heads|n_head_kv");
    uint64_t heads = dimension(hparams, "n_head|n_heads|num_attention_heads|num_heads");
    uint64_t padding;
    *dimensions = (struct dimensions){
        .n_blocks = dimension(hparams, "n_layers|num_hidden_layers|n_layer|num_layers"),
        .hidden = dimension(hparams, "hidden_size|n_embd|n_embed|d_model|dim"),
        .n_heads = heads,
        .n_kv_heads = kv_heads ? kv_heads : heads,
        .n_experts = dimension(hparams, "num_local_experts|num_experts|n_routed_experts"),
        .n_padding = json_u64(hparams_get(hparams, "pad_token_id"), &padding) && padding < MAX_DIMENSION ? padding + 1 : 0,
        .nope = dimension(hparams, "qk_nope_head_dim"),
        .v_head = dimension(hparams, "v_head_dim"),
        .shared_kv = kv_heads == 0,
    };
}

bool arrangement_is_stacked(enum arrangement arrangement)
{
    return arrangement == ONE_EXPERT || arrangement == ONE_QUERY_HEAD || arrangement == ONE_KEY_HEAD;
}

uint64_t arrangement_members(enum arrangement arrangement, const struct dimensions *dimensions)
{
    switch (arrangement) {
    case ONE_EXPERT:
        return dimensions->n_experts;
    case ONE_QUERY_HEAD:
        return dimensions->n_heads;
    case ONE_KEY_HEAD:
        return dimensions->n_kv_heads;
    default:
        return 0;
    }
}

static const struct view *misfit(const struct view *view, const char *wanted, struct error *error)
{
    char shape[128];
    error_set(error, "shape %s, where %s", layout_shape_text(view->shape, view->rank, shape, sizeof shape), wanted);
    return NULL;
}

/* Elements of what is behind the first axis: of a row, for a matrix; 1 for a vector. */
static uint64_t elements_behind(const struct view *view, unsigned axis)
{
    uint64_t n_elements = 1;
    for (unsigned i = axis + 1; i < view->rank; i++)
        n_elements *= view->shape[i];
    return n_elements;
}

static const struct view *rotary(struct arena *arena, const struct view *view, uint64_t n_heads, struct error *error)
{
    if (view->rank == 0 || n_heads == 0 || view->shape[0] % (2 * n_heads) != 0)
        return misfit(view, "the rows must be pairs for each attention head", error);
    uint64_t half = view->shape[0] / n_heads / 2, row = elements_behind(view, 0);
    const uint64_t shape[] = {n_heads, half, 2, row}, strides[] = {2 * half * row, row, half * row, 1};
    return view_reshape(arena, view_strided(arena, view, 4, shape, 0, strides), view->rank, view->shape);
}

static const struct view *qkv_of_heads(struct arena *arena, const struct view *view, const struct dimensions *dimensions,
                                       struct error *error)
{
    uint64_t n_heads = dimensions->n_heads;
    if (view->rank == 0 || n_heads == 0 || view->shape[0] % (3 * n_heads) != 0)
        return misfit(view, "the rows must be q, k and v for each attention head", error);
    uint64_t head = view->shape[0] / n_heads / 3 * elements_behind(view, 0);
    const uint64_t shape[] = {3, n_heads, head}, strides[] = {head, 3 * head, 1};
    return view_reshape(arena, view_strided(arena, view, 3, shape, 0, strides), view->rank, view->shape);
}

static const struct view *qkv_of_groups(struct arena *arena, const struct view *view, const struct dimensions *dimensions,
                                        struct error *error)
{
    uint64_t n_heads = dimensions->n_heads, n_groups = dimensions->shared_kv ? 1 : dimensions->n_kv_heads;
    if (view->rank != 2 || view->shape[1] == 0 || n_heads == 0 || n_heads % n_groups != 0 ||
        view->shape[0] % (n_heads + 2 * n_groups) != 0)
        return misfit(view, "the rows must be queries, key and value for each key head", error);
    uint64_t n_queries = n_heads / n_groups, head = view->shape[0] / (n_heads + 2 * n_groups) * view->shape[1];
    const struct view *parts[3];
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t members = i == 0 ? n_queries : 1, first = i == 0 ? 0 : n_queries + i - 1;
        const uint64_t shape[] = {n_groups, members, head}, strides[] = {(n_queries + 2) * head, head, 1};
        const uint64_t rows[] = {n_groups * members * (head / view->shape[1]), view->shape[1]};
        parts[i] = view_reshape(arena, view_strided(arena, view, 3, shape, first * head, strides), 2, rows);
    }
    return view_concatenate(arena, parts, 3, 0);
}

/* A part of the rows (key head, nope|value, dimension) of kv_b_proj. */
static const struct view *mla_part(struct arena *arena, const struct view *view, const struct dimensions *dimensions, bool keys,
                                   struct error *error)
{
    uint64_t heads = dimensions->n_kv_heads, nope = dimensions->nope, value = dimensions->v_head;
    if (view->rank != 2 || heads == 0 || nope == 0 || value == 0 || view->shape[0] != heads * (nope + value))
        return misfit(view, "the rows must be qk_nope_head_dim + v_head_dim for each key head", error);
    uint64_t row = view->shape[1], head = (nope + value) * row;
    const uint64_t key_shape[] = {heads, row, nope}, key_strides[] = {head, 1, row};
    const uint64_t value_shape[] = {heads, value, row}, value_strides[] = {head, row, 1};
    return keys ? view_strided(arena, view, 3, key_shape, 0, key_strides)
                : view_strided(arena, view, 3, value_shape, nope * row, value_strides);
}

static const struct view *half_of_rows(struct arena *arena, const struct view *view, bool second, struct error *error)
{
    if (view->rank < 2 || view->shape[view->rank - 2] % 2 != 0)
        return misfit(view, "an even number of rows is split", error);
    uint64_t half = view->shape[view->rank - 2] / 2;
    return view_slice(arena, view, view->rank - 2, second ? half : 0, half, 1);
}

static const struct view *every_second(struct arena *arena, const struct view *view, bool odd, struct error *error)
{
    if (view->rank < 2 || view->shape[1] % 2 != 0)
        return misfit(view, "gate and up must alternate along the second axis", error);
    return view_slice(arena, view, 1, odd, view->shape[1] / 2, 2);
}

static const struct view *transposed(struct arena *arena, const struct view *view)
{
    return view->rank < 2 ? view : view_transpose(arena, view);
}

static const struct view *squeezed(struct arena *arena, const struct view *view)
{
    uint64_t shape[VIEW_MAX_RANK];
    unsigned rank = 0;
    for (unsigned i = 0; i < view->rank; i++)
        if (view->shape[i] != 1)
            shape[rank++] = view->shape[i];
    return view_reshape(arena, view, rank, shape);
}

static const struct view *rows_from(struct arena *arena, const struct view *view, uint64_t first, uint64_t end,
                                    struct error *error)
{
    if (view->rank == 0 || first > view->shape[0])
        return misfit(view, "rows are cut off", error);
    if (end > view->shape[0])
        end = view->shape[0];
    return view_slice(arena, view, 0, first, end - first, 1);
}

static const struct view *rows_of_experts(struct arena *arena, const struct view *view, uint64_t n_experts, struct error *error)
{
    if (view->rank != 2 || n_experts == 0 || view->shape[0] % n_experts != 0)
        return misfit(view, "the rows must be as many for each expert", error);
    const uint64_t shape[] = {n_experts, view->shape[0] / n_experts, view->shape[1]};
    return view_reshape(arena, view, 3, shape);
}

static void plus_one(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] += 1.0f;
}

static void minus_exp(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = -expf(values[i]);
}

/* Arithmetic is done as the converter does it: in F16 for F16 tensors, in F32 for all others. */
static const struct view *mapped(struct arena *arena, const struct view *view, map_function *map)
{
    return view_map(arena, view, view->dtype == &f16_dtype ? &f16_dtype : &f32_dtype, map);
}

const struct view *arrange(struct arena *arena, const struct view *view, enum arrangement arrangement,
                           const struct dimensions *dimensions, struct error *error)
{
    switch (arrangement) {
    case AS_IS:
    case ONE_EXPERT:
    case ONE_QUERY_HEAD:
    case ONE_KEY_HEAD:
        return view;
    case ROTARY_Q:
        return rotary(arena, view, dimensions->n_heads, error);
    case ROTARY_K:
        return rotary(arena, view, dimensions->n_kv_heads, error);
    case PLUS_ONE:
        return mapped(arena, view, plus_one);
    case MINUS_EXP:
        return mapped(arena, view, minus_exp);
    case TRANSPOSED:
        return transposed(arena, view);
    case SQUEEZED:
        return squeezed(arena, view);
    case QKV_OF_HEADS:
        return qkv_of_heads(arena, view, dimensions, error);
    case QKV_OF_GROUPS:
        return qkv_of_groups(arena, view, dimensions, error);
    case FIRST_HALF:
    case SECOND_HALF:
        return half_of_rows(arena, view, arrangement == SECOND_HALF, error);
    case EVEN_MEMBERS:
    case ODD_MEMBERS:
        return every_second(arena, view, arrangement == ODD_MEMBERS, error);
    case TRANSPOSED_EVEN:
    case TRANSPOSED_ODD:
        return every_second(arena, transposed(arena, view), arrangement == TRANSPOSED_ODD, error);
    case MLA_KEYS:
    case MLA_VALUES:
        return mla_part(arena, view, dimensions, arrangement == MLA_KEYS, error);
    case ROWS_OF_EXPERTS:
        return rows_of_experts(arena, view, dimensions->n_experts, error);
    case COLUMNS_OF_EXPERTS:
        view = rows_of_experts(arena, view, dimensions->n_experts, error);
        return view ? view_transpose(arena, view) : NULL;
    case WITHOUT_PADDING:
        return rows_from(arena, view, dimensions->n_padding, UINT64_MAX, error);
    case WITHIN_VOCABULARY:
        return rows_from(arena, view, 0, dimensions->n_tokens ? dimensions->n_tokens : UINT64_MAX, error);
    }
    return view;
}

#include "models/families/drafts/drafts.h"

#include "base/little_endian.h"
#include "models/family/tensors.h"
#include "quant/views/convert.h"
#include "quant/views/positions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool draft_open_target(const struct model_builder *builder, struct document **ret_config, struct error *error)
{
    const struct checkpoint *target = checkpoint_base(builder->model->checkpoint, BASE_TARGET);
    if (target == NULL)
        return error_set(error, "a draft model needs the tokenizer of the model it drafts for; use -o base=DIR");
    if (!document_open(target, "config.json", ret_config, error))
        return error_prefix(error, "the base");
    return *ret_config != NULL || error_set(error, "the base %s has no config.json", target->path);
}

const struct json *draft_target_value(const struct document *config, const char *key)
{
    const struct json *root = document_root(config), *value = json_get(json_get(root, "text_config"), key);
    return value != NULL ? value : json_get(root, key);
}

void draft_set_target_layers(struct model_builder *builder, const int64_t *layers, size_t n_layers)
{
    struct buffer elements = {0};
    for (size_t i = 0; i < n_layers; i++)
        buffer_append_le(&elements, (uint32_t)layers[i], 4);
    gguf_set_array(&builder->model->kvs, builder_key(builder, "target_layers"), GGUF_I32, n_layers, &elements);
}

bool draft_list_target_layers(struct model_builder *builder, const struct json *list, int64_t added,
                              struct error *error)
{
    size_t n_layers = 0;
    if (!json_is(list, JSON_ARRAY) || json_count(list) == 0)
        return true;
    int64_t *layers = arena_array(builder->model->arena, json_count(list), sizeof *layers);
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item)) {
        int64_t *layer = &layers[n_layers++];
        if (!json_i64(item, layer) || *layer < INT32_MIN || *layer > INT32_MAX - added)
            return error_set(error, "config.json: a layer of the base is not a whole number of 32 bits");
        *layer += added;
    }
    draft_set_target_layers(builder, layers, n_layers);
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool check_ids(const int64_t *ids, uint64_t n_ids, uint64_t n_vocab, struct arena *arena, struct error *error)
{
    int64_t *sorted = arena_copy(arena, ids, n_ids * sizeof *ids);
    qsort(sorted, n_ids, sizeof *sorted, compare_ids);
    if (n_ids > 0 && (sorted[0] < 0 || (uint64_t)sorted[n_ids - 1] >= n_vocab))
        return error_set(error, "tensor 'd2t' leads to tokens %" PRId64 " to %" PRId64 ", where the base has %" PRIu64,
                         sorted[0], sorted[n_ids - 1], n_vocab);
    for (uint64_t i = 1; i < n_ids; i++)
        if (sorted[i] == sorted[i - 1])
            return error_set(error, "tensor 'd2t' leads to token %" PRId64 " twice", sorted[i]);
    return true;
}

bool draft_add_tokens(struct model_builder *builder, uint64_t n_vocab, struct error *error)
{
    static const char name[] = "d2t";
    struct arena *arena = builder->model->arena;
    const struct tensor *tensor = tensor_set_find_text(builder->model->checkpoint->tensors, name);
    if (tensor == NULL)
        return true;
    if (tensor->refusal != NULL || dtype_kernels(tensor->dtype).decode == NULL)
        return error_set(error, "tensor '%s': %s", name, tensor->refusal ? tensor->refusal : "it has no numbers");
    const struct view *view = tensor_view(tensor, arena);
    uint64_t n_ids = view->n_elements;
    float *steps = arena_array(arena, n_ids + 1, sizeof *steps);
    int64_t *ids = arena_array(arena, n_ids + 1, sizeof *ids);
    if (!convert_values(view, 0, n_ids, steps, error))
        return false;
    for (uint64_t i = 0; i < n_ids; i++) {
        if (!(steps[i] > (float)INT32_MIN && steps[i] < (float)INT32_MAX))
            return error_set(error, "tensor '%s' has a value that is not a 32-bit integer", name);
        ids[i] = (int64_t)steps[i] + (int64_t)i;
    }
    if (!check_ids(ids, n_ids, n_vocab, arena, error))
        return false;
    little_endian(ids, n_ids, sizeof *ids);
    tensor_set_add_view(builder->model->tensors, name, view_literal(arena, &i64_dtype, 1, &n_ids, ids));
    return true;
}

static const struct view *add_places(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                     const struct view *view)
{
    (void)dimensions;
    return view->dtype == &i64_dtype ? view_add_place(arena, view, direction == FORWARD ? 1 : -1) : view;
}

const struct elementwise draft_steps = {
    .forward_text = "x + place",
    .backward_text = "x - place",
    .apply = add_places,
    .exactness = "exact",
};

static const char *make_vocab_size(const struct config_material *material)
{
    static const char *const with_rows[] = {"token_embd.weight", "markov_w1.weight"};
    struct gguf_array tokens;
    struct error unused;
    for (size_t i = 0; i < sizeof with_rows / sizeof *with_rows; i++) {
        const struct tensor *tensor = tensor_set_find_text(material->tensors, with_rows[i]);
        if (tensor != NULL && tensor->rank == 2)
            return arena_printf(material->arena, "%" PRIu64, tensor->shape[0]);
    }
    if (!gguf_get_array(material->kvs, "tokenizer.ggml.tokens", material->arena, &tokens, &unused))
        return NULL;
    return arena_printf(material->arena, "%" PRIu64, tokens.count);
}

/* Checks d2t, too: config.json is made before tensors are named. */
static const char *make_draft_vocab_size(const struct config_material *material)
{
    const struct tensor *table = tensor_set_find_text(material->tensors, "d2t");
    if (table == NULL)
        return NULL;
    *material->failed = table->dtype != &i64_dtype || table->rank != 1;
    if (*material->failed)
        error_set(material->error, "tensor 'd2t' is not a vector of I64");
    return *material->failed ? NULL : arena_printf(material->arena, "%" PRIu64, table->shape[0]);
}

const struct config_row draft_rows[] = {
    {"vocab_size", .make = make_vocab_size},
    {"draft_vocab_size", .make = make_draft_vocab_size},
    {0},
};

bool draft_has_mask(const struct checkpoint *draft)
{
    for (size_t i = 0; i < draft->n_hidden; i++)
        if (strcmp(draft->hidden[i].name, DRAFT_MASK_FILE) == 0)
            return true;
    return false;
}

static bool is_of_token(const struct checkpoint *mask, uint64_t id)
{
    struct error unsaid;
    uint64_t saved = 0;
    struct json_document *extras = json_parse(mask->extras, strlen(mask->extras), &unsaid);
    bool is_same = extras != NULL && json_u64(json_get(json_root(extras), "mask_token_id"), &saved) && saved == id;
    json_free(extras);
    return is_same;
}

/* Finds the row, which must be for the token `id` and as wide as the model. */
static const struct tensor *find_mask(const struct model_builder *builder, uint64_t id, struct error *error)
{
    const struct checkpoint *mask = checkpoint_base(builder->model->checkpoint, BASE_MASK);
    uint64_t width;
    if (mask == NULL)
        error_set(error, "%s cannot be read; llama.cpp b%u and older builds leave it out: use -o llama.cpp=b%u",
                  DRAFT_MASK_FILE, change_rows[MASK_EMBEDDING].absent, change_rows[MASK_EMBEDDING].absent);
    else if (mask->extras == NULL || !is_of_token(mask, id))
        error_set(error, "%s: mask_token_id is not %" PRIu64 ", as dflash_config has it", DRAFT_MASK_FILE, id);
    else {
        const struct tensor *row = tensor_set_find_text(mask->tensors, "embedding");
        if (row != NULL && row->refusal == NULL && row->rank == 1 && dtype_kernels(row->dtype).decode != NULL &&
            json_u64(hparams_get(builder->model->hparams, "hidden_size"), &width) && row->shape[0] == width)
            return row;
        error_set(error, "%s: no tensor 'embedding' of hidden_size numbers", DRAFT_MASK_FILE);
    }
    return NULL;
}

static const struct tensor *own_tensor(const struct model_builder *builder, const char *name)
{
    static const char prefix[] = "model.";
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    const struct tensor *tensor = tensor_set_find_text(set, name);
    return tensor != NULL ? tensor : tensor_set_find_text(set, name + sizeof prefix - 1);
}

static const struct tensor *target_tensor(const struct model_builder *builder, const char *name, struct error *error)
{
    const struct checkpoint *target = checkpoint_base(builder->model->checkpoint, BASE_TARGET);
    const struct tensor *tensor = target->tensors != NULL ? tensor_set_find_text(target->tensors, name) : NULL;
    if (tensor == NULL || tensor->refusal != NULL)
        error_set(error, "%s needs tensor '%s' of the base %s, which cannot be read there", DRAFT_MASK_FILE, name,
                  target->path);
    return tensor != NULL && tensor->refusal == NULL ? tensor : NULL;
}

static bool relate_one(struct model_builder *builder, const char *name, const struct view *view, struct error *error)
{
    struct tensor_set *one = tensor_set_new(builder->model->arena);
    tensor_set_add_view(one, name, view);
    return tensors_relate(builder, one, error);
}

static const char embedding_name[] = "model.embed_tokens.weight", head_name[] = "model.lm_head.weight";

static bool add_target_head(struct model_builder *builder, struct error *error)
{
    struct document *config;
    if (!draft_open_target(builder, &config, error))
        return false;
    bool is_tied = json_bool(draft_target_value(config, "tie_word_embeddings"), false);
    document_close(config);
    const struct tensor *head = target_tensor(builder, is_tied ? embedding_name : "lm_head.weight", error);
    return head != NULL && relate_one(builder, head_name, tensor_view(head, builder->model->arena), error);
}

/* Returns the matrix with another row. */
static const struct view *with_row(struct arena *arena, const struct view *matrix, const struct view *row, uint64_t at)
{
    const struct view *parts[3];
    const uint64_t shape[] = {1, row->shape[0]};
    size_t n_parts = 0;
    if (at > 0)
        parts[n_parts++] = view_slice(arena, matrix, 0, 0, at, 1);
    parts[n_parts++] = view_reshape(arena, view_convert(arena, row, matrix->dtype), 2, shape);
    if (at + 1 < matrix->shape[0])
        parts[n_parts++] = view_slice(arena, matrix, 0, at + 1, matrix->shape[0] - at - 1, 1);
    return view_concatenate(arena, parts, n_parts, 0);
}

bool draft_add_masked(struct model_builder *builder, const struct json *mask_id, struct error *error)
{
    struct arena *arena = builder->model->arena;
    const struct tensor *embedding = own_tensor(builder, embedding_name);
    uint64_t id, n_vocab;
    if (!json_u64(mask_id, &id) || !json_u64(hparams_get(builder->model->hparams, "vocab_size"), &n_vocab) ||
        id >= n_vocab)
        return error_set(error, "config.json: mask_token_id is no token, which %s needs", DRAFT_MASK_FILE);
    const struct tensor *row = find_mask(builder, id, error);
    if (row == NULL || (embedding == NULL && (embedding = target_tensor(builder, embedding_name, error)) == NULL) ||
        (own_tensor(builder, head_name) == NULL && !add_target_head(builder, error)))
        return false;
    if (embedding->rank != 2 || embedding->shape[0] != n_vocab || embedding->shape[1] != row->shape[0])
        return error_set(error, "the token embedding does not have the shape of the draft's, which %s needs",
                         DRAFT_MASK_FILE);
    dimensions_set(&builder->dimensions, "embedding", 1);
    const struct view *whole = tensor_view(embedding, arena);
    bool added = relate_one(builder, embedding_name, with_row(arena, whole, tensor_view(row, arena), id), error);
    dimensions_set(&builder->dimensions, "embedding", 0);
    return added;
}

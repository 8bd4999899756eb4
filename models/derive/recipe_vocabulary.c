#include "models/derive/recipe_merging.h"

#include "quant/views/row_map.h"

#include <stdlib.h>
#include <string.h>

/* The rows of one source of a slice. */
struct made_map {
    const struct recipe_slice *slice;
    size_t source;
    struct row_map map;
    struct made_map *next;
};

struct recipe_vocabulary_tokens {
    struct recipe_tokens *models; /* by model of the recipe */
    size_t n_models;
    struct recipe_tokens result; /* with the ids of the result */
    uint64_t n_ids;
    uint64_t n_padding;
    int32_t **rows;                         /* by model, and id of the result: the model's row, or -1 */
    const struct recipe_token **configured; /* by id; NULL: not configured */
    struct made_map *made;
};

/* The tokens of the result. */

static void take(struct recipe_vocabulary_tokens *vocabulary, const struct recipe_token_entry *token, uint64_t id)
{
    struct recipe_tokens *result = &vocabulary->result;
    struct recipe_token_entry entry = *token;
    if (!text_index_add(&result->index, token->text, token->length, result->count))
        return;
    entry.id = id;
    result->items = arena_grow(result->arena, result->items, result->count, sizeof entry);
    result->items[result->count++] = entry;
    vocabulary->n_ids = id >= vocabulary->n_ids ? id + 1 : vocabulary->n_ids;
}

/* Takes the tokens of a model, with its ids, below a limit. */
static void take_all(struct recipe_vocabulary_tokens *vocabulary, const struct recipe_tokens *tokens, uint64_t limit)
{
    for (size_t i = 0; i < tokens->count; i++)
        if (tokens->items[i].id < limit)
            take(vocabulary, &tokens->items[i], tokens->items[i].id);
}

/* Takes the tokens of a model that the result lacks, with new ids; those of the tokenizer's model, or the added ones.
 */
static void take_new(struct recipe_vocabulary_tokens *vocabulary, const struct recipe_tokens *tokens, uint64_t limit,
                     bool added)
{
    for (size_t i = 0; i < tokens->count; i++) {
        const struct recipe_token_entry *token = &tokens->items[i];
        bool has_row = token->id < limit;
        if (has_row && token->is_added == added &&
            recipe_tokens_find(&vocabulary->result, token->text, token->length) == NULL) {
            struct recipe_token_entry new = *token;
            new.is_added = true;
            take(vocabulary, &new, vocabulary->n_ids);
        }
    }
}

/* Returns a model's vocab_size: tokens from that id on are padding of the tokenizer, without rows. */
static uint64_t vocab_size(const struct recipe_input *input)
{
    uint64_t size;
    return json_u64(hparams_get(input->hparams, "vocab_size"), &size) ? size : UINT64_MAX;
}

static void take_tokens(const struct recipe_merge *merge, struct recipe_vocabulary_tokens *vocabulary)
{
    const struct recipe *recipe = merge->recipe;
    size_t donor = (size_t)(merge->donor - merge->inputs);
    if (recipe->vocabulary == VOCABULARY_OF_MODEL) {
        take_all(vocabulary, &vocabulary->models[recipe->vocabulary_model], UINT64_MAX);
    } else {
        take_all(vocabulary, &vocabulary->models[donor], vocab_size(merge->donor));
        for (int added = 0; added < 2 && recipe->vocabulary == VOCABULARY_UNION; added++)
            for (size_t i = 0; i < recipe->n_models; i++)
                take_new(vocabulary, &vocabulary->models[i], vocab_size(&merge->inputs[i]), added != 0);
    }
    for (size_t i = 0; i < recipe->n_tokens; i++) {
        const char *text = recipe->tokens[i].text;
        take(vocabulary, &(struct recipe_token_entry){text, strlen(text), 0, NULL, true}, vocabulary->n_ids);
    }
}

/* Finds each model's row of each token. A token beyond the model's vocab_size has none. */
static void find_rows(const struct recipe_merge *merge, struct recipe_vocabulary_tokens *vocabulary)
{
    struct arena *arena = vocabulary->result.arena;
    const struct recipe *recipe = merge->recipe;
    vocabulary->rows = arena_array(arena, recipe->n_models, sizeof *vocabulary->rows);
    vocabulary->configured = arena_array(arena, vocabulary->n_ids, sizeof *vocabulary->configured);
    for (size_t model = 0; model < recipe->n_models; model++) {
        int32_t *rows = vocabulary->rows[model] = arena_array(arena, vocabulary->n_ids, sizeof *rows);
        uint64_t limit = vocab_size(&merge->inputs[model]);
        memset(rows, -1, vocabulary->n_ids * sizeof *rows);
        for (size_t i = 0; i < vocabulary->result.count; i++) {
            const struct recipe_token_entry *token = &vocabulary->result.items[i];
            const struct recipe_token_entry *own =
                recipe_tokens_find(&vocabulary->models[model], token->text, token->length);
            if (own != NULL && own->id < limit)
                rows[token->id] = (int32_t)own->id;
        }
    }
    for (size_t i = 0; i < recipe->n_tokens; i++) {
        const char *text = recipe->tokens[i].text;
        vocabulary->configured[recipe_tokens_find(&vocabulary->result, text, strlen(text))->id] = &recipe->tokens[i];
    }
}

static void release(void *context)
{
    struct recipe_vocabulary_tokens *vocabulary = context;
    for (size_t i = 0; i < vocabulary->n_models; i++)
        recipe_tokens_free(&vocabulary->models[i]);
    recipe_tokens_free(&vocabulary->result);
}

bool recipe_find_vocabulary(struct recipe_merge *merge, struct arena *arena)
{
    const struct recipe *recipe = merge->recipe;
    if (recipe->vocabulary == VOCABULARY_COPIED)
        return true;
    struct recipe_vocabulary_tokens *vocabulary = arena_alloc(arena, sizeof *vocabulary);
    vocabulary->models = arena_array(arena, recipe->n_models, sizeof *vocabulary->models);
    vocabulary->result.arena = arena_new();
    arena_on_free(arena, release, vocabulary);
    for (size_t i = 0; i < recipe->n_models; i++) {
        vocabulary->n_models++;
        if (!recipe_tokens_read(merge->inputs[i].checkpoint, &vocabulary->models[i], merge->error))
            return error_prefix(merge->error, "model '%.200s'", recipe->models[i].text);
    }
    take_tokens(merge, vocabulary);
    find_rows(merge, vocabulary);
    uint64_t multiple = recipe->pad_to_multiple_of;
    if (multiple > 0 && vocabulary->n_ids % multiple > 0)
        vocabulary->n_padding = multiple - vocabulary->n_ids % multiple;
    merge->vocabulary = vocabulary;
    return true;
}

uint64_t recipe_vocabulary_size(const struct recipe_merge *merge)
{
    return merge->vocabulary->n_ids + merge->vocabulary->n_padding;
}

/* The rows of a source. */

struct mapping {
    const struct recipe_merge *merge;
    const struct recipe_vocabulary_tokens *vocabulary;
    const struct recipe_slice *slice;
    struct arena *arena;
    struct row_mean *means;
    size_t n_means;
};

static struct row_place row_of(const struct mapping *mapping, int model, uint64_t id)
{
    int32_t row = mapping->vocabulary->rows[model][id];
    return row >= 0 ? (struct row_place){model, (uint32_t)row} : (struct row_place){ROW_ZERO, 0};
}

/* Returns the row of a token that a model lacks and the recipe does not configure. */
static struct row_place usual_row(struct mapping *mapping, uint64_t id)
{
    const struct recipe_slice *slice = mapping->slice;
    struct row_place *having = NULL, found = {ROW_ZERO, 0};
    size_t count = 0;
    for (size_t i = 0; i < slice->n_sources; i++)
        count += mapping->vocabulary->rows[slice->sources[i].model][id] >= 0;
    if (count > 1)
        having = arena_array(mapping->arena, count, sizeof *having);
    for (size_t i = 0, n = 0; i < slice->n_sources; i++) {
        struct row_place place = row_of(mapping, slice->sources[i].model, id);
        if (place.table == ROW_ZERO)
            continue;
        if (count == 1 || slice->sources[i].model == slice->base)
            return place;
        having[n++] = place;
    }
    if (count > 1) {
        mapping->means = arena_grow(mapping->arena, mapping->means, mapping->n_means, sizeof *mapping->means);
        mapping->means[mapping->n_means] = (struct row_mean){having, count};
        found = (struct row_place){ROW_MEAN, (uint32_t)mapping->n_means++};
    }
    return found;
}

/* Gets the row that the recipe configures. */
static bool configured_row(struct mapping *mapping, const struct recipe_token *token, uint64_t id,
                           struct row_place *ret_place)
{
    const struct recipe_merge *merge = mapping->merge;
    if (token->kind == TOKEN_ZERO) {
        *ret_place = (struct row_place){ROW_ZERO, 0};
    } else if (token->kind == TOKEN_DEFAULT) {
        *ret_place = usual_row(mapping, id);
    } else if (token->other == NULL && token->other_id < 0) {
        *ret_place = row_of(mapping, token->model, id);
    } else {
        const struct recipe_tokens *tokens = &mapping->vocabulary->models[token->model];
        const struct recipe_token_entry *other =
            token->other != NULL ? recipe_tokens_find(tokens, token->other, strlen(token->other)) : NULL;
        int64_t row = other != NULL ? (int64_t)other->id : token->other_id;
        *ret_place = (struct row_place){row >= 0 ? token->model : ROW_ZERO, row >= 0 ? (uint32_t)row : 0};
    }
    return token->kind != TOKEN_OF_MODEL || ret_place->table != ROW_ZERO ||
           error_set(merge->error, "tokens: '%.200s' has no token '%.100s'", merge->recipe->models[token->model].text,
                     token->other != NULL ? token->other : token->text);
}

static bool fill_places(struct mapping *mapping, size_t source, struct row_place *places)
{
    const struct recipe_vocabulary_tokens *vocabulary = mapping->vocabulary;
    int model = mapping->slice->sources[source].model;
    for (uint64_t id = 0; id < vocabulary->n_ids; id++) {
        const struct recipe_token *configured = vocabulary->configured[id];
        bool has_own = vocabulary->rows[model][id] >= 0 && (configured == NULL || !configured->force);
        if (has_own)
            places[id] = row_of(mapping, model, id);
        else if (configured == NULL)
            places[id] = usual_row(mapping, id);
        else if (!configured_row(mapping, configured, id, &places[id]))
            return false;
    }
    return true;
}

/* Returns the map of a source, made once for its embedding and its output. NULL: an error. */
static const struct row_map *map_of(const struct recipe_merge *merge, const struct recipe_slice *slice, size_t source)
{
    struct recipe_vocabulary_tokens *vocabulary = merge->vocabulary;
    struct arena *arena = merge->merged->arena;
    for (const struct made_map *made = vocabulary->made; made != NULL; made = made->next)
        if (made->slice == slice && made->source == source)
            return &made->map;
    struct mapping mapping = {.merge = merge, .vocabulary = vocabulary, .slice = slice, .arena = arena};
    struct row_place *places = arena_array(arena, vocabulary->n_ids, sizeof *places);
    if (!fill_places(&mapping, source, places))
        return NULL;
    struct made_map *made = arena_alloc(arena, sizeof *made);
    *made = (struct made_map){.slice = slice, .source = source, .next = vocabulary->made};
    made->map = (struct row_map){places, vocabulary->n_ids, mapping.means, vocabulary->n_padding};
    vocabulary->made = made;
    return &made->map;
}

/* Tables: the embeddings of the models. */

static const struct tensor *table_of(const struct recipe_merge *merge, const struct recipe_job *job, size_t model)
{
    for (size_t i = 0; i < job->slice->n_sources; i++)
        if (job->slice->sources[i].model == (int)model)
            return job->tensors[i];
    const struct tensor_set *set = merge->inputs[model].model->tensors;
    const struct tensor *own = tensor_set_find_text(set, job->name);
    return own != NULL ? own : tensor_set_find_text(set, job->label);
}

/* Marks the models whose tables a map names, and checks that they have the rows. */
static bool check_place(const struct recipe_merge *merge, const struct recipe_job *job, const struct row_place *place,
                        const struct view **tables)
{
    if (place->table < 0)
        return true;
    const struct tensor *table = table_of(merge, job, (size_t)place->table);
    const char *model = merge->recipe->models[place->table].text;
    uint64_t n_columns = job->tensors[0]->shape[1];
    if (table == NULL || table->rank != 2 || table->shape[1] != n_columns)
        return error_set(merge->error,
                         "tensor '%.200s': '%.200s' has none of this width, but the tokenizer needs its rows",
                         job->name, model);
    if (place->row >= table->shape[0])
        return error_set(merge->error, "tensor '%.200s' has %llu rows in '%.200s', but its tokenizer has the id %u",
                         table->name, (unsigned long long)table->shape[0], model, place->row);
    if (tables[place->table] == NULL)
        tables[place->table] = tensor_view(table, merge->merged->arena);
    return true;
}

static bool find_tables(const struct recipe_merge *merge, const struct recipe_job *job, const struct row_map *map,
                        const struct view **tables)
{
    for (uint64_t id = 0; id < map->n_rows; id++) {
        const struct row_place *place = &map->places[id];
        const struct row_mean *mean = place->table == ROW_MEAN ? &map->means[place->row] : NULL;
        for (size_t i = 0; mean != NULL && i < mean->count; i++)
            if (!check_place(merge, job, &mean->places[i], tables))
                return false;
        if (!check_place(merge, job, place, tables))
            return false;
    }
    return true;
}

const struct view *recipe_vocabulary_view(const struct recipe_merge *merge, const struct recipe_job *job, size_t source,
                                          const struct dtype *dtype)
{
    size_t n_models = merge->recipe->n_models;
    const struct row_map *map = map_of(merge, job->slice, source);
    const struct view **tables = memory_alloc(n_models * sizeof *tables), *view = NULL;
    memset(tables, 0, n_models * sizeof *tables);
    tables[job->slice->sources[source].model] = tensor_view(job->tensors[source], merge->merged->arena);
    if (map != NULL && find_tables(merge, job, map, tables))
        view = view_map_rows(merge->merged->arena, dtype, tables, n_models, map, merge->merged->findings);
    free(tables);
    return view;
}

const struct recipe_tokens *recipe_result_tokens(const struct recipe_merge *merge)
{
    return &merge->vocabulary->result;
}

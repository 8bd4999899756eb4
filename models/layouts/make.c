#include "models/layouts/make.h"

#include "base/checked.h"
#include "formats/documents.h"
#include "formats/safetensors/safetensors.h"
#include "models/facts.h"
#include "models/layouts/making.h"
#include "sources/location.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 4096, MAX_SHARDS = 65536, MAX_COUNT = 1 << 20, MAX_NAME = 255 };

static bool fail_at(const struct making *making, const char *place)
{
    return error_prefix(making->error, "%s", layout_file_place(making->file, place, making->arena));
}

/* Counts a row, or a repetition of a block, which takes time even without rows. */
static bool count_row(struct making *making)
{
    making->n_steps += LAYOUT_ROW_STEPS;
    return making->n_steps <= LAYOUT_MAX_STEPS ||
           error_set(making->error, "too many rows, tensors and repetitions of blocks");
}

static bool make_rows(struct making *making, const struct layout_block *block)
{
    for (unsigned i = 0; i < block->n_rows; i++)
        if (!row_make(making, &block->rows[i]) || !count_row(making))
            return fail_at(making, block->rows[i].place);
    return true;
}

static bool make_block(struct making *making, const struct layout_block *block)
{
    uint64_t count = 1;
    if (block->name != NULL && !scope_number(&making->scope, block->count, MAX_COUNT, &count, making->error))
        return fail_at(making, block->place);
    for (uint64_t i = 0; i < count; i++) {
        bool holds;
        if (block->name != NULL)
            scope_push(&making->scope, block->name, value_of_number((int64_t)i));
        if (!count_row(making) || !scope_holds(&making->scope, block->when, &holds, making->error))
            return fail_at(making, block->place);
        if (holds && !make_rows(making, block))
            return false;
        if (block->name != NULL)
            scope_pop(&making->scope);
    }
    return true;
}

/* Adds a file with tensors [first, end) of the current ones. */
static bool add_artifact(struct making *making, const char *name, size_t first, size_t end)
{
    struct layout_product *product = making->product;
    if (*name == '\0' || *name == '.' || strchr(name, '/') != NULL || strlen(name) > MAX_NAME)
        return error_set(making->error, "'%.300s' is not a valid file name", name) || fail_at(making, "files.name");
    product->artifacts =
        arena_grow(making->arena, product->artifacts, product->n_artifacts, sizeof *product->artifacts);
    struct layout_artifact *made = &product->artifacts[product->n_artifacts++];
    *made = (struct layout_artifact){.name = name};
    made->artifact.container = making->file->files.raw ? &raw_container : &safetensors_container;
    if (end == first)
        return true;
    made->artifact.n_tensors = end - first;
    made->artifact.tensors =
        arena_copy(making->arena, making->tensors + first, (end - first) * sizeof *making->tensors);
    made->origins = arena_copy(making->arena, making->origins + first, (end - first) * sizeof *making->origins);
    return true;
}

/* Like add_artifact(), for a file whose name has the number `shard`. */
static bool add_shard(struct making *making, uint64_t shard, size_t first, size_t end)
{
    const char *name;
    scope_push(&making->scope, "part", value_of_number((int64_t)shard));
    bool filled =
        scope_fill(&making->scope, making->file->files.name, &name, making->error) || fail_at(making, "files.name");
    scope_pop(&making->scope);
    return filled && add_artifact(making, name, first, end);
}

/* Adds the tensors in files as vLLM's ShardedStateLoader.save_model() cuts them: a new file begins before the tensor
 * that would exceed the limit. */
static bool add_shards(struct making *making)
{
    uint64_t limit = UINT64_MAX, shard = 0, size = 0;
    size_t first = 0;
    const char *part_size = making->file->files.part_size;
    if (part_size != NULL && !scope_number(&making->scope, part_size, INT64_MAX, &limit, making->error))
        return fail_at(making, "files.part_size");
    for (size_t i = 0; i < making->n_tensors; i++) {
        uint64_t bytes = artifact_tensor_bytes(&making->tensors[i]), sum;
        if (!checked_add(size, bytes, &sum) || sum > limit) {
            if (shard == MAX_SHARDS)
                return error_set(making->error, "too many shards") || fail_at(making, "files.part_size");
            if (!add_shard(making, shard++, first, i))
                return false;
            first = i;
            sum = bytes;
        }
        size = sum;
    }
    return add_shard(making, shard, first, making->n_tensors);
}

static bool add_raw(struct making *making)
{
    for (size_t i = 0; i < making->n_tensors; i++) {
        const char *name;
        scope_push(&making->scope, "name", value_of_text(making->tensors[i].tensor->name));
        bool filled = scope_fill(&making->scope, making->file->files.name, &name, making->error);
        scope_pop(&making->scope);
        if (!filled)
            return fail_at(making, "files.name");
        if (!add_artifact(making, name, i, i + 1))
            return false;
    }
    struct buffer text = {0};
    layout_json_manifest(making->product, &text);
    making->product->texts[making->product->n_texts++] = (struct layout_text){
        making->file->files.manifest, arena_copy(making->arena, text.bytes, text.length), text.length};
    buffer_free(&text);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const struct artifact_tensor *const *x = a, *const *y = b;
    int order = strcmp((*x)->tensor->name, (*y)->tensor->name);
    return order != 0 ? order : (*x > *y) - (*x < *y);
}

/* Fails if two tensors of a file have the same name. */
static bool check_names(struct making *making)
{
    const struct artifact_tensor **sorted = memory_alloc((making->n_tensors + 1) * sizeof *sorted);
    bool differ = true;
    for (size_t i = 0; i < making->n_tensors; i++)
        sorted[i] = &making->tensors[i];
    qsort(sorted, making->n_tensors, sizeof *sorted, compare_names);
    for (size_t i = 1; differ && i < making->n_tensors; i++)
        if (strcmp(sorted[i - 1]->tensor->name, sorted[i]->tensor->name) == 0)
            differ = error_set(making->error, "%s makes the tensor '%.200s', too",
                               making->origins[sorted[i - 1] - making->tensors].place, sorted[i]->tensor->name) ||
                     fail_at(making, making->origins[sorted[i] - making->tensors].place);
    free(sorted);
    return differ;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fails if two files have the same name. */
static bool check_files(struct making *making)
{
    const struct layout_product *product = making->product;
    size_t count = product->n_artifacts + product->n_texts;
    const char **names = memory_alloc((count + 1) * sizeof *names);
    bool differ = true;
    for (size_t i = 0; i < count; i++)
        names[i] =
            i < product->n_artifacts ? product->artifacts[i].name : product->texts[i - product->n_artifacts].name;
    qsort(names, count, sizeof *names, compare_texts);
    for (size_t i = 1; differ && i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            differ = error_set(making->error, "two files have the name '%s'", names[i]) || fail_at(making, "files");
    free(names);
    return differ;
}

static bool make_file(struct making *making)
{
    making->n_tensors = 0;
    for (size_t i = 0; i < making->file->n_blocks; i++)
        if (!make_block(making, &making->file->blocks[i]))
            return false;
    return check_names(making) && (making->file->files.raw ? add_raw(making) : add_shards(making));
}

static bool make_files(struct making *making)
{
    const struct layout_value *each = &making->file->files.each;
    uint64_t count = 1;
    if (each->name != NULL && !scope_number(&making->scope, each->expression, MAX_FILES, &count, making->error))
        return fail_at(making, "files.for");
    for (uint64_t i = 0; i < count; i++) {
        if (each->name != NULL)
            scope_push(&making->scope, each->name, value_of_number((int64_t)i));
        if (!make_file(making))
            return false;
        if (each->name != NULL)
            scope_pop(&making->scope);
    }
    return true;
}

static bool check_refusals(struct making *making)
{
    for (size_t i = 0; i < making->file->n_refusals; i++) {
        const struct layout_refusal *refusal = &making->file->refusals[i];
        bool holds;
        const char *because;
        if (!scope_holds(&making->scope, refusal->when, &holds, making->error))
            return fail_at(making, arena_printf(making->arena, "refuse[%zu].when", i));
        if (!holds)
            continue;
        if (!scope_fill(&making->scope, refusal->because, &because, making->error))
            return fail_at(making, arena_printf(making->arena, "refuse[%zu].because", i));
        return error_set(making->error, "layout %s: %s", making->file->name, because);
    }
    return true;
}

static bool add_documents(struct making *making, const struct checkpoint *checkpoint)
{
    for (size_t i = 0; i < making->file->n_documents; i++) {
        const struct layout_document *document = &making->file->documents[i];
        struct buffer text = {0};
        bool holds;
        if (!scope_holds(&making->scope, document->when, &holds, making->error) ||
            (holds && !layout_json_document(document, &making->scope, checkpoint, &text, making->error))) {
            buffer_free(&text);
            return fail_at(making, arena_printf(making->arena, "documents[%zu]", i));
        }
        if (holds)
            making->product->texts[making->product->n_texts++] =
                (struct layout_text){document->name, arena_copy(making->arena, text.bytes, text.length), text.length};
        buffer_free(&text);
    }
    return true;
}

/* Reads the dictionary of the layout, and the user's, which the parameter "keymap" names. */
static bool read_keys(struct making *making, struct json_document **ret_document)
{
    struct scope *scope = &making->scope;
    struct value path = {.kind = VALUE_NULL}, rules = {.kind = VALUE_NULL};
    if (making->file->keys != NULL &&
        !key_names_add(&scope->keys, making->file->keys, making->file->path, making->arena, making->error))
        return false;
    making->layout_keys = scope->keys;
    if (scope_knows(scope, "keymap") && !scope_value(scope, "keymap", &path, making->error))
        return false;
    if (scope_knows(scope, "keymap_rules") && !scope_value(scope, "keymap_rules", &rules, making->error))
        return false;
    scope->keys.by_sections = rules.kind == VALUE_TEXT && strcmp(rules.text, "sections") == 0;
    if (!value_is_true(&path))
        return true;
    if (path.kind != VALUE_TEXT)
        return error_set(making->error, "layout %s: keymap: not the name of a file", making->file->name);
    struct source *source = location_open_file(path.text, making->error);
    *ret_document = source != NULL ? document_parse(source, making->error) : NULL;
    source_close(source);
    return *ret_document != NULL &&
           key_names_add(&scope->keys, json_root(*ret_document), path.text, making->arena, making->error);
}

static bool make_all(struct making *making, const char *parameters, const struct hf_model *model)
{
    struct json_document *keys = NULL;
    bool lacks_config = model->config == NULL && facts_of(model->checkpoint).lacks_config;
    making->scope.hparams = model->config != NULL ? hparams_parse(model->config, model->config_length, making->error)
                                                  : hparams_of(model->checkpoint, making->error);
    if (making->scope.hparams == NULL && !lacks_config)
        return false;
    bool made = cutter_init(&making->cutter, &making->scope, making->arena, making->error) &&
                scope_read_parameters(&making->scope, parameters, making->error) && read_keys(making, &keys) &&
                check_refusals(making) && make_files(making) && add_documents(making, model->checkpoint) &&
                check_files(making);
    json_free(keys);
    hparams_free(making->scope.hparams);
    return made;
}

bool layout_make(const struct layout_file *file, const char *parameters, const struct hf_model *model,
                 struct arena *arena, struct layout_product *ret_product, struct error *error)
{
    struct making making = {
        .file = file, .set = model->tensors, .arena = arena, .product = ret_product, .error = error};
    making.scope.file = file;
    making.scope.set = model->tensors;
    making.scope.arena = arena;
    *ret_product = (struct layout_product){0};
    ret_product->used = arena_array(arena, model->tensors->n_tensors + 1, sizeof *ret_product->used);
    ret_product->texts = arena_array(arena, file->n_documents + 2, sizeof *ret_product->texts);
    bool made = make_all(&making, parameters, model);
    free(making.tensors);
    free(making.origins);
    free(making.weights);
    text_index_free(&making.weight_names);
    return made;
}

#include "models/huggingface/shards.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/safetensors/safetensors.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const uint64_t shards_usual_size = 5000000000;

bool shards_parse_size(const char *text, uint64_t *ret_size, struct error *error)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"K", 1000},
        {"KB", 1000},
        {"KiB", 1 << 10},
        {"M", 1000 * 1000},
        {"MB", 1000 * 1000},
        {"MiB", 1 << 20},
        {"G", 1000 * 1000 * 1000},
        {"GB", 1000 * 1000 * 1000},
        {"GiB", 1 << 30},
        {"TB", UINT64_C(1000) * 1000 * 1000 * 1000},
        {"TiB", UINT64_C(1) << 40},
    };
    char *unit;
    uint64_t number = *text >= '0' && *text <= '9' ? strtoull(text, &unit, 10) : 0;
    for (size_t i = 0; number != 0 && i < sizeof units / sizeof *units; i++)
        if (strcasecmp(unit, units[i].unit) == 0 && checked_multiply(number, units[i].bytes, ret_size))
            return true;
    return error_set(error, "'%s' is not a size such as 5GB, 300MB or 2GiB", text);
}

static uint64_t tensor_bytes(const struct hf_model *model, size_t index)
{
    const struct tensor *tensor = &model->tensors->tensors[index];
    return dtype_bytes(hf_written(model, tensor), tensor_elements(tensor));
}

bool shards_is_buffer(const char *name)
{
    return text_ends_with(name, ".e_score_correction_bias");
}

/* Ends the open shard: gives its number to the tensors from `first` up to `end` that have none. */
static void close_shard(uint32_t *shard_of, size_t first, size_t end, size_t *n_shards)
{
    bool is_empty = true;
    for (size_t i = first; i < end; i++)
        if (shard_of[i] == UINT32_MAX) {
            shard_of[i] = (uint32_t)*n_shards;
            is_empty = false;
        }
    *n_shards += !is_empty;
}

size_t shards_spread(const uint64_t *sizes, size_t n_tensors, uint64_t max_size, uint32_t *ret_shard_of)
{
    size_t n_shards = 0, first = 0;
    uint64_t open_size = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        ret_shard_of[i] = UINT32_MAX;
        if (sizes[i] > max_size) {
            ret_shard_of[i] = (uint32_t)n_shards++;
            continue;
        }
        if (open_size + sizes[i] > max_size) {
            close_shard(ret_shard_of, first, i, &n_shards);
            first = i;
            open_size = 0;
        }
        open_size += sizes[i];
    }
    close_shard(ret_shard_of, first, n_tensors, &n_shards);
    return n_shards;
}

uint32_t shards_append(struct shards *shards, uint64_t size, uint64_t max_size)
{
    if (shards->n_shards == 0 || shards->last_size + size > max_size) {
        shards->n_shards++;
        shards->last_size = 0;
    }
    shards->last_size += size;
    shards->total_size += size;
    return (uint32_t)shards->n_shards - 1;
}

bool shards_few_enough(size_t n_shards, uint64_t max_size, struct error *error)
{
    return n_shards <= SHARDS_MAX ||
           error_set(error, "%zu shards of at most %" PRIu64 " bytes are more than %d", n_shards, max_size, SHARDS_MAX);
}

/* Assigns the model's tensors to shards. */
static void spread(const struct hf_model *model, const size_t *order, uint64_t max_size, struct shards *shards)
{
    size_t n_tensors = model->tensors->n_tensors;
    uint64_t *sizes = memory_alloc((n_tensors + 1) * sizeof *sizes);
    uint32_t *shard_of = memory_alloc((n_tensors + 1) * sizeof *shard_of);
    for (size_t i = 0; i < n_tensors; i++)
        sizes[i] = tensor_bytes(model, order[i]);
    shards->n_shards = shards_spread(sizes, n_tensors, max_size, shard_of);
    for (size_t i = 0; i < n_tensors; i++)
        shards->shard_of[order[i]] = shard_of[i];
    free(sizes);
    free(shard_of);
}

static void add_totals(const struct hf_model *model, struct shards *shards)
{
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        shards->total_size += tensor_bytes(model, i);
        shards->total_parameters += shards_is_buffer(tensor->name) ? 0 : tensor_elements(tensor);
    }
}

bool shards_plan(const struct hf_model *model, uint64_t max_size, struct arena *arena, struct shards *ret_shards,
                 struct error *error)
{
    size_t n_tensors = model->tensors->n_tensors;
    struct shards shards = {.shard_of = arena_array(arena, n_tensors, sizeof *shards.shard_of)};
    struct arena *scratch = arena_new();
    spread(model, module_order(model->tensors, model->model_type, scratch), max_size, &shards);
    arena_free(scratch);
    add_totals(model, &shards);
    if (!shards_few_enough(shards.n_shards, max_size, error))
        return false;
    *ret_shards = shards;
    return true;
}

struct shards shards_of_order(const struct hf_model *model, struct arena *arena)
{
    size_t n_tensors = model->tensors->n_tensors;
    struct shards shards = {.n_shards = 1, .shard_of = arena_array(arena, n_tensors, sizeof *shards.shard_of)};
    bool is_known = model->n_shards < 2 * model->n_layers && model->n_shards <= SHARDS_MAX;
    for (size_t i = 0; is_known && i < n_tensors; i++) {
        shards.n_shards += shards.n_shards < model->n_shards && model->shard_begins[shards.n_shards - 1] == i;
        shards.shard_of[i] = (uint32_t)shards.n_shards - 1;
    }
    add_totals(model, &shards);
    return shards;
}

const char *shards_name(const struct shards *shards, size_t shard, char name[SHARDS_NAME])
{
    if (shards->n_shards <= 1)
        return "model.safetensors";
    snprintf(name, SHARDS_NAME, "model-%05zu-of-%05zu.safetensors", shard + 1, shards->n_shards);
    return name;
}

void shards_artifact(const struct hf_model *model, const struct shards *shards, size_t shard,
                     struct artifact *ret_artifact)
{
    struct artifact artifact = {.container = &safetensors_container};
    artifact_reserve(&artifact, model->tensors->n_tensors);
    artifact.n_tensors = 0;
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        if (shards == NULL || shards->shard_of[i] == shard)
            artifact.tensors[artifact.n_tensors++] =
                (struct artifact_tensor){tensor, encoding_of(hf_written(model, tensor))};
    }
    gguf_set_text(&artifact.metadata, "format", "pt");
    *ret_artifact = artifact;
}

void shards_put_map(struct json_writer *writer, const struct shards *shards, const struct shards_entry *entries,
                    size_t n_entries)
{
    char file[SHARDS_NAME];
    for (size_t i = 0; i < n_entries; i++) {
        json_put_key(writer, entries[i].name, entries[i].name_length);
        json_put_text(writer, NULL, shards_name(shards, entries[i].shard, file));
    }
}

void shards_write_entries(const struct shards *shards, const struct shards_entry *entries, size_t n_entries,
                          struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    json_begin_object(&writer, NULL);
    json_begin_object(&writer, "metadata");
    json_put_number(&writer, "total_parameters", shards->total_parameters);
    json_put_number(&writer, "total_size", shards->total_size);
    json_end(&writer);
    json_begin_object(&writer, "weight_map");
    shards_put_map(&writer, shards, entries, n_entries);
    json_end(&writer);
    json_end(&writer);
    buffer_append_text(out, "\n");
}

void shards_write_index(const struct hf_model *model, const struct shards *shards, struct buffer *out)
{
    const struct tensor_set *set = model->tensors;
    struct shards_entry *entries = memory_alloc((set->n_tensors + 1) * sizeof *entries);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[set->by_name[i]];
        entries[i] = (struct shards_entry){tensor->name, tensor->name_length, shards->shard_of[set->by_name[i]]};
    }
    shards_write_entries(shards, entries, set->n_tensors, out);
    free(entries);
}

#include "models/quantize/quantize.h"

#include "base/arena.h"
#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 32 };

bool split_rule_parse(const char *text, struct split_rule *ret_rule, struct error *error)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    uint64_t unit = 0, n_bytes;
    if (strcmp(end, "M") == 0)
        unit = 1000 * 1000;
    else if (strcmp(end, "G") == 0)
        unit = 1000 * 1000 * 1000;
    if (*text < '0' || *text > '9' || number == 0 || (*end != '\0' && unit == 0) ||
        !checked_multiply(number, unit, &n_bytes))
        return error_set(error, "'%s' is neither a size such as 500M or 2G nor a number of tensors", text);
    *ret_rule = unit != 0 ? (struct split_rule){.max_bytes = n_bytes} : (struct split_rule){.max_tensors = number};
    return true;
}

static uint64_t padded_bytes(const struct artifact_tensor *written)
{
    return (artifact_tensor_bytes(written) + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

/* Returns the end of the shard that begins with tensor `first`; 0 if the first tensor of all exceeds max_bytes. */
static size_t end_of_shard(const struct artifact *whole, const struct split_rule *rule, size_t first)
{
    size_t left = whole->n_tensors - first;
    if (rule->max_tensors != 0)
        return left < rule->max_tensors ? whole->n_tensors : first + rule->max_tensors;
    uint64_t n_bytes = 0;
    size_t end = first;
    for (; end < whole->n_tensors; end++) {
        n_bytes += padded_bytes(&whole->tensors[end]);
        if (n_bytes > rule->max_bytes && (end > first || end == 0))
            break;
    }
    return end;
}

size_t *split_ends(const struct artifact *whole, const struct split_rule *rule, size_t *ret_n_shards,
                   struct error *error)
{
    size_t n_shards = 0, first = 0, *ends = NULL;
    do {
        size_t end = end_of_shard(whole, rule, first);
        bool good = end > first || whole->n_tensors == 0;
        if (!good)
            error_set(error, "split: tensor '%s' exceeds the %" PRIu64 " bytes of a shard",
                      whole->tensors[first].tensor->name, rule->max_bytes);
        else if (n_shards == SPLIT_MAX_SHARDS)
            good = error_set(error, "split: more than %d shards", SPLIT_MAX_SHARDS);
        if (!good) {
            free(ends);
            return NULL;
        }
        ends = memory_resize(ends, (n_shards + 1) * sizeof *ends);
        ends[n_shards++] = first = end;
    } while (first < whole->n_tensors);
    *ret_n_shards = n_shards;
    return ends;
}

void split_artifact(const struct artifact *whole, enum splitter splitter, const size_t *ends, size_t n_shards,
                    size_t number, struct artifact *ret_artifact)
{
    size_t first = number > 0 ? ends[number - 1] : 0, n_tensors = ends[number] - first;
    struct artifact shard = {.container = &ggml_container};
    artifact_reserve(&shard, n_tensors);
    if (n_tensors > 0)
        memcpy(shard.tensors, whole->tensors + first, n_tensors * sizeof *shard.tensors);
    if (number == 0)
        shard.metadata = gguf_kvs_copy(&whole->metadata);
    static const char *const keys[] = {"split.no", "split.count", "split.tensors.count"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        gguf_kvs_remove(&shard.metadata, keys[i]);
    gguf_set_u16(&shard.metadata, "split.no", (uint16_t)number);
    if (splitter == SPLITTER_GGUF_SPLIT)
        gguf_set_i32(&shard.metadata, "split.tensors.count", (int32_t)whole->n_tensors);
    gguf_set_u16(&shard.metadata, "split.count", (uint16_t)n_shards);
    if (splitter == SPLITTER_QUANTIZE)
        gguf_set_i32(&shard.metadata, "split.tensors.count", (int32_t)whole->n_tensors);
    *ret_artifact = shard;
}

#include "fs/cli/profile.h"

#include "formats/documents.h"
#include "models/adapter.h"
#include "models/from_gguf.h"
#include "models/mix.h"
#include "models/model.h"
#include "models/projectors/projector.h"
#include "models/shown.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t tensor_bytes(const struct tensor *tensor)
{
    return dtype_bytes(tensor->dtype, tensor_elements(tensor));
}

char *number_text(uint64_t number, char out[NUMBER_TEXT])
{
    static const struct {
        double unit;
        const char *name;
    } scales[] = {{1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if ((double)number >= scales[i].unit) {
            snprintf(out, NUMBER_TEXT, "%.2f %s", (double)number / scales[i].unit, scales[i].name);
            return out;
        }
    snprintf(out, NUMBER_TEXT, "%" PRIu64, number);
    return out;
}

static void count(struct dtype_total *total, const struct tensor *tensor)
{
    total->n_tensors++;
    total->n_elements += tensor_elements(tensor);
    total->n_bytes += tensor_bytes(tensor);
}

static int more_bytes_first(const void *a, const void *b)
{
    const struct dtype_total *left = a, *right = b;
    return (left->n_bytes < right->n_bytes) - (left->n_bytes > right->n_bytes);
}

static void sum_up(struct profile *profile, const struct tensor_set *set)
{
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        size_t at = 0;
        while (at < profile->n_dtypes && profile->by_dtype[at].dtype != tensor->dtype)
            at++;
        if (at == PROFILE_MAX_DTYPES)
            continue;
        if (at == profile->n_dtypes)
            profile->by_dtype[profile->n_dtypes++].dtype = tensor->dtype;
        count(&profile->by_dtype[at], tensor);
        count(&profile->all, tensor);
    }
    qsort(profile->by_dtype, profile->n_dtypes, sizeof *profile->by_dtype, more_bytes_first);
}

static const char *text_of(const struct gguf_kvs *kvs, const char *key, struct arena *arena)
{
    struct error unused;
    size_t length;
    return gguf_get_string(kvs, key, arena, &length, &unused);
}

static const char *kind_of_tokenizer(const char *model)
{
    static const struct {
        const char *model, *kind;
    } kinds[] = {{"gpt2", "BPE"}, {"llama", "SPM"}, {"bert", "WPM"}, {"t5", "UGM"}, {"gemma4", "BPE"}};
    for (size_t i = 0; model != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].model, model) == 0)
            return kinds[i].kind;
    return model;
}

/* What GGUF's keys say. */
static void gather_keys(struct profile *profile, const struct gguf_kvs *kvs, struct arena *arena)
{
    enum gguf_type type;
    uint64_t file_type;
    const struct gguf_kv *tokens = gguf_kvs_find(kvs, "tokenizer.ggml.tokens");
    profile->gguf = text_of(kvs, "general.architecture", arena);
    if (profile->gguf != NULL) {
        gguf_get_u64(kvs, arena_printf(arena, "%s.block_count", profile->gguf), &profile->n_layers);
        gguf_get_u64(kvs, arena_printf(arena, "%s.context_length", profile->gguf), &profile->context_length);
    }
    profile->tokenizer = kind_of_tokenizer(text_of(kvs, "tokenizer.ggml.model", arena));
    if (tokens != NULL)
        gguf_array_outline(tokens, &type, &profile->n_tokens);
    if (gguf_get_u64(kvs, "general.file_type", &file_type)) {
        const struct mix *mix = mix_of_file_type(file_type);
        profile->file_type = mix != NULL ? mix->name : arena_printf(arena, "%" PRIu64, file_type);
    }
}

/* How much of a name says which part its tensor is of: "model.visual" of "model.visual.blocks.0.norm1.weight". */
static size_t part_length(const char *name)
{
    size_t length = strcspn(name, ".");
    if (length == strlen("model") && strncmp(name, "model.", length + 1) == 0)
        length += 1 + strcspn(name + length + 1, ".");
    return length;
}

/* "tensors of visual 390, model.language_model 398, lm_head 1": in the order in which they are met. */
static const char *parts_of(const struct tensor_set *set, struct arena *arena)
{
    enum { MOST_PARTS = 12 };
    struct {
        const char *name;
        size_t length, n_tensors;
    } parts[MOST_PARTS];
    size_t n_parts = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *name = set->tensors[i].name;
        size_t length = part_length(name), at = 0;
        while (at < n_parts && (parts[at].length != length || strncmp(parts[at].name, name, length) != 0))
            at++;
        if (at == MOST_PARTS)
            return NULL;
        if (at == n_parts) {
            parts[n_parts].name = name;
            parts[n_parts].length = length;
            parts[n_parts++].n_tensors = 0;
        }
        parts[at].n_tensors++;
    }
    const char *text = NULL;
    for (size_t i = 0; i < n_parts; i++)
        text = arena_printf(arena, "%s%s%.*s %zu", i > 0 ? text : "tensors of ", i > 0 ? ", " : "",
                            (int)parts[i].length, parts[i].name, parts[i].n_tensors);
    return text;
}

/* The part that sees or hears, where there is any of it. */
static void gather_tower(struct profile *profile, const struct hparams *hparams, const struct tensor_set *set)
{
    struct error unused;
    const struct family_name *name;
    const struct family *projector = projector_find(hparams, &name, &unused);
    for (size_t i = 0; projector != NULL && i < set->n_tensors; i++)
        if (tower_has(projector->tower, set->tensors[i].name))
            count(&profile->tower, &set->tensors[i]);
    if (profile->tower.n_tensors != 0)
        profile->projector = projector;
}

/* What config.json says, also where no GGUF can be made. */
static void gather_config(struct profile *profile, const struct checkpoint *checkpoint, struct arena *arena)
{
    bool absent;
    struct error unused;
    struct hparams *hparams = hparams_load(checkpoint, &absent, &unused);
    if (hparams == NULL)
        return;
    const struct family_name *name;
    const struct family *family = family_find(hparams, &name);
    const char *architecture = hparams_architecture(hparams);
    uint64_t number;
    if (architecture != NULL)
        profile->architecture = arena_strdup(arena, architecture);
    if (family != NULL)
        profile->family = family->summary;
    if (profile->n_layers == 0 && hparams_count(hparams, BLOCK_COUNT, 0, UINT32_MAX, &number, &unused))
        profile->n_layers = number;
    if (profile->context_length == 0 &&
        hparams_count(hparams, "max_position_embeddings|n_positions|n_ctx|max_seq_len|seq_length", 0, UINT32_MAX,
                      &number, &unused))
        profile->context_length = number;
    if (projector_is_described(hparams))
        profile->parts = parts_of(checkpoint->tensors, arena);
    gather_tower(profile, hparams, checkpoint->tensors);
    hparams_free(hparams);
}

void profile_gather(struct profile *profile, const struct checkpoint *checkpoint, struct arena *arena)
{
    struct error unused;
    *profile = (struct profile){0};
    if (checkpoint->n_sources == 0)
        return;
    sum_up(profile, checkpoint->tensors);
    profile->n_parameters = shown_parameters(checkpoint);
    if (adapter_is_source(checkpoint)) {
        profile->adapter = adapter_summary(checkpoint, arena);
        return;
    }
    bool is_gguf = gguf_is_source(checkpoint);
    struct gguf_model *model = is_gguf ? NULL : gguf_model_new(checkpoint, &unused);
    if (is_gguf || (model != NULL && model->family != NULL)) {
        gather_keys(profile, is_gguf ? &checkpoint->metadata : &model->kvs, arena);
        profile->file_type = is_gguf ? profile->file_type : NULL;
        profile->architecture = profile->gguf;
    }
    gguf_model_free(model);
    gather_config(profile, checkpoint, arena);
}

#include "models/family/family.h"

#include "base/attempt.h"
#include "base/text.h"
#include "formats/once.h"
#include "models/family/config_form.h"
#include "models/family/layer_marks.h"
#include "models/relation/relation.h"

#include <string.h>

const struct relation_row decoder_tensors[] = {
    {"model.embed_tokens", "token_embd", .parallel = "row"},
    {"model.norm", "output_norm"},
    {"lm_head", "output", .parallel = "row"},
    {"model.layers.{}.input_layernorm", "blk.{}.attn_norm"},
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", "(head d) ...", "head"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", "(kv_head d) ...", "kv_head"},
    {"model.layers.{}.self_attn.v_proj", "blk.{}.attn_v", "(kv_head d) ...", "kv_head"},
    {"model.layers.{}.self_attn.o_proj", "blk.{}.attn_output", .parallel = "column"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate", .parallel = "row"},
    {"model.layers.{}.mlp.up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {"model.layers.{}.mlp.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

const struct family *family_among(const struct family *const *all, const char *class, const struct hparams *hparams,
                                  const struct family_name **ret_name)
{
    const struct family *found = NULL;
    for (const struct family *const *family = all; class != NULL && *family != NULL; family++)
        for (const struct family_name *hf = (*family)->hf; hf->name != NULL; hf++) {
            bool applies = strcmp(hf->name, class) == 0 &&
                           ((*family)->applies != NULL ? (*family)->applies(hparams) : found == NULL);
            if (applies) {
                *ret_name = hf;
                found = *family;
            }
        }
    return found;
}

bool family_is_known(const struct family *family, const struct family_name *hf, const struct references *references)
{
    unsigned build = reference_build(references);
    return build >= family->since && build >= hf->since;
}

/* The relation of a family. */
struct shared_relation {
    const struct family *family;
    struct once made;
    struct shared_relation *next;
};

static const void *make_relation(void *context, struct arena *arena, struct error *error)
{
    const struct family *family = ((const struct shared_relation *)context)->family;
    return relation_new(arena, family->name, family->prefix, family->tensors, error);
}

static struct shared_relation *shared_relation_of(const struct family *family)
{
    static struct lock lock = LOCK_INITIALIZER;
    static struct shared_relation *first;
    attempt_lock(&lock);
    struct shared_relation *shared = first;
    while (shared != NULL && shared->family != family)
        shared = shared->next;
    if (shared == NULL) {
        shared = memory_alloc(sizeof *shared);
        *shared = (struct shared_relation){.family = family, .next = first};
        once_init(&shared->made);
        first = shared;
    }
    attempt_unlock(&lock);
    return shared;
}

const struct relation *family_relation(const struct family *family, struct error *error)
{
    struct shared_relation *shared = shared_relation_of(family);
    const void *relation;
    once_get(&shared->made, make_relation, shared, &relation, error);
    return relation;
}

const char *family_architecture(const struct family *family)
{
    const char *otherwise = family->tower != NULL ? "clip" : family->name;
    return family->architecture != NULL ? family->architecture : otherwise;
}

void family_add_dimensions(const struct family *family, struct dimensions *dimensions, const struct hparams *hparams)
{
    for (size_t i = 0; family->dimensions[i] != NULL; i++)
        dimensions_add(dimensions, family->dimensions[i], hparams);
    if (family->add_dimensions != NULL)
        family->add_dimensions(dimensions, hparams);
}

/* Names of the parts of multimodal models other than the text model: at the beginning, and anywhere. */
static const char *const foreign_prefixes[] = {
    "mlp",     "vit.",       "vpm.",           "siglip2.",          "conformer.",
    "merger.", "resampler.", "sound_encoder.", "sound_projection.", "speech_embeddings."};
static const char *const foreign_parts[] = {
    "visual.",          "vision.",          "audio.",      "talker.",         "vision_",
    "audio_",           "token2wav.",       "code2wav.",   "projector.",      "pre_mm_projector_norm",
    "image_newline",    "view_seperator",   "patch_embed", "patch_embedding", "patch_merger.",
    "patch_merge_mlp.", "model.connector.", "visual_embed"};

/* Buffers that old checkpoints stored. */
static const char *const skipped_suffixes[] = {".attention.masked_bias", ".attention.bias", ".rotary_emb.inv_freq"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

bool tower_has(const struct tower *tower, const char *name)
{
    for (const char *const *part = tower->parts; *part != NULL; part++)
        if (text_starts_with(name, *part))
            return true;
    return false;
}

static bool is_foreign(const char *name)
{
    for (size_t i = 0; i < COUNT(foreign_prefixes); i++)
        if (text_starts_with(name, foreign_prefixes[i]))
            return true;
    for (size_t i = 0; i < COUNT(foreign_parts); i++)
        if (strstr(name, foreign_parts[i]) != NULL)
            return true;
    return false;
}

/* Returns the name without any occurrence of `part`. */
static const char *without(struct arena *arena, const char *name, const char *part)
{
    const char *found = strstr(name, part);
    if (found == NULL)
        return name;
    char *shorter = arena_strdup(arena, name), *at = shorter + (found - name);
    do
        memmove(at, at + strlen(part), strlen(at + strlen(part)) + 1);
    while ((at = strstr(at, part)) != NULL);
    return shorter;
}

static bool is_borrowed(const struct tower *tower, const char *name)
{
    for (const char *const *borrowed = tower->borrowed; borrowed != NULL && *borrowed != NULL; borrowed++)
        if (strcmp(name, *borrowed) == 0)
            return true;
    return false;
}

/* Reports whether a name lacks "model.", as if the model was saved without its head, although its class has one, such
 * as Qwen3-Embedding's. */
static bool is_bare(const struct family *family, const char *name)
{
    bool usual = false;
    for (size_t i = 0; i < FAMILY_MAX_TABLES && family->tensors[i] != NULL; i++)
        usual |= family->tensors[i] == decoder_tensors;
    return usual && (text_starts_with(name, "embed_tokens.") || text_starts_with(name, "layers.") ||
                     text_starts_with(name, "norm."));
}

const char *family_tensor_name(const struct family *family, const struct family_name *hf,
                               const struct dimensions *dimensions, const char *name, struct arena *arena)
{
    if (family->tower != NULL && !tower_has(family->tower, name) && !is_borrowed(family->tower, name))
        return NULL;
    for (const char *const *prefix = family->dropped_prefixes; prefix != NULL && *prefix != NULL; prefix++)
        if (text_starts_with(name, *prefix))
            name += strlen(*prefix);
    for (const char *const *part = family->dropped_parts; part != NULL && *part != NULL; part++)
        name = without(arena, name, *part);
    if (family->tower == NULL && is_foreign(name))
        return NULL;
    for (size_t i = 0; i < COUNT(skipped_suffixes); i++)
        if (text_ends_with(name, skipped_suffixes[i]))
            return NULL;
    name = without(arena, name, "language_model.");
    if (family->rename != NULL)
        name = family->rename(arena, dimensions, FORWARD, name);
    if (name == NULL)
        return NULL;
    if (hf->prepended != NULL)
        return arena_printf(arena, "%s%s", hf->prepended, name);
    return is_bare(family, name) ? arena_printf(arena, "model.%s", name) : name;
}

bool config_number_of_layer(const struct config_material *material, const char *key, uint64_t layer, double *ret_number)
{
    struct gguf_array array;
    struct error unused;
    uint64_t whole;
    bool truth;
    const char *name = arena_printf(material->arena, "%s.%s", material->architecture, key);
    if (gguf_get_u64(material->kvs, name, &whole)) {
        *ret_number = (double)whole;
        return true;
    }
    if (!gguf_get_array(material->kvs, name, material->arena, &array, &unused) || layer >= array.count)
        return false;
    if (gguf_array_u64(&array, layer, &whole))
        *ret_number = (double)whole;
    else if (gguf_array_bool(&array, layer, &truth))
        *ret_number = truth;
    else
        return gguf_array_f64(&array, layer, ret_number);
    return true;
}

const char *config_number_of_first(const struct config_material *material, const char *mark, bool is_marked,
                                   const char *key)
{
    struct layer_marks marks;
    double number;
    const char *name = arena_printf(material->arena, "%s.%s", material->architecture, mark);
    if (!layer_marks_of_key(material->kvs, name, material->n_layers, material->arena, &marks))
        return NULL;
    uint64_t layer = 0;
    while (layer < marks.n && marks.marked[layer] != is_marked)
        layer++;
    if (layer == marks.n || !config_number_of_layer(material, key, layer, &number))
        return NULL;
    return arena_printf(material->arena, "%.0f", number);
}

#include "models/canonical_gguf.h"

#include "base/text.h"
#include "models/families/family.h"
#include "models/left_out.h"

#include <stdlib.h>
#include <string.h>

/* Ends of names of parameters that checkpoints keep in F32, whatever all others are. */
static const char *const f32_names[] = {".e_score_correction_bias", ".mixer.A_log", ".mixer.D"};

static bool is_number(const struct dtype *dtype)
{
    return dtype->kind == DTYPE_FLOAT || dtype->kind == DTYPE_BLOCK;
}

/* What configurations say of the type of all. */
struct choice {
    const struct dtype *wanted; /* NULL: as the file has them */
    const struct dtype *most;   /* what matrices are */
    bool is_quantized;
};

/* The type of matrices: the one of 16 bits, if there is one; vectors, and some matrices, are F32 in every GGUF. */
static struct choice choose_type(const struct tensor_set *set, const struct dtype *wanted)
{
    struct choice choice = {wanted, &f32_dtype, false};
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct dtype *dtype = set->tensors[i].dtype;
        choice.is_quantized |= dtype->kind == DTYPE_BLOCK;
        if (set->tensors[i].rank >= 2 && (dtype == &f16_dtype || dtype == &bf16_dtype))
            choice.most = dtype;
    }
    if (choice.is_quantized)
        choice.most = &bf16_dtype;
    if (wanted != NULL)
        choice.most = wanted;
    return choice;
}

const struct dtype *canonical_gguf_type(const struct checkpoint *checkpoint, const char **ret_reason)
{
    const struct choice choice = choose_type(checkpoint->tensors, NULL);
    *ret_reason = choice.is_quantized ? "the quantized weights of this GGUF are shown as BF16, rounded; "
                                        "-o dtype=f32 shows just what they are"
                                      : "the matrices of this GGUF are that; vectors stay F32, as it has them";
    return choice.most;
}

static bool stays_f32(const struct tensor *tensor)
{
    for (size_t i = 0; i < sizeof f32_names / sizeof *f32_names; i++)
        if (text_ends_with(tensor->name, f32_names[i]))
            return true;
    return tensor->rank < 2;
}

/* What is not quantized stays as it is, so that nothing is lost; what became F32 on its way from blocks does not count
 * as that.
 */
static const struct dtype *written_type(const struct tensor *tensor, const struct choice *choice)
{
    if (!is_number(tensor->dtype))
        return tensor->dtype;
    if (choice->wanted != NULL)
        return choice->wanted;
    if (tensor->dtype->kind == DTYPE_BLOCK ||
        (tensor->dtype == &f32_dtype && choice->is_quantized && !stays_f32(tensor)))
        return choice->most;
    return tensor->dtype;
}

/* Adds what safetensors can have of a set. */
static bool take(struct canonical_model *model, const struct tensor_set *set, const uint32_t *from,
                 const struct choice *choice, struct error *error)
{
    struct left_out left_out[LEFT_OUT_MAX + 1] = {{0}};
    uint32_t *kept_from = from != NULL ? arena_array(model->arena, set->n_tensors + 1, sizeof *kept_from) : NULL;
    model->from = kept_from;
    model->types = arena_array(model->arena, set->n_tensors + 1, sizeof *model->types);
    struct tensor_set *taken = tensor_set_new(model->arena);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        const struct dtype *written = written_type(tensor, choice);
        const char *reason = canonical_refusal(tensor, written);
        if (reason != NULL) {
            left_out_add(left_out, reason, tensor->name);
            continue;
        }
        model->types[taken->n_tensors] = written;
        if (from != NULL)
            kept_from[taken->n_tensors] = from[i];
        tensor_set_add(taken, tensor);
    }
    left_out_note(left_out, model->checkpoint, "model.safetensors");
    model->tensors = taken;
    return tensor_set_seal(taken, error);
}

/* Where the tensors that come back go. */
struct way_back {
    const struct family *family;
    const struct facts *facts;
    struct arena *arena;
    const struct tensor_set *weights;
    struct tensor_set *set;
    uint32_t *from; /* of each */
    size_t capacity;
    uint32_t last_read;
};

static const struct view *read_view(void *context, const struct tensor *tensor, const char *shown, struct error *error)
{
    struct way_back *into = context;
    into->last_read = (uint32_t)(tensor - into->weights->tensors);
    if (tensor->refusal == NULL)
        return tensor_view(tensor, into->arena);
    error_set(error, "tensor '%.200s': %s", shown, tensor->refusal);
    return NULL;
}

static void write_view(void *context, const char *name, const struct view *view)
{
    struct way_back *into = context;
    if (into->family->rename != NULL)
        name = into->family->rename(into->arena, into->facts, BACKWARD, name);
    if (into->set->n_tensors == into->capacity) {
        into->capacity = 2 * into->capacity + 64;
        into->from = memory_resize(into->from, into->capacity * sizeof *into->from);
    }
    into->from[into->set->n_tensors] = into->last_read;
    tensor_set_add_view(into->set, name, view);
}

/* The tensors without those that stand for hyperparameters. */
static bool find_weights(const struct canonical_model *model, struct tensor_set *weights, struct error *error)
{
    const struct tensor_set *set = model->checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (!text_starts_with(set->tensors[i].name, "rope_"))
            tensor_set_add(weights, &set->tensors[i]);
    return tensor_set_seal(weights, error);
}

/* The facts that rows need are those of the config.json that the keys make. */
static bool read_facts(struct canonical_model *model, const struct family *family, struct facts *ret_facts,
                       struct error *error)
{
    struct hparams *hparams = hparams_parse(model->config, model->config_length, error);
    if (hparams == NULL)
        return false;
    facts_read(ret_facts, hparams);
    if (family->add_facts != NULL)
        family->add_facts(ret_facts, hparams);
    const char *model_type = json_string(json_get(hparams_raw(hparams), "model_type"), NULL);
    if (model_type != NULL)
        model->model_type = arena_strdup(model->arena, model_type);
    if (hparams_architecture(hparams) != NULL)
        model->architecture = arena_strdup(model->arena, hparams_architecture(hparams));
    hparams_free(hparams);
    return true;
}

static const char *dtype_text(const struct dtype *type)
{
    if (type == &f16_dtype)
        return "float16";
    return type == &f32_dtype ? "float32" : "bfloat16";
}

/* Fills in the tensors under Hugging Face's names. */
static bool come_back(struct canonical_model *model, const struct choice *choice, struct way_back *into,
                      struct error *error)
{
    const struct gguf_kvs *kvs = &model->checkpoint->metadata;
    const struct family *family = family_of_keys(kvs);
    struct tensor_set *weights = tensor_set_new(model->arena);
    struct buffer config = {0};
    struct facts facts;
    into->family = family;
    into->facts = &facts;
    into->weights = weights;
    if (family == NULL)
        return error_set(error, "no family of this architecture is known");
    if (!find_weights(model, weights, error) ||
        !config_of_keys(family, kvs, model->checkpoint->tensors, dtype_text(choice->most), &config, error))
        return false;
    const char *note = config_form_of_keys(family, kvs, model->checkpoint->tensors)->note;
    if (note != NULL)
        checkpoint_note(model->checkpoint, "hf/: %s", note);
    model->config = arena_strndup(model->arena, (const char *)config.bytes, config.length);
    model->config_length = config.length;
    buffer_free(&config);
    if (!read_facts(model, family, &facts, error))
        return false;
    model->n_layers = facts.n_layers;
    const struct relation_job job = {
        .relation = relation_new(model->arena, family->name, family->prefix, family->tensors, error),
        .direction = BACKWARD,
        .facts = &facts,
        .facts_name = "the metadata",
        .set = weights,
        .arena = model->arena,
        .context = into,
        .read = read_view,
        .write = write_view,
    };
    if (job.relation == NULL || !relation_apply(&job, error))
        return false;
    if (family->restore != NULL)
        family->restore(kvs, model->arena, into, write_view);
    return true;
}

bool canonical_take_gguf(struct canonical_model *model, const struct dtype *wanted, struct error *error)
{
    struct error reason;
    const struct choice choice = choose_type(model->checkpoint->tensors, wanted);
    struct way_back into = {.arena = model->arena, .set = tensor_set_new(model->arena)};
    if (choice.is_quantized && wanted == NULL) {
        const char *why;
        canonical_gguf_type(model->checkpoint, &why);
        checkpoint_note(model->checkpoint, "model.safetensors, hf/: %s", why);
    }
    bool is_back = come_back(model, &choice, &into, &reason);
    bool taken = is_back && take(model, into.set, into.from, &choice, error);
    free(into.from);
    if (is_back)
        return taken;
    model->config = NULL;
    model->kept_names = arena_strdup(model->arena, reason.message);
    checkpoint_note(
        model->checkpoint,
        "hf/config.json is left out, and the tensors of model.safetensors and hf/ keep GGUF's names and layout: %s",
        reason.message);
    return take(model, model->checkpoint->tensors, NULL, &choice, error);
}

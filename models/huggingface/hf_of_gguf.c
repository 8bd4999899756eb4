#include "models/huggingface/hf_of_gguf.h"

#include "base/arena.h"
#include "base/text.h"
#include "models/convert/left_out.h"
#include "models/family/family.h"
#include "models/huggingface/shards.h"
#include "text/json_write.h"

#include <string.h>

/* The dtype that config.json declares for all tensors. */
struct choice {
    const struct dtype *most; /* the type of most matrices */
    bool is_quantized;
};

/* Returns the type of matrices: one of 16 bits if any has it; vectors and some matrices are F32 in every GGUF. */
static struct choice choose_type(const struct tensor_set *set, const struct dtype *wanted)
{
    struct choice choice = {&f32_dtype, false};
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

const struct dtype *hf_gguf_type(const struct checkpoint *checkpoint, const char **ret_reason)
{
    const struct choice choice = choose_type(checkpoint->tensors, NULL);
    *ret_reason = choice.is_quantized
                      ? "this GGUF's quantized weights are rounded to BF16; -o dtype=f32 shows them exactly"
                      : "the type of this GGUF's matrices; vectors stay F32";
    return choice.most;
}

/* The state of the way back to Hugging Face's names. */
struct way_back {
    struct hf_model *model;
    const struct family *family;
    const struct dimensions *dimensions;
    const struct tensor_set *weights;
    struct tensor_set *set;
    struct left_out left_out[LEFT_OUT_MAX + 1];
    size_t most_shards;             /* a larger number does not mean shards (shards_of_order()) */
    size_t last_read, last_written; /* the weight that a tensor came from, the last one if there are several */
    size_t first;                   /* the first tensor from last_written */
    const char *last, *before;      /* the greatest name of these, and of those from the weight before */
};

/* Removes the tensor that was added last if safetensors cannot hold it; returns whether it stays. */
static bool keep_last(struct way_back *into)
{
    const struct tensor *tensor = &into->set->tensors[into->set->n_tensors - 1];
    const char *reason = hf_refusal(into->model, tensor);
    if (reason == NULL)
        return true;
    left_out_add(into->left_out, reason, tensor->name);
    into->set->n_tensors--;
    return false;
}

/* Ends the tensors that one weight became. The converter wrote the weight when it met the last of their names; if that
 * name is less than the one before, the converter had come to another shard. */
static void end_weight(struct way_back *into)
{
    struct hf_model *model = into->model;
    if (into->first == into->set->n_tensors)
        return;
    if (strcmp(into->last, into->before) < 0) {
        if (model->n_shards < into->most_shards)
            model->shard_begins[model->n_shards - 1] = (uint32_t)into->first;
        model->n_shards++;
    }
    into->before = into->last;
    into->last = "";
    into->first = into->set->n_tensors;
}

static const struct view *read_view(void *context, const struct tensor *tensor, const char *shown, struct error *error)
{
    struct way_back *into = context;
    into->last_read = (size_t)(tensor - into->weights->tensors);
    if (tensor->refusal == NULL)
        return tensor_view(tensor, into->model->arena);
    error_set(error, "tensor '%.200s': %s", shown, tensor->refusal);
    return NULL;
}

static void write_view(void *context, const char *name, const struct view *view)
{
    struct way_back *into = context;
    if (into->family->rename != NULL)
        name = into->family->rename(into->model->arena, into->dimensions, BACKWARD, name);
    if (name == NULL) /* the family left it out, or made it */
        return;
    if (into->last_read != into->last_written)
        end_weight(into);
    into->last_written = into->last_read;
    tensor_set_add_view(into->set, name, view);
    if (keep_last(into) && strcmp(name, into->last) > 0)
        into->last = name;
}

/* Adds the tensors except those that stand for hyperparameters. */
static bool find_weights(const struct hf_model *model, struct tensor_set *weights, struct error *error)
{
    const struct tensor_set *set = model->checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (!text_starts_with(set->tensors[i].name, "rope_"))
            tensor_set_add(weights, &set->tensors[i]);
    return tensor_set_seal(weights, error);
}

/* Reads the dimensions, model type and class from the config.json made from the keys. */
static bool read_dimensions(struct hf_model *model, const struct family *family, struct dimensions *ret_dimensions,
                            struct error *error)
{
    struct hparams *hparams = hparams_parse(model->config, model->config_length, error);
    if (hparams == NULL)
        return false;
    dimensions_read(ret_dimensions, hparams);
    family_add_dimensions(family, ret_dimensions, hparams);
    const char *model_type = json_string(json_get(hparams_raw(hparams), "model_type"), NULL);
    if (model_type != NULL)
        model->model_type = arena_strdup(model->arena, model_type);
    if (hparams_class(hparams) != NULL)
        model->class_name = arena_strdup(model->arena, hparams_class(hparams));
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
static bool come_back(struct hf_model *model, const struct choice *choice, struct way_back *into, struct error *error)
{
    const struct gguf_kvs *kvs = &model->checkpoint->metadata;
    const struct family *family = family_of_keys(kvs, model->checkpoint->tensors);
    struct tensor_set *weights = tensor_set_new(model->arena);
    struct buffer config = {0};
    struct dimensions dimensions;
    into->family = family;
    into->dimensions = &dimensions;
    into->weights = weights;
    if (family == NULL)
        return error_set(error, "the architecture is unknown");
    if (!find_weights(model, weights, error) ||
        !config_of_keys(family, kvs, model->checkpoint->tensors, dtype_text(choice->most), &config, error))
        return false;
    const char *note = config_form_of_keys(family, kvs, model->checkpoint->tensors)->note;
    if (note != NULL)
        checkpoint_note(model->checkpoint, SUBJECT_DIRECTORY, "%s", note);
    model->config = arena_strndup(model->arena, (const char *)config.bytes, config.length);
    model->config_length = config.length;
    buffer_free(&config);
    if (!read_dimensions(model, family, &dimensions, error))
        return false;
    model->n_layers = dimensions.n_layers;
    model->n_shards = 1;
    into->most_shards = model->n_layers < SHARDS_MAX / 2 ? 2 * model->n_layers : SHARDS_MAX;
    model->shard_begins = arena_array(model->arena, into->most_shards, sizeof *model->shard_begins);
    const struct relation_job job = {
        .relation = family_relation(family, error),
        .direction = BACKWARD,
        .dimensions = &dimensions,
        .dimensions_name = "the metadata",
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
    end_weight(into);
    return true;
}

/* Takes the tensors under their own names, with a note. */
static void keep_names(struct hf_model *model, struct way_back *into, const char *reason)
{
    const struct tensor_set *set = model->checkpoint->tensors;
    model->config = NULL;
    model->n_shards = 0;
    model->kept_names = arena_strdup(model->arena, reason);
    checkpoint_note(model->checkpoint, SUBJECT_WEIGHTS,
                    "config.json is left out, and tensors keep their GGUF names and shapes: %s", reason);
    *into = (struct way_back){.model = model, .set = tensor_set_new(model->arena)};
    for (size_t i = 0; i < set->n_tensors; i++) {
        tensor_set_add(into->set, &set->tensors[i]);
        keep_last(into);
    }
}

bool hf_take_gguf(struct hf_model *model, struct error *error)
{
    struct error reason;
    const struct choice choice = choose_type(model->checkpoint->tensors, model->type);
    struct way_back into = {.model = model, .set = tensor_set_new(model->arena), .last = "", .before = ""};
    model->of_blocks = choice.is_quantized ? choice.most : NULL;
    if (choice.is_quantized && model->type == NULL && !model->keeps_codes) {
        const char *why;
        hf_gguf_type(model->checkpoint, &why);
        checkpoint_note(model->checkpoint, SUBJECT_WEIGHTS, "%s", why);
    }
    if (!come_back(model, &choice, &into, &reason))
        keep_names(model, &into, reason.message);
    left_out_note(into.left_out, model->checkpoint, SUBJECT_WEIGHTS);
    model->tensors = into.set;
    return tensor_set_seal(into.set, error);
}

static bool architecture_number(const struct gguf_kvs *kvs, const char *name, uint64_t *ret_number)
{
    struct arena *arena = arena_new();
    const char *architecture = gguf_get_text(kvs, "general.architecture", arena);
    bool found =
        architecture != NULL && gguf_get_u64(kvs, arena_printf(arena, "%s.%s", architecture, name), ret_number);
    arena_free(arena);
    return found;
}

bool pooling_is_known(const struct gguf_kvs *kvs)
{
    uint64_t type;
    return architecture_number(kvs, "pooling_type", &type) && type >= 1 && type <= 3;
}

void pooling_write_modules(const struct gguf_kvs *kvs, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    json_put_template(&writer,
                      "[{'idx': 0, 'name': '0', 'path': '', 'type': 'sentence_transformers.models.Transformer'},"
                      "{'idx': 1, 'name': '1', 'path': '1_Pooling', 'type': 'sentence_transformers.models.Pooling'}]");
}

void pooling_write_config(const struct gguf_kvs *kvs, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    uint64_t type = 0, width = 0;
    architecture_number(kvs, "pooling_type", &type);
    architecture_number(kvs, "embedding_length", &width);
    json_put_template(&writer,
                      "{'word_embedding_dimension': %u, 'pooling_mode_cls_token': %b, 'pooling_mode_mean_tokens': %b,"
                      " 'pooling_mode_max_tokens': false, 'pooling_mode_mean_sqrt_len_tokens': false,"
                      " 'pooling_mode_lasttoken': %b}",
                      width, type == 2, type == 1, type == 3);
}

/* The members in the order of the file, with their keys; one of sampling also sets do_sample. */
static const struct member {
    const char *name, *key;
    bool is_sampling;
} members[] = {
    {"bos_token_id", "tokenizer.ggml.bos_token_id", false},
    {"do_sample", NULL, false},
    {"eos_token_id", "tokenizer.ggml.eos_token_id", false},
    {"min_p", "general.sampling.min_p", true},
    {"mirostat", "general.sampling.mirostat", true},
    {"mirostat_eta", "general.sampling.mirostat_eta", true},
    {"mirostat_tau", "general.sampling.mirostat_tau", true},
    {"pad_token_id", "tokenizer.ggml.padding_token_id", false},
    {"penalty_last_n", "general.sampling.penalty_last_n", true},
    {"penalty_repeat", "general.sampling.penalty_repeat", true},
    {"temperature", "general.sampling.temp", true},
    {"top_k", "general.sampling.top_k", true},
    {"top_p", "general.sampling.top_p", true},
    {"xtc_probability", "general.sampling.xtc_probability", true},
    {"xtc_threshold", "general.sampling.xtc_threshold", true},
};

enum { N_MEMBERS = sizeof members / sizeof *members };

static bool samples(const struct gguf_kvs *kvs)
{
    for (size_t i = 0; i < N_MEMBERS; i++)
        if (members[i].is_sampling && gguf_kvs_find(kvs, members[i].key) != NULL)
            return true;
    return false;
}

/* Writes the tokens that end a text, a turn or a message, as far as they have keys. */
static void put_ends(const struct gguf_kvs *kvs, struct json_writer *writer)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    uint64_t ends[3], id;
    size_t n_ends = 0;
    for (size_t i = 0; i < 3; i++) {
        bool is_known = !gguf_get_u64(kvs, keys[i], &id);
        for (size_t j = 0; j < n_ends; j++)
            is_known |= ends[j] == id;
        if (!is_known)
            ends[n_ends++] = id;
    }
    if (n_ends == 1)
        json_put_number(writer, "eos_token_id", ends[0]);
    if (n_ends < 2)
        return;
    json_begin_array(writer, "eos_token_id");
    for (size_t i = 0; i < n_ends; i++)
        json_put_number(writer, NULL, ends[i]);
    json_end(writer);
}

static void put_member(const struct gguf_kvs *kvs, const struct member *member, struct json_writer *writer)
{
    const char *name = member->name, *key = member->key;
    uint64_t whole;
    double number;
    if (key == NULL) {
        if (samples(kvs))
            json_put_bool(writer, name, true);
    } else if (strcmp(name, "eos_token_id") == 0) {
        put_ends(kvs, writer);
    } else if (gguf_get_u64(kvs, key, &whole)) {
        json_put_number(writer, name, whole);
    } else if (gguf_get_f64(kvs, key, &number)) {
        json_put_f32(writer, name, (float)number);
    }
}

void generation_config_of_keys(const struct gguf_kvs *kvs, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    json_begin_object(&writer, NULL);
    json_put_bool(&writer, "_from_model_config", true);
    for (size_t i = 0; i < N_MEMBERS; i++)
        put_member(kvs, &members[i], &writer);
    json_end(&writer);
    buffer_append_text(out, "\n");
}

#include "models/convert/model.h"

#include "base/text.h"
#include "formats/documents.h"
#include "models/card/general.h"
#include "models/config/hparams.h"
#include "models/convert/fitting_class.h"
#include "models/convert/kept_keys.h"
#include "models/convert/unknown_family.h"
#include "models/convert/unlike.h"
#include "models/facts.h"
#include "models/family/nvfp4.h"
#include "models/family/tensors.h"
#include "models/packings/packings.h"
#include "models/projectors/projector.h"
#include "models/tokenizers/vocab.h"

#include <string.h>

enum { QUANTIZATION_VERSION = 2 };

/* Counts the parameters for general.size_label; none if the model has adapters: the converter then writes no label. */
static struct parameter_count count_parameters(const struct gguf_model *model)
{
    struct parameter_count count = {0};
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        if (text_ends_with(model->tensors->tensors[i].name, ".lora_a"))
            return count;
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct view *view = model->tensors->tensors[i].view;
        const char *name = model->tensors->tensors[i].name;
        bool is_of_experts = view->rank >= 3 && strstr(name, "_exps.") != NULL;
        unsigned axis = is_of_experts && strstr(name, ".bias") != NULL ? 2 : 3;
        count.total += view->n_elements;
        if (!is_of_experts || view->shape[view->rank - axis] == 0) {
            count.shared += view->n_elements;
            continue;
        }
        uint64_t n_experts = view->shape[view->rank - axis];
        count.expert += view->n_elements / n_experts;
        count.expert_sum += n_experts;
        count.expert_tensors++;
    }
    return count;
}

static bool seal(struct gguf_model *model, struct error *error)
{
    bool is_projector = model->family != NULL && model->family->tower != NULL;
    return tensor_set_seal(model->tensors, error) || error_prefix(error, is_projector ? "mmproj.gguf" : "model.gguf");
}

static bool ggml_takes_all(const struct gguf_model *model, struct error *error)
{
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        const char *reason = gguf_tensor_refusal(tensor->name, tensor->name_length, tensor->view);
        if (reason != NULL)
            return error_set(error, "tensor '%.200s': %s", tensor->name, reason);
    }
    return true;
}

/* Fails if config.json names an unknown quantization method. */
static bool check_quantization(const struct gguf_model *model, struct error *error)
{
    const char *method = json_string(hparams_get(model->hparams, "quantization_config.quant_method"), NULL);
    if (method == NULL || packing_is_known(method))
        return true;
    return error_set(error, "checkpoints quantized with '%.64s' are not supported", method);
}

static bool add_tensors(struct model_builder *builder, struct error *error)
{
    struct gguf_model *model = builder->model;
    return tensors_add(builder, error) && seal(model, error) && ggml_takes_all(model, error);
}

/* Returns the number of rows of the token embedding; 0: it is missing or empty. */
static uint64_t embedding_rows(const struct gguf_model *model)
{
    const struct tensor *embedding = tensor_set_find_text(model->tensors, "token_embd.weight");
    return embedding != NULL && embedding->view->rank > 0 && embedding->view->n_elements > 0 ? embedding->view->shape[0]
                                                                                             : 0;
}

/* Sets the error "no tokenizer.model or tokenizer.json, which the llama family needs"; returns false. */
static bool lacks_tokenizer(const struct family *family, struct error *error)
{
    struct buffer files = {0};
    for (size_t i = 0; i < FAMILY_MAX_VOCABS && family->vocabs[i] != NULL; i++) {
        bool is_said = false;
        for (size_t j = 0; j < i; j++)
            is_said |= strcmp(family->vocabs[i]->file, family->vocabs[j]->file) == 0;
        if (!is_said)
            buffer_printf(&files, "%s%s", i == 0 ? "" : " or ", family->vocabs[i]->file);
    }
    error_set(error, "no %.*s, which the %s family needs", (int)files.length, (const char *)files.bytes, family->name);
    buffer_free(&files);
    return false;
}

/* Adds the keys of the tokenizer, by the first kind of the family whose files are present. */
static bool add_by_kinds(struct model_builder *builder, const struct family *family, const struct vocab_input *input,
                         struct error *error)
{
    if ((family->keys_before_vocab != NULL && !builder_emit(builder, family->keys_before_vocab, error)) ||
        (family->before_vocab != NULL && !family->before_vocab(builder, input, error)))
        return false;
    enum vocab_result result = VOCAB_ABSENT;
    for (size_t i = 0; i < FAMILY_MAX_VOCABS && family->vocabs[i] != NULL && result == VOCAB_ABSENT; i++)
        result = vocab_add(family->vocabs[i], &builder->model->kvs, input, error);
    if (result == VOCAB_ABSENT)
        result = vocab_add_saved(&builder->model->kvs, input, error);
    if (result == VOCAB_FAILED)
        return false;
    if (result == VOCAB_ABSENT)
        return lacks_tokenizer(family, error);
    return (family->keys_after_vocab == NULL || builder_emit(builder, family->keys_after_vocab, error)) &&
           (family->after_vocab == NULL || family->after_vocab(builder, input, error));
}

/* Like add_by_kinds(), with the tokenizer of a draft model's target; by the kinds of the target's family if the draft
 * model's own has none. */
static bool add_of_target(struct model_builder *builder, struct vocab_input *input, const struct config_facts *target,
                          struct error *error)
{
    const struct family *family = builder->family, *teller = family;
    input->checkpoint = checkpoint_base(builder->model->checkpoint, BASE_TARGET);
    if (family->vocabs[0] == NULL)
        teller = config_family(target, input->references);
    if (teller == NULL)
        return error_set(error, "the architecture of the base is unknown, and so is its tokenizer");
    return add_by_kinds(builder, teller, input, error) &&
           (teller == family || family->after_vocab == NULL || family->after_vocab(builder, input, error));
}

static void copy_note(const struct checkpoint *to, struct note note)
{
    (note.is_hint ? checkpoint_hint : checkpoint_note)(to, note.subject, "%s", note.text);
}

static bool add_target_vocab(struct model_builder *builder, struct vocab_input *input, struct error *error)
{
    const struct checkpoint *target = checkpoint_base(builder->model->checkpoint, BASE_TARGET);
    const struct config_facts *config = config_facts_of(target, error);
    struct hparams *owner = config != NULL ? hparams_of(target, error) : NULL;
    if (owner == NULL)
        return error_prefix(error, "the base");
    input->owner = owner;
    documents_hold(target);
    bool added = add_of_target(builder, input, config, error);
    documents_release(target);
    hparams_free(owner);
    for (size_t i = 0; i < checkpoint_notes(target); i++)
        copy_note(builder->model->checkpoint, checkpoint_note_at(target, i));
    return added;
}

static bool add_vocab(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    struct vocab_input input = {model->checkpoint, model->hparams,        family_architecture(builder->family),
                                builder->hf->name, embedding_rows(model), model->hparams,
                                &model->references};
    if (builder->family->drafts)
        return add_target_vocab(builder, &input, error);
    if (kept_keys_load(builder->model))
        return true;
    uint64_t n_notes = checkpoint_notes_made();
    if (!add_by_kinds(builder, builder->family, &input, error))
        return false;
    kept_keys_save(model, n_notes);
    return true;
}

/* Returns the builder of a model with that family and hyperparameters, before its dimensions are adjusted. */
static struct model_builder begin(struct gguf_model *model, const struct family_name *hf)
{
    struct model_builder builder = {.model = model, .family = model->family, .hf = hf};
    dimensions_read(&builder.dimensions, model->hparams);
    if (model->part == PART_MTP)
        dimensions_set(&builder.dimensions, "only_mtp", 1);
    if (model->family->tower != NULL)
        tower_count_layers(&builder.dimensions, model->hparams);
    family_add_dimensions(model->family, &builder.dimensions, model->hparams);
    return builder;
}

/* Leaves out the layers of multi-token prediction if the request asks for that, or notes that it cannot be done. */
static void choose_part(struct gguf_model *model, const struct family_name *hf)
{
    const struct references *references = &model->references;
    if (!references->converter.without_mtp || model->part != PART_WHOLE || model->family->tower != NULL)
        return;
    struct model_builder builder = begin(model, hf);
    if (part_is_offered(model->family, hf, references))
        model->part = PART_WITHOUT_MTP;
    else if (dimensions_get(&builder.dimensions, "nextn") != 0)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "the converter of b%u has no --no-mtp for %s, so mtp=no has no effect",
                        reference_build(references), hf->name);
}

/* Notes a multimodal model whose text model names no class: family_find() found one by its type. */
static void note_class(const struct gguf_model *model, const struct family_name *hf)
{
    const char *class_name = hparams_class(model->hparams);
    if (model->family->tower == NULL && class_name != NULL && strcmp(class_name, hf->name) != 0)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "text_config in config.json names no class (architectures), and the converter fails for %s: "
                        "the file has the text model as %s",
                        class_name, hf->name);
}

static bool make_by_family(struct gguf_model *model, const struct family_name *hf, struct error *error)
{
    const struct family *family = model->family;
    struct gguf_kvs *kvs = &model->kvs;
    model->stored_types = family->stored_types;
    choose_part(model, hf);
    struct model_builder builder = begin(model, hf);
    if (!check_quantization(model, error) || !builder_adjust(&builder, error))
        return false;
    gguf_set_text(kvs, "general.architecture", family_architecture(family));
    if ((family->add_extras != NULL && !family->add_extras(&builder, error)) || !add_tensors(&builder, error))
        return false;

    struct parameter_count count = count_parameters(model);
    gguf_set_text(kvs, "general.type", family->tower != NULL ? "mmproj" : "model");
    if (!general_add(kvs, model->checkpoint, hparams_raw(model->hparams), &count, &model->references, error))
        return false;
    for (size_t i = 0; i < FAMILY_MAX_TABLES && family->keys[i] != NULL; i++)
        if (!builder_emit(&builder, family->keys[i], error))
            return false;
    gguf_set_u32(kvs, "general.quantization_version", QUANTIZATION_VERSION);
    nvfp4_write_weights_only(model);
    if (family->tower == NULL && !family->drafts)
        unlike_note(model);
    note_class(model, hf);
    if (family->tower != NULL || model->lacks_vocab)
        return true;
    if (family->drafts)
        return add_vocab(&builder, error);
    struct before_vocab before = before_vocab(model);
    bool added = add_vocab(&builder, error);
    if (added)
        loadable_note(model);
    kept_vocab_end(model, added, &before);
    return added;
}

static bool make_without_family(struct gguf_model *model, const char *class_name, struct error *error)
{
    struct gguf_kvs *kvs = &model->kvs;
    if (!unknown_family_add_tensors(model, error) || !seal(model, error))
        return false;
    struct parameter_count count = count_parameters(model);
    gguf_set_text(kvs, "general.architecture", class_name != NULL ? class_name : "unknown");
    gguf_set_text(kvs, "general.type", "model");
    if (!general_add(kvs, model->checkpoint, model->hparams ? hparams_raw(model->hparams) : NULL, &count,
                     &model->references, error))
        return false;
    gguf_set_u32(kvs, "general.file_type", 0);
    gguf_set_u32(kvs, "general.quantization_version", QUANTIZATION_VERSION);
    return true;
}

/* Notes that the class of config.json is unknown, or that config.json names none. */
static void note_unknown(const struct checkpoint *checkpoint, const char *class_name, const char *consequence)
{
    struct arena *arena = arena_new();
    const char *hint = fitting_class_hint(checkpoint, arena);
    if (class_name == NULL)
        checkpoint_note(checkpoint, SUBJECT_GGUF, "config.json names no architecture, %s%s", consequence, hint);
    else
        checkpoint_note(checkpoint, SUBJECT_GGUF, "the architecture %s is unknown, %s%s", class_name, consequence,
                        hint);
    arena_free(arena);
}

/* Returns the family of a model, or NULL, with a note of why the model becomes a plain container; `config` is NULL if
 * there is no config.json. */
static const struct family *find_family(const struct checkpoint *checkpoint, const struct config_facts *config,
                                        const struct references *references)
{
    static const char consequence[] = "so it is a plain container, which llama.cpp cannot run";
    const struct family *family = config != NULL ? config_family(config, references) : NULL;
    const char *class_name = config != NULL ? config->class_name : NULL;
    if (family != NULL)
        return family;
    if (config != NULL && config->family != NULL)
        checkpoint_note(checkpoint, SUBJECT_GGUF, "llama.cpp b%u does not know the architecture %s, %s",
                        reference_build(references), class_name, consequence);
    else if (config == NULL)
        checkpoint_note(checkpoint, SUBJECT_GGUF, "no config.json, %s", consequence);
    else
        note_unknown(checkpoint, class_name, consequence);
    return NULL;
}

/* Reports whether it is known which class config.json names, if any. */
static bool has_known_config(const struct checkpoint *checkpoint, const struct config_facts **ret_config)
{
    struct error unused;
    struct facts facts = facts_of(checkpoint);
    *ret_config = facts.keys == NULL ? config_facts_of(checkpoint, &unused) : NULL;
    return facts.keys == NULL && (*ret_config != NULL || facts.lacks_config);
}

bool gguf_is_plain(const struct checkpoint *checkpoint, const struct references *references)
{
    const struct config_facts *config;
    return has_known_config(checkpoint, &config) && (config == NULL || config_family(config, references) == NULL);
}

void gguf_note_family(const struct checkpoint *checkpoint, const struct references *references)
{
    const struct config_facts *config;
    if (has_known_config(checkpoint, &config))
        find_family(checkpoint, config, references);
}

static bool fill_in(struct gguf_model *model, struct error *error)
{
    struct error reason;
    struct facts facts = facts_of(model->checkpoint);
    const struct config_facts *config = NULL;
    model->is_gguf = facts.keys != NULL;
    if (model->is_gguf)
        return gguf_model_take(model, error);
    if (!facts.lacks_config && ((config = config_facts_of(model->checkpoint, &reason)) == NULL ||
                                (model->hparams = hparams_of(model->checkpoint, &reason)) == NULL)) {
        *error = reason;
        return false;
    }
    model->family = find_family(model->checkpoint, config, &model->references);
    if (model->family != NULL)
        return make_by_family(model, config->family_class, error);
    return make_without_family(model, config != NULL ? config->class_name : NULL, error);
}

static bool fill_in_mtp(struct gguf_model *model, struct error *error)
{
    model->part = PART_MTP;
    return fill_in(model, error) && (model->family != NULL || error_set(error, "no family is known for the model"));
}

static bool has_predicting_layer(const struct model_builder *builder)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    uint64_t first = builder->dimensions.n_layers - dimensions_get(&builder->dimensions, "nextn");
    struct arena *scratch = arena_new();
    bool found = false;
    for (size_t i = 0; i < set->n_tensors && !found; i++) {
        const char *name =
            family_tensor_name(builder->family, builder->hf, &builder->dimensions, set->tensors[i].name, scratch);
        uint64_t layer = name != NULL ? part_layer_of(name) : UINT64_MAX;
        found = layer >= first && layer != UINT64_MAX;
    }
    arena_free(scratch);
    return found;
}

bool gguf_has_mtp(const struct checkpoint *checkpoint, const struct references *references)
{
    struct error unused;
    const struct config_facts *config = facts_of(checkpoint).keys == NULL ? config_facts_of(checkpoint, &unused) : NULL;
    const struct family *family = config != NULL ? config_family(config, references) : NULL;
    if (family == NULL || checkpoint->tensors == NULL || !part_is_offered(family, config->family_class, references))
        return false;
    struct gguf_model *model = gguf_model_empty(checkpoint, references);
    model->part = PART_MTP;
    model->family = family;
    model->hparams = hparams_of(checkpoint, &unused);
    bool found = false;
    if (model->hparams != NULL) {
        struct model_builder builder = begin(model, config->family_class);
        found = has_predicting_layer(&builder);
    }
    gguf_model_free(model);
    return found;
}

static bool has_tensors(const struct gguf_model *model, struct error *error)
{
    const struct tensor_set *set = model->checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (tower_has(model->family->tower, set->tensors[i].name))
            return true;
    return error_set(error, "config.json describes %s, but the checkpoint has none of its tensors",
                     model->family->summary);
}

static bool fill_in_projector(struct gguf_model *model, struct error *error)
{
    const struct config_facts *config = config_facts_of(model->checkpoint, error);
    model->family = config != NULL ? config_projector(config, &model->references, error) : NULL;
    struct hparams *text = model->family != NULL ? hparams_of(model->checkpoint, error) : NULL;
    if (text == NULL)
        return false;
    model->hparams = hparams_of_tower(text, model->checkpoint, &model->family->tower->config, error);
    return model->hparams != NULL && has_tensors(model, error) && make_by_family(model, config->projector_class, error);
}

bool gguf_has_projector(const struct checkpoint *checkpoint)
{
    struct error unused;
    const struct config_facts *config = facts_of(checkpoint).keys == NULL ? config_facts_of(checkpoint, &unused) : NULL;
    return config != NULL && config->describes_towers;
}

typedef bool fill_function(struct gguf_model *model, struct error *error);

static struct gguf_model *make_filled(const struct checkpoint *checkpoint, const struct references *references,
                                      fill_function *fill, bool is_remade, struct error *error);

static struct gguf_model *make_again(const struct gguf_model *model, struct error *error)
{
    return make_filled(model->checkpoint, &model->references, model->fill, true, error);
}

static struct gguf_model *make_filled(const struct checkpoint *checkpoint, const struct references *references,
                                      fill_function *fill, bool is_remade, struct error *error)
{
    struct gguf_model *model = gguf_model_empty(checkpoint, references);
    model->fill = fill;
    model->make_again = make_again;
    model->is_remade = is_remade;
    documents_hold(checkpoint);
    bool filled = fill(model, error);
    documents_release(checkpoint);
    for (size_t i = 0; filled && i < model->tensors->n_tensors; i++)
        model->is_quantized |= model->tensors->tensors[i].dtype->kind == DTYPE_BLOCK;
    if (filled)
        return model;
    gguf_model_free(model);
    return NULL;
}

static struct gguf_model *make(const struct checkpoint *checkpoint, const struct references *references,
                               fill_function *fill, struct error *error)
{
    struct gguf_model *model = make_filled(checkpoint, references, fill, false, error);
    if (model != NULL)
        long_keys_move(model);
    return model;
}

struct gguf_model *gguf_model_new(const struct checkpoint *checkpoint, const struct references *references,
                                  struct error *error)
{
    return make(checkpoint, references, fill_in, error);
}

struct gguf_model *gguf_model_new_mtp(const struct checkpoint *checkpoint, const struct references *references,
                                      struct error *error)
{
    return make(checkpoint, references, fill_in_mtp, error);
}

static bool fill_in_without_vocab(struct gguf_model *model, struct error *error)
{
    model->lacks_vocab = true;
    return fill_in(model, error);
}

struct gguf_model *gguf_model_new_without_vocab(const struct checkpoint *checkpoint,
                                                const struct references *references, struct error *error)
{
    return make(checkpoint, references, fill_in_without_vocab, error);
}

static bool fill_in_repacked(struct gguf_model *model, struct error *error)
{
    bool has_blocks = false;
    model->is_repacked = true;
    if (facts_of(model->checkpoint).keys != NULL)
        return error_set(error, "the source is a GGUF");
    if (!fill_in(model, error))
        return false;
    if (model->family == NULL)
        return error_set(error, "no family is known for the model");
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        has_blocks |= model->tensors->tensors[i].view->dtype->kind == DTYPE_BLOCK;
    return has_blocks || error_set(error, "no packed weight has blocks that decode to just its values");
}

struct gguf_model *gguf_model_new_repacked(const struct checkpoint *checkpoint, const struct references *references,
                                           struct error *error)
{
    return make(checkpoint, references, fill_in_repacked, error);
}

static bool fill_in_repacked_without_vocab(struct gguf_model *model, struct error *error)
{
    model->lacks_vocab = true;
    return fill_in_repacked(model, error);
}

struct gguf_model *gguf_model_new_for_sizes(const struct checkpoint *checkpoint, const struct references *references,
                                            bool is_repacked)
{
    struct error unsaid; /* the model with all keys cannot be made for the same reason */
    if (!kept_vocab_exists(checkpoint, is_repacked))
        return NULL;
    struct gguf_model *model =
        make(checkpoint, references, is_repacked ? fill_in_repacked_without_vocab : fill_in_without_vocab, &unsaid);
    if (model == NULL || kept_vocab_load(model))
        return model;
    gguf_model_free(model);
    return NULL;
}

struct gguf_model *gguf_projector_new(const struct checkpoint *checkpoint, const struct references *references,
                                      struct error *error)
{
    return make(checkpoint, references, fill_in_projector, error);
}

bool gguf_model_take(struct gguf_model *model, struct error *error)
{
    const struct tensor_set *stored = model->checkpoint->tensors;
    model->kvs = gguf_kvs_copy(&model->checkpoint->metadata);
    for (size_t i = 0; i < stored->n_tensors; i++) {
        const struct tensor *tensor = &stored->tensors[i];
        if (dtype_by_ggml_type((uint32_t)tensor->dtype->ggml_type) != tensor->dtype)
            return error_set(error, "tensor '%s': byte-swapped %s blocks cannot be written", tensor->name,
                             tensor->dtype->name);
        struct tensor taken = *tensor;
        taken.name_length = (uint32_t)strlen(tensor->name);
        taken.view = tensor_view(tensor, model->arena);
        tensor_set_add(model->tensors, &taken);
    }
    return tensor_set_seal(model->tensors, error);
}

/* Returns the index of the tensor's source file, searched from `before` on; `before` if the search fails. */
static size_t shard_of(const struct checkpoint *checkpoint, const struct tensor *tensor, size_t before)
{
    for (size_t shard = before; shard < checkpoint->n_sources; shard++)
        if (checkpoint->sources[shard] == tensor->source)
            return shard;
    return before;
}

size_t *gguf_source_ends(const struct checkpoint *checkpoint, const struct artifact *whole, size_t *ret_n_shards)
{
    size_t n_shards = 0, *ends = memory_alloc((checkpoint->n_sources + 1) * sizeof *ends);
    for (size_t i = 0; i < whole->n_tensors; i++)
        for (size_t shard = shard_of(checkpoint, whole->tensors[i].tensor, n_shards); n_shards < shard; n_shards++)
            ends[n_shards] = i;
    ends[n_shards++] = whole->n_tensors;
    *ret_n_shards = n_shards;
    return ends;
}

void gguf_whole_artifact(const struct gguf_edition *edition, struct artifact *ret_artifact)
{
    const struct gguf_model *model = edition->model;
    size_t n_tensors = model->tensors->n_tensors;
    bool is_split = model->checkpoint->n_sources > 1;
    struct artifact artifact = {.container = is_split ? &ggml_container : &gguf_container,
                                .metadata = gguf_kvs_copy(&model->kvs)};
    artifact_reserve(&artifact, n_tensors);
    for (size_t i = 0; i < n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        artifact.tensors[i] = (struct artifact_tensor){tensor, encoding_of(tensor->dtype)};
    }
    if (is_split) {
        gguf_kvs_remove(&artifact.metadata, "split.count");
        gguf_set_u16(&artifact.metadata, "split.count", 0);
    }
    gguf_edit(&artifact.metadata, edition->edits, 0);
    *ret_artifact = artifact;
}

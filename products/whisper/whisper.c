#include "products/whisper/whisper.h"

#include "formats/ggml/whisper.h"
#include "products/product.h"
#include "products/whisper/forms.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUANTIZED(name, type, number)                                                                                  \
    {                                                                                                                  \
        "ggml/ggml-model-" name ".bin", type, WHISPER_FTYPE_BLOCKS + (number)                                          \
    }

const struct whisper_file whisper_files[] = {
    {"ggml-model.bin", 1, WHISPER_FTYPE_F16},
    {"ggml-model-f32.bin", 0, WHISPER_FTYPE_F32},
    QUANTIZED("q8_0", 8, 7),
    QUANTIZED("q6_k", 14, 14),
    QUANTIZED("q5_k", 13, 13),
    QUANTIZED("q5_1", 7, 9),
    QUANTIZED("q5_0", 6, 8),
    QUANTIZED("q4_k", 12, 12),
    QUANTIZED("q4_1", 3, 3),
    QUANTIZED("q4_0", 2, 2),
    QUANTIZED("q3_k", 11, 11),
    QUANTIZED("q2_k", 10, 10),
    {NULL, 0, 0},
};

static const char *const f32_names[] = {
    "encoder.conv1.bias",
    "encoder.conv2.bias",
    "encoder.positional_embedding",
    "decoder.positional_embedding",
};

static bool is_conv_bias(const char *name)
{
    return strcmp(name, f32_names[0]) == 0 || strcmp(name, f32_names[1]) == 0;
}

bool whisper_stays_f32(const char *name)
{
    for (size_t i = 0; i < sizeof f32_names / sizeof *f32_names; i++)
        if (strcmp(name, f32_names[i]) == 0)
            return true;
    return false;
}

static struct whisper_tensor *new_tensor(struct whisper_model *model)
{
    model->tensors = arena_grow(model->arena, model->tensors, model->n_tensors, sizeof *model->tensors);
    return &model->tensors[model->n_tensors++];
}

void whisper_add_tensor(struct whisper_model *model, const char *name, const struct view *view)
{
    uint64_t shape[VIEW_MAX_RANK];
    unsigned rank = 0;
    for (unsigned i = 0; i < view->rank; i++)
        if (view->shape[i] != 1)
            shape[rank++] = view->shape[i];
    if (is_conv_bias(name))
        shape[rank++] = 1;
    const struct view *shaped = view_reshape(model->arena, view, rank, shape);
    *new_tensor(model) = (struct whisper_tensor){
        .tensor = tensor_of_view(arena_strdup(model->arena, name), shaped),
        .dtype = rank < 2 || whisper_stays_f32(name) ? &f32_dtype : &f16_dtype,
    };
}

bool whisper_add_filters(struct whisper_model *model, uint64_t n_mels, struct error *error)
{
    float *filters = arena_array(model->arena, MEL_MOST_BANDS * MEL_FREQUENCIES, sizeof *filters);
    struct buffer elements = {0};
    if (!mel_filters(n_mels, filters))
        return error_set(error, "%" PRIu64 " mel bands: whisper.cpp has filters for 80 and %d", n_mels, MEL_MOST_BANDS);
    gguf_set_u32(&model->metadata, "filters.n_mels", (uint32_t)n_mels);
    gguf_set_u32(&model->metadata, "filters.n_fft", MEL_FREQUENCIES);
    buffer_append(&elements, filters, n_mels * MEL_FREQUENCIES * sizeof *filters);
    gguf_set_array(&model->metadata, "filters", GGUF_F32, n_mels * MEL_FREQUENCIES, &elements);
    return true;
}

/* Files of whisper.cpp. */

/* Reports whether a key of the metadata has this text. */
static bool says(const struct checkpoint *checkpoint, const char *key, const char *text)
{
    struct arena *arena = arena_new();
    const char *value = gguf_get_text(&checkpoint->metadata, key, arena);
    bool is_equal = value != NULL && strcmp(value, text) == 0;
    arena_free(arena);
    return is_equal;
}

static bool is_ggml(const struct checkpoint *checkpoint)
{
    return strcmp(checkpoint->format, "ggml") == 0 && says(checkpoint, "model", "whisper");
}

static bool take_ggml(struct whisper_model *model, struct error *error)
{
    const struct tensor_set *set = model->checkpoint->tensors;
    model->is_ggml = true;
    for (size_t i = 0; i < set->n_tensors; i++)
        *new_tensor(model) = (struct whisper_tensor){set->tensors[i], set->tensors[i].dtype};
    return whisper_read_metadata(model->checkpoint->sources[0], &model->metadata, error);
}

static const struct whisper_form whisper_ggml = {is_ggml, take_ggml};

bool whisper_is_source(const struct checkpoint *checkpoint, const struct whisper_file *file)
{
    char ftype[16];
    snprintf(ftype, sizeof ftype, "%" PRIu32, file->ftype);
    return is_ggml(checkpoint) && says(checkpoint, "ftype", ftype);
}

/* Any form. */

static const struct whisper_form *form_of(const struct checkpoint *checkpoint)
{
    /* the last by its config.json, which the other two may lie beside */
    static const struct whisper_form *const forms[] = {&whisper_ggml, &whisper_openai, &whisper_hugging_face};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i]->is(checkpoint))
            return forms[i];
    return NULL;
}

bool whisper_is(const struct checkpoint *checkpoint)
{
    return form_of(checkpoint) != NULL;
}

struct whisper_model *whisper_model_new(const struct checkpoint *checkpoint, struct error *error)
{
    const struct whisper_form *form = form_of(checkpoint);
    struct whisper_model *model = memory_alloc(sizeof *model);
    *model = (struct whisper_model){.arena = arena_new(), .checkpoint = checkpoint};
    if (form->take(model, error))
        return model;
    whisper_model_free(model);
    return NULL;
}

void whisper_model_free(struct whisper_model *model)
{
    if (model == NULL)
        return;
    gguf_kvs_free(&model->metadata);
    arena_free(model->arena);
    free(model);
}

static bool is_quantized(const struct whisper_tensor *tensor, const struct whisper_file *file)
{
    return file->ftype > WHISPER_FTYPE_BLOCKS && tensor->tensor.rank == 2 && !whisper_stays_f32(tensor->tensor.name);
}

static const struct dtype *written_dtype(const struct whisper_tensor *tensor, const struct whisper_file *file)
{
    if (is_quantized(tensor, file))
        return dtype_by_ggml_type(file->ggml_type);
    return file->ftype == WHISPER_FTYPE_F32 ? &f32_dtype : tensor->dtype;
}

/* Fails where the tool that makes the file would. */
static bool check_tensor(const struct whisper_tensor *tensor, const struct whisper_file *file, struct error *error)
{
    const struct tensor *stored = &tensor->tensor;
    const struct dtype *dtype = written_dtype(tensor, file);
    if (stored->refusal != NULL)
        return error_set(error, "%s: %s", stored->name, stored->refusal);
    if (is_quantized(tensor, file) && tensor->dtype->kind == DTYPE_BLOCK)
        return error_set(error, "the source is quantized already; whisper-quantize needs F16 or F32");
    if (dtype->kind == DTYPE_BLOCK && stored->shape[stored->rank - 1] % dtype->block_elements != 0)
        return error_set(error, "%s: rows of %" PRIu64 " elements; %s needs multiples of %d", stored->name,
                         stored->shape[stored->rank - 1], dtype->name, dtype->block_elements);
    return true;
}

/* Sets what is written of a tensor: quantizing starts from the values in ggml-model.bin. */
static void write_tensor(const struct whisper_tensor *tensor, const struct whisper_file *file, struct arena *arena,
                         struct artifact_tensor *ret_written)
{
    const struct tensor *values = &tensor->tensor;
    if (is_quantized(tensor, file) && values->dtype != tensor->dtype) {
        struct tensor *rounded = arena_copy(arena, values, sizeof *rounded);
        rounded->view = view_convert(arena, tensor_view(values, arena), tensor->dtype);
        rounded->dtype = tensor->dtype;
        values = rounded;
    }
    *ret_written = (struct artifact_tensor){values, encoding_of(written_dtype(tensor, file))};
}

enum outcome whisper_artifact(const struct whisper_model *model, const struct whisper_file *file, struct arena *arena,
                              struct artifact *ret_artifact, struct error *error)
{
    if (model->is_ggml && file->ftype <= WHISPER_FTYPE_F16) {
        error_set(error, "the source is a file of whisper.cpp, which has no tool to change its type to %s",
                  dtype_by_ggml_type(file->ggml_type)->name);
        return REPORTED;
    }
    for (size_t i = 0; i < model->n_tensors; i++)
        if (!check_tensor(&model->tensors[i], file, error))
            return REPORTED;
    *ret_artifact = (struct artifact){.container = &whisper_container, .metadata = gguf_kvs_copy(&model->metadata)};
    gguf_set_u32(&ret_artifact->metadata, "ftype", file->ftype);
    artifact_reserve(ret_artifact, model->n_tensors);
    for (size_t i = 0; i < model->n_tensors; i++)
        write_tensor(&model->tensors[i], file, arena, &ret_artifact->tensors[i]);
    return OK;
}

static enum outcome make_file(const struct product_input *input, const void *made, const void *what,
                              struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    return whisper_artifact(made, what, arena, ret_artifact, error);
}

static void free_model(void *model)
{
    whisper_model_free(model);
}

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    struct whisper_model *model = whisper_model_new(input->checkpoint, error);
    if (model != NULL)
        arena_on_free(arena, free_model, model);
    return model;
}

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    if (whisper_is(input->checkpoint))
        return true;
    product_hint(hints, "ggml-model*.bin", "only Whisper models become files of whisper.cpp");
    return false;
}

/* Where the source is one of these files, that file is the source itself. */
static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    for (const struct whisper_file *row = whisper_files; row->path != NULL; row++) {
        struct product_file file = {.path = row->path, .make = make_file, .what = row};
        if (whisper_is_source(input->checkpoint, row))
            file = (struct product_file){.path = row->path, .source = input->checkpoint->sources[0]};
        product_add(list, file);
    }
    return true;
}

static const char *left_out(const struct product_input *input)
{
    return "left out";
}

const struct product whisper_product = {
    .name = "whisper",
    .summary = "ggml-model.bin, ggml/: Whisper models for whisper.cpp",
    .is_offered = is_offered,
    .make = make_model,
    .files = list_files,
    .left_out = left_out,
    .left_out_subject = SUBJECT_WHISPER,
};

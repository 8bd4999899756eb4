#include "products/quantized_weights.h"

#include "formats/safetensors/safetensors.h"
#include "models/huggingface/hf_model.h"
#include "models/shown_tensors.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void put(struct weights_maker *maker, const struct tensor *tensor, const struct dtype *dtype)
{
    struct artifact *artifact = maker->artifact;
    assert(artifact->n_tensors < maker->capacity);
    artifact->tensors[artifact->n_tensors++] = (struct artifact_tensor){tensor, encoding_of(dtype)};
}

void weights_put_part(struct weights_maker *maker, const struct tensor *of, const char *suffix, const struct view *view)
{
    struct arena *arena = maker->arena;
    struct tensor *part = arena_alloc(arena, sizeof *part);
    size_t module = loaded_module(of->name) > 0 ? loaded_module(of->name) : of->name_length;
    char *name = arena_alloc(arena, module + strlen(suffix) + 1);
    memcpy(name, of->name, module);
    strcpy(name + module, suffix);
    *part = (struct tensor){.name = name,
                            .name_length = (uint32_t)(module + strlen(suffix)),
                            .rank = (uint8_t)view->rank,
                            .dtype = view->dtype,
                            .shape = view->shape,
                            .view = view};
    put(maker, part, view->dtype);
}

static const struct dtype *written_dtype(const struct ct_model *model, const struct tensor *tensor)
{
    if (model->loaded != NULL)
        return tensor->dtype;
    return model->keeps_files ? tensor->dtype : hf_written(model->model, tensor);
}

const struct view *weights_matrix(const struct weights_maker *maker, const struct tensor *tensor)
{
    struct arena *arena = maker->arena;
    return view_convert(arena, tensor_view(tensor, arena), written_dtype(maker->way->model, tensor));
}

static size_t file_of(const struct weights_way *way, const struct tensor *tensor, bool is_target)
{
    if (way->file_of != NULL)
        return way->file_of(way, tensor, is_target);
    return way->model->file_of[tensor - way->model->tensors->tensors];
}

static bool put_target(struct weights_maker *maker, const struct tensor *tensor)
{
    if (tensor->refusal != NULL)
        return error_set(maker->error, "'%.200s': %s", tensor->name, tensor->refusal);
    return maker->way->put(maker, tensor);
}

bool weights_make(const struct weights_way *way, size_t file, struct arena *arena, struct artifact *ret_artifact,
                  struct error *error)
{
    const struct ct_model *model = way->model;
    struct artifact artifact = {.container = &safetensors_container};
    struct weights_maker maker = {way, &artifact, way->most_parts * model->tensors->n_tensors, arena, error};
    bool good = true;
    artifact_reserve(&artifact, maker.capacity);
    artifact.n_tensors = 0;
    for (size_t i = 0; i < model->tensors->n_tensors && good; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        if (file_of(way, tensor, model->is_target[i]) != file)
            continue;
        else if (model->is_target[i])
            good = put_target(&maker, tensor);
        else
            put(&maker, tensor, written_dtype(model, tensor));
    }
    if (way->format != NULL)
        gguf_set_text(&artifact.metadata, "format", way->format);
    if (good)
        *ret_artifact = artifact;
    else
        artifact_free(&artifact);
    return good;
}

/* The index. */

struct index {
    struct tensor *tensors; /* names and sizes alone; the texts live in the arena */
    uint32_t *file_of;
    size_t n;
    uint64_t total_size;
};

static void add_to_index(struct index *index, const struct artifact *artifact, size_t file)
{
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        const struct artifact_tensor *written = &artifact->tensors[i];
        index->tensors[index->n] = *written->tensor;
        index->file_of[index->n++] = (uint32_t)file;
        index->total_size += artifact_tensor_bytes(written);
    }
}

static void put_index(const struct ct_model *model, const struct index *index, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    uint32_t *by_name = tensors_by_name(index->tensors, index->n);
    json_put_template(&writer, "{'metadata': {'total_size': %u}, 'weight_map': {", index->total_size);
    for (size_t i = 0; i < index->n; i++) {
        const struct tensor *tensor = &index->tensors[by_name[i]];
        json_put_key(&writer, tensor->name, tensor->name_length);
        json_put_text(&writer, NULL, model->names[index->file_of[by_name[i]]]);
    }
    json_end(&writer);
    json_end(&writer);
    free(by_name);
}

bool weights_write_index(const struct weights_way *way, struct buffer *out, struct error *error)
{
    const struct ct_model *model = way->model;
    struct artifact *artifacts = memory_alloc((model->n_files + 1) * sizeof *artifacts);
    struct arena *arena = arena_new();
    struct index index = {0};
    size_t n_artifacts = 0, n_tensors = 0;
    while (n_artifacts < model->n_files && weights_make(way, n_artifacts, arena, &artifacts[n_artifacts], error))
        n_tensors += artifacts[n_artifacts++].n_tensors;
    bool good = n_artifacts == model->n_files;
    index.tensors = memory_alloc((n_tensors + 1) * sizeof *index.tensors);
    index.file_of = memory_alloc((n_tensors + 1) * sizeof *index.file_of);
    for (size_t i = 0; i < n_artifacts && good; i++)
        add_to_index(&index, &artifacts[i], i);
    if (good)
        put_index(model, &index, out);
    free(index.tensors);
    free(index.file_of);
    for (size_t i = 0; i < n_artifacts; i++)
        artifact_free(&artifacts[i]);
    free(artifacts);
    arena_free(arena);
    return good;
}

/* Reports whether a tensor is a matrix of numbers, or one of each expert. */
static bool is_matrix(const struct ct_model *model, const struct tensor *tensor)
{
    const struct dtype *dtype = tensor->dtype;
    unsigned rank = model->turned != NULL && loaded_module(tensor->name) == 0 ? 3 : 2;
    return tensor->rank == rank && tensor_elements(tensor) > 0 &&
           (dtype == &f32_dtype || dtype == &f16_dtype || dtype == &bf16_dtype || dtype->kind == DTYPE_BLOCK);
}

struct ct_model *weights_model_new(const struct product_input *input, const char *const *kept, struct arena *arena,
                                   struct error *error)
{
    const struct checkpoint *checkpoint = input->checkpoint;
    const char *const *patterns = input->request->ignored_modules != NULL ? input->request->ignored_modules : kept;
    const struct hf_model *plain = hf_model_of(checkpoint, error);
    bool keeps = ct_keeps_files(checkpoint, shown_tensors_of(checkpoint)->unpacked != NULL), any = false;
    struct ct_model *model = plain != NULL ? ct_model_new(arena, plain, keeps, true, patterns, error) : NULL;
    for (size_t i = 0; model != NULL && i < model->tensors->n_tensors; i++) {
        model->is_target[i] = model->is_target[i] && is_matrix(model, &model->tensors->tensors[i]);
        any = any || model->is_target[i];
    }
    if (model == NULL || any)
        return model;
    error_set(error, "there is no matrix to quantize among %zu tensors", model->tensors->n_tensors);
    return NULL;
}

/* The files. */

static enum outcome make_file(const struct product_input *input, const void *made, const void *number,
                              struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    return weights_make(made, *(const size_t *)number, arena, ret_artifact, error) ? OK : REPORTED;
}

static enum outcome write_index(const struct product_input *input, const void *made, const void *what,
                                struct buffer *out, struct error *error)
{
    return weights_write_index(made, out, error) ? OK : REPORTED;
}

void weights_add_files(const struct checkpoint *checkpoint, struct product_list *list)
{
    bool keeps = ct_keeps_files(checkpoint, shown_tensors_of(checkpoint)->unpacked != NULL);
    size_t n_files = keeps ? checkpoint->n_sources : 1;
    for (size_t i = 0; i < n_files; i++) {
        const char *path = keeps ? source_name(checkpoint->sources[i]) : "model.safetensors";
        const void *number = arena_copy(list->arena, &i, sizeof i);
        product_add(list, (struct product_file){.path = path, .make = make_file, .what = number});
    }
    product_add(list, (struct product_file){.path = "model.safetensors.index.json", .write = write_index});
}

/* config.json. */

bool weights_write_config(const struct weights_way *way, const struct buffer *description, struct buffer *out,
                          struct error *error)
{
    struct json_document *config, *more = json_parse((const char *)description->bytes, description->length, error);
    bool good = more != NULL && ct_read_config(way->model->model, &config, error);
    if (good && config == NULL)
        good = error_set(error, "there is no config.json to add the scheme to");
    if (good)
        json_put_sorted(&(struct json_writer){.out = out, .letters = JSON_ASCII}, json_root(config), json_root(more));
    json_free(good ? config : NULL);
    json_free(more);
    return good;
}

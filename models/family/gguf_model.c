#include "models/family/gguf_model.h"

#include "models/config/hparams.h"

#include <stdlib.h>
#include <string.h>

enum { GGML_MAX_NAME = 64, GGML_MAX_DIMS = 4 };

struct gguf_model *gguf_model_empty(const struct checkpoint *checkpoint, const struct references *references)
{
    struct gguf_model *model = memory_alloc(sizeof *model);
    struct arena *arena = arena_new();
    *model = (struct gguf_model){
        .arena = arena,
        .checkpoint = checkpoint,
        .references = references != NULL ? *references : (struct references){0},
        .tensors = tensor_set_new(arena),
        .auto_type = &f16_dtype,
    };
    return model;
}

void gguf_model_free(struct gguf_model *model)
{
    if (model == NULL)
        return;
    hparams_free(model->hparams);
    gguf_kvs_free(&model->kvs);
    arena_free(model->arena);
    free(model);
}

static void free_model(void *model)
{
    gguf_model_free(model);
}

const struct gguf_edition *gguf_edition_new(struct arena *arena, struct gguf_model *model,
                                            const struct gguf_edits *edits, const struct quantize_outline *outline)
{
    if (model == NULL)
        return NULL;
    struct gguf_edition *edition = arena_alloc(arena, sizeof *edition);
    *edition = (struct gguf_edition){model, edits, outline};
    arena_on_free(arena, free_model, model);
    return edition;
}

const char *gguf_tensor_refusal(const char *name, size_t name_length, const struct view *view)
{
    if (name_length >= GGML_MAX_NAME)
        return "its name is longer than ggml's limit of 63 bytes";
    if (memchr(name, '\0', name_length) != NULL)
        return "its name contains a NUL byte";
    if (view->rank > GGML_MAX_DIMS)
        return "it has more than ggml's limit of 4 dimensions";
    uint64_t n_elements = 1;
    for (unsigned i = view->rank; i-- > 0; n_elements *= view->shape[i])
        if (view->shape[i] > INT64_MAX || (view->n_elements > 0 && INT64_MAX / view->shape[i] <= n_elements))
            return "it has more elements than ggml supports";
    return NULL;
}

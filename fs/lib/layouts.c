#include "fs/lib/layouts.h"

#include "fs/lib/lib.h"
#include "models/layouts/make.h"

static void take_file(const struct layout_artifact *file, const struct layout_taker *taker)
{
    const struct artifact *artifact = &file->artifact;
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < artifact->n_tensors; i++)
        n_bytes += artifact_tensor_bytes(&artifact->tensors[i]);
    taker->file(file->name, artifact->n_tensors, n_bytes);
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        const struct tensor *tensor = artifact->tensors[i].tensor;
        const struct layout_origin *origin = &file->origins[i];
        taker->tensor(&(struct layout_tensor){tensor->name, artifact->tensors[i].encoding.dtype->name, tensor->shape,
                                              tensor->rank, origin->sources, origin->n_sources, origin->place});
    }
}

static void take_product(const struct layout_product *product, const struct tensor_set *set,
                         const struct layout_taker *taker)
{
    for (size_t i = 0; i < product->n_artifacts; i++)
        take_file(&product->artifacts[i], taker);
    for (size_t i = 0; i < product->n_texts; i++)
        taker->document(product->texts[i].name, product->texts[i].length);
    for (size_t i = 0; i < set->n_tensors; i++)
        if (!product->used[i])
            taker->unused(set->tensors[i].name);
}

bool layout_check(const char *layout, const char *source, const struct options *options,
                  const struct layout_taker *taker, struct error *error)
{
    struct layout_request request;
    struct layout_product product;
    const struct hf_model *model = NULL;
    struct arena *arena = arena_new();
    const struct checkpoint *checkpoint =
        layout_find(layout, arena, &request, error) ? lib_open_checkpoint(source, options, error) : NULL;
    bool fits = checkpoint != NULL && (model = hf_model_of(checkpoint, error)) != NULL &&
                layout_make(request.file, request.parameters, model, arena, &product, error);
    if (fits)
        take_product(&product, model->tensors, taker);
    checkpoint_close(checkpoint);
    arena_free(arena);
    return fits;
}

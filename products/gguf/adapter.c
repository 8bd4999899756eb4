/* adapter.gguf and gguf/adapter-*.gguf: the output of convert_lora_to_gguf.py for a LoRA adapter.
 *
 * The files need the base model's configuration. The user names the base model (the checkpoint's BASE_TARGET), or
 * adapter_config.json names one in the local hub cache, which the first plan of a file opens. */
#include "models/derive/adapter.h"
#include "models/facts.h"
#include "products/gguf/target_list.h"

struct adapter_model {
    struct gguf_edition edition;   /* the first field, which target_list_make() takes the object for */
    struct gguf_model *model;      /* of the edition */
    const struct checkpoint *base; /* opened here; NULL if the checkpoint has it as BASE_TARGET */
    struct origin origin;          /* with that of the base, if it was opened here */
};

/* Opens the base model: the user's, for an adapter in a component, or the one that adapter_config.json names. */
static const struct checkpoint *open_base(const struct product_input *input, struct error *error)
{
    struct arena *arena = arena_new();
    const char *path = input->request->base;
    if (path == NULL)
        path = adapter_find_base(input->checkpoint, arena, error);
    const struct checkpoint *base = path != NULL ? base_open(path, input->checkpoint, error) : NULL;
    arena_free(arena);
    return base;
}

static void free_model(void *context)
{
    const struct adapter_model *adapter = context;
    gguf_model_free(adapter->model);
    checkpoint_close(adapter->base);
}

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct request *request = input->request;
    const struct checkpoint *base = checkpoint_base(input->checkpoint, BASE_TARGET);
    struct adapter_model *adapter = arena_alloc(arena, sizeof *adapter);
    *adapter = (struct adapter_model){0};
    if (base == NULL) {
        base = adapter->base = open_base(input, error);
        adapter->origin = origin_with_base(origin_of_model(input->checkpoint, arena), base, arena);
    }
    if (base != NULL)
        adapter->model = gguf_adapter_new(input->checkpoint, base, &request->references, request->fold_scale, error);
    if (adapter->model == NULL) {
        checkpoint_close(adapter->base);
        return NULL;
    }
    adapter->edition = (struct gguf_edition){adapter->model, &request->edits, NULL};
    arena_on_free(arena, free_model, adapter);
    return adapter;
}

static struct origin origin_of_adapter(const void *made)
{
    return ((const struct adapter_model *)made)->origin;
}

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    if (facts_of(input->checkpoint).is_adapter)
        return true;
    product_hint(hints, "adapter.gguf", "the source is not a LoRA adapter");
    return false;
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    gguf_adapter_note_scale(input->checkpoint, input->request->fold_scale);
    target_list_add_all(list, OF_ADAPTER, NULL);
    return true;
}

static const char *left_out(const struct product_input *input)
{
    return "adapter.gguf and gguf/ are left out";
}

const struct product adapter_product = {
    .name = "adapter",
    .summary = "for a LoRA adapter: adapter.gguf, gguf/adapter-*.gguf",
    .is_offered = is_offered,
    .make = make_model,
    .origin = origin_of_adapter,
    .files = list_files,
    .left_out = left_out,
};

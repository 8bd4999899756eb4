/* LoRA adapters of any shapes and names: as GGUF, and merged into a base.
 *
 * An input is as write_model() has it, its first line adapter_config.json; the base
 * is always the same. Holds: what is merged can be read, and any part of it is the same as in the whole. */
#include "models/derive/adapter.h"
#include "models/derive/derive.h"
#include "models/formats.h"
#include "quant/views/convert.h"

#include "tests/fuzz/read_tensors.h"
#include "tests/fuzz/write_model.h"

enum { MOST_VALUES = 1 << 16 };

static const char base_config[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 8, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 16, \"vocab_size\": 32}";
static const char base_weights[] = "{}\n"
                                   "model.layers.0.self_attn.q_proj.weight BF16 [8,8] 128\n"
                                   "model.layers.0.mlp.up_proj.weight F32 [16,8] 512\n"
                                   "model.layers.0.mlp.up_proj.bias F16 [16] 32\n"
                                   "model.embed_tokens.weight F16 [32,8] 512\n"
                                   "model.layers.0.mlp.stack.up BF16 [2,4,8] 128\n"
                                   "model.layers.0.mlp.experts.0.gate_proj.weight BF16 [4,8] 64\n"
                                   "model.layers.0.mlp.experts.0.up_proj.weight BF16 [4,8] 64\n"
                                   "model.layers.0.mlp.experts.1.gate_proj.weight BF16 [4,8] 64\n"
                                   "model.layers.0.mlp.experts.1.up_proj.weight BF16 [4,8] 64\n"
                                   "\n\001\072\200\273";

static void remove_directory(void)
{
    static const char *const names[] = {"adapter_config.json", "adapter_model.safetensors", "base/config.json",
                                        "base/model.safetensors", NULL};
    remove_files(names);
    remove_folder("base");
    rmdir(directory);
}

static void write_base(void)
{
    char path[128];
    path_of("base", path);
    if (mkdir(path, 0700) != 0)
        return;
    write_model("base/ignored.json", "base/model.safetensors", (const uint8_t *)base_weights, sizeof base_weights - 1);
    remove_file("base/ignored.json");
    write_file("base/config.json", base_config, strlen(base_config));
}

static void read_view(const struct view *view)
{
    static unsigned char whole[MOST_VALUES * 4], part[MOST_VALUES * 4];
    struct error error;
    size_t unit = view->dtype->block_bytes;
    uint64_t first = view_units(view) / 3, count = view_units(view) - first - view_units(view) / 5;
    if (view_units(view) > MOST_VALUES || unit > 4)
        return;
    if (!view_read(view, 0, view_units(view), whole, &error))
        require_one_line(&error);
    else
        require(view_read(view, first, count, part, &error) && memcmp(part, whole + first * unit, count * unit) == 0);
}

static void read_set(const struct tensor_set *set)
{
    struct arena *arena = arena_new();
    for (size_t i = 0; i < set->n_tensors; i++)
        if (set->tensors[i].refusal == NULL)
            read_view(tensor_view(&set->tensors[i], arena));
    arena_free(arena);
}

static void describe(const struct checkpoint *adapter)
{
    struct error error;
    struct arena *arena = arena_new();
    require(*adapter_summary(adapter, arena) != '\0');
    if (adapter_find_base(adapter, arena, &error) == NULL)
        require_one_line(&error);
    gguf_adapter_note_scale(adapter, false);
    gguf_adapter_note_scale(adapter, true);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[128];
    struct error error;
    if (size > MOST_BYTES)
        return 0;
    make_directory(remove_directory);
    write_base();
    write_model("adapter_config.json", "adapter_model.safetensors", data, size);
    path_of("base", path);
    const struct lora_request request = {directory, 0.5};
    const struct checkpoint *base = checkpoint_open(path, formats, &(struct open_options){0}, &error),
                            *adapter = checkpoint_open(directory, formats, &(struct open_options){0}, &error);
    require(base != NULL);
    if (adapter != NULL)
        describe(adapter);
    struct gguf_model *model = adapter != NULL ? gguf_adapter_new(adapter, base, NULL, true, &error) : NULL;
    if (model != NULL)
        read_set(model->tensors);
    else
        require_one_line(&error);
    gguf_model_free(model);
    base = derive(base, &(struct derive_options){.loras = {&request, 1}}, &error);
    if (base != NULL)
        read_set(base->tensors);
    else
        require_one_line(&error);
    checkpoint_close(adapter);
    checkpoint_close(base);
    return 0;
}

/* Recipes of merges: the text alone, and merged.
 *
 * The models of a recipe are "a" and "b", small and of different vocabularies, "llama", of a class whose weights are
 * known, and "lora", an adapter. Holds: what is merged can be read, and any part of it is the same as in the whole; a
 * refusal is one line. */
#include "models/derive/derive.h"
#include "models/formats.h"
#include "quant/views/convert.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/write_model.h"

enum { MOST_VALUES = 1 << 12 };

static const char config[] = "{\"architectures\": [\"FuzzForCausalLM\"], \"num_hidden_layers\": 2, \"vocab_size\": 4}";
static const char weights[] = "{}\n"
                              "model.embed_tokens.weight BF16 [4,8] 64\n"
                              "model.layers.0.mlp.weight BF16 [8,8] 128\n"
                              "model.layers.1.mlp.weight F16 [8,8] 128\n"
                              "model.norm.weight F32 [8] 32\n"
                              "model.layers.0.position_ids I64 [2] 16\n"
                              "\n\001\072\200\273";
static const char llama_config[] = "{\"architectures\": [\"LlamaForCausalLM\"], \"num_hidden_layers\": 1}";
static const char llama[] = "{}\n"
                            "model.embed_tokens.weight F16 [4,8] 64\n"
                            "model.layers.0.input_layernorm.weight F16 [8] 16\n"
                            "model.layers.0.self_attn.q_proj.weight F16 [8,8] 128\n"
                            "model.layers.0.self_attn.k_proj.weight F16 [4,8] 64\n"
                            "model.layers.0.self_attn.v_proj.weight F16 [4,8] 64\n"
                            "model.layers.0.self_attn.o_proj.weight F16 [8,8] 128\n"
                            "model.layers.0.post_attention_layernorm.weight F16 [8] 16\n"
                            "model.layers.0.mlp.up_proj.weight F16 [8,8] 128\n"
                            "model.layers.0.mlp.gate_proj.weight F16 [8,8] 128\n"
                            "model.layers.0.mlp.down_proj.weight F16 [8,8] 128\n"
                            "model.norm.weight F16 [8] 16\n"
                            "\n\001\072\200\273";
static const char adapter[] = "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4}\n"
                              "base_model.model.model.layers.0.mlp.lora_A.weight F32 [2,8] 64\n"
                              "base_model.model.model.layers.0.mlp.lora_B.weight F32 [8,2] 64\n"
                              "\n\001\072\200\073";
static const char tokenizer_of_a[] =
    "{\"model\": {\"vocab\": {\"x\": 0, \"y\": 1, \"z\": 2}}, \"added_tokens\": [{\"id\": 3, \"content\": \"<a>\"}]}";
static const char tokenizer_of_b[] =
    "{\"model\": {\"vocab\": {\"z\": 0, \"w\": 1}}, \"added_tokens\": [{\"id\": 2, \"content\": \"<b>\"}]}";

static const struct {
    const char *folder, *config, *tokenizer, *weights;
} models[] = {
    {"a", config, tokenizer_of_a, weights},
    {"b", config, tokenizer_of_b, weights},
    {"llama", llama_config, tokenizer_of_a, llama},
};

static void remove_in(const char *folder, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    remove_file(path);
}

static void remove_directory(void)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        remove_in(models[i].folder, "config.json");
        remove_in(models[i].folder, "model.safetensors");
        remove_in(models[i].folder, "tokenizer.json");
        remove_folder(models[i].folder);
    }
    remove_file("r.yaml");
    remove_in("lora", "adapter_config.json");
    remove_in("lora", "adapter_model.safetensors");
    remove_folder("lora");
    rmdir(directory);
}

static void write_models(void)
{
    static bool is_written;
    char name[64], config_name[64];
    for (size_t i = 0; i < sizeof models / sizeof *models && !is_written; i++) {
        snprintf(name, sizeof name, "%s/tokenizer.json", models[i].folder);
        write_file(name, models[i].tokenizer, strlen(models[i].tokenizer));
        snprintf(name, sizeof name, "%s/model.safetensors", models[i].folder);
        snprintf(config_name, sizeof config_name, "%s/config.json", models[i].folder);
        write_model(config_name, name, (const uint8_t *)models[i].weights, strlen(models[i].weights));
        write_file(config_name, models[i].config, strlen(models[i].config));
    }
    write_model("lora/adapter_config.json", "lora/adapter_model.safetensors", (const uint8_t *)adapter,
                sizeof adapter - 1);
    is_written = true;
}

/* Reads the whole, and then a part: both fail, or agree. */
static void read_view(const struct view *view)
{
    static unsigned char whole[MOST_VALUES * 8], part[MOST_VALUES * 8];
    struct error error;
    size_t unit = view->dtype->block_bytes;
    uint64_t first = view_units(view) / 3, count = view_units(view) - first - view_units(view) / 5;
    if (view_units(view) > MOST_VALUES)
        return;
    if (!view_read(view, 0, view_units(view), whole, &error))
        require_one_line(&error);
    else
        require(view_read(view, first, count, part, &error) && memcmp(part, whole + first * unit, count * unit) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[128];
    struct error error;
    if (size > MOST_BYTES)
        return 0;
    make_directory(remove_directory);
    write_models();
    write_file("r.yaml", data, size);
    path_of("r.yaml", path);
    const struct checkpoint *read = checkpoint_open(path, formats, &(struct open_options){0}, &error);
    const struct derive_options options = {.recipe = {.has_seed = true, .seed = 7}};
    const struct checkpoint *merged = read != NULL ? derive(read, &options, &error) : NULL;
    if (merged == NULL)
        require_one_line(&error);
    struct arena *arena = arena_new();
    for (size_t i = 0; merged != NULL && i < merged->tensors->n_tensors; i++)
        if (merged->tensors->tensors[i].refusal == NULL)
            read_view(tensor_view(&merged->tensors->tensors[i], arena));
    arena_free(arena);
    checkpoint_close(merged);
    return 0;
}

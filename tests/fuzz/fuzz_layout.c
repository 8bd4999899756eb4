/* Any bytes as a layout file of a small model, from a "{" on or after a line "@layout"; as a dictionary of names, after
 * "@keymap", that TensorRT-LLM's layout is made with; or, after "@name", as the name of a layout that comes with wfs
 * and its parameters.
 *
 * Holds for what is accepted: all tensors of all files are read, and files have names. */
#include "models/formats.h"
#include "models/layouts/layout_file.h"
#include "models/layouts/make.h"
#include "quant/views/convert.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/write_safetensors.h"

enum { MOST_BYTES = 1 << 16, MOST_READ = 1 << 12, MOST_TENSORS = 200 };

static char directory[] = "/tmp/wfs-fuzz-XXXXXX";
static const struct checkpoint *checkpoint;
static const struct hf_model *model;

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void remove_directory(void)
{
    static const char *const names[] = {"config.json", "model.safetensors", "input.json"};
    checkpoint_close(checkpoint);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(names[i]));
    rmdir(directory);
}

/* A Llama of one layer: 2 heads of 4 numbers, and 1 key head. */
static void write_model(void)
{
    static const char config[] =
        "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":8,\"intermediate_size\":12,"
        "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"num_hidden_layers\":1,\"vocab_size\":10,\"factors\":[1,"
        "2.5],"
        "\"rms_norm_eps\":1e-5,\"torch_dtype\":\"bfloat16\"}";
    static const struct {
        const char *name, *shape;
        size_t n_values;
    } tensors[] = {{"model.embed_tokens.weight", "10,8", 10 * 8},
                   {"lm_head.weight", "10,8", 10 * 8},
                   {"model.norm.weight", "8", 8 * 1},
                   {"model.layers.0.input_layernorm.weight", "8", 8 * 1},
                   {"model.layers.0.post_attention_layernorm.weight", "8", 8 * 1},
                   {"model.layers.0.self_attn.q_proj.weight", "8,8", 8 * 8},
                   {"model.layers.0.self_attn.k_proj.weight", "4,8", 4 * 8},
                   {"model.layers.0.self_attn.v_proj.weight", "4,8", 4 * 8},
                   {"model.layers.0.self_attn.o_proj.weight", "8,8", 8 * 8},
                   {"model.layers.0.mlp.gate_proj.weight", "12,8", 12 * 8},
                   {"model.layers.0.mlp.up_proj.weight", "12,8", 12 * 8},
                   {"model.layers.0.mlp.down_proj.weight", "8,12", 8 * 12}};
    struct safetensors file = {0};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        safetensors_add(&file, tensors[i].name, "BF16", tensors[i].shape, NULL, 2 * tensors[i].n_values);
    files_write(path_of("config.json"), config, strlen(config));
    safetensors_write(&file, path_of("model.safetensors"));
}

static void open_model(void)
{
    struct error error;
    struct open_options options = {0};
    require(mkdtemp(directory) != NULL);
    write_model();
    atexit(remove_directory);
    checkpoint = checkpoint_open(directory, formats, &options, &error);
    require(checkpoint != NULL);
    model = hf_model_of(checkpoint, &error);
    require(model != NULL);
}

static void read_product(const struct layout_product *product)
{
    static unsigned char out[MOST_READ];
    struct error error;
    size_t n_read = 0;
    for (size_t i = 0; i < product->n_artifacts; i++) {
        const struct artifact *artifact = &product->artifacts[i].artifact;
        require(product->artifacts[i].name[0] != '\0');
        for (size_t j = 0; j < artifact->n_tensors && n_read++ < MOST_TENSORS; j++) {
            const struct artifact_tensor *written = &artifact->tensors[j];
            const struct view *view = written->tensor->view;
            if (artifact_tensor_bytes(written) <= sizeof out &&
                !convert_read(view, written->encoding, 0, view->n_elements / written->encoding.dtype->block_elements,
                              out, &error))
                require_one_line(&error);
        }
    }
}

static bool try_layout(const char *layout)
{
    struct error error;
    struct arena *arena = arena_new();
    struct layout_request request;
    struct layout_product product;
    bool made = layout_find(layout, arena, &request, &error) &&
                layout_make(request.file, request.parameters, model, arena, &product, &error);
    if (made)
        read_product(&product);
    else
        require_one_line(&error);
    arena_free(arena);
    return made;
}

static void try_keys(void)
{
    char layout[512];
    static const char *const rules[] = {"", ",keymap-rules=sections"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        snprintf(layout, sizeof layout, LAYOUTS "/trtllm.json:tp=2,keymap=%s%s", path_of("input.json"), rules[i]);
        try_layout(layout);
    }
}

static bool begins_with(const uint8_t *data, size_t size, const char *line)
{
    return size >= strlen(line) && memcmp(data, line, strlen(line)) == 0;
}

static void try_name(const uint8_t *text, size_t length)
{
    char layout[256];
    if (length >= sizeof layout || memchr(text, '/', length) != NULL)
        return; /* that would be a path */
    memcpy(layout, text, length);
    layout[length] = '\0';
    try_layout(layout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char of_layout[] = "@layout\n", of_keys[] = "@keymap\n", of_name[] = "@name\n";
    char layout[256];
    if (model == NULL) {
        open_model();
        require(try_layout(LAYOUTS "/trtllm.json:tp=2,keymap=") && try_layout(LAYOUTS "/vllm.json:tp=2"));
    }
    bool is_layout = begins_with(data, size, of_layout), is_keys = begins_with(data, size, of_keys);
    bool is_plain = size > 0 && *data == '{';
    if (begins_with(data, size, of_name))
        try_name(data + strlen(of_name), size - strlen(of_name));
    if (size > MOST_BYTES || (!is_layout && !is_keys && !is_plain))
        return 0;
    size_t start = is_plain ? 0 : strlen(of_layout);
    files_write(path_of("input.json"), data + start, size - start);
    if (is_keys) {
        try_keys();
        return 0;
    }
    try_layout(path_of("input.json"));
    snprintf(layout, sizeof layout, "%s:tp=2", path_of("input.json"));
    try_layout(layout);
    return 0;
}

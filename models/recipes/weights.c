#include "models/recipes/weights.h"

#include "base/text.h"

#include <string.h>

static const char embedding[] = "model.embed_tokens.weight", output[] = "lm_head.weight";

/* The weights of a layer, up to a NULL, in mergekit's order. */

static const char *const llama_layer[] = {
    "input_layernorm.weight",  "self_attn.q_proj.weight",
    "self_attn.k_proj.weight", "self_attn.v_proj.weight",
    "self_attn.o_proj.weight", "post_attention_layernorm.weight",
    "mlp.up_proj.weight",      "mlp.gate_proj.weight",
    "mlp.down_proj.weight",    NULL,
};

static const char *const qwen2_layer[] = {
    "input_layernorm.weight",
    "mlp.down_proj.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "post_attention_layernorm.weight",
    "self_attn.k_proj.bias",
    "self_attn.k_proj.weight",
    "self_attn.o_proj.weight",
    "self_attn.q_proj.bias",
    "self_attn.q_proj.weight",
    "self_attn.v_proj.bias",
    "self_attn.v_proj.weight",
    NULL,
};

static const char *const qwen3_layer[] = {
    "input_layernorm.weight",          "mlp.down_proj.weight",    "mlp.gate_proj.weight",    "mlp.up_proj.weight",
    "post_attention_layernorm.weight", "self_attn.k_norm.weight", "self_attn.k_proj.weight", "self_attn.q_norm.weight",
    "self_attn.q_proj.weight",         "self_attn.v_proj.weight", "self_attn.o_proj.weight", NULL,
};

static const struct {
    const char *class_name;
    const char *const *layer;
} classes[] = {
    {"LlamaForCausalLM", llama_layer},
    {"MistralForCausalLM", llama_layer},
    {"Qwen2ForCausalLM", qwen2_layer},
    {"Qwen3ForCausalLM", qwen3_layer},
};

static size_t add_layer(struct weight_template *items, size_t count, const char *const *names)
{
    for (; *names != NULL; names++)
        items[count++] = (struct weight_template){.before = "model.layers.", .after = *names};
    return count;
}

bool weights_of_class(const char *class_name, struct arena *arena, struct weight_templates *ret_weights)
{
    enum { MOST = 16 };
    size_t row = 0, count = 0, n_rows = sizeof classes / sizeof *classes;
    while (row < n_rows && strcmp(classes[row].class_name, class_name) != 0)
        row++;
    if (row == n_rows)
        return false;
    struct weight_template *items = arena_array(arena, MOST, sizeof *items);
    items[count++] = weight_outside_layers(embedding);
    count = add_layer(items, count, classes[row].layer);
    items[count++] = weight_outside_layers("model.norm.weight");
    items[count++] = weight_outside_layers(output);
    *ret_weights = (struct weight_templates){items, count};
    return true;
}

/* Reports whether a name is that of an embedding of tokens. */
static bool is_embedding(const char *name)
{
    return text_ends_with(name, "embed_tokens.weight") || text_ends_with(name, "wte.weight") ||
           text_ends_with(name, "word_embeddings.weight") || text_ends_with(name, "embed_in.weight");
}

struct weight_template weight_outside_layers(const char *name)
{
    bool is_output = text_ends_with(name, output) || text_ends_with(name, "embed_out.weight");
    bool is_first =
        strstr(name, "embed") != NULL || text_ends_with(name, "wte.weight") || text_ends_with(name, "wpe.weight");
    bool is_head = strcmp(name, output) == 0;
    return (struct weight_template){
        .before = name,
        .is_optional = is_head,
        .is_last = is_output || !is_first,
        .tied = is_head ? embedding : NULL,
        .has_vocabulary = is_output || is_embedding(name),
    };
}

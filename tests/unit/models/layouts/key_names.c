/* Names translated by TensorRT-LLM's dictionaries. The wanted names are what its loader's translate_to_external_key()
 * gives. */
#include "models/layouts/key_names.h"
#include "tests/unit/check.h"

static const char standard[] =
    "{\"transformer\": \"model\", \"vocab_embedding\": \"embed_tokens\", \"ln_f\": \"norm\","
    "\"attention\": \"self_attn\", \"qkv\": [\"q_proj\", \"k_proj\", \"v_proj\"],"
    "\"dense\": \"o_proj\", \"gate\": \"up_proj\", \"proj\": \"down_proj\", \"fc\": \"gate_proj\"}";
static const char own[] =
    "{\"layers\": \"h\", \"attention\": \"attn.attention\", \"mlp.fc\": \"ffn.in\", \"layers.3\": \"layers.11\","
    "\"transformer\": \"\", \"weight\": [\"qweight\", \"scales\"]}";

static void check(const struct key_names *keys, const char *name, const char *wanted)
{
    struct arena *arena = arena_new();
    struct error error;
    const char *names[KEY_NAMES_MAX];
    unsigned count = 0;
    char joined[512] = "";
    if (!key_names_translate(keys, name, arena, names, &count, &error))
        strcpy(joined, error.message);
    for (unsigned i = 0; i < count; i++) {
        strcat(joined, i > 0 ? " " : "");
        strcat(joined, names[i]);
    }
    CHECK_TEXT(joined, wanted);
    arena_free(arena);
}

int main(void)
{
    struct error error;
    struct json_document *first = json_parse(standard, strlen(standard), &error),
                         *second = json_parse(own, strlen(own), &error);
    struct key_names keys = {{json_root(first)}, 1, false};
    check(&keys, "transformer.vocab_embedding.weight", "model.embed_tokens.weight");
    check(&keys, "transformer.layers.0.mlp.gate.weight", "model.layers.0.mlp.up_proj.weight");
    check(&keys, "transformer.layers.0.mlp.proj.weight", "model.layers.0.mlp.down_proj.weight");
    check(&keys, "transformer.layers.10.attention.qkv.weight",
          "model.layers.10.self_attn.q_proj.weight model.layers.10.self_attn.k_proj.weight "
          "model.layers.10.self_attn.v_proj.weight");
    keys.by_sections = true;
    check(&keys, "transformer.layers.10.attention.qkv.bias",
          "model.layers.10.self_attn.q_proj.bias model.layers.10.self_attn.k_proj.bias "
          "model.layers.10.self_attn.v_proj.bias");
    keys = (struct key_names){{json_root(first), json_root(second)}, 2, false};
    check(&keys, "transformer.ln_f.bias", "norm.bias");
    check(&keys, "transformer.layers.3.attention.dense.bias", "h.3.attn.attention.o_proj.bias");
    check(&keys, "transformer.layers.0.attention.dense.weight",
          "h.0.attn.attention.o_proj.qweight h.0.attn.attention.o_proj.scales");
    json_free(first);
    json_free(second);
    return check_done();
}

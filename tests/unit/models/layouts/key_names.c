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

/* What cannot be a dictionary, or makes no names, is refused with the line. */
static void refusals(void)
{
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"[]", "keys.json:1: not an object"},
        {"{\"a\": \"b\",\n\"qkv\": 3}", "keys.json:2: 'qkv' is neither a text nor a list of texts"},
        {"{\n\n\"qkv\": []}", "keys.json:3: 'qkv' is neither a text nor a list of texts"},
        {"{\"qkv\": [\"q\",\n null]}", "keys.json:1: 'qkv' is neither a text nor a list of texts"},
        {"{\"a\":[\"1\",\"2\",\"3\",\"4\",\"5\"],\n\"b\":[\"1\",\"2\",\"3\",\"4\"]}",
         "keys.json:2: 'b' makes more than 16 names of one"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error error = {""};
        struct arena *arena = arena_new();
        struct key_names keys = {0};
        const char *names[KEY_NAMES_MAX];
        unsigned count;
        struct json_document *document = json_parse(wrong[i].text, strlen(wrong[i].text), &error);
        CHECK(!key_names_add(&keys, json_root(document), "keys.json", arena, &error) ||
              !key_names_translate(&keys, "a.b", arena, names, &count, &error));
        CHECK_TEXT(error.message, wrong[i].message);
        json_free(document);
        arena_free(arena);
    }
}

/* A name that gets too long is the fault of the last entry that made it longer. */
static void long_names(bool by_sections)
{
    struct arena *arena = arena_new();
    struct error error = {""};
    const char *text = arena_printf(arena, "{\"b\": \"%0600d\",\n\"c\": \"%0600d\"}", 0, 0), *names[KEY_NAMES_MAX];
    struct json_document *document = json_parse(text, strlen(text), &error);
    struct key_names keys = {.by_sections = by_sections};
    unsigned count;
    CHECK(key_names_add(&keys, json_root(document), "keys.json", arena, &error) &&
          !key_names_translate(&keys, "a.b.c.d", arena, names, &count, &error));
    CHECK_TEXT(error.message, "keys.json:2: 'c' makes a name longer than 1024 bytes");
    json_free(document);
    arena_free(arena);
}

int main(void)
{
    struct error error;
    struct json_document *first = json_parse(standard, strlen(standard), &error),
                         *second = json_parse(own, strlen(own), &error);
    struct arena *arena = arena_new();
    struct key_names keys = {0};
    CHECK(key_names_add(&keys, json_root(first), "first.json", arena, &error));
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
    keys.by_sections = false;
    CHECK(key_names_add(&keys, json_root(second), "second.json", arena, &error));
    check(&keys, "transformer.ln_f.bias", "norm.bias");
    check(&keys, "transformer.layers.3.attention.dense.bias", "h.3.attn.attention.o_proj.bias");
    check(&keys, "transformer.layers.0.attention.dense.weight",
          "h.0.attn.attention.o_proj.qweight h.0.attn.attention.o_proj.scales");
    json_free(first);
    json_free(second);
    arena_free(arena);
    refusals();
    long_names(false);
    long_names(true);
    return check_done();
}

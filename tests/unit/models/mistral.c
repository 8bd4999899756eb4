/* Mistral's own layout: when a directory is taken for it, and what becomes of its tokenizer. */
#include "models/convert/model.h"
#include "models/formats.h"
#include "quant/views/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/write_pieces.h"
#include "tests/unit/write_safetensors.h"

#include <inttypes.h>

static const char params[] = "{\"dim\":4,\"n_layers\":1,\"head_dim\":2,\"hidden_dim\":4,\"n_heads\":2,\"n_kv_heads\":2,"
                             "\"norm_eps\":1e-5,\"rope_theta\":10000}";
static const char config[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":4,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":2,\"intermediate_size\":4,\"vocab_size\":262}";

/* All bytes, "ab" and "abc", and one that is not used; four special tokens, of which one has no text. */
static void write_tekken(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct buffer text = {0};
    buffer_append_text(&text,
                       "{\"config\":{\"default_vocab_size\":262,\"default_num_special_tokens\":4,\"version\":\"v7\"},"
                       "\"special_tokens\":[{\"rank\":0,\"token_str\":\"<unk>\"},{\"rank\":1,\"token_str\":\"<s>\"},"
                       "{\"rank\":2,\"token_str\":\"</s>\"}],\"vocab\":[");
    for (unsigned i = 0; i < 256; i++)
        buffer_printf(&text, "{\"rank\":%u,\"token_bytes\":\"%c%c==\"},", i, digits[i >> 2], digits[(i & 3) << 4]);
    buffer_append_text(&text, "{\"rank\":256,\"token_bytes\":\"YWI=\"},{\"rank\":257,\"token_bytes\":\"YWJj\"},"
                              "{\"rank\":258,\"token_bytes\":\"YmM=\"}]}");
    files_write("model/tekken.json", text.bytes, text.length);
    buffer_free(&text);
}

static void check_format(const char *wanted, const char *expected)
{
    const struct open_options options = {.format = wanted};
    struct error error = {""};
    const struct checkpoint *checkpoint = checkpoint_open("model", formats, &options, &error);
    CHECK_TEXT(checkpoint ? checkpoint->format : error.message, expected);
    checkpoint_close(checkpoint);
}

static void check_texts(const struct gguf_kvs *kvs, const char *key, uint64_t first, const char *const *expected,
                        uint64_t n)
{
    struct arena *arena = arena_new();
    struct gguf_array array = {0};
    struct error error;
    CHECK_NAMED(gguf_get_array(kvs, key, arena, &array, &error) && array.count >= first + n, key);
    for (uint64_t i = 0; i < n && first + i < array.count; i++) {
        size_t length;
        const char *text = gguf_array_string(&array, first + i, &length);
        CHECK_TEXT(arena_strndup(arena, text, length), expected[i]);
    }
    arena_free(arena);
}

static void check_model(void)
{
    static const char *const tokens[] = {"<unk>", "<s>", "</s>", "<SPECIAL_3>"}, *const last[] = {"ab", "abc"};
    static const char *const merges[] = {"a b", "ab c"};
    const struct open_options options = {0};
    struct error error = {""};
    uint64_t padding = 0, n_tokens = 0;
    const struct checkpoint *checkpoint = checkpoint_open("model", formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    if (!CHECK_NAMED(model != NULL, "a model"))
        fprintf(stderr, "  %s\n", error.message);
    if (model != NULL) {
        check_texts(&model->kvs, "tokenizer.ggml.tokens", 0, tokens, 4);
        check_texts(&model->kvs, "tokenizer.ggml.tokens", 4 + 256, last, 2);
        check_texts(&model->kvs, "tokenizer.ggml.merges", 0, merges, 2);
        CHECK(gguf_get_u64(&model->kvs, "tokenizer.ggml.padding_token_id", &padding) && padding == 2);
        CHECK(gguf_get_u64(&model->kvs, "llama.vocab_size", &n_tokens) && n_tokens == 262);
        CHECK_TEXT(model->tensors->tensors[0].name, "token_embd.weight");
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

static void write_pieces(const char *path)
{
    struct buffer model = {0};
    piece_add(&model, "<unk>", 5, 0, PIECE_UNKNOWN);
    piece_add(&model, "<pad>", 5, 0, PIECE_NORMAL); /* which is none */
    piece_add(&model, "</s>", 4, 0, PIECE_CONTROL);
    piece_add(&model, "<s>", 3, 0, PIECE_CONTROL);
    pieces_write(&model, path);
}

static void check_text(const struct gguf_kvs *kvs, const char *key, const char *expected)
{
    struct arena *arena = arena_new();
    struct error error = {""};
    size_t length;
    const char *text = gguf_get_string(kvs, key, arena, &length, &error);
    CHECK_TEXT(text ? text : error.message, expected);
    arena_free(arena);
}

/* Of several SentencePiece models the last by name counts, for what a chat looks like too. */
static void check_pieces(const char *architecture, const char *chat)
{
    const struct open_options options = {.format = "mistral"};
    struct error error = {""};
    uint64_t begin = 0, padding = 0;
    const struct checkpoint *checkpoint = checkpoint_open("model", formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    if (!CHECK_NAMED(model != NULL, architecture))
        fprintf(stderr, "  %s\n", error.message);
    if (model != NULL) {
        check_text(&model->kvs, "general.architecture", architecture);
        check_text(&model->kvs, "tokenizer.chat_template", chat);
        CHECK(gguf_get_u64(&model->kvs, "tokenizer.ggml.bos_token_id", &begin) && begin == 3);
        CHECK(gguf_get_u64(&model->kvs, "tokenizer.ggml.padding_token_id", &padding) && padding == 2);
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

static void pieces(void)
{
    static const char mixture[] =
        "{\"dim\":4,\"n_layers\":1,\"hidden_dim\":4,\"n_heads\":2,\"n_kv_heads\":2,\"norm_eps\":1e-5,\"rope_theta\":"
        "1e4,"
        "\"vocab_size\":4,\"kv_lora_rank\":4,\"qk_nope_head_dim\":2,\"qk_rope_head_dim\":2,\"v_head_dim\":2,"
        "\"moe\":{\"num_experts\":2,\"num_experts_per_tok\":1,\"expert_hidden_dim\":2},"
        "\"yarn\":{\"original_max_position_embeddings\":8,\"factor\":2,\"beta\":32,\"alpha\":1,\"apply_scale\":true}}";
    write_pieces("model/tokenizer.model");
    check_pieces("llama", "mistral-v1");
    write_pieces("model/tokenizer.model.v3");
    check_pieces("llama", "mistral-v3");
    write_pieces("model/tokenizer.model.v7m1");
    files_write_text("model/tokenizer.model.new", ""); /* is no version */
    check_pieces("llama", "mistral-v7");
    files_write_text("model/params.json", mixture);
    check_pieces("deepseek2", "mistral-v7");
}

/* F8_E4M3 1.5 and -2 with a factor of 0.25. */
static void scaled(void)
{
    static const char quantized[] =
        "{\"dim\":4,\"n_layers\":1,\"head_dim\":2,\"hidden_dim\":4,\"n_heads\":2,\"n_kv_heads\":2,\"norm_eps\":1e-5,"
        "\"rope_theta\":1e4,\"quantization\":{\"qformat_weight\":\"fp8_e4m3\"}}";
    static const unsigned char weight[] = {0x3c, 0xc0};
    static const float scale = 0.25f;
    const struct open_options options = {.format = "mistral"};
    struct error error = {""};
    struct safetensors file = {0};
    float values[2] = {0};
    safetensors_add(&file, "layers.0.attention.wo.weight", "F8_E4M3", "1,2", weight, sizeof weight);
    safetensors_add(&file, "layers.0.attention.wo.qscale_weight", "F32", "", &scale, sizeof scale);
    safetensors_add(&file, "layers.0.attention.wo.qscale_act", "F32", "", NULL, 4);
    safetensors_write(&file, "model/consolidated.safetensors");
    files_write_text("model/params.json", quantized);
    const struct checkpoint *checkpoint = checkpoint_open("model", formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    if (!CHECK_NAMED(model != NULL && model->tensors->n_tensors == 1, "the weight alone"))
        fprintf(stderr, "  %s\n", error.message);
    if (model != NULL) {
        const struct tensor *tensor = &model->tensors->tensors[0];
        CHECK_TEXT(tensor->name, "blk.0.attn_output.weight");
        CHECK(convert_values(tensor->view, 0, 2, values, &error) && values[0] == 0.375f && values[1] == -0.5f);
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    files_write_text("model/params.json", params);
    safetensors_write_one("model/consolidated.safetensors", "tok_embeddings.weight", "BF16", "2,2", NULL, 8);
    write_tekken();
    check_format(NULL, "mistral");
    check_model();
    files_write_text("model/config.json", config);
    safetensors_write_one("model/model.safetensors", "model.embed_tokens.weight", "BF16", "2,2", NULL, 8);
    check_format(NULL, "huggingface");
    check_model(); /* with the same tokens */
    check_format("mistral", "mistral");
    remove("model/tekken.json");
    pieces();
    scaled();
    files_remove();
    return check_done();
}

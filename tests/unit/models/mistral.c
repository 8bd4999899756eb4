/* Mistral's own layout: when a directory is taken for it, and what becomes of its tokenizer. */
#include "models/model.h"
#include "quant/convert.h"
#include "tests/unit/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

static const char params[] = "{\"dim\":4,\"n_layers\":1,\"head_dim\":2,\"hidden_dim\":4,\"n_heads\":2,\"n_kv_heads\":2,"
                             "\"norm_eps\":1e-5,\"rope_theta\":10000}";
static const char config[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":4,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":2,\"intermediate_size\":4,\"vocab_size\":262}";

static void write_file(const char *folder, const char *name, const void *bytes, size_t length)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    CHECK_NAMED(out != NULL && fwrite(bytes, 1, length, out) == length, name);
    fclose(out);
}

static void write_weights(const char *folder, const char *name, const char *tensor)
{
    unsigned char file[512] = {0};
    int length = snprintf((char *)file + 8, sizeof file - 8,
                          "{\"%s\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}", tensor);
    file[0] = (unsigned char)length;
    write_file(folder, name, file, 8 + (size_t)length + 8);
}

/* All bytes, "ab" and "abc", and one that is not used; four special tokens, of which one has no text. */
static void write_tekken(const char *folder)
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
    write_file(folder, "tekken.json", text.bytes, text.length);
    buffer_free(&text);
}

static void check_format(const char *folder, const char *wanted, const char *expected)
{
    const struct open_options options = {.format = wanted};
    struct error error = {""};
    struct checkpoint *checkpoint = checkpoint_open(folder, &options, &error);
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

static void check_model(const char *folder)
{
    static const char *const tokens[] = {"<unk>", "<s>", "</s>", "<SPECIAL_3>"}, *const last[] = {"ab", "abc"};
    static const char *const merges[] = {"a b", "ab c"};
    const struct open_options options = {0};
    struct error error = {""};
    uint64_t padding = 0, n_tokens = 0;
    struct checkpoint *checkpoint = checkpoint_open(folder, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, &error) : NULL;
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

/* A piece of a SentencePiece model: text, score, type. */
static void append_piece(struct buffer *out, const char *text, unsigned type)
{
    size_t length = strlen(text);
    buffer_append_le(out, 0x0a, 1);
    buffer_append_le(out, 2 + length + 5 + 2, 1);
    buffer_append_le(out, 0x0a, 1);
    buffer_append_le(out, length, 1);
    buffer_append(out, text, length);
    buffer_append_le(out, 0x15, 1);
    buffer_append_le(out, 0, 4);
    buffer_append_le(out, 0x18, 1);
    buffer_append_le(out, type, 1);
}

static void write_pieces(const char *folder, const char *name)
{
    enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3 };
    struct buffer model = {0};
    append_piece(&model, "<unk>", UNKNOWN);
    append_piece(&model, "<pad>", NORMAL); /* which is none */
    append_piece(&model, "</s>", CONTROL);
    append_piece(&model, "<s>", CONTROL);
    write_file(folder, name, model.bytes, model.length);
    buffer_free(&model);
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
static void check_pieces(const char *folder, const char *architecture, const char *chat)
{
    const struct open_options options = {.format = "mistral"};
    struct error error = {""};
    uint64_t begin = 0, padding = 0;
    struct checkpoint *checkpoint = checkpoint_open(folder, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, &error) : NULL;
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

static void pieces(const char *folder)
{
    static const char mixture[] =
        "{\"dim\":4,\"n_layers\":1,\"hidden_dim\":4,\"n_heads\":2,\"n_kv_heads\":2,\"norm_eps\":1e-5,\"rope_theta\":"
        "1e4,"
        "\"vocab_size\":4,\"kv_lora_rank\":4,\"qk_nope_head_dim\":2,\"qk_rope_head_dim\":2,\"v_head_dim\":2,"
        "\"moe\":{\"num_experts\":2,\"num_experts_per_tok\":1,\"expert_hidden_dim\":2},"
        "\"yarn\":{\"original_max_position_embeddings\":8,\"factor\":2,\"beta\":32,\"alpha\":1,\"apply_scale\":true}}";
    write_pieces(folder, "tokenizer.model");
    check_pieces(folder, "llama", "mistral-v1");
    write_pieces(folder, "tokenizer.model.v3");
    check_pieces(folder, "llama", "mistral-v3");
    write_pieces(folder, "tokenizer.model.v7m1");
    write_file(folder, "tokenizer.model.new", "", 0); /* is no version */
    check_pieces(folder, "llama", "mistral-v7");
    write_file(folder, "params.json", mixture, sizeof mixture - 1);
    check_pieces(folder, "deepseek2", "mistral-v7");
}

/* F8_E4M3 1.5 and -2 with a factor of 0.25. */
static void scaled(const char *folder)
{
    static const char quantized[] =
        "{\"dim\":4,\"n_layers\":1,\"head_dim\":2,\"hidden_dim\":4,\"n_heads\":2,\"n_kv_heads\":2,\"norm_eps\":1e-5,"
        "\"rope_theta\":1e4,\"quantization\":{\"qformat_weight\":\"fp8_e4m3\"}}";
    static const char header[] = "{\"layers.0.attention.wo.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,2],"
                                 "\"data_offsets\":[0,2]},\"layers.0.attention.wo.qscale_weight\":{\"dtype\":\"F32\","
                                 "\"shape\":[],\"data_offsets\":[2,6]},\"layers.0.attention.wo.qscale_act\":{\"dtype\":"
                                 "\"F32\",\"shape\":[],\"data_offsets\":[6,10]}}";
    static const unsigned char data[10] = {0x3c, 0xc0, 0, 0, 0x80, 0x3e};
    const struct open_options options = {.format = "mistral"};
    struct error error = {""};
    struct buffer file = {0};
    float values[2] = {0};
    buffer_append_le(&file, sizeof header - 1, 8);
    buffer_append(&file, header, sizeof header - 1);
    buffer_append(&file, data, sizeof data);
    write_file(folder, "consolidated.safetensors", file.bytes, file.length);
    buffer_free(&file);
    write_file(folder, "params.json", quantized, sizeof quantized - 1);
    struct checkpoint *checkpoint = checkpoint_open(folder, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, &error) : NULL;
    if (!CHECK_NAMED(model != NULL && model->tensors->n_tensors == 1, "the weight alone"))
        fprintf(stderr, "  %s\n", error.message);
    if (model != NULL) {
        const struct tensor *tensor = &model->tensors->tensors[0];
        CHECK_TEXT(tensor->name, "blk.0.attn_output.weight");
        CHECK(convert_read(tensor->view, encoding_of(dtype_by_name("F32")), 0, 2, values, &error) &&
              values[0] == 0.375f && values[1] == -0.5f);
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

int main(void)
{
    char folder[] = "/tmp/wfs-unit-XXXXXX", command[64];
    CHECK(mkdtemp(folder) != NULL);
    write_file(folder, "params.json", params, sizeof params - 1);
    write_weights(folder, "consolidated.safetensors", "tok_embeddings.weight");
    write_tekken(folder);
    check_format(folder, NULL, "mistral");
    check_model(folder);
    write_file(folder, "config.json", config, sizeof config - 1);
    write_weights(folder, "model.safetensors", "model.embed_tokens.weight");
    check_format(folder, NULL, "huggingface");
    check_model(folder); /* with the same tokens */
    check_format(folder, "mistral", "mistral");
    snprintf(command, sizeof command, "rm %s/tekken.json", folder);
    CHECK(system(command) == 0);
    pieces(folder);
    scaled(folder);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return check_done();
}

/* Whole models. The sums are of what convert_hf_to_gguf.py (llama.cpp, the copy in llama-cpp-python 0.3.36) writes for
 * the directories in tests/data/gguf/models; printed by tests/data/gguf/make_models.py. */
#include "models/convert/model.h"
#include "base/encodings.h"
#include "models/formats.h"
#include "quant/views/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/models/laid_out.h"
#include "tests/unit/notes.h"

#include <stdlib.h>
#include <unistd.h>

static const struct {
    const char *name, *outtype;
    uint64_t size;
    const char *sha256;
} files[] = {
    {"llama-tiny", "auto", 38656, "c0a27891b6fff8b111bf0533189305edc81358cb48f5b04fdb59780f8de4f0d9"},
    {"llama-tiny", "f32", 73216, "2e94ffaf1b16427a11e6ed6b285bce61a16d33d6a9a8f20d34c9f151eaf49dbd"},
    {"llama-tiny", "q8_0", 25344, "886fb3d424a9a84572c2ef0319049b02fe1b339418e1beab9164c7600690b9e0"},
    {"mixtral-tiny", "auto", 76416, "5f73616f5a8df581bbca05d62a9a993086d755894729d0af6e390b10e9f95411"},
    {"mixtral-tiny", "f32", 147840, "9179b95be05172b0b328b3aa0df51235769e7a054c23945804b3b8d64ef4912b"},
    {"mixtral-tiny", "q8_0", 51584, "1fe79459b5a65bf7cfc78d4eaf3c8dea5a55d0345f35e2e7e5cc99498c6f8162"},
    {"gemma-tiny", "auto", 44704, "24d9df2dbf04896f5074c99c14990cda47fe60a5ee767f77b8cd7b0be7a1ee31"},
    {"gemma-tiny", "f32", 85408, "abc1ee9560bd03f66a662e09f0b84bf12df923203e3f929e9b80a555c850a15b"},
    {"gemma-tiny", "q8_0", 31456, "23608e4ce0377036623b2400f808e745f44a454bd72f2ddb2f34ff562dec3710"},
};

/* What becomes of the Llama model with another config.json; NULL: none. */
static const struct {
    const char *config;
    const char *error;               /* part of the message; NULL: a model comes out */
    const char *architecture, *note; /* then: general.architecture, and part of a note; NULL: none */
    const char *first_tensor;
} configs[] = {
    {NULL, NULL, "unknown", "no config.json", "model.embed_tokens.weight"},
    {"{}", NULL, "unknown", "names no architecture", "model.embed_tokens.weight"},
    {"{\"architectures\":[\"Nobody\"]}", NULL, "Nobody", "Nobody is unknown", "model.embed_tokens.weight"},
    {"{", "config.json", NULL, NULL, NULL},
    {"[]", "config.json: not a JSON object", NULL, NULL, NULL},
    {"{\"architectures\":[\"LlamaForCausalLM\"],\"num_hidden_layers\":1,\"num_attention_heads\":4}",
     "is beyond the 1 layer of config.json", NULL, NULL, NULL},
    {"{\"architectures\":[\"LlamaForCausalLM\"],\"num_hidden_layers\":2,\"num_attention_heads\":5}",
     "does not fit '(kv_head half pair) ...'", NULL, NULL, NULL},
    {"{\"architectures\":[\"GPT2LMHeadModel\"],\"n_layer\":2}", "is unknown to the family gpt2", NULL, NULL, NULL},
    {"{\"architectures\":[\"LlamaForCausalLM\"],\"quantization_config\":{\"quant_method\":\"spqr\"}}",
     "quantized with 'spqr'", NULL, NULL, NULL},
    {"{\"architectures\":[\"LlamaForCausalLM\"],\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_"
     "heads\":2}",
     "vocab_size is missing", NULL, NULL, NULL},
};

static const char *data_path(const char *format, const char *name)
{
    static char path[4096], inner[256];
    snprintf(inner, sizeof inner, format, name);
    snprintf(path, sizeof path, "%s/gguf/models/%s", getenv("WFS_TEST_DATA"), inner);
    return path;
}

static void check_files(void)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const struct open_options options = {0};
        struct error error = {""};
        const struct checkpoint *checkpoint =
            checkpoint_open(data_path("%s", files[i].name), formats, &options, &error);
        struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
        struct artifact artifact = {0};
        bool planned = model != NULL &&
                       converter_artifact(&(struct gguf_edition){.model = model}, files[i].outtype, &artifact, &error);
        struct buffer file = {0};
        char sum[SHA256_HEX + 1] = "";
        if (planned)
            file = laid_out(&artifact);
        if (planned)
            sha256_hex(file.bytes, file.length, sum);
        CHECK_NAMED(file.length == files[i].size, files[i].outtype);
        if (!CHECK_TEXT(sum, files[i].sha256))
            fprintf(stderr, "  %s %s: %s\n", files[i].name, files[i].outtype, error.message);
        buffer_free(&file);
        artifact_free(&artifact);
        gguf_model_free(model);
        checkpoint_close(checkpoint);
    }
}

static void copy_file(const char *from, const char *folder, const char *name)
{
    char path[4096], bytes[65536];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(from, "rb"), *out = fopen(path, "wb");
    size_t n = in != NULL && out != NULL ? fread(bytes, 1, sizeof bytes, in) : 0;
    CHECK_NAMED(n > 0 && n < sizeof bytes && fwrite(bytes, 1, n, out) == n, name);
    fclose(in);
    fclose(out);
}

static void write_config(const char *folder, const char *config)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", folder);
    unlink(path);
    if (config == NULL)
        return;
    FILE *out = fopen(path, "wb");
    CHECK_NAMED(out != NULL && fputs(config, out) >= 0, "config.json is written");
    fclose(out);
}

static void check_config(const char *folder, size_t i)
{
    const struct open_options options = {0};
    struct error error = {""};
    write_config(folder, configs[i].config);
    const struct checkpoint *checkpoint = checkpoint_open(folder, formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    const char *name = configs[i].config ? configs[i].config : "no config.json";
    if (configs[i].error != NULL) {
        if (!CHECK_NAMED(model == NULL && strstr(error.message, configs[i].error) != NULL, name))
            fprintf(stderr, "  %s\n", error.message);
    } else if (CHECK_NAMED(model != NULL, name)) {
        const struct gguf_kv *kv = gguf_kvs_find(&model->kvs, "general.architecture");
        size_t length = strlen(configs[i].architecture);
        CHECK_NAMED(kv->value.length == 8 + length && memcmp(kv->value.bytes + 8, configs[i].architecture, length) == 0,
                    name);
        CHECK_NAMED(has_note(checkpoint, configs[i].note), configs[i].note);
        CHECK_TEXT(model->tensors->tensors[0].name, configs[i].first_tensor);
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

int main(void)
{
    char folder[] = "/tmp/wfs-unit-XXXXXX";
    check_files();
    CHECK(mkdtemp(folder) != NULL);
    copy_file(data_path("%s", "llama-tiny/model.safetensors"), folder, "model.safetensors");
    copy_file(data_path("%s", "llama-tiny/tokenizer.model"), folder, "tokenizer.model");
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        check_config(folder, i);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return check_done();
}

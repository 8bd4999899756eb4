/* Towers of any shapes: what config.json says of a part that sees or hears, and tensors that it might have.
 *
 * An input is as write_model() has it, its first line config.json, or params.json of Mistral's format if it names no
 * class. It is preprocessor_config.json and tokenizer_config.json, too, if it has keys of theirs. Holds: what becomes a
 * tensor of mmproj.gguf can be read. */
#include "models/convert/model.h"
#include "models/derive/derive.h"
#include "models/formats.h"

#include "tests/fuzz/read_tensors.h"
#include "tests/fuzz/write_model.h"

static const char preprocessor[] = "{\"image_mean\":[0.5],\"image_std\":[0.5],\"patch_size\":14,\"min_pixels\":4,"
                                   "\"max_pixels\":4096,\"min_num_patches\":1,\"max_num_patches\":4}";
static const char tokenizer[] = "{\"added_tokens\":[{\"id\":12,\"content\":\"[IMG_BREAK]\"}]}";
static const char tekken[] = "{\"special_tokens\":[{\"rank\":3,\"token_str\":\"[IMG_BREAK]\"}]}";

/* The encoder of a codec, for MiMo. */
static const char codec_config[] = "{\"d_model\":8,\"encoder_layers\":4,\"encoder_ffn_dim\":16,"
                                   "\"encoder_attention_heads\":2,\"n_mels\":4,\"hybrid_attention\":true,"
                                   "\"swa_per_block\":2,\"encoder_attn_window_size\":[3,0]}";
static const char codec_weights[] = "{}\n"
                                    "encoder.layers.0.fc1.weight F32 [16,8] 512\n"
                                    "encoder.quantizer.vq.layers.0._codebook.embed F32 [4,8] 128\n"
                                    "encoder.quantizer.vq.layers.1._codebook.embed F32 [2,8] 64\n"
                                    "\n\001\072\200\273";

static void remove_directory(void)
{
    static const char *const names[] = {"config.json",
                                        "params.json",
                                        "model.safetensors",
                                        "consolidated.safetensors",
                                        "preprocessor_config.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "tekken.json",
                                        "audio_tokenizer/config.json",
                                        "audio_tokenizer/model.safetensors",
                                        NULL};
    remove_files(names);
    remove_folder("audio_tokenizer");
    rmdir(directory);
}

static void write_others(void)
{
    char path[128];
    path_of("audio_tokenizer", path);
    if (mkdir(path, 0700) != 0)
        return;
    write_model("config.json", "audio_tokenizer/model.safetensors", (const uint8_t *)codec_weights,
                sizeof codec_weights - 1);
    write_file("audio_tokenizer/config.json", codec_config, sizeof codec_config - 1);
    write_file("tokenizer.json", tokenizer, sizeof tokenizer - 1);
    write_file("tekken.json", tekken, sizeof tekken - 1);
}

static void project(const struct checkpoint *checkpoint)
{
    struct error error;
    struct artifact artifact;
    gguf_has_projector(checkpoint);
    struct gguf_model *model = gguf_projector_new(checkpoint, NULL, &error);
    if (model == NULL) {
        require_one_line(&error);
        return;
    }
    require(converter_artifact(&(struct gguf_edition){.model = model}, "q8_0", &artifact, &error));
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        read_ends(model->tensors->tensors[i].view);
    artifact_free(&artifact);
    gguf_model_free(model);
}

static bool has_key(const uint8_t *line, size_t length, const char *quoted)
{
    return memmem(line, length, quoted, strlen(quoted)) != NULL;
}

static void write_one(const uint8_t *data, size_t size)
{
    static const char *const config[] = {"config.json", "params.json"};
    static const char *const weights[] = {"model.safetensors", "consolidated.safetensors"};
    const uint8_t *end = memchr(data, '\n', size);
    size_t length = end != NULL ? (size_t)(end - data) : size;
    bool is_mistral = !has_key(data, length, "\"architectures\"");
    bool has_channels = has_key(data, length, "\"image_mean\"");
    write_file("preprocessor_config.json", has_channels ? (const char *)data : preprocessor,
               has_channels ? length : sizeof preprocessor - 1);
    if (has_key(data, length, "\"added_tokens_decoder\""))
        write_file("tokenizer_config.json", data, length);
    else
        remove_file("tokenizer_config.json");
    remove_file(config[!is_mistral]);
    remove_file(weights[!is_mistral]);
    write_model(config[is_mistral], weights[is_mistral], data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    if (size > MOST_BYTES)
        return 0;
    make_directory(remove_directory);
    write_others();
    write_one(data, size);
    const struct checkpoint *checkpoint = checkpoint_open(directory, formats, &(struct open_options){0}, &error);
    if (checkpoint != NULL)
        checkpoint = derive(checkpoint, &(struct derive_options){0}, &error);
    if (checkpoint != NULL)
        project(checkpoint);
    else
        require_one_line(&error);
    checkpoint_close(checkpoint);
    return 0;
}

/* What ComfyUI-GGUF's tools make of small models: names, types and shapes by the rules of convert.py, fix_5d_tensors.py
 * and the patch of llama-quantize. tests/interop/test_media.py compares whole files. */
#include "models/diffusion/gguf.h"
#include "models/diffusion/state_dict.h"
#include "models/formats.h"

#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

#define FLUX "double_blocks.0.img_attn.proj.weight BF16 256x256, "
#define SDXL "label_emb.0.0.weight F16 8x8, "
#define WAN                                                                                                            \
    "blocks.0.self_attn.norm_q.weight BF16 256, text_embedding.2.weight BF16 8x256, head.modulation BF16 1x2x8, "
#define COSMOS                                                                                                         \
    "net.blocks.0.mlp.layer1.weight BF16 8x256, net.blocks.0.adaln_modulation_cross_attn.1.weight BF16 8x256, "
#define LUMINA2 "cap_embedder.1.weight BF16 8x256, context_refiner.0.attention.qkv.weight BF16 8x256, "
#define QWEN                                                                                                           \
    "time_text_embed.timestep_embedder.linear_2.weight BF16 8x256, "                                                   \
    "transformer_blocks.0.attn.norm_added_q.weight BF16 256, "                                                         \
    "transformer_blocks.0.img_mlp.net.0.proj.weight BF16 8x256, "
#define HYVID                                                                                                          \
    "double_blocks.0.img_attn_proj.weight F16 8x256, "                                                                 \
    "txt_in.individual_token_refiner.blocks.1.self_attn_qkv.weight F16 8x256, "

static const struct {
    const char *tensors; /* "NAME DTYPE SHAPE, ..." */
    const char *mix;     /* NULL: convert.py's own file */
    const char *made;    /* the tensors after those of the macro, or the error */
} rows[] = {
    /* Types: small tensors and vectors of F32 and BF16 are F32, other F32 is F16. */
    {FLUX "a BF16 2x512, b BF16 3x512, c F32 8, d F32 3x512, e F16 8, f F8_E4M3 2x2, g I64 2, h F64 2x2, i F32 ", NULL,
     "a F32 2x512, b BF16 3x512, c F32 8, d F16 3x512, e F16 8, f F16 2x2, g F16 2, h F16 2x2, i F32 "},
    {FLUX "a C64 2", NULL, "tensor 'a' is C64, which ComfyUI-GGUF does not read"},
    {FLUX "a BF16 1x1x1x1x2", NULL,
     "tensor 'a' has 5 dimensions, and ComfyUI-GGUF takes at most 4 in models of the kind of Flux"},
    {FLUX "single_transformer_blocks.0.attn.norm_k.weight BF16 8", NULL,
     "tensor 'single_transformer_blocks.0.attn.norm_k.weight' has the name that diffusers gives it, and ComfyUI-GGUF "
     "converts Flux only under its makers' names; mount the makers' file, or the pipeline's directory"},
    /* Rows of 256, in U-Nets only. */
    {SDXL "a F16 4x3x8x16, b F16 4x8, c F16 2x512, d F32 512", NULL, "a F16 6x256, b F16 4x8, c F16 2x512, d F32 512"},
    /* Tensors that keep their precision, and those that are left out. */
    {LUMINA2 "x_pad_token BF16 1x1280, y_pad_token BF16 1x1280", NULL,
     "x_pad_token F32 1x1280, y_pad_token BF16 1x1280"},
    {LUMINA2 "x_pad_token BF16 1x1280, y_pad_token BF16 1x1280", "Q4_0",
     "x_pad_token F32 1x1280, y_pad_token BF16 1280"},
    {COSMOS "net.a_extra_state BF16 8, net.pos_embedder.seq BF16 8x256, net.b BF16 8x256", NULL,
     "pos_embedder.seq F32 8x256, b BF16 8x256"},
    /* Five dimensions, behind the bias, or last and by name. */
    {WAN
     "z.weight BF16 2x1x1x1x2, patch.weight BF16 2x1x1x1x2, patch.bias BF16 2, a.weight F16 2x1x1x1x2, b BF16 8x256",
     NULL,
     "patch.bias F32 2, patch.weight F32 2x1x1x1x2, b BF16 8x256, a.weight F32 2x1x1x1x2, z.weight F32 2x1x1x1x2"},
    {WAN "patch.weight BF16 2x1x1x1x2, patch.bias BF16 2, a.modulation BF16 1x6x256, b BF16 1x8x256", "Q8_0",
     "patch.bias F32 2, patch.weight F32 2x1x1x1x2, a.modulation F32 1x6x256, b BF16 8x256"},
    /* Which matrices are quantized. */
    {FLUX "img_in.weight BF16 8x256, a.weight BF16 8x256, a.bias BF16 8x256, b.weight BF16 1x2048, c.weight BF16 "
          "1x1x8x256, d.weight BF16 2x8x256, e_norm.weight BF16 8x256, five5 BF16 8x256, g.weight F32 2x256",
     "Q8_0",
     "img_in.weight BF16 8x256, a.weight Q8_0 8x256, a.bias BF16 8x256, b.weight BF16 2048, c.weight Q8_0 8x256, "
     "d.weight BF16 2x8x256, e_norm.weight BF16 8x256, five5 Q8_0 8x256, g.weight Q8_0 2x256"},
    {FLUX "a BF16 ", "Q8_0", "tensor 'a' has no dimensions, at which ComfyUI-GGUF's llama-quantize stops"},
    {FLUX "a.attn_v.weight BF16 8x256", "F16",
     "tensor 'a.attn_v.weight' has a name of language models, at which ComfyUI-GGUF's llama-quantize stops"},
    {FLUX "first_stage_model.a.weight BF16 8x256", "F16", "first_stage_model.a.weight F16 8x256"},
    {FLUX "first_stage_model.a.weight BF16 8x256", "Q4_0",
     "tensor 'first_stage_model.a.weight' has a name that ComfyUI-GGUF's llama-quantize refuses"},
    {FLUX "a.weight BF16 64x40", "Q8_0",
     "tensor 'a.weight': a row of 40 elements is not a multiple of 32, as Q8_0 needs it"},
    /* Types by role. Rows that are not whole blocks of 256 become F16. */
    {FLUX "a.to_v.weight BF16 8x256, b.attn.qkv.weight BF16 8x256, c.ff.net.2.weight BF16 8x256, d.weight BF16 64x96",
     "Q4_K_M",
     "a.to_v.weight Q6_K 8x256, b.attn.qkv.weight Q5_K 8x256, c.ff.net.2.weight Q6_K 8x256, d.weight F16 64x96"},
    {FLUX "a.v.weight BF16 8x256, b.v.weight BF16 8x256, c.v.weight BF16 8x256, attn2.qkv.weight BF16 8x256, "
          "x.experts.0.w2.weight BF16 8x256, ff_t.w2.weight BF16 8x256, v_img.weight BF16 8x256",
     "Q3_K_M",
     "a.v.weight Q5_K 8x256, b.v.weight Q5_K 8x256, c.v.weight Q4_K 8x256, attn2.qkv.weight Q3_K 8x256, "
     "x.experts.0.w2.weight Q4_K 8x256, ff_t.w2.weight Q3_K 8x256, v_img.weight Q3_K 8x256"},
    {FLUX "a.v.weight BF16 8x256, b.v.weight BF16 8x256, c.v.weight BF16 8x256, d.v.weight BF16 8x256, e.v.weight BF16 "
          "8x256, a.ffn.2.weight BF16 8x256",
     "Q4_K_S",
     "a.v.weight Q5_K 8x256, b.v.weight Q5_K 8x256, c.v.weight Q5_K 8x256, d.v.weight Q5_K 8x256, e.v.weight Q4_K "
     "8x256, a.ffn.2.weight Q5_K 8x256"},
    {FLUX "a.v.weight BF16 8x256, a.ffn.2.weight BF16 8x256", "Q4_0",
     "a.v.weight Q4_0 8x256, a.ffn.2.weight Q4_1 8x256"},
    {FLUX "a.v.weight BF16 8x256, a.attention.qkv.weight BF16 8x256", "Q2_K",
     "a.v.weight Q3_K 8x256, a.attention.qkv.weight Q2_K 8x256"},
    {QWEN "transformer_blocks.0.x.add_v_proj.weight BF16 8x256, transformer_blocks.1.img_mlp.net.2.weight BF16 8x256, "
          "transformer_blocks.59.w.weight BF16 8x256, transformer_blocks.60.w.weight BF16 8x256",
     "Q3_K_L",
     "transformer_blocks.0.x.add_v_proj.weight Q4_K 8x256, transformer_blocks.1.img_mlp.net.2.weight Q5_K 8x256, "
     "transformer_blocks.59.w.weight Q4_K 8x256, transformer_blocks.60.w.weight Q3_K 8x256"},
    {HYVID "double_blocks.0.img_attn_qkv.weight F16 8x256", "Q5_K_M", "double_blocks.0.img_attn_qkv.weight Q6_K 8x256"},
};

static size_t bytes_of(const char *dtype)
{
    static const struct {
        const char *name;
        size_t n_bytes;
    } types[] = {{"F64", 8}, {"I64", 8}, {"C64", 8}, {"F32", 4}, {"F8_E4M3", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, dtype) == 0)
            return types[i].n_bytes;
    return 2;
}

/* Writes the tensors of a row, in its order. */
static void write_model(const char *tensors)
{
    struct safetensors file = {0};
    for (int consumed; *tensors != '\0'; tensors += strspn(tensors, ", ")) {
        char name[128], dtype[16], shape[64];
        files_must(sscanf(tensors, "%127s %15s %n", name, dtype, &consumed) == 2, tensors);
        tensors += consumed;
        uint64_t count = safetensors_shape(tensors, shape);
        safetensors_add(&file, name, dtype, shape, NULL, (size_t)count * bytes_of(dtype));
        tensors += strspn(tensors, "0123456789x");
    }
    safetensors_write(&file, "x.safetensors");
}

static void describe(const struct artifact *artifact, struct buffer *out)
{
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        const struct tensor *tensor = artifact->tensors[i].tensor;
        buffer_printf(out, "%s%s %s ", i > 0 ? ", " : "", tensor->name, artifact->tensors[i].encoding.dtype->name);
        for (unsigned axis = 0; axis < tensor->rank; axis++)
            buffer_printf(out, "%s%llu", axis > 0 ? "x" : "", (unsigned long long)tensor->shape[axis]);
    }
    buffer_append(out, "", 1);
}

/* Describes the file, or the error. */
static void make(const struct checkpoint *checkpoint, const char *mix, struct buffer *out)
{
    struct artifact artifact = {0};
    struct error error = {""};
    struct gguf_model *model = diffusion_model_new(checkpoint, &error);
    bool made = model != NULL;
    if (made && mix != NULL)
        made = diffusion_quantize(&(struct gguf_edition){.model = model}, mix_find(mix), &artifact, &error);
    else if (made)
        diffusion_artifact(&(struct gguf_edition){.model = model}, &artifact);
    if (made)
        describe(&artifact, out);
    else
        buffer_append(out, error.message, strlen(error.message) + 1);
    artifact_free(&artifact);
    gguf_model_free(model);
}

int main(void)
{
    static const struct open_options options = {0};
    files_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error;
        struct buffer made = {0};
        write_model(rows[i].tensors);
        const struct checkpoint *checkpoint = checkpoint_open("x.safetensors", formats, &options, &error);
        files_must(checkpoint != NULL, error.message);
        make(checkpoint, rows[i].mix, &made);
        size_t length = strlen((const char *)made.bytes), expected = strlen(rows[i].made);
        CHECK_TEXT((const char *)made.bytes + (length > expected ? length - expected : 0), rows[i].made);
        buffer_free(&made);
        checkpoint_close(checkpoint);
    }
    files_remove();
    return check_done();
}

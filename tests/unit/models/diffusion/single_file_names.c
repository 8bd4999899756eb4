/* Names of Stable Diffusion's tensors in a single file and in diffusers' components, both ways, and names that no
 * component has. */
#include "models/diffusion/single_file.h"

#include "tests/unit/check.h"

enum release { BOTH, FIRST, XL };

static const struct {
    enum release release;
    enum single_file_part part;
    const char *component, *file;
} rows[] = {
    {BOTH, SINGLE_FILE_UNET, "time_embedding.linear_2.bias", "time_embed.2.bias"},
    {BOTH, SINGLE_FILE_UNET, "conv_norm_out.weight", "out.0.weight"},
    {BOTH, SINGLE_FILE_UNET, "down_blocks.0.resnets.0.norm1.weight", "input_blocks.1.0.in_layers.0.weight"},
    {BOTH, SINGLE_FILE_UNET, "down_blocks.1.resnets.1.conv_shortcut.bias", "input_blocks.5.0.skip_connection.bias"},
    {BOTH, SINGLE_FILE_UNET, "down_blocks.2.attentions.1.transformer_blocks.0.attn2.to_k.weight",
     "input_blocks.8.1.transformer_blocks.0.attn2.to_k.weight"},
    {BOTH, SINGLE_FILE_UNET, "down_blocks.1.downsamplers.0.conv.weight", "input_blocks.6.0.op.weight"},
    {BOTH, SINGLE_FILE_UNET, "mid_block.resnets.1.time_emb_proj.weight", "middle_block.2.emb_layers.1.weight"},
    {BOTH, SINGLE_FILE_UNET, "mid_block.attentions.0.proj_in.weight", "middle_block.1.proj_in.weight"},
    {BOTH, SINGLE_FILE_UNET, "up_blocks.1.upsamplers.0.conv.weight", "output_blocks.5.2.conv.weight"},
    {FIRST, SINGLE_FILE_UNET, "up_blocks.0.upsamplers.0.conv.bias", "output_blocks.2.1.conv.bias"},
    {FIRST, SINGLE_FILE_UNET, "up_blocks.3.attentions.2.norm.bias", "output_blocks.11.1.norm.bias"},
    {FIRST, SINGLE_FILE_UNET, "down_blocks.0.attentions.0.norm.weight", "input_blocks.1.1.norm.weight"},
    {XL, SINGLE_FILE_UNET, "up_blocks.0.upsamplers.0.conv.bias", "output_blocks.2.2.conv.bias"},
    {XL, SINGLE_FILE_UNET, "up_blocks.0.attentions.2.norm.bias", "output_blocks.2.1.norm.bias"},
    {XL, SINGLE_FILE_UNET, "up_blocks.2.resnets.2.conv2.bias", "output_blocks.8.0.out_layers.3.bias"},
    {XL, SINGLE_FILE_UNET, "add_embedding.linear_1.weight", "label_emb.0.0.weight"},
    {FIRST, SINGLE_FILE_UNET, NULL, "label_emb.0.0.weight"},
    {XL, SINGLE_FILE_UNET, NULL, "input_blocks.1.1.norm.weight"},
    {BOTH, SINGLE_FILE_UNET, NULL, "conv_in.weight"},
    {BOTH, SINGLE_FILE_UNET, NULL, "conv_norm_out"},

    {BOTH, SINGLE_FILE_VAE, "encoder.down_blocks.3.resnets.1.norm2.bias", "encoder.down.3.block.1.norm2.bias"},
    {BOTH, SINGLE_FILE_VAE, "encoder.down_blocks.2.downsamplers.0.conv.bias", "encoder.down.2.downsample.conv.bias"},
    {BOTH, SINGLE_FILE_VAE, "decoder.up_blocks.1.resnets.2.conv_shortcut.bias",
     "decoder.up.2.block.2.nin_shortcut.bias"},
    {BOTH, SINGLE_FILE_VAE, "decoder.up_blocks.0.upsamplers.0.conv.weight", "decoder.up.3.upsample.conv.weight"},
    {BOTH, SINGLE_FILE_VAE, "encoder.mid_block.attentions.0.group_norm.bias", "encoder.mid.attn_1.norm.bias"},
    {BOTH, SINGLE_FILE_VAE, "encoder.mid_block.attentions.0.to_k.weight", "encoder.mid.attn_1.k.weight"},
    {BOTH, SINGLE_FILE_VAE, "decoder.mid_block.attentions.0.to_out.0.bias", "decoder.mid.attn_1.proj_out.bias"},
    {BOTH, SINGLE_FILE_VAE, "decoder.mid_block.resnets.1.conv1.bias", "decoder.mid.block_2.conv1.bias"},
    {BOTH, SINGLE_FILE_VAE, "decoder.conv_norm_out.weight", "decoder.norm_out.weight"},
    {BOTH, SINGLE_FILE_VAE, "encoder.conv_in.weight", "encoder.conv_in.weight"},
    {BOTH, SINGLE_FILE_VAE, "post_quant_conv.bias", "post_quant_conv.bias"},
    {BOTH, SINGLE_FILE_VAE, NULL, "loss.logvar"},
    {BOTH, SINGLE_FILE_VAE, NULL, "encoder.more.weight"},

    {BOTH, SINGLE_FILE_CLIP, "text_model.encoder.layers.3.mlp.fc1.bias", "text_model.encoder.layers.3.mlp.fc1.bias"},
    {BOTH, SINGLE_FILE_CLIP, NULL, "text_model.embeddings.position_ids"},
    {BOTH, SINGLE_FILE_CLIP, NULL, "logit_scale"},

    {BOTH, SINGLE_FILE_OPEN_CLIP, "text_model.embeddings.token_embedding.weight", "token_embedding.weight"},
    {BOTH, SINGLE_FILE_OPEN_CLIP, "text_model.embeddings.position_embedding.weight", "positional_embedding"},
    {BOTH, SINGLE_FILE_OPEN_CLIP, "text_model.final_layer_norm.bias", "ln_final.bias"},
    {BOTH, SINGLE_FILE_OPEN_CLIP, "text_model.encoder.layers.11.layer_norm2.weight",
     "transformer.resblocks.11.ln_2.weight"},
    {BOTH, SINGLE_FILE_OPEN_CLIP, "text_model.encoder.layers.0.self_attn.out_proj.bias",
     "transformer.resblocks.0.attn.out_proj.bias"},
    {BOTH, SINGLE_FILE_OPEN_CLIP, "text_model.encoder.layers.0.mlp.fc2.bias",
     "transformer.resblocks.0.mlp.c_proj.bias"},
    {BOTH, SINGLE_FILE_OPEN_CLIP, NULL, "logit_scale"},
    {BOTH, SINGLE_FILE_OPEN_CLIP, NULL, "attn_mask"},
};

static bool is_alike(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void check_both_ways(bool is_xl)
{
    struct arena *arena = arena_new();
    const struct single_file_names *names = single_file_names_new(arena, is_xl);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].release == (is_xl ? FIRST : XL))
            continue;
        const char *component = single_file_component_name(names, rows[i].part, rows[i].file);
        CHECK_NAMED(is_alike(component, rows[i].component), rows[i].file);
        if (rows[i].component != NULL)
            CHECK_TEXT(single_file_name(names, rows[i].part, rows[i].component), rows[i].file);
    }
    arena_free(arena);
}

/* A name that grows with each rule that applies is none: it would cost memory, and no model has it. */
static void check_long(void)
{
    enum { COPIES = 3000 };
    static const char text[] = "input_blocks.1.0.";
    static char name[sizeof text * COPIES];
    struct arena *arena = arena_new();
    for (size_t i = 0; i < COPIES; i++)
        memcpy(name + i * strlen(text), text, sizeof text);
    const struct single_file_names *names = single_file_names_new(arena, false);
    size_t before = arena_bytes(arena);
    CHECK(single_file_component_name(names, SINGLE_FILE_UNET, name) == NULL);
    CHECK(arena_bytes(arena) == before);
    arena_free(arena);
}

int main(void)
{
    check_both_ways(false);
    check_both_ways(true);
    check_long();
    return check_done();
}

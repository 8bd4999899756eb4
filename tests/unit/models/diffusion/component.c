/* Flux and Stable Diffusion 3 under their makers' names as components of diffusers: names, the first element of each
 * tensor, and config.json. In the file element i of each tensor is i, so the first element tells which rows it has. */
#include "models/diffusion/component.h"
#include "models/formats.h"

#include "tests/unit/check.h"
#include "tests/unit/numbers.h"
#include "tests/unit/write_safetensors.h"

static const struct {
    const char *tensors, *shown, *config;
} rows[] = {
    {"img_in.weight 4 3, txt_in.weight 4 5, vector_in.in_layer.weight 4 6, final_layer.linear.weight 3 4, "
     "final_layer.adaLN_modulation.1.weight 8 4, double_blocks.0.img_attn.qkv.weight 12 4, "
     "double_blocks.0.img_attn.proj.weight 4 4, double_blocks.0.img_attn.norm.key_norm.scale 0 2, "
     "single_blocks.0.linear1.bias 0 28, single_blocks.2.linear2.weight 4 20",
     "context_embedder.weight 0, norm_out.linear.weight 16, proj_out.weight 0, "
     "single_transformer_blocks.0.attn.to_k.bias 4, single_transformer_blocks.0.attn.to_q.bias 0, "
     "single_transformer_blocks.0.attn.to_v.bias 8, single_transformer_blocks.0.proj_mlp.bias 12, "
     "single_transformer_blocks.2.proj_out.weight 0, time_text_embed.text_embedder.linear_1.weight 0, "
     "transformer_blocks.0.attn.norm_k.weight 0, transformer_blocks.0.attn.to_k.weight 16, "
     "transformer_blocks.0.attn.to_out.0.weight 0, transformer_blocks.0.attn.to_q.weight 0, "
     "transformer_blocks.0.attn.to_v.weight 32, x_embedder.weight 0",
     "{ \"_class_name\": \"FluxTransformer2DModel\", \"attention_head_dim\": 2, \"guidance_embeds\": false, "
     "\"in_channels\": 3, \"joint_attention_dim\": 5, \"num_attention_heads\": 2, \"num_layers\": 1, "
     "\"num_single_layers\": 3, \"out_channels\": 3, \"patch_size\": 1, \"pooled_projection_dim\": 6 }"},
    {"joint_blocks.0.x_block.attn.qkv.weight 9 3, joint_blocks.0.x_block.attn2.qkv.bias 0 9, "
     "joint_blocks.0.context_block.adaLN_modulation.1.bias 0 18, joint_blocks.1.context_block.adaLN_modulation.1.bias "
     "0 6, "
     "final_layer.adaLN_modulation.1.bias 0 6",
     "norm_out.linear.bias 3, transformer_blocks.0.attn.to_k.weight 9, transformer_blocks.0.attn.to_q.weight 0, "
     "transformer_blocks.0.attn.to_v.weight 18, transformer_blocks.0.attn2.to_k.bias 3, "
     "transformer_blocks.0.attn2.to_q.bias 0, transformer_blocks.0.attn2.to_v.bias 6, "
     "transformer_blocks.0.norm1_context.linear.bias 0, transformer_blocks.1.norm1_context.linear.bias 3",
     "tensor 'x_embedder.proj.weight' is missing, or has too few dimensions"},
    {"double_blocks.0.img_attn.proj.weight 4 4, single_stream_modulation.lin.weight 4 4",
     "a model of the class FluxTransformer2DModel: tensor 'single_stream_modulation.lin.weight' is unknown to the "
     "family "
     "FluxTransformer2DModel",
     NULL},
};

static void describe_tensors(const struct state_dict *dict, struct arena *arena, struct buffer *out)
{
    struct artifact artifact = {0};
    struct error error;
    if (!component_artifact(dict, arena, &artifact, &error))
        buffer_append_text(out, error.message);
    uint32_t *order = artifact.n_tensors > 0 ? tensors_by_name(artifact.tensors[0].tensor, artifact.n_tensors) : NULL;
    for (size_t i = 0; i < artifact.n_tensors; i++) {
        const struct tensor *tensor = &artifact.tensors[0].tensor[order[i]];
        float first = -1;
        CHECK(read_numbers(tensor_view(tensor, arena), 0, 1, &first, &error));
        buffer_printf(out, "%s%s %g", i > 0 ? ", " : "", tensor->name, (double)first);
    }
    buffer_append(out, "", 1);
    free(order);
    artifact_free(&artifact);
}

/* Describes config.json on one line, with single spaces, or the error. */
static void describe_config(const struct state_dict *dict, struct buffer *out)
{
    struct buffer config = {0};
    struct error error;
    if (!component_write_config(dict, &config, &error))
        buffer_append_text(out, error.message);
    else
        for (size_t i = 0; i + 1 < config.length; i++) {
            char c = (char)config.bytes[i] == '\n' ? ' ' : (char)config.bytes[i];
            if (c != ' ' || out->length == 0 || out->bytes[out->length - 1] != ' ')
                buffer_append(out, &c, 1);
        }
    buffer_append(out, "", 1);
    buffer_free(&config);
}

static void check_row(size_t i)
{
    static const struct open_options options = {0};
    struct error error;
    struct buffer shown = {0}, config = {0};
    struct arena *arena = arena_new();
    safetensors_write_ramps("x.safetensors", rows[i].tensors);
    const struct checkpoint *checkpoint = checkpoint_open("x.safetensors", formats, &options, &error);
    files_must(checkpoint != NULL, error.message);
    const struct state_dict *dict = state_dict_of(checkpoint);
    if (CHECK(dict != NULL && component_is_known(dict))) {
        describe_tensors(dict, arena, &shown);
        CHECK_TEXT((const char *)shown.bytes, rows[i].shown);
        describe_config(dict, &config);
        if (rows[i].config != NULL)
            CHECK_TEXT((const char *)config.bytes, rows[i].config);
    }
    buffer_free(&shown);
    buffer_free(&config);
    checkpoint_close(checkpoint);
    arena_free(arena);
}

int main(void)
{
    files_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(i);
    files_remove();
    return check_done();
}

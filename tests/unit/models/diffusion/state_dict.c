/* Which models are diffusion models, of what architecture, and the order of their tensors. */
#include "models/diffusion/state_dict.h"
#include "models/formats.h"

#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

static const struct {
    const char *names;
    const char *found; /* the architecture and the names; NULL: none is recognized */
} rows[] = {
    {"double_blocks.0.img_attn.proj.weight b a", "flux double_blocks.0.img_attn.proj.weight b a"},
    {"model.diffusion_model.double_blocks.0.img_attn.proj.weight first_stage_model.b model.c",
     "flux double_blocks.0.img_attn.proj.weight"},
    {"model.double_blocks.0.img_attn.proj.weight b model.a.model.c", "flux double_blocks.0.img_attn.proj.weight a.c"},
    {"model.model.double_blocks.0.img_attn.proj.weight", "flux double_blocks.0.img_attn.proj.weight"},
    {"net.double_blocks.0.img_attn.proj.weight net.b", "flux double_blocks.0.img_attn.proj.weight b"},
    {"net.double_blocks.0.img_attn.proj.weight b", NULL},
    {"joint_blocks.0.x_block.attn.qkv.weight", "sd3 joint_blocks.0.x_block.attn.qkv.weight"},
    {"double_layers.3.modX.1.weight", "aura double_layers.3.modX.1.weight"},
    {"caption_projection.0.linear.weight double_stream_blocks.0.block.ff_i.shared_experts.w3.weight",
     "hidream caption_projection.0.linear.weight double_stream_blocks.0.block.ff_i.shared_experts.w3.weight"},
    {"caption_projection.0.linear.weight", NULL},
    {"adaln_single.emb.timestep_embedder.linear_2.weight transformer_blocks.27.scale_shift_table "
     "caption_projection.linear_2.weight",
     "ltxv adaln_single.emb.timestep_embedder.linear_2.weight transformer_blocks.27.scale_shift_table "
     "caption_projection.linear_2.weight"},
    {"down_blocks.0.downsamplers.0.conv.weight", "sd1 down_blocks.0.downsamplers.0.conv.weight"},
    {"down_blocks.0.downsamplers.0.conv.weight add_embedding.linear_1.weight",
     "sdxl down_blocks.0.downsamplers.0.conv.weight add_embedding.linear_1.weight"},
    {"model.layers.0.self_attn.q_proj.weight", NULL},
    {"", NULL},
};

static void add_names(struct safetensors *file, const char *names)
{
    for (size_t length; *names != '\0'; names += length + strspn(names + length, " ")) {
        char name[256];
        length = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        safetensors_add(file, name, "F16", "2", NULL, 4);
    }
}

/* Checks the state dict of a file or a directory. */
static void check_found(const char *path, const char *expected, const char *refusal)
{
    static const struct open_options options = {0};
    struct error error;
    struct buffer found = {0};
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &options, &error);
    files_must(checkpoint != NULL, error.message);
    const struct state_dict *dict = state_dict_of(checkpoint);
    if (expected == NULL) {
        CHECK(dict == NULL);
    } else if (CHECK_NAMED(dict != NULL, expected)) {
        buffer_append_text(&found, dict->architecture->name);
        for (size_t i = 0; dict->tensors != NULL && i < dict->tensors->n_tensors; i++)
            buffer_printf(&found, " %s", dict->tensors->tensors[i].name);
        buffer_append(&found, "", 1);
        CHECK_TEXT((const char *)found.bytes, expected);
        CHECK(refusal == NULL ? dict->refusal == NULL
                              : dict->refusal != NULL && strstr(dict->refusal, refusal) != NULL);
    }
    buffer_free(&found);
    checkpoint_close(checkpoint);
}

/* A file keeps the order of its data; shards are joined as save_file() would save them. */
static void check_orders(void)
{
    struct safetensors file = {0};
    add_names(&file, "c double_blocks.0.img_attn.proj.weight");
    safetensors_add(&file, "x", "F32", "1", NULL, 4);
    safetensors_write(&file, "model/model-00001-of-00002.safetensors");
    check_found("model/model-00001-of-00002.safetensors", "flux c double_blocks.0.img_attn.proj.weight x", NULL);
    add_names(&file, "b a");
    safetensors_write(&file, "model/model-00002-of-00002.safetensors");
    check_found("model", "flux x a b c double_blocks.0.img_attn.proj.weight", NULL);
}

/* diffusers' names become the makers' in a component; in a file alone they are refused. */
static void check_component(void)
{
    static const char config[] = "{\"_class_name\": \"FluxTransformer2DModel\"}";
    struct safetensors file = {0};
    add_names(&file, "single_transformer_blocks.0.attn.norm_k.weight x_embedder.weight");
    safetensors_write(&file, "x.safetensors");
    check_found("x.safetensors", "flux single_transformer_blocks.0.attn.norm_k.weight x_embedder.weight",
                "has the name that diffusers gives it");
    add_names(&file, "x_embedder.weight single_transformer_blocks.0.attn.norm_k.weight "
                     "transformer_blocks.11.attn.to_q.bias transformer_blocks.11.attn.to_v.bias "
                     "transformer_blocks.11.attn.to_k.bias");
    safetensors_write(&file, "flux/diffusion_pytorch_model.safetensors");
    files_write("flux/config.json", config, sizeof config - 1);
    check_found("flux", "flux double_blocks.11.img_attn.qkv.bias img_in.weight single_blocks.0.norm.key_norm.scale",
                NULL);
    add_names(&file, "x_embedder.weight transformer_blocks.11.attn.to_q.bias");
    safetensors_write(&file, "flux/diffusion_pytorch_model.safetensors");
    check_found("flux", "flux", "too few tensors");
}

int main(void)
{
    files_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct safetensors file = {0};
        add_names(&file, rows[i].names);
        safetensors_write(&file, "x.safetensors");
        check_found("x.safetensors", rows[i].found, NULL);
    }
    check_orders();
    check_component();
    files_remove();
    return check_done();
}

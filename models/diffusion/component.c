#include "models/diffusion/component.h"

#include "base/text.h"
#include "formats/safetensors/safetensors.h"
#include "models/diffusion/naming.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool component_is_known(const struct state_dict *dict)
{
    return dict->refusal == NULL && dict->tensors != NULL && diffusion_naming_for(dict->architecture->name) != NULL;
}

void component_weights(const struct tensor_set *tensors, struct artifact *ret_artifact)
{
    struct artifact artifact = {.container = &safetensors_container};
    artifact_reserve(&artifact, tensors->n_tensors);
    for (size_t i = 0; i < tensors->n_tensors; i++)
        artifact.tensors[i] = (struct artifact_tensor){&tensors->tensors[i], encoding_of(tensors->tensors[i].dtype)};
    gguf_set_text(&artifact.metadata, "format", "pt");
    *ret_artifact = artifact;
}

bool component_artifact(const struct state_dict *dict, struct arena *arena, struct artifact *ret_artifact,
                        struct error *error)
{
    const struct diffusion_naming *naming = diffusion_naming_for(dict->architecture->name);
    struct tensor_set *renamed = diffusion_rename(naming, BACKWARD, dict->tensors, arena, error);
    if (renamed == NULL || !tensor_set_seal(renamed, error))
        return false;
    component_weights(renamed, ret_artifact);
    return true;
}

static void put_heads(struct describing *describing, uint64_t width, uint64_t head)
{
    json_put_number(describing->writer, "num_attention_heads", head > 0 ? width / head : 0);
}

static void describe_flux(struct describing *describing)
{
    enum { USUAL_HEAD = 128 }; /* for which diffusers divides the axes of positions as 16, 56, 56 */
    struct json_writer *writer = describing->writer;
    uint64_t head = describing_size(describing, "double_blocks.0.img_attn.norm.key_norm.scale", 0);
    json_put_number(writer, "attention_head_dim", head);
    if (head == USUAL_HEAD)
        json_put_template(writer, "'axes_dims_rope': [16, 56, 56]");
    json_put_bool(writer, "guidance_embeds",
                  tensor_set_find_text(describing->set, "guidance_in.in_layer.weight") != NULL);
    describing_put_size(describing, "in_channels", "img_in.weight", 1);
    describing_put_size(describing, "joint_attention_dim", "txt_in.weight", 1);
    put_heads(describing, describing_size(describing, "img_in.weight", 0), head);
    json_put_number(writer, "num_layers", describing_blocks(describing->set, "double_blocks."));
    json_put_number(writer, "num_single_layers", describing_blocks(describing->set, "single_blocks."));
    describing_put_size(describing, "out_channels", "final_layer.linear.weight", 0);
    json_put_number(writer, "patch_size", 1);
    describing_put_size(describing, "pooled_projection_dim", "vector_in.in_layer.weight", 1);
}

/* Puts the blocks in which the picture has a second attention. */
static void put_dual_layers(const struct describing *describing, uint64_t n_layers)
{
    json_begin_array(describing->writer, "dual_attention_layers");
    struct arena *arena = arena_new();
    for (uint64_t i = 0; i < n_layers && i <= describing->set->n_tensors; i++) {
        const char *name = arena_printf(arena, "joint_blocks.%llu.x_block.attn2.qkv.weight", (unsigned long long)i);
        if (tensor_set_find_text(describing->set, name) != NULL)
            json_put_number(describing->writer, NULL, i);
    }
    arena_free(arena);
    json_end(describing->writer);
}

static void describe_sd3(struct describing *describing)
{
    enum { HEAD = 64, SAMPLES = 128 };
    struct json_writer *writer = describing->writer;
    uint64_t n_layers = describing_blocks(describing->set, "joint_blocks."), width,
             patch = describing_size(describing, "x_embedder.proj.weight", 3);
    width = describing_size(describing, "context_embedder.weight", 0);
    json_put_number(writer, "attention_head_dim", HEAD);
    json_put_number(writer, "caption_projection_dim", width);
    put_dual_layers(describing, n_layers);
    describing_put_size(describing, "in_channels", "x_embedder.proj.weight", 1);
    describing_put_size(describing, "joint_attention_dim", "context_embedder.weight", 1);
    put_heads(describing, width, HEAD);
    json_put_number(writer, "num_layers", n_layers);
    uint64_t out = describing_size(describing, "final_layer.linear.weight", 0);
    json_put_number(writer, "out_channels", patch > 0 && patch <= out ? out / patch / patch : 0);
    json_put_number(writer, "patch_size", patch);
    describing_put_size(describing, "pooled_projection_dim", "y_embedder.mlp.0.weight", 1);
    json_put_number(writer, "pos_embed_max_size", (uint64_t)sqrt((double)describing_size(describing, "pos_embed", 1)));
    bool has_norms = tensor_set_find_text(describing->set, "joint_blocks.0.x_block.attn.ln_q.weight") != NULL;
    json_put_text(writer, "qk_norm", has_norms ? "rms_norm" : NULL);
    json_put_number(writer, "sample_size", SAMPLES);
}

bool component_write_config(const struct state_dict *dict, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out};
    struct describing describing = {dict->tensors, &writer, error, false};
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "_class_name", diffusion_naming_for(dict->architecture->name)->class_name);
    if (strcmp(dict->architecture->name, "flux") == 0)
        describe_flux(&describing);
    else
        describe_sd3(&describing);
    json_end(&writer);
    buffer_append_text(out, "\n");
    return !describing.failed;
}

void describing_fail(struct describing *describing, const char *format, ...)
{
    char reason[256];
    va_list values;
    va_start(values, format);
    vsnprintf(reason, sizeof reason, format, values);
    va_end(values);
    if (!describing->failed)
        error_set(describing->error, "%s", reason);
    describing->failed = true;
}

uint64_t describing_size(struct describing *describing, const char *name, unsigned axis)
{
    const struct tensor *tensor = tensor_set_find_text(describing->set, name);
    if (tensor != NULL && tensor->rank > axis && tensor->shape[axis] > 0)
        return tensor->shape[axis];
    describing_fail(describing, "tensor '%s' is missing, or has too few dimensions", name);
    return 0;
}

void describing_put_size(struct describing *describing, const char *key, const char *tensor, unsigned axis)
{
    json_put_number(describing->writer, key, describing_size(describing, tensor, axis));
}

uint64_t describing_blocks(const struct tensor_set *set, const char *beginning)
{
    uint64_t n = 0;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (text_starts_with(set->tensors[i].name, beginning)) {
            uint64_t number = strtoull(set->tensors[i].name + strlen(beginning), NULL, 10);
            n = number + 1 > n ? number + 1 : n;
        }
    return n;
}

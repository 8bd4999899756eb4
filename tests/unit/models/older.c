/* GGUFs as older versions of the converter wrote them: an expert a tensor until April 2024, and until April 2025 the
 * keys and values of latent attention in one tensor, with the sizes of its heads under other keys. And biases of OLMo
 * 1, which the converter leaves as they are where it moves the rows of weights. */
#include "models/family/model_builder.h"
#include "models/huggingface/hf_of_gguf.h"
#include "tests/unit/check.h"

extern const struct family llama_family, deepseek2_family, olmo_family;

static const struct view *read_view(void *context, const struct tensor *tensor, const char *shown, struct error *error)
{
    (void)context, (void)shown, (void)error;
    return tensor->view;
}

static void write_view(void *context, const char *name, const struct view *view)
{
    tensor_set_add_view(context, name, view);
}

/* The one tensor of this name comes back as `wanted`, the same view; that name does not lead to the older one. */
static void check_name(const struct family *family, const char *older, const char *wanted)
{
    static const uint64_t shape[] = {2, 4};
    static const float zeros[8];
    struct arena *arena = arena_new();
    struct error error = {""};
    struct dimensions dimensions = {.n_layers = 2};
    struct tensor_set *set = tensor_set_new(arena), *back = tensor_set_new(arena);
    struct relation_match match;
    const struct view *view = view_numbers(arena, 2, shape, zeros);
    dimensions_set(&dimensions, "expert", 2);
    tensor_set_add_view(set, older, view);
    CHECK(tensor_set_seal(set, &error));
    const struct relation_job job = {
        .relation = relation_new(arena, family->name, family->prefix, family->tensors, &error),
        .direction = BACKWARD,
        .dimensions = &dimensions,
        .dimensions_name = "the keys",
        .set = set,
        .arena = arena,
        .context = back,
        .read = read_view,
        .write = write_view,
    };
    CHECK_NAMED(relation_apply(&job, &error), older);
    CHECK_TEXT(error.message, "");
    if (CHECK(back->n_tensors == 1)) {
        CHECK_TEXT(back->tensors[0].name, wanted);
        CHECK(back->tensors[0].view == view);
    }
    CHECK(relation_find(job.relation, FORWARD, &dimensions, NULL, wanted, &match) && !match.entry->row->backward_only);
    arena_free(arena);
}

static void check_config(void)
{
    static const char *const wanted[] = {"\"kv_lora_rank\": 512,", "\"qk_nope_head_dim\": 128,", "\"v_head_dim\": 96"};
    struct arena *arena = arena_new();
    struct tensor_set *set = tensor_set_new(arena);
    struct gguf_kvs kvs = {0};
    struct buffer config = {0};
    struct error error = {""};
    gguf_set_text(&kvs, "general.architecture", "deepseek2");
    gguf_set_u32(&kvs, "deepseek2.block_count", 2);
    gguf_set_u32(&kvs, "deepseek2.context_length", 4096);
    gguf_set_u32(&kvs, "deepseek2.embedding_length", 256);
    gguf_set_u32(&kvs, "deepseek2.feed_forward_length", 512);
    gguf_set_u32(&kvs, "deepseek2.attention.head_count", 16);
    gguf_set_u32(&kvs, "deepseek2.attention.head_count_kv", 16);
    gguf_set_u32(&kvs, "deepseek2.attention.kv_lora_rank", 512);
    gguf_set_u32(&kvs, "deepseek2.attention.key_length", 192);
    gguf_set_u32(&kvs, "deepseek2.attention.value_length", 96);
    gguf_set_u32(&kvs, "deepseek2.rope.dimension_count", 64);
    CHECK(tensor_set_seal(set, &error));
    CHECK(config_of_keys(&deepseek2_family, &kvs, set, "float32", &config, &error));
    CHECK_TEXT(error.message, "");
    buffer_append(&config, "", 1);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        CHECK_NAMED(strstr((const char *)config.bytes, wanted[i]) != NULL, wanted[i]);
    buffer_free(&config);
    gguf_kvs_free(&kvs);
    arena_free(arena);
}

int main(void)
{
    check_name(&olmo_family, "blk.1.attn_q.bias", "model.layers.1.self_attn.q_proj.bias");
    check_name(&llama_family, "blk.1.ffn_gate.0.weight", "model.layers.1.block_sparse_moe.experts.0.w1.weight");
    check_name(&llama_family, "blk.1.ffn_down.1.weight", "model.layers.1.block_sparse_moe.experts.1.w2.weight");
    check_name(&llama_family, "blk.1.ffn_up.0.weight", "model.layers.1.block_sparse_moe.experts.0.w3.weight");
    check_name(&deepseek2_family, "blk.0.attn_kv_b.weight", "model.layers.0.self_attn.kv_b_proj.weight");
    check_config();
    return check_done();
}

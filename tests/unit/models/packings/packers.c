/* Packers: their parts unpack to the weight again, where its values are exact in the type of the parts; what they are
 * called, and what configurations say of them: as QuantConfig of TensorRT-LLM 1.2 writes itself to config.json. */
#include "models/packings/packings.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

static const float weight[2][4] = {{448, -224, 1, 0.015625f}, {-2, 896, 0.03125f, 0}};

static unsigned pack(const struct packer *packer, struct arena *arena, struct packed_part *parts)
{
    const uint64_t shape[] = {2, 4};
    struct error error;
    return packer->pack(packer, arena, view_numbers(arena, 2, shape, *weight), parts, &error);
}

static void there_and_back(void)
{
    struct arena *arena = arena_new();
    struct tensor_set *set = tensor_set_new(arena);
    struct packed_part parts[PACKING_MAX_PARTS];
    struct error error;
    const struct packer *packer = packer_find("FP8_PER_CHANNEL_PER_TOKEN");
    if (!CHECK(packer != NULL && pack(packer, arena, parts) == 2))
        return;
    CHECK_TEXT(parts[0].view->dtype->name, "F8_E4M3");
    CHECK(parts[1].view->dtype == &f32_dtype && parts[1].view->rank == 1 && parts[1].view->shape[0] == 2);
    tensor_set_add_view(set, packed_part_name(arena, "a.weight", parts[0].suffix), parts[0].view);
    tensor_set_add_view(set, "a.weight_scale", parts[1].view);
    CHECK(tensor_set_seal(set, &error));
    const struct packing_input input = {.arena = arena, .set = set, .method = "modelopt", .dtype = &bf16_dtype};
    struct unpacked_weights found = packings_find(&input);
    float values[8];
    if (CHECK(found.n_weights == 1 && found.weights[0].view != NULL)) {
        CHECK_TEXT(found.weights[0].name, "a.weight");
        CHECK(read_numbers(found.weights[0].view, 0, 8, values, &error) && memcmp(values, weight, sizeof values) == 0);
    }
    arena_free(arena);
}

static void names(void)
{
    struct arena *arena = arena_new();
    CHECK_TEXT(packed_part_name(arena, "a.weight", ".weight"), "a.weight");
    CHECK_TEXT(packed_part_name(arena, "a.weight", ".weight_scale"), "a.weight_scale");
    CHECK_TEXT(packed_part_name(arena, "b", ".weight"), "b");
    CHECK_TEXT(packed_part_name(arena, "b", ".scales"), "b.scales");
    CHECK(packer_find("FP8") == NULL);
    arena_free(arena);
}

static void refusals(void)
{
    static const int64_t integers[4];
    const uint64_t shape[] = {4};
    struct arena *arena = arena_new();
    struct packed_part parts[PACKING_MAX_PARTS];
    struct error error;
    const struct packer *packer = packer_find("FP8_PER_CHANNEL_PER_TOKEN");
    CHECK(packer->pack(packer, arena, view_literal(arena, &i64_dtype, 1, shape, integers), parts, &error) == 0);
    CHECK_TEXT(error.message, "only rows of floats are scaled");
    CHECK(packer->pack(packer, arena, view_numbers(arena, 0, shape, *weight), parts, &error) == 0);
    arena_free(arena);
}

static void configurations(void)
{
    const struct packer *packer = packer_find("FP8_PER_CHANNEL_PER_TOKEN");
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII, .compact = true};
    const struct output_weight weights[] = {{"lm_head.weight", NULL}, {"a.weight", packer}};
    struct error error;
    CHECK(!packer->write_config(packer, weights, 1, &(struct json_writer){.out = &text}, &error));
    CHECK_TEXT(error.message, "none of 1 matrices is packed as FP8_PER_CHANNEL_PER_TOKEN");
    buffer_free(&text);
    json_begin_object(&writer, NULL);
    CHECK(packer->write_config(packer, weights, 2, &writer, &error));
    json_end(&writer);
    buffer_append(&text, "", 1);
    CHECK_TEXT((const char *)text.bytes,
               "{\"quant_algo\":\"FP8_PER_CHANNEL_PER_TOKEN\",\"kv_cache_quant_algo\":null,\"group_size\":128,"
               "\"smoothquant_val\":0.5,\"clamp_val\":[-1200.0,1200.0],\"use_meta_recipe\":false,"
               "\"has_zero_point\":false,\"pre_quant_scale\":false,\"exclude_modules\":null}");
    buffer_free(&text);
}

int main(void)
{
    there_and_back();
    names();
    refusals();
    configurations();
    return check_done();
}

#include "models/engines/bitsandbytes.h"

#include "formats/json_write.h"
#include "formats/safetensors/write.h"
#include "models/config/saved_config.h"
#include "quant/bitsandbytes.h"
#include "quant/bitsandbytes_nested.h"
#include "quant/convert.h"

#include <inttypes.h>
#include <string.h>

const struct bnb_type bnb_types[] = {
    {"nf4", bnb_nf4_levels, "nf4", false},
    {"fp4", bnb_fp4_levels, "fp4", false},
    {"int8", NULL, NULL, false},
    {"nf4-double", bnb_nf4_levels, "nf4", true},
    {"fp4-double", bnb_fp4_levels, "fp4", true},
    {0},
};

/* The artifact. */

struct maker {
    const struct loaded_model *model;
    const struct bnb_type *type;
    struct artifact *artifact;
    struct arena *arena;
    float *nested_levels; /* for double quantization */
};

static void put(struct maker *maker, const char *name, const struct view *view)
{
    struct tensor *tensor = arena_alloc(maker->arena, sizeof *tensor);
    *tensor = tensor_of_view(name, view);
    maker->artifact->tensors[maker->artifact->n_tensors++] = (struct artifact_tensor){tensor, encoding_of(view->dtype)};
}

static void put_text(struct maker *maker, const char *name, const char *text)
{
    const uint64_t length = strlen(text);
    put(maker, name, view_literal(maker->arena, &u8_dtype, 1, &length, text));
}

/* Puts the largest magnitudes of blocks in 8 bits, and the text that ends with their mean. */
static void put_nested(struct maker *maker, const char *name, const char *text_name, const char *text,
                       const struct view *maxima)
{
    static const uint64_t n_levels = BNB_NESTED_LEVELS;
    struct arena *arena = maker->arena;
    struct bnb_nested *nested = bnb_nested_new(arena, maxima, maker->nested_levels);
    text = arena_printf(arena, "%s, \"nested_blocksize\": %d, \"nested_dtype\": \"float32\", \"nested_offset\": ", text,
                        BNB_NESTED_BLOCK);
    put(maker, arena_printf(arena, "%s.absmax", name), view_bnb_nested_codes(arena, nested));
    put(maker, arena_printf(arena, "%s.nested_absmax", name), view_bnb_nested_maxima(arena, nested));
    put(maker, arena_printf(arena, "%s.nested_quant_map", name),
        view_literal(arena, &f32_dtype, 1, &n_levels, maker->nested_levels));
    put(maker, text_name, view_bnb_nested_text(arena, nested, text, json_f64_text));
}

static void put_4bit(struct maker *maker, const char *name, const struct view *matrix)
{
    static const uint64_t n_levels = BNB_LEVELS;
    struct arena *arena = maker->arena;
    const struct bnb_type *type = maker->type;
    const struct view *maxima = view_bnb_maxima(arena, matrix);
    const char *text_name = arena_printf(arena, "%s.quant_state.bitsandbytes__%s", name, type->levels_name);
    const char *text = arena_printf(
        arena, "{\"quant_type\": \"%s\", \"blocksize\": %d, \"dtype\": \"%s\", \"shape\": [%" PRIu64 ", %" PRIu64 "]",
        type->levels_name, BNB_BLOCK, maker->model->dtype_name, matrix->shape[0], matrix->shape[1]);
    put(maker, name, view_bnb_codes(arena, matrix, type->levels));
    put(maker, arena_printf(arena, "%s.quant_map", name), view_literal(arena, &f32_dtype, 1, &n_levels, type->levels));
    if (type->is_double) {
        put_nested(maker, name, text_name, text, maxima);
        return;
    }
    put(maker, arena_printf(arena, "%s.absmax", name), maxima);
    put_text(maker, text_name, arena_printf(arena, "%s}", text));
}

static void put_8bit(struct maker *maker, const char *name, const char *module, const struct view *matrix)
{
    static const uint8_t row_by_row = 0; /* the order of the codes */
    struct arena *arena = maker->arena;
    put(maker, name, view_bnb_rows(arena, matrix));
    put(maker, arena_printf(arena, "%s.SCB", module), view_bnb_row_maxima(arena, matrix));
    put(maker, arena_printf(arena, "%s.weight_format", module), view_literal(arena, &u8_dtype, 0, NULL, &row_by_row));
}

static void put_tensor(struct maker *maker, const struct loaded_tensor *tensor)
{
    struct arena *arena = maker->arena;
    const struct view *view = tensor->view;
    if (tensor->kind == LOADED_OTHER || tensor->kind == LOADED_HEAD) {
        put(maker, tensor->name, view);
        return;
    }
    if (tensor->kind == LOADED_TRANSPOSED)
        view = view_transpose(arena, view);
    if (maker->type->levels != NULL)
        put_4bit(maker, tensor->name, view);
    else
        put_8bit(maker, tensor->name, arena_strndup(arena, tensor->name, loaded_module(tensor->name)), view);
}

void bnb_artifact(const struct loaded_model *model, const struct bnb_type *type, struct arena *arena,
                  struct artifact *ret_artifact)
{
    enum { MOST_PARTS = 6 };
    struct maker maker = {model, type, ret_artifact, arena,
                          arena_array(arena, BNB_NESTED_LEVELS, sizeof *maker.nested_levels)};
    bnb_nested_levels(maker.nested_levels);
    *ret_artifact = (struct artifact){.container = &safetensors_container};
    artifact_reserve(ret_artifact, MOST_PARTS * model->n_tensors);
    ret_artifact->n_tensors = 0;
    for (size_t i = 0; i < model->n_tensors; i++)
        put_tensor(&maker, &model->tensors[i]);
    gguf_set_text(&ret_artifact->metadata, "format", "pt");
}

/* Documents. */

/* Returns {"quantization_config": ...}. */
static struct json_document *describe(const struct bnb_type *type, struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII};
    bool is_4bit = type->levels != NULL;
    json_put_template(
        &writer,
        "{'quantization_config': {'_load_in_4bit': %b, '_load_in_8bit': %b, 'bnb_4bit_compute_dtype': 'float32',"
        " 'bnb_4bit_quant_storage': 'uint8', 'bnb_4bit_quant_type': %s, 'bnb_4bit_use_double_quant': %b,"
        " 'llm_int8_enable_fp32_cpu_offload': false, 'llm_int8_has_fp16_weight': false,"
        " 'llm_int8_skip_modules': null, 'llm_int8_threshold': 6.0, 'load_in_4bit': %b, 'load_in_8bit': %b,"
        " 'quant_method': 'bitsandbytes'}}",
        is_4bit, !is_4bit, is_4bit ? type->levels_name : "fp4", type->is_double, is_4bit, !is_4bit);
    struct json_document *document = json_parse((const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return document;
}

static void put_document(const struct json_document *document, struct buffer *out)
{
    json_put_sorted(&(struct json_writer){.out = out, .letters = JSON_ASCII}, json_root(document), NULL);
    buffer_append_text(out, "\n");
}

bool bnb_write_config(const struct loaded_model *model, const struct bnb_type *type, struct buffer *out,
                      struct error *error)
{
    struct json_document *more = describe(type, error), *config = NULL;
    if (more != NULL)
        config = saved_config(json_root(model->config), model->dtype_name, json_root(more), error);
    if (config != NULL)
        put_document(config, out);
    json_free(more);
    json_free(config);
    return config != NULL;
}

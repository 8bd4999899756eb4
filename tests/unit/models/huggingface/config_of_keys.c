/* config.json of keys: every kind of row, of a family made for it; and that the rows of all families are well formed.
 * What the families' own rows give is opened by transformers in tests/interop. */
#include "models/huggingface/hf_of_gguf.h"

#include "models/families/families.h"
#include "models/families/shared.h"
#include "tests/unit/check.h"
#include "text/json.h"

static const struct key_row keys[] = {
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"feed_forward_length", GGUF_U32, IF_PRESENT, "intermediate_size"},
    {"head_count", GGUF_U32, REQUIRED, "num_attention_heads|n_head"},
    {"expert_count", GGUF_U32, IF_PRESENT, "num_experts"},
    {"inner", GGUF_U32, IF_PRESENT, "inner_size|d_inner"},
    {"rotary", GGUF_U32, IF_PRESENT, "rotary_a", .by = "rotary_b"},
    {"scaled", GGUF_F32, IF_PRESENT, "logit_scale", .times = 4},
    {0},
};

static const struct config_row rows[] = {
    {"num_experts", FROM_NOWHERE},
    {"routed_experts", FROM_KEY, "expert_count"},
    {"absent_null", FROM_KEY, "absent", .text = "null"},
    {"absent_line", FROM_KEY, "absent"},
    {"act", FROM_TEXT, .text = "'silu'"},
    {"filled", FROM_TEXT, .text = "[<head_count>, <absent>]"},
    {"bias", FROM_TENSOR, "blk.0.b.bias"},
    {"no_bias", FROM_NO_TENSOR, "blk.0.b.bias"},
    {"rows", FROM_ROWS, "blk.1.w.weight"},
    {"width", FROM_KEY, "feed_forward_length"},
    {"sum", FROM_SUM, "head_count", "block_count", .plus = 1},
    {"difference", FROM_DIFFERENCE, "block_count", "head_count"},
    {"quotient", FROM_QUOTIENT, "inner", "block_count"},
    {"share", FROM_HEAD_SHARE, "rotary", "inner"},
    {"most", FROM_MOST, "heads"},
    {"most_of_one", FROM_MOST, "head_count"},
    {"first_marked", FROM_MARKED, "heads", "heads"},
    {"first_unmarked", FROM_UNMARKED, "heads", "heads"},
    {"types", FROM_LAYERS, "heads", "'a'|'b'"},
    {"all_types", FROM_LAYERS, "block_count", "1|0"},
    {"listed", FROM_LISTED, "heads"},
    {"period", FROM_PERIOD, "heads"},
    {"offset", FROM_OFFSET, "blk.{}.w.weight"},
    {"rope_scaling.mscale", FROM_TEXT, .text = "1.5"},
    {"no_object.mscale", FROM_TEXT, .text = "1.5"},
    {"id2label", FROM_LABELS, "labels"},
    {"label2id", FROM_NUMBERS, "labels"},
    {0},
};

/* Of two tables, the later one counts. */
static const struct config_row more_rows[] = {
    {"act", FROM_TEXT, .text = "'gelu'"}, {"d_inner", FROM_KEY, "inner"}, {0}};

static const struct config_form forms[] = {
    {"Never", "never", "key:absent"},
    {"NeverEither", "never", "key:head_count=4 !key:flag=1"},
    {"NeverAsWell", "never", "tensor:blk.{}.w|key:head_count=2 tensor:blk.{}.v.weight"},
    {"Tried", "unheard_of",
     "key:absent|key:head_count=2 key:flag=1 tensor:blk.1.w.weight tensor:blk.{}.w.weight !tensor:absent !key:absent=1",
     CONFIG_TABLES(rows, more_rows)},
    {0},
};

static const struct family made_up = {.name = "made-up", .keys = {keys}, .forms = forms};

static void set_list(struct gguf_kvs *kvs, const char *key, const int32_t *numbers, size_t n)
{
    struct buffer elements = {0};
    for (size_t i = 0; i < n; i++)
        buffer_append_le(&elements, (uint32_t)numbers[i], 4);
    gguf_set_array(kvs, key, GGUF_I32, n, &elements);
}

static void set_keys(struct gguf_kvs *kvs)
{
    struct buffer labels = {0};
    gguf_set_u32(kvs, "made-up.block_count", 4);
    gguf_set_u32(kvs, "made-up.feed_forward_length", 4);
    gguf_set_u32(kvs, "made-up.head_count", 2);
    gguf_set_u32(kvs, "made-up.expert_count", 8);
    gguf_set_u32(kvs, "made-up.inner", 32);
    gguf_set_u32(kvs, "made-up.rotary", 8);
    gguf_set_u32(kvs, "made-up.embedding_length", 64);
    gguf_set_u32(kvs, "made-up.attention.head_count", 2);
    gguf_set_f32(kvs, "made-up.scaled", 2);
    gguf_set_bool(kvs, "made-up.flag", true);
    gguf_set_f32(kvs, "made-up.rope.freq_base", 5e5);
    gguf_set_text(kvs, "made-up.rope.scaling.type", "linear");
    gguf_set_f32(kvs, "made-up.rope.scaling.factor", 0.1);
    set_list(kvs, "made-up.heads", (const int32_t[]){0, 3, 0, 5}, 4);
    gguf_append_string(&labels, "so \"so\"", 7);
    gguf_append_string(&labels, "good", 4);
    gguf_set_array(kvs, "made-up.labels", GGUF_STRING, 2, &labels);
}

static const struct {
    const char *line, *text;
} lines[] = {
    {"act", "gelu"},
    {"d_inner", "32"},
    {"inner_size", "absent"},
    {"rotary_a", "absent"},
    {"first_marked", "3"},
    {"first_unmarked", "0"},
    {"architectures", "[Tried]"},
    {"model_type", "unheard_of"},
    {"torch_dtype", "float32"},
    {"num_hidden_layers", "4"},
    {"num_attention_heads", "2"},
    {"num_experts", "absent"},
    {"routed_experts", "8"},
    {"absent_null", "null"},
    {"absent_line", "absent"},
    {"filled", "[2,null]"},
    {"logit_scale", "0.5"},
    {"bias", "false"},
    {"no_bias", "true"},
    {"rows", "3"},
    {"width", "5"},
    {"intermediate_size", "5"},
    {"sum", "7"},
    {"difference", "2"},
    {"quotient", "8"},
    {"share", "0.25"},
    {"most", "5"},
    {"most_of_one", "2"},
    {"types", "[b,a,b,a]"},
    {"all_types", "[1,1,1,1]"},
    {"listed", "[1,3]"},
    {"period", "2"},
    {"offset", "1"},
    {"rope_theta", "500000.0"},
    {"rope_scaling", "{rope_type:linear,factor:0.1,mscale:1.5}"},
    {"no_object", "absent"},
    {"no_object.mscale", "absent"},
    {"id2label", "{0:so \"so\",1:good}"},
    {"label2id", "{so \"so\":0,good:1}"},
    {"bos_token_id", "null"},
    {"tie_word_embeddings", "true"},
};

/* A value on one line, without quotation marks around texts. */
static void append_value(struct buffer *out, const struct json *value)
{
    const char *comma = "";
    if (value == NULL) {
        buffer_append_text(out, "absent");
    } else if (json_is(value, JSON_OBJECT)) {
        buffer_append_text(out, "{");
        for (struct json_member member = {0}; json_next_member(value, &member); comma = ",") {
            buffer_printf(out, "%s%s:", comma, member.key);
            append_value(out, member.value);
        }
        buffer_append_text(out, "}");
    } else if (json_is(value, JSON_ARRAY)) {
        buffer_append_text(out, "[");
        for (const struct json *item = json_first(value); item != NULL; item = json_next(item), comma = ",") {
            buffer_append_text(out, comma);
            append_value(out, item);
        }
        buffer_append_text(out, "]");
    } else if (json_is(value, JSON_STRING)) {
        buffer_append_text(out, json_string(value, NULL));
    } else if (json_is(value, JSON_NUMBER)) {
        buffer_append_text(out, json_number_text(value));
    } else {
        static const struct {
            enum json_type type;
            const char *text;
        } words[] = {{JSON_NULL, "null"}, {JSON_TRUE, "true"}, {JSON_FALSE, "false"}};
        for (size_t i = 0; i < 3; i++)
            if (json_is(value, words[i].type))
                buffer_append_text(out, words[i].text);
    }
}

static struct tensor_set *make_tensors(struct arena *arena)
{
    struct error error;
    const uint64_t shape[] = {3, 1}, wide[] = {1, 5};
    struct tensor_set *set = tensor_set_new(arena);
    const char *const names[] = {"blk.1.w.weight", "blk.3.w.weight"};
    for (size_t i = 0; i < 2; i++)
        tensor_set_add_view(set, names[i], view_literal(arena, &f32_dtype, 2, shape, "\0\0\0\0\0\0\0\0\0\0\0"));
    tensor_set_add_view(set, "blk.0.ffn_down.weight", view_numbers(arena, 2, wide, (float[5]){0}));
    CHECK(tensor_set_seal(set, &error));
    return set;
}

static void test_rows(void)
{
    struct arena *arena = arena_new();
    struct gguf_kvs kvs = {0};
    struct buffer text = {0};
    struct error error;
    set_keys(&kvs);
    CHECK(config_of_keys(&made_up, &kvs, make_tensors(arena), "float32", &text, &error));
    struct json_document *config = json_parse((const char *)text.bytes, text.length, &error);
    CHECK(config != NULL);
    for (size_t i = 0; config != NULL && i < sizeof lines / sizeof *lines; i++) {
        struct buffer value = {0};
        append_value(&value, json_get(json_root(config), lines[i].line));
        buffer_append(&value, "", 1);
        check_text_report((const char *)value.bytes, lines[i].text, __FILE__, __LINE__, lines[i].line);
        buffer_free(&value);
    }
    json_free(config);
    buffer_free(&text);
    gguf_kvs_free(&kvs);
    arena_free(arena);
}

/* No form whose condition holds: the error says so. */
static void test_no_form(void)
{
    struct arena *arena = arena_new();
    struct gguf_kvs kvs = {0};
    struct buffer text = {0};
    struct error error;
    CHECK(config_form_of_keys(&made_up, &kvs, make_tensors(arena)) == NULL);
    CHECK(!config_of_keys(&made_up, &kvs, make_tensors(arena), "float32", &text, &error));
    CHECK_TEXT(error.message, "wfs cannot write config.json for the family made-up");
    struct family lost = made_up;
    lost.no_forms = "the sum's parts";
    CHECK(!config_of_keys(&lost, &kvs, make_tensors(arena), "float32", &text, &error));
    CHECK_TEXT(error.message, "a GGUF of the architecture made-up does not have the sum's parts");
    arena_free(arena);
}

static const char *fail_to_read(const struct config_material *material)
{
    *material->failed = true;
    error_set(material->error, "model.gguf: offset 0: Input/output error");
    return NULL;
}

static const struct config_row unreadable[] = {{"rope", .make = fail_to_read}, {0}};
static const struct config_form unreadable_form[] = {{"Unreadable", "unheard_of", NULL, CONFIG_TABLES(unreadable)},
                                                     {0}};

static void test_unreadable(void)
{
    static const struct family family = {.name = "made-up", .keys = {keys}, .forms = unreadable_form};
    struct arena *arena = arena_new();
    struct gguf_kvs kvs = {0};
    struct buffer text = {0};
    struct error error;
    set_keys(&kvs);
    CHECK(!config_of_keys(&family, &kvs, make_tensors(arena), "float32", &text, &error) && text.length == 0);
    CHECK_TEXT(error.message, "model.gguf: offset 0: Input/output error");
    gguf_kvs_free(&kvs);
    arena_free(arena);
}

/* However many layers there are, each array is read once. */
static void test_first(void)
{
    enum { MANY = 1 << 16 };
    struct arena *arena = arena_new();
    struct gguf_kvs kvs = {0};
    struct buffer marks = {0}, numbers = {0};
    const struct config_material material = {
        .architecture = "a", .kvs = &kvs, .tensors = make_tensors(arena), .n_layers = MANY, .arena = arena};
    buffer_append_zeros(&marks, MANY);
    buffer_append_zeros(&numbers, (size_t)4 * MANY);
    numbers.bytes[0] = 2;
    numbers.bytes[4 * (MANY - 1)] = 4;
    gguf_set_array(&kvs, "a.number", GGUF_I32, MANY, &numbers);
    gguf_set_array(&kvs, "a.none", GGUF_BOOL, MANY, &marks);
    buffer_append_zeros(&marks, MANY - 1);
    buffer_append_le(&marks, 1, 1);
    gguf_set_array(&kvs, "a.last", GGUF_BOOL, MANY, &marks);
    CHECK(config_number_of_first(&material, "none", true, "number") == NULL);
    CHECK_TEXT(config_number_of_first(&material, "none", false, "number"), "2");
    CHECK_TEXT(config_number_of_first(&material, "last", true, "number"), "4");
    CHECK(config_number_of_first(&material, "absent", true, "number") == NULL);
    gguf_kvs_free(&kvs);
    arena_free(arena);
}

static bool is_json(const char *text)
{
    struct error error;
    struct buffer copy = {0};
    for (; *text != '\0'; text++)
        buffer_append(&copy, *text == '\'' ? "\"" : text, 1);
    struct json_document *value = json_parse((const char *)copy.bytes, copy.length, &error);
    bool parsed = value != NULL;
    json_free(value);
    buffer_free(&copy);
    return parsed;
}

/* Texts are JSON once their keys are filled in, and rows have the operands that their kind takes. */
static bool is_well_formed(const struct config_row *row)
{
    bool is_filled = row->from == FROM_TEXT && row->text != NULL && strchr(row->text, '<') != NULL;
    if (row->text != NULL && !is_filled && !is_json(row->text))
        return false;
    if (row->make != NULL)
        return row->key == NULL;
    switch (row->from) {
    case FROM_NOWHERE:
        return row->key == NULL && row->text == NULL;
    case FROM_TEXT:
        return row->text != NULL && row->key == NULL;
    case FROM_LAYERS:
        return row->key != NULL && row->other != NULL && strchr(row->other, '|') == strrchr(row->other, '|') &&
               strchr(row->other, '|') != NULL;
    case FROM_MARKED:
    case FROM_UNMARKED:
    case FROM_SUM:
    case FROM_DIFFERENCE:
    case FROM_QUOTIENT:
        return row->key != NULL && row->other != NULL;
    default:
        return row->key != NULL;
    }
}

static void test_families(void)
{
    for (const struct family *const *family = families; *family != NULL; family++)
        for (const struct config_form *form = (*family)->forms; form != NULL && form->architecture != NULL; form++) {
            bool is_well = form->model_type != NULL;
            for (const struct config_row *const *table = form->rows; *table != NULL; table++)
                for (const struct config_row *row = *table; row->name != NULL; row++)
                    is_well = is_well && is_well_formed(row);
            CHECK_NAMED(is_well, form->architecture);
        }
}

int main(void)
{
    test_rows();
    test_no_form();
    test_unreadable();
    test_first();
    test_families();
    return check_done();
}

/* Tensors of a GGUF in the converter's names and order. Expected: the filters of ModelBase and TextModel, the order of
 * index_tensors(), the first 16-bit matrix for --outtype auto, and mmproj's filter by the beginnings of names. */
#include "models/family/tensors.h"
#include "models/formats.h"

#include "base/attempt.h"
#include "tests/unit/failing_memory.h"
#include "tests/unit/formats/torch/archive.h"
#include "tests/unit/write_safetensors.h"

/* A tensor that is called "gone" is left out, and one called "old" has another name. */
static const char *rename_old(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                              const char *name)
{
    (void)arena, (void)dimensions, (void)direction;
    if (strcmp(name, "gone") == 0)
        return NULL;
    return strcmp(name, "old") == 0 ? "new" : name;
}

static const struct relation_row rows[] = {
    {"a", "out_a"},         {"b", "out_b"},
    {"l.{}.q", "blk.{}.q"}, {"l.{}.e.{expert}.up", "blk.{}.up_exps"},
    {"v.a", "v.out_a"},     {0},
};

static const char *const dropped_prefixes[] = {"model.", "transformer.", NULL};
static const char *const dropped_parts[] = {"thinker.", NULL};
static const char *const tower_parts[] = {"v.", NULL};
static const char *const tower_borrowed[] = {"a", NULL};
static const struct tower tower = {.parts = tower_parts, .borrowed = tower_borrowed};

static const struct family plain_family = {.name = "test", .tensors = {rows}};
static const struct family dropping_family = {
    .name = "test", .dropped_prefixes = dropped_prefixes, .dropped_parts = dropped_parts, .rename = rename_old};
static const struct family decoder_family = {.name = "test", .tensors = {rows, decoder_tensors}};
static const struct family tower_family = {.name = "test", .tensors = {rows}, .tower = &tower};

static const struct family_name with_head = {"X", NULL}, without_head = {"X", "model."}, as_it_is = {"X", ""};

static void test_names(void)
{
    static const struct {
        const struct family *family;
        const struct family_name *hf;
        const char *name, *expected; /* NULL: left out */
    } names[] = {
        {&plain_family, &with_head, "model.norm.weight", "model.norm.weight"},
        {&plain_family, &without_head, "norm.weight", "model.norm.weight"},
        {&plain_family, &with_head, "language_model.model.norm", "model.norm"},
        /* saved without the head that the class has */
        {&decoder_family, &with_head, "norm.weight", "model.norm.weight"},
        {&decoder_family, &with_head, "embed_tokens.weight", "model.embed_tokens.weight"},
        {&decoder_family, &with_head, "language_model.layers.0.x", "model.layers.0.x"},
        {&decoder_family, &with_head, "model.layers.0.x", "model.layers.0.x"},
        {&decoder_family, &with_head, "lm_head.weight", "lm_head.weight"},
        {&decoder_family, &without_head, "norm.weight", "model.norm.weight"},
        {&decoder_family, &as_it_is, "norm.weight", "norm.weight"},
        {&plain_family, &with_head, "norm.weight", "norm.weight"},
        {&plain_family, &with_head, "model.language_model.x.language_model.y", "model.x.y"},
        {&plain_family, &with_head, "mlp1.0.weight", NULL},
        {&plain_family, &with_head, "model.layers.0.mlp.up", "model.layers.0.mlp.up"},
        {&plain_family, &with_head, "vision_tower.x", NULL},
        {&plain_family, &with_head, "model.visual.x", NULL},
        {&plain_family, &with_head, "multi_modal_projector.x", NULL},
        {&plain_family, &with_head, "merger.x", NULL},
        {&plain_family, &with_head, "x.merger.x", "x.merger.x"},
        {&plain_family, &with_head, "l.0.attention.bias", NULL},
        {&plain_family, &with_head, "l.0.attention.masked_bias", NULL},
        {&plain_family, &with_head, "l.0.rotary_emb.inv_freq", NULL},
        {&plain_family, &with_head, "l.0.self_attention.bias", "l.0.self_attention.bias"},
        {&plain_family, &with_head, "l.0.attention.bias.x", "l.0.attention.bias.x"},
        {&plain_family, &with_head, "", ""},
        /* a family's own, and what is there after that */
        {&dropping_family, &with_head, "model.h.0.x", "h.0.x"},
        {&dropping_family, &with_head, "h.model.x", "h.model.x"},
        {&dropping_family, &with_head, "thinker.x.thinker.y", "x.y"},
        {&dropping_family, &with_head, "model.mlp.x", NULL},
        {&dropping_family, &with_head, "model.old", "new"},
        {&dropping_family, &without_head, "old", "model.new"},
        {&dropping_family, &without_head, "gone", NULL},
        /* of a projector: its parts, and what it borrows, alone */
        {&tower_family, &with_head, "v.vision_x", "v.vision_x"},
        {&tower_family, &with_head, "a", "a"},
        {&tower_family, &with_head, "a.x", NULL},
        {&tower_family, &with_head, "x.v.y", NULL},
    };
    struct arena *arena = arena_new();
    const struct dimensions dimensions = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *name = family_tensor_name(names[i].family, names[i].hf, &dimensions, names[i].name, arena);
        if (names[i].expected != NULL)
            CHECK_TEXT(name, names[i].expected);
        else
            CHECK_NAMED(name == NULL, names[i].name);
    }
    arena_free(arena);
}

/* A model of the checkpoint at `path`, with a tensor "extra" that is there before: its names and --outtype auto, or the
 * error. */
static void check_added(const char *path, const struct family *family, const char *expected)
{
    static const struct open_options defaults;
    static const uint64_t one = 1;
    struct error error = {""};
    struct buffer text = {0};
    struct arena *arena = arena_new();
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &defaults, &error);
    files_must(checkpoint != NULL, error.message);
    struct gguf_model model = {.arena = arena, .checkpoint = checkpoint, .tensors = tensor_set_new(arena)};
    struct model_builder builder = {
        .model = &model, .family = family, .hf = &with_head, .dimensions = {.n_layers = 11}};
    dimensions_set(&builder.dimensions, "expert", 2);
    tensor_set_add_view(model.tensors, "extra", view_literal(arena, &f32_dtype, 1, &one, "\0\0\0"));
    if (tensors_add(&builder, &error)) {
        for (size_t i = 0; i < model.tensors->n_tensors; i++)
            buffer_printf(&text, "%s ", model.tensors->tensors[i].name);
        buffer_append_text(&text, model.auto_type->name);
    } else {
        buffer_append_text(&text, error.message);
    }
    buffer_append(&text, "", 1);
    CHECK_TEXT((const char *)text.bytes, expected);
    buffer_free(&text);
    checkpoint_close(checkpoint);
    arena_free(arena);
}

#define VECTOR(name, type)    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":[0],\"data_offsets\":[0,0]}"
#define MATRIX(name, type)    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":[0,2],\"data_offsets\":[0,0]}"
#define STORED(path, tensors) files_write_safetensors(path, "{" tensors "}", sizeof "{" tensors "}" - 1, 0)

static void test_order(void)
{
    STORED("sorted/model.safetensors", MATRIX("l.2.q.weight", "F32") "," MATRIX("b.weight", "F32") "," MATRIX(
                                           "l.10.q.weight", "F32") "," MATRIX("a.weight", "F32"));
    check_added("sorted", &plain_family, "extra out_a.weight out_b.weight blk.10.q.weight blk.2.q.weight F16");
    STORED("shards/model-00001-of-00002.safetensors", MATRIX("b.weight", "F32"));
    STORED("shards/model-00002-of-00002.safetensors", MATRIX("a.weight", "F32"));
    check_added("shards", &plain_family, "extra out_b.weight out_a.weight F16");
    STORED("experts/model.safetensors",
           MATRIX("l.0.e.0.up.weight", "F32") "," MATRIX("l.0.e.1.up.weight", "F32") "," MATRIX(
               "a.weight", "F32") "," MATRIX("l.0.q.weight", "F32"));
    check_added("experts", &plain_family, "extra out_a.weight blk.0.up_exps.weight blk.0.q.weight F16");
}

/* The order of a pickled dictionary is kept. */
static void test_pickled(void)
{
#define ITEM(name)                                                                                                     \
    "V" name "\n" PICKLE_TENSOR(PICKLE_STORAGE("FloatStorage", "0", "2"), "0", "I1\nI2\n", "I2\nI1\n") "s"
    static const char pickle[] =
        "(d" ITEM("l.0.e.1.up.weight") ITEM("b.weight") ITEM("l.0.e.0.up.weight") ITEM("a.weight") ".";
    static const unsigned char storage[8];
    const struct archive_member members[] = {
        {"a/data.pkl", pickle, sizeof pickle - 1}, {"a/data/0", storage, sizeof storage}, {"a/version", "3", 1}};
    archive_write("pickled/pytorch_model.bin", members, 3);
    check_added("pickled", &plain_family, "extra out_b.weight blk.0.up_exps.weight out_a.weight F16");
}

static void test_auto(void)
{
    STORED("auto1/model.safetensors", VECTOR("a.bias", "F16") "," MATRIX("a.weight", "F32") "," MATRIX(
                                          "b.weight", "BF16") "," MATRIX("l.0.q.weight", "F16"));
    check_added("auto1", &plain_family, "extra out_a.bias out_a.weight out_b.weight blk.0.q.weight BF16");
    STORED("auto2/model.safetensors", MATRIX("audio_.x", "F16") "," MATRIX("b.weight", "BF16"));
    check_added("auto2", &plain_family, "extra out_b.weight BF16");
    STORED("auto3/model.safetensors", MATRIX("a", "F32") "," MATRIX("b", "F16") "," MATRIX("v.a", "BF16"));
    check_added("auto3", &tower_family, "extra out_a v.out_a BF16");
}

static void test_errors(void)
{
    STORED("unknown/model.safetensors", MATRIX("c.weight", "F32") "," MATRIX("v.c.weight", "F32"));
    check_added("unknown", &plain_family, "model.gguf: tensor 'c.weight' is unknown to the family test");
    check_added("unknown", &tower_family, "mmproj.gguf: tensor 'v.c.weight' is unknown to the family test");
    STORED("shown/model.safetensors", MATRIX("language_model.c", "F32"));
    check_added("shown", &plain_family, "model.gguf: tensor 'language_model.c' is unknown to the family test");
    STORED("complex/model.safetensors", MATRIX("a", "C64"));
    check_added("complex", &plain_family, "model.gguf: tensor 'a' has the type C64, which the converter cannot read");
    STORED("few/model.safetensors", MATRIX("a", "F32") "," MATRIX("l.0.e.1.up", "F32"));
    check_added("few", &plain_family, "model.gguf: layer 0 has only 1 of the 2 tensors that test puts together");
}

static void test_put_first(void)
{
    static const char *const added[] = {"x", "blk.1.b", "blk.10.a", "blk.1.a", "y", "blk.0.b"};
    static const char *const expected[] = {"blk.0.b", "blk.1.a", "blk.1.b", "blk.10.a", "x", "y"};
    static const char *const first[] = {"blk.{}.a", "blk.{}.b", NULL};
    static const uint64_t one = 1;
    struct arena *arena = arena_new();
    struct gguf_model model = {.arena = arena, .tensors = tensor_set_new(arena)};
    struct model_builder builder = {.model = &model, .family = &plain_family, .hf = &with_head};
    for (size_t i = 0; i < 6; i++)
        tensor_set_add_view(model.tensors, added[i], view_literal(arena, &f32_dtype, 1, &one, "\0\0\0"));
    builder_put_first(&builder, first);
    for (size_t i = 0; i < 6; i++)
        CHECK_TEXT(model.tensors->tensors[i].name, expected[i]);
    arena_free(arena);
}

static const struct relation *related;

static void relate(void *family)
{
    struct error error;
    related = family_relation(family, &error);
}

/* A relation that lacks memory ends the attempt, not the process, and is made by the next who asks. */
static void test_lacking_memory(void)
{
    static struct family family = {.name = "lacking", .tensors = {rows}};
    bool failed = true;
    for (long n = 0; failed && n < 100; n++) {
        related = NULL;
        allow_allocations(n);
        size_t lacking = attempt_lacking(relate, &family);
        failed = has_failed_allocation();
        allow_allocations(-1);
        CHECK((related == NULL) == failed && (lacking == 0 || failed));
    }
    CHECK(!failed);
}

int main(void)
{
    files_begin();
    test_names();
    test_order();
    test_pickled();
    test_auto();
    test_errors();
    test_put_first();
    test_lacking_memory();
    files_remove();
    return check_done();
}

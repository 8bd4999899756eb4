/* What is shown of a checkpoint: what of packed weights, where in the order, and whose bytes lie where. */
#include "models/shown_tensors.h"
#include "models/formats.h"

#include "models/convert/model.h"
#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

#include <inttypes.h>

static const struct open_options defaults;

#define TENSOR(name, dtype, shape, from, to)                                                                           \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #from "," #to "]}"

/* A checkpoint of one file without a configuration. */
static const struct checkpoint *open_header(const char *tensors, size_t n_data)
{
    char header[4096];
    struct error error;
    int length = snprintf(header, sizeof header, "{%s}", tensors);
    files_write_safetensors("x.safetensors", header, (size_t)length, n_data);
    const struct checkpoint *checkpoint = checkpoint_open("x.safetensors", formats, &defaults, &error);
    files_must(checkpoint != NULL, tensors);
    return checkpoint;
}

static const struct checkpoint *open_model(const char *name)
{
    char path[4096];
    struct error error;
    snprintf(path, sizeof path, "%s/gguf/models/%s", getenv("WFS_TEST_DATA"), name);
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &defaults, &error);
    files_must(checkpoint != NULL, path);
    return checkpoint;
}

/* "NAME DTYPE [SHAPE]" of each tensor, and what became of it. */
static const char *describe(const struct shown_tensors *shown, char *text)
{
    char *out = text;
    *out = '\0';
    for (size_t i = 0; i < shown_tensors_count(shown); i++) {
        struct tensor room;
        const struct tensor *tensor = shown_tensors_at(shown, i, &room), *stored = shown_tensors_stored(shown, i);
        out += sprintf(out, "%s%s %s [", i > 0 ? ", " : "", tensor->name, tensor->dtype->name);
        for (unsigned axis = 0; axis < tensor->rank; axis++)
            out += sprintf(out, "%s%" PRIu64, axis > 0 ? " " : "", tensor->shape[axis]);
        out += sprintf(out, "]");
        if (shown_tensors_unpacked(shown, i) != NULL)
            out += sprintf(out, " from %s", shown_tensors_unpacked(shown, i)->packing->name);
        if (shown_tensors_unpacked(shown, i) != NULL && stored != NULL)
            out += sprintf(out, " over %s", stored->dtype->name);
        if (tensor->refusal != NULL)
            out += sprintf(out, tensor->view == NULL ? " refused" : " refused with values");
    }
    return text;
}

#define A           TENSOR("a", "U8", "4", 0, 4)
#define Z           TENSOR("z", "U8", "4", 4, 8)
#define FP8         TENSOR("w", "F8_E4M3", "2,4", 8, 16) "," TENSOR("w_scale_inv", "F32", "1,1", 16, 20)
#define MISFIT      TENSOR("w", "F8_E4M3", "2,4", 8, 16) "," TENSOR("w_scale_inv", "U8", "2,2", 16, 20)
#define MXFP4       TENSOR("n_blocks", "U8", "2,1,16", 8, 40) "," TENSOR("n_scales", "U8", "2,1", 40, 42)
#define MXFP4_AFTER TENSOR("n_blocks", "U8", "2,1,16", 20, 52) "," TENSOR("n_scales", "U8", "2,1", 52, 54)
#define BLOCKS      TENSOR("w_blocks", "U8", "2,1,16", 20, 52) "," TENSOR("w_scales", "U8", "2,1", 52, 54)
#define BROKEN      TENSOR("n.qweight", "I32", "1", 8, 12)
#define TWIN        TENSOR("n.weight_packed", "I32", "1", 12, 16) "," TENSOR("n.weight_scale", "F16", "1", 16, 18)

static void test_packed(void)
{
    static const struct {
        const char *tensors;
        size_t n_data;
        const char *expected;
        const char *note;
        uint64_t n_parameters;
    } rows[] = {
        {A "," Z, 8, "a U8 [4], z U8 [4]", NULL, 8},
        /* called as a part: in its place */
        {A "," FP8 "," Z, 20, "a U8 [4], w F32 [2 4] from scaled over F8_E4M3, w_scale_inv F32 [1 1], z U8 [4]", NULL,
         16},
        {A "," MISFIT "," Z, 20, "a U8 [4], w F32 [0] from scaled over F8_E4M3 refused, w_scale_inv U8 [2 2], z U8 [4]",
         NULL, 8},
        /* of a new name: after all others */
        {A "," MXFP4 "," Z, 42, "a U8 [4], n_blocks U8 [2 1 16], n_scales U8 [2 1], z U8 [4], n F32 [32 2] from mxfp4",
         NULL, 72},
        {A "," BROKEN "," Z, 12, "a U8 [4], n.qweight I32 [1], z U8 [4], n.weight F32 [0] from gptq refused", NULL, 8},
        /* there besides: as it is */
        {A "," TENSOR("n", "U8", "4", 4, 8) "," MXFP4, 42,
         "a U8 [4], n U8 [4], n_blocks U8 [2 1 16], n_scales U8 [2 1]",
         "tensor 'n_blocks' (mxfp4) unpacks to 'n', which also exists: tensors/ shows the existing one", 72},
        {A "," FP8 "," BLOCKS "," Z, 54,
         "a U8 [4], w F32 [2 4] from scaled over F8_E4M3, w_blocks U8 [2 1 16], w_scale_inv F32 [1 1], "
         "w_scales U8 [2 1], z U8 [4]",
         "tensor 'w_blocks' (mxfp4) unpacks to 'w', which also exists: tensors/ shows the existing one", 16},
        /* two of one name */
        {A "," BROKEN "," TWIN "," Z, 18,
         "a U8 [4], n.qweight I32 [1], n.weight_packed I32 [1], n.weight_scale F16 [1], z U8 [4], "
         "n.weight F32 [0] from gptq refused",
         NULL, 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        const struct checkpoint *checkpoint = open_header(rows[i].tensors, rows[i].n_data);
        struct shown_tensors shown = *shown_tensors_of(checkpoint);
        CHECK_TEXT(describe(&shown, text), rows[i].expected);
        CHECK(checkpoint_notes(checkpoint) == (rows[i].note != NULL));
        CHECK_NAMED(shown_tensors_parameters(checkpoint) == rows[i].n_parameters, "parameters");
        if (checkpoint_notes(checkpoint) > 0)
            CHECK_TEXT(checkpoint_note_at(checkpoint, 0).text, rows[i].note);
        shown_tensors_close(&shown);
        checkpoint_close(checkpoint);
    }
}

/* No stored tensor is copied, whether it is shown as it is or packed weights are. */
static void test_identity(void)
{
    const struct checkpoint *checkpoint = open_header(A "," Z, 8);
    struct shown_tensors shown = *shown_tensors_of(checkpoint);
    CHECK(shown.set == checkpoint->tensors && shown.unpacked == NULL);
    checkpoint_close(checkpoint);
    checkpoint = open_header(A "," Z "," FP8 "," MXFP4_AFTER, 54);
    shown = *shown_tensors_of(checkpoint);
    const struct tensor *stored = tensor_set_find_text(checkpoint->tensors, "w");
    size_t index = 0;
    struct tensor room;
    CHECK(shown.set == checkpoint->tensors && shown_tensors_find(&shown, "w", 1, &index));
    CHECK(shown_tensors_stored(&shown, index) == stored && shown_tensors_unpacked(&shown, index) != NULL);
    const struct tensor *weight = shown_tensors_at(&shown, index, &room);
    CHECK(weight == &room && weight->view != NULL && weight->source == NULL);
    CHECK(shown_tensors_find(&shown, "n", 1, &index) && index == shown_tensors_count(&shown) - 1);
    CHECK(shown_tensors_stored(&shown, index) == NULL && shown_tensors_unpacked(&shown, index) != NULL);
    CHECK_TEXT(shown_tensors_at(&shown, index, &room)->name, "n");
    CHECK(!shown_tensors_find(&shown, "m", 1, &index));
    checkpoint_close(checkpoint);
}

/* Reports whether a tensor lies where another one of the source does. */
static bool lies_at(const struct shown_tensors *shown, const char *name, const struct checkpoint *checkpoint,
                    const char *stored_name)
{
    const struct tensor *tensor = tensor_set_find_text(shown->set, name);
    const struct tensor *stored = tensor_set_find_text(checkpoint->tensors, stored_name);
    return tensor != NULL && tensor->view == NULL && tensor->source == stored->source &&
           tensor->offset == stored->offset && tensor->length == stored->length;
}

/* Rows that Llama's queries have in another order are computed, all others told by their place. */
static void test_renamed(void)
{
    struct arena *arena = arena_new();
    struct error error = {""};
    struct shown_tensors shown;
    const struct checkpoint *checkpoint = open_model("llama-tiny");
    if (CHECK(shown_tensors_renamed(checkpoint, NAMES_GGUF, NULL, arena, &shown, &error))) {
        CHECK(shown.gguf != NULL && shown.unpacked == NULL);
        CHECK(lies_at(&shown, "token_embd.weight", checkpoint, "model.embed_tokens.weight"));
        CHECK(lies_at(&shown, "blk.1.attn_v.weight", checkpoint, "model.layers.1.self_attn.v_proj.weight"));
        const struct tensor *query = tensor_set_find_text(shown.set, "blk.1.attn_q.weight");
        CHECK(query != NULL && query->view != NULL && query->source == NULL);
        CHECK(tensor_set_find_text(shown.set, "model.norm.weight") == NULL);
        shown_tensors_close(&shown);
    }
    if (CHECK(shown_tensors_renamed(checkpoint, NAMES_HF, NULL, arena, &shown, &error))) {
        CHECK(shown.gguf == NULL && shown.set != checkpoint->tensors);
        CHECK(shown.set->n_tensors == checkpoint->tensors->n_tensors);
        CHECK(lies_at(&shown, "model.norm.weight", checkpoint, "model.norm.weight"));
        shown_tensors_close(&shown);
    }
    if (CHECK(shown_tensors_renamed(checkpoint, NAMES_OF_SOURCE, NULL, arena, &shown, &error)))
        CHECK(shown.set == checkpoint->tensors && shown.gguf == NULL);
    checkpoint_close(checkpoint);
    arena_free(arena);
}

static void test_plain(void)
{
    char text[1024];
    struct error error = {""};
    struct shown_tensors shown;
    struct arena *arena = arena_new();
    const struct checkpoint *checkpoint = open_header(A "," Z "," FP8, 20);
    if (CHECK(shown_tensors_renamed(checkpoint, NAMES_HF, NULL, arena, &shown, &error))) {
        CHECK(strstr(describe(&shown, text), "w_scale_inv") == NULL && strstr(text, "from") == NULL);
        CHECK(tensor_set_find_text(shown.set, "w") != NULL);
        shown_tensors_close(&shown);
    }
    checkpoint_close(checkpoint);
    checkpoint = open_header(TENSOR("w", "F8_E4M3", "2,4", 0, 8) "," TENSOR("w_scale", "U8", "2,2", 8, 12), 12);
    CHECK(!shown_tensors_renamed(checkpoint, NAMES_HF, NULL, arena, &shown, &error));
    CHECK(strncmp(error.message, "tensors/ cannot use the names of model.safetensors: ", 52) == 0);
    checkpoint_close(checkpoint);
    checkpoint = open_header(TENSOR("a", "U8", "1,1,1,1,4", 0, 4), 4);
    CHECK(!shown_tensors_renamed(checkpoint, NAMES_GGUF, NULL, arena, &shown, &error));
    CHECK(strncmp(error.message, "tensors/ cannot use the names of model.gguf: ", 45) == 0);
    checkpoint_close(checkpoint);
    arena_free(arena);
}

int main(void)
{
    files_begin();
    test_packed();
    test_identity();
    test_renamed();
    test_plain();
    files_remove();
    return check_done();
}

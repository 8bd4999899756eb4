/* What a plain container holds: what gguf_init_from_file() takes, in llama.cpp; tests/interop/test_llama.py
 * asks it. */
#include "models/convert/model.h"
#include "models/formats.h"

#include "tests/unit/check.h"
#include "tests/unit/notes.h"
#include "tests/unit/write_safetensors.h"

#define EMPTY(name, shape) "\"" name "\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[0,0]}"
#define NAME_60            "a23456789b23456789c23456789d23456789e23456789f23456789123456"
#define BIG                "4611686018427387904" /* 2^62 */

static const struct {
    const char *tensors;
    const char *contained; /* names with their ranks */
    const char *notes;     /* parts of notes, or the error */
} rows[] = {
    {EMPTY(NAME_60 "123", "0"), NAME_60 "123/1", NULL},
    {EMPTY("a", "0") "," EMPTY(NAME_60 "1234", "0"), "a/1",
     "tensor '" NAME_60 "1234' is left out: its name is longer than ggml's limit of 63 bytes"},
    {EMPTY("a", "0") "," EMPTY("b\\u0000c", "0"), "a/1", "tensor 'b' is left out: its name contains a NUL"},
    {EMPTY("", "0,2,3"), "/3", NULL},
    {EMPTY("a", "0,1,1,1") "," EMPTY("b", "0,1,1,1,1") "," EMPTY("c", "0,1,2,3,4,5"), "a/4",
     "2 tensors are left out, 'b' first: it has more than ggml's limit of 4 dimensions"},
    {EMPTY("a", "0") "," EMPTY("b", "0," BIG) "," EMPTY("c", "0,9223372036854775808"), "a/1 b/2",
     "tensor 'c' is left out: it has more elements than ggml supports"},
    {"\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}", "a/0", NULL},
    {"\"a\":{\"dtype\":\"C64\",\"shape\":[0,1,1,1],\"data_offsets\":[0,0]}," EMPTY("b", "0"), "b/1",
     "tensor 'a' is left out: it has more than ggml's limit of 4"},
    {"\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[0],\"data_offsets\":[0,0]}," EMPTY("b", "0"), "b/1",
     "tensor 'a' is left out: GGUF has no type for F6_E2M3"},
    {EMPTY("b", "0,1,1,1,1"), NULL,
     "no tensor can be stored in a GGUF: 'b': it has more than ggml's limit of 4 dimensions"},
};

static void describe(const struct gguf_model *model, char *out, size_t capacity)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        n += (size_t)snprintf(out + n, capacity - n, "%s%s/%u", i > 0 ? " " : "", model->tensors->tensors[i].name,
                              model->tensors->tensors[i].view->rank);
}

static void check_row(size_t i)
{
    static const struct open_options options = {0};
    char header[4096], contained[4096];
    struct error error = {""};
    int length = snprintf(header, sizeof header, "{%s}", rows[i].tensors);
    files_write_safetensors("x.safetensors", header, (size_t)length, strstr(header, "[0,4]") != NULL ? 4 : 0);
    const struct checkpoint *checkpoint = checkpoint_open("x.safetensors", formats, &options, &error);
    if (!CHECK_NAMED(checkpoint != NULL, rows[i].tensors))
        return;
    struct gguf_model *model = gguf_model_new(checkpoint, NULL, &error);
    if (rows[i].contained == NULL) {
        CHECK(model == NULL);
        CHECK_TEXT(error.message, rows[i].notes);
    } else if (CHECK_NAMED(model != NULL, rows[i].tensors)) {
        describe(model, contained, sizeof contained);
        CHECK_TEXT(contained, rows[i].contained);
        CHECK(rows[i].notes == NULL ? !has_note(checkpoint, "left out") : has_note(checkpoint, rows[i].notes));
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(i);
    files_remove();
    return check_done();
}

/* Parts of tensors that several processes saved, joined: element i of each file's data is the byte i, and the expected
 * wholes are written out. */
#include "models/formats.h"

#include "tests/unit/check.h"
#include "tests/unit/notes.h"
#include "tests/unit/write_safetensors.h"

#include <stdlib.h>

enum { MAX_FILES = 3 };

/* Writes the file of a rank, whose header has these tensors, and the places of their parts. */
static void write_file(unsigned rank, const char *tensors, const char *places, size_t n_data)
{
    char path[64];
    struct buffer header = {0};
    buffer_printf(&header, "{\"__metadata__\":{\"DCP_SHARDING_INFO\":\"%s\"}%s%s}", places, *tensors ? "," : "",
                  tensors);
    snprintf(path, sizeof path, "m/shard-%05u-model-00001-of-00001.safetensors", rank);
    files_write_safetensors(path, (const char *)header.bytes, header.length, n_data);
    buffer_free(&header);
}

/* "NAME[SHAPE]: values; ..." of all tensors, or the error. */
static const char *outcome(const struct open_options *options)
{
    static char text[4096];
    struct error error;
    const struct checkpoint *checkpoint = checkpoint_open("m", formats, options, &error);
    size_t used = (size_t)sprintf(text, "%s", checkpoint == NULL ? error.message : "");
    for (size_t i = 0; checkpoint != NULL && i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        const struct view *view = tensor_view(tensor, checkpoint->arena);
        unsigned char values[64];
        used += (size_t)sprintf(text + used, "%s%s", i > 0 ? "; " : "", tensor->name);
        for (unsigned j = 0; j < tensor->rank; j++)
            used += (size_t)sprintf(text + used, "%c%d", j > 0 ? ',' : '[', (int)tensor->shape[j]);
        used += (size_t)sprintf(text + used, "%s", tensor->rank > 0 ? "]" : "");
        CHECK(view_read(view, 0, view->n_elements, values, &error));
        for (uint64_t j = 0; j < view->n_elements; j++)
            used += (size_t)sprintf(text + used, " %d", values[j]);
    }
    if (checkpoint != NULL && checkpoint->incomplete != NULL)
        used += (size_t)sprintf(text + used, " incomplete: %s", checkpoint->incomplete);
    checkpoint_close(checkpoint);
    return text;
}

static void begin(void)
{
    char path[64];
    for (unsigned rank = 1; rank <= MAX_FILES; rank++) {
        snprintf(path, sizeof path, "m/shard-%05u-model-00001-of-00001.safetensors", rank);
        remove(path);
    }
}

#define U8(name, shape, from, to)                                                                                      \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" shape "],\"data_offsets\":[" from "," to "]}"
#define AT(name, offsets) "\\\"" name "\\\":{\\\"saved_offsets\\\":[" offsets "]}"

static const struct open_options plain;

static void joined(void)
{
    /* rows, columns, a vector that one process has, one whose parts differ in size, and a scalar */
    begin();
    write_file(1, U8("c", "2,1", "4", "6") "," U8("odd", "3", "6", "9") "," U8("r", "2,2", "0", "4"),
               "{" AT("c", "0,0") "," AT("odd", "0") "," AT("r", "0,0") "}", 9);
    write_file(2,
               U8("c", "2,2", "2", "6") "," U8("odd", "2", "6", "8") "," U8("r", "1,2", "0", "2") "," U8(
                   "s", "", "8", "9") "," U8("v", "2", "9", "11"),
               "{" AT("c", "0,1") "," AT("odd", "3") "," AT("r", "2,0") "," AT("s", "") "," AT("v", "0") "}", 11);
    CHECK_TEXT(outcome(&plain), "c[2,3] 4 2 3 5 4 5; odd[5] 6 7 8 6 7; r[3,2] 0 1 2 3 0 1; s 8; v[2] 9 10");
    /* a part that is empty, and a tensor whose parts all are */
    begin();
    write_file(1, U8("a", "2,2", "0", "4") "," U8("b", "2,0", "4", "4"), "{" AT("a", "0,0") "," AT("b", "0,0") "}", 4);
    write_file(2, U8("a", "0,2", "0", "0") "," U8("b", "1,0", "0", "0"), "{" AT("a", "2,0") "," AT("b", "2,0") "}", 0);
    CHECK_TEXT(outcome(&plain), "a[2,2] 0 1 2 3; b[3,0]");
    /* one process: nothing tells whether it is all */
    begin();
    write_file(1, U8("a", "1,2", "0", "2"), "{" AT("a", "0,0") "}", 2);
    CHECK(strstr(outcome(&plain), "a[1,2] 0 1 incomplete: the parts of tensors that one process saved; ") != NULL);
    CHECK_TEXT(outcome(&(struct open_options){.partial = true}), "a[1,2] 0 1");
}

/* What does not make a whole. */
static void refused(void)
{
    static const struct {
        const char *tensors, *places; /* of the second file, whose first has rows 0 and 1 of a */
        const char *reason;
    } rows[] = {
        {U8("a", "1,2", "0", "2"), "{" AT("a", "3,0") "}", "m: tensor 'a': "},
        {U8("a", "1,2", "0", "2"), "{" AT("a", "1,0") "}", "m: tensor 'a': "},
        {U8("a", "1,2", "0", "2"), "{" AT("a", "2,1") "}", "m: tensor 'a': "},
        {U8("a", "2", "0", "2"), "{" AT("a", "2") "}", "m: tensor 'a': its parts differ in dtype or number of "},
        {U8("a", "1,2", "0", "2"), "{" AT("a", "2") "}", "its saved_offsets are not a number for each dimension"},
        {U8("a", "1,2", "0", "2"), "{" AT("a", "2,-1") "}", "its saved_offsets are not a number for each dimension"},
        {U8("a", "1,2", "0", "2"), "{" AT("a", "18446744073709551615,0") "}", "the size of the whole overflows"},
        {U8("a", "1,2", "0", "2"), "{" AT("a", "4294967296,4294967296") "}", "the size of the whole overflows"},
        {U8("a", "1,2", "0", "2"), "{", "DCP_SHARDING_INFO"},
        {U8("a", "1,2", "0", "2"), "[]", "tensor 'a': DCP_SHARDING_INFO does not tell where it begins"},
        {U8("b", "1,2", "0", "2"), "{" AT("a", "2,0") "}", "tensor 'b': DCP_SHARDING_INFO does not tell where it begi"},
        {U8("b", "0,2", "0", "0"), "{" AT("b", "1,0") "}", "tensor 'b': its parts have no elements"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        write_file(1, U8("a", "2,2", "0", "4"), "{" AT("a", "0,0") "}", 4);
        write_file(2, rows[i].tensors, rows[i].places, strstr(rows[i].tensors, "[0,0]") != NULL ? 0 : 2);
        const char *message = outcome(&plain);
        CHECK_NAMED(strstr(message, rows[i].reason) != NULL, message);
    }
    begin();
    write_file(1, U8("a", "2,2", "0", "4"), "{" AT("a", "0,0") "}", 4);
    write_file(3, U8("a", "2,2", "0", "4"), "{" AT("a", "2,0") "}", 4);
    CHECK_TEXT(outcome(&plain), "m: the files of rank 2 are missing (shard-00002-...)");
    begin();
}

/* Each rank has several files, of which those with the numbers in `names` are written. */
static void counted(const char *names, const char *reason)
{
    char path[64];
    unsigned rank, file, files;
    for (const char *at = names; at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        CHECK(sscanf(at, "%u-%u/%u", &rank, &file, &files) == 3);
        snprintf(path, sizeof path, "m/shard-%05u-model-%05u-of-%05u.safetensors", rank, file, files);
        struct buffer header = {0};
        buffer_printf(&header,
                      "{\"__metadata__\":{\"DCP_SHARDING_INFO\":\"{" AT(
                          "t%u", "%u") "}\"},"
                                       "\"t%u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                      file, rank - 1, file);
        files_write_safetensors(path, (const char *)header.bytes, header.length, 1);
        buffer_free(&header);
    }
    const char *message = outcome(&plain);
    CHECK_NAMED(strstr(message, reason) != NULL, message);
    for (const char *at = names; at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        sscanf(at, "%u-%u/%u", &rank, &file, &files);
        snprintf(path, sizeof path, "m/shard-%05u-model-%05u-of-%05u.safetensors", rank, file, files);
        remove(path);
    }
}

int main(void)
{
    files_begin();
    mkdir("m", 0700);
    joined();
    refused();
    counted("1-1/2 1-2/2 2-1/2 2-2/2", "t1[2] 0 0; t2[2] 0 0");
    counted("1-1/2 2-1/2", "incomplete: no process has file 2 of 2 (shard-*-model-00002-of-00002.safetensors)");
    static const char contradiction[] =
        "m: the numbers in the files' names (-model-N-of-M) contradict each other; keep the files of one save";
    counted("1-1/2 1-2/2 2-1/3", contradiction);
    counted("1-3/2 2-1/2", contradiction);
    files_remove();
    return check_done();
}

/* Which keys and tensors GGUF files of a family have, in which order and of which types: whole checkpoints of a few
 * numbers, described in lines. Expected values: what convert_hf_to_gguf.py of llama.cpp 34af94cd9 wrote for checkpoints
 * with these tensors, --outtype bf16. */
#include "base/text.h"
#include "formats/json.h"
#include "models/canonical.h"
#include "models/families/family.h"
#include "models/target.h"
#include "tests/unit/check.h"
#include "tests/unit/models/laid_out.h"
#include "tests/unit/notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tensors, one a line: "NAME ROWSxCOLUMNS", a [0-3] in the name for every number from 0 to 3. All are BF16, unless
 * there is a letter before the shape (stored_dtypes). */
struct order {
    const char *name, *config, *tensors;
    const char *first; /* tensors of a file before that of the others; NULL: there is one file */

    /* Keys without the architecture; those of the tokenizer and most of general. left out. After a ':' f F32, b bool, s
     * string, a array; U32 is nothing. */
    const char *keys;

    /* Tensors without blk.N. and .weight; a '*' where they are BF16, a '!' where there is no suffix, ":Q8_0" where they
     * are of another type than F32. */
    const char *there;
    const char *note;      /* a part of what is noted besides; NULL: nothing in particular */
    const char *tokenizer; /* tokenizer.json; NULL: a byte-level one */
    bool has_pieces;       /* tokenizer.model is beside it */
    const char *target;    /* config.json of the model that it drafts for, which has the tokenizer; NULL: for none */

    /* Patterns, with '|' between them, of the names of tensors that come back otherwise than they were: as another
     * class has them, or without rows that are not used; NULL: none. */
    const char *otherwise;
    const char *lost; /* lines of config.json, each after a blank, that the GGUF has otherwise; NULL: none */
};

#include "tests/unit/models/orders.inc"

/* Safetensors. */

struct file {
    struct buffer header, data;
};

static const struct stored_dtype {
    char letter;
    const char *name;
    unsigned bytes;
} stored_dtypes[] = {{'F', "F32", 4},     {'H', "F16", 2},     {'I', "I64", 8}, {'B', "I8", 1},
                     {'Q', "F8_E4M3", 1}, {'E', "F8_E8M0", 1}, {'U', "U8", 1}};

static void add_tensor(struct file *file, const char *name, const char *shape)
{
    struct stored_dtype dtype = {0, "BF16", 2};
    for (size_t i = 0; i < sizeof stored_dtypes / sizeof *stored_dtypes; i++)
        if (stored_dtypes[i].letter == *shape)
            dtype = stored_dtypes[i];
    bool is_marked = dtype.letter != 0;
    uint64_t bytes = dtype.bytes, begin = file->data.length;
    buffer_printf(&file->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", file->header.length > 8 ? "," : "{", name,
                  dtype.name);
    for (const char *at = shape + is_marked; *at != '\0';) {
        char *end;
        unsigned long size = strtoul(at, &end, 10);
        buffer_printf(&file->header, "%lu%s", size, *end == 'x' ? "," : "");
        bytes *= size;
        at = end + (*end == 'x');
    }
    buffer_append_zeros(&file->data, bytes);
    buffer_printf(&file->header, "],\"data_offsets\":[%zu,%zu]}", (size_t)begin, file->data.length);
}

/* A name with the ranges in it written out, the first one first. */
static void add_tensors(struct file *file, const char *name, const char *shape)
{
    const char *open = strchr(name, '['), *close = open ? strchr(open, ']') : NULL;
    unsigned first, last;
    if (open == NULL) {
        add_tensor(file, name, shape);
        return;
    }
    CHECK_NAMED(sscanf(open, "[%u-%u]", &first, &last) == 2, name);
    for (unsigned i = first; i <= last; i++) {
        char one[256];
        snprintf(one, sizeof one, "%.*s%u%s", (int)(open - name), name, i, close + 1);
        add_tensors(file, one, shape);
    }
}

static void write_file(const char *folder, const char *name, const void *bytes, size_t length)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    CHECK_NAMED(out != NULL && fwrite(bytes, 1, length, out) == length, path);
    fclose(out);
}

static void write_file_of_tensors(const char *folder, const char *file_name, const char *lines)
{
    struct file file = {0};
    buffer_append_zeros(&file.header, 8);
    while (*lines != '\0') {
        char name[200], shape[50];
        CHECK(sscanf(lines, "%199s %49s", name, shape) == 2);
        add_tensors(&file, name, shape);
        lines = strchr(lines, '\n') + 1;
    }
    buffer_append_text(&file.header, "}");
    for (size_t length = file.header.length - 8, i = 0; i < 8; i++)
        file.header.bytes[i] = (unsigned char)(length >> 8 * i);
    buffer_append(&file.header, file.data.bytes, file.data.length);
    write_file(folder, file_name, file.header.bytes, file.header.length);
    buffer_free(&file.header);
    buffer_free(&file.data);
}

static void write_tensors(const char *folder, const struct order *order)
{
    static const char *const names[] = {"model.safetensors", "model-00001-of-00002.safetensors",
                                        "model-00002-of-00002.safetensors"};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    if (order->first != NULL)
        write_file_of_tensors(folder, names[1], order->first);
    write_file_of_tensors(folder, names[order->first != NULL ? 2 : 0], order->tensors);
}

/* What came out. */

static const char *keys_of(const struct gguf_plan *plan, struct arena *arena)
{
    static const char kinds[] = {
        [GGUF_F32] = 'f', [GGUF_BOOL] = 'b', [GGUF_STRING] = 's', [GGUF_ARRAY] = 'a', [GGUF_F64] = 0};
    struct buffer text = {0};
    for (size_t i = 0; i < plan->kvs.n_kvs; i++) {
        const struct gguf_kv *kv = &plan->kvs.kvs[i];
        bool is_general = text_starts_with(kv->key, "general.");
        bool shown = strcmp(kv->key, "general.file_type") == 0 ||
                     strcmp(kv->key, "general.quantization_version") == 0 ||
                     strcmp(kv->key, "tokenizer.ggml.suppress_tokens") == 0;
        if (!shown && (is_general || text_starts_with(kv->key, "tokenizer.")))
            continue;
        buffer_printf(&text, "%s%s", text.length ? " " : "", shown ? kv->key : strchr(kv->key, '.') + 1);
        if (kinds[kv->type] != 0)
            buffer_printf(&text, ":%c", kinds[kv->type]);
    }
    const char *keys = arena_strndup(arena, (const char *)text.bytes, text.length);
    buffer_free(&text);
    return keys;
}

static const char *tensors_of(const struct gguf_plan *plan, struct arena *arena)
{
    struct buffer text = {0};
    long layer = -1;
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const char *name = plan->places[i].tensor->name;
        const struct dtype *dtype = plan->places[i].encoding.dtype;
        long number = text_starts_with(name, "blk.") ? strtol(name + 4, NULL, 10) : -1;
        if (number != layer && i > 0)
            buffer_append_text(&text, " /");
        if (number != layer && number >= 0)
            buffer_printf(&text, "%s%ld:", i > 0 ? " " : "", number);
        layer = number;
        if (number >= 0)
            name = strchr(name + 4, '.') + 1;
        size_t length = strlen(name);
        bool is_weight = length > 7 && strcmp(name + length - 7, ".weight") == 0, has_dot = strchr(name, '.') != NULL;
        buffer_printf(&text, "%s%.*s%s%s", text.length ? " " : "", (int)(length - (is_weight ? 7 : 0)), name,
                      is_weight || has_dot ? "" : "!", dtype == &bf16_dtype ? "*" : "");
        if (dtype != &bf16_dtype && dtype != &f32_dtype)
            buffer_printf(&text, ":%s", dtype->name);
    }
    const char *tensors = arena_strndup(arena, (const char *)text.bytes, text.length);
    buffer_free(&text);
    return tensors;
}

/* The way back: of the GGUF, under the names and with the shapes of the checkpoint. */

static void write_gguf(const char *path, struct gguf_plan *plan)
{
    struct gguf_layout layout;
    struct buffer bytes = laid_out(plan, &layout);
    buffer_append_zeros(&bytes, layout.size - bytes.length);
    FILE *out = fopen(path, "wb");
    CHECK_NAMED(out != NULL && fwrite(bytes.bytes, 1, bytes.length, out) == bytes.length, path);
    fclose(out);
    buffer_free(&bytes);
}

/* Whether the checkpoint has the tensor, with or without what models that see put into the names of their text half. */
static bool is_of_checkpoint(const struct checkpoint *checkpoint, const struct tensor *tensor, struct arena *arena)
{
    static const char *const prefixes[] = {
        "",       "model.language_model.",   "language_model.model.", "language_model.",
        "model.", "language_model.lm_head.", "text_decoder.model.",   "lfm."};
    const char *bare = strncmp(tensor->name, "model.", 6) == 0 ? tensor->name + 6 : tensor->name;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const char *name = i == 0 ? tensor->name : arena_printf(arena, "%s%s", prefixes[i], bare);
        const struct tensor *stored = tensor_set_find_text(checkpoint->tensors, name);
        if (stored != NULL && stored->rank == tensor->rank &&
            memcmp(stored->shape, tensor->shape, tensor->rank * sizeof *tensor->shape) == 0)
            return true;
    }
    return false;
}

static bool is_same(const struct json *a, const struct json *b)
{
    double x, y;
    if (json_double(a, &x) && json_double(b, &y))
        return (float)x == (float)y;
    const char *text = json_string(a, NULL);
    return text != NULL ? json_string_is(b, text) : json_type(a) == json_type(b);
}

/* What the configuration has a number, a text or a truth value for comes back as that. */
static void check_config(const struct order *order, const char *back, size_t length)
{
    static const char *const others[] = {"architectures", "model_type", "hidden_act"};
    struct error error = {""};
    struct json_document *config = json_parse(order->config, strlen(order->config), &error),
                         *again = json_parse(back, length, &error);
    if (!CHECK_NAMED(config != NULL && again != NULL, order->name))
        fprintf(stderr, "  %s\n", error.message);
    for (const struct json *line = json_first(json_root(again)); line != NULL; line = json_next(line)) {
        const struct json *given = json_get(json_root(config), json_key(line, NULL));
        bool is_other = given == NULL || json_type(given) == JSON_NULL ||
                        (order->lost != NULL && strstr(order->lost, json_key(line, NULL)) != NULL);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            is_other |= strcmp(others[i], json_key(line, NULL)) == 0;
        if (!is_other && !CHECK_NAMED(is_same(given, line), json_key(line, NULL)))
            fprintf(stderr, "  %s\n", order->name);
    }
    json_free(again);
    json_free(config);
}

static bool is_other(const struct order *order, const struct tensor *tensor, struct arena *arena)
{
    uint64_t numbers[PATTERN_NUMBERS];
    for (const char *at = order->otherwise; at != NULL && *at != '\0'; at += strspn(at, "|")) {
        size_t length = strcspn(at, "|");
        if (pattern_match(arena_strndup(arena, at, length), tensor->name, tensor->name_length, numbers))
            return true;
        at += length;
    }
    return false;
}

static void check_way_back(const char *folder, const struct order *order, const struct checkpoint *source,
                           struct gguf_plan *plan)
{
    const struct open_options options = {0};
    struct error error = {""};
    struct arena *arena = arena_new();
    const char *path = arena_printf(arena, "%s.gguf", folder);
    write_gguf(path, plan);
    struct checkpoint *checkpoint = checkpoint_open(path, &options, &error);
    struct canonical_model *model = checkpoint != NULL ? canonical_model_new(checkpoint, NULL, &error) : NULL;
    CHECK_NAMED(model != NULL, order->name);
    const struct family *family = model != NULL ? family_of_keys(&checkpoint->metadata) : NULL;
    bool is_back = model != NULL && model->config != NULL;
    for (size_t i = 0; is_back && i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        if (!CHECK_NAMED(is_of_checkpoint(source, tensor, arena) != is_other(order, tensor, arena), tensor->name))
            fprintf(stderr, "  %s\n", order->name);
    }
    if (is_back)
        check_config(order, model->config, model->config_length);
    if (!CHECK_NAMED(family == NULL || is_back == (family->forms != NULL), order->name))
        fprintf(stderr, "  %s\n", checkpoint_note_text(checkpoint, 0));
    canonical_model_free(model);
    checkpoint_close(checkpoint);
    unlink(path);
    arena_free(arena);
}

/* tokenizer.model, of a few pieces, where the checkpoint has one. */
static void write_pieces(const char *folder, const struct order *order)
{
    static const char pieces[] = "\x0a\x09\x0a\x02zz\x15\x00\x00\x80\x3f\x0a\x09\x0a\x02yy\x15\x00\x00\x80\x3f";
    char path[256];
    snprintf(path, sizeof path, "%s/tokenizer.model", folder);
    if (order->has_pieces)
        write_file(folder, "tokenizer.model", pieces, sizeof pieces - 1);
    else
        unlink(path);
}

/* What the order drafts for, in a folder of its own. */
static bool add_target(const char *folder, const struct order *order, const char *used, struct checkpoint *checkpoint,
                       struct error *error)
{
    char path[256], command[300];
    snprintf(path, sizeof path, "%s.target", folder);
    if (order->target == NULL)
        return true;
    CHECK_NAMED(mkdir(path, 0700) == 0, path);
    write_file(path, "config.json", order->target, strlen(order->target));
    write_file(path, "tokenizer.json", used, strlen(used));
    bool opened = target_open(checkpoint, path, error);
    snprintf(command, sizeof command, "rm -r %s", path);
    CHECK(system(command) == 0);
    return opened;
}

static void check_order(const char *folder, const struct order *order)
{
    const struct open_options options = {0};
    struct error error = {""};
    struct gguf_plan plan = {0};
    const char *used = order->tokenizer != NULL ? order->tokenizer : tokenizer;
    write_file(folder, "tokenizer.json", used, strlen(used));
    write_file(folder, "config.json", order->config, strlen(order->config));
    write_tensors(folder, order);
    write_pieces(folder, order);
    struct checkpoint *checkpoint = checkpoint_open(folder, &options, &error);
    bool has_target = checkpoint != NULL && add_target(folder, order, used, checkpoint, &error);
    struct gguf_model *model = has_target ? gguf_model_new(checkpoint, &error) : NULL;
    if (CHECK_NAMED(model != NULL && gguf_plan_converter(model, "bf16", &plan, &error), order->name)) {
        struct arena *arena = arena_new();
        if (!CHECK_TEXT(keys_of(&plan, arena), order->keys) || !CHECK_TEXT(tensors_of(&plan, arena), order->there))
            fprintf(stderr, "  %s\n", order->name);
        CHECK_NAMED(order->note == NULL || has_note(checkpoint, order->note), order->name);
        arena_free(arena);
        check_way_back(folder, order, checkpoint, &plan);
    } else {
        fprintf(stderr, "  %s\n", error.message);
    }
    gguf_plan_free(&plan);
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

int main(void)
{
    static const char lines[] = "[\"<|plamo:unk|>\", 0.0, \"UNKNOWN\"]\n";
    char folder[] = "/tmp/wfs-unit-XXXXXX", command[64];
    CHECK(mkdtemp(folder) != NULL);
    write_file(folder, "generation_config.json", generation, strlen(generation));
    write_file(folder, "tokenizer_config.json", "{}", 2);
    write_file(folder, "tokenizer.jsonl", lines, sizeof lines - 1);
    write_file(folder, "rwkv_vocab_v20230424.txt", "1 'a' 1\n", 8);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        check_order(folder, &orders[i]);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return check_done();
}

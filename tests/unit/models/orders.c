/* Which keys and tensors GGUF files of a family have, in which order and of which types: whole checkpoints of a few
 * numbers, described in lines. Expected values: what convert_hf_to_gguf.py of llama.cpp wrote for checkpoints
 * with these tensors, --outtype bf16: see make_orders.py. */
#include "base/text.h"
#include "models/convert/model.h"
#include "models/derive/derive.h"
#include "models/family/family.h"
#include "models/formats.h"
#include "models/huggingface/hf_model.h"
#include "models/huggingface/hf_of_gguf.h"
#include "tests/unit/check.h"
#include "tests/unit/models/laid_out.h"
#include "tests/unit/notes.h"
#include "tests/unit/write_pieces.h"
#include "tests/unit/write_safetensors.h"
#include "text/json.h"

/* Tensors, one a line: "NAME ROWSxCOLUMNS", a [0-3] in the name for every number from 0 to 3. All are BF16, unless
 * there is a letter before the shape (stored_dtypes). */
struct order {
    const char *name, *config, *tensors;
    unsigned build;    /* of the converter that wrote the keys and tensors; 0: b10470 */
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

static const struct stored_dtype {
    char letter;
    const char *name;
    unsigned bytes;
} stored_dtypes[] = {{'F', "F32", 4},     {'H', "F16", 2},     {'I', "I64", 8}, {'B', "I8", 1},
                     {'Q', "F8_E4M3", 1}, {'E', "F8_E8M0", 1}, {'U', "U8", 1}};

struct tensor_line {
    struct safetensors *file;
    const char *shape;
};

static void add_tensor(void *context, const char *name)
{
    const struct tensor_line *line = context;
    struct stored_dtype dtype = {0, "BF16", 2};
    char shape[64];
    for (size_t i = 0; i < sizeof stored_dtypes / sizeof *stored_dtypes; i++)
        if (stored_dtypes[i].letter == *line->shape)
            dtype = stored_dtypes[i];
    uint64_t count = safetensors_shape(line->shape + (dtype.letter != 0), shape);
    safetensors_add(line->file, name, dtype.name, shape, NULL, dtype.bytes * count);
}

static void write_file_of_tensors(const char *path, const char *lines)
{
    struct safetensors file = {0};
    while (*lines != '\0') {
        char name[200], shape[50];
        CHECK(sscanf(lines, "%199s %49s", name, shape) == 2);
        each_name(name, add_tensor, &(struct tensor_line){&file, shape});
        lines = strchr(lines, '\n') + 1;
    }
    safetensors_write(&file, path);
}

static void write_tensors(const struct order *order)
{
    static const char whole[] = "model/model.safetensors", *const shards[] = {"model/model-00001-of-00002.safetensors",
                                                                              "model/model-00002-of-00002.safetensors"};
    unlink(whole);
    unlink(shards[0]);
    unlink(shards[1]);
    if (order->first != NULL)
        write_file_of_tensors(shards[0], order->first);
    write_file_of_tensors(order->first != NULL ? shards[1] : whole, order->tensors);
}

/* What came out. */

static const char *keys_of(const struct artifact *artifact, struct arena *arena)
{
    static const char kinds[] = {
        [GGUF_F32] = 'f', [GGUF_BOOL] = 'b', [GGUF_STRING] = 's', [GGUF_ARRAY] = 'a', [GGUF_F64] = 0};
    struct buffer text = {0};
    for (size_t i = 0; i < artifact->metadata.n_kvs; i++) {
        const struct gguf_kv *kv = &artifact->metadata.kvs[i];
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

static const char *tensors_of(const struct artifact *artifact, struct arena *arena)
{
    struct buffer text = {0};
    long layer = -1;
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        const char *name = artifact->tensors[i].tensor->name;
        const struct dtype *dtype = artifact->tensors[i].encoding.dtype;
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

static void write_gguf(const char *path, struct artifact *artifact)
{
    struct buffer bytes = laid_out(artifact);
    files_write(path, bytes.bytes, bytes.length);
    buffer_free(&bytes);
}

/* Reports whether the checkpoint has the tensor, with or without what models that see put into the names of their text
 * half. */
static bool is_of_checkpoint(const struct checkpoint *checkpoint, const struct tensor *tensor, struct arena *arena)
{
    static const char *const prefixes[] = {
        "",       "model.language_model.",   "language_model.model.", "language_model.",
        "model.", "language_model.lm_head.", "text_decoder.model.",   "lfm.",
        "lfm2."};
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
    for (struct json_member line = {0}; json_next_member(json_root(again), &line);) {
        const struct json *given = json_get(json_root(config), line.key);
        bool is_other = given == NULL || json_type(given) == JSON_NULL ||
                        (order->lost != NULL && strstr(order->lost, line.key) != NULL);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            is_other |= strcmp(others[i], line.key) == 0;
        if (!is_other && !CHECK_NAMED(is_same(given, line.value), line.key))
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

static void check_way_back(const struct order *order, const struct checkpoint *source, struct artifact *artifact)
{
    const struct open_options options = {0};
    struct error error = {""};
    struct arena *arena = arena_new();
    static const char path[] = "model.gguf";
    write_gguf(path, artifact);
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &options, &error);
    const struct hf_model *model = checkpoint != NULL ? hf_model_of(checkpoint, &error) : NULL;
    CHECK_NAMED(model != NULL, order->name);
    const struct family *family = model != NULL ? family_of_keys(&checkpoint->metadata, checkpoint->tensors) : NULL;
    bool is_back = model != NULL && model->config != NULL;
    for (size_t i = 0; is_back && i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        if (!CHECK_NAMED(is_of_checkpoint(source, tensor, arena) != is_other(order, tensor, arena), tensor->name))
            fprintf(stderr, "  %s\n", order->name);
    }
    if (is_back)
        check_config(order, model->config, model->config_length);
    if (!CHECK_NAMED(family == NULL || is_back == (family->forms != NULL), order->name))
        fprintf(stderr, "  %s\n", checkpoint_note_at(checkpoint, 0).text);
    checkpoint_close(checkpoint);
    unlink(path);
    arena_free(arena);
}

/* tokenizer.model, of a few pieces, where the checkpoint has one. */
static void write_pieces(const struct order *order)
{
    static const char path[] = "model/tokenizer.model";
    struct buffer model = {0};
    unlink(path);
    if (!order->has_pieces)
        return;
    piece_add(&model, "zz", 2, 1, PIECE_NORMAL);
    piece_add(&model, "yy", 2, 1, PIECE_NORMAL);
    pieces_write(&model, path);
}

/* With what the order drafts for, in a folder of its own. */
static const struct checkpoint *add_target(const struct order *order, const char *used,
                                           const struct checkpoint *checkpoint, struct error *error)
{
    if (order->target == NULL)
        return checkpoint;
    files_write_text("target/config.json", order->target);
    files_write_text("target/tokenizer.json", used);
    return derive(checkpoint, &(struct derive_options){.base = "target"}, error);
}

static void check_order(const struct order *order)
{
    const struct references recorded = {order->build != 0 ? order->build : 10470};
    const struct open_options options = {0};
    struct error error = {""};
    struct artifact artifact = {0};
    const char *used = order->tokenizer != NULL ? order->tokenizer : tokenizer;
    files_write_text("model/tokenizer.json", used);
    files_write_text("model/config.json", order->config);
    write_tensors(order);
    write_pieces(order);
    const struct checkpoint *checkpoint = checkpoint_open("model", formats, &options, &error);
    if (checkpoint != NULL)
        checkpoint = add_target(order, used, checkpoint, &error);
    struct gguf_model *model = checkpoint != NULL ? gguf_model_new(checkpoint, &recorded, &error) : NULL;
    if (CHECK_NAMED(model != NULL &&
                        converter_artifact(&(struct gguf_edition){.model = model}, "bf16", &artifact, &error),
                    order->name)) {
        struct arena *arena = arena_new();
        if (!CHECK_TEXT(keys_of(&artifact, arena), order->keys) ||
            !CHECK_TEXT(tensors_of(&artifact, arena), order->there))
            fprintf(stderr, "  %s\n", order->name);
        CHECK_NAMED(order->note == NULL || has_note(checkpoint, order->note), order->name);
        arena_free(arena);
        check_way_back(order, checkpoint, &artifact);
    } else {
        fprintf(stderr, "  %s\n", error.message);
    }
    artifact_free(&artifact);
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

int main(void)
{
    static const char lines[] = "[\"<|plamo:unk|>\", 0.0, \"UNKNOWN\"]\n";
    files_begin();
    files_write_text("model/generation_config.json", generation);
    files_write_text("model/tokenizer_config.json", "{}");
    files_write_text("model/tokenizer.jsonl", lines);
    files_write_text("model/rwkv_vocab_v20230424.txt", "1 'a' 1\n");
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        check_order(&orders[i]);
    files_remove();
    return check_done();
}

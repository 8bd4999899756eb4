#include "models/huggingface/hf_of_gguf.h"

#include "base/text.h"
#include "models/config/config_class.h"
#include "models/families/families.h"
#include "models/families/shared.h"
#include "models/family/layer_marks.h"
#include "models/relation/pattern.h"
#include "text/json.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    const char *name, *value;
};

struct config_builder {
    struct arena *arena;
    const struct family *family;
    const struct config_form *form;
    const struct gguf_kvs *kvs;
    const struct tensor_set *tensors;
    struct json_document *defaults; /* of the class */
    struct line *lines;
    size_t n_lines;
    bool failed;
    struct error failure;
};

/* Reports whether the GGUF has a tensor; {} in the name stands for any layer. */
static bool has_tensor(const struct tensor_set *tensors, const char *name)
{
    uint64_t numbers[PATTERN_NUMBERS];
    bool is_there = tensor_set_find_text(tensors, name) != NULL;
    for (size_t i = 0; strchr(name, '{') != NULL && i < tensors->n_tensors && !is_there; i++)
        is_there = pattern_match(name, tensors->tensors[i].name, tensors->tensors[i].name_length, numbers);
    return is_there;
}

static bool is_array(const struct gguf_kv *kv)
{
    return kv != NULL && kv->type == GGUF_ARRAY;
}

/* Reports whether a condition of `length` bytes holds. */
static bool holds(const char *condition, size_t length, const struct family *family, const struct gguf_kvs *kvs,
                  const struct tensor_set *tensors)
{
    char name[192];
    bool is_denied = *condition == '!', is_key = text_starts_with(condition + is_denied, "key:");
    const char *subject = condition + is_denied + strcspn(condition + is_denied, ":") + 1;
    snprintf(name, sizeof name, "%s%s%.*s", is_key ? family_architecture(family) : "", is_key ? "." : "",
             (int)(condition + length - subject), subject);
    char *value = is_key ? strchr(name, '=') : NULL;
    uint64_t number;
    bool is_there, truth;
    if (value != NULL) {
        *value = '\0';
        if (strcmp(value + 1, "[]") == 0)
            return is_array(gguf_kvs_find(kvs, name)) != is_denied;
        if (gguf_get_bool(kvs, name, &truth))
            number = truth;
        else if (!gguf_get_u64(kvs, name, &number))
            return is_denied;
        is_there = number == strtoull(value + 1, NULL, 10);
    } else {
        is_there = is_key ? gguf_kvs_find(kvs, name) != NULL : has_tensor(tensors, name);
    }
    return is_there != is_denied;
}

/* Reports whether all conditions up to a '|' or the end hold; *ret_length is their length. */
static bool all_hold(const char *conditions, size_t *ret_length, const struct family *family,
                     const struct gguf_kvs *kvs, const struct tensor_set *tensors)
{
    bool hold = true;
    size_t length = strcspn(conditions, "|");
    *ret_length = length;
    for (const char *at = conditions, *end = at + length; at < end && hold;) {
        size_t one = strcspn(at, " |");
        hold = holds(at, one, family, kvs, tensors);
        at += one;
        at += strspn(at, " ");
    }
    return hold;
}

static bool one_holds(const char *alternatives, const struct family *family, const struct gguf_kvs *kvs,
                      const struct tensor_set *tensors)
{
    size_t length;
    for (const char *at = alternatives;; at += length + 1) {
        if (all_hold(at, &length, family, kvs, tensors))
            return true;
        if (at[length] == '\0')
            return false;
    }
}

/* Reports whether conditions on the GGUF choose the family among those with its architecture. */
static bool is_told(const struct family *family, const char *tokenizer, const struct gguf_kvs *kvs,
                    const struct tensor_set *tensors)
{
    const char *wanted = family->tokenizer_model;
    if (wanted != NULL && (tokenizer == NULL || strcmp(wanted, tokenizer) != 0))
        return false;
    return family->told_by != NULL ? one_holds(family->told_by, family, kvs, tensors) : wanted != NULL;
}

const struct family *family_of_keys(const struct gguf_kvs *kvs, const struct tensor_set *tensors)
{
    struct arena *arena = arena_new();
    const char *architecture = gguf_get_text(kvs, "general.architecture", arena);
    const char *tokenizer = gguf_get_text(kvs, "tokenizer.ggml.model", arena);
    const struct family *found = NULL;
    for (const struct family *const *family = families; *family != NULL && architecture != NULL; family++) {
        bool told = is_told(*family, tokenizer, kvs, tensors);
        bool fits = strcmp(family_architecture(*family), architecture) == 0 && ((*family)->told_by == NULL || told);
        if (fits && (found == NULL || told || (found->forms == NULL && (*family)->forms != NULL)))
            found = *family;
    }
    arena_free(arena);
    return found;
}

/* Lines. */

static void set_line(struct config_builder *builder, const char *name, const char *value)
{
    size_t i = 0;
    while (i < builder->n_lines && strcmp(builder->lines[i].name, name) != 0)
        i++;
    if (i == builder->n_lines)
        builder->lines = arena_grow(builder->arena, builder->lines, builder->n_lines++, sizeof *builder->lines);
    builder->lines[i] = (struct line){name, value};
}

/* Returns JSON that is spelled with ' for the quotation mark. */
static const char *spelled(struct config_builder *builder, const char *text)
{
    char *copy = arena_strdup(builder->arena, text);
    for (char *at = copy; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    return copy;
}

static const char *float_text(struct config_builder *builder, double value, bool is_single)
{
    char text[JSON_FLOAT_TEXT];
    if (!isfinite(value))
        return "null";
    return arena_strdup(builder->arena, is_single ? json_f32_text((float)value, text) : json_f64_text(value, text));
}

static const char *key_name(struct config_builder *builder, const char *key)
{
    if (*key == '.')
        return key + 1;
    return arena_printf(builder->arena, "%s.%s", family_architecture(builder->family), key);
}

/* Returns the width of the feed-forward network from the first layer's tensor. The key may be wrong: the converter
 * writes a constant multiple of another width, or one of the class's several widths. NULL: no such tensor, or the key
 * has a width for each layer. */
static const char *width_text(struct config_builder *builder, const struct gguf_kv *kv)
{
    const struct tensor *down = tensor_set_find_text(builder->tensors, "blk.0.ffn_down.weight");
    if (kv->type == GGUF_ARRAY || down == NULL || down->rank != 2)
        return NULL;
    return arena_printf(builder->arena, "%" PRIu64, down->shape[1]);
}

static const char *value_text(struct config_builder *builder, const struct gguf_kv *kv)
{
    enum { MOST_ELEMENTS = 65536 };
    struct buffer text = {0};
    double number;
    const char *width = strcmp(kv->key, key_name(builder, "feed_forward_length")) == 0 ? width_text(builder, kv) : NULL;
    if (width != NULL)
        return width;
    if ((kv->type == GGUF_F32 || kv->type == GGUF_F64) && gguf_get_f64(builder->kvs, kv->key, &number))
        return float_text(builder, number, kv->type == GGUF_F32);
    gguf_put_json(&(struct json_writer){.out = &text, .letters = JSON_ASCII, .compact = true}, NULL, kv, MOST_ELEMENTS);
    const char *copy = arena_strndup(builder->arena, (const char *)text.bytes, text.length);
    buffer_free(&text);
    return copy;
}

/* Gets the number of a key, whole or a float. */
static bool key_number(struct config_builder *builder, const char *key, double *ret_number)
{
    uint64_t whole;
    const char *name = key_name(builder, key);
    if (gguf_get_f64(builder->kvs, name, ret_number))
        return true;
    if (!gguf_get_u64(builder->kvs, name, &whole))
        return false;
    *ret_number = (double)whole;
    return true;
}

/* Key rows. */

/* Reports whether the class has a hyperparameter, by its defaults or by a row of the form. */
static bool class_has(const struct config_builder *builder, const char *name, size_t length)
{
    for (const struct config_row *const *table = builder->form->rows; *table != NULL; table++)
        for (const struct config_row *row = *table; row->name != NULL; row++)
            if (row->from != FROM_NOWHERE && strncmp(row->name, name, length) == 0 && row->name[length] == '\0')
                return true;
    return json_get_n(json_root(builder->defaults), name, length) != NULL;
}

/* Returns the first hyperparameter of "a|b" that the class has; else the first. */
static const char *hyperparameter(struct config_builder *builder, const char *from)
{
    for (const char *at = from; *at != '\0';) {
        size_t length = strcspn(at, "|");
        if (class_has(builder, at, length))
            return arena_strndup(builder->arena, at, length);
        at += length + (at[length] == '|');
    }
    return arena_strndup(builder->arena, from, strcspn(from, "|"));
}

/* Reports whether a later row sets the same key, from something else. */
static bool is_set_again(const struct config_builder *builder, size_t table, const struct key_row *row)
{
    const struct key_row *next = row + 1;
    for (; builder->family->keys[table] != NULL; next = builder->family->keys[++table])
        for (; next != NULL && (next->key != NULL || next->emit != NULL); next++)
            if (next->key != NULL && row->key != NULL && strcmp(next->key, row->key) == 0)
                return true;
    return false;
}

static void add_key_row(struct config_builder *builder, const struct key_row *row)
{
    double number;
    bool is_copied = row->key != NULL && row->from != NULL && row->when != ALWAYS && row->by == NULL &&
                     row->plus == NULL && strchr(row->from, '.') == NULL;
    if (!is_copied)
        return;
    const struct gguf_kv *kv = gguf_kvs_find(builder->kvs, key_name(builder, row->key));
    if (kv == NULL)
        return;
    const char *name = hyperparameter(builder, row->from), *value = value_text(builder, kv);
    if (row->times == 0) {
        set_line(builder, name, value);
        return;
    }
    for (size_t i = 0; i < builder->n_lines; i++) /* another key may have set the line without the factor */
        if (strcmp(builder->lines[i].name, name) == 0)
            return;
    if (key_number(builder, row->key, &number))
        set_line(builder, name,
                 row->type == GGUF_F32 ? float_text(builder, (double)(float)(number / row->times), true)
                                       : arena_printf(builder->arena, "%.0f", number / row->times));
}

/* Subtracts layers that predict further tokens: a GGUF counts them as blocks, config.json not as layers. */
static void leave_out_predicting(struct config_builder *builder)
{
    uint64_t n_blocks, n_predicting;
    if (!gguf_get_u64(builder->kvs, key_name(builder, "nextn_predict_layers"), &n_predicting) ||
        !gguf_get_u64(builder->kvs, key_name(builder, "block_count"), &n_blocks) || n_predicting > n_blocks)
        return;
    set_line(builder, hyperparameter(builder, "num_hidden_layers|" BLOCK_COUNT),
             arena_printf(builder->arena, "%" PRIu64, n_blocks - n_predicting));
    set_line(builder, "num_nextn_predict_layers", arena_printf(builder->arena, "%" PRIu64, n_predicting));
}

/* Rows of config.json. */

static const char *computed(struct config_builder *builder, const struct config_row *row)
{
    double a, b, hidden, heads;
    if (row->from == FROM_HEAD_SHARE) {
        bool known = key_number(builder, row->key, &a) && key_number(builder, "embedding_length", &hidden) &&
                     key_number(builder, "attention.head_count", &heads) && hidden > 0 && heads > 0;
        if (known && row->other != NULL && key_number(builder, row->other, &b) && b > 0)
            return float_text(builder, a / b, false);
        return known ? float_text(builder, a * heads / hidden, false) : NULL;
    }
    if (!key_number(builder, row->key, &a) || !key_number(builder, row->other, &b))
        return NULL;
    if (row->from == FROM_QUOTIENT)
        return b != 0 ? arena_printf(builder->arena, "%.0f", a / b) : NULL;
    return arena_printf(builder->arena, "%.0f", row->from == FROM_SUM ? a + b + row->plus : a - b);
}

/* Returns the number of layers as config.json counts them. */
static uint64_t layer_count(struct config_builder *builder)
{
    uint64_t n = 0, n_predicting = 0;
    gguf_get_u64(builder->kvs, key_name(builder, "block_count"), &n);
    gguf_get_u64(builder->kvs, key_name(builder, "nextn_predict_layers"), &n_predicting);
    return n_predicting <= n ? n - n_predicting : n;
}

/* Returns a list with an element for each layer, or with the numbers of the marked layers. */
static const char *layer_list(struct config_builder *builder, const struct config_row *row,
                              const struct layer_marks *marks)
{
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = JSON_ASCII, .indent = 1};
    const char *values = row->from == FROM_LAYERS ? spelled(builder, row->other) : "|", *bar = strchr(values, '|');
    const char *marked = arena_strndup(builder->arena, values, (size_t)(bar - values));
    json_begin_array(&writer, NULL);
    for (uint64_t i = 0; i < marks->n; i++)
        if (row->from == FROM_LAYERS)
            json_put_raw(&writer, NULL, marks->marked[i] ? marked : bar + 1);
        else if (marks->marked[i])
            json_put_number(&writer, NULL, i);
    json_end(&writer);
    const char *list = arena_strndup(builder->arena, (const char *)out.bytes, out.length);
    buffer_free(&out);
    return list;
}

static const char *of_layers(struct config_builder *builder, const struct config_row *row)
{
    struct layer_marks marks;
    uint64_t period, offset, n = layer_count(builder);
    bool is_tensor = strstr(row->key, "{}") != NULL;
    if (is_tensor ? !layer_marks_of_tensors(builder->tensors, row->key, n, builder->arena, &marks)
                  : !layer_marks_of_key(builder->kvs, key_name(builder, row->key), n, builder->arena, &marks))
        return NULL;
    if (row->from == FROM_LAYERS || row->from == FROM_LISTED)
        return layer_list(builder, row, &marks);
    if (!layer_marks_period(&marks, &period, &offset))
        return NULL;
    return arena_printf(builder->arena, "%" PRIu64, row->from == FROM_PERIOD ? period : offset);
}

static const char *most(struct config_builder *builder, const struct config_row *row)
{
    struct gguf_array array;
    struct error unused;
    uint64_t number, largest = 0;
    const char *name = key_name(builder, row->key);
    if (gguf_get_u64(builder->kvs, name, &number))
        return arena_printf(builder->arena, "%" PRIu64, number);
    if (!gguf_get_array(builder->kvs, name, builder->arena, &array, &unused))
        return NULL;
    for (uint64_t i = 0; i < array.count; i++)
        if (gguf_array_u64(&array, i, &number) && number > largest)
            largest = number;
    return arena_printf(builder->arena, "%" PRIu64, largest);
}

/* Returns the texts of an array as a JSON object with their numbers, like the labels of a classifier. */
static const char *labels(struct config_builder *builder, const struct config_row *row)
{
    const struct gguf_kv *kv = gguf_kvs_find(builder->kvs, key_name(builder, row->key));
    struct json_document *texts = NULL;
    struct error unused;
    struct buffer out = {0};
    const char *array = kv != NULL ? value_text(builder, kv) : NULL;
    if (array != NULL)
        texts = json_parse(array, strlen(array), &unused);
    if (texts == NULL || !json_is(json_root(texts), JSON_ARRAY)) {
        json_free(texts);
        return NULL;
    }
    uint64_t number = 0;
    struct json_writer writer = {.out = &out, .indent = 1};
    json_begin_object(&writer, NULL);
    for (const struct json *item = json_first(json_root(texts)); item != NULL; item = json_next(item), number++) {
        size_t length = 0;
        const char *text = json_string(item, &length);
        if (row->from == FROM_NUMBERS) {
            json_put_key(&writer, text ? text : "", length);
            json_put_number(&writer, NULL, number);
        } else {
            json_put_text_n(&writer, arena_printf(builder->arena, "%" PRIu64, number), text ? text : "", length);
        }
    }
    json_end(&writer);
    const char *object = arena_strndup(builder->arena, (const char *)out.bytes, out.length);
    buffer_free(&out);
    json_free(texts);
    return object;
}

/* Returns `text` with each <key> replaced by the key's value. */
static const char *filled_in(struct config_builder *builder, const char *text)
{
    const char *result = "", *open, *close;
    for (; (open = strchr(text, '<')) != NULL && (close = strchr(open, '>')) != NULL; text = close + 1) {
        const char *key = arena_strndup(builder->arena, open + 1, (size_t)(close - open - 1));
        const struct gguf_kv *kv = gguf_kvs_find(builder->kvs, key_name(builder, key));
        result = arena_printf(builder->arena, "%s%.*s%s", result, (int)(open - text), text,
                              kv != NULL ? value_text(builder, kv) : "null");
    }
    return spelled(builder, arena_printf(builder->arena, "%s%s", result, text));
}

static void remove_line(struct config_builder *builder, const char *name)
{
    for (size_t i = 0; i < builder->n_lines; i++)
        if (strcmp(builder->lines[i].name, name) == 0)
            builder->lines[i] = builder->lines[--builder->n_lines];
}

static struct config_material material_of(struct config_builder *builder)
{
    return (struct config_material){
        .architecture = family_architecture(builder->family),
        .kvs = builder->kvs,
        .tensors = builder->tensors,
        .n_layers = layer_count(builder),
        .arena = builder->arena,
        .failed = &builder->failed,
        .error = &builder->failure,
    };
}

static const char *row_value(struct config_builder *builder, const struct config_row *row)
{
    const struct tensor *tensor = row->key != NULL ? tensor_set_find_text(builder->tensors, row->key) : NULL;
    const struct gguf_kv *kv;
    const struct config_material material = material_of(builder);
    if (row->make != NULL)
        return row->make(&material);
    switch (row->from) {
    case FROM_NOWHERE:
        remove_line(builder, row->name);
        return NULL;
    case FROM_KEY:
        kv = gguf_kvs_find(builder->kvs, key_name(builder, row->key));
        return kv != NULL ? value_text(builder, kv) : NULL;
    case FROM_TEXT:
        return filled_in(builder, row->text);
    case FROM_LABELS:
    case FROM_NUMBERS:
        return labels(builder, row);
    case FROM_MOST:
        return most(builder, row);
    case FROM_MARKED:
    case FROM_UNMARKED:
        return config_number_of_first(&material, row->other, row->from == FROM_MARKED, row->key);
    case FROM_LAYERS:
    case FROM_LISTED:
    case FROM_PERIOD:
    case FROM_OFFSET:
        return of_layers(builder, row);
    case FROM_TENSOR:
        return tensor != NULL ? "true" : "false";
    case FROM_NO_TENSOR:
        return tensor != NULL ? "false" : "true";
    case FROM_ROWS:
        return tensor != NULL && tensor->rank > 0 ? arena_printf(builder->arena, "%" PRIu64, tensor->shape[0]) : NULL;
    default:
        return computed(builder, row);
    }
}

/* Adds the member of "line.member" to a line that is an object; without such a line, does nothing. */
static void set_member(struct config_builder *builder, const char *name, const char *value)
{
    size_t length = strcspn(name, ".");
    for (size_t i = 0; i < builder->n_lines; i++) {
        const char *object = builder->lines[i].value, *end = strrchr(object, '\n');
        if (strncmp(builder->lines[i].name, name, length) == 0 && builder->lines[i].name[length] == '\0' && end != NULL)
            builder->lines[i].value = arena_printf(builder->arena, "%.*s,\n    \"%s\": %s%s", (int)(end - object),
                                                   object, name + length + 1, value, end);
    }
}

static void add_row(struct config_builder *builder, const struct config_row *row)
{
    const char *value = row_value(builder, row);
    if (value == NULL && row->text != NULL)
        value = spelled(builder, row->text);
    if (value != NULL && strchr(row->name, '.') != NULL)
        set_member(builder, row->name, value);
    else if (value != NULL)
        set_line(builder, row->name, value);
}

/* The rows that all classes have. */
static const struct config_row common_rows[] = {
    {"vocab_size", FROM_ROWS, "token_embd.weight"},
    {"tie_word_embeddings", FROM_NO_TENSOR, "output.weight"},
    {"bos_token_id", FROM_KEY, ".tokenizer.ggml.bos_token_id", .text = "null"},
    {"eos_token_id", FROM_KEY, ".tokenizer.ggml.eos_token_id", .text = "null"},
    {"pad_token_id", FROM_KEY, ".tokenizer.ggml.padding_token_id", .text = "null"},
    {0},
};

/* Returns rope_scaling from the keys that the GGUF has. */
static const char *scaling_text(struct config_builder *builder, const char *type)
{
    static const struct {
        const char *key, *name;
    } parts[] = {{"rope.scaling.factor", "factor"},
                 {"rope.scaling.original_context_length", "original_max_position_embeddings"},
                 {"rope.scaling.yarn_attn_factor", "attention_factor"},
                 {"rope.scaling.yarn_beta_fast", "beta_fast"},
                 {"rope.scaling.yarn_beta_slow", "beta_slow"}};
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII, .indent = 1};
    double scale;
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "rope_type", type);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct gguf_kv *kv = gguf_kvs_find(builder->kvs, key_name(builder, parts[i].key));
        if (kv != NULL)
            json_put_raw(&writer, parts[i].name, value_text(builder, kv));
    }
    /* DeepSeek's mscale and mscale_all_dim: only their ratio, and the latter, matter */
    if (key_number(builder, "rope.scaling.yarn_log_multiplier", &scale)) {
        const char *value = float_text(builder, (double)(float)(scale * 10), true);
        json_put_raw(&writer, "mscale", value);
        json_put_raw(&writer, "mscale_all_dim", value);
    }
    json_end(&writer);
    const char *copy = arena_strndup(builder->arena, (const char *)text.bytes, text.length);
    buffer_free(&text);
    return copy;
}

static void add_rope(struct config_builder *builder)
{
    const struct gguf_kv *theta = gguf_kvs_find(builder->kvs, key_name(builder, "rope.freq_base"));
    const char *type = gguf_get_text(builder->kvs, key_name(builder, "rope.scaling.type"), builder->arena);
    double base = 10000;
    if (theta != NULL)
        set_line(builder, "rope_theta", value_text(builder, theta));
    key_number(builder, "rope.freq_base", &base);
    const char *of_tensors = rope_of_tensors(builder->tensors, base, builder->arena);
    if (of_tensors != NULL)
        set_line(builder, "rope_scaling", of_tensors);
    else if (type != NULL && (strcmp(type, "linear") == 0 || strcmp(type, "yarn") == 0))
        set_line(builder, "rope_scaling", scaling_text(builder, type));
}

const struct config_form *config_form_of_keys(const struct family *family, const struct gguf_kvs *kvs,
                                              const struct tensor_set *tensors)
{
    for (const struct config_form *form = family->forms; form != NULL && form->architecture != NULL; form++)
        if (form->when == NULL || one_holds(form->when, family, kvs, tensors))
            return form;
    return NULL;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->name, ((const struct line *)b)->name);
}

static void write_lines(struct config_builder *builder, struct buffer *out)
{
    qsort(builder->lines, builder->n_lines, sizeof *builder->lines, compare_lines);
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    json_begin_object(&writer, NULL);
    for (size_t i = 0; i < builder->n_lines; i++)
        json_put_raw(&writer, builder->lines[i].name, builder->lines[i].value);
    json_end(&writer);
    buffer_append_text(out, "\n");
}

/* Checks the sizes that determine tensor shapes: for a missing one, AutoConfig would use the class's default. */
static bool check_sizes(struct config_builder *builder, struct error *error)
{
    enum { MOST = 1 << 24 };
    static const struct {
        const char *name;
        bool by_layer; /* may be an array */
    } sizes[] = {{"block_count", false}, {"embedding_length", false}, {"attention.head_count", true}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *key = key_name(builder, sizes[i].name);
        const struct gguf_kv *kv = gguf_kvs_find(builder->kvs, key);
        uint64_t size;
        if (kv == NULL)
            return error_set(error, "the key %s is missing", key);
        if (kv->type == GGUF_ARRAY && sizes[i].by_layer)
            continue;
        if (!gguf_get_u64(builder->kvs, key, &size) || size > MOST)
            return error_set(error, "the key %s is not a number up to %d", key, MOST);
    }
    return true;
}

/* Adds all lines. */
static void add_lines(struct config_builder *builder, const char *dtype)
{
    const struct family *family = builder->family;
    const struct config_form *form = builder->form;
    for (size_t i = 0; family->keys[i] != NULL; i++)
        for (const struct key_row *row = family->keys[i]; row->key != NULL || row->emit != NULL; row++)
            if (!is_set_again(builder, i, row))
                add_key_row(builder, row);
    leave_out_predicting(builder);
    add_rope(builder);
    for (const struct config_row *row = common_rows; row->name != NULL; row++)
        add_row(builder, row);
    for (const struct config_row *const *table = form->rows; *table != NULL; table++)
        for (const struct config_row *row = *table; row->name != NULL; row++)
            add_row(builder, row);
    set_line(builder, "architectures", arena_printf(builder->arena, "[\n    \"%s\"\n  ]", form->architecture));
    set_line(builder, "model_type", arena_printf(builder->arena, "\"%s\"", form->model_type));
    set_line(builder, "torch_dtype", arena_printf(builder->arena, "\"%s\"", dtype));
}

bool config_of_keys(const struct family *family, const struct gguf_kvs *kvs, const struct tensor_set *tensors,
                    const char *dtype, struct buffer *out, struct error *error)
{
    const struct config_form *form = config_form_of_keys(family, kvs, tensors);
    if (form == NULL && family->no_forms != NULL)
        return error_set(error, "a GGUF of the architecture %s does not have %s",
                         family->architecture != NULL ? family->architecture : family->name, family->no_forms);
    if (form == NULL)
        return error_set(error, "wfs cannot write config.json for the family %s", family->name);
    struct config_builder builder = {arena_new(), family, form, kvs, tensors};
    bool good = check_sizes(&builder, error);
    const struct config_class *class = config_class_find(form->model_type);
    if (class == NULL)
        class = config_class_find("llama"); /* most classes use its names */
    const char *defaults = spelled(&builder, class->defaults);
    builder.defaults = json_parse(defaults, strlen(defaults), error);
    if (good)
        add_lines(&builder, dtype);
    if (good && builder.failed)
        good = error_set(error, "%s", builder.failure.message);
    if (good)
        write_lines(&builder, out);
    json_free(builder.defaults);
    arena_free(builder.arena);
    return good;
}

/* config.json of a merge: that of its donor, with the keys that mergekit changes. */
#include "models/derive/recipe_merging.h"

#include "models/derive/plain_config.h"
#include "text/json_write.h"

#include <stdlib.h>
#include <string.h>

static const char *const layer_keys[] = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"};

struct editing {
    const struct recipe_merge *merge;
    struct json_writer *writer;
    bool has_dtype;
};

static const char *dtype_name(const struct dtype *dtype)
{
    return dtype == &bf16_dtype ? "bfloat16" : dtype == &f16_dtype ? "float16" : "float32";
}

static bool is_layer_key(const char *key)
{
    for (size_t i = 0; i < sizeof layer_keys / sizeof *layer_keys; i++)
        if (strcmp(layer_keys[i], key) == 0)
            return true;
    return false;
}

/* Puts the types of the layers that the result has; nothing if a model lacks the type of a layer. */
static void put_layer_types(const struct editing *editing)
{
    const struct recipe_merge *merge = editing->merge;
    const struct recipe *recipe = merge->recipe;
    uint64_t first, count;
    struct json_mark mark = json_mark(editing->writer);
    bool is_known = true;
    json_begin_array(editing->writer, "layer_types");
    for (size_t i = 0; i < recipe->n_slices; i++) {
        const struct recipe_source *source = &recipe->slices[i].sources[0];
        const struct json *types = hparams_get(merge->inputs[source->model].hparams, "layer_types");
        if (!recipe_layers(merge, &recipe->slices[i], source, &first, &count))
            continue;
        const struct json *type = json_at(types, first);
        for (uint64_t layer = 0; layer < count; layer++, type = json_next(type)) {
            is_known &= json_string(type, NULL) != NULL;
            json_put_text(editing->writer, NULL, json_string(type, NULL));
        }
    }
    json_end(editing->writer);
    if (!is_known)
        json_take_back(editing->writer, mark);
}

static uint64_t count_layers(const struct recipe *recipe)
{
    uint64_t count = 0;
    for (size_t i = 0; i < recipe->n_slices; i++)
        count += recipe->slices[i].sources[0].end_layer - recipe->slices[i].sources[0].first_layer;
    return count;
}

/* Puts dtype, which older configurations call torch_dtype: the recipe's, or the donor's own. */
static void put_dtype(struct editing *editing, const struct json *own)
{
    const struct recipe *recipe = editing->merge->recipe;
    const struct dtype *dtype = recipe->out_dtype != NULL ? recipe->out_dtype : recipe->dtype;
    if (!editing->has_dtype && (dtype != NULL || own != NULL))
        json_put_text(editing->writer, "dtype", dtype != NULL ? dtype_name(dtype) : json_string(own, NULL));
    editing->has_dtype = true;
}

/* Puts a member's replacement; returns false if the member stays. */
static bool put_changed(struct editing *editing, const struct json_member *member)
{
    const struct recipe *recipe = editing->merge->recipe;
    if (strcmp(member->key, "dtype") == 0 || strcmp(member->key, "torch_dtype") == 0)
        put_dtype(editing, member->value);
    else if (recipe->has_slices && is_layer_key(member->key))
        json_put_number(editing->writer, member->key, count_layers(recipe));
    else if (editing->merge->vocabulary != NULL && strcmp(member->key, "vocab_size") == 0)
        json_put_number(editing->writer, member->key, recipe_vocabulary_size(editing->merge));
    else if (recipe->has_slices && strcmp(member->key, "layer_types") == 0 && json_is(member->value, JSON_ARRAY))
        put_layer_types(editing);
    else
        return false;
    return true;
}

/* Puts the members of config.json, or of the text_config in it. */
static void put_members(struct editing *editing, const struct json *config)
{
    for (struct json_member member = {0}; json_next_member(config, &member);)
        if (!put_changed(editing, &member)) {
            json_put_key(editing->writer, member.key, member.key_length);
            json_put_edited(editing->writer, member.value, NULL, NULL);
        }
}

static void put_config(struct editing *editing, const struct json *config)
{
    struct editing inner = *editing;
    json_begin_object(editing->writer, NULL);
    for (struct json_member member = {0}; json_next_member(config, &member);) {
        if (put_changed(editing, &member))
            continue;
        json_put_key(editing->writer, member.key, member.key_length);
        if (strcmp(member.key, "text_config") == 0 && json_is(member.value, JSON_OBJECT)) {
            json_begin_object(editing->writer, NULL);
            put_members(&inner, member.value);
            json_end(editing->writer);
        } else {
            json_put_edited(editing->writer, member.value, NULL, NULL);
        }
    }
    put_dtype(editing, NULL);
    json_end(editing->writer);
}

/* Returns the donor's configuration without a description of packed weights. */
static struct json_document *parse_plain(const struct recipe_merge *merge)
{
    struct buffer text = {0};
    struct json_document *own = json_parse_python(merge->donor->config, merge->donor->config_length, merge->error);
    if (own == NULL)
        return NULL;
    plain_config(json_root(own), &text);
    json_free(own);
    struct json_document *plain = json_parse_python((const char *)text.bytes, text.length, merge->error);
    buffer_free(&text);
    return plain;
}

bool recipe_make_config(struct recipe_merge *merge)
{
    static const char name[] = "config.json";
    struct buffer out = {0};
    struct json_document *config = parse_plain(merge);
    if (config == NULL)
        return error_prefix(merge->error, "%s of '%.200s'", name, merge->donor->named->text);
    struct json_writer writer = {.out = &out, .letters = JSON_ASCII};
    struct editing editing = {.merge = merge, .writer = &writer};
    put_config(&editing, json_root(config));
    buffer_append_text(&out, "\n");
    json_free(config);
    recipe_add_text(merge, name, &out);
    buffer_free(&out);
    return true;
}

/* The files beside the weights of a merge: the tokenizer, and the recipe. */
#include "base/text.h"
#include "models/derive/plain_config.h"
#include "models/derive/recipe_merging.h"
#include "text/json_write.h"

#include <stdlib.h>
#include <string.h>

static int compare_side_files(const void *a, const void *b)
{
    return strcmp(((const struct side_file *)a)->name, ((const struct side_file *)b)->name);
}

bool recipe_make_files(struct recipe_merge *merge)
{
    struct checkpoint *merged = merge->merged;
    const struct side_file recipe = {.name = "mergekit_config.yml", .source = merge->from->sources[0]};
    checkpoint_add_metadata(merged, "format", "pt");
    if (!recipe_add_tokenizer(merge) || !recipe_add_card(merge))
        return false;
    checkpoint_share_side_file(merged, &recipe);
    qsort(merged->side_files, merged->n_side_files, sizeof *merged->side_files, compare_side_files);
    return true;
}

/* README.md of a merge: the front matter of mergekit's model card, from which a GGUF's general.* keys are made, and the
 * recipe. */

/* Appends the models of the hub as base models; those of other places are nobody else's. */
static void append_base_models(const struct recipe_merge *merge, struct buffer *out)
{
    bool any = false;
    for (size_t i = 0; i < merge->recipe->n_models; i++) {
        const char *name = merge->inputs[i].repository;
        if (name != NULL)
            buffer_printf(out, "%s- %s\n", any ? "" : "base_model:\n", name);
        any |= name != NULL;
    }
    if (!any)
        buffer_append_text(out, "base_model: []\n");
}

bool recipe_add_card(const struct recipe_merge *merge)
{
    enum { TITLE = 256 };
    struct buffer out = {0};
    char title[TITLE];
    size_t length;
    char *recipe = source_read_text(merge->from->sources[0], RECIPE_MAX_TEXT, &length, merge->error);
    if (recipe == NULL)
        return false;
    text_printable(merge->merged->model_name, strlen(merge->merged->model_name), title, sizeof title);
    buffer_append_text(&out, "---\n");
    append_base_models(merge, &out);
    buffer_printf(&out,
                  "library_name: transformers\ntags:\n- mergekit\n- merge\n\n---\n# %s\n\nA merge by the method %s of "
                  "mergekit, computed by wfs from this recipe:\n\n```yaml\n",
                  title, merge->recipe->method->name);
    buffer_append(&out, recipe, length);
    buffer_printf(&out, "%s```\n", length > 0 && recipe[length - 1] == '\n' ? "" : "\n");
    recipe_add_text(merge, "README.md", &out);
    buffer_free(&out);
    free(recipe);
    return true;
}

/* config.json of a merge: that of its donor, with the keys that mergekit changes. */

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

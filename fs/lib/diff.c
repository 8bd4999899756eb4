#include "fs/lib/diff.h"

#include "formats/checkpoint.h"
#include "fs/lib/lib.h"
#include "fs/lib/stage.h"
#include "models/convert/model.h"
#include "models/facts.h"
#include "models/huggingface/hf_model.h"

#include <string.h>

/* Reports whether the GGUF form of a source is known, beyond its tensors' own names. */
static bool is_understood(const struct gguf_model *model)
{
    return model != NULL && (model->family != NULL || model->is_gguf);
}

/* Reports whether the larger set has at least half of the smaller one's names: then both have names of one kind. */
static bool share_names(const struct tensor_set *a, const struct tensor_set *b)
{
    const struct tensor_set *smaller = a->n_tensors < b->n_tensors ? a : b, *larger = smaller == a ? b : a;
    size_t n_shared = 0;
    for (size_t i = 0; i < smaller->n_tensors; i++)
        n_shared += tensor_set_find(larger, smaller->tensors[i].name, smaller->tensors[i].name_length) != NULL;
    return 2 * n_shared >= smaller->n_tensors;
}

static bool has_other_values(const struct match *match)
{
    const struct difference *difference = match->pair != NULL ? &match->pair->difference : NULL;
    return difference != NULL && !difference->same_bytes && (!difference->has_values || difference->n_different != 0);
}

/* Reports whether a key exists only in files, not in models. */
static bool is_of_file(const struct key_match *match)
{
    static const char *const keys[] = {"general.file_type", "general.quantization_version", "split.no",
                                       "split.count",       "split.tensors.count",          NULL};
    const char *key = match->a != NULL ? match->a->key : match->b->key;
    for (const char *const *of_file = keys; *of_file != NULL; of_file++)
        if (strcmp(key, *of_file) == 0)
            return true;
    return false;
}

static void leave_out_file_keys(struct key_matches *keys)
{
    size_t n_left = 0;
    for (size_t i = 0; i < keys->n_matches; i++)
        if (!is_of_file(&keys->matches[i]))
            keys->matches[n_left++] = keys->matches[i];
    keys->n_matches = n_left;
}

static bool compare_values(struct matches *matches, struct error *error)
{
    stage_begin("diff", compare_bytes(matches->pairs, matches->n_pairs));
    bool compared = compare_pairs(matches->pairs, matches->n_pairs, error);
    stage_end();
    return compared;
}

/* Chooses the names, and matches tensors and keys by them. */
static void match_names(struct diff *diff, bool as_gguf)
{
    struct error unused;
    const struct gguf_model *a = diff->models[0], *b = diff->models[1];
    const struct tensor_set *in_a = diff->a->tensors, *in_b = diff->b->tensors;
    if (!share_names(in_a, in_b)) {
        const struct hf_model *from = as_gguf ? NULL : hf_model_of(diff->a, &unused);
        const struct hf_model *to = as_gguf ? NULL : hf_model_of(diff->b, &unused);
        if (as_gguf) {
            diff->names = "GGUF";
            in_a = a->tensors;
            in_b = b->tensors;
        } else if (from != NULL && to != NULL && share_names(from->tensors, to->tensors)) {
            diff->names = "Hugging Face";
            in_a = from->tensors;
            in_b = to->tensors;
        }
    }
    diff->tensors = match_tensors(in_a, in_b, diff->arena);
    diff->keys = as_gguf ? match_keys(&a->kvs, &b->kvs, diff->arena)
                         : match_keys(&diff->a->metadata, &diff->b->metadata, diff->arena);
    if (as_gguf && !(a->is_gguf && b->is_gguf))
        leave_out_file_keys(&diff->keys);
}

/* Opens a source and makes its GGUF form, if it has one. */
static const struct checkpoint *open_side(const char *source, const struct options *options,
                                          struct gguf_model **ret_model, struct error *error)
{
    struct error unused;
    const struct checkpoint *checkpoint = lib_open_checkpoint(source, options, error);
    if (checkpoint != NULL)
        *ret_model = gguf_model_new(checkpoint, &options->content.request.references, &unused);
    else
        lib_name_directory(source, error);
    return checkpoint;
}

static bool open_sides(const char *a, const char *b, const struct options *options, struct diff *diff,
                       struct error *error)
{
    struct options second = *options;
    if ((diff->a = open_side(a, options, &diff->models[0], error)) == NULL)
        return false;
    /* directories' names are no difference between models; a GGUF has its model's name among its keys */
    if (second.open.name == NULL && facts_of(diff->a).keys == NULL)
        second.open.name = diff->a->model_name;
    return (diff->b = open_side(b, &second, &diff->models[1], error)) != NULL;
}

static void count_differences(struct diff *diff)
{
    for (size_t i = 0; i < diff->tensors.n_matches; i++) {
        diff->n_tensors += !match_is_same(&diff->tensors.matches[i]);
        diff->n_values += has_other_values(&diff->tensors.matches[i]);
    }
    diff->n_keys = diff->keys.n_matches;
}

bool diff_make(const char *a, const char *b, const struct options *options, struct diff *ret_diff, struct error *error)
{
    struct diff diff = {.arena = arena_new()};
    bool made = open_sides(a, b, options, &diff, error);
    if (made) {
        match_names(&diff, is_understood(diff.models[0]) && is_understood(diff.models[1]));
        made = compare_values(&diff.tensors, error);
    }
    if (made)
        count_differences(&diff);
    else
        diff_free(&diff);
    *ret_diff = diff;
    return made;
}

void diff_free(struct diff *diff)
{
    for (int i = 1; i >= 0; i--)
        gguf_model_free(diff->models[i]);
    checkpoint_close(diff->b);
    checkpoint_close(diff->a);
    arena_free(diff->arena);
}

/* What `wfs diff --json` prints of two sources, and wfs_diff() returns. */

enum { DIGITS = 6, SHOWN_ELEMENTS = 16 };

/* Writes the dtype and shape of a tensor; null if that source has none of the name. */
static void put_tensor(struct json_writer *writer, const char *key, const struct tensor *tensor)
{
    if (tensor == NULL) {
        json_put_null(writer, key);
        return;
    }
    json_put_key(writer, key, strlen(key));
    json_put_template(writer, "{'dtype': %s, 'shape': [", tensor->dtype->name);
    for (unsigned i = 0; i < tensor->rank; i++)
        json_put_number(writer, NULL, tensor->shape[i]);
    json_put_template(writer, "], 'refused': %s}", tensor->refusal);
}

static void put_match(struct json_writer *writer, const struct match *match)
{
    const struct tensor *named = match->a != NULL ? match->a : match->b;
    json_put_template(writer, "\n{'name': %t", named->name, (size_t)named->name_length);
    put_tensor(writer, "a", match->a);
    put_tensor(writer, "b", match->b);
    if (match->pair != NULL && match->pair->difference.has_values) {
        const struct difference *difference = &match->pair->difference;
        json_put_template(writer, "'elements': %u, 'different': %u", difference->n_elements, difference->n_different);
        json_put_f64(writer, "largest", difference->largest, DIGITS);
        json_put_f64(writer, "rms", difference_rms(difference), DIGITS);
        json_put_f64(writer, "relative", difference_relative(difference), DIGITS);
    }
    json_end(writer);
}

static void put_value(struct json_writer *writer, const char *side, const struct gguf_kv *kv)
{
    if (kv == NULL) {
        json_put_null(writer, side);
        return;
    }
    json_begin_object(writer, side);
    json_put_text(writer, "type", gguf_type_name(kv->type));
    gguf_put_json(writer, "value", kv, SHOWN_ELEMENTS);
    json_end(writer);
}

static void put_key(struct json_writer *writer, const struct key_match *match)
{
    json_put_template(writer, "\n{'key': %s", match->a != NULL ? match->a->key : match->b->key);
    put_value(writer, "a", match->a);
    put_value(writer, "b", match->b);
    json_end(writer);
}

void diff_put(struct json_writer *writer, const struct diff *diff)
{
    json_put_template(writer, "\n'a': {'path': %s, 'format': %s}, \n'b': {'path': %s, 'format': %s}", diff->a->path,
                      diff->a->format, diff->b->path, diff->b->format);
    json_put_template(writer,
                      "'names': %s, \n'counts': {'tensors': %u, 'tensors_differ': %u, 'values_differ': %u,"
                      " 'keys_differ': %u}, \n'tensors': [",
                      diff->names, (uint64_t)diff->tensors.n_matches, (uint64_t)diff->n_tensors,
                      (uint64_t)diff->n_values, (uint64_t)diff->n_keys);
    for (size_t i = 0; i < diff->tensors.n_matches; i++)
        if (!match_is_same(&diff->tensors.matches[i]))
            put_match(writer, &diff->tensors.matches[i]);
    json_put_template(writer, "], \n'keys': [");
    for (size_t i = 0; i < diff->keys.n_matches; i++)
        put_key(writer, &diff->keys.matches[i]);
    json_end(writer);
}

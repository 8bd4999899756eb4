/* Checkpoints of Hugging Face there and back: what a GGUF's keys and tensors give back is what the checkpoint holds.
 *
 * WFS_GOLDEN names a directory of checkpoints; without it the tiny ones of tests/data are tried. config.json is made of
 * the keys alone, and what rearrangements need to know is read from that. */
#include "base/text.h"
#include "models/convert/model.h"
#include "models/family/family.h"
#include "models/formats.h"
#include "models/huggingface/hf_of_gguf.h"
#include "quant/views/convert.h"
#include "tests/unit/check.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum { PIECE = 4096 };

struct way_back {
    struct arena *arena;
    const struct checkpoint *checkpoint;
    struct gguf_model *model;
    struct hparams *hparams; /* of the config.json that was made */
    struct tensor_set *back;
};

static const struct view *read_view(void *context, const struct tensor *tensor, const char *shown, struct error *error)
{
    (void)context, (void)shown, (void)error;
    return tensor->view;
}

static void write_view(void *context, const char *name, const struct view *view)
{
    tensor_set_add_view(context, name, view);
}

/* The model's tensors without those that stand for hyperparameters. */
static struct tensor_set *weights(const struct way_back *way)
{
    struct tensor_set *set = tensor_set_new(way->arena);
    struct error error;
    for (size_t i = 0; i < way->model->tensors->n_tensors; i++)
        if (!text_starts_with(way->model->tensors->tensors[i].name, "rope_"))
            tensor_set_add(set, &way->model->tensors->tensors[i]);
    tensor_set_seal(set, &error);
    return set;
}

static bool come_back(struct way_back *way, struct error *error)
{
    struct buffer config = {0};
    const struct family *family = family_of_keys(&way->model->kvs, way->model->tensors);
    struct tensor_set *set = weights(way);
    if (family == NULL)
        return error_set(error, "no family has these keys");
    if (!config_of_keys(family, &way->model->kvs, set, "float32", &config, error))
        return false;
    way->hparams = hparams_parse((const char *)config.bytes, config.length, error);
    buffer_free(&config);
    struct dimensions dimensions;
    if (way->hparams == NULL)
        return false;
    dimensions_read(&dimensions, way->hparams);
    family_add_dimensions(family, &dimensions, way->hparams);
    const struct relation_job job = {
        .relation = relation_new(way->arena, family->name, family->prefix, family->tensors, error),
        .direction = BACKWARD,
        .dimensions = &dimensions,
        .dimensions_name = "the keys",
        .set = set,
        .arena = way->arena,
        .context = way->back,
        .read = read_view,
        .write = write_view,
    };
    return job.relation != NULL && relation_apply(&job, error) && tensor_set_seal(way->back, error);
}

/* The largest difference of two tensors of one shape, in F32; infinite where they cannot be compared. */
static double difference(const struct way_back *way, const struct tensor *a, const struct tensor *b)
{
    float x[PIECE], y[PIECE];
    struct error error;
    double most = 0;
    if (a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0)
        return INFINITY;
    const struct view *left = view_convert(way->arena, tensor_view(a, way->arena), &f32_dtype),
                      *right = view_convert(way->arena, tensor_view(b, way->arena), &f32_dtype);
    for (uint64_t first = 0; first < view_units(left); first += PIECE) {
        uint64_t n = view_units(left) - first < PIECE ? view_units(left) - first : PIECE;
        if (!view_read(left, first, n, x, &error) || !view_read(right, first, n, y, &error))
            return INFINITY;
        for (uint64_t i = 0; i < n && memcmp(x, y, n * sizeof *x) != 0; i++) {
            double difference = fabs((double)x[i] - (double)y[i]);
            most = difference > most ? difference : most;
        }
    }
    return most;
}

/* Everything that comes back is in the checkpoint, and nothing else is in it but what the converter drops. */
static void check_tensors(const struct way_back *way, const char *name, const struct family *family)
{
    for (size_t i = 0; i < way->back->n_tensors; i++) {
        const struct tensor *back = &way->back->tensors[i];
        const char *stored_name = back->name;
        const struct tensor *stored = tensor_set_find_text(way->checkpoint->tensors, stored_name);
        if (stored == NULL && family->prefix != NULL && text_starts_with(stored_name, family->prefix))
            stored = tensor_set_find_text(way->checkpoint->tensors, stored_name + strlen(family->prefix));
        bool is_norm = strstr(back->name, "norm") != NULL; /* which Gemma has with 1 added, in F16 to 10 bits */
        double most = stored != NULL ? difference(way, stored, back) : (double)INFINITY;
        double limit = stored != NULL && stored->dtype == &f16_dtype ? 4.9e-4 : 6e-8;
        if (!CHECK_NAMED(most == 0 || (is_norm && most < limit), back->name))
            fprintf(stderr, "  %s: %s: off by %g%s\n", name, back->name, most, stored == NULL ? ", not stored" : "");
    }
}

/* What is stored comes back, but for what a row leaves out. */
static void check_all_back(const struct way_back *way, const struct family *family)
{
    struct error error;
    struct dimensions dimensions;
    dimensions_read(&dimensions, way->hparams);
    const struct relation *relation = relation_new(way->arena, family->name, family->prefix, family->tensors, &error);
    for (size_t i = 0; i < way->checkpoint->tensors->n_tensors; i++) {
        struct relation_match match;
        const char *name = way->checkpoint->tensors->tensors[i].name;
        const char *prefixed = arena_printf(way->arena, "%s%s", family->prefix ? family->prefix : "", name);
        bool is_back =
            tensor_set_find_text(way->back, name) != NULL || tensor_set_find_text(way->back, prefixed) != NULL;
        bool is_dropped =
            relation_find(relation, FORWARD, &dimensions, NULL, name, &match) && match.entry->row->there == NULL;
        CHECK_NAMED(is_back || is_dropped, name);
    }
}

/* What config.json says of sizes is what the keys say. */
static void check_config(const struct way_back *way, const char *name)
{
    static const char *const keys[] = {"model_type",
                                       "hidden_size",
                                       "num_hidden_layers",
                                       "num_attention_heads",
                                       "num_key_value_heads",
                                       "vocab_size",
                                       "intermediate_size",
                                       "head_dim",
                                       "rope_theta",
                                       "rms_norm_eps",
                                       "num_local_experts",
                                       "num_experts",
                                       "num_experts_per_tok",
                                       "kv_lora_rank",
                                       "qk_nope_head_dim",
                                       "v_head_dim",
                                       "n_embd",
                                       "n_head",
                                       "layer_norm_epsilon",
                                       "max_position_embeddings"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct json *before = hparams_get(way->model->hparams, keys[i]),
                          *after = hparams_get(way->hparams, keys[i]);
        double x, y;
        if (!json_is(before, JSON_NUMBER) && !json_is(before, JSON_STRING))
            continue;
        bool is_same = json_double(before, &x) ? json_double(after, &y) && (float)x == (float)y
                                               : json_string_is(after, json_string(before, NULL));
        /* the same as llama */
        bool is_mistral = strcmp(keys[i], "model_type") == 0 && json_string_is(before, "mistral");
        CHECK_NAMED(is_same || is_mistral, keys[i]);
        if (!is_same && !is_mistral)
            fprintf(stderr, "  %s: %s\n", name, keys[i]);
    }
}

static void check_checkpoint(const char *path, const char *name)
{
    struct error error;
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &(struct open_options){0}, &error);
    struct way_back way = {.arena = arena_new(), .checkpoint = checkpoint};
    way.model = checkpoint != NULL ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    way.back = tensor_set_new(way.arena);
    bool came_back = way.model != NULL && come_back(&way, &error);
    CHECK_NAMED(came_back, name);
    if (came_back) {
        check_tensors(&way, name, way.model->family);
        check_all_back(&way, way.model->family);
        check_config(&way, name);
    } else {
        fprintf(stderr, "  %s: %s\n", name, error.message);
    }
    hparams_free(way.hparams);
    gguf_model_free(way.model);
    checkpoint_close(checkpoint);
    arena_free(way.arena);
}

int main(void)
{
    char directory[PATH_MAX], path[PATH_MAX * 2];
    const char *golden = getenv("WFS_GOLDEN");
    snprintf(directory, sizeof directory, "%s%s", golden ? golden : getenv("WFS_TEST_DATA"),
             golden ? "" : "/gguf/models");
    struct dirent **entries;
    int n = scandir(directory, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            check_checkpoint(path, entries[i]->d_name);
        free(entries[i]);
    }
    CHECK(n > 2);
    free(entries);
    return check_done();
}

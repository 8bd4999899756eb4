/* Hugging Face directories: weights in one file or in shards, with an index of shards or without.
 *
 * The choice of weights files follows transformers (model.safetensors, else the shards in model.safetensors.index.json;
 * without safetensors pytorch_model.bin and its shards) and diffusers (diffusion_pytorch_model instead of both names;
 * variants such as .fp16.safetensors do not count). Without these names: all shards of one set, or a single file.
 * Shards are read in the order of their names, as the converter to GGUF does, each in the format of its content. */
#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/components.h"
#include "formats/format.h"
#include "formats/huggingface/index.h"
#include "formats/shard_name.h"
#include "formats/unread.h"

#include <string.h>

/* The kinds of weights, the preferred one first. */
static const struct kind {
    const char *format; /* for -o format= */
    const char *suffix;
    const char *stems[3]; /* of the usual names, the preferred one first */
    bool names_differ;    /* an index spells the names of tensors otherwise than the shards do */
} kinds[] = {
    {"safetensors", ".safetensors", {"model", "diffusion_pytorch_model"}},
    {"torch", ".bin", {"pytorch_model", "diffusion_pytorch_model"}},
    {"numpy", ".npz", {"weights"}},
    {"torch", ".pt", {"model"}},
    {"torch", ".pth", {"model"}},
    {"torch", ".ckpt", {"model"}},
    {"torch", ".pdparams", {"model_state"}},
    {"hdf5", ".h5", {"tf_model"}, .names_differ = true}, /* with a scope that shards leave out */
    {"flax", ".msgpack", {"flax_model", "diffusion_flax_model"}, .names_differ = true}, /* joined by '/' */
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static const char of_weights[] = "", of_index[] = ".index.json"; /* endings after the suffix */

static bool has_ending(const struct kind *kind, const char *name, const char *after)
{
    size_t length = strlen(name), n_suffix = strlen(kind->suffix), n_after = strlen(after);
    return length >= n_suffix + n_after && strcmp(name + length - n_after, after) == 0 &&
           strncmp(name + length - n_after - n_suffix, kind->suffix, n_suffix) == 0;
}

static bool is_usual(const struct kind *kind, const char *stem, const char *name, const char *after)
{
    return has_ending(kind, name, after) && text_starts_with(name, stem) &&
           strlen(name) == strlen(stem) + strlen(kind->suffix) + strlen(after);
}

/* Returns the directory's file with a usual name, or NULL. */
static const char *find_usual(const struct input *input, const struct kind *kind, const char *after)
{
    for (const char *const *stem = kind->stems; *stem != NULL; stem++)
        for (size_t i = 0; i < input->list.count; i++)
            if (is_usual(kind, *stem, input->list.entries[i].name, after))
                return input->list.entries[i].name;
    return NULL;
}

/* Reports files of a trainer's state, which may lie beside the weights. */
static bool is_of_trainer(const char *name)
{
    static const char *const stems[] = {"training_args.", "optimizer.", "scheduler.", "scaler.", "rng_state"};
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
        if (text_starts_with(name, stems[i]))
            return true;
    return false;
}

static bool is_checkpoint(const struct input *input, const char *name)
{
    struct error unused;
    struct source *file = location_source(input->location, name, &unused);
    bool is_known = file != NULL && format_of_file(input->formats, file, &unused) != NULL;
    source_close(file);
    return is_known;
}

/* Reports whether a file may be weights of the kind, by its name, and, if the name is ambiguous, by its content. */
static bool is_weights(const struct input *input, const struct kind *kind, const char *name)
{
    struct shard_name shard;
    if (!has_ending(kind, name, of_weights) || *name == '.' || is_of_trainer(name))
        return false;
    for (const char *const *stem = kind->stems; *stem != NULL; stem++)
        if (is_usual(kind, *stem, name, of_weights))
            return true;
    const struct extension *extension = formats_extension(input->formats, name);
    return extension == NULL || !extension->shared || shard_name_parse(name, &shard) || is_checkpoint(input, name);
}

static bool is_index(const struct input *input, const struct kind *kind, const char *name)
{
    return has_ending(kind, name, of_index) && *name != '.';
}

static bool has_kind(const struct input *input, const struct kind *kind)
{
    for (size_t i = 0; i < input->list.count; i++)
        if (is_weights(input, kind, input->list.entries[i].name) || is_index(input, kind, input->list.entries[i].name))
            return true;
    return false;
}

static enum probe huggingface_probe(const struct input *input)
{
    enum probe surest = PROBE_NO;
    for (const struct kind *kind = kinds; input->file == NULL && kind < kinds + N_KINDS; kind++)
        if (find_usual(input, kind, of_weights) != NULL || find_usual(input, kind, of_index) != NULL)
            return PROBE_SURE;
        else if (has_kind(input, kind))
            surest = PROBE_LIKELY;
    return surest;
}

static const struct kind *choose_kind(const struct input *input, const char *wanted, struct error *error)
{
    bool any = wanted == NULL || strcmp(wanted, "huggingface") == 0;
    for (const struct kind *kind = kinds; kind < kinds + N_KINDS; kind++)
        if ((any || strcmp(kind->format, wanted) == 0) && has_kind(input, kind))
            return kind;
    error_set(error, "%s: this directory has no weights of the format %s", input->path, wanted);
    return NULL;
}

/* Returns "a, b and 3 others", in the arena. */
static const char *list_text(struct arena *arena, const char *const *names, size_t n_names)
{
    switch (n_names) {
    case 1:
        return arena_strdup(arena, names[0]);
    case 2:
        return arena_printf(arena, "%s and %s", names[0], names[1]);
    case 3:
        return arena_printf(arena, "%s, %s and %s", names[0], names[1], names[2]);
    default:
        return arena_printf(arena, "%s, %s and %zu others", names[0], names[1], n_names - 2);
    }
}

/* Returns the names that `belongs` accepts, in the arena. */
static const char *const *
select_names(struct arena *arena, const struct input *input, const struct kind *kind,
             bool (*belongs)(const struct input *input, const struct kind *kind, const char *name), size_t *ret_n_names)
{
    const char **names = arena_array(arena, input->list.count, sizeof *names);
    size_t n_names = 0;
    for (size_t i = 0; i < input->list.count; i++)
        if (belongs(input, kind, input->list.entries[i].name))
            names[n_names++] = input->list.entries[i].name;
    *ret_n_names = n_names;
    return names;
}

static bool is_usual_shard(const struct input *input, const struct kind *kind, const char *name)
{
    struct shard_name shard;
    if (!is_weights(input, kind, name) || !shard_name_parse(name, &shard))
        return false;
    for (const char *const *stem = kind->stems; *stem != NULL; stem++)
        if (strlen(*stem) == shard.stem_length && text_starts_with(name, *stem))
            return true;
    return false;
}

/* Checks that the sorted names are all shards of one set, and all of its shards. */
static bool check_set(struct arena *arena, const struct input *input, const struct shards *shards, struct error *error)
{
    struct shard_name first, shard;
    bool is_set = shard_name_parse(shards->names[0], &first);
    for (size_t i = 0; is_set && i < shards->n_names; i++)
        is_set = shard_name_parse(shards->names[i], &shard) && shard.stem_length == first.stem_length &&
                 shard.count == first.count && strncmp(shards->names[i], shards->names[0], first.stem_length) == 0;
    if (!is_set)
        return error_set(error, "%s: %s: without an index, it is unknown which files belong together; name one file",
                         input->path, list_text(arena, shards->names, shards->n_names));
    for (unsigned number = 1; number <= first.count; number++) {
        const char *name = arena_printf(arena, "%.*s-%05u-of-%05u%s", (int)first.stem_length, shards->names[0], number,
                                        first.count, first.suffix);
        if (number <= shards->n_names && strcmp(shards->names[number - 1], name) == 0)
            continue;
        error_set(error, "%s: %s is missing: %zu of %u shards found", input->path, name, shards->n_names, first.count);
        return unread_add_half_download(input, name, error);
    }
    return true;
}

static bool find_without_index(struct arena *arena, const struct input *input, const struct kind *kind,
                               struct shards *shards, struct error *error)
{
    const char *adapter = arena_printf(arena, "adapter_model%s", kind->suffix);
    if (!input_has(input, adapter))
        adapter = arena_printf(arena, "adapters%s", kind->suffix); /* mlx-lm's */
    shards->names = select_names(arena, input, kind, is_usual_shard, &shards->n_names);
    if (shards->n_names == 0 && input_has(input, "adapter_config.json") && input_has(input, adapter)) {
        shards->names = arena_copy(arena, &adapter, sizeof adapter);
        shards->n_names = 1;
        return true;
    }
    if (shards->n_names == 0)
        shards->names = select_names(arena, input, kind, is_weights, &shards->n_names);
    struct shard_name shard;
    if (shards->n_names == 1 && !shard_name_parse(shards->names[0], &shard))
        return true;
    if (shards->n_names > INDEX_MAX_SHARDS)
        return error_set(error, "%s: too many shards: %zu, the limit is %d", input->path, shards->n_names,
                         INDEX_MAX_SHARDS);
    return check_set(arena, input, shards, error);
}

/* Finds the index to use, or NULL; fails if the choice is not clear. */
static bool find_index(struct arena *arena, const struct input *input, const struct kind *kind, const char **ret_name,
                       struct error *error)
{
    size_t n_names;
    const char *const *names = select_names(arena, input, kind, is_index, &n_names);
    const char *usual = find_usual(input, kind, of_index);
    if (n_names > 1 && usual == NULL)
        return error_set(error, "%s: %s: several indexes; name one weights file", input->path,
                         list_text(arena, names, n_names));
    *ret_name = n_names == 1 ? names[0] : usual;
    return true;
}

/* Reports whether all shards of an index are there. */
static bool has_shards(const struct input *input, const struct shards *shards)
{
    for (size_t i = 0; i < shards->n_names; i++)
        if (location_kind(input->location, shards->names[i]) != LOCATION_FILE)
            return false;
    return true;
}

/* Chooses between the weights in one file and the shards of an index, of which one is old. The index is the authority,
 * unless a shard is missing: saving a model in one file removes old shards, but not their index. */
static void choose_shards(struct checkpoint *checkpoint, const struct input *input, const char *index_name,
                          const char *usual, struct shard_index *index, struct shards *shards)
{
    struct error unused;
    bool is_listed = false;
    if (!index_read(index, input->location, index_name, checkpoint, shards, &unused) || !has_shards(input, shards)) {
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s is not used, because %s exists", index_name, usual);
        index_free(index);
        *index = (struct shard_index){0};
        *shards = (struct shards){.names = arena_copy(checkpoint->arena, &usual, sizeof usual), .n_names = 1};
        return;
    }
    for (size_t i = 0; i < shards->n_names; i++)
        is_listed |= strcmp(shards->names[i], usual) == 0;
    if (!is_listed)
        checkpoint_note(checkpoint, SUBJECT_SOURCE,
                        "the shards of %s are read, as by the converter to GGUF, not %s, which transformers loads; "
                        "remove the older weights",
                        index_name, usual);
}

static bool find_shards(struct checkpoint *checkpoint, const struct input *input, const struct kind *kind,
                        struct shard_index *index, struct shards *shards, struct error *error)
{
    const char *index_name = NULL;
    if (!find_index(checkpoint->arena, input, kind, &index_name, error))
        return false;
    const char *usual = find_usual(input, kind, of_weights);
    if (usual != NULL && index_name != NULL)
        choose_shards(checkpoint, input, index_name, usual, index, shards);
    else if (usual != NULL)
        *shards = (struct shards){.names = arena_copy(checkpoint->arena, &usual, sizeof usual), .n_names = 1};
    else if (index_name != NULL)
        return index_read(index, input->location, index_name, checkpoint, shards, error);
    else
        return find_without_index(checkpoint->arena, input, kind, shards, error);
    return true;
}

/* Adds to the error of a shard that cannot be opened. */
static bool explain_missing(const struct input *input, const struct shard_index *index, const char *name,
                            struct error *error)
{
    if (index->name != NULL)
        error_prefix(error, "%s", index->name);
    return location_kind(input->location, name) == LOCATION_NOTHING && unread_add_half_download(input, name, error);
}

static bool read_shards(struct checkpoint *checkpoint, const struct input *input, const struct shard_index *index,
                        struct shards *shards, const struct open_options *options, struct error *error)
{
    shards->first_tensors = arena_array(checkpoint->arena, shards->n_names + 1, sizeof *shards->first_tensors);
    for (size_t i = 0; i < shards->n_names; i++) {
        struct source *shard = location_source(input->location, shards->names[i], error);
        if (shard == NULL)
            return explain_missing(input, index, shards->names[i], error);
        if (!format_read_file(checkpoint, shard, checkpoint->unsealed, options, error))
            return false;
        shards->first_tensors[i + 1] = checkpoint->tensors->n_tensors;
    }
    return true;
}

static void note_differing(const struct checkpoint *checkpoint)
{
    const struct gguf_kvs *keys = &checkpoint->differing;
    if (keys->n_kvs == 1)
        checkpoint_note(checkpoint, SUBJECT_SOURCE,
                        "the shards differ in the metadata key '%.200s': the first shard's value is shown",
                        keys->kvs[0].key);
    else if (keys->n_kvs > 1)
        checkpoint_note(checkpoint, SUBJECT_SOURCE,
                        "the shards differ in %zu metadata keys, first '%.200s': the first shard's values are shown",
                        keys->n_kvs, keys->kvs[0].key);
}

static bool huggingface_open(struct checkpoint *checkpoint, const struct input *input,
                             const struct open_options *options, struct error *error)
{
    const struct kind *kind = choose_kind(input, options->format, error);
    if (kind == NULL)
        return false;
    struct shard_index index = {.name = NULL};
    struct shards shards;
    bool opened =
        find_shards(checkpoint, input, kind, &index, &shards, error) &&
        read_shards(checkpoint, input, &index, &shards, options, error) &&
        (index.document == NULL || kind->names_differ || index_check(&index, checkpoint, &shards, options, error));
    index_free(&index);
    if (!opened)
        return false;
    note_differing(checkpoint);
    format_add_side_files(checkpoint, input);
    return true;
}

const struct format huggingface_format = {
    .name = "huggingface",
    .directory_name = "pytorch_model.bin",
    .summary = "a Hugging Face directory: one weights file, or shards with or without an index",
    .probe = huggingface_probe,
    .open = huggingface_open,
};

/* Directories of components alone, without tensors of their own: the root of a diffusers pipeline, and
 * sentence-transformers models whose transformer is in a folder, too. */

/* Recognizes such directories. Weights beside model_index.json are the whole pipeline in its authors' own form; beside
 * modules.json they are the model. */
static enum probe pipeline_probe(const struct input *input)
{
    if (input->components == NULL)
        return PROBE_NO;
    if (input_has(input, "model_index.json"))
        return PROBE_SURE;
    return input->components->alone ? PROBE_LIKELY : PROBE_NO;
}

static bool pipeline_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                          struct error *error)
{
    if (!options->components)
        return components_ask_for_one(input->components, error);
    struct source *list = location_source(input->location, input->components->list, error);
    if (list == NULL)
        return false;
    checkpoint_add_guide(checkpoint, list);
    format_add_side_files(checkpoint, input);
    return true;
}

const struct format pipeline_format = {
    .name = "pipeline",
    .directory_name = "model_index.json",
    .summary = "a directory with several checkpoints in folders: diffusers pipelines (model_index.json)",
    .probe = pipeline_probe,
    .open = pipeline_open,
};

#include "formats/checkpoint_builder.h"

#include "base/buffer.h"
#include "base/text.h"
#include "formats/components.h"
#include "formats/huggingface/hub_cache.h"
#include "formats/shard_name.h"
#include "formats/unread.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_NAME = 200 };

static enum location_links links_of(bool follow_links)
{
    return follow_links ? LOCATION_FOLLOW : LOCATION_INSIDE;
}

static bool read_head(struct input *input, struct error *error)
{
    uint64_t size = source_size(input->file);
    input->head_length = size < sizeof input->head ? (size_t)size : sizeof input->head;
    return source_read(input->file, 0, input->head_length, input->head, error);
}

/* Opens the named file, and reads its beginning. */
static bool open_named_file(struct input *input, struct error *error)
{
    input->file = location_source(input->location, input->file_name, error);
    if (input->file == NULL)
        return false;
    return read_head(input, error);
}

static bool list_names(struct arena *arena, struct input *input, struct error *error)
{
    return location_list(input->location, "", arena, &input->list, error) || error_prefix(error, "%s", input->path);
}

/* Lists the names beside a file, unless the caller has them. */
static bool list_names_beside(struct arena *arena, struct input *input, const struct folder_names *given,
                              struct error *error)
{
    if (given == NULL && !list_names(arena, input, error))
        return false;
    const struct folder_names names = given != NULL ? *given : folder_names_of(&input->list, arena);
    input->list = names.all;
    input->known = names.known;
    return true;
}

/* Opens the input's path, which becomes the chosen snapshot's if it names a repository. */
static bool open_input(struct arena *arena, struct input *input, enum location_links links,
                       const struct folder_names *names, struct error *error)
{
    const char *file = NULL;
    input->path = hub_cache_resolve(arena, input->path, input->formats, links, error);
    if (input->path == NULL)
        return false;
    if (*input->path == '\0')
        return error_set(error, "the source name is empty; is a variable unset?");
    input->location = location_open(input->path, links, &file, error);
    if (input->location == NULL)
        return false;
    input->path = location_shown(input->path, arena);
    input->file_name = file != NULL ? arena_strdup(arena, file) : NULL;
    if (file == NULL)
        return list_names(arena, input, error);
    return open_named_file(input, error) && list_names_beside(arena, input, names, error);
}

static void close_input(struct input *input)
{
    source_close(input->file);
    location_close(input->location);
}

bool input_has(const struct input *input, const char *name)
{
    return location_list_has(&input->list, name);
}

const struct format *format_of_name(const struct format *const *formats, const char *name, struct error *error)
{
    struct buffer known = {0};
    struct text_guess guess = {.typed = name};
    char question[TEXT_QUESTION];
    for (const struct format *const *format = formats; *format != NULL; format++) {
        if (strcmp((*format)->name, name) == 0) {
            buffer_free(&known);
            return *format;
        }
        text_guess_try(&guess, (*format)->name);
        buffer_printf(&known, "%s%s", known.length > 0 ? ", " : "", (*format)->name);
    }
    error_set(error, "'%s' is not a format (known: %.*s)%s", name, (int)known.length, (const char *)known.bytes,
              text_guess_question(&guess, question));
    buffer_free(&known);
    return NULL;
}

const struct extension *format_extension(const struct format *format, const char *name)
{
    for (const struct extension *one = format->extensions; one != NULL && one->text != NULL; one++)
        if (text_ends_with(name, one->text))
            return one;
    return NULL;
}

const struct extension *formats_extension(const struct format *const *formats, const char *name)
{
    const struct extension *found = NULL;
    for (const struct format *const *format = formats; *format != NULL && found == NULL; format++)
        found = format_extension(*format, name);
    return found;
}

/* Returns the surest format for the input; NULL, with an error, if two are equally sure or none fits. */
static const struct format *choose_format(const struct input *input, struct error *error)
{
    const struct format *best = NULL, *rival = NULL;
    enum probe surest = PROBE_NO;
    if (input->file != NULL && !unread_check_content(input, error))
        return NULL;
    for (const struct format *const *format = input->formats; *format != NULL; format++) {
        enum probe sure = (*format)->probe(input);
        if (sure > surest) {
            best = *format;
            rival = NULL;
            surest = sure;
        } else if (sure == surest && sure != PROBE_NO) {
            rival = *format;
        }
    }
    if (rival != NULL) {
        error_set(error, "%s: could be %s or %s; choose with -o format=", input->path, best->name, rival->name);
        return NULL;
    }
    if (surest <= PROBE_MAYBE && !unread_check_text(input, error))
        return NULL;
    if (best == NULL)
        unread_explain(input, error);
    return best;
}

/* Returns the format that the user requests; for a directory, that may also be the format of its files. */
static const struct format *choose_wanted_format(const struct input *input, const char *wanted, struct error *error)
{
    const struct format *format = format_of_name(input->formats, wanted, error);
    if (format == NULL || format->probe(input) != PROBE_NO)
        return format;
    if (input->file == NULL && format->read_file != NULL)
        return choose_format(input, error);
    error_set(error, "%s: not in the format %s", input->path, wanted);
    return NULL;
}

const struct format *format_of_file(const struct format *const *formats, struct source *file, struct error *error)
{
    struct input input = {.formats = formats, .path = source_name(file), .file_name = source_name(file), .file = file};
    return read_head(&input, error) ? choose_format(&input, error) : NULL;
}

/* Adds a weights file, and its tensors to the set. Takes the file. */
static bool read_as(struct checkpoint *checkpoint, const struct format *format, struct source *file,
                    struct tensor_set *tensors, const struct open_options *options, struct error *error)
{
    checkpoint_add_source(checkpoint, file);
    checkpoint->file_format = format;
    return format->read_file(checkpoint, file, tensors, options, error);
}

bool format_read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error)
{
    const struct format *format = format_of_file(checkpoint->formats, file, error);
    if (format != NULL)
        return read_as(checkpoint, format, file, tensors, options, error);
    source_close(file);
    return false;
}

/* Returns a file's name without its suffix, and without the number of a shard. */
static const char *stem(struct arena *arena, const char *file_name)
{
    struct shard_name shard;
    const char *dot = strrchr(file_name, '.');
    if (shard_name_parse(file_name, &shard))
        return arena_strndup(arena, file_name, shard.stem_length);
    return dot != NULL && dot != file_name ? arena_strndup(arena, file_name, (size_t)(dot - file_name)) : file_name;
}

/* Returns the name of the model's directory or repository, or that of a single file in any other directory. */
static const char *model_name(struct arena *arena, const struct input *input)
{
    bool is_snapshot, is_repository;
    const char *named = input->location != NULL ? location_model(input->location, &is_repository) : NULL;
    if (named != NULL && (input->file_name == NULL || is_repository || input_is_model_directory(input)))
        return arena_strdup(arena, named);
    if (named != NULL)
        return stem(arena, input->file_name);
    char *path = arena_strdup(arena, input->path);
    const char *of_directory =
        hub_cache_model_name(arena, input->file_name != NULL ? dirname(path) : path, &is_snapshot);
    if (input->file_name == NULL || is_snapshot || input_is_model_directory(input))
        return of_directory;
    return stem(arena, input->file_name);
}

static void note_single_shard(struct checkpoint *checkpoint, const char *file_name, const struct open_options *options)
{
    struct shard_name shard;
    if (shard_name_parse(file_name, &shard) && shard.count > 1)
        checkpoint_lacks(checkpoint, options, "%s: only one of %u shards; name the directory for all tensors",
                         file_name, shard.count);
}

static void set_format(struct checkpoint *checkpoint, const struct format *format)
{
    checkpoint->format = format->name;
    checkpoint->kind = format->kind;
}

/* Reports whether the weights are a LoRA adapter's, by the names of the files of peft and mlx-lm. */
static bool is_adapter(const struct checkpoint *checkpoint)
{
    return checkpoint->kind == CHECKPOINT_WEIGHTS && checkpoint->n_sources > 0 &&
           (text_starts_with(source_name(checkpoint->sources[0]), "adapter_model.") ||
            strcmp(source_name(checkpoint->sources[0]), "adapters.safetensors") == 0) &&
           checkpoint_side_file(checkpoint, "adapter_config.json") != NULL;
}

/* Reads the input's file, and adds the side files of its directory. */
static bool read_single_file(struct checkpoint *checkpoint, const struct format *format, struct input *input,
                             const struct open_options *options, struct error *error)
{
    struct source *file = input->file;
    input->file = NULL;
    if (!read_as(checkpoint, format, file, checkpoint->unsealed, options, error))
        return false;
    note_single_shard(checkpoint, input->file_name, options);
    format_add_side_files(checkpoint, input);
    return true;
}

/* Reports whether a tensor's numbers are in the source, but could not be read, and are not an optimizer's. */
static bool is_lost(const struct tensor *tensor)
{
    return tensor->refusal != NULL && !tensor->is_no_number &&
           !tensor_is_of_optimizer(tensor->name, tensor->name_length);
}

static void note_lost(struct checkpoint *checkpoint, const struct open_options *options)
{
    const struct tensor *first = NULL;
    char shown[SHOWN_NAME], others[64] = "";
    size_t n_lost = 0;
    for (size_t i = checkpoint->tensors->n_tensors; i-- > 0;)
        if (is_lost(&checkpoint->tensors->tensors[i])) {
            first = &checkpoint->tensors->tensors[i];
            n_lost++;
        }
    if (n_lost == 0)
        return;
    text_printable(first->name, first->name_length, shown, sizeof shown);
    if (n_lost > 1)
        snprintf(others, sizeof others, ", nor can %zu other tensor%s", n_lost - 1, n_lost == 2 ? "" : "s");
    checkpoint_lacks(checkpoint, options, "tensor '%s' cannot be read (%s)%s", shown, first->refusal, others);
}

static bool fill_in(struct checkpoint *checkpoint, struct input *input, const struct open_options *options,
                    struct error *error)
{
    const struct format *format =
        options->format != NULL ? choose_wanted_format(input, options->format, error) : choose_format(input, error);
    if (format == NULL)
        return false;
    set_format(checkpoint, format);
    checkpoint->model_name = options->name ? options->name : model_name(checkpoint->arena, input);
    bool is_read = format->open != NULL ? format->open(checkpoint, input, options, error)
                                        : read_single_file(checkpoint, format, input, options, error);
    if (is_read && checkpoint->tensors->n_tensors == 0 && checkpoint->file_format != NULL &&
        checkpoint->file_format->needs_tensors)
        checkpoint->incomplete = "the source contains no tensors";
    if (is_read)
        note_lost(checkpoint, options);
    if (is_read && is_adapter(checkpoint))
        checkpoint->kind = CHECKPOINT_ADAPTER;
    return is_read;
}

/* Fills in a directory's side files alone. */
static void fill_in_side_files(struct checkpoint *checkpoint, const struct input *input, const char *name)
{
    checkpoint->format = "side files";
    checkpoint->model_name = name;
    format_add_side_files(checkpoint, input);
}

/* Closes the input; returns the checkpoint, or NULL if opening it failed. */
static struct checkpoint *done(struct checkpoint *checkpoint, struct input *input, bool opened)
{
    close_input(input);
    memory_trim(); /* parsers leave holes larger than their results */
    if (opened)
        return checkpoint;
    checkpoint_close(checkpoint);
    return NULL;
}

/* Keeps the location for the components, which are opened later, even if the path then leads elsewhere. */
static void keep_components(struct checkpoint *checkpoint, struct input *input, struct components *components,
                            const struct open_options *options)
{
    if (components == NULL)
        return;
    checkpoint->components = components;
    components->formats = input->formats;
    components->options = *options;
    if (options->format != NULL && strcmp(options->format, checkpoint->format) == 0 && checkpoint->n_sources == 0)
        components->options.format = NULL;
    components->location = input->location;
    input->location = NULL;
}

/* Makes a checkpoint whose path shows no secret of a URL. */
static struct checkpoint *checkpoint_new_shown(const char *path, const struct format *const *formats, bool follow_links)
{
    struct arena *arena = arena_new();
    struct checkpoint *checkpoint = checkpoint_new(location_shown(path, arena));
    arena_free(arena);
    checkpoint->formats = formats;
    checkpoint->follows_links = follow_links;
    return checkpoint;
}

const struct checkpoint *checkpoint_open(const char *path, const struct format *const *formats,
                                         const struct open_options *options, struct error *error)
{
    struct checkpoint *checkpoint = checkpoint_new_shown(path, formats, options->follow_links);
    struct input input = {.formats = formats, .path = path, .companions = options->companions};
    bool opened = open_input(checkpoint->arena, &input, links_of(options->follow_links), options->names, error);
    struct components *components = opened ? components_find(checkpoint, &input) : NULL;
    input.components = components;
    opened = opened && fill_in(checkpoint, &input, options, error) && checkpoint_seal(checkpoint, error);
    if (opened)
        keep_components(checkpoint, &input, components, options);
    return done(checkpoint, &input, opened);
}

const struct checkpoint *checkpoint_open_side_files(const char *path, const struct format *const *formats,
                                                    bool follow_links, struct error *error)
{
    struct checkpoint *checkpoint = checkpoint_new_shown(path, formats, follow_links);
    struct input input = {.formats = formats, .path = path};
    bool opened = open_input(checkpoint->arena, &input, links_of(follow_links), NULL, error) &&
                  (input.file == NULL || error_set(error, "%s: not a directory", path)) &&
                  checkpoint_seal(checkpoint, error);
    if (opened)
        fill_in_side_files(checkpoint, &input, model_name(checkpoint->arena, &input));
    return done(checkpoint, &input, opened);
}

static const char *path_below(struct arena *arena, const char *directory, const char *name)
{
    return arena_printf(arena, "%s%s%s", directory, text_ends_with(directory, "/") ? "" : "/", name);
}

const struct checkpoint *checkpoint_open_component(const struct checkpoint *whole, const struct component *component,
                                                   const struct error *failure, struct error *error)
{
    const struct components *components = whole->components;
    struct open_options options = components->options;
    struct arena *arena = arena_new();
    struct checkpoint *checkpoint = checkpoint_new(path_below(arena, whole->path, component->name));
    struct input input = {.formats = components->formats,
                          .path = path_below(checkpoint->arena, components->path, component->name)};
    arena_free(arena);
    checkpoint->formats = components->formats;
    checkpoint->follows_links = options.follow_links;
    options.name = component->name; /* the folder's name: the user's name is for the whole */
    input.location = location_folder(components->location, component->name, input.path, error);
    bool opened = input.location != NULL && list_names(checkpoint->arena, &input, error);
    opened = opened && (failure != NULL || fill_in(checkpoint, &input, &options, error)) &&
             checkpoint_seal(checkpoint, error);
    if (opened && failure != NULL) {
        checkpoint->failure = arena_strdup(checkpoint->arena, failure->message);
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "the weights cannot be used: %s", failure->message);
        fill_in_side_files(checkpoint, &input, component->name);
    }
    return done(checkpoint, &input, opened);
}

const struct checkpoint *checkpoint_of_source(struct source *file, const struct format *const *formats,
                                              struct error *error)
{
    const struct open_options options = {0};
    struct checkpoint *checkpoint = checkpoint_new(source_name(file));
    checkpoint->formats = formats;
    checkpoint->model_name = checkpoint->path;
    if (format_read_file(checkpoint, file, checkpoint->unsealed, &options, error)) {
        set_format(checkpoint, checkpoint->file_format);
        if (checkpoint_seal(checkpoint, error))
            return checkpoint;
    }
    checkpoint_close(checkpoint);
    return NULL;
}

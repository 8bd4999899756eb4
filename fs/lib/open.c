/* Opening sources, for wfs.h and for commands, and their notes. */
#include "base/arena.h"
#include "base/opener.h"
#include "base/text.h"
#include "fs/lib/lib.h"
#include "fs/lib/library.h"
#include "models/derive/derive.h"
#include "models/formats.h"
#include "sources/archive/location.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const struct wfs_context program; /* with the program's pool and messages */

bool lib_name_directory(const char *source, struct error *error)
{
    struct stat status;
    struct arena *arena = arena_new();
    bool is_there = opener_stat_at(AT_FDCWD, source, &status, 0);
    const char *slash = strrchr(source, '/');
    size_t length = is_there && S_ISDIR(status.st_mode) ? strlen(source) : slash != NULL ? (size_t)(slash - source) : 0;
    while (length > 1 && source[length - 1] == '/')
        length--;
    const char *directory = arena_strndup(arena, source, length);
    const char *name = arena_strndup(arena, error->message, strcspn(error->message, ":"));
    if (is_there && length > 0 && !text_starts_with(error->message, source) &&
        opener_stat_at(AT_FDCWD, arena_printf(arena, "%s/%s", directory, name), &status, 0)) {
        const struct error inner = *error;
        error_set(error, "%s/%s", directory, inner.message);
        error_set_code(error, inner.code);
    }
    arena_free(arena);
    return false;
}

const struct checkpoint *lib_open_checkpoint(const char *source, const struct options *options, struct error *error)
{
    if (options->library) {
        error_set(error, "option library: %s is opened as one model; name a model in it", source);
        return NULL;
    }
    const struct checkpoint *read = checkpoint_open(source, formats, &options->open, error);
    const struct derive_options wanted = {.loras = options->loras,
                                          .recipe = options->recipe,
                                          .base = options->content.request.base,
                                          .architecture = options->architecture,
                                          .dense_modules = options->content.request.references.converter.dense_modules,
                                          .whisper = options->whisper};
    return read != NULL ? derive(read, &wanted, error) : NULL;
}

static struct tree *open_tree(const char *source, bool components, const struct options *options, struct error *error)
{
    struct options opening = *options;
    opening.open.components = components;
    const struct checkpoint *checkpoint = lib_open_checkpoint(source, &opening, error);
    if (checkpoint == NULL)
        lib_name_directory(source, error);
    struct tree *tree = checkpoint != NULL ? tree_new(checkpoint, &options->content, error) : NULL;
    if (tree == NULL)
        checkpoint_close(checkpoint);
    return tree;
}

struct tree *lib_open(const char *source, const struct options *options, struct error *error)
{
    size_t archive = archive_prefix(source);
    bool is_whole = archive > 0 && source[archive + strspn(source + archive, "/")] == '\0';
    struct tree *tree = options->library || is_whole ? NULL : open_tree(source, true, options, error);
    if (tree == NULL && (options->library || archive_prefix(source) > 0))
        tree = library_open(&source, 1, options, error);
    return tree;
}

struct tree *lib_open_model(const char *source, const struct options *options, struct error *error)
{
    return open_tree(source, false, options, error);
}

void lib_close_tree(struct tree *tree)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    tree_free(tree);
    checkpoint_close(checkpoint);
}

wfs_model *lib_model(struct tree *tree, const struct options *options)
{
    wfs_model *model = memory_alloc(sizeof *model);
    *model = (struct wfs_model){.context = &program, .options = options, .tree = tree};
    return model;
}

bool lib_check_unchanged(const struct origin *origin, struct error *error)
{
    if (!origin_changed(origin))
        return true;
    error_set(error, "a source has changed since it was opened; open the model again");
    return error_set_code(error, ESTALE);
}

struct opening {
    const wfs_context *context;
    const char *source;
    const char *const *words;
    struct options *options; /* the model's; freed if it cannot be opened */
    wfs_model *model;
};

bool lib_parse_options(struct options *options, const char *const *words, struct error *error)
{
    options->for_library = true;
    if (!options_parse_list(options, words, error))
        return error_set_code(error, options->has_bad_file ? EIO : EINVAL);
    return remote_settle(&options->open.remote, error) || error_set_code(error, EINVAL);
}

/* If memory runs out, the attempt has freed what options hold. */
static bool open_model(void *context, struct error *error)
{
    struct opening *opening = context;
    if (opening->source == NULL)
        return lib_misuse(error, "no source is given");
    opening->options = memory_alloc(sizeof *opening->options);
    options_init(opening->options);
    bool parsed = lib_parse_options(opening->options, opening->words, error);
    struct tree *tree = parsed ? lib_open(opening->source, opening->options, error) : NULL;
    if (tree == NULL) {
        options_free(opening->options);
        return false;
    }
    opening->model = memory_alloc(sizeof *opening->model);
    *opening->model = (struct wfs_model){opening->context, opening->options, opening->options, tree};
    return true;
}

wfs_model *wfs_open(wfs_context *context, const char *source, const char *const *options, struct wfs_error *ret_error)
{
    struct opening opening = {context, source, options, NULL, NULL};
    if (lib_call(context, open_model, &opening, ret_error))
        return opening.model;
    if (opening.model != NULL) /* stopped afterwards */
        wfs_close(opening.model);
    else
        free(opening.options);
    return NULL;
}

static bool close_model(void *context, struct error *error)
{
    wfs_model *model = context;
    lib_close_tree(model->tree);
    if (model->own_options != NULL)
        options_free(model->own_options);
    free(model->own_options);
    free(model);
    return true;
}

void wfs_close(wfs_model *model)
{
    if (model != NULL)
        lib_call(model->context, close_model, model, NULL);
}

size_t wfs_note_count(wfs_model *model)
{
    return checkpoint_notes(tree_checkpoint(model->tree));
}

const char *wfs_note(wfs_model *model, size_t index)
{
    return index < wfs_note_count(model) ? checkpoint_note_at(tree_checkpoint(model->tree), index).text : NULL;
}

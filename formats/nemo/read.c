/* NeMo's archives: a tar of model_config.yaml, model_weights.ckpt, and files such as tokenizers.
 *
 * model_weights.ckpt is a torch checkpoint, which is read where it lies; the other files are side files. Archives whose
 * weights are a folder (distributed checkpoints) are refused. An archive compressed by gzip, as older releases wrote
 * it, is inflated as a whole when it is opened, to find its members, and then piece by piece. */
#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/nemo/tar.h"
#include "formats/zip/deflate_index.h"
#include "sources/paths.h"
#include "sources/source.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_MEMBERS = 65536, MAX_SIDE_FILES = 4096 };

static const char weights_name[] = "model_weights.ckpt", weights_folder[] = "model_weights/";

struct reader {
    struct checkpoint *checkpoint;
    struct source *file;
    struct source *weights; /* NULL: not found yet; the checkpoint's */
    bool has_folder;        /* of weights */
};

static struct source *member_source(const struct reader *reader, const char *name, const struct tar_member *member)
{
    return source_range_new(reader->file, name, member->offset, member->size);
}

static bool take_weights(struct reader *reader, const struct tar_member *member, struct error *error)
{
    struct arena *arena = reader->checkpoint->arena;
    if (reader->weights != NULL)
        return error_set(error, "%s: two members named %s", source_name(reader->file), weights_name);
    const char *name = arena_printf(arena, "%s: %s", source_name(reader->file), weights_name);
    reader->weights = member_source(reader, name, member);
    checkpoint_add_source(reader->checkpoint, reader->weights);
    return true;
}

static bool take_member(struct reader *reader, const struct tar_member *member, struct error *error)
{
    const char *name = member->name + (strncmp(member->name, "./", 2) == 0 ? 2 : 0);
    reader->has_folder |= text_starts_with(name, weights_folder);
    if (!member->is_file || !inner_path(name, strlen(name)))
        return true;
    if (strcmp(name, weights_name) == 0)
        return take_weights(reader, member, error);
    struct checkpoint *checkpoint = reader->checkpoint;
    if (text_starts_with(name, weights_folder))
        return true;
    if (checkpoint->n_side_files == MAX_SIDE_FILES)
        return error_set(error, "%s: more than %d files beside the weights", source_name(reader->file), MAX_SIDE_FILES);
    checkpoint_add_side_file(checkpoint, arena_strdup(checkpoint->arena, name), member_source(reader, name, member));
    return true;
}

static bool read_members(struct reader *reader, struct error *error)
{
    struct tar tar = {.source = reader->file};
    struct tar_member *member = memory_alloc(sizeof *member);
    bool good = true, more = true;
    size_t n_members = 0;
    while (good && more) {
        good = tar_next(&tar, member, &more, error);
        if (good && more)
            good = take_member(reader, member, error);
        if (good && n_members++ == MAX_MEMBERS)
            good = error_set(error, "%s: more than %d members", source_name(reader->file), MAX_MEMBERS);
    }
    free(member);
    return good;
}

static int compare_side_files(const void *a, const void *b)
{
    return strcmp(((const struct side_file *)a)->name, ((const struct side_file *)b)->name);
}

/* Sorts the side files; fails on two of one name. */
static bool sort_side_files(const struct reader *reader, struct error *error)
{
    struct side_file *files = reader->checkpoint->side_files;
    size_t n = reader->checkpoint->n_side_files;
    if (n > 0)
        qsort(files, n, sizeof *files, compare_side_files);
    for (size_t i = 1; i < n; i++)
        if (strcmp(files[i - 1].name, files[i].name) == 0)
            return error_set(error, "%s: two members named %.200s", source_name(reader->file), files[i].name);
    return true;
}

static bool nemo_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                      struct error *error)
{
    struct reader reader = {.checkpoint = checkpoint,
                            .file = location_source(input->location, input->file_name, error)};
    if (reader.file == NULL)
        return false;
    checkpoint_add_source(checkpoint, reader.file);
    if (gzip_begins(input->head, input->head_length)) {
        reader.file = gzip_source_new(reader.file, error);
        if (reader.file == NULL)
            return false;
        checkpoint_add_source(checkpoint, reader.file);
    }
    if (!read_members(&reader, error))
        return false;
    if (reader.weights == NULL)
        return error_set(error, "%s: %s", source_name(reader.file),
                         reader.has_folder ? "the weights are a distributed checkpoint; unpack the archive with tar"
                                           : "model_weights.ckpt is missing");
    return sort_side_files(&reader, error) &&
           torch_format.read_file(checkpoint, reader.weights, checkpoint->unsealed, options, error);
}

static enum probe nemo_probe(const struct input *input)
{
    bool is_named = input->file != NULL && format_extension(&nemo_format, input->file_name) != NULL;
    return is_named && input->location != NULL ? PROBE_SURE : PROBE_NO;
}

static const struct extension extensions[] = {{".nemo", .alone = true}, {0}};

const struct format nemo_format = {
    .name = "nemo",
    .extensions = extensions,
    .summary = "NeMo archives: .nemo",
    .probe = nemo_probe,
    .open = nemo_open,
};

/* DeepSpeed ZeRO checkpoints of stages 1 to 3: a directory with the file `latest`, which names a folder, or that
 * folder.
 *
 * Shows the model's parameters in F32, as zero_to_fp32.py would write them, from the parts of all ranks (gather.h).
 * Nothing is copied, and the optimizer's moments are not shown. Checkpoints of tensor, pipeline or expert parallel
 * training, whose files have further numbers in their names, are refused. */
#include "base/text.h"
#include "formats/deepspeed/gather.h"
#include "formats/format.h"
#include "formats/torch/tensors.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 65536, MAX_TAG = 255 };

static const char latest_name[] = "latest";
static const char model_ending[] = "mp_rank_00_model_states.pt", optimizer_ending[] = "mp_rank_00_optim_states.pt";

/* The files in the folder, by rank; NULL where one is missing. */
struct names {
    const char **models, **optimizers;
    unsigned n_models, n_optimizers;
    bool has_others; /* of other ways to cut a model */
};

static bool is_optimizer(const char *name)
{
    return text_ends_with(name, "_optim_states.pt");
}

static bool is_model(const char *name)
{
    return text_ends_with(name, "model_states.pt");
}

static bool has_files(const struct location_list *list)
{
    bool has_model = false, has_optimizer = false;
    for (size_t i = 0; i < list->count; i++) {
        has_model |= is_model(list->entries[i].name);
        has_optimizer |= is_optimizer(list->entries[i].name);
    }
    return has_model && has_optimizer;
}

/* Reads the name of the folder from `latest`; false if it is none. */
static bool read_latest(const struct input *input, char folder[MAX_TAG + 1])
{
    struct error unused;
    size_t length;
    struct source *source =
        input_has(input, latest_name) ? location_source(input->location, latest_name, &unused) : NULL;
    char *text = source != NULL ? source_read_text(source, MAX_TAG, &length, &unused) : NULL;
    bool is_name = text != NULL && strchr(text, '/') == NULL && *text != '.';
    if (is_name)
        snprintf(folder, MAX_TAG + 1, "%.*s", (int)strcspn(text, "\r\n"), text);
    free(text);
    source_close(source);
    return is_name && *folder != '\0';
}

/* Finds the folder with the files: "" for the input itself. Lists it in the arena. */
static bool find_folder(const struct input *input, struct arena *arena, char folder[MAX_TAG + 1],
                        struct location_list *list)
{
    struct error unused;
    *folder = '\0';
    *list = input->list;
    if (has_files(list))
        return true;
    return read_latest(input, folder) && location_list(input->location, folder, arena, list, &unused) &&
           has_files(list);
}

/* Returns the rank in "zero_pp_rank_3_mp_rank_00 ..."; 0 if there is none. */
static unsigned long rank_of(const char *name)
{
    static const char mark[] = "zero_pp_rank_";
    const char *found = strstr(name, mark);
    return found != NULL ? strtoul(found + strlen(mark), NULL, 10) : 0;
}

static unsigned add_name(struct names *names, const char **of_rank, unsigned n, size_t most, const char *name)
{
    unsigned long rank = rank_of(name);
    names->has_others |= rank >= most || of_rank[rank] != NULL;
    if (rank < most)
        of_rank[rank] = name;
    return n + 1;
}

static struct names find_names(const struct location_list *list, struct arena *arena)
{
    struct names names = {arena_array(arena, list->count + 1, sizeof(char *)),
                          arena_array(arena, list->count + 1, sizeof(char *)), 0, 0, false};
    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->entries[i].name;
        if (text_ends_with(name, model_ending))
            names.n_models = add_name(&names, names.models, names.n_models, list->count, name);
        else if (text_ends_with(name, optimizer_ending))
            names.n_optimizers = add_name(&names, names.optimizers, names.n_optimizers, list->count, name);
        else
            names.has_others |= is_model(name) || is_optimizer(name);
    }
    return names;
}

struct reader {
    struct checkpoint *checkpoint;
    const struct input *input;
    const struct open_options *options;
    const char *folder;       /* with a '/' at its end, or "" */
    struct checkpoint *parts; /* what torch's reader finds in the files: tensors, and notes about each of many files */
    struct arena *scratch;
};

/* Reads the tensors of a file, and, if wanted, its other values. */
static bool read_file(const struct reader *reader, const char *name, bool with_values, struct zero_file *file,
                      struct error *error)
{
    struct checkpoint *checkpoint = reader->checkpoint;
    struct pickle *pickle = arena_alloc(reader->scratch, sizeof *pickle);
    struct tensor_set *tensors = tensor_set_new(reader->parts->arena);
    const char *path = arena_printf(reader->scratch, "%s%s", reader->folder, name);
    file->source = location_source(reader->input->location, path, error);
    if (file->source == NULL)
        return false;
    checkpoint_add_source(checkpoint, file->source);
    if (!torch_format.read_file(reader->parts, file->source, tensors, reader->options, error) ||
        !tensor_set_seal(tensors, error))
        return false;
    file->tensors = tensors;
    if (!with_values)
        return true;
    file->values = torch_values_read(pickle, file->source, reader->scratch, error) ? pickle->root : NULL;
    return file->values != NULL;
}

/* Reads the files of the ranks 0 to n - 1, and the values of the first. */
static const struct zero_file *read_files(const struct reader *reader, const char *const *names, unsigned n,
                                          struct error *error)
{
    struct zero_file *files = arena_array(reader->scratch, n, sizeof *files);
    for (unsigned rank = 0; rank < n; rank++) {
        if (names[rank] == NULL) {
            error_set(error, "%s: a file of rank %u is missing", reader->input->path, rank);
            return NULL;
        }
        if (!read_file(reader, names[rank], rank == 0, &files[rank], error))
            return NULL;
    }
    return files;
}

static bool read_ranks(const struct reader *reader, const struct location_list *list, struct error *error)
{
    const struct names names = find_names(list, reader->scratch);
    if (names.has_others || names.n_models == 0 || names.n_optimizers == 0)
        return error_set(error,
                         "%s: ZeRO with tensor, pipeline or expert parallelism is not supported; use "
                         "zero_to_fp32.py",
                         reader->input->path);
    struct zero_ranks ranks = {
        .place = reader->input->path, .n_ranks = names.n_optimizers, .n_model_files = names.n_models};
    if (names.n_optimizers > MAX_RANKS || names.n_models > MAX_RANKS)
        return error_set(error, "%s: more than %d ranks", reader->input->path, MAX_RANKS);
    ranks.models = read_files(reader, names.models, names.n_models, error);
    if (ranks.models == NULL)
        return false;
    ranks.optimizers = read_files(reader, names.optimizers, names.n_optimizers, error);
    return ranks.optimizers != NULL &&
           zero_gather(&ranks, reader->checkpoint->unsealed, reader->checkpoint->arena, error);
}

static void close_parts(void *parts)
{
    checkpoint_close(parts);
}

static bool deepspeed_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                           struct error *error)
{
    char folder[MAX_TAG + 1];
    struct location_list list;
    struct reader reader = {.checkpoint = checkpoint,
                            .input = input,
                            .options = options,
                            .parts = checkpoint_new(input->path),
                            .scratch = arena_new()};
    arena_on_free(checkpoint->arena, close_parts, reader.parts);
    bool found = find_folder(input, reader.scratch, folder, &list) ||
                 error_set(error, "%s: the files of a DeepSpeed checkpoint are missing", input->path);
    reader.folder = found && *folder != '\0' ? arena_printf(reader.scratch, "%s/", folder) : "";
    bool good = found && read_ranks(&reader, &list, error);
    arena_free(reader.scratch);
    if (!good)
        return false;
    checkpoint->extras = reader.parts->extras; /* of the model's first file */
    format_add_side_files(checkpoint, input);
    return true;
}

/* Consolidated weights in the same directory come first. */
static enum probe deepspeed_probe(const struct input *input)
{
    char folder[MAX_TAG + 1];
    struct location_list list;
    if (input->file != NULL)
        return PROBE_NO;
    struct arena *arena = arena_new();
    bool found = find_folder(input, arena, folder, &list);
    arena_free(arena);
    return found ? PROBE_LIKELY : PROBE_NO;
}

const struct format deepspeed_format = {
    .name = "deepspeed",
    .summary = "DeepSpeed ZeRO checkpoints: latest, global_step*/",
    .probe = deepspeed_probe,
    .open = deepspeed_open,
};

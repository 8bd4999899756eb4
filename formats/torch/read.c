/* torch checkpoints: the zip container of torch 1.6 and later, and the containers of legacy.h.
 *
 * The archive has one folder of any name, the first directory entry's. It holds data.pkl; data/KEY, the bytes of each
 * storage; version, 1 to 10; byteorder, "little" (the default) or "big". Stored members are read in place, deflated
 * ones through deflate_index.h. Source: caffe2/serialize/inline_container.cc, torch/serialization.py. */
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/torch/legacy.h"
#include "formats/torch/tensors.h"
#include "formats/zip/deflate_index.h"
#include "formats/zip/zip.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text of dict keys. */

enum { MAX_KEY_TEXT = 64 }; /* bytes of a key that is not text; items of a tuple */

void torch_append_key(struct buffer *path, const struct pickle_node *key)
{
    char number[JSON_FLOAT_TEXT];
    if (key->absent) {
        buffer_printf(path, "%zu bytes", key->text.length);
        return;
    }
    switch (key->kind) {
    case PICKLE_TEXT:
    case PICKLE_BYTES:
        buffer_append(path, key->text.bytes, key->text.length);
        break;
    case PICKLE_INTEGER:
        buffer_printf(path, "%" PRId64, key->integer);
        break;
    case PICKLE_FLOAT:
        buffer_append_text(path, json_f64_text(key->number, number));
        break;
    case PICKLE_TRUE:
        buffer_append_text(path, "True");
        break;
    case PICKLE_FALSE:
        buffer_append_text(path, "False");
        break;
    case PICKLE_NONE:
        buffer_append_text(path, "None");
        break;
    case PICKLE_GLOBAL:
        buffer_printf(path, "%.*s", MAX_KEY_TEXT, key->global.name);
        break;
    case PICKLE_TUPLE: /* as Python prints it, but without quotes */
        buffer_append_text(path, "(");
        for (uint32_t i = 0; i < key->items.n && i < MAX_KEY_TEXT && path->length <= TENSOR_MAX_NAME; i++) {
            if (i > 0)
                buffer_append_text(path, ", ");
            if (key->items.nodes[i]->kind != PICKLE_TUPLE)
                torch_append_key(path, key->items.nodes[i]);
        }
        buffer_append_text(path, ")");
        break;
    default:
        buffer_append_text(path, "?");
    }
}

/* Files of Megatron that hold a part of a model: model_optim_rng.pt of one rank, where a run spread tensors, layers or
 * experts over several. Each has names like those of the whole, so nothing else tells. Source: Megatron-Core 0.14,
 * training/checkpointing.py, generate_state_dict(): "args" are the run's arguments. */

/* Returns how many ways an argument says that models were cut; 1: not at all, or not said. */
static int64_t ways(const struct pickle_node *arguments, const char *name)
{
    int64_t n;
    return pickle_integer(pickle_get(arguments, name), &n) && n > 1 ? n : 1;
}

bool torch_check_whole(const struct torch_container *container, const struct pickle_node *root, struct error *error)
{
    const struct pickle_node *arguments = pickle_get(root, "args");
    bool has_model = pickle_get(root, "model") != NULL || pickle_get(root, "model0") != NULL;
    if (pickle_is(arguments, PICKLE_OBJECT))
        arguments = arguments->object->state;
    int64_t n_tensor = ways(arguments, "tensor_model_parallel_size"),
            n_pipeline = ways(arguments, "pipeline_model_parallel_size"),
            n_expert = ways(arguments, "expert_model_parallel_size");
    if (!has_model || (n_tensor == 1 && n_pipeline == 1 && n_expert == 1))
        return true;
    return error_set(error,
                     "%s: a part of a model: the file of one rank of a Megatron checkpoint with "
                     "tensor_model_parallel_size %" PRId64 ", pipeline_model_parallel_size %" PRId64
                     " and expert_model_parallel_size %" PRId64 "; join the ranks with Megatron's converter",
                     source_name(container->file), n_tensor, n_pipeline, n_expert);
}

/* The format. */

/* Pickles of state dicts shrink to a fifth, or to a fifteenth where many names share a tensor. */
enum { PICKLE_INFLATED_RATIO = 32, PICKLE_INFLATED_CONSTANT = 4 * 1024 * 1024 };

enum {
    MAX_SMALL_MEMBER = 64,
    MAX_VERSION = 10,
    MAX_NAME = 1024,
    MAX_PICKLE_PROTOCOL = 5,
    TAR_NAME_BYTES = 100,
    TAR_BLOCK = 512
};

struct archive {
    struct checkpoint *checkpoint;
    struct source *file, *inflated; /* `inflated` only if a member is deflated */
    const char *name;               /* of the file */
    struct zip_directory zip;
    const char *folder; /* with its '/' */
    struct arena *scratch;
    struct torch_container container;
    struct torch_storage *storages;
    size_t next_member; /* after the last storage found: pickles name storages in the order of the archive */
};

/* Returns the source of a member's contents. */
static struct source *member_source(const struct archive *archive, const struct zip_member *member,
                                    uint64_t *ret_offset)
{
    *ret_offset = member->method == ZIP_DEFLATED ? member->inflated : member->offset;
    return member->method == ZIP_DEFLATED ? archive->inflated : archive->file;
}

/* Returns the member FOLDER/NAME, or NULL. */
static const struct zip_member *find_member(const struct archive *archive, const char *name, size_t length)
{
    char full[MAX_NAME];
    int n = snprintf(full, sizeof full, "%s%.*s", archive->folder, (int)length, name);
    return n > 0 && n < MAX_NAME ? zip_directory_find(&archive->zip, full, (size_t)n) : NULL;
}

/* Returns the limit for data.pkl in bytes: the work for it is a multiple of its length, and must be a multiple of its
 * bytes in the file. */
static size_t pickle_limit(const struct zip_member *member)
{
    if (member->method != ZIP_DEFLATED || member->compressed_size > PICKLE_MAX_BYTES / PICKLE_INFLATED_RATIO)
        return PICKLE_MAX_BYTES;
    size_t limit = PICKLE_INFLATED_CONSTANT + (size_t)member->compressed_size * PICKLE_INFLATED_RATIO;
    return limit < PICKLE_MAX_BYTES ? limit : PICKLE_MAX_BYTES;
}

/* Checks that all members are in one folder. */
static bool find_folder(struct archive *archive, struct error *error)
{
    const struct zip_directory *zip = &archive->zip;
    const char *slash = zip->n_members > 0 ? strchr(zip->members[0].name, '/') : NULL;
    if (slash == NULL)
        return error_set(error, "%s: a zip archive, but not torch's: its first member is in no folder", archive->name);
    size_t length = (size_t)(slash - zip->members[0].name) + 1;
    archive->folder = arena_strndup(archive->scratch, zip->members[0].name, length);
    for (size_t i = 0; i < zip->n_members; i++)
        if (strncmp(zip->members[i].name, archive->folder, length) != 0)
            return error_set(error, "%s: zip: member '%s' is outside the first member's folder '%s'", archive->name,
                             zip->members[i].name, archive->folder);
    return true;
}

static bool check_version(const struct archive *archive, struct error *error)
{
    const struct zip_member *member = find_member(archive, ".data/version", 13);
    if (member == NULL)
        member = find_member(archive, "version", 7);
    if (member == NULL)
        return error_set(error, "%s: %sversion is missing", archive->name, archive->folder);
    char *text = zip_member_read(&archive->zip, member, MAX_SMALL_MEMBER, error), *end;
    if (text == NULL)
        return false;
    unsigned long version = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : 0;
    bool good = version >= 1 && version <= MAX_VERSION && (*end == '\0' || strcmp(end, "\n") == 0);
    if (!good)
        error_set(error, "%s: %s: unsupported version '%s': known versions are 1 to %d", archive->name, member->name,
                  text, MAX_VERSION);
    free(text);
    return good;
}

static bool read_byte_order(struct archive *archive, struct error *error)
{
    const struct zip_member *member = find_member(archive, "byteorder", 9);
    if (member == NULL)
        return true;
    char *text = zip_member_read(&archive->zip, member, MAX_SMALL_MEMBER, error);
    if (text == NULL)
        return false;
    archive->container.big_endian = strcmp(text, "big") == 0;
    bool good = archive->container.big_endian || strcmp(text, "little") == 0;
    if (!good)
        error_set(error, "%s: %s: '%s' is neither little nor big", archive->name, member->name, text);
    free(text);
    return good;
}

static void add_inflated(struct archive *archive)
{
    for (size_t i = 0; i < archive->zip.n_members; i++) {
        if (archive->zip.members[i].method != ZIP_DEFLATED)
            continue;
        archive->inflated = inflated_source_new(&archive->zip);
        checkpoint_add_source(archive->checkpoint, archive->inflated);
        return;
    }
}

static const struct zip_member *find_storage(struct archive *archive, const char *name, size_t length)
{
    const struct zip_member *next = archive->zip.members + archive->next_member;
    size_t folder_length = strlen(archive->folder);
    bool is_next = length < MAX_NAME && archive->next_member < archive->zip.n_members &&
                   next->name_length == folder_length + length && memcmp(next->name + folder_length, name, length) == 0;
    const struct zip_member *member = is_next ? next : find_member(archive, name, length);
    if (member != NULL)
        archive->next_member = (size_t)(member - archive->zip.members) + 1;
    return member;
}

static bool resolve_storage(struct archive *archive, const struct pickle_node *node, struct torch_storage *storage,
                            struct error *error)
{
    struct torch_storage_id id;
    bool is_storage;
    char name[MAX_NAME];
    if (!torch_storage_id(&archive->container, node, &id, &is_storage, error))
        return false;
    if (!is_storage)
        return true;
    int length = snprintf(name, sizeof name, "data/%.*s", (int)id.key_length, id.key);
    const struct zip_member *member = find_storage(archive, name, (size_t)length);
    if (member == NULL)
        return torch_refuse(&archive->container, node, error, "storage %s%s is missing from the archive",
                            archive->folder, name);
    if (member->size != id.n_bytes)
        return torch_refuse(&archive->container, node, error,
                            "storage %s has %" PRIu64 " bytes, but %" PRIu64 " elements of torch.%s need %" PRIu64,
                            member->name, member->size, id.n_elements, id.dtype->name, id.n_bytes);
    storage->source = member_source(archive, member, &storage->offset);
    storage->n_bytes = id.n_bytes;
    storage->stored = (struct torch_stored){archive->file, member->offset, member->compressed_size};
    storage->dtype = id.dtype;
    storage->untyped = id.untyped;
    return true;
}

static bool add_pickle(struct archive *archive, const struct zip_member *member, const char *bytes, struct error *error)
{
    struct pickle pickle;
    archive->container.place = arena_printf(archive->scratch, "%s: %s", archive->name, member->name);
    archive->container.pickle_bytes = bytes;
    archive->container.pickle_mapped = member->method == ZIP_STORED;
    archive->container.pickle_offset = member->offset;
    if (!pickle_read(&pickle, bytes, (size_t)member->size, archive->scratch, NULL, error))
        return error_prefix(error, "%s", archive->container.place);
    if (pickle.length != member->size)
        checkpoint_note(archive->checkpoint, SUBJECT_SOURCE,
                        "%s: ignored %" PRIu64 " bytes after the end of the pickle", archive->container.place,
                        member->size - pickle.length);
    archive->storages = arena_array(archive->scratch, pickle.persistent.n, sizeof *archive->storages);
    for (uint32_t i = 0; i < pickle.persistent.n; i++)
        if (!resolve_storage(archive, pickle.persistent.nodes[i], &archive->storages[i], error))
            return false;
    archive->container.storages = archive->storages;
    return torch_add_tensors(&archive->container, &pickle, archive->scratch, error);
}

static bool read_archive(struct archive *archive, struct error *error)
{
    if (!zip_directory_read(&archive->zip, archive->file, archive->scratch, error) || !find_folder(archive, error))
        return false;
    const struct zip_member *member = find_member(archive, "data.pkl", 8);
    if (member == NULL && find_member(archive, ".data/extern_modules", 20) != NULL)
        return error_set(error,
                         "%s: a torch.package: a program with its weights, which only the program can load; load it "
                         "and save its state_dict() with torch.save()",
                         archive->name);
    if (member == NULL)
        return error_set(error, "%s: a zip archive, but not torch's: %sdata.pkl is missing", archive->name,
                         archive->folder);
    add_inflated(archive);
    if (!check_version(archive, error) || !read_byte_order(archive, error))
        return false;
    if (find_member(archive, "constants.pkl", 13) != NULL)
        checkpoint_note(archive->checkpoint, SUBJECT_SOURCE,
                        "%s: a TorchScript archive: its code and constants are not shown", archive->name);
    char *bytes = zip_member_read(&archive->zip, member, pickle_limit(member), error);
    bool good = bytes != NULL && add_pickle(archive, member, bytes, error);
    free(bytes);
    return good;
}

static bool zip_read(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                     struct error *error)
{
    struct archive archive = {
        .checkpoint = checkpoint,
        .file = file,
        .name = source_name(file),
        .scratch = arena_new(),
        .container = {.checkpoint = checkpoint, .tensors = tensors, .file = file},
    };
    bool good = read_archive(&archive, error);
    arena_free(archive.scratch);
    return good;
}

/* Telling containers apart by their first bytes. */

enum container { NOTHING, ZIP, LEGACY, TAR, PREVIEW, PLAIN_PICKLE };

static bool is_tar(const struct source *source, const unsigned char *head, size_t length)
{
    static const char *const members[] = {"sys_info", "pickle", "storages", "tensors"};
    char name[TAR_NAME_BYTES];
    struct error unused;
    if (source_size(source) < TAR_BLOCK || length < 16 || !source_read(source, 0, sizeof name, name, &unused))
        return false;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (memcmp(head, members[i], strlen(members[i]) + 1) == 0 && name[TAR_NAME_BYTES - 1] == '\0')
            return true;
    return false;
}

static enum container container_of(const struct source *source, const unsigned char *head, size_t length)
{
    if (length >= 4 && memcmp(head, "PK\3\4", 4) == 0)
        return ZIP;
    if (legacy_probe(head, length))
        return LEGACY;
    if (length >= 8 && memcmp(head, "PYTORCH1", 8) == 0)
        return PREVIEW;
    if (is_tar(source, head, length))
        return TAR;
    if (length >= 3 && head[0] == 0x80 && head[1] >= 2 && head[1] <= MAX_PICKLE_PROTOCOL)
        return PLAIN_PICKLE;
    return NOTHING;
}

static enum probe probe(const struct input *input)
{
    enum container container =
        input->file != NULL ? container_of(input->file, input->head, input->head_length) : NOTHING;
    if (container == NOTHING)
        return PROBE_NO;
    return container == PLAIN_PICKLE ? PROBE_MAYBE : PROBE_LIKELY;
}

static bool read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error)
{
    unsigned char head[sizeof((struct input *)0)->head];
    size_t length = source_size(file) < sizeof head ? (size_t)source_size(file) : sizeof head;
    if (!source_read(file, 0, length, head, error))
        return false;
    switch (container_of(file, head, length)) {
    case ZIP:
        return zip_read(checkpoint, file, tensors, error);
    case LEGACY:
        return legacy_read(checkpoint, file, tensors, options, error);
    case PLAIN_PICKLE:
        return plain_pickle_read(checkpoint, file, tensors, options, error);
    case TAR:
        return error_set(error, "%s: the tar format of torch before 0.1.10 is not supported", source_name(file));
    case PREVIEW:
        return error_set(error, "%s: the PYTORCH1 format of the 1.0 preview is not supported", source_name(file));
    default:
        return error_set(error, "%s: not a torch checkpoint", source_name(file));
    }
}

static const struct extension extensions[] = {
    {".bin", .shared = true},  {".pt", .shared = true}, {".pth", .shared = true},
    {".ckpt", .shared = true}, {".pdparams"},           {0},
};

const struct format torch_format = {
    .name = "torch",
    .extensions = extensions,
    .needs_tensors = true,
    .summary = "torch.save(): zip and legacy formats, pickled numpy arrays",
    .probe = probe,
    .read_file = read_file,
};

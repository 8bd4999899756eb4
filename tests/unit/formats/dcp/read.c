/* Distributed torch checkpoints: pickles and archives written by hand, as torch writes them. */
#include "base/little_endian.h"
#include "tests/unit/formats/torch/archive.h"
#include "tests/unit/numbers.h"

enum { MAX_RANK = 3, MAX_CHUNKS = 4 };

static const struct open_options model_only, with_optimizer = {.optimizer = true};

/* A chunk, with elements F32 from[0], from[1] ...; each is stored in a file of its own unless `file` says otherwise. */
struct chunk {
    unsigned first[MAX_RANK], sizes[MAX_RANK];
    const char *elements; /* "0 1 2" */
    const char *file;     /* as .metadata spells it */
    long offset, length;  /* there; a length of 0 is the size of the chunk's own file */
};

struct stored_tensor {
    const char *name, *keys; /* keys: of its path, separated by spaces */
    unsigned rank, shape[MAX_RANK];
    struct chunk chunks[MAX_CHUNKS];
};

/* What is wrong with the chunks in .metadata. */
enum fault { NO_FAULT, NO_PLACE, BEYOND_FILE, TRANSFORMED, WRONG_DTYPE, CALL, NOT_METADATA, EACH_TWICE };

static void put_sizes(struct buffer *out, const unsigned *sizes, unsigned rank)
{
    buffer_append_text(out, "ctorch\nSize\n((");
    for (unsigned i = 0; i < rank; i++)
        buffer_printf(out, "I%u\n", sizes[i]);
    buffer_append_text(out, "ttR");
}

/* Begins an object; fields and "b" follow. */
static void put_object(struct buffer *out, const char *module, const char *name)
{
    buffer_printf(out, "ctorch.distributed.checkpoint.%s\n%s\n)\x81}(", module, name);
}

static void put_tensor(struct buffer *out, const struct stored_tensor *tensor, enum fault fault)
{
    buffer_printf(out, "V%s\n", tensor->name);
    put_object(out, "metadata", "TensorStorageMetadata");
    buffer_printf(out,
                  "Vproperties\nctorch.distributed.checkpoint.metadata\nTensorProperties\n)\x81(ctorch\n%s\n"
                  "ctorch.serialization\n_get_layout\n(Vtorch.strided\ntRI00\n"
                  "ctorch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING\n(I0\ntRI00\ntbVsize\n",
                  fault == WRONG_DTYPE ? "float16" : "float32");
    put_sizes(out, tensor->shape, tensor->rank);
    buffer_append_text(out, "Vchunks\n](");
    for (const struct chunk *chunk = tensor->chunks; chunk < tensor->chunks + MAX_CHUNKS && chunk->elements; chunk++)
        for (int i = 0; i < (fault == EACH_TWICE ? 2 : 1); i++) {
            put_object(out, "metadata", "ChunkStorageMetadata");
            buffer_append_text(out, "Voffsets\n");
            put_sizes(out, chunk->first, tensor->rank);
            buffer_append_text(out, "Vsizes\n");
            put_sizes(out, chunk->sizes, tensor->rank);
            buffer_append_text(out, "ub");
        }
    buffer_append_text(out, "eub");
}

static void write_chunk(const char *path, const struct stored_tensor *tensor, const struct chunk *chunk)
{
    struct buffer pickle = {0}, data = {0};
    unsigned n = 0, strides[MAX_RANK] = {1, 1, 1};
    for (const char *at = chunk->elements; *at != '\0'; n++) {
        char *end;
        float value = strtof(at, &end);
        little_endian(&value, 1, sizeof value);
        buffer_append(&data, &value, sizeof value);
        at = end;
    }
    for (unsigned i = tensor->rank; i-- > 1;)
        strides[i - 1] = strides[i] * chunk->sizes[i];
    buffer_printf(&pickle,
                  "\x80\x02"
                  "ctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI%u\ntQI0\n",
                  n);
    put_sizes(&pickle, chunk->sizes, tensor->rank);
    put_sizes(&pickle, strides, tensor->rank);
    buffer_append_text(&pickle, "I00\nNtR.");
    const struct archive_member members[] = {{"archive/data.pkl", pickle.bytes, pickle.length},
                                             {"archive/data/0", data.bytes, data.length},
                                             {"archive/version", "3\n", 2}};
    archive_write(path, members, 3);
    buffer_free(&pickle);
    buffer_free(&data);
}

static long file_size(const char *path)
{
    struct stat status;
    files_must(stat(path, &status) == 0, path);
    return (long)status.st_size;
}

static void put_place(struct buffer *out, const struct stored_tensor *tensor, const struct chunk *chunk,
                      unsigned number, enum fault fault)
{
    char path[64], name[32];
    snprintf(name, sizeof name, "__%u_0.distcp", number);
    snprintf(path, sizeof path, "c/%s", name);
    write_chunk(path, tensor, chunk);
    put_object(out, "metadata", "MetadataIndex");
    buffer_printf(out, "Vfqn\nV%s\nVoffset\n", tensor->name);
    put_sizes(out, chunk->first, tensor->rank);
    buffer_append_text(out, "ub");
    put_object(out, "filesystem", "_StorageInfo");
    buffer_printf(out, "Vrelative_path\nV%s\nVoffset\nI%ld\nVlength\nI%ld\n", chunk->file != NULL ? chunk->file : name,
                  chunk->offset, chunk->length > 0 ? chunk->length : file_size(path) + (fault == BEYOND_FILE));
    if (fault == TRANSFORMED)
        buffer_append_text(out, "Vtransform_descriptors\n](Vstream.zstd/1\ne");
    buffer_append_text(out, "ub");
}

static void put_paths(struct buffer *out, const struct stored_tensor *tensors, size_t n)
{
    buffer_append_text(out, "Vplanner_data\n}(");
    for (size_t i = 0; i < n; i++) {
        char copy[256];
        snprintf(copy, sizeof copy, "%s", tensors[i].keys);
        buffer_printf(out, "V%s\n(", tensors[i].name);
        for (char *key = strtok(copy, " "); key != NULL; key = strtok(NULL, " "))
            buffer_printf(out, "V%s\n", key);
        buffer_append_text(out, "t");
    }
    buffer_append_text(out, "u");
}

/* The place of the object "step", or of an object of the optimizer. */
static void put_object_place(struct buffer *out, const char *name)
{
    put_object(out, "metadata", "MetadataIndex");
    buffer_printf(out, "Vfqn\nV%s\nVoffset\nNub", name);
    put_object(out, "filesystem", "_StorageInfo");
    buffer_printf(out, "Vrelative_path\nVobject.distcp\nVoffset\nI0\nVlength\nI%ld\nub", file_size("c/object.distcp"));
}

/* Writes the checkpoint c/ of `n` tensors. If `objects` is not 0, the object "step" is in c/object.distcp, under as
 * many names. */
static void write_checkpoint_of(const struct stored_tensor *tensors, size_t n, enum fault fault, unsigned objects)
{
    struct buffer out = {0};
    unsigned number = 0;
    mkdir("c", 0755);
    buffer_append_text(&out, "\x80\x04");
    put_object(&out, "metadata", fault == NOT_METADATA ? "Other" : "Metadata");
    buffer_append_text(&out, "Vstate_dict_metadata\n}(");
    for (size_t i = 0; i < n; i++)
        put_tensor(&out, &tensors[i], fault);
    buffer_append_text(&out, "Vstep\n");
    put_object(&out, "metadata", "BytesStorageMetadata");
    buffer_append_text(&out, "ubu");
    put_paths(&out, tensors, n);
    if (fault == CALL)
        buffer_append_text(&out, "Vstorage_meta\ncos\nsystem\n(Vtrue\ntR");
    buffer_append_text(&out, "Vstorage_data\n}(");
    for (size_t i = 0; i < n; i++)
        for (const struct chunk *chunk = tensors[i].chunks;
             chunk < tensors[i].chunks + MAX_CHUNKS && chunk->elements && fault != NO_PLACE; chunk++)
            put_place(&out, &tensors[i], chunk, number++, fault);
    for (unsigned i = 0; i < objects; i++) {
        char name[32];
        snprintf(name, sizeof name, "step%.0u", i);
        put_object_place(&out, name);
    }
    buffer_append_text(&out, "uub.");
    files_write("c/.metadata", out.bytes, out.length);
    if (number == 0)
        files_write("c/__0_0.distcp", "", 0);
    buffer_free(&out);
}

static void write_checkpoint(const struct stored_tensor *tensors, size_t n, enum fault fault)
{
    write_checkpoint_of(tensors, n, fault, 0);
}

static void check(const struct stored_tensor *tensors, size_t n, enum fault fault, const struct open_options *options,
                  const char *says)
{
    write_checkpoint(tensors, n, fault);
    char *described = archive_describe("c", options);
    CHECK_TEXT(described, says);
    free(described);
}

/* Tensors of the numbers 0, 1, 2 ... in row-major order. */
static const struct stored_tensor whole = {"w", "w", 2, {2, 3}, {{{0, 0}, {2, 3}, "0 1 2 3 4 5"}}};
static const struct {
    struct stored_tensor tensor;
    const char *says;
} shapes[] = {
    {{"s", "s", 0, {0}, {{{0}, {0}, "7"}}}, "s F32 [] 7"},
    {{"e", "e", 2, {0, 3}, {{{0, 0}, {0, 3}, ""}}}, "e F32 [0, 3]"},
    {{"w", "w", 2, {2, 3}, {{{0, 0}, {1, 3}, "0 1 2"}, {{1, 0}, {1, 3}, "3 4 5"}}}, "w F32 [2, 3] 0 1 2 3 4 5"},
    {{"w", "w", 2, {2, 3}, {{{0, 2}, {2, 1}, "2 5"}, {{0, 0}, {2, 2}, "0 1 3 4"}}}, "w F32 [2, 3] 0 1 2 3 4 5"},
    {{"w", "w", 2, {2, 3}, {{{0, 0}, {2, 3}, "0 1 2 3 4 5"}, {{2, 0}, {0, 3}, ""}}}, "w F32 [2, 3] 0 1 2 3 4 5"},
    {{"grid",
      "grid",
      2,
      {2, 3},
      {{{1, 0}, {1, 2}, "3 4"}, {{0, 0}, {1, 2}, "0 1"}, {{0, 2}, {1, 1}, "2"}, {{1, 2}, {1, 1}, "5"}}},
     "grid F32 [2, 3] 0 1 2 3 4 5"},
    {{"uneven", "uneven", 2, {2, 3}, {{{0, 0}, {2, 1}, "0 3"}, {{0, 1}, {1, 2}, "1 2"}, {{1, 1}, {1, 2}, "4 5"}}},
     "uneven F32 [2, 3] 0 1 2 3 4 5"},
    {{"deep", "deep", 3, {2, 2, 2}, {{{0, 1, 0}, {2, 1, 2}, "2 3 6 7"}, {{0, 0, 0}, {2, 1, 2}, "0 1 4 5"}}},
     "deep F32 [2, 2, 2] 0 1 2 3 4 5 6 7"},

    {{"w", "w", 2, {2, 3}, {{{0, 0}, {1, 3}, "0 1 2"}}}, ".metadata: tensor 'w': its pieces leave a gap or overlap"},
    {{"w", "w", 2, {3, 1}, {{{0, 0}, {1, 1}, "0"}, {{2, 0}, {1, 1}, "1"}}},
     ".metadata: tensor 'w': its pieces leave a gap or overlap"},
    {{"w", "w", 2, {3, 1}, {{{0, 0}, {2, 1}, "0 1"}, {{1, 0}, {2, 1}, "1 2"}}},
     ".metadata: tensor 'w': its pieces leave a gap or overlap"},
    {{"w", "w", 2, {2, 3}, {{{0, 0}, {3, 3}, "0 1 2 3 4 5 6 7 8"}}},
     ".metadata: tensor 'w': a chunk lies outside of the tensor's shape"},
    {{"w", "w", 1, {1}, {{{0}, {1}, "0", "../c/__0_0.distcp"}}},
     ".metadata: tensor 'w': the path of its file leads out of the checkpoint's directory"},
    {{"w", "w", 1, {1}, {{{0}, {1}, "0", "/etc/passwd"}}},
     ".metadata: tensor 'w': the path of its file leads out of the checkpoint's directory"},
    {{"w", "w", 1, {1}, {{{0}, {1}, "0", "absent.distcp"}}}, ".metadata: absent.distcp: No such file or directory"},
};

static void check_faults(void)
{
    check(&whole, 1, NO_FAULT, &model_only, "w F32 [2, 3] 0 1 2 3 4 5");
    check(&whole, 1, NO_PLACE, &model_only, ".metadata: tensor 'w': the place of a chunk is missing");
    check(
        &whole, 1, TRANSFORMED, &model_only,
        ".metadata: tensor 'w': an extension has transformed or compressed it; save the checkpoint without extensions");
    check(&whole, 1, WRONG_DTYPE, &model_only,
          "__0_0.distcp, from byte 0: not the chunk that .metadata describes: other tensors, dtypes or shapes");
    check(&whole, 1, NOT_METADATA, &model_only, ".metadata: not the metadata of a distributed torch checkpoint");
    write_checkpoint(&whole, 1, BEYOND_FILE);
    char *described = archive_describe("c", &model_only);
    CHECK(strncmp(described, "__0_0.distcp: truncated: a chunk at bytes 0 to ", 47) == 0);
    free(described);
    write_checkpoint(&whole, 1, CALL);
    described = archive_describe("c", &model_only);
    CHECK(strstr(described, "REDUCE of os.system") != NULL);
    free(described);
    check(&whole, 1, EACH_TWICE, &model_only, ".metadata: tensor 'w': its pieces leave a gap or overlap");
}

/* The state of an optimizer, and keys that all names share. */
static void check_names(void)
{
    static const struct stored_tensor tensors[] = {
        {"model.a.b", "model a.b", 1, {1}, {{{0}, {1}, "1"}}},
        {"model.model.c", "model model.c", 1, {1}, {{{0}, {1}, "2"}}},
        {"optimizer.state.0.exp_avg", "optimizer state 0 exp_avg", 1, {1}, {{{0}, {1}, "3"}}},
    };
    static const struct stored_tensor plain[] = {
        {"model.a", "model.a", 1, {1}, {{{0}, {1}, "1"}}},
        {"model.b", "model.b", 1, {1}, {{{0}, {1}, "2"}}},
    };
    static const struct stored_tensor nested[] = {
        {"app.model.optimus", "app model optimus", 1, {1}, {{{0}, {1}, "1"}}}};
    check(tensors, 3, NO_FAULT, &model_only, "a.b F32 [1] 1\nmodel.c F32 [1] 2");
    check(tensors, 3, NO_FAULT, &with_optimizer,
          "model.a.b F32 [1] 1\nmodel.model.c F32 [1] 2\noptimizer.state.0.exp_avg F32 [1] 3");
    check(tensors + 2, 1, NO_FAULT, &model_only, ".metadata: only the state of an optimizer; -o optimizer shows it");
    check(plain, 2, NO_FAULT, &model_only, "model.a F32 [1] 1\nmodel.b F32 [1] 2");
    check(nested, 1, NO_FAULT, &model_only, "optimus F32 [1] 1");
    check(NULL, 0, NO_FAULT, &model_only, ".metadata: it describes no tensors");
}

static void append_file(struct buffer *out, const char *path)
{
    char bytes[4096];
    FILE *file = fopen(path, "rb");
    files_must(file != NULL, path);
    buffer_append(out, bytes, fread(bytes, 1, sizeof bytes, file));
    fclose(file);
}

/* Two chunks in one file: the second is not read before its elements are. */
static void check_second_chunk(void)
{
    struct stored_tensor halves = {"w", "w", 1, {4}, {{{0}, {2}, "0 1", "both"}, {{2}, {2}, "2 3", "both"}}};
    struct error error;
    struct buffer both = {0};
    float values[4];
    write_checkpoint(&halves, 1, NO_FAULT);
    halves.chunks[1].offset = file_size("c/__0_0.distcp");
    write_checkpoint(&halves, 1, NO_FAULT);
    append_file(&both, "c/__0_0.distcp");
    append_file(&both, "c/__1_0.distcp");
    files_write("c/both", both.bytes, both.length);
    char *described = archive_describe("c", &model_only);
    CHECK_TEXT(described, "w F32 [4] 0 1 2 3");
    free(described);
    memset(both.bytes + halves.chunks[1].offset, 0, both.length - (size_t)halves.chunks[1].offset);
    files_write("c/both", both.bytes, both.length);
    const struct checkpoint *checkpoint = checkpoint_open("c", readers, &model_only, &error);
    CHECK(checkpoint != NULL);
    const struct view *view = checkpoint->tensors->tensors[0].view;
    CHECK(read_numbers(view, 0, 2, values, &error) && values[1] == 1);
    CHECK(!read_numbers(view, 0, 4, values, &error) && strncmp(error.message, "both, from byte ", 16) == 0);
    checkpoint_close(checkpoint);
    buffer_free(&both);
}

/* Writes a file that begins with other bytes, and then has safetensors with this header and F32 data from `first` on.
 */
static void write_parts(const char *path, size_t n_others, const char *header, unsigned first, unsigned n)
{
    struct buffer file = {0};
    buffer_append_zeros(&file, n_others);
    buffer_append_le(&file, strlen(header), 8);
    buffer_append_text(&file, header);
    for (unsigned i = 0; i < n; i++) {
        float value = (float)(first + i);
        little_endian(&value, 1, sizeof value);
        buffer_append(&file, &value, sizeof value);
    }
    files_write(path, file.bytes, file.length);
    buffer_free(&file);
}

#define PLACES(text)             "{\"__metadata__\":{\"DCP_SHARDING_INFO\":\"" text "\"},"
#define PLACE(name, offsets)     "{\\\"" name "\\\":{\\\"saved_offsets\\\":" offsets "}}"
#define PART(name, dtype, shape) "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[0,12]}}"
#define LACKS                                                                                                          \
    "s.distcp: tensor 'w': its safetensors lack a chunk that .metadata describes; torch keeps one chunk of a tensor "  \
    "in a file: save with SerializationFormat.TORCH_SAVE"

/* Chunks in safetensors, by the header of the file with the first row of w; its second row is in another file. */
static const struct {
    const char *header, *says;
} parts[] = {
    {PLACES(PLACE("w", "[0,0]")) PART("w", "F32", "[1,3]"), "w F32 [2, 3] 0 1 2 3 4 5"},
    {"{" PART("w", "F32", "[1,3]"), "w F32 [2, 3] 0 1 2 3 4 5"}, /* as torch 2.7 writes it */
    {PLACES(PLACE("w", "[1,0]")) PART("w", "F32", "[1,3]"), LACKS},
    {PLACES(PLACE("w", "[0,0]")) PART("w", "I32", "[1,3]"), LACKS},
    {PLACES(PLACE("w", "[0,0]")) PART("w", "F32", "[3,1]"), LACKS},
    {PLACES(PLACE("w", "[0]")) PART("w", "F32", "[3]"), LACKS},
    {PLACES(PLACE("v", "[0,0]")) PART("v", "F32", "[1,3]"), LACKS},
    {PLACES(PLACE("w", "[18446744073709551615,0]")) PART("w", "F32", "[1,3]"), LACKS},
    {PLACES(PLACE("w", "[0]")) PART("w", "F32", "[1,3]"),
     "s.distcp, from byte 5: tensor 'w': its saved_offsets are not a number for each dimension"},
    {PLACES(PLACE("w", "[0,-1]")) PART("w", "F32", "[1,3]"),
     "s.distcp, from byte 5: tensor 'w': its saved_offsets are not a number for each dimension"},
    {PLACES("[]") PART("w", "F32", "[1,3]"),
     "s.distcp, from byte 5: tensor 'w': DCP_SHARDING_INFO does not tell where it begins"},
    {"{" PART("w", "F32", "[1,4]"),
     "s.distcp, from byte 5: tensor 'w': data_offsets [0, 12] do not match F32 [1, 4] (16 bytes)"},
    {"{\"w\":1}", "s.distcp, from byte 5: tensor 'w': its description is not an object"},
};

static void check_parts(void)
{
    struct stored_tensor rows = {
        "w",
        "w",
        2,
        {2, 3},
        {{{0, 0}, {1, 3}, "0 1 2", "s.distcp", 5, 12}, {{1, 0}, {1, 3}, "3 4 5", "t.distcp", 0, 12}}};
    mkdir("c", 0755);
    write_parts("c/t.distcp", 0, PLACES(PLACE("w", "[1,0]")) PART("w", "F32", "[1,3]"), 3, 3);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        write_parts("c/s.distcp", 5, parts[i].header, 0, 3);
        check(&rows, 1, NO_FAULT, &model_only, parts[i].says);
    }
    write_parts("c/s.distcp", 5, parts[0].header, 0, 2);
    check(&rows, 1, NO_FAULT, &model_only,
          "s.distcp, from byte 5: truncated: 4 of 12 tensor bytes are missing; an interrupted download?");
    /* both chunks in one file, which has one; the second elsewhere in the file */
    write_parts("c/s.distcp", 5, parts[1].header, 0, 3);
    rows.chunks[1].file = "s.distcp";
    rows.chunks[1].offset = 5;
    check(&rows, 1, NO_FAULT, &model_only, LACKS);
    rows.chunks[1].offset = 6;
    check(&rows, 1, NO_FAULT, &model_only, LACKS);
}

/* Writes a tuple of a tensor, a number and a dict of a tensor, with a storage of that name. */
static void write_object(const char *storage)
{
    static const char pickle[] = "\x80\x02(" PICKLE_TENSOR(
        PICKLE_STORAGE("FloatStorage", "0", "2"), "0", "I2\n",
        "I1\n") "I5\n}Vx\n" PICKLE_TENSOR(PICKLE_STORAGE("FloatStorage", "0", "2"), "1", "I1\n", "I1\n") "st.";
    float values[] = {7, 8};
    little_endian(values, 2, sizeof *values);
    const struct archive_member members[] = {{"archive/data.pkl", pickle, sizeof pickle - 1},
                                             {storage, values, sizeof values},
                                             {"archive/version", "3\n", 2}};
    mkdir("c", 0755);
    archive_write("c/object.distcp", members, 3);
}

static void check_object(unsigned copies, const struct open_options *options, const char *says)
{
    write_checkpoint_of(&whole, 1, NO_FAULT, copies);
    char *described = archive_describe("c", options);
    CHECK_TEXT(described, says);
    free(described);
}

/* Tensors inside an object: read, or the checkpoint is incomplete. */
static void check_objects(void)
{
    static const struct open_options partial = {.partial = true};
    static const char numbers[] = "w F32 [2, 3] 0 1 2 3 4 5";
    struct error error;
    write_object("archive/data/0");
    check_object(1, &model_only, "w F32 [2, 3] 0 1 2 3 4 5\nstep.0 F32 [2] 7 8\nstep.2.x F32 [1] 8");
    write_checkpoint_of(&whole, 1, NO_FAULT, 9);
    char *described = archive_describe("c", &model_only);
    CHECK(strncmp(described, ".metadata: its objects have more bytes than all files, ", 55) == 0);
    free(described);
    write_object("archive/data/1");
    check_object(1, &model_only, numbers);
    const struct checkpoint *checkpoint = checkpoint_open("c", readers, &model_only, &error);
    CHECK(checkpoint != NULL && checkpoint->incomplete != NULL &&
          strstr(checkpoint->incomplete, "the object 'step' is not read: object.distcp, from byte 0: ") != NULL);
    checkpoint_close(checkpoint);
    checkpoint = checkpoint_open("c", readers, &partial, &error);
    CHECK(checkpoint != NULL && checkpoint->incomplete == NULL);
    checkpoint_close(checkpoint);
    write_object("archive/else"); /* no storage at all */
    check_object(1, &model_only, numbers);
    checkpoint = checkpoint_open("c", readers, &model_only, &error);
    CHECK(checkpoint != NULL && checkpoint->incomplete == NULL && checkpoint->tensors->n_tensors == 1);
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check(&shapes[i].tensor, 1, NO_FAULT, &model_only, shapes[i].says);
    check_faults();
    check_names();
    check_second_chunk();
    check_parts();
    check_objects();
    files_remove();
    return check_done();
}

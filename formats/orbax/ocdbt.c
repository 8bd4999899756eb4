/* Source: the OCDBT specification of TensorStore's documentation; what TensorStore 0.1.86 writes. Integers are varints
 * unless said otherwise. Tables are stored column by column. */
#include "base/buffer.h"
#include "base/checked.h"
#include "formats/orbax/zarr.h"
#include "formats/tensorflow/table.h"
#include "sources/paths.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char ocdbt_manifest[] = "manifest.ocdbt";

enum {
    MANIFEST_MAGIC = 0x0cdb3a2a,
    NODE_MAGIC = 0x0cdb20de,
    HEAD = 12, /* magic, big-endian, and length */
    CHECKSUM = 4,
    UUID = 16,
    MAX_NODE = 100 * 1024 * 1024,
    MAX_HEIGHT = 32,
    MAX_KEY = 64 * 1024,
    MAX_TABLE = 65536, /* files of a node */
};

/* A node may be so many times larger than its compressed data, and a constant; all nodes have at most so many bytes
 * together, and all keys and paths at most so many for each of them. */
enum { NODE_RATIO = 64, NODE_CONSTANT = 1024 * 1024 };
static const uint64_t max_nodes = UINT64_C(256) << 20;
enum { TEXTS_RATIO = 8, TEXTS_CONSTANT = 1024 * 1024 };

/* Bytes being read; `bad` once they are damaged, after which numbers are 0. */
struct cursor {
    const unsigned char *bytes;
    size_t at, length;
    bool bad;
};

/* A file that a node names. */
struct data_file {
    const char *path, *base; /* in the folder; what is put before the paths of a node in the file */
    struct source *source;   /* NULL: not opened yet */
};

/* A node that is still to be read. */
struct node {
    const struct data_file *file;
    uint64_t offset, length;
    const char *prefix; /* of its keys */
    size_t prefix_length;
    unsigned height;
};

struct reader {
    struct value_store *store;
    struct checkpoint *checkpoint;
    const struct location *location;
    const char *folder;
    struct source *manifest;
    struct text_index paths, seen; /* of sources by path; of nodes read */
    struct source **sources;
    struct node *nodes; /* on the heap: a stack */
    size_t n_nodes, n_sources;
    uint64_t nodes_left, texts_left;
    struct buffer inline_values;
    size_t *inline_keys; /* on the heap: the numbers of values whose offset is in inline_values */
    size_t n_inline;
    struct error *error;
};

static bool refuse(const struct reader *reader, const struct source *source, const char *reason)
{
    return error_set(reader->error, "%s: OCDBT: %s", source_name(source != NULL ? source : reader->manifest), reason);
}

/* Numbers and texts. */

static uint64_t take(struct cursor *cursor, unsigned size)
{
    cursor->bad |= size > cursor->length - cursor->at;
    if (cursor->bad)
        return 0;
    cursor->at += size;
    return read_le(cursor->bytes + cursor->at - size, size);
}

static uint64_t take_varint(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = take(cursor, 1);
        cursor->bad |= shift == 63 && byte > 1;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return cursor->bad ? 0 : value;
    }
    cursor->bad = true;
    return 0;
}

static const unsigned char *take_bytes(struct cursor *cursor, uint64_t length)
{
    cursor->bad |= length > cursor->length - cursor->at;
    if (cursor->bad)
        return NULL;
    cursor->at += (size_t)length;
    return cursor->bytes + cursor->at - length;
}

/* Returns a number of rows, each of which has at least a byte. */
static size_t take_count(struct cursor *cursor)
{
    uint64_t count = take_varint(cursor);
    cursor->bad |= count > cursor->length - cursor->at;
    return cursor->bad ? 0 : (size_t)count;
}

/* Returns a column of `n` varints, to be freed. */
static uint64_t *take_column(struct cursor *cursor, size_t n)
{
    uint64_t *column = memory_alloc(n * sizeof *column + 1);
    for (size_t i = 0; i < n; i++)
        column[i] = take_varint(cursor);
    return column;
}

/* Files of one frame: magic, length, version, compression, body, checksum. */

/* Returns the body, to be freed, after checking what is around it; NULL, with an error. */
static unsigned char *decode_frame(const struct reader *reader, const struct source *source, unsigned char *bytes,
                                   size_t length, uint32_t magic, size_t *ret_length)
{
    struct cursor cursor = {.bytes = bytes, .length = length};
    if (length < HEAD + CHECKSUM || read_be(bytes, 4) != magic || read_le(bytes + 4, 8) != length)
        return refuse(reader, source, "damaged: the beginning of a node, or of the manifest"), NULL;
    if (read_le(bytes + length - CHECKSUM, CHECKSUM) != crc32c(bytes, length - CHECKSUM))
        return refuse(reader, source, "damaged: the checksum of a node, or of the manifest"), NULL;
    cursor.at = HEAD;
    cursor.length = length - CHECKSUM;
    uint64_t version = take_varint(&cursor), compression = take_varint(&cursor);
    if (cursor.bad || version != 0 || compression > 1)
        return refuse(reader, source, "an unknown version or compression"), NULL;
    size_t n = cursor.length - cursor.at, most = NODE_RATIO * n + NODE_CONSTANT;
    unsigned char *body = NULL;
    if (compression == 1)
        body = codec_decode_zstd(bytes + cursor.at, n, most < MAX_NODE ? most : MAX_NODE, &n);
    else
        body = memcpy(memory_alloc(n + 1), bytes + cursor.at, n);
    *ret_length = n;
    if (body == NULL)
        refuse(reader, source, "damaged: the compressed data of a node, or of the manifest");
    return body;
}

/* Returns the body at a place of a source, to be freed. */
static unsigned char *read_frame(struct reader *reader, const struct source *source, uint64_t offset, uint64_t length,
                                 uint32_t magic, size_t *ret_length)
{
    uint64_t size = source_size(source);
    if (length > MAX_NODE || offset > size || length > size - offset)
        return refuse(reader, source, "truncated: a node lies past the end of the file, or is too large"), NULL;
    unsigned char *bytes = memory_alloc((size_t)length + 1), *body = NULL;
    if (source_read(source, offset, (size_t)length, bytes, reader->error))
        body = decode_frame(reader, source, bytes, (size_t)length, magic, ret_length);
    free(bytes);
    if (body != NULL && *ret_length > reader->nodes_left) {
        free(body);
        return refuse(reader, source, "its nodes are too large together"), NULL;
    }
    if (body != NULL) {
        reader->nodes_left -= *ret_length;
        reader->texts_left += TEXTS_RATIO * (uint64_t)*ret_length;
    }
    return body;
}

/* Copies a text of two parts into the arena; NULL if texts are too long together. */
static char *join(struct reader *reader, const char *first, size_t first_length, const void *second,
                  size_t second_length)
{
    if (first_length + second_length > reader->texts_left)
        return NULL;
    reader->texts_left -= first_length + second_length;
    char *text = arena_alloc(reader->checkpoint->arena, first_length + second_length + 1);
    if (first_length > 0)
        memcpy(text, first, first_length);
    if (second_length > 0)
        memcpy(text + first_length, second, second_length);
    return text;
}

/* Reads the table of files of a node, whose paths begin with `base`; NULL if it is damaged. */
static struct data_file *take_files(struct reader *reader, struct cursor *cursor, const char *base, size_t *ret_count)
{
    size_t n = take_count(cursor), before = 0;
    if (n > MAX_TABLE || cursor->bad)
        return NULL;
    uint64_t *prefixes = take_column(cursor, n > 0 ? n - 1 : 0), *suffixes = take_column(cursor, n),
             *bases = take_column(cursor, n);
    struct data_file *files = arena_array(reader->checkpoint->arena, n + 1, sizeof *files);
    const char *last = "";
    bool good = !cursor->bad;
    for (size_t i = 0; i < n && good; i++) {
        uint64_t shared = i > 0 ? prefixes[i - 1] : 0;
        const unsigned char *suffix = suffixes[i] <= MAX_KEY ? take_bytes(cursor, suffixes[i]) : NULL;
        good = suffix != NULL && shared <= before;
        const char *path = good ? join(reader, last, (size_t)shared, suffix, (size_t)suffixes[i]) : NULL;
        before = path != NULL ? (size_t)(shared + suffixes[i]) : 0;
        good = path != NULL && bases[i] <= before && before <= MAX_KEY;
        last = path;
        if (good) {
            files[i].path = join(reader, base, strlen(base), path, before);
            files[i].base = join(reader, base, strlen(base), path, (size_t)bases[i]);
            good = files[i].path != NULL && files[i].base != NULL && strlen(files[i].path) == strlen(base) + before;
        }
    }
    free(prefixes);
    free(suffixes);
    free(bases);
    *ret_count = n;
    return good ? files : NULL;
}

/* Opens a file of values or nodes, once. */
static bool open_file(struct reader *reader, struct data_file *file)
{
    size_t number, length = strlen(file->path);
    if (file->source != NULL)
        return true;
    if (text_index_find(&reader->paths, file->path, length, &number)) {
        file->source = reader->sources[number];
        return true;
    }
    if (!inner_path(file->path, length))
        return refuse(reader, NULL, "a data file outside of the directory");
    const char *path = join(reader, reader->folder, strlen(reader->folder), file->path, length);
    if (path == NULL)
        return refuse(reader, NULL, "paths are too long");
    file->source = value_store_open(reader->store, reader->checkpoint, reader->location, path, reader->error);
    if (file->source == NULL)
        return false;
    reader->sources = memory_grow(reader->sources, reader->n_sources, sizeof(struct source *));
    text_index_add(&reader->paths, file->path, length, reader->n_sources);
    reader->sources[reader->n_sources++] = file->source;
    return true;
}

/* Nodes. */

static void push(struct reader *reader, const struct node *node)
{
    reader->nodes = memory_grow(reader->nodes, reader->n_nodes, sizeof *reader->nodes);
    reader->nodes[reader->n_nodes++] = *node;
}

struct key {
    const char *text;
    size_t length;
};

/* Reads the keys of a node; for one with children, the keys that these share go into *ret_common, both to be freed. */
static struct key *take_keys(struct reader *reader, struct cursor *cursor, const struct node *node, size_t n,
                             uint64_t **ret_common)
{
    uint64_t *prefixes = take_column(cursor, n - 1), *suffixes = take_column(cursor, n);
    *ret_common = node->height > 0 ? take_column(cursor, n) : NULL;
    struct key *keys = memory_alloc(n * sizeof *keys);
    const char *last = "";
    size_t before = 0;
    for (size_t i = 0; i < n && !cursor->bad; i++) {
        uint64_t shared = i > 0 ? prefixes[i - 1] : 0;
        const unsigned char *suffix = suffixes[i] <= MAX_KEY ? take_bytes(cursor, suffixes[i]) : NULL;
        cursor->bad |= suffix == NULL || shared > before || shared + suffixes[i] > MAX_KEY;
        char *own = cursor->bad ? NULL : join(reader, last, (size_t)shared, suffix, (size_t)suffixes[i]);
        before = own != NULL ? (size_t)(shared + suffixes[i]) : 0;
        last = own;
        keys[i].text = own != NULL ? join(reader, node->prefix, node->prefix_length, own, before) : NULL;
        keys[i].length = node->prefix_length + before;
        cursor->bad |= keys[i].text == NULL || keys[i].length > MAX_KEY || (*ret_common && (*ret_common)[i] > before);
    }
    free(prefixes);
    free(suffixes);
    return keys;
}

/* Adds the children of a node. */
static bool take_children(struct reader *reader, struct cursor *cursor, const struct node *node, size_t n,
                          struct key *keys, const uint64_t *common, struct data_file *files, size_t n_files)
{
    uint64_t *numbers = take_column(cursor, n), *offsets = take_column(cursor, n), *lengths = take_column(cursor, n);
    bool good = !cursor->bad;
    for (size_t i = 0; i < n && good; i++) {
        cursor->bad |= numbers[i] >= n_files;
        good = !cursor->bad && open_file(reader, &files[numbers[i]]);
        if (good)
            push(reader, &(struct node){&files[numbers[i]], offsets[i], lengths[i], keys[i].text,
                                        node->prefix_length + (size_t)common[i], node->height - 1});
    }
    free(numbers);
    free(offsets);
    free(lengths);
    return good;
}

static bool add_value(struct reader *reader, const struct key *key, const struct stored_value *value)
{
    return value_store_add(reader->store, reader->checkpoint, key->text, key->length, value) ||
           refuse(reader, NULL, "damaged: a key comes twice");
}

/* Adds a value that lies in a file. */
static bool add_elsewhere(struct reader *reader, const struct key *key, struct data_file *file, uint64_t offset,
                          uint64_t length)
{
    if (!open_file(reader, file))
        return false;
    uint64_t size = source_size(file->source);
    if (offset > size || length > size - offset)
        return refuse(reader, file->source, "truncated: a value lies past the end of the file");
    return add_value(reader, key, &(struct stored_value){file->source, offset, length});
}

static bool take_values(struct reader *reader, struct cursor *cursor, size_t n, struct key *keys,
                        struct data_file *files, size_t n_files)
{
    uint64_t *lengths = take_column(cursor, n), *kinds = take_column(cursor, n);
    size_t n_elsewhere = 0;
    for (size_t i = 0; i < n; i++) {
        n_elsewhere += kinds[i] == 1;
        cursor->bad |= kinds[i] > 1;
    }
    uint64_t *numbers = take_column(cursor, n_elsewhere), *offsets = take_column(cursor, n_elsewhere);
    bool good = true;
    for (size_t i = 0, j = 0; i < n && good && !cursor->bad; i++) {
        if (kinds[i] == 1) {
            cursor->bad |= numbers[j] >= n_files;
            good = !cursor->bad && add_elsewhere(reader, &keys[i], &files[numbers[j]], offsets[j], lengths[i]);
            j++;
            continue;
        }
        const unsigned char *bytes = take_bytes(cursor, lengths[i]);
        if (bytes == NULL)
            break;
        reader->inline_keys = memory_grow(reader->inline_keys, reader->n_inline, sizeof *reader->inline_keys);
        reader->inline_keys[reader->n_inline++] = reader->store->n_values;
        good = add_value(reader, &keys[i], &(struct stored_value){NULL, reader->inline_values.length, lengths[i]});
        buffer_append(&reader->inline_values, bytes, (size_t)lengths[i]);
    }
    free(lengths);
    free(kinds);
    free(numbers);
    free(offsets);
    return good;
}

static bool take_rows(struct reader *reader, struct cursor *cursor, const struct node *node)
{
    size_t n_files = 0;
    uint64_t height = take(cursor, 1), *common = NULL;
    struct data_file *files = take_files(reader, cursor, node->file->base, &n_files);
    size_t n = files != NULL ? take_count(cursor) : 0;
    cursor->bad |= height != node->height || files == NULL;
    if (n == 0 || cursor->bad)
        return !cursor->bad;
    struct key *keys = take_keys(reader, cursor, node, n, &common);
    bool good = !cursor->bad && (node->height > 0 ? take_children(reader, cursor, node, n, keys, common, files, n_files)
                                                  : take_values(reader, cursor, n, keys, files, n_files));
    free(keys);
    free(common);
    return good;
}

/* Reads a node that was not read before: a tree has no node twice. */
static bool read_node(struct reader *reader, const struct node *node)
{
    const struct source *source = node->file->source;
    const uint64_t place[2] = {(uint64_t)(uintptr_t)source, node->offset};
    size_t length;
    if (!text_index_add(&reader->seen, arena_copy(reader->checkpoint->arena, place, sizeof place), sizeof place, 0))
        return refuse(reader, source, "damaged: a node is in the tree twice");
    unsigned char *body = read_frame(reader, source, node->offset, node->length, NODE_MAGIC, &length);
    if (body == NULL)
        return false;
    struct cursor cursor = {.bytes = body, .length = length};
    bool good = take_rows(reader, &cursor, node);
    free(body);
    return cursor.bad ? refuse(reader, source, "damaged: a node") : good;
}

/* The manifest. */

static void skip_configuration(struct cursor *cursor)
{
    take_bytes(cursor, UUID);
    cursor->bad |= take_varint(cursor) != 0; /* the kind: one file */
    take_varint(cursor);                     /* the most bytes of a value in a node, and of a node */
    take_varint(cursor);
    take(cursor, 1); /* the arity of the tree of versions */
    if (take_varint(cursor) == 1)
        take(cursor, 4); /* the level of compression */
}

/* Adds the root of the newest version. */
static bool take_versions(struct reader *reader, struct cursor *cursor)
{
    size_t n_files, n;
    skip_configuration(cursor);
    struct data_file *files = cursor->bad ? NULL : take_files(reader, cursor, "", &n_files);
    n = files != NULL ? take_count(cursor) : 0;
    if (n == 0)
        return files != NULL && !cursor->bad;
    free(take_column(cursor, n)); /* generations */
    const unsigned char *heights = take_bytes(cursor, n);
    uint64_t *numbers = take_column(cursor, n), *offsets = take_column(cursor, n), *lengths = take_column(cursor, n);
    struct node root = {.file = NULL, .offset = offsets[n - 1], .length = lengths[n - 1], .prefix = ""};
    bool good = !cursor->bad && numbers[n - 1] < n_files && heights[n - 1] <= MAX_HEIGHT;
    if (good) {
        struct data_file *file = &files[numbers[n - 1]];
        root.file = file;
        root.height = heights[n - 1];
        good = open_file(reader, file);
        push(reader, &root);
    }
    free(numbers);
    free(offsets);
    free(lengths);
    return good;
}

static bool read_manifest(struct reader *reader)
{
    size_t length;
    unsigned char *body =
        read_frame(reader, reader->manifest, 0, source_size(reader->manifest), MANIFEST_MAGIC, &length);
    if (body == NULL)
        return false;
    struct cursor cursor = {.bytes = body, .length = length};
    *reader->error->message = '\0';
    bool good = take_versions(reader, &cursor);
    free(body);
    return good || *reader->error->message != '\0' ? good : refuse(reader, NULL, "damaged, or of an unknown kind");
}

/* Gives the values that lie in nodes a source of their own. */
static void place_inline(struct reader *reader)
{
    if (reader->inline_values.length == 0)
        return;
    struct source *source = source_of_text(reader->manifest, source_name(reader->manifest),
                                           (const char *)reader->inline_values.bytes, reader->inline_values.length);
    checkpoint_add_source(reader->checkpoint, source);
    for (size_t i = 0; i < reader->n_inline; i++)
        reader->store->values[reader->inline_keys[i]].source = source;
}

bool ocdbt_read(struct value_store *store, struct checkpoint *checkpoint, const struct location *location,
                const char *folder, struct error *error)
{
    struct reader reader = {
        .store = store,
        .checkpoint = checkpoint,
        .location = location,
        .folder = folder,
        .nodes_left = max_nodes,
        .texts_left = TEXTS_CONSTANT,
        .error = error,
    };
    reader.manifest = value_store_open(store, checkpoint, location,
                                       arena_printf(checkpoint->arena, "%s%s", folder, ocdbt_manifest), error);
    bool good = reader.manifest != NULL && read_manifest(&reader);
    while (good && reader.n_nodes > 0) {
        struct node node = reader.nodes[--reader.n_nodes];
        good = read_node(&reader, &node);
    }
    if (good)
        place_inline(&reader);
    text_index_free(&reader.paths);
    text_index_free(&reader.seen);
    buffer_free(&reader.inline_values);
    free(reader.inline_keys);
    free(reader.sources);
    free(reader.nodes);
    return good;
}

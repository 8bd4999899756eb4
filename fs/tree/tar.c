#include "fs/tree/tar.h"

#include "base/buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, END_BLOCKS = 2, MOST_DEPTH = 32 };

#define MOST_OCTAL ((UINT64_C(1) << 33) - 1) /* 11 octal digits: 8 GiB */

/* The header of a member. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
        user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

/* Splits a name between two directories, if it is too long for one field. */
static bool split_name(const char *name, struct header *header)
{
    size_t length = strlen(name);
    const char *rest = name;
    if (length > sizeof header->name) {
        rest = length - sizeof header->name <= sizeof header->prefix + 1
                   ? strchr(name + length - sizeof header->name - 1, '/')
                   : NULL;
        if (rest == NULL || rest[1] == '\0' || (size_t)(rest - name) > sizeof header->prefix)
            return false;
        memcpy(header->prefix, name, (size_t)(rest - name));
        rest++;
    }
    memcpy(header->name, rest, length - (size_t)(rest - name));
    return true;
}

static void add_checksum(struct header *header)
{
    unsigned sum = 0;
    memset(header->checksum, ' ', sizeof header->checksum);
    for (size_t i = 0; i < BLOCK; i++)
        sum += ((const unsigned char *)header)[i];
    snprintf(header->checksum, sizeof header->checksum, "%06o", sum);
}

static void add_header(struct span_list *spans, const char *name, char type, uint64_t size)
{
    struct header header = {.type = type, .magic = "ustar", .version = {'0', '0'}};
    split_name(name, &header);
    snprintf(header.mode, sizeof header.mode, "%07o", type == '5' ? 0755U : 0644U);
    snprintf(header.uid, sizeof header.uid, "%07o", 0U);
    snprintf(header.gid, sizeof header.gid, "%07o", 0U);
    snprintf(header.size, sizeof header.size, "%011" PRIo64, size <= MOST_OCTAL ? size : 0);
    snprintf(header.mtime, sizeof header.mtime, "%011o", 0U);
    add_checksum(&header);
    spans_add_literal(spans, arena_copy(spans->arena, &header, sizeof header), sizeof header);
}

static void add_padding(struct span_list *spans)
{
    spans_add_zeros(spans, (BLOCK - spans->size % BLOCK) % BLOCK);
}

/* Appends "LENGTH key=value\n", whose length counts its own digits. */
static void append_record(struct buffer *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + strlen(" =\n"), length = rest;
    while (length != rest + (size_t)snprintf(NULL, 0, "%zu", length))
        length = rest + (size_t)snprintf(NULL, 0, "%zu", length);
    buffer_printf(out, "%zu %s=%s\n", length, key, value);
}

/* Adds a pax header for what ustar cannot hold. */
static void add_extended(struct span_list *spans, const char *name, uint64_t size)
{
    struct buffer records = {0};
    struct header unused = {0};
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRIu64, size);
    if (!split_name(name, &unused))
        append_record(&records, "path", name);
    if (size > MOST_OCTAL)
        append_record(&records, "size", digits);
    if (records.length != 0) {
        add_header(spans, "PaxHeader", 'x', records.length);
        spans_add_literal(spans, arena_copy(spans->arena, records.bytes, records.length), records.length);
        add_padding(spans);
    }
    buffer_free(&records);
}

static void add_member(struct span_list *spans, const char *name, char type, uint64_t size)
{
    add_extended(spans, name, size);
    add_header(spans, name, type, size);
}

/* Adds the directories of a name that the name before it does not have. */
static void add_directories(struct span_list *spans, const char *name, const char *before)
{
    size_t common = 0;
    for (size_t i = 0; name[i] != '\0' && name[i] == before[i]; i++)
        common = name[i] == '/' ? i + 1 : common;
    for (const char *slash = strchr(name + common, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
        add_member(spans, arena_strndup(spans->arena, name, (size_t)(slash - name) + 1), '5', 0);
}

static bool has_source(const struct origin *origin, const struct source *source)
{
    for (size_t i = 0; i < origin->n_sources; i++)
        if (origin->sources[i] == source)
            return true;
    return false;
}

/* Adds the sources of another file, each once. */
static void add_origin(struct origin *origin, const struct origin *of_file, struct arena *arena)
{
    struct source **sources = arena_array(arena, origin->n_sources + of_file->n_sources, sizeof *sources);
    for (size_t i = 0; i < origin->n_sources; i++)
        sources[i] = origin->sources[i];
    origin->sources = sources;
    for (size_t i = 0; i < of_file->n_sources; i++)
        if (!has_source(origin, of_file->sources[i]))
            sources[origin->n_sources++] = of_file->sources[i];
}

bool tar_make(struct tree *tree, const struct tar_member *members, size_t n_members, struct arena *arena,
              struct vfile *ret_file, struct error *error)
{
    struct span_list spans = {.arena = arena};
    struct origin origin = {0};
    const char *before = "";
    for (size_t i = 0; i < n_members; i++) {
        struct vfile file;
        struct node_attributes unused;
        if (!tree_attributes(tree, members[i].node, &unused))
            return error_set(error, "%s: cannot be made", members[i].name);
        if (!tree_file(tree, members[i].node, arena, &file, error))
            return error_prefix(error, "%s", members[i].name);
        add_directories(&spans, members[i].name, before);
        add_member(&spans, members[i].name, '0', file.size);
        spans_add_all(&spans, file.spans, file.n_spans);
        add_padding(&spans);
        add_origin(&origin, &file.origin, arena);
        before = members[i].name;
    }
    spans_add_zeros(&spans, END_BLOCKS * BLOCK);
    *ret_file = vfile_of_spans(&spans, origin);
    return true;
}

/* The files of a directory while they are collected. */
struct collecting {
    struct tree *tree;
    struct arena *arena;
    struct tar_member *members;
    size_t n_members;
    const char *directory; /* "hf/" */
    unsigned depth;
    bool has_failed;
    struct error *error;
};

static tree_emit collect;

static void collect_all(struct collecting *collecting, node_id directory)
{
    if (directory != TREE_ROOT && tree_lacks_weights(collecting->tree, directory, collecting->error))
        collecting->has_failed = true;
    else
        tree_list(collecting->tree, directory, 0, collect, collecting);
}

static bool collect(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct collecting *collecting = context;
    const char *outer = collecting->directory, *path = arena_printf(collecting->arena, "%s%s", outer, name);
    if (!attributes->directory) {
        collecting->members =
            arena_grow(collecting->arena, collecting->members, collecting->n_members, sizeof *collecting->members);
        collecting->members[collecting->n_members++] = (struct tar_member){path, attributes->id};
    } else if (collecting->depth < MOST_DEPTH) {
        collecting->directory = arena_printf(collecting->arena, "%s/", path);
        collecting->depth++;
        collect_all(collecting, attributes->id);
        collecting->depth--;
        collecting->directory = outer;
    }
    return !collecting->has_failed;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tar_member *)a)->name, ((const struct tar_member *)b)->name);
}

bool tar_of_directory(struct tree *tree, node_id directory, const char *name, struct arena *arena,
                      struct vfile *ret_file, struct error *error)
{
    struct collecting collecting = {
        .tree = tree,
        .arena = arena,
        .directory = arena_printf(arena, "%s%s", name, *name != '\0' ? "/" : ""),
        .error = error,
    };
    collect_all(&collecting, directory);
    if (collecting.has_failed)
        return false;
    if (collecting.n_members != 0)
        qsort(collecting.members, collecting.n_members, sizeof *collecting.members, by_name);
    return tar_make(tree, collecting.members, collecting.n_members, arena, ret_file, error);
}

#include "fs/lib/reproduction.h"

#include "base/buffer.h"
#include "base/encodings.h"
#include "models/diffusion/state_dict.h"
#include "models/packings/packings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct probe {
    struct reproduction made;
    char header[SHA256_HEX + 1]; /* "" if nothing is made; unset until is_made */
    bool is_made;
};

struct probing {
    const struct reproduction *like;
    const char *source;
    const struct checkpoint *file;
    struct build_range ranges[MOST_BUILD_RANGES];
    struct probe probes[MOST_BUILD_RANGES];
};

/* Appends a byte for each packed weight whose values follow a rule that changed. */
static void append_rules(struct buffer *out, const struct reproduction *made)
{
    const struct packed_weights *packed = packings_of(tree_checkpoint(made->tree));
    for (size_t i = 0; i < packed->found.n_weights; i++) {
        const struct unpacked_forms *forms = packed->found.weights[i].forms;
        if (forms != NULL && forms->mended != CHANGE_NONE)
            buffer_append(out, follows(&made->options->content.request.references, forms->mended) ? "1" : "0", 1);
    }
}

/* Hashes the bytes before the first tensor's, and the rules that the values follow. */
static bool hash_header(const struct reproduction *made, char hex[SHA256_HEX + 1])
{
    struct buffer hashed = {0};
    uint64_t end = made->file.size;
    struct error unused;
    for (size_t i = 0; i < made->opened->tensors->n_tensors; i++)
        if (made->opened->tensors->tensors[i].offset < end)
            end = made->opened->tensors->tensors[i].offset;
    buffer_append_zeros(&hashed, (size_t)end);
    bool read = vfile_read(&made->file, 0, (size_t)end, hashed.bytes, &unused);
    append_rules(&hashed, made);
    if (read)
        sha256_hex(hashed.bytes, hashed.length, hex);
    buffer_free(&hashed);
    return read;
}

static struct probe *probe(struct probing *probing, size_t index)
{
    char words[64];
    struct error unused;
    struct probe *probe = &probing->probes[index];
    if (probe->is_made)
        return probe;
    const struct options *given = probing->like->options;
    struct options *options = arena_copy(given->arena, given, sizeof *options);
    snprintf(words, sizeof words, "llama.cpp=b%u", probing->ranges[index].last);
    bool made =
        options_parse(options, words, &unused) &&
        reproduction_open(&probe->made, options, probing->like->path, probing->source, probing->file, &unused) &&
        hash_header(&probe->made, probe->header);
    if (!made) {
        reproduction_close(&probe->made);
        probe->header[0] = '\0';
    }
    probe->is_made = true;
    return probe;
}

/* Makes probes until those that are neighbours, or have equal headers, follow each other. */
static void split(struct probing *probing, size_t first, size_t last)
{
    if (last - first < 2 || strcmp(probe(probing, first)->header, probe(probing, last)->header) == 0)
        return;
    size_t middle = first + (last - first) / 2;
    probe(probing, middle);
    split(probing, first, middle);
    split(probing, middle, last);
}

/* Joins the ranges between equal probes. */
static void collect(struct probing *probing, size_t n_ranges, struct build_classes *classes)
{
    const char *header = NULL;
    for (size_t i = 0; i < n_ranges; i++) {
        struct probe *probe = &probing->probes[i];
        struct build_class *last = &classes->items[classes->n_items - (classes->n_items > 0)];
        if (!probe->is_made || (header != NULL && strcmp(header, probe->header) == 0)) {
            last->builds.last = probing->ranges[i].last;
            reproduction_close(&probe->made);
            continue;
        }
        header = probe->header;
        classes->items[classes->n_items++] = (struct build_class){probing->ranges[i], probe->made};
    }
}

struct build_classes *build_classes_new(const struct reproduction *like, const char *source,
                                        const struct checkpoint *file)
{
    bool is_diffusion = state_dict_of(tree_checkpoint(like->tree)) != NULL;
    if (reference_of_path(like->path, is_diffusion) != &reference_tools[0])
        return NULL;
    struct probing *probing = memory_alloc(sizeof *probing);
    *probing = (struct probing){like, source, file, {{0}}, {{.is_made = false}}};
    size_t n_ranges = known_builds(probing->ranges);
    struct build_classes *classes = memory_alloc(sizeof *classes);
    *classes = (struct build_classes){memory_alloc(n_ranges * sizeof *classes->items), 0};
    probe(probing, 0);
    probe(probing, n_ranges - 1);
    split(probing, 0, n_ranges - 1);
    collect(probing, n_ranges, classes);
    free(probing);
    return classes;
}

void build_classes_free(struct build_classes *classes)
{
    if (classes == NULL)
        return;
    for (size_t i = 0; i < classes->n_items; i++)
        reproduction_close(&classes->items[i].made);
    free(classes->items);
    free(classes);
}

/* Counts the equal ones among three samples of each tensor: its beginning, middle and end. */
static size_t count_equal_samples(const struct reproduction *made, const struct checkpoint *file)
{
    enum { SAMPLES = 3, SAMPLE_BYTES = 256 };
    unsigned char found_bytes[SAMPLE_BYTES], own_bytes[SAMPLE_BYTES];
    struct error unused;
    size_t n_equal = 0;
    for (size_t i = 0; i < file->tensors->n_tensors; i++) {
        const struct tensor *found = &file->tensors->tensors[i];
        const struct tensor *own = tensor_set_find(made->opened->tensors, found->name, found->name_length);
        if (own == NULL || own->dtype != found->dtype || own->length != found->length || found->source == NULL)
            continue;
        size_t length = found->length < SAMPLE_BYTES ? (size_t)found->length : SAMPLE_BYTES;
        for (uint64_t sample = 0; sample < SAMPLES; sample++) {
            uint64_t at = (found->length - length) / (SAMPLES - 1) * sample;
            n_equal += source_read(found->source, found->offset + at, length, found_bytes, &unused) &&
                       vfile_read(&made->file, own->offset + at, length, own_bytes, &unused) &&
                       memcmp(found_bytes, own_bytes, length) == 0;
        }
    }
    return n_equal;
}

static bool is_nearer(const struct reproduction *made, const struct reproduction *other, const struct checkpoint *file)
{
    if (reproduction_is_better(made, other) || reproduction_is_better(other, made))
        return reproduction_is_better(made, other);
    return count_equal_samples(made, file) > count_equal_samples(other, file);
}

const struct build_class *build_classes_nearest(const struct build_classes *classes, const struct checkpoint *file)
{
    const struct build_class *nearest = NULL;
    for (size_t i = classes->n_items; i-- > 0;) {
        const struct build_class *item = &classes->items[i];
        if (item->made.opened != NULL && (nearest == NULL || is_nearer(&item->made, &nearest->made, file)))
            nearest = item;
    }
    return nearest;
}

const struct build_class *build_classes_of(const struct build_classes *classes, unsigned build)
{
    for (size_t i = 0; i < classes->n_items; i++)
        if (build >= classes->items[i].builds.first && build <= classes->items[i].builds.last)
            return &classes->items[i];
    return NULL;
}

static bool same_kv(const struct gguf_kv *a, const struct gguf_kv *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->type == b->type && a->value.length == b->value.length &&
           memcmp(a->value.bytes, b->value.bytes, a->value.length) == 0;
}

const struct build_class *build_classes_with(const struct build_classes *classes, const char *key,
                                             const struct gguf_kv *kv)
{
    for (size_t i = classes->n_items; i-- > 0;) {
        const struct checkpoint *opened = classes->items[i].made.opened;
        if (opened != NULL && same_kv(gguf_kvs_find(&opened->metadata, key), kv))
            return &classes->items[i];
    }
    return NULL;
}

const struct build_class *reproduction_builds(const struct reproduction *reproduction)
{
    unsigned build = reference_build(&reproduction->options->content.request.references);
    return reproduction->classes != NULL ? build_classes_of(reproduction->classes, build) : NULL;
}

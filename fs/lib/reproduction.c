#include "fs/lib/reproduction.h"

#include "base/text.h"
#include "fs/lib/paths.h"
#include "fs/options/options.h"
#include "models/convert/edits.h"
#include "models/formats.h"
#include "models/quantize/mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CANDIDATES = 4, /* virtual files to open in search of the nearest */
    PROBED_TENSORS = 4,
    PROBED_BLOCKS = 64 /* compared to choose between reproductions of equal headers */
};

/* Finds all GGUFs that wfs makes from the source, without splits. */
static void find_candidates(struct tree *tree, struct found_list *candidates)
{
    static const char *const patterns[] = {"model.gguf",  "gguf/*.gguf",    "gguf/converter/*.gguf",
                                           "mmproj.gguf", "mtp-model.gguf", "adapter.gguf"};
    struct error unused;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        paths_find(tree, patterns[i], candidates, &unused);
}

/* Counts the tensors of the file that the other one has in the same type, and those of them at the same offset. */
static size_t likeness(const struct checkpoint *file, const struct checkpoint *other, size_t *ret_n_in_place)
{
    size_t n_alike = 0;
    *ret_n_in_place = 0;
    for (size_t i = 0; i < file->tensors->n_tensors; i++) {
        const struct tensor *tensor = &file->tensors->tensors[i];
        const struct tensor *same = tensor_set_find(other->tensors, tensor->name, tensor->name_length);
        bool is_alike = same != NULL && same->dtype == tensor->dtype;
        n_alike += is_alike;
        *ret_n_in_place += is_alike && same->offset == tensor->offset;
    }
    return n_alike;
}

/* Counts the keys of the file that follow the same key in the other one: tools write equal keys in different orders. */
static size_t count_in_order(const struct gguf_kvs *file, const struct gguf_kvs *other)
{
    size_t n_in_order = 0;
    const struct gguf_kv *previous = NULL;
    for (size_t i = 0; i < file->n_kvs; i++) {
        const struct gguf_kv *same = gguf_kvs_find(other, file->kvs[i].key);
        n_in_order += same != NULL && previous != NULL && same == previous + 1;
        previous = same;
    }
    return n_in_order;
}

static uint64_t total_size(const struct checkpoint *checkpoint)
{
    uint64_t size = 0;
    for (size_t i = 0; i < checkpoint->n_sources; i++)
        size += source_size(checkpoint->sources[i]);
    return size;
}

/* Reports whether the file's own metadata name this candidate's mix. */
static bool is_named(const struct found *candidate, const struct checkpoint *file)
{
    uint64_t file_type;
    const struct mix *mix =
        gguf_get_u64(&file->metadata, "general.file_type", &file_type) ? mix_of_file_type(file_type) : NULL;
    const char *start = strchr(candidate->path, '-');
    return mix != NULL && start != NULL && text_starts_with(candidate->path, "gguf/model-") &&
           text_starts_with(start + 1, mix->name) && strcmp(start + 1 + strlen(mix->name), ".gguf") == 0;
}

static uint64_t distance(const struct found *candidate, const struct checkpoint *file)
{
    uint64_t size = total_size(file), other = candidate->attributes.size;
    if (size == other)
        return 0;
    if (is_named(candidate, file))
        return 1;
    return 1 + (size > other ? size - other : other - size);
}

/* Opens a candidate as if it were a file. */
static bool open_candidate(struct reproduction *reproduction, const struct found *found, const struct checkpoint *file,
                           struct error *error)
{
    if (!tree_file(reproduction->tree, found->attributes.id, reproduction->arena, &reproduction->file, error))
        return error_prefix(error, "%s", found->path);
    reproduction->path = arena_strdup(reproduction->arena, found->path);
    reproduction->opened =
        checkpoint_of_source(source_of_vfile(&reproduction->file, reproduction->path), formats, error);
    if (reproduction->opened == NULL)
        return false;
    struct arena *arena = arena_new();
    reproduction->n_alike = likeness(file, reproduction->opened, &reproduction->n_in_place);
    reproduction->n_keys = match_keys(&reproduction->opened->metadata, &file->metadata, arena).n_matches;
    reproduction->n_in_order = count_in_order(&file->metadata, &reproduction->opened->metadata);
    arena_free(arena);
    return true;
}

bool reproduction_is_better(const struct reproduction *reproduction, const struct reproduction *other)
{
    if (reproduction->n_alike != other->n_alike)
        return reproduction->n_alike > other->n_alike;
    if (reproduction->n_keys != other->n_keys)
        return reproduction->n_keys < other->n_keys;
    if (reproduction->n_in_order != other->n_in_order)
        return reproduction->n_in_order > other->n_in_order;
    return reproduction->n_in_place > other->n_in_place;
}

/* Chooses the nearest among the candidate that the file names and the few nearest in size: sizes alone hardly tell
 * mixes apart. */
static bool choose(struct reproduction *reproduction, struct found_list *candidates, const struct checkpoint *file,
                   struct error *error)
{
    for (size_t n = 0; n < CANDIDATES && n < candidates->n_items; n++) {
        size_t best = n;
        for (size_t i = n + 1; i < candidates->n_items; i++)
            if (distance(&candidates->items[i], file) < distance(&candidates->items[best], file))
                best = i;
        const struct found chosen = candidates->items[best];
        candidates->items[best] = candidates->items[n];
        candidates->items[n] = chosen;
        struct reproduction trial = {
            .tree = reproduction->tree, .arena = reproduction->arena, .options = reproduction->options};
        if (!open_candidate(&trial, &chosen, file, error)) {
            checkpoint_close(trial.opened);
            return false;
        }
        bool takes = reproduction->opened == NULL || reproduction_is_better(&trial, reproduction);
        checkpoint_close(takes ? reproduction->opened : trial.opened);
        if (takes)
            *reproduction = trial;
    }
    return true;
}

bool reproduction_open(struct reproduction *reproduction, const struct options *options, const char *path,
                       const char *source, const struct checkpoint *file, struct error *error)
{
    struct found_list candidates = {0};
    *reproduction = (struct reproduction){.options = options, .arena = arena_new()};
    reproduction->tree = lib_open_model(source, options, error);
    if (reproduction->tree == NULL)
        return false;
    if (path == NULL)
        find_candidates(reproduction->tree, &candidates);
    else
        paths_find(reproduction->tree, path, &candidates, error);
    bool chosen = (candidates.n_items != 0 ||
                   error_set(error, "%s: no GGUF can be made from it; 'wfs info' gives the reason", source)) &&
                  choose(reproduction, &candidates, file, error);
    found_free(&candidates);
    return chosen;
}

void reproduction_close(struct reproduction *reproduction)
{
    checkpoint_close(reproduction->opened);
    arena_free(reproduction->arena);
    if (reproduction->tree != NULL)
        lib_close_tree(reproduction->tree);
    build_classes_free(reproduction->classes);
    *reproduction = (struct reproduction){0};
}

/* The search for options. */

struct search {
    const struct checkpoint *file;
    const char *source;
    struct reproduction *best;
    struct arena *arena;
    struct build_classes *classes;
};

/* Counts equal blocks among the first ones of a few quantized tensors. */
static size_t count_equal_blocks(const struct reproduction *reproduction, const struct checkpoint *file)
{
    struct error unused;
    size_t n_equal = 0, n_probed = 0;
    for (size_t i = 0; i < file->tensors->n_tensors && n_probed < PROBED_TENSORS; i++) {
        const struct tensor *found = &file->tensors->tensors[i];
        const struct tensor *own = tensor_set_find(reproduction->opened->tensors, found->name, found->name_length);
        const struct dtype *dtype = found->dtype;
        unsigned char block[512], other[512];
        if (own == NULL || own->dtype != dtype || own->length != found->length || dtype->kind != DTYPE_BLOCK ||
            found->source == NULL)
            continue;
        n_probed++;
        for (size_t at = 0; at < PROBED_BLOCKS && (at + 1) * dtype->block_bytes <= own->length; at++)
            n_equal += source_read(found->source, found->offset + at * dtype->block_bytes, dtype->block_bytes, block,
                                   &unused) &&
                       vfile_read(&reproduction->file, own->offset + at * dtype->block_bytes, dtype->block_bytes, other,
                                  &unused) &&
                       memcmp(block, other, dtype->block_bytes) == 0;
    }
    return n_equal;
}

/* Takes the options if they bring the reproduction nearer to the file. `by_values`: equal headers count, too, if more
 * blocks are equal. */
static bool try_options(const struct search *search, const struct options *options, bool by_values)
{
    struct reproduction trial;
    struct error unused;
    struct reproduction *best = search->best;
    bool takes = reproduction_open(&trial, options, best->path, search->source, search->file, &unused) &&
                 (reproduction_is_better(&trial, best) ||
                  (by_values && !reproduction_is_better(best, &trial) &&
                   count_equal_blocks(&trial, search->file) > count_equal_blocks(best, search->file)));
    reproduction_close(takes ? best : &trial);
    if (takes)
        *best = trial;
    return takes;
}

/* Tries an option in addition to those of the best reproduction: one -o, with its commas escaped. */
static bool try_words(const struct search *search, const char *words, bool by_values)
{
    struct error unused;
    struct options *options = arena_copy(search->best->options->arena, search->best->options, sizeof *options);
    return options_parse(options, words, &unused) && try_options(search, options, by_values);
}

/* Appends a value with its commas escaped. */
static void append_value(struct buffer *words, const char *value)
{
    for (; *value != '\0'; value++)
        buffer_printf(words, *value == ',' ? "\\%c" : "%c", *value);
}

static bool try_name(const struct search *search, const char *name)
{
    struct buffer words = {0};
    buffer_append_text(&words, "name=");
    append_value(&words, name);
    buffer_append(&words, "", 1);
    bool took = *name != '\0' && try_words(search, (const char *)words.bytes, false);
    buffer_free(&words);
    return took;
}

/* Tries names of directories that could give the file's general.name and the keys that go with it. */
static void find_name(const struct search *search)
{
    struct arena *arena = search->arena;
    const struct gguf_kvs *kvs = &search->file->metadata;
    const char *name = gguf_get_text(kvs, "general.name", arena);
    if (name == NULL)
        return;
    char *dashed = arena_strdup(arena, name);
    for (char *space = dashed; (space = strchr(space, ' ')) != NULL;)
        *space = '-';
    try_name(search, dashed);
    if (strcmp(dashed, name) != 0)
        try_name(search, name);
}

/* Appends ",tensor-type=PATTERN=TYPE" for a name that has to be matched as it is. */
static void append_type(struct buffer *words, const char *before, const char *name, const char *after,
                        const struct dtype *dtype)
{
    buffer_printf(words, "%stensor-type=%s", words->length != 0 ? "," : "", before);
    for (; *name != '\0'; name++)
        buffer_printf(words, strchr(".[]()*+?^$|\\{}", *name) != NULL ? "\\%c" : "%c", *name);
    buffer_printf(words, "%s=%s", after, dtype->name);
}

/* Returns what follows "blk.N." in a name; NULL for others. */
static const char *part_of_layer(const char *name)
{
    uint64_t unused;
    return mix_layer_of(name, &unused) ? strchr(name + strlen("blk."), '.') : NULL;
}

/* Reports whether the file has this part of every layer in one type, and no earlier tensor has it. */
static bool is_alike_in_layers(const struct tensor_set *set, const struct tensor *tensor, bool *ret_first)
{
    const char *part = part_of_layer(tensor->name);
    *ret_first = true;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *other = part_of_layer(set->tensors[i].name);
        if (other == NULL || strcmp(part, other) != 0)
            continue;
        if (set->tensors[i].dtype != tensor->dtype)
            return false;
        *ret_first &= &set->tensors[i] >= tensor;
    }
    return true;
}

/* Tries the types of the tensors that have other ones in the mix. */
static void find_types(const struct search *search)
{
    enum { MOST = 256 };
    const struct tensor_set *set = search->file->tensors;
    struct buffer words = {0};
    size_t n = 0;
    for (size_t i = 0; i < set->n_tensors && n < MOST; i++) {
        const struct tensor *found = &set->tensors[i];
        const struct tensor *own = tensor_set_find(search->best->opened->tensors, found->name, found->name_length);
        bool first;
        if (own == NULL || own->dtype == found->dtype || strlen(found->name) != found->name_length)
            continue;
        n++;
        if (part_of_layer(found->name) == NULL || !is_alike_in_layers(set, found, &first))
            append_type(&words, "^", found->name, "$", found->dtype);
        else if (first)
            append_type(&words, "", part_of_layer(found->name), "$", found->dtype);
    }
    buffer_append(&words, "", 1);
    if (n > 0)
        try_words(search, (const char *)words.bytes, false);
    buffer_free(&words);
}

/* Appends an override that gives a key the file's value, if one can: numbers become u32, and arrays have none. */
static void append_override(struct buffer *words, const struct gguf_kv *kv)
{
    const char *type = kv->type == GGUF_U32      ? "int"
                       : kv->type == GGUF_F32    ? "float"
                       : kv->type == GGUF_BOOL   ? "bool"
                       : kv->type == GGUF_STRING ? "str"
                                                 : NULL;
    struct buffer value = {0};
    struct error unused;
    if (type == NULL || strpbrk(kv->key, ",=:\\") != NULL)
        return;
    buffer_printf(&value, "%s=%s:", kv->key, type);
    gguf_append_text(&value, kv, 1);
    buffer_append(&value, "", 1);
    if (gguf_override_check((const char *)value.bytes, &unused)) {
        buffer_printf(words, "%soverride-kv=", words->length != 0 ? "," : "");
        append_value(words, (const char *)value.bytes);
    }
    buffer_free(&value);
}

bool key_is_descriptive(const char *key)
{
    return (text_starts_with(key, "general.") && strcmp(key, "general.architecture") != 0) ||
           text_starts_with(key, "quantize.") || text_starts_with(key, "split.");
}

/* Tries overrides of the keys that only describe the model, but not of those that tell of an importance matrix. */
static void find_overrides(const struct search *search)
{
    struct key_matches keys = match_keys(&search->best->opened->metadata, &search->file->metadata, search->arena);
    struct buffer words = {0};
    for (size_t i = 0; i < keys.n_matches; i++)
        if (keys.matches[i].b != NULL && key_is_descriptive(keys.matches[i].b->key) &&
            !text_starts_with(keys.matches[i].b->key, "quantize."))
            append_override(&words, keys.matches[i].b);
    buffer_append(&words, "", 1);
    if (words.length > 1)
        try_words(search, (const char *)words.bytes, false);
    buffer_free(&words);
}

/* Tries to do without the user's importance matrix. */
static void try_without_matrix(const struct search *search)
{
    const struct options *given = search->best->options;
    if (given->content.request.quantize.imatrix == NULL)
        return;
    struct options *options = arena_copy(given->arena, given, sizeof *options);
    options->content.request.quantize.imatrix = NULL;
    options->content.request.quantize.filter = (struct imatrix_filter){0};
    options->asked = (struct asked_options){0};
    for (size_t i = 0; i < given->asked.count; i++)
        if (strcmp(given->asked.items[i].row->name, "imatrix") != 0 &&
            strstr(given->asked.items[i].row->name, "clude-weights") == NULL)
            request_add(options, given->asked.items[i].row, given->asked.items[i].value);
    request_finish(options);
    try_options(search, options, true);
}

/* Makes the file by a build that is no further from it. */
static void take_build(const struct search *search, unsigned build)
{
    char words[64];
    struct error unused;
    struct reproduction trial, *best = search->best;
    struct options *options = arena_copy(best->options->arena, best->options, sizeof *options);
    snprintf(words, sizeof words, "llama.cpp=b%u", build);
    if (!options_parse(options, words, &unused))
        return;
    bool takes = reproduction_open(&trial, options, best->path, search->source, search->file, &unused);
    reproduction_close(takes ? best : &trial);
    if (takes)
        *best = trial;
}

/* Finds the builds of llama.cpp that write other files, and takes one that brings the reproduction nearer to the file,
 * unless the user chose the build. */
static struct build_classes *find_builds(const struct search *search)
{
    const struct reproduction *best = search->best;
    bool is_chosen = best->options->content.request.references.llama_cpp != 0;
    struct build_classes *classes = build_classes_new(best, search->source, search->file);
    const struct build_class *nearest = classes != NULL ? build_classes_nearest(classes, search->file) : NULL;
    unsigned build = reference_build(&best->options->content.request.references);
    if (nearest != NULL && !is_chosen && nearest != build_classes_of(classes, build) &&
        !reproduction_is_better(best, &nearest->made))
        take_build(search, nearest->builds.last);
    return classes;
}

static void find_options(struct search *search)
{
    static const char *const whole[] = {"pure", "leave-output-tensor"};
    const struct reproduction *best = search->best;
    size_t n_tensors = search->file->tensors->n_tensors;
    try_without_matrix(search);
    search->classes = find_builds(search);
    for (size_t i = 0; i < sizeof whole / sizeof *whole && best->n_alike < n_tensors; i++)
        try_words(search, whole[i], false);
    if (best->n_alike < n_tensors)
        find_types(search);
    if (best->n_keys > 0)
        find_name(search);
    if (best->n_keys > 0)
        find_overrides(search);
    try_words(search, "q4_0=absmax7", true);
}

bool reproduction_find(const struct checkpoint *file, const char *source, const struct options *options,
                       struct reproduction *ret_reproduction, struct error *error)
{
    struct reproduction best;
    if (!reproduction_open(&best, options, NULL, source, file, error)) {
        reproduction_close(&best);
        return false;
    }
    struct search search = {file, source, &best, arena_new(), NULL};
    find_options(&search);
    arena_free(search.arena);
    best.classes = search.classes;
    *ret_reproduction = best;
    return true;
}

/* Appends a word, in quotes if a shell would change it. */
static void append_word(struct buffer *out, const char *word)
{
    bool is_plain = *word != '\0' && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                                       "_-./=:,@%+")] == '\0';
    buffer_append_text(out, is_plain ? " " : " '");
    for (; *word != '\0'; word++)
        buffer_printf(out, *word == '\'' ? "'\\'%c" : "%c", *word);
    buffer_append_text(out, is_plain ? "" : "'");
}

void reproduction_append_command(const struct reproduction *reproduction, const char *source, const char *file,
                                 struct buffer *out)
{
    buffer_append_text(out, "wfs cp");
    for (size_t i = 0; i < reproduction->options->asked.count; i++) {
        const struct asked_option *asked = &reproduction->options->asked.items[i];
        struct buffer word = {0};
        buffer_append_text(&word, asked->row->name);
        if (asked->value != NULL) {
            buffer_append_text(&word, "=");
            append_value(&word, asked->value);
        }
        buffer_append(&word, "", 1);
        buffer_append_text(out, " -o");
        append_word(out, (const char *)word.bytes);
        buffer_free(&word);
    }
    append_word(out, source);
    append_word(out, reproduction->path);
    append_word(out, file);
}

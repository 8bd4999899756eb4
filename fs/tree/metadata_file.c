/* metadata.json: the whole checkpoint for jq. The text before the tensors is kept; a tensor's entry is written when it
 * is read. The file lists the size of every file, so asking for its own attributes plans all others first. */
#include "base/pool.h"
#include "formats/components.h"
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/identity.h"
#include "fs/tree/inventory.h"
#include "fs/tree/tensor_views.h"
#include "models/huggingface/hf_model.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_ELEMENTS = 16 }; /* of an array in the metadata; for a longer one, only its length */

/* The contract of docs/metadata.md: a key changes its meaning, or disappears, only with a new number. */
enum { METADATA_SCHEMA = 1 };

static void put_metadata(const struct checkpoint *checkpoint, struct json_writer *writer)
{
    json_break_line(writer);
    json_begin_object(writer, "metadata");
    for (size_t i = 0; i < checkpoint->metadata.n_kvs; i++)
        gguf_put_json(writer, checkpoint->metadata.kvs[i].key, &checkpoint->metadata.kvs[i], SHOWN_ELEMENTS);
    json_end(writer);
    json_break_line(writer);
    if (checkpoint->extras != NULL)
        json_put_raw(writer, "extras", checkpoint->extras);
}

static void put_totals(const struct checkpoint *checkpoint, struct json_writer *writer)
{
    uint64_t bytes = 0;
    const struct tensor_set *set = checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        bytes += dtype_bytes(tensor->dtype, tensor_elements(tensor));
    }
    json_put_template(writer, "\n'parameters': %u, 'bytes': %u", shown_tensors_parameters(checkpoint), bytes);
}

/* Writes the dtype of model.safetensors, if that file exists. */
static void put_safetensors(struct tree *tree, struct json_writer *writer)
{
    struct node_attributes unused;
    const char *reason;
    if (!tree_lookup(tree, TREE_ROOT, "model.safetensors", &unused))
        return;
    const struct dtype *type = hf_type(tree_checkpoint(tree), tree_options(tree)->request.hf_type, &reason);
    json_put_template(writer, "\n'safetensors': {'dtype': %s, 'reason': %s}", type != NULL ? type->name : NULL, reason);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Writes the notes, sorted, since their order depends on the order of plans. */
static void put_notes(const struct checkpoint *checkpoint, struct json_writer *writer)
{
    size_t n_notes = checkpoint_notes(checkpoint);
    const char **notes = memory_alloc(n_notes * sizeof *notes);
    struct arena *arena = arena_new();
    for (size_t i = 0; i < n_notes; i++)
        notes[i] = note_line(checkpoint_note_at(checkpoint, i), arena);
    qsort(notes, n_notes, sizeof *notes, compare_texts);
    json_put_template(writer, "\n'notes': [");
    for (size_t i = 0; i < n_notes; i++)
        json_put_template(writer, "\n%s", notes[i]);
    json_end(writer);
    arena_free(arena);
    free(notes);
}

static void put_hidden(const struct checkpoint *checkpoint, struct json_writer *writer)
{
    json_put_template(writer, "\n'hidden': [");
    for (size_t i = 0; i < checkpoint->n_hidden; i++)
        json_put_template(writer, "{'name': %s, 'reason': %s}", checkpoint->hidden[i].name,
                          checkpoint->hidden[i].reason);
    json_end(writer);
}

/* Lists components from the directory alone: they may not have been opened. */
static void put_listed_components(const struct checkpoint *checkpoint, struct json_writer *writer)
{
    const struct components *components = checkpoint->components;
    if (components == NULL)
        return;
    json_put_template(writer, "\n'components': [");
    for (const struct component *item = components->items; item < components->items + components->count; item++)
        json_put_template(writer, "{'name': %s, 'class': %s, 'size': %u}", item->name, item->class_name, item->bytes);
    json_end(writer);
}

/* Writes everything before the tensors, and begins their list. */
static void write_head(struct tree *tree, struct buffer *out)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct json_writer writer = {.out = out, .letters = JSON_UTF8, .compact = true};
    json_put_template(&writer, "{'wfs': %s, 'build': %s, 'schema': %u, \n'format': %s, \n'name': %s", WFS_VERSION,
                      wfs_build, (uint64_t)METADATA_SCHEMA, checkpoint->format, checkpoint->model_name);
    put_references(&writer, &tree_options(tree)->request.references);
    put_sources(&writer, checkpoint);
    put_metadata(checkpoint, &writer);
    put_totals(checkpoint, &writer);
    put_safetensors(tree, &writer);
    put_listed_components(checkpoint, &writer);
    put_files(&writer, tree, false);
    put_hidden(checkpoint, &writer);
    put_notes(checkpoint, &writer);
    json_put_template(&writer, "\n'tensors': [");
}

static const char *separator(size_t index)
{
    return index > 0 ? ",\n" : "\n";
}

/* One span has the entries of several tensors: a span for each would take more memory than the tensor. */
enum { TENSORS_PER_TEXT = 16, TENSORS_PER_TASK = 32 * TENSORS_PER_TEXT };

static void tensor_texts(const void *context, size_t text, struct buffer *out)
{
    const struct tree *tree = context;
    size_t first = text * TENSORS_PER_TEXT, end = first + TENSORS_PER_TEXT, n = shown_tensors_count(tree_shown(tree));
    for (size_t i = first; i < end && i < n; i++) {
        buffer_append_text(out, separator(i));
        tensor_metadata(tree_shown(tree), i, tree_options(tree), out);
    }
}

/* All cores measure the texts, since a model may have 100,000 tensors. */

struct measuring {
    const struct tree *tree;
    uint64_t *lengths; /* of texts */
    size_t n_tensors;
};

static void measure(void *context, size_t task)
{
    struct measuring *measuring = context;
    const struct tree *tree = measuring->tree;
    struct metadata_lengths lengths = {0};
    size_t first = task * TENSORS_PER_TASK, end = first + TENSORS_PER_TASK;
    for (size_t i = first; i < end && i < measuring->n_tensors; i++) {
        uint64_t *length = &measuring->lengths[i / TENSORS_PER_TEXT];
        *length = (i % TENSORS_PER_TEXT != 0 ? *length : 0) + strlen(separator(i)) +
                  tensor_metadata_length(tree_shown(tree), i, tree_options(tree), &lengths);
    }
    buffer_free(&lengths.text);
}

static enum outcome plan(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct tree *tree = context;
    struct buffer head = {0};
    write_head(tree, &head);
    size_t n_tensors = shown_tensors_count(tree_shown(tree));
    size_t n_texts = (n_tensors + TENSORS_PER_TEXT - 1) / TENSORS_PER_TEXT;
    struct measuring measuring = {tree, memory_alloc(n_texts * sizeof(uint64_t)), n_tensors};
    pool_run((n_tensors + TENSORS_PER_TASK - 1) / TENSORS_PER_TASK, measure, &measuring);
    struct span_list spans = {.arena = arena};
    spans_add_buffer(&spans, &head);
    spans_reserve(&spans, n_texts + 1);
    for (size_t i = 0; i < n_texts; i++)
        spans_add_text(&spans, tensor_texts, tree, i, measuring.lengths[i]);
    spans_add_literal(&spans, "]}\n", 3);
    free(measuring.lengths);
    *ret_file = vfile_of_spans(&spans, tree_origin_of_model(tree));
    return OK;
}

static bool add(struct tree *tree, struct error *error)
{
    return tree_add_certain_file(tree, TREE_ROOT, "metadata.json", plan, tree);
}

const struct content metadata_file_content = {
    .name = "metadata.json",
    .summary = "metadata.json: format, sources, every tensor and every virtual file, for jq",
    .add = add,
};

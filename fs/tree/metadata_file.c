/* metadata.json: the whole checkpoint for jq. What stands before the tensors is kept; each tensor's entry is written
 * when it is read. It tells the size of every file, so who asks for it waits until all are planned. */
#include "fs/tree/content.h"
#include "fs/tree/pool.h"
#include "fs/tree/tensor_views.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_ELEMENTS = 16 }; /* of an array in the metadata; of a longer one, its length */

static void key_text(struct buffer *out, const char *key, const char *text)
{
    buffer_printf(out, "\"%s\":", key);
    buffer_append_json_string(out, text, strlen(text));
}

static void append_sources(const struct checkpoint *checkpoint, struct buffer *out)
{
    buffer_append_text(out, ",\n\"sources\":[");
    for (size_t i = 0; i < checkpoint->n_sources; i++) {
        buffer_append_text(out, i ? ",{" : "{");
        key_text(out, "name", source_name(checkpoint->sources[i]));
        buffer_printf(out, ",\"size\":%" PRIu64 "}", source_size(checkpoint->sources[i]));
    }
    buffer_append_text(out, "]");
}

static void append_metadata(const struct checkpoint *checkpoint, struct buffer *out)
{
    buffer_append_text(out, ",\n\"metadata\":{");
    for (size_t i = 0; i < checkpoint->metadata.n_kvs; i++) {
        const struct gguf_kv *kv = &checkpoint->metadata.kvs[i];
        buffer_append_text(out, i ? "," : "");
        buffer_append_json_string(out, kv->key, strlen(kv->key));
        buffer_append_text(out, ":");
        gguf_append_json(out, kv, SHOWN_ELEMENTS);
    }
    buffer_append_text(out, "}");
    if (checkpoint->extras != NULL)
        buffer_printf(out, ",\n\"extras\":%s", checkpoint->extras);
}

static void append_totals(const struct checkpoint *checkpoint, struct buffer *out)
{
    uint64_t parameters = 0, bytes = 0;
    const struct tensor_set *set = checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        parameters += tensor_elements(tensor);
        bytes += dtype_bytes(tensor->dtype, tensor_elements(tensor));
    }
    buffer_printf(out, ",\n\"parameters\":%" PRIu64 ",\"bytes\":%" PRIu64, parameters, bytes);
}

/* The files of the tree but for metadata.json itself and those below tensors/, which the tensors' entries list. */

struct file_list {
    struct tree *tree;
    struct buffer *out;
    char path[4096];
    bool any;
};

static bool append_file(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    (void)index;
    struct file_list *list = context;
    size_t length = strlen(list->path);
    if (length == 0 && strcmp(name, "tensors") == 0)
        return true;
    snprintf(list->path + length, sizeof list->path - length, "%s%s", length ? "/" : "", name);
    if (attributes->directory) {
        tree_list(list->tree, attributes->id, 0, append_file, list);
    } else {
        buffer_append_text(list->out, list->any ? ",\n{" : "\n{");
        key_text(list->out, "path", list->path);
        buffer_printf(list->out, ",\"size\":%" PRIu64 "}", attributes->size);
        list->any = true;
    }
    list->path[length] = '\0';
    return true;
}

static void append_files(struct tree *tree, struct buffer *out)
{
    struct file_list list = {.tree = tree, .out = out};
    buffer_append_text(out, ",\n\"files\":[");
    tree_list(tree, TREE_ROOT, 0, append_file, &list);
    buffer_append_text(out, "]");
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted: in which order files were planned is chance. */
static void append_notes(const struct checkpoint *checkpoint, struct buffer *out)
{
    size_t n_notes = checkpoint_notes(checkpoint);
    const char **notes = memory_alloc(n_notes * sizeof *notes);
    for (size_t i = 0; i < n_notes; i++)
        notes[i] = checkpoint_note_text(checkpoint, i);
    qsort(notes, n_notes, sizeof *notes, compare_texts);
    buffer_append_text(out, ",\n\"notes\":[");
    for (size_t i = 0; i < n_notes; i++) {
        buffer_append_text(out, i ? ",\n" : "\n");
        buffer_append_json_string(out, notes[i], strlen(notes[i]));
    }
    buffer_append_text(out, "]");
    free(notes);
}

static void append_hidden(const struct checkpoint *checkpoint, struct buffer *out)
{
    buffer_append_text(out, ",\n\"hidden\":[");
    for (size_t i = 0; i < checkpoint->n_hidden; i++) {
        buffer_append_text(out, i ? ",{" : "{");
        key_text(out, "name", checkpoint->hidden[i].name);
        buffer_append_text(out, ",");
        key_text(out, "reason", checkpoint->hidden[i].reason);
        buffer_append_text(out, "}");
    }
    buffer_append_text(out, "]");
}

static void tensor_text(const void *context, size_t index, struct buffer *out)
{
    const struct tree *tree = context;
    buffer_append_text(out, index ? ",\n" : "\n");
    tensor_metadata(tree_shown(tree), index, tree_options(tree), out);
}

/* The lengths of the tensors' entries, found by writing them once: in parts, by all cores, since there may be 100,000.
 */

enum { TENSORS_PER_TASK = 512 };

struct measuring {
    const struct tree *tree;
    uint32_t *lengths;
    size_t n_tensors;
};

static void measure(void *context, size_t task)
{
    struct measuring *measuring = context;
    struct buffer text = {0};
    size_t first = task * TENSORS_PER_TASK, end = first + TENSORS_PER_TASK;
    for (size_t i = first; i < end && i < measuring->n_tensors; i++) {
        text.length = 0;
        tensor_text(measuring->tree, i, &text);
        measuring->lengths[i] = (uint32_t)text.length;
    }
    buffer_free(&text);
}

static bool plan(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    (void)error;
    struct tree *tree = (struct tree *)context;
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct buffer head = {0};
    buffer_append_text(&head, "{");
    key_text(&head, "wfs", WFS_VERSION);
    buffer_append_text(&head, ",\n");
    key_text(&head, "format", checkpoint->format);
    buffer_append_text(&head, ",\n");
    key_text(&head, "name", checkpoint->model_name);
    append_sources(checkpoint, &head);
    append_metadata(checkpoint, &head);
    append_totals(checkpoint, &head);
    append_files(tree, &head);
    append_hidden(checkpoint, &head);
    append_notes(checkpoint, &head);
    buffer_append_text(&head, ",\n\"tensors\":[");

    size_t n_tensors = tree_shown(tree)->set->n_tensors;
    struct measuring measuring = {tree, arena_array(arena, n_tensors, sizeof(uint32_t)), n_tensors};
    pool_run((n_tensors + TENSORS_PER_TASK - 1) / TENSORS_PER_TASK, measure, &measuring);
    struct vfile_builder builder = {.arena = arena, .capacity = n_tensors + 2};
    builder.origin = origin_of_weights(checkpoint);
    builder.spans = arena_array(arena, builder.capacity, sizeof *builder.spans);
    vfile_add_literal(&builder, arena_copy(arena, head.bytes, head.length), head.length);
    for (size_t i = 0; i < n_tensors; i++)
        vfile_add_text(&builder, tensor_text, tree, i, measuring.lengths[i]);
    vfile_add_literal(&builder, "]}\n", 3);
    buffer_free(&head);
    *ret_file = vfile_finish(&builder);
    return true;
}

static bool add(struct tree *tree, struct error *error)
{
    (void)error;
    return tree_add_file(tree, TREE_ROOT, "metadata.json", plan, tree);
}

const struct content metadata_file_content = {
    .name = "metadata.json",
    .summary = "metadata.json: format, sources, every tensor and every virtual file, for jq",
    .add = add,
};

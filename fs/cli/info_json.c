#include "fs/cli/info_pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void append_text(struct buffer *out, const char *before, const char *text)
{
    buffer_append_text(out, before);
    if (text != NULL)
        buffer_append_json_string(out, text, strlen(text));
    else
        buffer_append_text(out, "null");
}

static void append_number(struct buffer *out, const char *before, uint64_t number)
{
    buffer_append_text(out, before);
    if (number != 0)
        buffer_printf(out, "%" PRIu64, number);
    else
        buffer_append_text(out, "null");
}

static void append_dtypes(struct buffer *out, const struct profile *profile)
{
    buffer_append_text(out, ",\n\"dtypes\":[");
    for (size_t i = 0; i < profile->n_dtypes; i++) {
        const struct dtype_total *total = &profile->by_dtype[i];
        buffer_printf(out,
                      "%s{\"dtype\":\"%s\",\"tensors\":%" PRIu64 ",\"parameters\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
                      i ? "," : "", total->dtype->name, total->n_tensors, total->n_elements, total->n_bytes);
    }
    buffer_append_text(out, "]");
}

struct listing {
    struct tree *tree;
    struct buffer *out;
    const char *directory;
    bool *is_first;
};

static bool append_file(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    (void)index;
    const struct listing *listing = context;
    char path[2 * TREE_MAX_NAME + 2];
    snprintf(path, sizeof path, "%s%s%s", listing->directory, *listing->directory != '\0' ? "/" : "", name);
    if (strcmp(path, "tensors") == 0)
        return true;
    if (attributes->directory) {
        struct listing below = *listing;
        below.directory = path;
        tree_list(listing->tree, attributes->id, 0, append_file, &below);
        return true;
    }
    append_text(listing->out, *listing->is_first ? "\n{\"path\":" : ",\n{\"path\":", path);
    buffer_printf(listing->out, ",\"size\":%" PRIu64 "}", attributes->size);
    *listing->is_first = false;
    return true;
}

static void append_files(struct buffer *out, struct tree *tree)
{
    bool is_first = true;
    buffer_append_text(out, ",\n\"files\":[");
    tree_list(tree, TREE_ROOT, 0, append_file, &(struct listing){tree, out, "", &is_first});
    buffer_append_text(out, "]");
}

static void append_left_out(struct buffer *out, const struct checkpoint *checkpoint)
{
    buffer_append_text(out, ",\n\"hidden\":[");
    for (size_t i = 0; i < checkpoint->n_hidden; i++) {
        append_text(out, i ? ",\n{\"name\":" : "\n{\"name\":", checkpoint->hidden[i].name);
        append_text(out, ",\"reason\":", checkpoint->hidden[i].reason);
        buffer_append_text(out, "}");
    }
    buffer_append_text(out, "],\n\"notes\":[");
    for (size_t i = 0, n_notes = checkpoint_notes(checkpoint); i < n_notes; i++)
        append_text(out, i ? ",\n" : "\n", checkpoint_note_text(checkpoint, i));
    buffer_append_text(out, "]");
}

void print_info_json(struct tree *tree, const struct profile *profile)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct buffer out = {0};
    append_text(&out, "{\"wfs\":", WFS_VERSION);
    append_text(&out, ",\"name\":", checkpoint->model_name);
    append_text(&out, ",\"path\":", checkpoint->path);
    append_text(&out, ",\"format\":", checkpoint->format);
    append_text(&out, ",\n\"architecture\":", profile->architecture);
    append_text(&out, ",\"family\":", profile->family);
    append_text(&out, ",\"gguf\":", profile->gguf);
    append_text(&out, ",\"file_type\":", profile->file_type);
    append_text(&out, ",\"tokenizer\":", profile->tokenizer);
    append_number(&out, ",\"tokens\":", profile->n_tokens);
    append_number(&out, ",\"layers\":", profile->n_layers);
    append_number(&out, ",\"context_length\":", profile->context_length);
    buffer_printf(&out, ",\n\"tensors\":%" PRIu64 ",\"parameters\":%" PRIu64 ",\"bytes\":%" PRIu64,
                  profile->all.n_tensors, profile->all.n_elements, profile->all.n_bytes);
    append_dtypes(&out, profile);
    buffer_append_text(&out, ",\n\"sources\":[");
    for (size_t i = 0; i < checkpoint->n_sources; i++) {
        append_text(&out, i ? ",{\"name\":" : "{\"name\":", source_name(checkpoint->sources[i]));
        buffer_printf(&out, ",\"size\":%" PRIu64 "}", source_size(checkpoint->sources[i]));
    }
    buffer_append_text(&out, "]");
    append_files(&out, tree);
    append_left_out(&out, checkpoint);
    buffer_append_text(&out, "}\n");
    fwrite(out.bytes, 1, out.length, stdout);
    buffer_free(&out);
}

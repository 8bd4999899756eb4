#include "fs/cli/info_pages.h"

#include "fs/cli/info_components.h"
#include "fs/tree/inventory.h"
#include "models/families/family.h"

#include <stdio.h>
#include <string.h>

/* What is not known is 0. */
static void put_known(struct json_writer *writer, const char *key, uint64_t number)
{
    if (number != 0)
        json_put_number(writer, key, number);
    else
        json_put_null(writer, key);
}

static void put_dtypes(struct json_writer *writer, const struct profile *profile)
{
    json_break_line(writer);
    json_begin_array(writer, "dtypes");
    for (size_t i = 0; i < profile->n_dtypes; i++) {
        const struct dtype_total *total = &profile->by_dtype[i];
        json_begin_object(writer, NULL);
        json_put_text(writer, "dtype", total->dtype->name);
        json_put_number(writer, "tensors", total->n_tensors);
        json_put_number(writer, "parameters", total->n_elements);
        json_put_number(writer, "bytes", total->n_bytes);
        json_end(writer);
    }
    json_end(writer);
}

static void put_left_out(struct json_writer *writer, const struct checkpoint *checkpoint)
{
    json_break_line(writer);
    json_begin_array(writer, "hidden");
    for (size_t i = 0; i < checkpoint->n_hidden; i++) {
        json_break_line(writer);
        json_begin_object(writer, NULL);
        json_put_text(writer, "name", checkpoint->hidden[i].name);
        json_put_text(writer, "reason", checkpoint->hidden[i].reason);
        json_end(writer);
    }
    json_end(writer);
    json_break_line(writer);
    json_begin_array(writer, "notes");
    for (size_t i = 0, n_notes = checkpoint_notes(checkpoint); i < n_notes; i++) {
        json_break_line(writer);
        json_put_text(writer, NULL, checkpoint_note_text(checkpoint, i));
    }
    json_end(writer);
}

static void put_model(struct json_writer *writer, const struct profile *profile)
{
    json_break_line(writer);
    json_put_text(writer, "adapter", profile->adapter);
    json_put_text(writer, "parts", profile->parts);
    json_put_text(writer, "architecture", profile->architecture);
    json_put_text(writer, "family", profile->family);
    json_put_text(writer, "gguf", profile->gguf);
    json_put_text(writer, "file_type", profile->file_type);
    json_put_text(writer, "tower", profile->projector != NULL ? profile->projector->summary : NULL);
    put_known(writer, "tower_tensors", profile->tower.n_tensors);
    put_known(writer, "tower_parameters", profile->tower.n_elements);
    json_put_text(writer, "tokenizer", profile->tokenizer);
    put_known(writer, "tokens", profile->n_tokens);
    put_known(writer, "layers", profile->n_layers);
    put_known(writer, "context_length", profile->context_length);
    json_break_line(writer);
    json_put_number(writer, "tensors", profile->all.n_tensors);
    json_put_number(writer, "parameters", profile->n_parameters);
    json_put_number(writer, "bytes", profile->all.n_bytes);
}

static void put_profile(struct json_writer *writer, const struct profile *profile)
{
    put_model(writer, profile);
    put_dtypes(writer, profile);
}

void print_info_json(struct tree *tree, const struct profile *profile)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "wfs", WFS_VERSION);
    json_put_text(&writer, "name", checkpoint->model_name);
    json_put_text(&writer, "path", checkpoint->path);
    json_put_text(&writer, "format", checkpoint->format);
    put_profile(&writer, profile);
    put_components(&writer, tree, put_profile);
    put_sources(&writer, checkpoint);
    put_files(&writer, tree);
    put_left_out(&writer, checkpoint);
    json_end(&writer);
    buffer_append_text(&out, "\n");
    fwrite(out.bytes, 1, out.length, stdout);
    buffer_free(&out);
}

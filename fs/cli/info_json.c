#include "fs/cli/info_pages.h"

#include "fs/cli/info_components.h"
#include "fs/cli/json_page.h"
#include "fs/tree/inventory.h"
#include "fs/tree/subjects.h"
#include "models/families/families.h"
#include "models/packings/packing.h"

/* Writes a number unless it is 0, which means unknown. */
static void put_known(struct json_writer *writer, const char *key, uint64_t number)
{
    if (number != 0)
        json_put_number(writer, key, number);
    else
        json_put_null(writer, key);
}

/* Tensors as they are stored, or packed weights. */
static void put_kinds(struct json_writer *writer, const char *key, const struct profile *profile, bool packed)
{
    json_break_line(writer);
    json_begin_array(writer, key);
    for (size_t i = 0; i < profile->n_kinds; i++) {
        const struct kind_total *kind = &profile->kinds[i];
        if ((kind->packing != NULL) != packed)
            continue;
        json_begin_object(writer, NULL);
        json_put_text(writer, packed ? "name" : "dtype", kind->name);
        if (packed) {
            json_put_text(writer, "packing", kind->packing->name);
            json_put_number(writer, "bits", kind->bits);
        }
        json_put_number(writer, "tensors", kind->total.n_tensors);
        json_put_number(writer, "parameters", kind->total.n_elements);
        json_put_number(writer, "bytes", kind->total.n_bytes);
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
    struct arena *arena = arena_new();
    for (size_t i = 0, n_notes = checkpoint_notes(checkpoint); i < n_notes; i++) {
        json_break_line(writer);
        json_put_text(writer, NULL, note_line(checkpoint_note_at(checkpoint, i), arena));
    }
    json_end(writer);
    arena_free(arena);
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
    json_put_number(writer, "tensors", profile->n_stored);
    json_put_number(writer, "parameters", profile->all.n_elements);
    json_put_number(writer, "bytes", profile->all.n_bytes);
}

static void put_profile(struct json_writer *writer, const struct profile *profile)
{
    put_model(writer, profile);
    put_kinds(writer, "dtypes", profile, false);
    put_kinds(writer, "packings", profile, true);
}

void print_info_json(struct tree *tree, const struct profile *profile)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct json_page page;
    struct json_writer *writer = &page.writer;
    json_page_begin(&page);
    json_put_text(writer, "name", checkpoint->model_name);
    json_put_text(writer, "path", checkpoint->path);
    json_put_text(writer, "format", checkpoint->format);
    put_profile(writer, profile);
    put_components(writer, tree, put_profile);
    put_sources(writer, checkpoint);
    put_files(writer, tree);
    put_left_out(writer, checkpoint);
    json_page_print(&page);
}

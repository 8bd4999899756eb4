#include "fs/cli/info/info_pages.h"

#include "base/text.h"
#include "fs/cli/terminal.h"

#include <inttypes.h>
#include <string.h>

struct variants {
    bool is_brief;
    struct tree *tree;
    struct buffer text;
    struct arena *arena;
    const char *first; /* name of the first variant, with weights or without; NULL: none */
    node_id first_id;
    uint64_t n_files; /* beside the variants */
    uint64_t n_variants, smallest;
};

struct variant {
    struct tree *tree;
    uint64_t size;
    bool has_weights;
};

/* Adds the size of a file with weights. The others are small, and take time to make. */
static bool measure_file(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct variant *variant = context;
    struct node_attributes planned;
    if (tree_names_weights(name) && tree_attributes(variant->tree, attributes->id, &planned)) {
        variant->has_weights = true;
        variant->size += planned.size;
    }
    return true;
}

static struct variant measure(struct tree *tree, node_id directory)
{
    struct variant variant = {.tree = tree};
    tree_list_prepared(tree, directory, 0, measure_file, &variant);
    return variant;
}

static bool add_variant(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct variants *variants = context;
    char size[SIZE_TEXT];
    if (!attributes->directory) {
        variants->n_files++;
        return true;
    }
    struct variant variant = measure(variants->tree, attributes->id);
    if (variants->first == NULL) {
        variants->first = arena_strdup(variants->arena, name);
        variants->first_id = attributes->id;
    }
    if (!variant.has_weights)
        return true;
    if (variants->n_variants++ == 0 || variant.size < variants->smallest)
        variants->smallest = variant.size;
    if (!variants->is_brief)
        buffer_printf(&variants->text, "%s%s %s", variants->text.length != 0 ? ", " : "", name,
                      size_text(variant.size, size));
    return true;
}

/* Appends why the first variant has no weights. */
static void append_reason(const struct variants *variants, const char *name, struct buffer *text)
{
    struct error error;
    struct node_attributes attributes;
    const char *path = arena_printf(variants->arena, "%s/%s/model.safetensors", name, variants->first);
    if (tree_lacks_weights(variants->tree, variants->first_id, &error))
        buffer_append_text(text, error.message);
    else if (tree_walk(variants->tree, path, &attributes, &error))
        buffer_printf(text, "%s/: none", name);
    else
        buffer_append_text(text, error.message);
}

static void append_range(const struct variants *variants, struct buffer *text)
{
    char smallest[SIZE_TEXT];
    size_text(variants->smallest, smallest);
    if (variants->n_variants == 1)
        buffer_append_text(text, smallest);
    else
        buffer_printf(text, "%" PRIu64 " from %s", variants->n_variants, smallest);
}

/* Reports whether the directory is the source's own. */
static bool holds_side_file(const struct tree *tree, const char *name)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    size_t length = strlen(name);
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        if (text_starts_with(checkpoint->side_files[i].name, name) && checkpoint->side_files[i].name[length] == '/')
            return true;
    return false;
}

bool engine_text(struct tree *tree, const char *name, node_id directory, bool is_brief, struct buffer *text,
                 struct buffer *refusal)
{
    if (holds_side_file(tree, name))
        return false;
    struct variants variants = {.is_brief = is_brief, .tree = tree, .arena = arena_new()};
    tree_list_names(tree, directory, 0, add_variant, &variants);
    bool is_engine = variants.n_files == 0 && variants.first != NULL;
    if (is_engine && is_brief && variants.n_variants > 0)
        append_range(&variants, &variants.text);
    if (is_engine && variants.text.length > 0) {
        bool follows = is_brief && text->length > 0;
        text->length -= follows;
        buffer_append_text(text, follows ? "; " : "");
        buffer_printf(text, "%s/: ", name);
        buffer_append(text, variants.text.bytes, variants.text.length);
        buffer_append(text, "", 1);
    } else if (is_engine) {
        append_reason(&variants, name, refusal);
        buffer_append(refusal, "", 1);
    }
    buffer_free(&variants.text);
    arena_free(variants.arena);
    return is_engine;
}

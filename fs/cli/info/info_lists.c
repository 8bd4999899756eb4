#include "fs/cli/info/info_pages.h"
#include "fs/cli/terminal.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST_TENSORS = 5, SHOWN_NAME = 100 };

/* Prints every key on a line, long arrays too. */
static void print_metadata(const struct gguf_kvs *metadata)
{
    for (size_t i = 0; i < metadata->n_kvs; i++) {
        const struct gguf_kv *kv = &metadata->kvs[i];
        struct buffer value = {0};
        gguf_append_text(&value, kv, UINT64_MAX);
        fputs(i ? "" : "\nMETADATA\n", stdout);
        text_put(kv->key, stdout);
        fputs(" = ", stdout);
        text_put_n((const char *)value.bytes, value.length, stdout);
        putchar('\n');
        buffer_free(&value);
    }
}

static void print_kinds(const struct profile *profile)
{
    char number[NUMBER_TEXT], size[SIZE_TEXT];
    printf("\n%-22s  %8s  %16s  %12s\n", "TYPE", "TENSORS", "PARAMETERS", "SIZE");
    for (size_t i = 0; i < profile->n_kinds; i++) {
        const struct total *total = &profile->kinds[i].total;
        printf("%-22s  %8" PRIu64 "  %16s  %12s\n", profile->kinds[i].name, total->n_tensors,
               number_text(total->n_elements, number), size_text(total->n_bytes, size));
    }
}

static void print_largest(const struct checkpoint *checkpoint)
{
    const struct tensor *largest[LARGEST_TENSORS] = {0};
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        for (size_t place = 0; place < LARGEST_TENSORS; place++)
            if (largest[place] == NULL || tensor_bytes(tensor) > tensor_bytes(largest[place])) {
                const struct tensor *beaten = largest[place];
                largest[place] = tensor;
                if ((tensor = beaten) == NULL)
                    break;
            }
    }
    printf("\n%-10s  %-8s  %-20s  %s\n", "SIZE", "DTYPE", "SHAPE", "LARGEST TENSORS");
    for (size_t place = 0; place < LARGEST_TENSORS && largest[place] != NULL; place++) {
        char shape[64], size[SIZE_TEXT], name[SHOWN_NAME + 1];
        text_printable(largest[place]->name, largest[place]->name_length, name, sizeof name);
        printf("%-10s  %-8s  %-20s  %s\n", size_text(tensor_bytes(largest[place]), size), largest[place]->dtype->name,
               shape_text(largest[place]->shape, largest[place]->rank, shape, sizeof shape), name);
    }
}

/* Printing the files of the tree, except those of single tensors. */

struct printing {
    struct tree *tree;
    const char *directory;
};

static bool print_file(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    const struct printing *printing = context;
    char size[SIZE_TEXT], path[2 * TREE_MAX_NAME + 2];
    snprintf(path, sizeof path, "%s%s%s", printing->directory, *printing->directory ? "/" : "", name);
    if (strcmp(path, "tensors") == 0 || attributes->branch)
        return true;
    if (attributes->directory) {
        tree_list(printing->tree, attributes->id, 0, print_file, &(struct printing){printing->tree, path});
        return true;
    }
    printf("%-10s  ", size_text(attributes->size, size));
    text_put(path, stdout);
    putchar('\n');
    return true;
}

/* Prints each kind of file below tensors/NAME, and how many tensors have it. */
static void print_views(const struct tree *tree)
{
    struct arena *arena = arena_new();
    const struct file_kinds kinds = profile_tensor_files(tree, true, arena);
    for (size_t i = 0; i < kinds.count; i++)
        printf("%-10zu  tensors/NAME/%s\n", kinds.items[i].n_tensors, kinds.items[i].name);
    arena_free(arena);
}

static void print_notes(const struct checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_hidden; i++) {
        fputs(i ? "" : "\nNOT SHOWN\n", stdout);
        text_put(checkpoint->hidden[i].name, stdout);
        fputs(": ", stdout);
        text_put(checkpoint->hidden[i].reason, stdout);
        putchar('\n');
    }
    struct arena *arena = arena_new();
    for (size_t i = 0, n_notes = checkpoint_notes(checkpoint); i < n_notes; i++) {
        fputs(i ? "" : "\nNOTES\n", stdout);
        text_put(note_line(checkpoint_note_at(checkpoint, i), arena), stdout);
        putchar('\n');
    }
    arena_free(arena);
}

void print_lists(struct tree *tree, const struct profile *profile)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    print_metadata(&checkpoint->metadata);
    if (checkpoint->n_sources != 0) {
        print_kinds(profile);
        print_largest(checkpoint);
    }
    print_merge(checkpoint);
    printf("\n%-10s  %s\n", "SIZE", "FILES");
    tree_list(tree, TREE_ROOT, 0, print_file, &(struct printing){tree, ""});
    if (checkpoint->n_sources != 0) {
        printf("\n%-10s  %s\n", "TENSORS", "HAVE");
        print_views(tree);
    }
    print_notes(checkpoint);
}

#include "base/text.h"
#include "fs/cli/info/info_pages.h"

#include <stdio.h>

enum { LABEL = 12 };

struct listing {
    struct tree *tree;
    const char *publisher; /* whose models are listed; NULL: publishers are */
    size_t *n_models;
};

static bool take_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    const struct listing *listing = context;
    if (listing->publisher == NULL) {
        struct listing below = {listing->tree, name, listing->n_models};
        tree_list_names(listing->tree, attributes->id, 0, take_entry, &below);
        return true;
    }
    printf("%-*smodels/", LABEL, (*listing->n_models)++ == 0 ? "models" : "");
    text_put(listing->publisher, stdout);
    putchar('/');
    text_put(name, stdout);
    putchar('\n');
    return true;
}

void print_library(struct tree *tree, const char *source)
{
    struct node_attributes models;
    size_t n_models = 0;
    puts("library");
    if (tree_lookup(tree, TREE_ROOT, "models", &models))
        tree_list_names(tree, models.id, 0, take_entry, &(struct listing){tree, NULL, &n_models});
    printf("%-*swfs mount -o library ", LABEL, "next");
    text_put(source, stdout);
    puts(" ~/m");
}

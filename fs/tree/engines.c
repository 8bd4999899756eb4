/* The directories that engines load, under the names that a server gives them. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/tree.h"

#include <ctype.h>
#include <string.h>

/* The directories of a product while they are listed. */
struct engines {
    const struct product *product;
    struct arena *arena;
    tree_emit_engine *emit;
    void *context;
};

/* Returns "mlx-4bit" of "-MLX-" and "4bit": only the product's part is in lower case. */
static const char *tag_of_engine(const struct engines *engines, const char *variant)
{
    const char *ending = engines->product->ending + 1;
    char *tag = arena_printf(engines->arena, "%s%s", ending, variant);
    for (size_t i = 0; i < strlen(ending); i++)
        tag[i] = (char)tolower((unsigned char)tag[i]);
    return tag;
}

static void emit_engine(void *context, const char *name, const void *variant, bool is_listed)
{
    const struct engines *engines = context;
    const struct product *product = engines->product;
    const char *slash = *name != '\0' ? "/" : "";
    char *flat = arena_strdup(engines->arena, name); /* "oneshot-W4A16" of "oneshot/W4A16" */
    for (char *c = flat; *c != '\0'; c++)
        *c = *c == '/' ? '-' : *c;
    const struct tree_engine engine = {
        .path = arena_printf(engines->arena, "%s%s%s", product->root, slash, name),
        .ending = arena_printf(engines->arena, "%s%s", product->ending, flat),
        .tag = tag_of_engine(engines, flat),
        .command = product->command,
        .is_listed = is_listed && strchr(name, '/') == NULL, /* those in a directory are other forms of the rest */
    };
    engines->emit(engines->context, &engine);
}

void tree_list_engines(struct tree *tree, tree_emit_engine *emit, void *context)
{
    struct arena *arena = arena_new();
    const struct product_input input = {tree_checkpoint(tree), &tree_options(tree)->request};
    for (size_t i = 0; contents[i] != NULL; i++) {
        const struct product *product = contents[i]->product;
        struct product_list hints = {.arena = arena, .scratch = arena};
        struct engines engines = {product, arena, emit, context};
        struct node_attributes root;
        if (product == NULL || product->ending == NULL || !tree_lookup(tree, TREE_ROOT, product->root, &root) ||
            !product->is_offered(&input, &hints))
            continue;
        if (product->variants != NULL)
            product->variants(&input, arena, emit_engine, &engines);
        else
            emit_engine(&engines, "", NULL, true);
    }
    arena_free(arena);
}

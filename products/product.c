#include "products/product.h"

#include "models/diffusion/architecture.h"
#include "models/facts.h"
#include "models/huggingface/shards.h"

void product_add(struct product_list *list, struct product_file file)
{
    list->files = arena_grow(list->scratch, list->files, list->n_files, sizeof *list->files);
    list->files[list->n_files++] = file;
}

void product_add_shards(struct product_list *list, const char *folder, const struct shards *shards, const void *of,
                        product_maker *make)
{
    struct product_shard *files = arena_array(list->arena, shards->n_shards, sizeof *files);
    for (size_t i = 0; i < shards->n_shards; i++) {
        char name[SHARDS_NAME];
        files[i] = (struct product_shard){of, i};
        const char *path = arena_printf(list->arena, "%s%s", folder, shards_name(shards, i, name));
        product_add(list, (struct product_file){.path = path, .make = make, .what = &files[i]});
    }
}

void product_hint(struct product_list *list, const char *path, const char *text)
{
    list->hints = arena_grow(list->scratch, list->hints, list->n_hints, sizeof *list->hints);
    list->hints[list->n_hints++] = (struct product_hint){path, text, NULL};
}

void product_place(struct product_list *list, const char *path, const char *place, const char *why)
{
    product_hint(list, path, why);
    list->hints[list->n_hints - 1].place = place;
}

void product_on_free(struct product_list *list, void (*release)(void *context), void *context)
{
    list->releases = arena_grow(list->scratch, list->releases, list->n_releases, sizeof *list->releases);
    list->releases[list->n_releases++] = (struct product_release){release, context};
}

/* Reports whether keys, NULL if there are none, are those of a diffusion model. */
static bool say_diffusion(const struct gguf_kvs *keys)
{
    struct arena *arena = arena_new();
    const char *name = keys != NULL ? gguf_get_text(keys, "general.architecture", arena) : NULL;
    bool is_one = diffusion_architecture_named(name) != NULL;
    arena_free(arena);
    return is_one;
}

bool product_is_for_loaders(const struct product_input *input, struct product_list *hints)
{
    struct facts facts = facts_of(input->checkpoint);
    return facts.makes_directories && !say_diffusion(facts.keys);
}

bool product_needs_object(const struct product_input *input)
{
    return true;
}

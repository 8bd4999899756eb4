/* What `wfs info` prints of several models: components of a pipeline, a library, what is merged; and the next command.
 */
#include "base/text.h"
#include "fs/cli/info/info_pages.h"
#include "fs/cli/terminal.h"
#include "sources/location.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Returns the class that the pipeline declares for a component, or else the class in its own configuration. */
static const char *class_of(const struct component_profile *component)
{
    if (component->class_name != NULL)
        return component->class_name;
    return component->facts.architecture != NULL ? component->facts.architecture : "weights";
}

static void append_weights(struct buffer *text, const struct profile *profile)
{
    char number[NUMBER_TEXT], size[SIZE_TEXT];
    buffer_printf(text, ", %s parameters in %" PRIu64 " tensor%s, %s", number_text(profile->all.n_elements, number),
                  profile->all.n_tensors, profile->all.n_tensors == 1 ? "" : "s",
                  size_text(profile->all.n_bytes, size));
    if (profile->n_kinds > 0)
        buffer_printf(text, " of %s%s", profile->kinds[0].name, profile->n_kinds > 1 ? " and others" : "");
}

void component_text(const struct component_profile *component, struct buffer *text)
{
    const struct profile *facts = &component->facts;
    const struct checkpoint *checkpoint = component->tree != NULL ? tree_checkpoint(component->tree) : NULL;
    buffer_printf(text, "%s/: %s", component->name, class_of(component));
    if (checkpoint == NULL) {
        buffer_append_text(text, ", not shown");
    } else if (checkpoint->failure != NULL) {
        buffer_printf(text, ", nothing can be made of it: %s", checkpoint->failure);
    } else {
        append_weights(text, facts);
        buffer_printf(text, ", read as %s", checkpoint->format);
        if (facts->adapter != NULL)
            buffer_printf(text, "; %s", facts->adapter);
        else if (facts->gguf != NULL)
            buffer_printf(text, "; in GGUF %s", facts->gguf);
        else
            buffer_append_text(text, "; its GGUF is a plain container, which llama.cpp cannot run");
    }
}

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

/* Puts a source, or the value of an option, without what may be secret in a URL. */
static void put_shown(const char *text)
{
    static const char mark[] = "://";
    struct arena *arena = arena_new();
    const char *shown = location_shown(text, arena), *first = strstr(shown, mark);
    bool is_url = first != NULL && strspn(shown, "abcdefghijklmnopqrstuvwxyz0123456789") == (size_t)(first - shown);
    bool has_others = first != NULL && (!is_url || strstr(first + 1, mark) != NULL);
    text_put(has_others ? "..." : shown, stdout);
    arena_free(arena);
}

void print_library(struct tree *tree, const char *source)
{
    struct node_attributes models;
    size_t n_models = 0;
    puts("library");
    if (tree_lookup(tree, TREE_ROOT, "models", &models))
        tree_list_names(tree, models.id, 0, take_entry, &(struct listing){tree, NULL, &n_models});
    printf("%-*swfs mount -o library ", LABEL, "next");
    put_shown(source);
    puts(" ~/m");
}

void print_next(struct tree *tree, const char *source, const struct options *options)
{
    struct node_attributes directory, file;
    bool has_file =
        tree_lookup(tree, TREE_ROOT, "gguf", &directory) && tree_lookup(tree, directory.id, USUAL_GGUF, &file);
    printf("%-*swfs %s ", LABEL, "next", has_file ? "cp" : "mount");
    for (size_t i = 0; i < options->asked.count; i++) {
        const struct asked_option *asked = &options->asked.items[i];
        printf("-o %s%s", asked->row->name, asked->value != NULL ? "=" : "");
        put_shown(asked->value != NULL ? asked->value : "");
        putchar(' ');
    }
    put_shown(source);
    puts(has_file ? " gguf/" USUAL_GGUF " ." : " ~/m");
}

bool append_merge(struct buffer *text, const struct checkpoint *checkpoint)
{
    char size[SIZE_TEXT];
    struct merge_profile merge;
    struct arena *arena = arena_new();
    const bool is_merge = profile_merge(&merge, checkpoint, false, arena);
    if (is_merge) {
        buffer_printf(text, "%s of %zu model%s (", merge.method, merge.n_models, merge.n_models == 1 ? "" : "s");
        for (size_t i = 0; i < merge.n_models; i++)
            buffer_printf(text, "%s%s", i > 0 ? ", " : "", merge.models[i]);
        buffer_printf(text, "), config.json of %s; %s are read for all tensors; %s", merge.config,
                      size_text(merge.n_bytes, size), merge.cost);
    }
    arena_free(arena);
    return is_merge;
}

void print_merge(const struct checkpoint *checkpoint)
{
    struct merge_profile merge;
    struct arena *arena = arena_new();
    const size_t n = profile_merge(&merge, checkpoint, true, arena) ? merge.n_tensors : 0;
    for (size_t i = 0; i < n; i++) {
        fputs(i > 0 ? "" : "\nMERGE\n", stdout);
        text_put(merge.tensors[i].name, stdout);
        fputs(" = ", stdout);
        text_put_n((const char *)merge.tensors[i].plan.bytes, merge.tensors[i].plan.length, stdout);
        putchar('\n');
    }
    arena_free(arena);
}

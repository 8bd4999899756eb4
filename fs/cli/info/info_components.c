#include "fs/cli/info/info_pages.h"

#include "formats/components.h"
#include "fs/cli/progress.h"
#include "fs/lib/info/profile.h"

#include <inttypes.h>

/* Returns the class that the pipeline declares for a component, or else the class in its own configuration. */
static const char *class_of(const struct component *component, const struct profile *profile)
{
    if (component->class_name != NULL)
        return component->class_name;
    return profile->architecture != NULL ? profile->architecture : "weights";
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

void component_text(struct tree *tree, const struct component *component, struct buffer *text)
{
    struct profile profile = {0};
    struct tree *own = tree_of_component(tree, component);
    const struct checkpoint *checkpoint = own != NULL ? tree_checkpoint(own) : NULL;
    struct arena *arena = arena_new();
    if (own != NULL)
        profile_gather(&profile, own, arena);
    buffer_printf(text, "%s/: %s", component->name, class_of(component, &profile));
    if (own == NULL) {
        buffer_append_text(text, ", not shown");
    } else if (checkpoint->failure != NULL) {
        buffer_printf(text, ", nothing can be made of it: %s", checkpoint->failure);
    } else {
        append_weights(text, &profile);
        buffer_printf(text, ", read as %s", checkpoint->format);
        if (profile.adapter != NULL)
            buffer_printf(text, "; %s", profile.adapter);
        else if (profile.gguf != NULL)
            buffer_printf(text, "; in GGUF %s", profile.gguf);
        else
            buffer_append_text(text, "; its GGUF is a plain container, which llama.cpp cannot run");
    }
    arena_free(arena);
}

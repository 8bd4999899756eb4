#include "fs/cli/info/info_pages.h"

#include "fs/cli/progress.h"

#include <inttypes.h>

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

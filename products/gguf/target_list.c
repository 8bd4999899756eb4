#include "products/gguf/target_list.h"

#include "formats/gguf/write.h"

#include <string.h>

/* Gives the artifact the header that was kept of its file. */
static enum outcome keep_header(const struct target *target, const struct kept_header *kept, struct artifact *artifact,
                                struct error *error)
{
    if (strcmp(target->path, kept->path) != 0 || strcmp(artifact->container->name, "gguf") != 0) {
        error_set(error, "only %s has the header that was kept", kept->path);
        artifact_free(artifact);
        return FAILED;
    }
    artifact->kept_header = &kept->header;
    return OK;
}

enum outcome target_list_make(const struct product_input *input, const void *edition, const void *what,
                              struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    const struct target *target = what;
    const struct request *request = input->request;
    struct quantize_options options = request->quantize;
    options.keep_split = false; /* gguf/split/ has the splits */
    enum outcome outcome = target->make(edition, target->type, &options, ret_artifact, error);
    if (outcome != OK)
        return outcome;
    if (request->kept_header != NULL)
        return keep_header(target, request->kept_header, ret_artifact, error);
    if (request->shares_blocks && ret_artifact->container == &gguf_container)
        ret_artifact->container = &gguf_sharing_container;
    return OK;
}

struct product_file *target_list_add(struct product_list *list, const struct target *target)
{
    product_add(list, (struct product_file){.path = target->path, .make = target_list_make, .what = target});
    return &list->files[list->n_files - 1];
}

void target_list_add_all(struct product_list *list, enum target_model model, const struct product *of)
{
    product_add(list, (struct product_file){.path = "gguf/"});
    for (const struct target *target = targets; target->path != NULL; target++)
        if (target->of == model)
            target_list_add(list, target)->of = of;
}

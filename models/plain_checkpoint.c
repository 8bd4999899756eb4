#include "models/plain_checkpoint.h"

#include "formats/documents.h"
#include "models/plain_config.h"

#include <stdlib.h>

/* Takes out of a side file what says how the model is packed. */
static bool change_config(struct checkpoint *checkpoint, const char *name, struct error *error)
{
    size_t length;
    bool absent;
    char *text = document_text(checkpoint, name, &length, &absent, error);
    if (text == NULL)
        return absent;
    struct buffer plain = {0};
    plain_config(text, length, &plain);
    checkpoint_change_side_file(checkpoint, name, (const char *)plain.bytes, plain.length);
    buffer_free(&plain);
    free(text);
    return true;
}

static void hide_configs(struct checkpoint *checkpoint)
{
    for (size_t i = checkpoint->n_side_files; i-- > 0;)
        if (plain_config_lacks(checkpoint->side_files[i].name))
            checkpoint_hide_side_file(checkpoint, checkpoint->side_files[i].name,
                                      "of packed weights, which are shown plain");
}

bool plain_checkpoint_make(struct checkpoint *checkpoint, struct plain_set *ret_plain, struct error *error)
{
    struct arena *arena = checkpoint->arena;
    const struct plain_wish wish = {.arena = arena, .is_saved_again = true};
    const struct packed_weights *packed = packings_find_of(checkpoint, arena);
    if (!packings_unpack(packed, &wish, arena, ret_plain, error))
        return false;
    if (ret_plain->unpacked == NULL)
        return true;
    if (packed->unread != NULL)
        return error_set(error, "%s", packed->unread);
    checkpoint->tensors = (struct tensor_set *)ret_plain->set;
    checkpoint_note(checkpoint, "%zu packed weights (%s) are shown plain, as the model unpacked and saved again",
                    packed->found.n_weights, packed->found.weights[0].packing->name);
    hide_configs(checkpoint);
    return tensor_set_seal(checkpoint->tensors, error) && change_config(checkpoint, "config.json", error) &&
           change_config(checkpoint, "params.json", error);
}

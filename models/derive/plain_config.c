#include "models/derive/plain_config.h"

#include "formats/documents.h"
#include "models/derive/derive.h"
#include "models/packings/packings.h"
#include "text/json_write.h"

#include <string.h>

enum { DEEPEST = 2 };

static const char *const names[] = {"quantization_config", "quantization", "compression_config"};

bool plain_config_lacks(const char *name)
{
    static const char *const files[] = {"hf_quant_config.json", "quantize_config.json", "quantization_config.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i], name) == 0)
            return true;
    return false;
}

static bool leave_out(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth)
{
    for (size_t i = 0; i < sizeof names / sizeof *names && depth <= DEEPEST; i++)
        if (strcmp(member->key, names[i]) == 0)
            return true;
    return false;
}

void plain_config(const struct json *config, struct buffer *out)
{
    json_put_edited(&(struct json_writer){.out = out, .letters = JSON_ASCII}, config, leave_out, NULL);
    buffer_append_text(out, "\n");
}

/* Dequantizes a packed checkpoint as if it had been unpacked and saved again, for derivations that change weights.
 *
 * The result has no parts of packed weights; each weight has the dtype from before it was packed, and no side file
 * describes a packing. */

/* Removes the description of the packing from a side file. */
static bool change_config(struct checkpoint *derived, const struct checkpoint *from, const char *name,
                          struct error *error)
{
    struct document *document;
    struct buffer plain = {0};
    if (!document_open(from, name, &document, error))
        return false;
    if (document == NULL)
        return true;
    plain_config(document_root(document), &plain);
    checkpoint_change_side_file(derived, name, (const char *)plain.bytes, plain.length);
    buffer_free(&plain);
    document_close(document);
    return true;
}

static void hide_configs(struct checkpoint *checkpoint)
{
    for (size_t i = checkpoint->n_side_files; i-- > 0;)
        if (plain_config_lacks(checkpoint->side_files[i].name))
            checkpoint_hide_side_file(checkpoint, checkpoint->side_files[i].name,
                                      "packed weights are shown dequantized");
}

static bool make_plain(struct checkpoint *derived, const struct checkpoint *from, const struct packed_weights *packed,
                       struct error *error)
{
    const struct plain_wish wish = {.arena = derived->arena, .is_saved_again = true};
    struct plain_set plain;
    if (!packings_unpack(packed, &wish, derived->arena, &plain, error))
        return false;
    if (packed->unread != NULL)
        return error_set(error, "%s", packed->unread);
    derived->tensors = plain.set;
    checkpoint_note(derived, SUBJECT_SOURCE, "%zu packed weights (%s) are shown dequantized", packed->found.n_weights,
                    packed->found.weights[0].packing->name);
    hide_configs(derived);
    return tensor_set_seal(plain.made, error) && change_config(derived, from, "config.json", error) &&
           change_config(derived, from, "params.json", error);
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    const struct packed_weights *packed = lora_adapts(from, &options->loras) ? packings_of(from) : NULL;
    if (packed == NULL || packed->found.n_weights == 0)
        return true;
    *ret_derived = checkpoint_derive(from);
    return make_plain(*ret_derived, from, packed, error);
}

const struct derivation plain_derivation = {.option = "lora", .apply = apply};

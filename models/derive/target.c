#include "models/derive/target.h"

#include "models/derive/derivation.h"
#include "models/huggingface/hf_checkpoint.h"

/* Returns a base that is a GGUF under the names that adapters use. Takes ownership of it, also on failure. */
static const struct checkpoint *named_as_adapters_do(const struct checkpoint *gguf, struct error *error)
{
    struct checkpoint *base = hf_checkpoint_new(gguf, error);
    if (base != NULL)
        checkpoint_use(base, BASE_ORIGIN, gguf);
    else
        checkpoint_close(gguf);
    return base;
}

const struct checkpoint *base_open(const char *path, const struct checkpoint *adapter, struct error *error)
{
    struct error unused;
    const struct open_options options = {.follow_links = adapter->follows_links};
    const struct checkpoint *base = checkpoint_open(path, adapter->formats, &options, error);
    if (base == NULL && (base = checkpoint_open_side_files(path, adapter->formats, adapter->follows_links, &unused)))
        checkpoint_hint(adapter, SUBJECT_ADAPTER, "no weights of the base are used: %s", error->message);
    return base != NULL && base->kind == CHECKPOINT_GGUF ? named_as_adapters_do(base, error) : base;
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    if (options->base == NULL)
        return true;
    bool is_draft = from->kind == CHECKPOINT_WEIGHTS;
    const struct checkpoint *target =
        is_draft ? checkpoint_open_side_files(options->base, from->formats, from->follows_links, error)
                 : base_open(options->base, from, error);
    if (target == NULL)
        return false;
    *ret_derived = checkpoint_derive(from);
    checkpoint_keep(*ret_derived, BASE_TARGET, target);
    return true;
}

const struct derivation target_derivation = {.option = "base", .apply = apply};

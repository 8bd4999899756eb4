#include "models/derive/derive.h"

#include "models/facts.h"

/* The derivations, in the order of their application, one a line. */
/* clang-format off */
static const struct derivation *const derivations[] = {
    &recipe_derivation,
    &ctranslate2_derivation, /* before what goes by config.json */
    &shapes_derivation, /* before what goes by config.json */
    &architecture_derivation,  /* before what goes by the class */
    &foreign_names_derivation, /* all that follow go by Hugging Face's names */
    &ollama_experts_derivation,
    &mlx_names_derivation,
    &untie_derivation, /* before the embedding gets another dtype, or other values */
    &plain_derivation,
    &merge_derivation,
    &experts_derivation, /* adapters are of the stored form */
    &folder_derivation,
    &target_derivation,
    &tokens_derivation,
    NULL,
};
/* clang-format on */

const struct checkpoint *derive(const struct checkpoint *read, const struct derive_options *options,
                                struct error *error)
{
    const struct checkpoint *checkpoint = read;
    if (read->n_sources > 0 && !config_is_reached(read, error)) {
        checkpoint_close(read);
        return NULL;
    }
    for (const struct derivation *const *row = derivations; *row != NULL; row++) {
        struct checkpoint *derived = NULL;
        bool applied = (*row)->apply(checkpoint, options, &derived, error);
        if (derived != NULL)
            checkpoint = derived;
        if (applied)
            continue;
        if ((*row)->option != NULL)
            error_prefix(error, "option %s", (*row)->option);
        checkpoint_close(checkpoint);
        return NULL;
    }
    return checkpoint;
}

/* The tokens of OpenAI's Whisper models, which are not in their weights files: those of a directory become side files.
 *
 * The directory is a checkout of OpenAI's repository, the folder there that has the files, or a Hugging Face directory
 * or repository with a vocab.json. */
#include "formats/huggingface/hub_cache.h"
#include "models/derive/derive.h"

static const char *const folders[] = {"", "assets/", "whisper/assets/"};
static const char *const names[] = {"multilingual.tiktoken", "gpt2.tiktoken", "vocab.json"};

/* Adds the file of that name from the first folder that has it; returns false, with an error, if it cannot be opened.
 */
static bool add_file(struct checkpoint *checkpoint, const struct location *location, const char *name, size_t *n_found,
                     struct error *error)
{
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *path = arena_printf(checkpoint->arena, "%s%s", folders[i], name);
        if (location_kind(location, path) != LOCATION_FILE)
            continue;
        struct source *source = location_source(location, path, error);
        if (source == NULL)
            return false;
        checkpoint_add_side_file(checkpoint, name, source);
        (*n_found)++;
        return true;
    }
    return true;
}

static bool add_files(struct checkpoint *checkpoint, const char *directory, struct error *error)
{
    enum location_links links = checkpoint->follows_links ? LOCATION_FOLLOW : LOCATION_INSIDE;
    const char *path = hub_cache_resolve(checkpoint->arena, directory, checkpoint->formats, links, error);
    struct location *location = path != NULL ? location_open(path, links, NULL, error) : NULL;
    size_t n_found = 0;
    bool good = location != NULL;
    for (size_t i = 0; good && i < sizeof names / sizeof *names; i++)
        if (checkpoint_side_file(checkpoint, names[i]) == NULL)
            good = add_file(checkpoint, location, names[i], &n_found, error);
    location_close(location);
    return good && (n_found > 0 || error_set(error,
                                             "%s: has none of %s, %s and %s, at the top or in whisper/assets; name a "
                                             "checkout of openai/whisper",
                                             directory, names[0], names[1], names[2]));
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    if (options->whisper == NULL)
        return true;
    *ret_derived = checkpoint_derive(from);
    return add_files(*ret_derived, options->whisper, error);
}

const struct derivation tokens_derivation = {.option = "whisper", .apply = apply};

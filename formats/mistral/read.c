/* Directories in Mistral's own form: params.json, consolidated*.safetensors and tekken.json, as convert_hf_to_gguf.py
 * --mistral-format reads them.
 *
 * Weights files are read in the order of their names, indexes never. A directory that also holds Hugging Face's files
 * is opened as theirs, unless the user requests this format. */
#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"

enum { MAX_FILES = 4096 };

static bool is_weights(const char *name)
{
    static const char stem[] = "consolidated";
    return text_starts_with(name, stem) && text_ends_with(name, ".safetensors");
}

static enum probe mistral_probe(const struct input *input)
{
    static const char *const others[] = {"config.json", "model.safetensors", "model.safetensors.index.json"};
    bool has_weights = false;
    for (size_t i = 0; i < input->list.count && !has_weights; i++)
        has_weights = is_weights(input->list.entries[i].name);
    if (input->file != NULL || !has_weights || !input_has(input, "params.json"))
        return PROBE_NO;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (input_has(input, others[i]))
            return PROBE_MAYBE;
    return PROBE_SURE;
}

static bool read_weights(struct checkpoint *checkpoint, const struct input *input, const char *name,
                         const struct open_options *options, struct error *error)
{
    struct source *file = location_source(input->location, name, error);
    if (file == NULL)
        return false;
    return format_read_file(checkpoint, file, checkpoint->unsealed, options, error);
}

static bool mistral_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                         struct error *error)
{
    size_t n_files = 0;
    for (size_t i = 0; i < input->list.count; i++) {
        if (!is_weights(input->list.entries[i].name))
            continue;
        if (++n_files > MAX_FILES)
            return error_set(error, "%s: more than %d weights files", input->path, MAX_FILES);
        if (!read_weights(checkpoint, input, input->list.entries[i].name, options, error))
            return false;
    }
    format_add_side_files(checkpoint, input);
    return true;
}

const struct format mistral_format = {
    .name = "mistral",
    .summary = "Mistral's own directories: params.json, consolidated.safetensors ...",
    .probe = mistral_probe,
    .open = mistral_open,
};

/* The files beside the weights of a merge: the donor's tokenizer, and the recipe. */
#include "models/derive/recipe_merging.h"

#include "models/tokenizers/rebuild.h"

#include <stdlib.h>
#include <string.h>

/* The files that mergekit copies, unchanged, from the donor. */
static const char *const copied[] = {
    "tokenizer_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "added_tokens.json",
    "merges.txt",
    "vocab.json",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "video_preprocessor_config.json",
};

static int compare_side_files(const void *a, const void *b)
{
    return strcmp(((const struct side_file *)a)->name, ((const struct side_file *)b)->name);
}

static void share_donors_files(const struct recipe_merge *merge)
{
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        const struct side_file *file = checkpoint_side_file(merge->donor->checkpoint, copied[i]);
        if (file != NULL)
            checkpoint_share_side_file(merge->merged, file);
    }
}

static void add_text(const struct recipe_merge *merge, const char *name, const struct buffer *text)
{
    const struct source *recipe = merge->from->sources[0];
    checkpoint_add_side_file(merge->merged, name,
                             source_of_text(recipe, name, (const char *)text->bytes, text->length));
}

/* Adds the tokenizer that a GGUF has in its keys. */
static bool add_rebuilt_tokenizer(const struct recipe_merge *merge)
{
    const struct gguf_kvs *kvs = &merge->donor->checkpoint->metadata;
    bool good = true;
    for (const struct rebuilt_file *file = rebuilt_files; file->name != NULL && good; file++) {
        struct buffer text = {0};
        bool is_made = rebuilt_file_applies(file, kvs) && rebuilt_file_refusal(file, kvs, merge->merged->arena) == NULL;
        good = !is_made || rebuilt_file_write(file, kvs, &text, merge->error);
        if (is_made && good)
            add_text(merge, file->name, &text);
        buffer_free(&text);
    }
    return good || error_prefix(merge->error, "the tokenizer of '%.200s'", merge->donor->named->text);
}

bool recipe_make_files(struct recipe_merge *merge)
{
    static const char recipe_name[] = "mergekit_config.yml";
    struct checkpoint *merged = merge->merged;
    const struct side_file recipe = {.name = recipe_name, .source = merge->from->sources[0]};
    checkpoint_add_metadata(merged, "format", "pt");
    share_donors_files(merge);
    if (merge->donor->checkpoint->kind == CHECKPOINT_GGUF && !add_rebuilt_tokenizer(merge))
        return false;
    checkpoint_share_side_file(merged, &recipe);
    qsort(merged->side_files, merged->n_side_files, sizeof *merged->side_files, compare_side_files);
    return true;
}

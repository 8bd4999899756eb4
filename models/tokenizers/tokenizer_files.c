#include "models/tokenizers/tokenizer_files.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

char *tokenizer_text(const struct checkpoint *checkpoint, const char *name, size_t *ret_length, bool *ret_absent,
                     struct error *error)
{
    const struct side_file *file = checkpoint_side_file(checkpoint, name);
    *ret_absent = file == NULL;
    return file != NULL ? source_read_text(file->source, TOKENIZER_MAX_BYTES, ret_length, error) : NULL;
}

static bool load(const struct checkpoint *checkpoint, const char *name, struct json_document **document,
                 const struct json **ret_root, struct error *error)
{
    size_t length;
    bool absent;
    char *text = tokenizer_text(checkpoint, name, &length, &absent, error);
    if (text == NULL)
        return absent;
    *document = json_parse(text, length, error);
    free(text);
    if (*document == NULL)
        return error_prefix(error, "%s", name);
    if (!json_is(json_root(*document), JSON_OBJECT))
        return error_set(error, "%s: not a JSON object", name);
    *ret_root = json_root(*document);
    return true;
}

bool tokenizer_files_load(const struct checkpoint *checkpoint, struct tokenizer_files *ret_files, struct error *error)
{
    struct tokenizer_files files = {0};
    if (load(checkpoint, "tokenizer.json", &files.documents[0], &files.tokenizer, error) &&
        load(checkpoint, "tokenizer_config.json", &files.documents[1], &files.config, error) &&
        load(checkpoint, "special_tokens_map.json", &files.documents[2], &files.special_map, error) &&
        load(checkpoint, "added_tokens.json", &files.documents[3], &files.added_tokens, error)) {
        *ret_files = files;
        return true;
    }
    tokenizer_files_free(&files);
    return false;
}

void tokenizer_files_free(struct tokenizer_files *files)
{
    for (size_t i = 0; i < sizeof files->documents / sizeof *files->documents; i++)
        json_free(files->documents[i]);
    malloc_trim(0); /* a tokenizer is by far the largest thing that is ever parsed */
}

const char *token_content(const struct json *token, size_t *ret_length)
{
    return json_string(json_is(token, JSON_OBJECT) ? json_get(token, "content") : token, ret_length);
}

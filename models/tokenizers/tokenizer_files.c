#include "models/tokenizers/tokenizer_files.h"

static bool load(const struct checkpoint *checkpoint, const char *name, struct document **document,
                 const struct json **ret_root, struct error *error)
{
    if (!document_open(checkpoint, name, document, error))
        return false;
    *ret_root = document_root(*document);
    return *ret_root == NULL || json_is(*ret_root, JSON_OBJECT) || error_set(error, "%s: not a JSON object", name);
}

/* Reports whether a member is of that type, null, or not there. */
static bool check_member(const struct json *root, const char *file, const char *key, enum json_type type,
                         struct error *error)
{
    const struct json *value = json_get(root, key);
    return json_type(value) == JSON_NULL || json_is(value, type) ||
           error_set(error, "%s: %s is not %s", file, key, type == JSON_ARRAY ? "an array" : "an object");
}

bool tokenizer_files_load(const struct checkpoint *checkpoint, struct tokenizer_files *ret_files, struct error *error)
{
    struct tokenizer_files files = {0};
    if (load(checkpoint, "tokenizer.json", &files.documents[0], &files.tokenizer, error) &&
        load(checkpoint, "tokenizer_config.json", &files.documents[1], &files.config, error) &&
        load(checkpoint, "special_tokens_map.json", &files.documents[2], &files.special_map, error) &&
        load(checkpoint, "added_tokens.json", &files.documents[3], &files.added_tokens, error) &&
        check_member(files.tokenizer, "tokenizer.json", "added_tokens", JSON_ARRAY, error) &&
        check_member(files.config, "tokenizer_config.json", "added_tokens_decoder", JSON_OBJECT, error)) {
        *ret_files = files;
        return true;
    }
    tokenizer_files_free(&files);
    return false;
}

void tokenizer_files_free(struct tokenizer_files *files)
{
    for (size_t i = 0; i < sizeof files->documents / sizeof *files->documents; i++)
        document_close(files->documents[i]);
}

const char *token_content(const struct json *token, size_t *ret_length)
{
    return json_string(json_is(token, JSON_OBJECT) ? json_get(token, "content") : token, ret_length);
}

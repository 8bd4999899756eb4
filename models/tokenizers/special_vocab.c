#include "base/little_endian.h"
#include "base/text.h"
#include "models/tokenizers/tokenizer_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A token as tokenizer_config.json gives it: a string, an object with content, or something else. Like the converter,
 * compares these values with the ids of a template as they are, so that an object is never equal. */
struct given {
    const char *text; /* NULL: absent or empty */
    size_t length;
    bool is_string;
};

enum { BOS, EOS, UNK, SEP, PAD, CLS, MASK, NAMED_TYPES, MOST_TYPES = 24, MOST_IDS = MOST_TYPES + SPECIAL_IDS };

static const char *const named_types[NAMED_TYPES] = {"bos", "eos", "unk", "sep", "pad", "cls", "mask"};

/* Types of ids with a key; other types are collected and dropped. */
static const struct {
    const char *type, *key;
} id_keys[] = {
    {"bos", "tokenizer.ggml.bos_token_id"},     {"eos", "tokenizer.ggml.eos_token_id"},
    {"unk", "tokenizer.ggml.unknown_token_id"}, {"sep", "tokenizer.ggml.seperator_token_id"},
    {"pad", "tokenizer.ggml.padding_token_id"}, {"mask", "tokenizer.ggml.mask_token_id"},
    {"eot", "tokenizer.ggml.eot_token_id"},     {"eom", "tokenizer.ggml.eom_token_id"},
};

static const struct {
    const char *type, *key;
} add_keys[] = {
    {"bos", "tokenizer.ggml.add_bos_token"},
    {"eos", "tokenizer.ggml.add_eos_token"},
    {"sep", "tokenizer.ggml.add_sep_token"},
};

struct special_vocab {
    const char *types[MOST_TYPES];
    struct given given[MOST_TYPES]; /* X_token of tokenizer_config.json, as changed on the way */
    size_t n_types;
    bool has_config;

    /* Ids, in the order of finding. */
    struct {
        const char *type;
        uint32_t id;
    } ids[MOST_IDS];
    struct {
        const char *type;
        bool add;
    } adds[MOST_TYPES];
    size_t n_ids, n_adds;
    uint64_t n_vocab;
    bool processor_is_first; /* the change FIRST_POST_PROCESSOR */
};

static size_t type_index(const struct special_vocab *vocab, const char *type)
{
    size_t i = 0;
    while (i < vocab->n_types && strcmp(vocab->types[i], type) != 0)
        i++;
    return i;
}

/* Returns the index of a type among those that have an add_X_token; n_adds if it has none. */
static size_t add_index(const struct special_vocab *vocab, const char *type)
{
    size_t i = 0;
    while (i < vocab->n_adds && strcmp(vocab->adds[i].type, type) != 0)
        i++;
    return i;
}

static void set_add(struct special_vocab *vocab, const char *type, bool add)
{
    size_t i = add_index(vocab, type);
    vocab->adds[i].type = type;
    vocab->adds[i].add = add;
    vocab->n_adds += i == vocab->n_adds;
}

static void set_new_add(struct special_vocab *vocab, const char *type, bool add)
{
    if (add_index(vocab, type) == vocab->n_adds)
        set_add(vocab, type, add);
}

static void set_id(struct special_vocab *vocab, const char *type, uint64_t id)
{
    if (vocab->n_vocab != 0 && id >= vocab->n_vocab)
        return;
    for (size_t i = 0; i < vocab->n_ids; i++)
        if (strcmp(vocab->ids[i].type, type) == 0)
            return;
    vocab->ids[vocab->n_ids].type = type;
    vocab->ids[vocab->n_ids++].id = (uint32_t)id;
}

static struct given given_token(const struct json *token)
{
    struct given given = {.is_string = json_is(token, JSON_STRING)};
    given.text = token_content(token, &given.length);
    if (given.is_string && given.length == 0)
        given.text = NULL;
    return given;
}

static bool same(const struct given *given, const char *text, size_t length)
{
    return given->text != NULL && given->is_string && given->length == length && memcmp(given->text, text, length) == 0;
}

static void set_given(struct given *given, const char *text, size_t length)
{
    *given = (struct given){text, length, true};
}

/* Returns the token id of a template's item; NULL: a sequence. */
static const char *template_token(const struct json *item, size_t *ret_length)
{
    return json_string(json_get(json_get(item, "SpecialToken"), "id"), ret_length);
}

static bool template_sequence_is(const struct json *item, const char *id)
{
    return json_string_is(json_get(json_get(item, "Sequence"), "id"), id);
}

static bool is_end(const struct special_vocab *vocab, const char *text, size_t length)
{
    return text != NULL && (same(&vocab->given[SEP], text, length) || same(&vocab->given[EOS], text, length));
}

/* Makes the last token of the single template EOS; an EOS that the files give becomes EOT, or EOM. */
static void replace_eos(struct special_vocab *vocab, const char *last, size_t length)
{
    static const char *const spare[] = {"eot", "eom"};
    for (size_t i = 0; i < 2; i++)
        if (type_index(vocab, spare[i]) == vocab->n_types && vocab->n_types < MOST_TYPES) {
            vocab->types[vocab->n_types] = spare[i];
            vocab->given[vocab->n_types++] = vocab->given[EOS];
            break;
        }
    set_given(&vocab->given[EOS], last, length);
}

static void read_single_template(struct special_vocab *vocab, const struct json *single, const char **ret_first,
                                 size_t *ret_first_length, const char **ret_last, size_t *ret_last_length)
{
    size_t count = json_count(single), length;
    if (count <= 1)
        return;
    const char *first = template_token(json_first(single), &length);
    if (first != NULL && length != 0) {
        if (!vocab->has_config || vocab->given[BOS].text == NULL)
            set_given(&vocab->given[BOS], first, length);
        if (vocab->has_config && vocab->given[CLS].text == NULL && !same(&vocab->given[BOS], first, length))
            set_given(&vocab->given[CLS], first, length);
        set_add(vocab, "bos", same(&vocab->given[BOS], first, length) || same(&vocab->given[CLS], first, length));
        *ret_first = first;
        *ret_first_length = length;
    }
    const char *last = template_token(json_at(single, count - 1), &length);
    if (last != NULL && length != 0) {
        if (!vocab->has_config)
            set_given(&vocab->given[EOS], last, length);
        else if (!same(&vocab->given[EOS], last, length))
            replace_eos(vocab, last, length);
        set_add(vocab, "eos", true);
        *ret_last = last;
        *ret_last_length = length;
    }
}

static bool token_is(const struct json *item, const char *text, size_t length)
{
    size_t item_length;
    const char *item_text = template_token(item, &item_length);
    return text != NULL && item_text != NULL && item_length == length && memcmp(item_text, text, length) == 0;
}

static void read_template(struct special_vocab *vocab, const struct json *processor)
{
    const struct json *pair = json_get(processor, "pair");
    const char *first = NULL, *last = NULL;
    size_t first_length = 0, last_length = 0, begin = 0, end = json_count(pair), length;
    read_single_template(vocab, json_get(processor, "single"), &first, &first_length, &last, &last_length);
    if (end == 0)
        return;
    begin += token_is(json_first(pair), first, first_length);
    end -= token_is(json_at(pair, end - 1), last, last_length);
    if (begin >= end || !template_sequence_is(json_at(pair, begin), "A") ||
        !template_sequence_is(json_at(pair, end - 1), "B"))
        return;
    begin++;
    end--;
    if (begin >= end)
        return;
    const char *middle = template_token(json_at(pair, begin), &length);
    bool add_sep = is_end(vocab, middle, length) && last == NULL;
    if (end - begin == 2) {
        middle = template_token(json_at(pair, begin + 1), &length);
        add_sep |= is_end(vocab, middle, length);
    }
    set_add(vocab, "sep", add_sep);
    if (add_sep && vocab->given[SEP].text == NULL && vocab->has_config)
        vocab->given[SEP] = vocab->given[EOS];
}

/* Takes the text of a RobertaProcessing pair: ["</s>", 2]. */
static void fill_from_pair(struct given *given, const struct json *pair, const struct given *otherwise)
{
    size_t length;
    const char *text = json_string(json_first(pair), &length);
    if (given->text != NULL)
        return;
    if (text != NULL)
        set_given(given, text, length);
    else
        *given = *otherwise;
}

static void read_processor(struct special_vocab *vocab, const struct json *processor)
{
    const struct json *type = json_get(processor, "type");
    if (json_string_is(type, "RobertaProcessing")) {
        set_add(vocab, "bos", true);
        set_add(vocab, "eos", true);
        set_add(vocab, "sep", true);
        if (vocab->has_config) {
            fill_from_pair(&vocab->given[CLS], json_get(processor, "cls"), &vocab->given[BOS]);
            fill_from_pair(&vocab->given[SEP], json_get(processor, "sep"), &vocab->given[EOS]);
        }
    } else if (json_string_is(type, "TemplateProcessing")) {
        read_template(vocab, processor);
    } else if (json_string_is(type, "ByteLevel") && vocab->processor_is_first) {
        set_new_add(vocab, "bos", false);
        set_new_add(vocab, "eos", false);
    }
}

static void read_post_processor(struct special_vocab *vocab, const struct json *tokenizer)
{
    const struct json *processor = json_get(tokenizer, "post_processor"),
                      *processors = json_get(processor, "processors");
    if (vocab->given[BOS].text == NULL && vocab->has_config)
        vocab->given[BOS] = vocab->given[CLS];
    if (vocab->given[EOS].text == NULL && vocab->has_config)
        vocab->given[EOS] = vocab->given[SEP];
    if (!json_is(processors, JSON_ARRAY)) {
        read_processor(vocab, processor);
        return;
    }
    for (const struct json *each = json_first(processors); each != NULL; each = json_next(each))
        read_processor(vocab, each);
}

/* Reads the ids of the given tokens from the added tokens: the first with that content. */
static void read_given(struct special_vocab *vocab, const struct json *config, const struct json *added_tokens)
{
    for (size_t i = 0; i < vocab->n_types; i++) {
        char key[64];
        snprintf(key, sizeof key, "add_%s_token", vocab->types[i]);
        const struct json *add = json_get(config, key);
        if (json_is(add, JSON_TRUE) || json_is(add, JSON_FALSE))
            (vocab->processor_is_first ? set_new_add : set_add)(vocab, vocab->types[i], json_is(add, JSON_TRUE));
        const struct given *given = &vocab->given[i];
        for (const struct json *token = json_first(added_tokens); token != NULL && given->text != NULL;
             token = json_next(token)) {
            size_t length;
            uint64_t id;
            const char *content = json_string(json_get(token, "content"), &length);
            if (content == NULL || length != given->length || memcmp(content, given->text, length) != 0)
                continue;
            if (json_is_integer(json_get(token, "id")) && json_u64(json_get(token, "id"), &id) && id <= UINT32_MAX)
                set_id(vocab, vocab->types[i], id);
            break;
        }
    }
}

static void read_config_ids(struct special_vocab *vocab, const struct json *config)
{
    for (size_t i = 0; i < vocab->n_types; i++) {
        char key[64];
        uint64_t id;
        snprintf(key, sizeof key, "%s_token_id", vocab->types[i]);
        const struct json *value = json_get(config, key);
        if (value == NULL || json_is(value, JSON_NULL))
            value = json_get(json_get(config, "text_config"), key);
        if (json_is_integer(value) && json_u64(value, &id) && id <= UINT32_MAX) /* as a float it does not count */
            set_id(vocab, vocab->types[i], id);
    }
}

/* Merges. */

/* Appends one half of a merge; byte-level tokenizers spell a space in it differently. */
static void append_half(struct buffer *out, struct json_text half)
{
    size_t length = half.length;
    const char *text = half.bytes, *space;
    if (text == NULL)
        return;
    for (const char *end = text + length; (space = memchr(text, ' ', length)) != NULL; length = (size_t)(end - text)) {
        buffer_append(out, text, (size_t)(space - text));
        buffer_append_text(out, "\xc4\xa0");
        text = space + 1;
    }
    buffer_append(out, text, length);
}

/* Appends the text of a merge, which has two halves, and its length before it. */
static void append_pair(struct buffer *out, const struct json *merge)
{
    struct json_text halves[2];
    json_string_pair(merge, halves);
    size_t place = out->length;
    buffer_append_zeros(out, GGUF_LENGTH);
    append_half(out, halves[0]);
    buffer_append(out, " ", 1);
    append_half(out, halves[1]);
    uint64_t length = out->length - place - GGUF_LENGTH;
    little_endian(&length, 1, GGUF_LENGTH);
    memcpy(out->bytes + place, &length, GGUF_LENGTH);
}

/* Returns the bytes that the merges take, without those of spaces that are spelled differently. */
static size_t merges_bytes(const struct json *merges)
{
    size_t n_bytes = 0;
    for (const struct json *merge = json_first(merges); merge != NULL; merge = json_next(merge)) {
        size_t length = 0;
        struct json_text halves[2];
        json_string_pair(merge, halves);
        if (json_string(merge, &length) == NULL)
            length = halves[0].length + 1 + halves[1].length;
        n_bytes += GGUF_LENGTH + length;
    }
    return n_bytes;
}

static void add_json_merges(struct gguf_kvs *kvs, const struct json *merges)
{
    size_t length;
    struct buffer *out =
        gguf_begin_array(kvs, "tokenizer.ggml.merges", GGUF_STRING, json_count(merges), merges_bytes(merges));
    for (const struct json *merge = json_first(merges); merge != NULL; merge = json_next(merge)) {
        const char *text = json_string(merge, &length);
        if (text != NULL)
            gguf_append_string(out, text, length);
        else
            append_pair(out, merge);
    }
}

/* Adds merges.txt: two words a line; skips a first line that starts with '#'. */
static bool add_text_merges(struct gguf_kvs *kvs, const struct checkpoint *checkpoint, struct error *error)
{
    size_t length;
    bool absent;
    char *text = document_text(checkpoint, "merges.txt", &length, &absent, error);
    if (text == NULL)
        return absent;
    static const char space[] = " \t\r\f\v";
    struct buffer elements = {0};
    uint64_t count = 0;
    bool first = true;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), first = false) {
        char *left = line + strspn(line, space), *right = left + strcspn(left, space);
        size_t left_length = (size_t)(right - left), right_length;
        right += strspn(right, space);
        right_length = strcspn(right, space);
        if ((first && *left == '#') || left_length == 0 || right_length == 0 ||
            right[right_length + strspn(right + right_length, space)] != '\0')
            continue;
        left[left_length] = ' ';
        memmove(left + left_length + 1, right, right_length);
        gguf_append_string(&elements, left, left_length + 1 + right_length);
        count++;
    }
    free(text);
    gguf_set_array(kvs, "tokenizer.ggml.merges", GGUF_STRING, count, &elements);
    return true;
}

static bool add_merges(struct gguf_kvs *kvs, const struct checkpoint *checkpoint, const struct json *tokenizer,
                       struct error *error)
{
    const struct json *merges = json_get(json_get(tokenizer, "model"), "merges");
    if (json_count(merges) == 0)
        return add_text_merges(kvs, checkpoint, error);
    add_json_merges(kvs, merges);
    return true;
}

/* Chat templates. */

size_t unify_newlines(char *text, size_t length)
{
    size_t to = 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] != '\r')
            text[to++] = text[i];
        else if (i + 1 == length || text[i + 1] != '\n')
            text[to++] = '\n';
    return to;
}

static bool alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

enum { TEMPLATE_KEY_BYTES = 256 };

/* Writes tokenizer.chat_template.NAME, with '_' for each character that is neither letter nor digit. Returns the place
 * of the name in the key. */
static const char *template_key(char key[TEMPLATE_KEY_BYTES], const char *name, size_t length)
{
    static const char prefix[] = "tokenizer.chat_template.";
    char *to = stpcpy(key, prefix);
    for (size_t i = 0; i < length && to < key + TEMPLATE_KEY_BYTES - 1; i++)
        if (((unsigned char)name[i] & 0xc0) != 0x80)
            *to++ = alphanumeric(name[i]) ? name[i] : '_';
    *to = '\0';
    return key + sizeof prefix - 1;
}

/* Adds named templates: tokenizer.chat_template.NAME for each, their names, and the default one last. */
static void add_named_templates(struct gguf_kvs *kvs, const struct json *templates)
{
    const struct json *usual = NULL;
    struct buffer names = {0};
    uint64_t count = 0;
    for (const struct json *each = json_first(templates); each != NULL; each = json_next(each)) {
        size_t name_length, length;
        const char *name = json_string(json_get(each, "name"), &name_length);
        const char *text = json_string(json_get(each, "template"), &length);
        if (name == NULL || text == NULL)
            continue;
        if (json_string_is(json_get(each, "name"), "default")) {
            usual = json_get(each, "template");
            continue;
        }
        char key[TEMPLATE_KEY_BYTES];
        const char *cleaned = template_key(key, name, name_length);
        if (gguf_kvs_find(kvs, key) == NULL) {
            gguf_append_string(&names, cleaned, strlen(cleaned));
            count++;
        }
        gguf_set_string(kvs, key, text, length);
    }
    gguf_set_array(kvs, "tokenizer.chat_templates", GGUF_STRING, count, &names);
    size_t length;
    const char *text = json_string(usual, &length);
    if (text != NULL)
        gguf_set_string(kvs, "tokenizer.chat_template", text, length);
}

static void add_template(struct gguf_kvs *kvs, const struct json *given)
{
    size_t length;
    const char *text = json_string(given, &length);
    if (text != NULL)
        gguf_set_string(kvs, "tokenizer.chat_template", text, length);
    else if (json_is(given, JSON_ARRAY))
        add_named_templates(kvs, given);
}

/* Adds the templates of additional_chat_templates/, by name; the converter takes them in the directory's order. */
static bool add_template_files(struct gguf_kvs *kvs, const struct checkpoint *checkpoint, struct error *error)
{
    static const char folder[] = "additional_chat_templates/", ending[] = ".jinja";
    struct buffer names = {0};
    uint64_t count = 0;
    for (size_t i = 0; i < checkpoint->n_side_files; i++) {
        const char *file = checkpoint->side_files[i].name;
        size_t length;
        bool absent;
        if (!text_starts_with(file, folder) || !text_ends_with(file, ending))
            continue;
        char key[TEMPLATE_KEY_BYTES];
        const char *name = file + strlen(folder), *stem = template_key(key, name, strlen(name) - strlen(ending));
        char *text = document_text(checkpoint, file, &length, &absent, error);
        if (text == NULL) {
            buffer_free(&names);
            return false;
        }
        gguf_set_string(kvs, key, text, unify_newlines(text, length));
        gguf_append_string(&names, stem, strlen(stem));
        count++;
        free(text);
    }
    gguf_set_array(kvs, "tokenizer.chat_templates", GGUF_STRING, count, &names);
    return true;
}

static bool add_chat_template(struct gguf_kvs *kvs, const struct checkpoint *checkpoint, const struct json *config,
                              struct error *error)
{
    size_t length;
    bool absent;
    if (json_get(config, "chat_template") != NULL) {
        add_template(kvs, json_get(config, "chat_template"));
        return true;
    }
    char *text = document_text(checkpoint, "chat_template.jinja", &length, &absent, error);
    if (text != NULL) {
        bool added = add_template_files(kvs, checkpoint, error);
        gguf_set_string(kvs, "tokenizer.chat_template", text, unify_newlines(text, length));
        free(text);
        return added;
    }
    if (!absent)
        return false;
    struct document *document;
    if (!document_open(checkpoint, "chat_template.json", &document, error))
        return false;
    if (document != NULL)
        add_template(kvs, json_get(document_root(document), "chat_template"));
    document_close(document);
    return true;
}

/* Normalizer flags: 0 false, 1 true, -1 unknown. */

struct normalizer_flags {
    int lowercase, strip_accents;
};

static void read_flag(const struct json *value, int *flag)
{
    if (json_is(value, JSON_TRUE) || json_is(value, JSON_FALSE))
        *flag = json_is(value, JSON_TRUE);
    else if (value != NULL)
        *flag = -1;
}

static void read_normalizer(const struct json *normalizer, struct normalizer_flags *flags, int depth)
{
    const struct json *type = json_get(normalizer, "type");
    if (json_string_is(type, "Lowercase")) {
        flags->lowercase = 1;
    } else if (json_string_is(type, "StripAccents")) {
        flags->strip_accents = 1;
    } else if (json_string_is(type, "BertNormalizer")) {
        read_flag(json_get(normalizer, "lowercase"), &flags->lowercase);
        read_flag(json_get(normalizer, "strip_accents"), &flags->strip_accents);
    } else if (json_string_is(type, "Sequence") && depth < JSON_MAX_DEPTH) {
        const struct json *each = json_first(json_get(normalizer, "normalizers"));
        for (; each != NULL; each = json_next(each))
            read_normalizer(each, flags, depth + 1);
    }
}

static void write_ids_and_flags(struct gguf_kvs *kvs, const struct special_vocab *vocab)
{
    for (size_t i = 0; i < vocab->n_ids; i++)
        for (size_t j = 0; j < sizeof id_keys / sizeof *id_keys; j++)
            if (strcmp(vocab->ids[i].type, id_keys[j].type) == 0)
                gguf_set_u32(kvs, id_keys[j].key, vocab->ids[i].id);
    for (size_t i = 0; i < vocab->n_adds; i++)
        for (size_t j = 0; j < sizeof add_keys / sizeof *add_keys; j++)
            if (strcmp(vocab->adds[i].type, add_keys[j].type) == 0)
                gguf_set_bool(kvs, add_keys[j].key, vocab->adds[i].add);
}

bool special_vocab_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct tokenizer_files *files,
                         const struct special_vocab_options *options, struct error *error)
{
    struct special_vocab vocab = {.n_types = NAMED_TYPES,
                                  .has_config = files->config != NULL,
                                  .n_vocab = options->n_vocab,
                                  .processor_is_first = follows(input->references, FIRST_POST_PROCESSOR)};
    memcpy(vocab.types, named_types, sizeof named_types);
    for (const char *const *type = options->more_types; type != NULL && *type != NULL && vocab.n_types < MOST_TYPES;
         type++)
        vocab.types[vocab.n_types++] = *type;
    for (size_t i = 0; i < vocab.n_types; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s_token", vocab.types[i]);
        vocab.given[i] = given_token(json_get(files->config, key));
    }
    struct normalizer_flags flags = {-1, -1};
    if (files->tokenizer != NULL) {
        read_normalizer(json_get(files->tokenizer, "normalizer"), &flags, 0);
        read_post_processor(&vocab, files->tokenizer);
    }
    if (files->config != NULL)
        read_given(&vocab, files->config, json_get(files->tokenizer, "added_tokens"));
    read_config_ids(&vocab, hparams_raw(input->owner));
    for (size_t i = 0; i < options->n_ids; i++)
        set_id(&vocab, options->ids[i].type, options->ids[i].id);

    if (options->load_merges && !add_merges(kvs, input->checkpoint, files->tokenizer, error))
        return false;
    write_ids_and_flags(kvs, &vocab);
    if (files->config != NULL && !add_chat_template(kvs, input->checkpoint, files->config, error))
        return false;
    if (flags.lowercase >= 0)
        gguf_set_bool(kvs, "tokenizer.ggml.normalizer.lowercase", flags.lowercase);
    if (flags.strip_accents >= 0)
        gguf_set_bool(kvs, "tokenizer.ggml.normalizer.strip_accents", flags.strip_accents);
    return true;
}

bool special_vocab_set_eot(struct gguf_kvs *kvs, const struct vocab_input *input, uint32_t otherwise,
                           struct error *error)
{
    struct special_vocab vocab = {.types = {"eot"}, .n_types = 1};
    struct tokenizer_files files;
    if (!tokenizer_files_load(input->checkpoint, &files, error))
        return false;
    vocab.given[0] = given_token(json_get(files.config, "eot_token"));
    read_given(&vocab, files.config, json_get(files.tokenizer, "added_tokens"));
    read_config_ids(&vocab, hparams_raw(input->owner));
    tokenizer_files_free(&files);
    set_id(&vocab, "eot", otherwise);
    gguf_set_u32(kvs, "tokenizer.ggml.eot_token_id", vocab.ids[0].id);
    return true;
}

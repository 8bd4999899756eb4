#include "models/card/general.h"

#include "base/text.h"
#include "formats/documents.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { README_LIMIT = 1024 * 1024 };

struct general {
    struct gguf_kvs *kvs;
    const struct checkpoint *checkpoint;
    struct arena *arena;
    const struct yaml_value *card; /* NULL: none */
    int64_t n_parameters;
};

/* general.sampling.* from generation_config.json. */

static const struct sampling {
    const char *member, *key;
    enum gguf_type type;
    const char *other; /* counts if `member` is missing, since REPETITION_PENALTY; NULL: none */
} samplings[] = {
    {"sequence", "general.sampling.sequence", GGUF_STRING},
    {"top_k", "general.sampling.top_k", GGUF_I32},
    {"top_p", "general.sampling.top_p", GGUF_F32},
    {"min_p", "general.sampling.min_p", GGUF_F32},
    {"xtc_probability", "general.sampling.xtc_probability", GGUF_F32},
    {"xtc_threshold", "general.sampling.xtc_threshold", GGUF_F32},
    {"temperature", "general.sampling.temp", GGUF_F32},
    {"penalty_last_n", "general.sampling.penalty_last_n", GGUF_I32},
    {"penalty_repeat", "general.sampling.penalty_repeat", GGUF_F32, "repetition_penalty"},
    {"mirostat", "general.sampling.mirostat", GGUF_I32},
    {"mirostat_tau", "general.sampling.mirostat_tau", GGUF_F32},
    {"mirostat_eta", "general.sampling.mirostat_eta", GGUF_F32},
};

/* Python's numbers include its booleans. */
static bool number_of(const struct json *value, double *ret_number)
{
    if (json_is(value, JSON_TRUE) || json_is(value, JSON_FALSE)) {
        *ret_number = json_is(value, JSON_TRUE);
        return true;
    }
    return json_double(value, ret_number);
}

static bool set_sampling(struct gguf_kvs *kvs, const struct sampling *sampling, const struct json *value)
{
    size_t length;
    const char *text = json_string(value, &length);
    double number;
    if (sampling->type == GGUF_STRING && text != NULL) {
        gguf_set_string(kvs, sampling->key, text, length);
        return true;
    }
    if (sampling->type == GGUF_STRING || !number_of(value, &number))
        return false;
    if (sampling->type == GGUF_F32 && fabs(number) <= (double)FLT_MAX) {
        gguf_set_f32(kvs, sampling->key, number);
        return true;
    }
    if (sampling->type == GGUF_I32 && number == trunc(number) && number >= INT32_MIN && number <= INT32_MAX) {
        gguf_set_i32(kvs, sampling->key, (int32_t)number);
        return true;
    }
    return false;
}

/* Adds the value of one key; notes a value of the wrong type. */
static void add_sampling(struct gguf_kvs *kvs, const struct checkpoint *checkpoint, const struct sampling *sampling,
                         const struct json *root, bool follows_other)
{
    const char *member = sampling->member;
    if (json_get(root, member) == NULL && sampling->other != NULL && follows_other)
        member = sampling->other;
    const struct json *value = json_get(root, member);
    if (value != NULL && !json_is(value, JSON_NULL) && !set_sampling(kvs, sampling, value))
        checkpoint_note(checkpoint, SUBJECT_SOURCE,
                        "generation_config.json: %s is left out: not of the type that GGUF has for it", member);
}

static bool add_samplings(struct gguf_kvs *kvs, const struct checkpoint *checkpoint,
                          const struct references *references, struct error *error)
{
    struct document *document;
    if (!document_open_if_valid(checkpoint, "generation_config.json", &document, error))
        return false;
    const struct json *root = document_root(document);
    for (size_t i = 0; json_is(root, JSON_OBJECT) && i < sizeof samplings / sizeof *samplings; i++)
        add_sampling(kvs, checkpoint, &samplings[i], root, follows(references, REPETITION_PENALTY));
    document_close(document);
    return true;
}

/* The model card. */

/* Sets *ret_card to the card, or to NULL if there is no usable one. */
static bool read_card(const struct checkpoint *checkpoint, struct arena *arena, const struct yaml_value **ret_card,
                      struct error *error)
{
    const struct side_file *readme = checkpoint_side_file(checkpoint, "README.md");
    struct error wrong;
    *ret_card = NULL;
    if (readme == NULL)
        return true;
    uint64_t size = source_size(readme->source);
    size_t length = size < README_LIMIT ? (size_t)size : README_LIMIT;
    char *text = arena_alloc(arena, length);
    if (!source_read(readme->source, 0, length, text, error))
        return false;
    if (!front_matter_read(arena, text, length, ret_card, &wrong))
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "README.md: its front matter is not used: %s", wrong.message);
    return true;
}

/* Joins the texts of a list with commas, as licenses are. */
static const char *joined(const struct general *general, const struct yaml_value *list)
{
    struct buffer out = {0};
    for (size_t i = 0; i < list->n_pairs; i++) {
        const char *text = list->pairs[i].value->text;
        if (text == NULL)
            continue;
        if (out.length != 0)
            buffer_append_text(&out, ",");
        buffer_append_text(&out, text);
    }
    const char *text = arena_strndup(general->arena, (const char *)out.bytes, out.length);
    buffer_free(&out);
    return text;
}

/* Returns the text of a card's value for a string of the GGUF; NULL: absent, null or a mapping; "": false or empty. */
static const char *card_text(const struct general *general, const struct yaml_value *value, const char *key)
{
    if (value == NULL || value->type == YAML_NULL)
        return NULL;
    if (value->type == YAML_STRING)
        return value->text;
    if (yaml_is_false(value))
        return "";
    if (value->type == YAML_MAPPING) {
        checkpoint_note(general->checkpoint, SUBJECT_SOURCE, "README.md: %s is left out: a mapping, expected text",
                        key);
        return NULL;
    }
    if (value->type == YAML_LIST)
        return joined(general, value);
    checkpoint_note(general->checkpoint, SUBJECT_SOURCE, "README.md: %s is not text; '%s' is used", key, value->text);
    return value->text;
}

/* The texts. */

enum { NO_PART = -1, MAX_ALIASES = 4 };

/* Keys in the order of the file, each with the card's keys in order of precedence, and the part of the name that
 * is used if the card has none of them. */
static const struct text_field {
    const char *key;
    const char *card_keys[MAX_ALIASES];
    int part; /* offset in struct name_parts */
    bool titled;
} text_fields[] = {
    {"general.name", {"name", "model_name"}, offsetof(struct name_parts, full_name), true},
    {"general.author", {"author", "model_author", "model_creator"}, NO_PART, false},
    {"general.version", {"version", "model_version"}, offsetof(struct name_parts, version), false},
    {"general.organization", {"organization", "model_organization"}, offsetof(struct name_parts, organization), true},
    {"general.finetune", {"finetune", "model_finetune"}, offsetof(struct name_parts, finetune), false},
    {"general.basename", {"basename", "model_basename", "model_type"}, offsetof(struct name_parts, basename), false},
    {"general.description", {"description", "model_description"}, NO_PART, false},
    {"general.size_label", {"size_label", "model_size_label"}, offsetof(struct name_parts, size_label), false},
    {"general.license", {"license"}, NO_PART, false},
    {"general.license.name", {"license_name"}, NO_PART, false},
    {"general.license.link", {"license_link"}, NO_PART, false},
    {"general.source.url", {"url", "model_url"}, NO_PART, false},
    {"general.source.doi", {"doi", "model_doi"}, NO_PART, false},
    {"general.source.uuid", {"uuid", "model_uuid"}, NO_PART, false},
    {"general.source.repo_url", {"repo_url", "model_repo_url"}, NO_PART, false},
};

static const char *text_from_card(const struct general *general, const struct text_field *field)
{
    const char *text = NULL;
    for (size_t i = 0; text == NULL && i < MAX_ALIASES && field->card_keys[i] != NULL; i++)
        text = card_text(general, yaml_get(general->card, field->card_keys[i]), field->card_keys[i]);
    return text;
}

static const char *text_from_name(const struct general *general, const struct text_field *field,
                                  const struct name_parts *name)
{
    const char *const *part = (const char *const *)((const char *)name + field->part);
    return *part != NULL && field->titled ? name_title(general->arena, *part) : *part;
}

/* Returns the name in config.json, unless it is a local path. */
static const char *name_or_path(const struct json *raw_config)
{
    const char *name = json_string(json_get(raw_config, "_name_or_path"), NULL);
    const char *slash = name == NULL ? NULL : strchr(name, '/');
    return slash != NULL && strchr(slash + 1, '/') != NULL ? NULL : name;
}

static void add_texts(const struct general *general, const struct json *raw_config, const struct parameter_count *count)
{
    struct name_parts names[2] = {0};
    const char *ids[] = {name_or_path(raw_config), general->checkpoint->model_name};
    for (size_t i = 0; i < 2; i++)
        if (ids[i] != NULL)
            names[i] = name_parts_read(general->arena, ids[i], general->n_parameters);
    for (size_t i = 0; i < sizeof text_fields / sizeof *text_fields; i++) {
        const struct text_field *field = &text_fields[i];
        const char *text = text_from_card(general, field);
        for (size_t j = 0; text == NULL && field->part != NO_PART && j < 2; j++)
            text = text_from_name(general, field, &names[j]);
        if (text == NULL && field->part == offsetof(struct name_parts, size_label) && count->total != 0 &&
            !count->is_adapter)
            text = size_label(general->arena, count);
        if (text != NULL)
            gguf_set_text(general->kvs, field->key, text);
    }
}

/* Base models and datasets. */

enum entry_field { NAME, AUTHOR, VERSION, ORGANIZATION, DESCRIPTION, URL, DOI, UUID, REPO_URL, N_ENTRY_FIELDS };
static const char *const entry_fields[N_ENTRY_FIELDS] = {"name", "author", "version", "organization", "description",
                                                         "url",  "doi",    "uuid",    "repo_url"};

/* Returns the "ORG/NAME" of an address on the hub; NULL for any other text. */
static const char *hub_id(const char *url)
{
    static const char *const hosts[] = {"https://huggingface.co/", "http://huggingface.co/"};
    for (size_t i = 0; i < 2; i++) {
        const char *id = text_starts_with(url, hosts[i]) ? url + strlen(hosts[i]) : NULL;
        const char *slash = id == NULL ? NULL : strchr(id, '/');
        if (slash != NULL && slash != id && slash[1] != 0 && strchr(slash + 1, '/') == NULL)
            return id;
    }
    return NULL;
}

/* Fills in an entry that is written as an address or as a hub id. */
static void entry_from_text(const struct general *general, const char *text, const char *values[N_ENTRY_FIELDS])
{
    bool url =
        text_starts_with(text, "http://") || text_starts_with(text, "https://") || text_starts_with(text, "ssh://");
    const char *id = url ? hub_id(text) : text;
    if (url)
        values[REPO_URL] = text;
    if (id == NULL)
        return;
    struct name_parts name = name_parts_read(general->arena, id, general->n_parameters);
    values[NAME] = name_title(general->arena, name.full_name);
    values[VERSION] = name.version;
    if (name.organization == NULL)
        return;
    values[ORGANIZATION] = name_title(general->arena, name.organization);
    if (!url)
        values[REPO_URL] =
            arena_printf(general->arena, "https://huggingface.co/%s/%s", name.organization, name.full_name);
}

static void add_entry(const struct general *general, const char *kind, size_t index, const struct yaml_value *entry)
{
    const char *values[N_ENTRY_FIELDS] = {0};
    if (entry->type == YAML_STRING)
        entry_from_text(general, entry->text, values);
    for (size_t i = 0; entry->type == YAML_MAPPING && i < N_ENTRY_FIELDS; i++)
        values[i] = card_text(general, yaml_get(entry, entry_fields[i]), entry_fields[i]);
    for (size_t i = 0; i < N_ENTRY_FIELDS; i++) {
        char key[128];
        snprintf(key, sizeof key, "general.%s.%zu.%s", kind, index, entry_fields[i]);
        if (values[i] != NULL)
            gguf_set_text(general->kvs, key, values[i]);
    }
}

/* Adds a list's entries. `card_keys` are alternative names of the list, NULL at the end; the first that is present
 * counts, whatever it holds. */
static void add_entries(const struct general *general, const char *kind, const char *const *card_keys)
{
    const struct yaml_value *entries = NULL;
    for (; entries == NULL && *card_keys != NULL; card_keys++)
        entries = yaml_get(general->card, *card_keys);
    if (entries == NULL)
        return;
    size_t n_entries = entries->type == YAML_LIST ? entries->n_pairs : entries->type == YAML_STRING;
    char key[128];
    snprintf(key, sizeof key, "general.%s.count", kind);
    gguf_set_u32(general->kvs, key, (uint32_t)n_entries);
    for (size_t i = 0; i < n_entries; i++)
        add_entry(general, kind, i, entries->type == YAML_LIST ? entries->pairs[i].value : entries);
}

/* Tags and languages. */

/* The elements of an array: the scalars of one or two values of the card. */
struct elements {
    const struct yaml_value **values;
    size_t n_values;
    bool any_left_out;
};

static void collect_one(struct elements *elements, const struct yaml_value *value)
{
    if (value->text != NULL && value->type != YAML_NULL)
        elements->values[elements->n_values++] = value;
    else
        elements->any_left_out = true;
}

/* Collects a text as one element, and a list as its elements; ignores a number or a bool. */
static void collect(const struct general *general, struct elements *elements, const char *card_key)
{
    const struct yaml_value *value = yaml_get(general->card, card_key);
    if (value == NULL)
        return;
    const struct yaml_value **room = arena_array(general->arena, elements->n_values + value->n_pairs + 1, sizeof *room);
    if (elements->n_values != 0)
        memcpy(room, elements->values, elements->n_values * sizeof *room);
    elements->values = room;
    if (value->type == YAML_STRING)
        collect_one(elements, value);
    for (size_t i = 0; value->type == YAML_LIST && i < value->n_pairs; i++)
        collect_one(elements, value->pairs[i].value);
}

/* Returns the array's element type: that of the elements if all are bools, integers or floats of 32 bits, else text. */
static enum gguf_type element_type(const struct elements *elements)
{
    enum yaml_type first = elements->values[0]->type;
    for (size_t i = 0; i < elements->n_values; i++) {
        const struct yaml_value *value = elements->values[i];
        bool fits = value->integer >= INT32_MIN && value->integer <= INT32_MAX &&
                    !(fabs(value->real) > (double)FLT_MAX && isfinite(value->real));
        if (value->type != first || !fits)
            return GGUF_STRING;
    }
    switch (first) {
    case YAML_BOOL:
        return GGUF_BOOL;
    case YAML_INTEGER:
        return GGUF_I32;
    case YAML_FLOAT:
        return GGUF_F32;
    default:
        return GGUF_STRING;
    }
}

static void append_element(struct buffer *out, enum gguf_type type, const struct yaml_value *value)
{
    float real = (float)value->real;
    uint32_t bits;
    memcpy(&bits, &real, sizeof bits);
    switch (type) {
    case GGUF_BOOL:
        buffer_append_le(out, (uint64_t)value->integer, 1);
        return;
    case GGUF_I32:
        buffer_append_le(out, (uint32_t)value->integer, 4);
        return;
    case GGUF_F32:
        buffer_append_le(out, bits, 4);
        return;
    default:
        gguf_append_string(out, value->text, strlen(value->text));
    }
}

static void add_array(const struct general *general, const char *key, const char *first_card_key,
                      const char *second_card_key)
{
    struct elements elements = {0};
    collect(general, &elements, first_card_key);
    collect(general, &elements, second_card_key);
    if (elements.any_left_out)
        checkpoint_note(general->checkpoint, SUBJECT_SOURCE,
                        "README.md: %s: elements that are neither text nor number are left out", first_card_key);
    if (elements.n_values == 0)
        return;
    enum gguf_type type = element_type(&elements);
    bool all_texts = true;
    struct buffer bytes = {0};
    for (size_t i = 0; i < elements.n_values; i++) {
        all_texts = all_texts && elements.values[i]->type == YAML_STRING;
        append_element(&bytes, type, elements.values[i]);
    }
    if (type == GGUF_STRING && !all_texts)
        checkpoint_note(general->checkpoint, SUBJECT_SOURCE,
                        "README.md: %s: elements that are not text are used as text", first_card_key);
    gguf_set_array(general->kvs, key, type, elements.n_values, &bytes);
}

/* Returns the number of parameters as name_parts_read() takes it. */
static int64_t parameters_of(const struct parameter_count *count)
{
    int64_t total = count->total < INT64_MAX ? (int64_t)count->total : INT64_MAX;
    return count->is_adapter ? -total : total;
}

static void add_all(struct general *general, const struct json *raw_config, const struct parameter_count *count)
{
    add_texts(general, raw_config, count);
    add_entries(general, "base_model", (const char *const[]){"base_model", "base_models", "base_model_sources", NULL});
    add_entries(general, "dataset", (const char *const[]){"datasets", "dataset", "dataset_sources", NULL});
    add_array(general, "general.tags", "tags", "pipeline_tag");
    add_array(general, "general.languages", "languages", "language");
}

bool general_add(struct gguf_kvs *kvs, const struct checkpoint *checkpoint, const struct json *raw_config,
                 const struct parameter_count *count, const struct references *references, struct error *error)
{
    struct arena *arena = arena_new();
    struct general general = {
        .kvs = kvs, .checkpoint = checkpoint, .arena = arena, .n_parameters = parameters_of(count)};
    bool read = read_card(checkpoint, arena, &general.card, error) && add_samplings(kvs, checkpoint, references, error);
    if (read)
        add_all(&general, raw_config, count);
    arena_free(arena);
    return read;
}

/* From keys back to the card. */

static void append_card_text(struct buffer *out, const struct gguf_kvs *kvs, const char *key, const char *indent,
                             const char *name)
{
    struct arena *arena = arena_new();
    struct error error;
    size_t length;
    const char *text = gguf_get_string(kvs, key, arena, &length, &error);
    if (text != NULL) {
        buffer_printf(out, "%s%s: ", indent, name);
        buffer_append_json_text(out, text, length, JSON_ASCII);
        buffer_append_text(out, "\n");
    }
    arena_free(arena);
}

static void append_card_entries(struct buffer *out, const struct gguf_kvs *kvs, const char *kind, const char *name)
{
    enum { MOST_ENTRIES = 10000 };
    char key[128];
    uint64_t count;
    snprintf(key, sizeof key, "general.%s.count", kind);
    if (!gguf_get_u64(kvs, key, &count) || count > MOST_ENTRIES)
        return;
    buffer_printf(out, "%s:\n", name);
    for (uint64_t i = 0; i < count; i++) {
        buffer_append_text(out, "-\n");
        for (size_t j = 0; j < N_ENTRY_FIELDS; j++) {
            snprintf(key, sizeof key, "general.%s.%" PRIu64 ".%s", kind, i, entry_fields[j]);
            append_card_text(out, kvs, key, "  ", entry_fields[j]);
        }
    }
}

static void append_card_array(struct buffer *out, const struct gguf_kvs *kvs, const char *key, const char *name)
{
    enum { MOST_ELEMENTS = 10000 };
    const struct gguf_kv *kv = gguf_kvs_find(kvs, key);
    enum gguf_type type;
    uint64_t count;
    if (kv == NULL || !gguf_array_outline(kv, &type, &count) || count > MOST_ELEMENTS)
        return;
    buffer_printf(out, "%s: ", name);
    gguf_put_json(&(struct json_writer){.out = out, .letters = JSON_ASCII, .compact = true}, NULL, kv, MOST_ELEMENTS);
    buffer_append_text(out, "\n");
}

void general_write_card(const struct gguf_kvs *kvs, struct buffer *out)
{
    buffer_append_text(out, "---\n");
    for (size_t i = 0; i < sizeof text_fields / sizeof *text_fields; i++)
        append_card_text(out, kvs, text_fields[i].key, "", text_fields[i].card_keys[0]);
    append_card_entries(out, kvs, "base_model", "base_model");
    append_card_entries(out, kvs, "dataset", "datasets");
    append_card_array(out, kvs, "general.tags", "tags");
    append_card_array(out, kvs, "general.languages", "language");
    buffer_append_text(out, "---\n");
}

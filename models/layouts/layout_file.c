#include "models/layouts/layout_file.h"

#include "base/text.h"
#include "formats/documents.h"
#include "models/families/families.h"
#include "models/layouts/expression.h"
#include "models/layouts/key_names.h"
#include "models/packings/packings.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SOURCES = AXES_MAX_TENSORS, MAX_ROWS = 4096 };

struct reading {
    struct arena *arena;
    struct error *error;
    const struct layout_file *file;
};

/* Returns the innermost existing value on the way to "tensors[0].axes". */
static const struct json *value_at(const struct json *root, const char *place)
{
    const struct json *value = root, *next = root;
    for (size_t length; next != NULL; place += length) {
        value = next;
        place += *place == '.';
        length = strcspn(place, *place == '[' ? "]" : ".[");
        if (length == 0)
            break;
        next = *place == '[' ? json_at(value, strtoul(place + 1, NULL, 10)) : json_get_n(value, place, length);
        length += place[length] == ']';
    }
    return value;
}

const char *layout_file_place(const struct layout_file *file, const char *place, struct arena *arena)
{
    const char *colon = *place != '\0' ? ": " : "";
    return arena_printf(arena, "%s:%u%s%s", file->path, json_line(value_at(file->root, place)), colon, place);
}

static bool fail_at(const struct reading *reading, const char *place, const char *key, const char *reason)
{
    const char *dot = *place != '\0' && *key != '\0' ? "." : "";
    const char *member = arena_printf(reading->arena, "%s%s%s", place, dot, key);
    return error_set(reading->error, "%s: %s", layout_file_place(reading->file, member, reading->arena), reason);
}

static bool prefix_at(const struct reading *reading, const char *place, const char *key)
{
    struct error reason = *reading->error;
    return fail_at(reading, place, key, reason.message);
}

/* Reads a text, or an array of texts. */
static bool read_texts(const struct reading *reading, const struct json *value, const char *place, const char *key,
                       const char *const **ret_texts, unsigned *ret_count)
{
    bool is_array = json_is(value, JSON_ARRAY);
    size_t count = is_array ? json_count(value) : value != NULL;
    const char **texts = arena_array(reading->arena, count + 1, sizeof *texts);
    const struct json *element = is_array ? json_first(value) : value;
    if (count > MAX_SOURCES)
        return fail_at(reading, place, key, "more than 16 elements");
    if (is_array && count == 0)
        return fail_at(reading, place, key, "an empty array");
    for (size_t i = 0; i < count; i++, element = json_next(element)) {
        size_t length;
        texts[i] = json_string(element, &length);
        if (texts[i] == NULL || strlen(texts[i]) != length)
            return fail_at(reading, place, key, "neither a string nor an array of strings");
    }
    *ret_texts = texts;
    *ret_count = (unsigned)count;
    return true;
}

static bool read_text(const struct reading *reading, const struct json *object, const char *place, const char *key,
                      const char **ret_text)
{
    size_t length;
    const struct json *value = json_get(object, key);
    *ret_text = json_string(value, &length);
    if (value != NULL && (*ret_text == NULL || strlen(*ret_text) != length))
        return fail_at(reading, place, key, "not a string");
    return true;
}

/* Reads an expression, which may also be a JSON number. */
static bool read_expression(const struct reading *reading, const struct json *value, const char *place, const char *key,
                            const char **ret_expression)
{
    size_t length = 0;
    const char *text = json_string(value, &length);
    *ret_expression = json_is(value, JSON_NUMBER) ? json_number_text(value) : text;
    if (value == NULL)
        return true;
    if (*ret_expression == NULL || (text != NULL && strlen(text) != length))
        return fail_at(reading, place, key, "not an expression");
    return expression_check(*ret_expression, reading->error) || prefix_at(reading, place, key);
}

static bool check_members(const struct reading *reading, const struct json *object, const char *place,
                          const char *const *known)
{
    if (!json_is(object, JSON_OBJECT))
        return fail_at(reading, place, "", "not an object");
    for (struct json_member member = {0}; json_next_member(object, &member);) {
        const char *const *name = known;
        while (*name != NULL && strcmp(*name, member.key) != 0)
            name++;
        if (*name == NULL || strlen(member.key) != member.key_length)
            return fail_at(reading, place, member.key, "unknown");
    }
    return true;
}

static bool read_flag(const struct reading *reading, const struct json *object, const char *place, const char *key,
                      bool *ret_flag)
{
    const struct json *value = json_get(object, key);
    *ret_flag = json_bool(value, false);
    return value == NULL || json_is(value, JSON_TRUE) || json_is(value, JSON_FALSE) ||
           fail_at(reading, place, key, "not true or false");
}

/* Checks each {expression} in a template. */
static bool check_template(const struct reading *reading, const char *text, const char *place, const char *key)
{
    for (const char *open = strchr(text, '{'); open != NULL; open = strchr(open + 1, '{')) {
        const char *close = strchr(open, '}');
        if (close == NULL)
            return fail_at(reading, place, key, "{ without }");
        char *expression = arena_strndup(reading->arena, open + 1, (size_t)(close - open - 1));
        if (!expression_check(expression, reading->error))
            return prefix_at(reading, place, key);
    }
    return true;
}

static bool read_template(const struct reading *reading, const struct json *object, const char *place, const char *key,
                          const char **ret_text)
{
    return read_text(reading, object, place, key, ret_text) &&
           (*ret_text == NULL || check_template(reading, *ret_text, place, key));
}

static bool has_part(const struct layout_file *file, const char *name)
{
    for (size_t i = 0; i < file->n_axes; i++)
        if (strcmp(file->axes[i].name, name) == 0)
            return file->axes[i].part != NULL;
    return false;
}

/* Reports whether a rearrangement has an effect, and drops only axes that "axes" in the file cuts into slices. */
static bool check_rearrangement(const struct reading *reading, const struct layout_row *row,
                                const struct rearrangement *axes)
{
    uint32_t parts = rearrangement_parts(axes);
    if (axes->is_identity)
        return fail_at(reading, row->place, "axes", "both sides are the same, which changes nothing; leave it out");
    for (unsigned i = 0; i < axes->n_names; i++)
        if ((parts >> i & 1) != 0 && !has_part(reading->file, axes->names[i]))
            return fail_at(reading, row->place, "axes",
                           arena_printf(reading->arena,
                                        "'%.200s' loses the axis %.40s: keep it, or select a part, with "
                                        "\"axes\": {\"%.40s\": {\"size\": ..., \"part\": ...}} in the layout file",
                                        axes->text, axes->names[i], axes->names[i]));
    return true;
}

static bool read_row_axes(const struct reading *reading, const struct json *object, struct layout_row *row)
{
    const char *const *texts;
    unsigned count;
    if (!read_texts(reading, json_get(object, "axes"), row->place, "axes", &texts, &count))
        return false;
    const struct rearrangement **axes = arena_array(reading->arena, count + 1, sizeof *axes), *before = NULL;
    for (unsigned i = 0; i < count; i++) {
        axes[i] = NULL;
        if (strcmp(texts[i], "parallel") == 0) {
            row->is_parallel = true;
            continue;
        }
        axes[i] = rearrangement_parse(reading->arena, texts[i], reading->error);
        if (axes[i] == NULL)
            return prefix_at(reading, row->place, "axes");
        if (before != NULL && axes[i]->n_tensors[FORWARD] != before->n_tensors[BACKWARD])
            return fail_at(reading, row->place, "axes",
                           "a step takes another number of tensors than the step before it makes");
        if (!check_rearrangement(reading, row, axes[i]))
            return false;
        before = axes[i];
    }
    row->axes = axes;
    row->n_axes = count;
    return before == NULL || before->n_tensors[BACKWARD] == 1 ||
           fail_at(reading, row->place, "axes", "the last step must make one tensor");
}

static bool check_keys(const struct reading *reading, const struct json *keys)
{
    struct key_names names = {0};
    return keys == NULL || key_names_add(&names, keys, reading->file->path, reading->arena, reading->error);
}

static bool is_constant(const struct json *constant)
{
    const struct json *number = json_is(constant, JSON_ARRAY) ? json_first(constant) : constant;
    for (; number != NULL; number = number != constant ? json_next(number) : NULL)
        if (!json_is(number, JSON_NUMBER))
            return false;
    return true;
}

static bool read_row_values(const struct reading *reading, const struct json *object, struct layout_row *row)
{
    const char *rule, *map;
    if (!read_text(reading, object, row->place, "rule", &rule) ||
        !read_text(reading, object, row->place, "map", &map) ||
        !read_texts(reading, json_get(object, "dtype"), row->place, "dtype", &row->dtypes, &row->n_dtypes))
        return false;
    if (rule != NULL && strcmp(rule, q4_0_absmax7_rule.name) != 0)
        return fail_at(reading, row->place, "rule", "unknown");
    if (map != NULL && strcmp(map, plus_one.forward_text) != 0 && strcmp(map, minus_exp.forward_text) != 0)
        return fail_at(reading, row->place, "map", "unknown");
    row->rule = rule != NULL ? &q4_0_absmax7_rule : NULL;
    if (map != NULL)
        row->map = strcmp(map, plus_one.forward_text) == 0 ? &plus_one : &minus_exp;
    row->constant = json_get(object, "constant");
    row->keys = json_get(object, "keys");
    if (!read_flag(reading, object, row->place, "optional", &row->optional))
        return false;
    if (row->constant != NULL && !is_constant(row->constant))
        return fail_at(reading, row->place, "constant", "neither a number nor an array of numbers");
    return check_keys(reading, row->keys);
}

/* Reads {"when": ..., "as": ..., "scales": ...}. */
static bool read_scaled(const struct reading *reading, const struct json *object, struct layout_row *row)
{
    static const char *const known[] = {"when", "as", "scales", NULL};
    const struct json *scaled = json_get(object, "scaled");
    const char *place = arena_printf(reading->arena, "%s.scaled", row->place), *as;
    if (scaled == NULL)
        return true;
    row->packed_when = "true";
    if (!json_is(scaled, JSON_OBJECT))
        return fail_at(reading, row->place, "scaled", "not an object");
    if (json_get(scaled, "when") != NULL &&
        !read_expression(reading, json_get(scaled, "when"), place, "when", &row->packed_when))
        return false;
    if (!check_members(reading, scaled, place, known) || !read_text(reading, scaled, place, "as", &as) ||
        !read_template(reading, scaled, place, "scales", &row->scales))
        return false;
    row->packer = packer_find(as != NULL ? as : "FP8_PER_CHANNEL_PER_TOKEN");
    return row->packer != NULL || fail_at(reading, place, "as", "unknown");
}

/* Reads {"base": ..., "factors": ..., "positions": ..., "trained": ...}. */
static bool read_rotary(const struct reading *reading, const struct json *object, struct layout_row *row)
{
    static const char *const known[] = {"base", "factors", "positions", "trained", NULL};
    const struct json *json = json_get(object, "rotary");
    const char *place = arena_printf(reading->arena, "%s.rotary", row->place);
    struct layout_rotary *rotary = arena_alloc(reading->arena, sizeof *rotary);
    if (json == NULL)
        return true;
    if (!check_members(reading, json, place, known) ||
        !read_expression(reading, json_get(json, "base"), place, "base", &rotary->base) ||
        !read_expression(reading, json_get(json, "factors"), place, "factors", &rotary->factors) ||
        !read_expression(reading, json_get(json, "positions"), place, "positions", &rotary->positions) ||
        !read_expression(reading, json_get(json, "trained"), place, "trained", &rotary->trained))
        return false;
    row->rotary = rotary;
    if (rotary->base == NULL || rotary->factors == NULL)
        return fail_at(reading, place, rotary->base == NULL ? "base" : "factors", "missing");
    return (rotary->positions == NULL) == (rotary->trained == NULL) ||
           fail_at(reading, place, rotary->trained == NULL ? "trained" : "positions", "missing");
}

/* Returns the name of a tensor that keeps the name of its source. */
static const char *name_of_source(struct arena *arena, const char *from)
{
    if (!text_ends_with(from, "*"))
        return from;
    return arena_printf(arena, "%.*s{rest}", (int)strlen(from) - 1, from);
}

static bool read_row(const struct reading *reading, const struct json *object, const char *place,
                     struct layout_row *row)
{
    static const char *const known[] = {"to",   "from",     "translated", "when",     "axes",   "dtype",  "rule", "map",
                                        "keys", "constant", "each",       "optional", "scaled", "rotary", NULL};
    row->place = place;
    if (!check_members(reading, object, place, known) || !read_template(reading, object, place, "to", &row->to) ||
        !read_template(reading, object, place, "translated", &row->translated) ||
        !read_texts(reading, json_get(object, "from"), place, "from", &row->from, &row->n_from) ||
        !read_expression(reading, json_get(object, "when"), place, "when", &row->when))
        return false;
    for (unsigned i = 0; i < row->n_from; i++)
        if (!check_template(reading, row->from[i], place, "from"))
            return false;
    if ((row->n_from > 0) == (row->translated != NULL))
        return fail_at(reading, place, "from", "use either \"from\" or \"translated\"");
    if (row->to == NULL)
        row->to = row->translated != NULL ? row->translated : name_of_source(reading->arena, row->from[0]);
    return read_row_axes(reading, object, row) && read_row_values(reading, object, row) &&
           read_scaled(reading, object, row) && read_rotary(reading, object, row);
}

static char *replaced(struct arena *arena, const char *text, const char *name, const char *value)
{
    char *result = arena_strdup(arena, "");
    const char *placeholder = arena_printf(arena, "{%s}", name), *found;
    for (; (found = strstr(text, placeholder)) != NULL; text = found + strlen(placeholder))
        result = arena_printf(arena, "%s%.*s%s", result, (int)(found - text), text, value);
    return arena_printf(arena, "%s%s", result, text);
}

/* Returns the row with {name} replaced by `value` in its names and conditions. */
static struct layout_row row_for(struct arena *arena, const struct layout_row *row, const char *name, const char *value)
{
    struct layout_row result = *row;
    const char **from = arena_array(arena, row->n_from + 1, sizeof *from);
    for (unsigned i = 0; i < row->n_from; i++)
        from[i] = replaced(arena, row->from[i], name, value);
    result.from = from;
    result.to = replaced(arena, row->to, name, value);
    result.translated = row->translated != NULL ? replaced(arena, row->translated, name, value) : NULL;
    result.when = row->when != NULL ? replaced(arena, row->when, name, value) : NULL;
    result.scales = row->scales != NULL ? replaced(arena, row->scales, name, value) : NULL;
    return result;
}

/* Adds a row, or one row for each text of "each". */
static bool add_row(const struct reading *reading, const struct json *object, const char *place,
                    struct layout_block *block)
{
    struct layout_row row = {0};
    const struct json *choices = json_get(object, "each");
    struct json_member each = {0};
    const char *const *texts;
    unsigned count;
    if (!read_row(reading, object, place, &row))
        return false;
    if (choices == NULL) {
        block->rows[block->n_rows++] = row;
        return true;
    }
    if (json_count_members(choices) != 1 || !json_next_member(choices, &each))
        return fail_at(reading, place, "each", "not an object with one name and an array of strings");
    if (!read_texts(reading, each.value, place, "each", &texts, &count))
        return false;
    for (unsigned i = 0; i < count; i++)
        block->rows[block->n_rows++] = row_for(reading->arena, &row, each.key, texts[i]);
    return true;
}

/* Reads {"layer": "layers"}: a name, and the number of its values. */
static bool read_for(const struct reading *reading, const struct json *object, const char *place, const char **ret_name,
                     const char **ret_count)
{
    const struct json *value = json_get(object, "for");
    struct json_member member = {0};
    if (value == NULL)
        return true;
    if (json_count_members(value) != 1 || !json_next_member(value, &member))
        return fail_at(reading, place, "for", "not an object with one name and its number");
    *ret_name = member.key;
    return read_expression(reading, member.value, place, "for", ret_count);
}

static bool read_block(const struct reading *reading, const struct json *object, const char *place,
                       struct layout_block *block)
{
    static const char *const known[] = {"for", "when", "tensors", NULL};
    const struct json *rows = json_get(object, "tensors");
    bool is_block = rows != NULL;
    block->place = place;
    block->rows = arena_array(reading->arena, (is_block ? json_count(rows) : 1) * MAX_SOURCES + 1, sizeof *block->rows);
    if (!is_block)
        return add_row(reading, object, place, block);
    if (!check_members(reading, object, place, known) ||
        !read_for(reading, object, place, &block->name, &block->count) ||
        !read_expression(reading, json_get(object, "when"), place, "when", &block->when))
        return false;
    if (!json_is(rows, JSON_ARRAY))
        return fail_at(reading, place, "tensors", "not an array");
    size_t number = 0;
    for (const struct json *row = json_first(rows); row != NULL; row = json_next(row), number++)
        if (!add_row(reading, row, arena_printf(reading->arena, "%s.tensors[%zu]", place, number), block))
            return false;
    return true;
}

static bool read_blocks(const struct reading *reading, const struct json *root, struct layout_file *file)
{
    const struct json *tensors = json_get(root, "tensors");
    if (!json_is(tensors, JSON_ARRAY) || json_count(tensors) == 0 || json_count(tensors) > MAX_ROWS)
        return fail_at(reading, "", "tensors", "not an array of 1 to 4096 rows");
    file->blocks = arena_array(reading->arena, json_count(tensors), sizeof *file->blocks);
    for (const struct json *element = json_first(tensors); element != NULL; element = json_next(element)) {
        const char *place = arena_printf(reading->arena, "tensors[%zu]", file->n_blocks);
        if (!read_block(reading, element, place, &file->blocks[file->n_blocks++]))
            return false;
    }
    return true;
}

static bool read_lets(const struct reading *reading, const struct json *root, struct layout_file *file)
{
    const struct json *lets = json_get(root, "let");
    file->lets = arena_array(reading->arena, json_count_members(lets) + 1, sizeof *file->lets);
    for (struct json_member member = {0}; json_next_member(lets, &member);) {
        struct layout_value *let = &file->lets[file->n_lets++];
        let->name = member.key;
        if (!read_expression(reading, member.value, "let", let->name, &let->expression))
            return false;
    }
    return true;
}

static bool read_axes(const struct reading *reading, const struct json *root, struct layout_file *file)
{
    static const char *const known[] = {"size", "part", NULL};
    const struct json *axes = json_get(root, "axes");
    file->axes = arena_array(reading->arena, json_count_members(axes) + 1, sizeof *file->axes);
    for (struct json_member member = {0}; json_next_member(axes, &member);) {
        struct layout_axis *axis = &file->axes[file->n_axes++];
        bool is_object = json_is(member.value, JSON_OBJECT);
        axis->name = member.key;
        if (is_object &&
            !check_members(reading, member.value, arena_printf(reading->arena, "axes.%s", axis->name), known))
            return false;
        if (!read_expression(reading, is_object ? json_get(member.value, "size") : member.value, "axes", axis->name,
                             &axis->size) ||
            !read_expression(reading, json_get(member.value, "part"), "axes", axis->name, &axis->part))
            return false;
        if (axis->size == NULL)
            return fail_at(reading, "axes", axis->name, "\"size\" is missing");
    }
    return true;
}

static bool read_refusals(const struct reading *reading, const struct json *root, struct layout_file *file)
{
    static const char *const known[] = {"when", "because", NULL};
    const struct json *refusals = json_get(root, "refuse");
    file->refusals = arena_array(reading->arena, json_count(refusals) + 1, sizeof *file->refusals);
    for (const struct json *element = json_first(refusals); element != NULL; element = json_next(element)) {
        const char *place = arena_printf(reading->arena, "refuse[%zu]", file->n_refusals);
        struct layout_refusal *refusal = &file->refusals[file->n_refusals++];
        if (!check_members(reading, element, place, known) ||
            !read_expression(reading, json_get(element, "when"), place, "when", &refusal->when) ||
            !read_template(reading, element, place, "because", &refusal->because))
            return false;
        if (refusal->when == NULL || refusal->because == NULL)
            return fail_at(reading, place, "", "\"when\" or \"because\" is missing");
    }
    return true;
}

/* Checks sections of a document: {"when": ..., "set": {...}}. */
static bool check_sections(const struct reading *reading, const struct layout_document *document, const char *place)
{
    static const char *const known[] = {"when", "set", NULL};
    size_t number = 0;
    for (const struct json *section = json_first(document->members); section != NULL; section = json_next(section)) {
        const char *own = arena_printf(reading->arena, "%s.members[%zu]", place, number++), *when;
        if (!check_members(reading, section, own, known) ||
            !read_expression(reading, json_get(section, "when"), own, "when", &when))
            return false;
        if (!json_is(json_get(section, "set"), JSON_OBJECT))
            return fail_at(reading, own, "set", "missing, or not an object");
    }
    return true;
}

static bool read_documents(const struct reading *reading, const struct json *root, struct layout_file *file)
{
    static const char *const known[] = {"name", "when", "of", "members", NULL};
    const struct json *documents = json_get(root, "documents");
    file->documents = arena_array(reading->arena, json_count(documents) + 1, sizeof *file->documents);
    for (const struct json *element = json_first(documents); element != NULL; element = json_next(element)) {
        const char *place = arena_printf(reading->arena, "documents[%zu]", file->n_documents);
        struct layout_document *document = &file->documents[file->n_documents++];
        document->members = json_get(element, "members");
        if (!check_members(reading, element, place, known) ||
            !read_text(reading, element, place, "name", &document->name) ||
            !read_text(reading, element, place, "of", &document->of) ||
            !read_expression(reading, json_get(element, "when"), place, "when", &document->when))
            return false;
        if (document->name == NULL || strchr(document->name, '/') != NULL || !json_is(document->members, JSON_ARRAY))
            return fail_at(reading, place, "", "\"name\" or \"members\" is missing");
        if (!check_sections(reading, document, place))
            return false;
    }
    return true;
}

static bool read_files(const struct reading *reading, const struct json *root, struct layout_file *file)
{
    static const char *const known[] = {"name", "for", "format", "manifest", "part_size", NULL};
    const struct json *object = json_get(root, "files");
    struct layout_files *files = &file->files;
    const char *format;
    if (!check_members(reading, object, "files", known) ||
        !read_template(reading, object, "files", "name", &files->name) ||
        !read_for(reading, object, "files", &files->each.name, &files->each.expression) ||
        !read_text(reading, object, "files", "format", &format) ||
        !read_text(reading, object, "files", "manifest", &files->manifest) ||
        !read_expression(reading, json_get(object, "part_size"), "files", "part_size", &files->part_size))
        return false;
    if (files->name == NULL || strchr(files->name, '/') != NULL)
        return fail_at(reading, "files", "name", "missing, or contains a slash");
    files->raw = format != NULL && strcmp(format, "raw") == 0;
    if (format != NULL && !files->raw && strcmp(format, "safetensors") != 0)
        return fail_at(reading, "files", "format", "neither safetensors nor raw");
    if (!files->raw && files->manifest != NULL)
        return fail_at(reading, "files", "manifest", "only raw files have a manifest");
    if (files->raw && (files->manifest == NULL || strchr(files->manifest, '/') != NULL || files->each.name != NULL))
        return fail_at(reading, "files", "manifest", "raw files need a manifest, and no \"for\"");
    return true;
}

static bool read_family(const struct reading *reading, const struct json *root, struct layout_file *file)
{
    const struct json *name = json_get(root, "family");
    for (const struct family *const *family = families; name != NULL && *family != NULL; family++)
        if (json_string_is(name, (*family)->name))
            file->family = *family;
    return name == NULL || file->family != NULL || fail_at(reading, "", "family", "unknown");
}

static bool read_root(const struct reading *reading, const struct json *root, struct layout_file *file)
{
    static const char *const known[] = {"about", "parameters", "let",   "axes",       "refuse",  "documents", "files",
                                        "keys",  "family",     "dtype", "side_files", "tensors", NULL};
    static const struct {
        const char *key;
        enum json_type type;
        const char *reason;
    } containers[] = {
        {"parameters", JSON_OBJECT, "not an object"}, {"let", JSON_OBJECT, "not an object"},
        {"axes", JSON_OBJECT, "not an object"},       {"refuse", JSON_ARRAY, "not an array"},
        {"documents", JSON_ARRAY, "not an array"},
    };
    if (!check_members(reading, root, "", known))
        return false;
    file->parameters = json_get(root, "parameters");
    file->keys = json_get(root, "keys");
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++) {
        const struct json *container = json_get(root, containers[i].key);
        if (container != NULL && !json_is(container, containers[i].type))
            return fail_at(reading, "", containers[i].key, containers[i].reason);
    }
    return read_flag(reading, root, "", "side_files", &file->side_files) && check_keys(reading, file->keys) &&
           read_family(reading, root, file) &&
           read_texts(reading, json_get(root, "dtype"), "", "dtype", &file->dtypes, &file->n_dtypes) &&
           read_files(reading, root, file) && read_lets(reading, root, file) && read_axes(reading, root, file) &&
           read_refusals(reading, root, file) && read_documents(reading, root, file) &&
           read_blocks(reading, root, file);
}

static void release(void *document)
{
    json_free(document);
}

const struct layout_file *layout_file_read(const struct source *source, const char *name, struct arena *arena,
                                           struct error *error)
{
    struct layout_file *file = arena_alloc(arena, sizeof *file);
    struct json_document *document = document_parse(source, error);
    if (document == NULL)
        return NULL;
    arena_on_free(arena, release, document);
    *file = (struct layout_file){.path = arena_strdup(arena, source_name(source)),
                                 .name = arena_strdup(arena, name),
                                 .root = json_root(document)};
    const struct reading reading = {arena, error, file};
    return read_root(&reading, file->root, file) ? file : NULL;
}

#include "models/relation/relation.h"

#include "base/sort.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SKELETON = 512, MAX_ROWS = 4096 };

/* A name of an entry, found by its skeleton. */
struct relation_name {
    const char *skeleton; /* "" for names that end with '*' */
    uint32_t entry, which;
};

/* Reading the tables. */

struct reader {
    struct arena *arena;
    struct relation *relation;
    struct error *error;
};

static size_t count_rows(const struct relation_row *const *tables)
{
    size_t n = 0;
    for (; *tables != NULL; tables++)
        for (const struct relation_row *row = *tables; row->here != NULL; row++)
            n++;
    return n;
}

/* Splits a list of names at its commas. */
static bool split_names(const struct reader *reader, const char *list, const char **names, unsigned *ret_count)
{
    unsigned n = 0;
    while (list != NULL && n < AXES_MAX_TENSORS) {
        list += strspn(list, " ");
        size_t length = strcspn(list, ",");
        names[n++] = arena_strndup(reader->arena, list, length);
        list = list[length] == ',' ? list + length + 1 : NULL;
    }
    *ret_count = n;
    return list == NULL || error_set(reader->error, "more than %d names: '%.200s'", AXES_MAX_TENSORS, list);
}

static bool has_number(const char *pattern, const char *name, size_t length)
{
    const char *number;
    size_t number_length;
    for (unsigned i = 0; (number = pattern_number_name(pattern, i, &number_length)) != NULL; i++)
        if (number_length == length && strncmp(number, name, length) == 0)
            return true;
    return false;
}

/* Returns the placeholder of a side's first name that the other side's names lack. */
static const char *find_member(const struct reader *reader, const struct relation_entry *entry, enum direction side)
{
    const char *pattern = entry->names[side][0], *other = entry->names[!side][0], *name;
    size_t length;
    for (unsigned i = 0; other != NULL && (name = pattern_number_name(pattern, i, &length)) != NULL; i++)
        if (length > 0 && !has_number(other, name, length))
            return arena_strndup(reader->arena, name, length);
    return NULL;
}

/* Returns the notation of a side's tensors as read: gathered tensors have an axis for the number in their names. */
static const char *side_text(const struct reader *reader, const struct rearrangement *axes, enum direction side,
                             const char *gathered)
{
    const char *text = "";
    for (unsigned i = 0; i < axes->n_tensors[side]; i++)
        text = arena_printf(reader->arena, "%s%s%s%s%s", text, i > 0 ? ", " : "", gathered ? gathered : "",
                            gathered ? " " : "", axes->sides[side][i].text);
    return text;
}

static bool read_axes(const struct reader *reader, struct relation_entry *entry)
{
    const char *text = entry->row->axes;
    if (entry->member[FORWARD] != NULL && text == NULL)
        text = arena_printf(reader->arena, "... -> %s ...", entry->member[FORWARD]);
    else if (entry->member[BACKWARD] != NULL && text == NULL)
        text = arena_printf(reader->arena, "%s ... -> ...", entry->member[BACKWARD]);
    if (text == NULL)
        return entry->n_names[FORWARD] == entry->n_names[BACKWARD] ||
               error_set(reader->error, "a rearrangement is missing");
    const struct rearrangement *axes = rearrangement_parse(reader->arena, text, reader->error);
    if (axes == NULL)
        return false;
    for (unsigned side = FORWARD; side <= BACKWARD; side++)
        if (axes->n_tensors[side] != entry->n_names[side])
            return error_set(reader->error, "'%.200s' rearranges %u tensors, but the row names %u", text,
                             axes->n_tensors[side], entry->n_names[side]);
    for (unsigned direction = FORWARD; direction <= BACKWARD; direction++) {
        entry->axes[direction] = axes;
        if (entry->member[direction] == NULL)
            continue;
        text = arena_printf(reader->arena, "%s -> %s",
                            side_text(reader, axes, FORWARD, direction == FORWARD ? entry->member[FORWARD] : NULL),
                            side_text(reader, axes, BACKWARD, direction == BACKWARD ? entry->member[BACKWARD] : NULL));
        entry->axes[direction] = rearrangement_parse(reader->arena, text, reader->error);
        if (entry->axes[direction] == NULL)
            return false;
    }
    return true;
}

/* Reports whether two names hold the same numbers in the same order. */
static bool same_numbers(const char *a, const char *b)
{
    const char *x, *y;
    size_t length, other_length;
    unsigned i = 0;
    while ((x = pattern_number_name(a, i, &length)) != NULL && (y = pattern_number_name(b, i, &other_length)) != NULL &&
           length == other_length && strncmp(x, y, length) == 0)
        i++;
    return i == pattern_count(a) && i == pattern_count(b);
}

static bool find_group(const struct reader *reader, struct relation_entry *entry, enum direction direction)
{
    struct relation *relation = reader->relation;
    const char *first = entry->names[direction][0];
    if (entry->member[direction] == NULL && entry->n_names[direction] == 1)
        return true;
    for (struct relation_entry *other = relation->entries; other < entry && entry->member[direction] != NULL; other++)
        if (other->table == entry->table && other->member[direction] != NULL &&
            strcmp(other->member[direction], entry->member[direction]) == 0) {
            entry->group[direction] = other->group[direction];
            first = other->names[direction][0];
        }
    if (entry->group[direction] == 0)
        entry->group[direction] = ++relation->n_groups;
    for (unsigned i = 0; i < entry->n_names[direction]; i++)
        if (!same_numbers(first, entry->names[direction][i]))
            return error_set(reader->error, "the numbers of gathered tensors differ from '%.200s'", first);
    return true;
}

static bool read_row(const struct reader *reader, const struct relation_row *row, unsigned table)
{
    struct relation_entry *entry = &reader->relation->entries[reader->relation->n_entries];
    *entry = (struct relation_entry){.row = row, .table = table};
    if (!split_names(reader, row->here, entry->names[FORWARD], &entry->n_names[FORWARD]) ||
        !split_names(reader, row->there, entry->names[BACKWARD], &entry->n_names[BACKWARD]))
        return false;
    for (unsigned i = 0; i < entry->n_names[FORWARD]; i++)
        for (unsigned side = FORWARD; side <= BACKWARD; side++)
            if (i < entry->n_names[side] && pattern_count(entry->names[side][i]) > PATTERN_NUMBERS)
                return error_set(reader->error, "more than %d numbers", PATTERN_NUMBERS);
    entry->member[FORWARD] = find_member(reader, entry, FORWARD);
    entry->member[BACKWARD] = row->there != NULL ? find_member(reader, entry, BACKWARD) : NULL;
    if (row->there != NULL && !read_axes(reader, entry))
        return false;
    reader->relation->n_entries++;
    return find_group(reader, entry, FORWARD) && (row->there == NULL || find_group(reader, entry, BACKWARD));
}

const char *relation_bare_name(const char *pattern)
{
    return pattern + (*pattern == '^');
}

static int compare_known(const void *a, const void *b)
{
    const struct relation_name *x = a, *y = b;
    int order = strcmp(x->skeleton, y->skeleton);
    return order != 0 ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

static void index_names(const struct reader *reader, enum direction side)
{
    struct relation *relation = reader->relation;
    size_t n = 0;
    for (unsigned i = 0; i < relation->n_entries; i++)
        n += relation->entries[i].n_names[side];
    relation->known[side] = arena_array(reader->arena, n + 1, sizeof *relation->known[side]);
    for (unsigned i = 0; i < relation->n_entries; i++) {
        const struct relation_entry *entry = &relation->entries[i];
        for (unsigned which = 0; which < entry->n_names[side]; which++) {
            const char *pattern = relation_bare_name(entry->names[side][which]);
            size_t length = strlen(pattern);
            char skeleton[MAX_SKELETON] = "";
            if (length == 0 || pattern[length - 1] != '*')
                pattern_skeleton(pattern, length, skeleton, sizeof skeleton);
            relation->known[side][relation->n_known[side]++] =
                (struct relation_name){arena_strdup(reader->arena, skeleton), i, which};
        }
    }
    qsort(relation->known[side], relation->n_known[side], sizeof *relation->known[side], compare_known);
}

const struct relation *relation_new(struct arena *arena, const char *name, const char *prefix,
                                    const struct relation_row *const *tables, struct error *error)
{
    struct relation *relation = arena_alloc(arena, sizeof *relation);
    const struct reader reader = {arena, relation, error};
    size_t n_rows = count_rows(tables);
    if (n_rows > MAX_ROWS) {
        error_set(error, "more than %d rows", MAX_ROWS);
        return NULL;
    }
    *relation = (struct relation){.name = name, .prefix = prefix ? prefix : ""};
    relation->entries = arena_array(arena, n_rows + 1, sizeof *relation->entries);
    for (unsigned table = 0; tables[table] != NULL; table++)
        for (const struct relation_row *row = tables[table]; row->here != NULL; row++)
            if (!read_row(&reader, row, table)) {
                error_prefix(error, "'%.200s'", row->here);
                return NULL;
            }
    index_names(&reader, FORWARD);
    index_names(&reader, BACKWARD);
    return relation;
}

/* Finding rows. */

struct question {
    const struct relation *relation;
    enum direction direction;
    const struct dimensions *dimensions;
    const struct tensor_set *set;
};

static bool has_tensor(const struct question *question, const char *pattern, size_t length,
                       const uint64_t numbers[PATTERN_NUMBERS])
{
    static const char *const suffixes[] = {"", ".weight", ".bias"};
    struct arena *arena = arena_new();
    const char *name = arena_strndup(arena, pattern, length);
    bool found = false;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && !found; i++)
        found = tensor_set_find_text(question->set, pattern_fill(arena, name, numbers, suffixes[i])) != NULL;
    arena_free(arena);
    return found;
}

static bool condition_holds(const struct question *question, const char *condition, size_t length,
                            const uint64_t numbers[PATTERN_NUMBERS])
{
    static const char extra_layer[] = "extra_layer", has[] = "has:";
    if (length == strlen(extra_layer) && strncmp(condition, extra_layer, length) == 0)
        return numbers[0] != UINT64_MAX && numbers[0] >= question->dimensions->n_layers;
    if (length > strlen(has) && text_starts_with(condition, has))
        return has_tensor(question, condition + strlen(has), length - strlen(has), numbers);
    return dimensions_get_n(question->dimensions, condition, length) != 0;
}

static bool holds(const struct question *question, const struct relation_row *row,
                  const uint64_t numbers[PATTERN_NUMBERS])
{
    if (question->direction == BACKWARD ? row->forward_only || row->there == NULL : row->backward_only)
        return false;
    for (const char *at = row->when; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " "), sign = *at == '!';
        const char *condition = at + sign;
        at += length;
        bool is_about_set = text_starts_with(condition, "has:");
        if (is_about_set && (question->direction == FORWARD || question->set == NULL))
            continue;
        if (condition_holds(question, condition, length - sign, numbers) == (sign != 0))
            return false;
    }
    return true;
}

struct wanted_skeleton {
    const struct relation_name *known;
    const char *skeleton;
};

static bool skeleton_comes_before(const void *context, size_t index)
{
    const struct wanted_skeleton *wanted = context;
    return strcmp(wanted->known[index].skeleton, wanted->skeleton) < 0;
}

/* Returns the first of the known names with that skeleton. */
static size_t first_known(const struct relation *relation, enum direction side, const char *skeleton)
{
    const struct wanted_skeleton wanted = {relation->known[side], skeleton};
    return search_first(relation->n_known[side], skeleton_comes_before, &wanted);
}

/* Looks for an entry before *ret_match's among the names with one skeleton. */
static void look_up(const struct question *question, const char *skeleton, const char *name, size_t length,
                    const char *suffix, struct relation_match *ret_match)
{
    const struct relation *relation = question->relation;
    enum direction side = question->direction;
    for (size_t i = first_known(relation, side, skeleton); i < relation->n_known[side]; i++) {
        const struct relation_name *known = &relation->known[side][i];
        const struct relation_entry *entry = &relation->entries[known->entry];
        struct relation_match match = {.entry = entry, .which = known->which, .suffix = suffix};
        if (strcmp(known->skeleton, skeleton) != 0 || (ret_match->entry != NULL && entry >= ret_match->entry))
            return;
        if (!pattern_match(relation_bare_name(entry->names[side][known->which]), name, length, match.numbers))
            continue;
        if (holds(question, entry->row, match.numbers)) {
            *ret_match = match;
            return;
        }
    }
}

static const char *carried_suffix(const char *name)
{
    static const char *const suffixes[] = {".weight", ".bias"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (text_ends_with(name, suffixes[i]))
            return suffixes[i];
    return "";
}

bool relation_find(const struct relation *relation, enum direction direction, const struct dimensions *dimensions,
                   const struct tensor_set *set, const char *name, struct relation_match *ret_match)
{
    const struct question question = {relation, direction, dimensions, set};
    struct relation_match match = {.entry = NULL};
    char skeleton[MAX_SKELETON];
    size_t length = strlen(name);
    const char *suffix = carried_suffix(name);
    if (pattern_skeleton(name, length, skeleton, sizeof skeleton)) {
        look_up(&question, skeleton, name, length, "", &match);
        skeleton[strlen(skeleton) - strlen(suffix)] = '\0'; /* suffixes have no digits, so their length is the same */
        if (*suffix != '\0')
            look_up(&question, skeleton, name, length - strlen(suffix), suffix, &match);
    }
    look_up(&question, "", name, length, "", &match);
    if (match.entry != NULL)
        *ret_match = match;
    return match.entry != NULL;
}

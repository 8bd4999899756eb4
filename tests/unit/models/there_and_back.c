/* Every row of every family and projector, there and back: tensors of all kinds of dimensions, named and shaped as
 * Hugging Face has them, are turned into GGUF's and back, and are the same bits again; where the row has an elementwise
 * pair, within its stated error.
 *
 * Every combination of the conditions of a family's rows is tried that can be. */
#include "base/text.h"
#include "models/families/families.h"
#include "models/projectors/projector.h"
#include "models/projectors/projectors.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { LAYER = 1, N_LAYERS = 2, MAX_ENTRIES = 256, MAX_CONDITIONS = 8 };

struct trial {
    struct arena *arena;
    const struct family *family;
    const struct relation *relation;
    struct dimensions dimensions;
    const char *conditions[MAX_CONDITIONS];
    unsigned n_conditions;
    uint32_t truth; /* bit i: condition i holds */
    struct tensor_set *here, *there, *back;
    bool tried[MAX_ENTRIES];
    uint32_t seed;
};

/* Sizes that no two axes share, so that one cannot be taken for another; heads and their keys differ. */
static const struct axis_size sizes[] = {
    {"head", 6},    {"kv_head", 3},     {"expert", 4},   {"v_expert", 4}, {"half", 2},
    {"part", 3},    {"even", 1},        {"odd", 1},      {"nope", 5},     {"value", 7},
    {"query", 2},   {"key", 1},         {"padding", 2},  {"unused", 0},   {"token", 11},
    {"gate", 5},    {"up", 5},          {"pair", 4},     {"d", 8},        {"c", 9},
    {"f", 10},      {"row", 12},        {"i", 13},       {"o", 14},       {"e", 4},
    {"k", 3},       {"one", 1},         {"column", 15},  {"group", 2},    {"share", 3},
    {"key_dim", 5}, {"value_dim", 4},   {"gate_dim", 4}, {"added", 3},    {"added_per_layer", 4},
    {"last", 1},    {"n", 3},           {"empty", 1},    {"inner", 3},    {"states", 4},
    {"rest", 5},    {"state_group", 2}, {"state", 3},    {"channel", 8},  {"mamba_head", 4},
    {"h", 2},       {"w", 3},           {"q", 3},        {"v", 3},        {"y", 2},
    {"x", 3},       {"r", 3},           {"a", 3},        {"g", 3},        {"weight", 3},
    {"bias", 3},    {"mean", 3},        {"var", 3},      {"book", 2},     {"first", 6},
};

static uint64_t size_of(const struct trial *trial, const char *name)
{
    bool is_falcon = strcmp(trial->family->name, "falcon") == 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(sizes[i].name, name) == 0)
            return is_falcon && strcmp(name, "value") == 0 ? 1 : sizes[i].size;
    fprintf(stderr, "  no size for %s\n", name);
    exit(1);
}

/* Reports whether a condition of this trial holds. */
static bool is_so(const struct trial *trial, const char *condition, size_t length)
{
    for (unsigned i = 0; i < trial->n_conditions; i++)
        if (strlen(trial->conditions[i]) == length && strncmp(trial->conditions[i], condition, length) == 0)
            return trial->truth >> i & 1;
    return false;
}

/* The conditions that rows have, of which every combination is tried. */
static void collect_conditions(struct trial *trial)
{
    for (unsigned i = 0; i < trial->relation->n_entries; i++)
        for (const char *at = trial->relation->entries[i].row->when; at != NULL && *at != '\0'; at += strspn(at, " ")) {
            at += *at == '!';
            size_t length = strcspn(at, " ");
            trial->truth = UINT32_MAX;
            if (!is_so(trial, at, length) && trial->n_conditions == MAX_CONDITIONS) {
                fprintf(stderr, "  %s: more than %d conditions\n", trial->family->name, MAX_CONDITIONS);
                exit(1);
            }
            if (!is_so(trial, at, length))
                trial->conditions[trial->n_conditions++] = arena_strndup(trial->arena, at, length);
            at += length;
        }
}

static void set_dimensions(struct trial *trial)
{
    static const char *const known[] = {"head",    "kv_head",     "expert",   "half",       "part",
                                        "even",    "odd",         "nope",     "value",      "query",
                                        "key",     "padding",     "unused",   "group",      "share",
                                        "key_dim", "value_dim",   "gate_dim", "added",      "added_per_layer",
                                        "last",    "rest",        "inner",    "states",     "pair",
                                        "d",       "state_group", "state",    "mamba_head", "y",
                                        "x",       "empty",       "book"};
    trial->dimensions = (struct dimensions){.n_layers = N_LAYERS};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        dimensions_set(&trial->dimensions, known[i], size_of(trial, known[i]));
    static const char *const factors[] = {
        "down",  "key_multiplier", "attention_in_multiplier", "ssm_in_multiplier", "ssm_z",
        "ssm_b", "ssm_dt",         "lm_head_multiplier"};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        dimensions_set_factor(&trial->dimensions, factors[i], 0.1f + 0.3f * (float)i);
    for (unsigned i = 0; i < trial->n_conditions; i++)
        if (!text_starts_with(trial->conditions[i], "has:"))
            dimensions_set(&trial->dimensions, trial->conditions[i], trial->truth >> i & 1);
}

/* Reports whether the row is of this trial: its conditions hold, and what it makes is not said to be absent. */
static bool is_tried(const struct trial *trial, const struct relation_entry *entry)
{
    const struct relation_row *row = entry->row;
    for (const char *at = row->when; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        bool is_denied = *at == '!';
        size_t length = strcspn(at += is_denied, " ");
        if (is_so(trial, at, length) == is_denied)
            return false;
        at += length;
    }
    for (unsigned i = 0; i < trial->n_conditions; i++)
        for (unsigned j = 0; j < entry->n_names[BACKWARD]; j++)
            if (text_starts_with(trial->conditions[i], "has:") && (trial->truth >> i & 1) == 0 &&
                strcmp(trial->conditions[i] + 4, entry->names[BACKWARD][j]) == 0)
                return false;
    return row->there != NULL && !row->forward_only && !row->backward_only;
}

/* Reports whether a row makes what is said to be there. */
static bool is_consistent(const struct trial *trial)
{
    for (unsigned i = 0; i < trial->n_conditions; i++) {
        bool is_made = !text_starts_with(trial->conditions[i], "has:") || (trial->truth >> i & 1) == 0;
        for (unsigned j = 0; j < trial->relation->n_entries && !is_made; j++)
            for (unsigned k = 0; k < trial->relation->entries[j].n_names[BACKWARD]; k++)
                is_made |= strcmp(trial->relation->entries[j].names[BACKWARD][k], trial->conditions[i] + 4) == 0 &&
                           is_tried(trial, &trial->relation->entries[j]);
        if (!is_made)
            return false;
    }
    return true;
}

static uint64_t product_of(const struct trial *trial, const struct rearrangement *axes, const struct factor *first);

static uint64_t factor_of(const struct trial *trial, const struct rearrangement *axes, const struct factor *factor)
{
    uint64_t size = factor->kind == FACTOR_GROUP ? 0 : 1;
    if (factor->kind == FACTOR_AXIS)
        return size_of(trial, axes->names[factor->number]);
    for (const struct section *section = factor->sections; section != NULL; section = section->next)
        size += product_of(trial, axes, section->first);
    return size;
}

static uint64_t product_of(const struct trial *trial, const struct rearrangement *axes, const struct factor *first)
{
    uint64_t product = 1;
    for (const struct factor *factor = first; factor != NULL; factor = factor->next)
        product *= factor_of(trial, axes, factor);
    return product;
}

/* The shape that a tensor of the row has: `rest` dimensions where it leaves some open. */
static unsigned shape_of(const struct trial *trial, const struct relation_entry *entry, unsigned which, unsigned n_rest,
                         uint64_t *shape)
{
    unsigned rank = 0;
    struct error error;
    const struct rearrangement *axes = entry->row->axes ? rearrangement_parse(trial->arena, entry->row->axes, &error)
                                                        : rearrangement_parse(trial->arena, "...", &error);
    for (const struct factor *dimension = axes->sides[FORWARD][which].first; dimension != NULL;
         dimension = dimension->next) {
        for (unsigned i = 0; i < n_rest && dimension->kind == FACTOR_REST; i++)
            shape[rank++] = 7 + i;
        if (dimension->kind != FACTOR_REST)
            shape[rank++] = factor_of(trial, axes, dimension);
    }
    return rank;
}

/* Random values, of the size of weights; those that an elementwise pair is for. */
static float next_value(struct trial *trial)
{
    trial->seed = trial->seed * 1664525 + 1013904223;
    return ((float)(trial->seed >> 8) / (float)(1 << 24) - 0.5f) * 2;
}

static void add_tensor(struct trial *trial, const struct relation_entry *entry, unsigned which, unsigned n_rest,
                       uint64_t member, const char *suffix)
{
    uint64_t shape[VIEW_MAX_RANK], n_elements = 1, numbers[PATTERN_NUMBERS] = {LAYER, member};
    unsigned rank = shape_of(trial, entry, which, n_rest, shape);
    for (unsigned i = 0; i < rank; i++)
        n_elements *= shape[i];
    float *values = arena_array(trial->arena, n_elements + 1, sizeof *values);
    for (uint64_t i = 0; i < n_elements; i++)
        values[i] = next_value(trial);
    const char *pattern = relation_bare_name(entry->names[FORWARD][which]);
    size_t length;
    if (pattern_number_name(pattern, 0, &length) != NULL && length > 0)
        numbers[0] = member;
    const char *name = pattern_fill(trial->arena, pattern, numbers, suffix);
    tensor_set_add_view(trial->here, name, view_numbers(trial->arena, rank, shape, values));
}

/* Reports whether a name has its suffix already. */
static bool is_whole(const char *pattern)
{
    size_t length = strlen(pattern);
    return strchr(pattern, '*') != NULL || (length > 7 && strcmp(pattern + length - 7, ".weight") == 0) ||
           (length > 5 && strcmp(pattern + length - 5, ".bias") == 0);
}

static void add_entry(struct trial *trial, const struct relation_entry *entry)
{
    uint64_t n_members =
        entry->member[FORWARD] != NULL ? dimensions_get(&trial->dimensions, entry->member[FORWARD]) : 1;
    bool is_whole_name = is_whole(entry->names[FORWARD][0]) || is_whole(entry->names[BACKWARD][0]);
    const struct rearrangement *axes = entry->axes[FORWARD];
    bool is_open = entry->row->axes == NULL || axes->sides[FORWARD][0].has_rest;
    for (unsigned which = 0; which < entry->n_names[FORWARD]; which++)
        for (uint64_t member = 0; member < n_members; member++) {
            add_tensor(trial, entry, which, 1, member, is_whole_name ? "" : ".weight");
            if (!is_whole_name && is_open && (entry->row->axes == NULL || strchr(entry->row->axes, '+') == NULL))
                add_tensor(trial, entry, which, 0, member, ".bias");
        }
}

/* Reports whether two patterns make the same names, one of them perhaps with its suffix. */
static bool is_same_name(const char *a, const char *b)
{
    size_t length = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    const char *rest = strlen(a) < strlen(b) ? b + length : a + length;
    return strncmp(a, b, length) == 0 && (*rest == '\0' || strcmp(rest, ".weight") == 0);
}

/* Reports whether an earlier table, or a row that leaves it out, says something else of a name. */
static bool is_overridden(const struct trial *trial, const struct relation_entry *entry)
{
    const uint64_t numbers[PATTERN_NUMBERS] = {LAYER, 0};
    struct relation_match match;
    const char *pattern = relation_bare_name(entry->names[FORWARD][0]);
    const char *name = pattern_fill(trial->arena, pattern, numbers, is_whole(pattern) ? "" : ".weight");
    if (!relation_find(trial->relation, FORWARD, &trial->dimensions, NULL, name, &match))
        return false;
    if (match.entry->table < entry->table || match.entry->row->there == NULL)
        return true;
    for (const struct relation_entry *other = trial->relation->entries; other < entry && other->table < entry->table;
         other++)
        for (unsigned i = 0; i < other->n_names[BACKWARD]; i++)
            if (is_same_name(other->names[BACKWARD][i], entry->names[BACKWARD][0]))
                return true;
    return false;
}

static const struct view *read_view(void *context, const struct tensor *tensor, const char *shown, struct error *error)
{
    (void)context, (void)shown, (void)error;
    return tensor->view;
}

static void write_view(void *context, const char *name, const struct view *view)
{
    tensor_set_add_view(context, name, view);
}

static bool turn(const struct trial *trial, enum direction direction, const struct tensor_set *from,
                 struct tensor_set *to)
{
    struct error error;
    const struct relation_job job = {
        .relation = trial->relation,
        .direction = direction,
        .dimensions = &trial->dimensions,
        .dimensions_name = "the test",
        .set = from,
        .arena = trial->arena,
        .context = to,
        .read = read_view,
        .write = write_view,
    };
    bool turned = relation_apply(&job, &error) && tensor_set_seal(to, &error);
    if (!turned)
        fprintf(stderr, "  %s, %s: %s\n", trial->family->name, direction == FORWARD ? "there" : "back", error.message);
    return turned;
}

/* How far off a value may be that went through an elementwise pair. */
static double tolerance(const struct relation_row *row, double value)
{
    if (row->map != NULL && text_starts_with(row->map->forward_text, "x + "))
        return 6e-8;
    if (row->map != NULL && row->map->is_one_way)
        return HUGE_VAL;
    if (row->map == &softplus)
        return 4.8e-7 * fmax(1, fabs(value)); /* flatter than x below 0 */
    if (row->map != NULL && row->map->apply != NULL)
        return 4 * 6e-8 * fabs(value); /* two factors, there and back */
    return row->map != NULL ? 1.2e-7 * fmax(1, fabs(value)) : 0;
}

/* Bit for bit where the limit is 0. */
static bool is_near(float before, float after, double limit)
{
    if (limit == 0)
        return memcmp(&after, &before, sizeof after) == 0;
    return fabs((double)after - (double)before) <= limit;
}

static bool is_back(const struct trial *trial, const struct tensor *tensor)
{
    struct relation_match match;
    struct error error;
    const char *prefix = trial->family->prefix ? trial->family->prefix : "";
    relation_find(trial->relation, FORWARD, &trial->dimensions, NULL, tensor->name, &match);
    if (*match.entry->names[FORWARD][match.which] != '^')
        prefix = "";
    const struct tensor *back =
        tensor_set_find_text(trial->back, arena_printf(trial->arena, "%s%s", prefix, tensor->name));
    if (back == NULL || back->rank != tensor->rank ||
        memcmp(back->shape, tensor->shape, tensor->rank * sizeof *back->shape) != 0)
        return false;
    uint64_t n = tensor->view->n_elements, skipped = 0;
    float *before = arena_array(trial->arena, n + 1, sizeof *before),
          *after = arena_array(trial->arena, n + 1, sizeof *after);
    if (!read_numbers(tensor->view, 0, n, before, &error) || !read_numbers(back->view, 0, n, after, &error))
        return false;
    if (match.entry->row->axes != NULL && strstr(match.entry->row->axes, "padding") != NULL)
        skipped = size_of(trial, "padding") * tensor->shape[1]; /* rows of padding come back as zeros */
    for (uint64_t i = 0; i < skipped && i < n; i++)
        if (after[i] != 0)
            return false;
    for (uint64_t i = skipped; i < n; i++)
        if (!is_near(before[i], after[i], tolerance(match.entry->row, before[i])))
            return false;
    return true;
}

static void try_family(struct trial *trial)
{
    trial->here = tensor_set_new(trial->arena);
    trial->there = tensor_set_new(trial->arena);
    trial->back = tensor_set_new(trial->arena);
    for (unsigned i = 0; i < trial->relation->n_entries; i++) {
        const struct relation_entry *entry = &trial->relation->entries[i];
        if (!is_tried(trial, entry))
            continue;
        trial->tried[i] = true;
        if (!is_overridden(trial, entry))
            add_entry(trial, entry);
    }
    struct error error;
    bool turned = tensor_set_seal(trial->here, &error) && turn(trial, FORWARD, trial->here, trial->there) &&
                  turn(trial, BACKWARD, trial->there, trial->back);
    CHECK_NAMED(turned, trial->family->name);
    CHECK_NAMED(trial->back->n_tensors == trial->here->n_tensors, trial->family->name);
    for (size_t i = 0; turned && i < trial->here->n_tensors; i++)
        CHECK_NAMED(is_back(trial, &trial->here->tensors[i]), trial->here->tensors[i].name);
}

static void try_all_conditions(const struct family *family)
{
    struct error error;
    struct trial trial = {.arena = arena_new(), .family = family, .seed = 1};
    trial.relation = relation_new(trial.arena, family->name, family->prefix, family->tensors, &error);
    if (!CHECK_NAMED(trial.relation != NULL && trial.relation->n_entries <= MAX_ENTRIES, family->name)) {
        arena_free(trial.arena);
        return;
    }
    collect_conditions(&trial);
    for (trial.truth = 0; trial.truth >> trial.n_conditions == 0; trial.truth++) {
        set_dimensions(&trial);
        if (is_consistent(&trial))
            try_family(&trial);
    }
    for (unsigned i = 0; i < trial.relation->n_entries; i++) {
        const struct relation_row *row = trial.relation->entries[i].row;
        CHECK_NAMED(trial.tried[i] || row->there == NULL || row->forward_only || row->backward_only, row->here);
    }
    arena_free(trial.arena);
}

int main(void)
{
    for (size_t i = 0; families[i] != NULL; i++)
        try_all_conditions(families[i]);
    for (size_t i = 0; projectors[i] != NULL; i++)
        try_all_conditions(projectors[i]);
    return check_done();
}

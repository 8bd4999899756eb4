#include "models/convert/fitting_class.h"

#include "base/text.h"
#include "models/config/hparams.h"
#include "models/facts.h"
#include "models/packings/packings.h"
#include "models/relation/pattern.h"

#include <string.h>

enum { MAX_SIZE = 1 << 28, MAX_NAMES = 4 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Keys. */

/* Reports whether a value means "not this": null, false or empty, or only full attention for layer_types. */
static bool is_nothing(const struct json *value)
{
    size_t length;
    if (json_string(value, &length) != NULL)
        return length == 0;
    if (json_type(value) == JSON_ARRAY) {
        const struct json *element = json_first(value);
        while (json_string_is(element, "full_attention"))
            element = json_next(element);
        return element == NULL;
    }
    return json_type(value) == JSON_NULL || json_type(value) == JSON_FALSE ||
           (json_type(value) == JSON_OBJECT && json_count_members(value) == 0);
}

static bool is_harmless(const struct json_member *member)
{
    bool is_known = false;
    for (const char *const *end = harmless_key_ends; *end != NULL; end++)
        is_known |= text_ends_with(member->key, *end);
    return is_known || *member->key == '_' || text_has_word(harmless_keys, member->key, member->key_length) ||
           is_nothing(member->value);
}

/* Reports whether a key may be spelled that way in config.json: "KEY=VALUE|VALUE". */
static bool has_fixed_value(const struct json *value, const char *values, size_t length, struct arena *arena)
{
    const char *text = json_string(value, NULL) != NULL ? json_string(value, NULL) : json_number_text(value);
    char *list = arena_strndup(arena, values, length);
    for (char *at = list; *at != '\0'; at++)
        if (*at == '|')
            *at = ' ';
    return text != NULL && text_has_word(list, text, strlen(text));
}

static bool has_fixed_values(const struct known_class *known, const struct hparams *hparams, struct arena *arena)
{
    for (const char *at = known->fixed; *at != '\0'; at += strspn(at, " ")) {
        size_t key = strcspn(at, "="), length = strcspn(at, " ");
        const struct json *value = hparams_get(hparams, arena_strndup(arena, at, key));
        if (value != NULL && json_type(value) != JSON_NULL &&
            !has_fixed_value(value, at + key + 1, length - key - 1, arena))
            return false;
        at += length;
    }
    return true;
}

static bool has_needed_keys(const struct known_class *known, const struct hparams *hparams, struct arena *arena)
{
    for (const char *at = known->needs; *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        const struct json *value = hparams_get(hparams, arena_strndup(arena, at, length));
        if (value == NULL || json_type(value) == JSON_NULL)
            return false;
        at += length;
    }
    return true;
}

static bool knows(const struct known_class *known, const char *key)
{
    return text_has_word(known->needs, key, strlen(key)) || text_has_word(known->knows, key, strlen(key));
}

/* Reports whether a part of each head is left without a rope, although the class has no such part. */
static bool turns_a_part(const struct known_class *known, const struct hparams *hparams)
{
    double share;
    static const char key[] = "partial_rotary_factor";
    return !knows(known, key) && json_double(hparams_rope(hparams, key), &share) && share != 1;
}

static bool keys_fit(const struct known_class *known, const struct hparams *hparams, struct arena *arena)
{
    if (turns_a_part(known, hparams) || !has_needed_keys(known, hparams, arena) ||
        !has_fixed_values(known, hparams, arena))
        return false;
    for (struct json_member member = {0}; json_next_member(hparams_raw(hparams), &member);)
        if (!is_harmless(&member) && !knows(known, member.key))
            return false;
    return true;
}

/* Tensors. */

static const struct {
    char letter;
    const char *keys;
} letters[] = {
    {'e', "hidden_size"},
    {'v', "vocab_size"},
    {'f', "intermediate_size"},
    {'d', "head_dim"},
    {'h', "num_attention_heads"},
    {'g', "num_key_value_heads"},
    {'l', "num_hidden_layers"},
    {'x', "num_experts|num_local_experts|n_routed_experts"},
    {'m', "moe_intermediate_size"},
    {'s', "shared_expert_intermediate_size"},
    {'a', "q_lora_rank"},
    {'b', "kv_lora_rank"},
    {'n', "qk_nope_head_dim"},
    {'r', "qk_rope_head_dim"},
    {'w', "v_head_dim"},
    {'z', "n_shared_experts"},
    {'y', "first_k_dense_replace"},
};

/* Numbers of config.json by letter; 0: absent, or no number of a size. */
struct sizes {
    uint64_t of[128];
};

static struct sizes find_sizes(const struct hparams *hparams)
{
    struct sizes sizes = {0};
    uint64_t *of = sizes.of;
    for (size_t i = 0; i < COUNT(letters); i++) {
        uint64_t *size = &of[(unsigned char)letters[i].letter];
        if (!json_u64(hparams_find(hparams, letters[i].keys), size) || *size > MAX_SIZE)
            *size = 0;
    }
    if (of['g'] == 0)
        of['g'] = of['h'];
    if (of['d'] == 0 && of['h'] != 0)
        of['d'] = of['e'] / of['h'];
    of['q'] = of['h'] * of['d'];
    of['k'] = of['g'] * of['d'];
    of['Q'] = of['h'] * (of['n'] + of['r']);
    of['K'] = of['h'] * (of['n'] + of['w']);
    of['O'] = of['h'] * of['w'];
    of['S'] = of['z'] * of['m'];
    return sizes;
}

/* Computes one dimension of a row's shape, such as "q+2k" or "1", and moves *at to the next dimension. Returns 0 if
 * config.json lacks one of the numbers. */
static uint64_t read_dimension(const char **at, const struct sizes *sizes)
{
    uint64_t sum = 0;
    bool is_known = true;
    for (; **at != '\0' && **at != ','; *at += **at == '+') {
        uint64_t factor = **at >= '1' && **at <= '9' ? (uint64_t)(*(*at)++ - '0') : 1;
        bool is_letter = **at != '\0' && strchr("+,", **at) == NULL;
        uint64_t size = is_letter ? sizes->of[(unsigned char)*(*at)++] : 1;
        is_known &= size != 0;
        sum += factor * size;
    }
    *at += **at == ',';
    return is_known ? sum : 0;
}

static bool has_shape(const struct tensor *tensor, const char *shape, const struct sizes *sizes)
{
    unsigned rank = 0;
    for (; *shape != '\0'; rank++) {
        uint64_t size = read_dimension(&shape, sizes);
        if (size == 0 || rank >= tensor->rank || tensor->shape[rank] != size)
            return false;
    }
    return rank == tensor->rank;
}

static bool is_true(const struct hparams *hparams, const char *key)
{
    double number;
    const struct json *value = hparams_get(hparams, key);
    return json_type(value) == JSON_TRUE || (json_double(value, &number) && number != 0);
}

static bool is_wanted(const struct class_tensor *row, const struct hparams *hparams)
{
    bool is_negated = row->when != NULL && *row->when == '!';
    if (row->spare && json_get(hparams_raw(hparams), row->when + is_negated) == NULL)
        return false;
    return row->when == NULL || is_true(hparams, row->when + is_negated) != is_negated;
}

/* Reports whether a layer is of the row's kind; UINT64_MAX for a tensor of no layer. */
static bool has_layer(const struct class_tensor *row, uint64_t layer, const struct sizes *sizes)
{
    if (layer == UINT64_MAX)
        return true;
    return layer < sizes->of['l'] &&
           (row->layers == ALL_LAYERS || (layer < sizes->of['y']) == (row->layers == DENSE_LAYERS));
}

/* Returns how many tensors a class has of a row. */
static uint64_t count_of(const struct class_tensor *row, const struct sizes *sizes)
{
    uint64_t n_layers = sizes->of['l'], n_dense = sizes->of['y'] < n_layers ? sizes->of['y'] : n_layers;
    uint64_t n = row->layers == ALL_LAYERS ? n_layers : row->layers == DENSE_LAYERS ? n_dense : n_layers - n_dense;
    unsigned n_numbers = pattern_count(row->name);
    return n_numbers == 0 ? 1 : n_numbers == 1 ? n : n * sizes->of['x'];
}

/* Finds the row of a tensor with its layer, expert and shape; NULL: the class has no such tensor. */
static const struct class_tensor *find_row(const struct known_class *known, const struct tensor *tensor,
                                           const struct sizes *sizes)
{
    for (size_t i = 0; known->tensors[i] != NULL; i++)
        for (const struct class_tensor *row = known->tensors[i]; row->name != NULL; row++) {
            uint64_t numbers[PATTERN_NUMBERS];
            if (pattern_match(row->name, tensor->name, tensor->name_length, numbers) &&
                has_layer(row, numbers[0], sizes))
                return (numbers[1] == UINT64_MAX || numbers[1] < sizes->of['x']) && has_shape(tensor, row->shape, sizes)
                           ? row
                           : NULL;
        }
    return NULL;
}

static bool has_all(const struct known_class *known, const struct hparams *hparams, const struct sizes *sizes,
                    uint64_t n_found)
{
    uint64_t n_wanted = 0;
    for (size_t i = 0; known->tensors[i] != NULL; i++)
        for (const struct class_tensor *row = known->tensors[i]; row->name != NULL; row++)
            if (is_wanted(row, hparams))
                n_wanted += count_of(row, sizes);
    return n_found == n_wanted;
}

static bool tensors_fit(const struct known_class *known, const struct hparams *hparams, const struct tensor_set *set)
{
    const struct sizes sizes = find_sizes(hparams);
    uint64_t n_found = 0;
    if (sizes.of['l'] == 0)
        return false;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (text_ends_with(tensor->name, ".rotary_emb.inv_freq"))
            continue; /* a buffer of old checkpoints */
        const struct class_tensor *row = tensor->refusal == NULL ? find_row(known, tensor, &sizes) : NULL;
        if (row == NULL || !(is_wanted(row, hparams) || row->spare))
            return false;
        n_found += is_wanted(row, hparams);
    }
    return has_all(known, hparams, &sizes, n_found); /* names are unique: as many as wanted are all */
}

/* Returns the names of the classes, in the order of the table, up to a NULL. */
static const char *const *fitting_classes(const struct checkpoint *checkpoint, const struct hparams *hparams,
                                          struct arena *arena)
{
    const char **names = arena_array(arena, MAX_NAMES + 1, sizeof *names);
    size_t n_names = 0;
    const struct tensor_set *set = NULL;
    for (const struct known_class *known = known_classes; known->name != NULL && n_names < MAX_NAMES; known++) {
        if (!keys_fit(known, hparams, arena))
            continue;
        if (set == NULL && (set = packings_plain(checkpoint)->set) == NULL)
            break;
        if (tensors_fit(known, hparams, set))
            names[n_names++] = known->name;
    }
    names[n_names] = NULL;
    return names;
}

const char *fitting_class_hint(const struct checkpoint *checkpoint, struct arena *arena)
{
    struct error unused;
    struct hparams *hparams = hparams_of(checkpoint, &unused);
    const char *text = "";
    if (hparams == NULL)
        return text;
    const char *const *names = fitting_classes(checkpoint, hparams, arena);
    for (size_t i = 0; names[i] != NULL; i++) {
        const char *separator = i == 0 ? "; its tensors and keys are those of " : names[i + 1] == NULL ? " or " : ", ";
        text = arena_printf(arena, "%s%s%s", text, separator, names[i]);
    }
    if (names[0] != NULL)
        text = arena_printf(arena, "%s: -o architecture=%s", text, names[0]);
    hparams_free(hparams);
    return text;
}

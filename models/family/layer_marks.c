#include "models/family/layer_marks.h"

#include "models/relation/pattern.h"

#include <string.h>

static bool new_marks(uint64_t n_layers, struct arena *arena, struct layer_marks *ret_marks)
{
    if (n_layers > MAX_LISTED_LAYERS)
        return false;
    *ret_marks = (struct layer_marks){n_layers, arena_array(arena, n_layers + 1, sizeof(bool))};
    memset(ret_marks->marked, 0, n_layers * sizeof(bool));
    return true;
}

static bool is_marked(const struct gguf_array *array, uint64_t index)
{
    double number;
    int64_t whole;
    bool truth;
    if (gguf_array_bool(array, index, &truth))
        return truth;
    if (gguf_array_i64(array, index, &whole))
        return whole > 0;
    return gguf_array_f64(array, index, &number) && number > 0;
}

bool layer_marks_of_key(const struct gguf_kvs *kvs, const char *key, uint64_t n_layers, struct arena *arena,
                        struct layer_marks *ret_marks)
{
    struct gguf_array array;
    struct error unused;
    bool truth;
    int64_t whole;
    if (!new_marks(n_layers, arena, ret_marks))
        return false;
    if (gguf_get_array(kvs, key, arena, &array, &unused)) {
        ret_marks->n = array.count < n_layers ? array.count : n_layers;
        for (uint64_t i = 0; i < ret_marks->n; i++)
            ret_marks->marked[i] = is_marked(&array, i);
        return true;
    }
    if (gguf_get_bool(kvs, key, &truth))
        whole = truth;
    else if (!gguf_get_i64(kvs, key, &whole))
        return false;
    memset(ret_marks->marked, whole > 0, n_layers * sizeof(bool));
    return true;
}

bool layer_marks_of_tensors(const struct tensor_set *set, const char *pattern, uint64_t n_layers, struct arena *arena,
                            struct layer_marks *ret_marks)
{
    uint64_t numbers[PATTERN_NUMBERS];
    if (!new_marks(n_layers, arena, ret_marks))
        return false;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (pattern_match(pattern, set->tensors[i].name, set->tensors[i].name_length, numbers) && numbers[0] < n_layers)
            ret_marks->marked[numbers[0]] = true;
    return true;
}

bool layer_marks_period(const struct layer_marks *marks, uint64_t *ret_period, uint64_t *ret_offset)
{
    uint64_t first = 0, second;
    while (first < marks->n && !marks->marked[first])
        first++;
    if (first == marks->n)
        return false;
    for (second = first + 1; second < marks->n && !marks->marked[second];)
        second++;
    uint64_t period = second < marks->n ? second - first : marks->n;
    if (first >= period)
        return false;
    for (uint64_t i = 0; i < marks->n; i++)
        if (marks->marked[i] != (i % period == first))
            return false;
    *ret_period = period;
    *ret_offset = first;
    return true;
}

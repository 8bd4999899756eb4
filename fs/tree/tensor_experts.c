#include "fs/tree/tensor_views.h"

#include <string.h>

/* More items than all real models have, and few enough for their files to be numbered (nodes.h). */
enum { MAX_EXPERT_ITEMS = 16 * 1024 * 1024 };

static bool is_section(const char *section, size_t length)
{
    static const char *const sections[] = {"experts", "switch_mlp", "input_linear", "output_linear"};
    static const char *const endings[] = {"_exps", "_chexps"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (strlen(sections[i]) == length && memcmp(sections[i], section, length) == 0)
            return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && memcmp(section + length - ending, endings[i], ending) == 0)
            return true;
    }
    return false;
}

static bool is_number(const char *section, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (section[i] < '0' || section[i] > '9')
            return false;
    return length > 0;
}

static bool names_experts(const char *name, size_t name_length)
{
    bool found = false;
    for (const char *at = name, *end = name + name_length; at < end;) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        size_t length = (size_t)((dot != NULL ? dot : end) - at);
        if (found && is_number(at, length))
            return false;
        found = found || is_section(at, length);
        at += length + 1;
    }
    return found;
}

static bool is_bias(const struct tensor *tensor)
{
    size_t length = strlen("bias");
    return tensor->name_length >= length && memcmp(tensor->name + tensor->name_length - length, "bias", length) == 0;
}

/* Reports whether each index of the first axis is a tensor of its own. */
static bool is_divisible(const struct tensor *tensor)
{
    return tensor->refusal == NULL && tensor->rank >= 2 && tensor_elements(tensor) > 0 &&
           tensor->shape[tensor->rank - 1] % tensor->dtype->block_elements == 0;
}

uint64_t tensor_experts(const struct shown_tensors *shown, size_t index)
{
    struct tensor room;
    const struct tensor *tensor = shown_tensors_at(shown, index, &room), *stored = shown_tensors_stored(shown, index);
    if (tensor->rank < 2 || (tensor->rank == 2 && !is_bias(tensor)) ||
        !names_experts(tensor->name, tensor->name_length))
        return 0;
    if (!is_divisible(tensor) || tensor->shape[0] > EXPERTS_MAX)
        return 0;
    bool agrees = stored == NULL || (is_divisible(stored) && stored->shape[0] == tensor->shape[0]);
    return agrees ? tensor->shape[0] : 0;
}

bool expert_stacks_find(const struct shown_tensors *shown, struct arena *arena, struct expert_stacks *ret_stacks)
{
    size_t n_tensors = shown_tensors_count(shown), n_stacks = 0;
    struct expert_stack *stacks = NULL;
    uint64_t n_items = n_tensors;
    bool fits = true;
    for (size_t i = 0; i < n_tensors && fits; i++) {
        uint64_t n_experts = tensor_experts(shown, i);
        if (n_experts == 0)
            continue;
        fits = n_items - n_tensors + 1 + n_experts <= MAX_EXPERT_ITEMS;
        if (!fits)
            break;
        stacks = arena_grow(arena, stacks, n_stacks, sizeof *stacks);
        stacks[n_stacks++] = (struct expert_stack){i, n_items, n_experts};
        n_items += 1 + n_experts;
    }
    *ret_stacks = (struct expert_stacks){n_tensors, n_items, stacks, n_stacks};
    return fits;
}

const struct expert_stack *expert_stack_of_tensor(const struct expert_stacks *stacks, size_t tensor)
{
    size_t low = 0, high = stacks->n_stacks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (stacks->stacks[middle].tensor < tensor)
            low = middle + 1;
        else
            high = middle;
    }
    return low < stacks->n_stacks && stacks->stacks[low].tensor == tensor ? &stacks->stacks[low] : NULL;
}

const struct expert_stack *expert_stack_of_item(const struct expert_stacks *stacks, uint64_t item)
{
    size_t low = 0, high = stacks->n_stacks;
    if (item < stacks->first || item >= stacks->n_items)
        return NULL;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (stacks->stacks[middle].first <= item)
            low = middle;
        else
            high = middle;
    }
    return &stacks->stacks[low];
}

static const struct view *part_of(const struct view *view, uint64_t number, struct arena *arena)
{
    return view_reshape(arena, view_slice(arena, view, 0, number, 1, 1), view->rank - 1, view->shape + 1);
}

static struct tensor tensor_part(const struct tensor *stacked, uint64_t number, struct arena *arena)
{
    struct tensor part = *stacked;
    part.rank--;
    part.shape++;
    if (stacked->view != NULL) {
        part.view = arena != NULL ? part_of(stacked->view, number, arena) : stacked->view;
    } else if (stacked->strides != NULL) {
        uint64_t distance = number * stacked->strides[0] * stacked->dtype->block_bytes;
        part.strides++;
        part.offset += distance;
        part.length -= distance;
    } else {
        part.length = dtype_blocks(part.dtype, tensor_elements(&part)) * part.dtype->block_bytes;
        part.offset += number * part.length;
    }
    return part;
}

static void set_unpacked(struct shown_expert *expert, const struct unpacked *unpacked, uint64_t number,
                         struct arena *arena)
{
    const struct view *view = unpacked->view;
    expert->unpacked = *unpacked;
    expert->unpacked.view = &expert->unread;
    expert->unread = (struct view){
        .dtype = view->dtype,
        .rank = view->rank - 1,
        .shape = view->shape + 1,
        .n_elements = view->n_elements / view->shape[0],
    };
    if (arena != NULL)
        expert->unpacked.view = part_of(view, number, arena);
    expert->unpacked_of[0] = &expert->unpacked;
    expert->shown.unpacked = expert->unpacked_of;
}

/* Sets the importances of the expert's columns: stacked matrices have their own. */
static void set_importance(struct shown_expert *expert, const struct importance *importance,
                           const struct tensor *stacked, uint64_t number)
{
    expert->importance = *importance;
    expert->importance.n_matrices = 1;
    if (importance->columns != NULL && stacked->rank == 3)
        expert->importance.columns += number * stacked->shape[2];
    expert->shown.importances = &expert->importance;
}

void shown_expert_init(struct shown_expert *expert, const struct shown_tensors *shown, size_t index, uint64_t number,
                       struct arena *arena)
{
    static const struct tensor_set nothing = {.n_tensors = 0};
    struct tensor room;
    const struct tensor *stacked = shown_tensors_at(shown, index, &room), *stored = shown_tensors_stored(shown, index);
    const struct unpacked *unpacked = shown_tensors_unpacked(shown, index);
    *expert = (struct shown_expert){.tensor = tensor_part(stored != NULL ? stored : stacked, number, arena)};
    expert->set = (struct tensor_set){.tensors = &expert->tensor, .n_tensors = 1};
    expert->shown.set = stored != NULL ? &expert->set : &nothing;
    expert->shown.added = stored != NULL ? NULL : &expert->set;
    if (unpacked != NULL)
        set_unpacked(expert, unpacked, number, arena);
    if (shown->importances != NULL)
        set_importance(expert, &shown->importances[index], stacked, number);
}

#include "formats/torch/pickle_machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NODES_PER_SLAB = 256, MEMO_FANOUT = 256, MEMO_LEVELS = 4 };

bool machine_fail(struct machine *machine, const char *format, ...)
{
    char reason[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return error_set(machine->error, "offset %zu: %s%s", machine->opcode_at, machine->opcode_name, reason);
}

/* Counted memory. */

bool machine_count(struct machine *machine, uint64_t size)
{
    if (size > machine->allowance)
        return machine_fail(machine, ": needs too much memory for a pickle of %zu bytes", machine->length);
    machine->allowance -= size;
    return true;
}

void *machine_alloc(struct machine *machine, uint64_t size)
{
    return machine_count(machine, size) ? arena_alloc(machine->arena, (size_t)size) : NULL;
}

struct pickle_node *machine_node(struct machine *machine, enum pickle_kind kind)
{
    if (machine->slab == NULL || machine->slab_used == NODES_PER_SLAB) {
        machine->slab = machine_alloc(machine, NODES_PER_SLAB * sizeof *machine->slab);
        machine->slab_used = 0;
    }
    if (machine->slab == NULL)
        return NULL;
    struct pickle_node *node = &machine->slab[machine->slab_used++];
    node->kind = (uint8_t)kind;
    node->offset = machine->opcode_at & (PICKLE_MAX_LENGTH - 1);
    return node;
}

bool machine_add_items(struct machine *machine, struct pickle_items *items, struct pickle_node *const *nodes,
                       size_t count)
{
    if (count > items->capacity - items->n) {
        uint64_t wanted = (uint64_t)items->n + count, capacity = (uint64_t)items->capacity * 2;
        capacity = items->capacity == 0 || wanted > capacity ? wanted : capacity;
        if (capacity > UINT32_MAX)
            return machine_fail(machine, ": more than %u items", UINT32_MAX);
        struct pickle_node **grown = machine_alloc(machine, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        if (items->n > 0)
            memcpy(grown, items->nodes, items->n * sizeof *grown);
        items->nodes = grown;
        items->capacity = (uint32_t)capacity;
    }
    if (count > 0)
        memcpy(items->nodes + items->n, nodes, count * sizeof *nodes);
    items->n += (uint32_t)count;
    return true;
}

/* The stack. */

static size_t fence(const struct machine *machine)
{
    return machine->n_marks > 0 ? machine->marks[machine->n_marks - 1] : 0;
}

bool machine_push(struct machine *machine, struct pickle_node *node)
{
    if (node == NULL)
        return false;
    if (machine->n_stack == machine->stack_capacity) {
        if (!machine_count(machine, (machine->stack_capacity + 64) * sizeof(struct pickle_node *)))
            return false;
        machine->stack_capacity = machine->stack_capacity * 2 + 64;
        machine->stack = memory_resize(machine->stack, machine->stack_capacity * sizeof(struct pickle_node *));
    }
    machine->stack[machine->n_stack++] = node;
    return true;
}

/* Reports whether the topmost `count` values are above the last MARK. */
bool machine_need(struct machine *machine, size_t count)
{
    return machine->n_stack - fence(machine) >= count || machine_fail(machine, ": not enough values on the stack");
}

struct pickle_node *machine_pop(struct machine *machine)
{
    return machine_need(machine, 1) ? machine->stack[--machine->n_stack] : NULL;
}

struct pickle_node *machine_top(struct machine *machine)
{
    return machine_need(machine, 1) ? machine->stack[machine->n_stack - 1] : NULL;
}

bool machine_pop_mark(struct machine *machine, struct pickle_node ***ret_nodes, size_t *ret_count)
{
    if (machine->n_marks == 0)
        return machine_fail(machine, ": no MARK on the stack");
    size_t from = machine->marks[--machine->n_marks];
    *ret_nodes = machine->stack != NULL ? machine->stack + from : NULL;
    *ret_count = machine->n_stack - from;
    machine->n_stack = from;
    return true;
}

struct pickle_node *machine_items(struct machine *machine, enum pickle_kind kind, struct pickle_node *const *nodes,
                                  size_t count)
{
    struct pickle_node *node = machine_node(machine, kind);
    return node != NULL && machine_add_items(machine, &node->items, nodes, count) ? node : NULL;
}

/* Calls and objects. */

bool machine_refuse_harmful(struct machine *machine, const struct pickle_node *global)
{
    machine->pickle->harmful = true;
    return machine_fail(machine, " of %s.%s: a function call, not data", global->global.module, global->global.name);
}

struct pickle_node *machine_global(struct machine *machine, const char *module, size_t module_length, const char *name,
                                   size_t name_length)
{
    struct pickle_node *node = machine_node(machine, PICKLE_GLOBAL);
    char *text = node != NULL ? machine_alloc(machine, (uint64_t)module_length + name_length + 2) : NULL;
    if (text == NULL)
        return NULL;
    if (memchr(module, '\0', module_length) != NULL || memchr(name, '\0', name_length) != NULL) {
        machine_fail(machine, ": a name that contains a NUL");
        return NULL;
    }
    memcpy(text, module, module_length);
    memcpy(text + module_length + 1, name, name_length);
    node->global.module = text;
    node->global.name = text + module_length + 1;
    node->meaning = (uint8_t)global_meaning(node->global.module, node->global.name);
    if (node->meaning == GLOBAL_HARMFUL && machine->harmful == NULL)
        machine->harmful = node;
    return node;
}

/* Returns the global to call, also if the value to call is a persistent id ("module", class, file, source), as legacy
 * files of torch give classes. */
static const struct pickle_node *callable(struct machine *machine, const struct pickle_node *node)
{
    if (pickle_is(node, PICKLE_PERSISTENT) && pickle_text_is(pickle_at(node->persistent.id, 0), "module"))
        node = pickle_at(node->persistent.id, 1);
    if (pickle_object_is(node, GLOBAL_FOREIGN))
        node = node->object->class;
    if (pickle_is(node, PICKLE_GLOBAL))
        return node;
    machine_fail(machine, " of something that is not a global");
    return NULL;
}

static void remember_foreign(struct pickle *pickle, const struct pickle_node *class, bool called)
{
    for (unsigned i = 0; i < pickle->n_foreign; i++)
        if (strcmp(pickle->foreign[i].global->global.module, class->global.module) == 0 &&
            strcmp(pickle->foreign[i].global->global.name, class->global.name) == 0)
            return;
    if (pickle->n_foreign < PICKLE_MAX_FOREIGN)
        pickle->foreign[pickle->n_foreign++] = (struct pickle_foreign){class, called};
}

static struct pickle_node *new_object(struct machine *machine, const struct pickle_node *class,
                                      struct pickle_node *arguments)
{
    struct pickle_node *node = machine_node(machine, PICKLE_OBJECT);
    if (node == NULL || (node->object = machine_alloc(machine, sizeof *node->object)) == NULL)
        return NULL;
    node->meaning = class->meaning;
    node->object->class = class;
    node->object->arguments = arguments;
    return node;
}

/* Makes an object of `class` without running anything. */
struct pickle_node *machine_plain_object(struct machine *machine, const struct pickle_node *class,
                                         struct pickle_node *arguments)
{
    class = callable(machine, class);
    if (class == NULL)
        return NULL;
    if (class->meaning == GLOBAL_HARMFUL) {
        machine_refuse_harmful(machine, class);
        return NULL;
    }
    if (class->meaning == GLOBAL_FOREIGN)
        remember_foreign(machine->pickle, class, false);
    return new_object(machine, class, arguments);
}

/* Makes the opaque result of a function outside the table, which is never called. */
static struct pickle_node *opaque(struct machine *machine, const struct pickle_node *function,
                                  struct pickle_node *arguments)
{
    struct pickle_node *node = new_object(machine, function, arguments);
    if (node == NULL)
        return NULL;
    node->meaning = GLOBAL_FOREIGN;
    node->object->called = true;
    remember_foreign(machine->pickle, function, true);
    return node;
}

struct pickle_node *machine_call(struct machine *machine, const struct pickle_node *function,
                                 struct pickle_node *arguments)
{
    function = callable(machine, function);
    if (function == NULL)
        return NULL;
    if (!pickle_is(arguments, PICKLE_TUPLE)) {
        machine_fail(machine, " of %s.%s: its arguments are not a tuple", function->global.module,
                     function->global.name);
        return NULL;
    }
    switch (function->meaning) {
    case GLOBAL_RECONSTRUCT:
    case GLOBAL_NEW_OBJECT:
        return machine_plain_object(machine, pickle_at(arguments, 0), arguments);
    case GLOBAL_HARMFUL:
        machine_refuse_harmful(machine, function);
        return NULL;
    case GLOBAL_FOREIGN:
    case GLOBAL_CONSTANT:
        return opaque(machine, function, arguments);
    default:
        return new_object(machine, function, arguments);
    }
}

struct pickle_node *machine_instance(struct machine *machine, struct pickle_node *class,
                                     struct pickle_node *const *nodes, size_t count)
{
    struct pickle_node *arguments = class != NULL ? machine_items(machine, PICKLE_TUPLE, nodes, count) : NULL;
    if (arguments == NULL)
        return NULL;
    bool foreign = pickle_is(class, PICKLE_GLOBAL) && class->meaning == GLOBAL_FOREIGN;
    return foreign && count == 0 ? machine_plain_object(machine, class, arguments)
                                 : machine_call(machine, class, arguments);
}

bool machine_add_pairs(struct machine *machine, struct pickle_node *to, struct pickle_node *const *nodes, size_t count)
{
    if (to == NULL)
        return false;
    if (count % 2 != 0)
        return machine_fail(machine, ": a key without a value");
    if (to->kind == PICKLE_DICT)
        return machine_add_items(machine, &to->items, nodes, count);
    if (to->kind == PICKLE_OBJECT && (to->meaning == GLOBAL_FOREIGN || to->meaning == GLOBAL_DICT))
        return machine_add_items(machine, &to->object->pairs, nodes, count);
    return machine_fail(machine, ": adds a key to an object that is not a dict");
}

bool machine_append(struct machine *machine, struct pickle_node *to, struct pickle_node *const *nodes, size_t count)
{
    if (to == NULL)
        return false;
    if (to->kind == PICKLE_LIST)
        return machine_add_items(machine, &to->items, nodes, count);
    if (to->kind == PICKLE_OBJECT && (to->meaning == GLOBAL_FOREIGN || to->meaning == GLOBAL_LIST))
        return machine_add_items(machine, &to->object->items, nodes, count);
    return machine_fail(machine, ": appends to an object that is not a list");
}

/* The memo. */

static void **memo_place(struct machine *machine, uint64_t index, bool make)
{
    void **place = &machine->memo;
    for (int shift = 8 * (MEMO_LEVELS - 1); shift >= 0; shift -= 8) {
        if (*place == NULL && make)
            *place = machine_alloc(machine, MEMO_FANOUT * sizeof(void *));
        if (*place == NULL)
            return NULL;
        place = (void **)*place + (index >> shift & (MEMO_FANOUT - 1));
    }
    return place;
}

bool machine_memo_put(struct machine *machine, uint64_t index)
{
    struct pickle_node *node = machine_top(machine);
    void **place = node != NULL ? memo_place(machine, index, true) : NULL;
    if (place == NULL)
        return false;
    machine->n_memo += *place == NULL;
    *place = node;
    return true;
}

bool machine_memo_get(struct machine *machine, uint64_t index)
{
    void **place = memo_place(machine, index, false);
    if (place == NULL || *place == NULL)
        return machine_fail(machine, ": memo %llu does not exist", (unsigned long long)index);
    return machine_push(machine, *place);
}

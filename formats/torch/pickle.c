#include "base/checked.h"
#include "formats/torch/pickle_machine.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_STACK = 64 }; /* values, at first */

/* Arguments. */

static bool ends_early(struct machine *machine)
{
    machine->truncated = true;
    machine_fail(machine, ": the pickle ends within its argument");
    return false;
}

static bool take(struct machine *machine, uint64_t count, const unsigned char **ret_bytes)
{
    if (count > machine->length - machine->at)
        return ends_early(machine);
    *ret_bytes = machine->bytes + machine->at;
    machine->at += (size_t)count;
    return true;
}

static bool take_line(struct machine *machine, const char **ret_line, size_t *ret_length)
{
    const unsigned char *start = machine->bytes + machine->at,
                        *end = memchr(start, '\n', machine->length - machine->at);
    if (end == NULL)
        return ends_early(machine);
    *ret_line = (const char *)start;
    *ret_length = (size_t)(end - start);
    machine->at += *ret_length + 1;
    return true;
}

static bool take_counted(struct machine *machine, unsigned count_bytes, bool is_signed, struct argument *argument)
{
    const unsigned char *bytes;
    if (!take(machine, count_bytes, &bytes))
        return false;
    uint64_t count = read_le(bytes, count_bytes);
    if (is_signed && count > INT32_MAX)
        return machine_fail(machine, ": a negative length");
    if (!take(machine, count, &bytes))
        return false;
    argument->bytes = (const char *)bytes;
    argument->length = (size_t)count;
    return true;
}

static bool take_number(struct machine *machine, unsigned size, struct argument *argument)
{
    const unsigned char *bytes;
    if (!take(machine, size, &bytes))
        return false;
    argument->number = read_le(bytes, size);
    return true;
}

static bool take_index(struct machine *machine, struct argument *argument)
{
    bool taken = take_line(machine, &argument->bytes, &argument->length);
    if (taken && (argument->length == 0 || argument->length > 10))
        return machine_fail(machine, ": not a memo index");
    for (size_t i = 0; taken && i < argument->length; i++) {
        if (argument->bytes[i] < '0' || argument->bytes[i] > '9')
            return machine_fail(machine, ": not a memo index");
        argument->number = argument->number * 10 + (uint64_t)(argument->bytes[i] - '0');
    }
    return taken && (argument->number <= UINT32_MAX || machine_fail(machine, ": not a memo index"));
}

static bool take_argument(struct machine *machine, enum argument_kind kind, struct argument *argument)
{
    switch (kind) {
    case NO_ARGUMENT:
        return true;
    case U8:
        return take_number(machine, 1, argument);
    case U16:
        return take_number(machine, 2, argument);
    case U32:
        return take_number(machine, 4, argument);
    case U64:
        return take_number(machine, 8, argument);
    case I32:
        if (!take_number(machine, 4, argument))
            return false;
        argument->number = (uint64_t)(int64_t)(int32_t)argument->number;
        return true;
    case F64:
        if (!take_number(machine, 8, argument))
            return false;
        argument->number = __builtin_bswap64(argument->number);
        return true;
    case LINE:
        return take_line(machine, &argument->bytes, &argument->length);
    case INDEX:
        return take_index(machine, argument);
    case TWO_LINES:
        return take_line(machine, &argument->bytes, &argument->length) &&
               take_line(machine, &argument->second, &argument->second_length);
    case COUNTED_8:
        return take_counted(machine, 1, false, argument);
    case COUNTED_32:
        return take_counted(machine, 4, false, argument);
    case COUNTED_I32:
        return take_counted(machine, 4, true, argument);
    case COUNTED_64:
        return take_counted(machine, 8, false, argument);
    }
    return false;
}

static bool step(struct machine *machine)
{
    machine->opcode_at = machine->at;
    machine->opcode_name = "the pickle";
    if (machine->at == machine->length) {
        machine->truncated = true;
        return machine_fail(machine, " ends without STOP");
    }
    unsigned char code = machine->bytes[machine->at++];
    const struct opcode *opcode = &opcodes[code];
    if (opcode->run == NULL)
        return machine_fail(machine, " contains 0x%02x, which is not an opcode", code);
    machine->opcode_name = opcode->name;
    struct argument argument = {.number = opcode->number};
    return take_argument(machine, opcode->argument, &argument) && opcode->run(machine, &argument);
}

static void make_constants(struct machine *machine)
{
    for (uint8_t kind = PICKLE_NONE; kind <= PICKLE_TRUE; kind++)
        machine->constants[kind].kind = kind;
    for (int i = 0; i < PICKLE_SMALL_INTEGERS; i++)
        machine->small[i] = (struct pickle_node){.kind = PICKLE_INTEGER, .integer = i};
}

static bool run(struct machine *machine)
{
    while (!machine->stopped)
        if (!step(machine))
            return false;
    machine->pickle->length = machine->at;
    if (machine->harmful == NULL)
        return true;
    machine->opcode_at = machine->harmful->offset;
    machine->opcode_name = "GLOBAL";
    return machine_refuse_harmful(machine, machine->harmful);
}

bool pickle_read(struct pickle *pickle, const void *bytes, size_t length, struct arena *arena, bool *ret_truncated,
                 struct error *error)
{
    if (ret_truncated != NULL)
        *ret_truncated = false;
    if (length > PICKLE_MAX_BYTES)
        return error_set(error, "offset 0: pickle too large: %zu bytes, the limit is %d", length, PICKLE_MAX_BYTES);
    uint64_t allowance = (uint64_t)length * PICKLE_MEMORY_RATIO + PICKLE_MEMORY_CONSTANT;
    *pickle = (struct pickle){0};
    struct machine *machine = arena_alloc(arena, sizeof *machine); /* its constants are part of the graph */
    machine->bytes = bytes;
    machine->length = length;
    machine->arena = arena;
    machine->allowance = allowance < pickle_max_memory ? allowance : pickle_max_memory;
    machine->error = error;
    machine->pickle = pickle;
    machine->stack_capacity = FIRST_STACK;
    machine->stack = memory_alloc(FIRST_STACK * sizeof *machine->stack);
    make_constants(machine);
    bool good = run(machine);
    free(machine->stack);
    free(machine->marks);
    if (!good && ret_truncated != NULL)
        *ret_truncated = machine->truncated;
    return good;
}

bool pickle_is(const struct pickle_node *node, enum pickle_kind kind)
{
    return node != NULL && node->kind == kind;
}

bool pickle_text_is(const struct pickle_node *node, const char *text)
{
    return pickle_is(node, PICKLE_TEXT) && node->text.length == strlen(text) &&
           memcmp(node->text.bytes, text, node->text.length) == 0;
}

bool pickle_object_is(const struct pickle_node *node, enum global_meaning meaning)
{
    return pickle_is(node, PICKLE_OBJECT) && node->meaning == meaning;
}

uint32_t pickle_count(const struct pickle_node *node)
{
    return pickle_is(node, PICKLE_TUPLE) || pickle_is(node, PICKLE_LIST) ? node->items.n : 0;
}

struct pickle_node *pickle_at(const struct pickle_node *node, uint32_t index)
{
    return index < pickle_count(node) ? node->items.nodes[index] : NULL;
}

const struct pickle_node *pickle_get(const struct pickle_node *node, const char *key)
{
    const struct pickle_items *pairs = pickle_object_is(node, GLOBAL_DICT) ? &node->object->pairs : NULL;
    if (pickle_is(node, PICKLE_DICT))
        pairs = &node->items;
    for (uint32_t i = pairs != NULL ? pairs->n : 0; i >= 2; i -= 2)
        if (pickle_text_is(pairs->nodes[i - 2], key))
            return pairs->nodes[i - 1];
    return NULL;
}

bool pickle_integer(const struct pickle_node *node, int64_t *ret_value)
{
    if (!pickle_is(node, PICKLE_INTEGER))
        return false;
    *ret_value = node->integer;
    return true;
}

#include "base/checked.h"
#include "formats/torch/pickle_machine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_STACK = 64,   /* values, at first */
    FIRST_PART = 4096,  /* bytes, at first and after contents that were left out */
    MOST_PART = 1 << 20 /* bytes */
};

/* Arguments. */

static bool ends_early(struct machine *machine)
{
    machine->truncated = true;
    machine_fail(machine, ": the pickle ends within its argument");
    return false;
}

/* Brings the bytes up to `end` to memory, and some that are likely to be needed next. */
static bool bring(struct machine *machine, size_t end)
{
    if (end <= machine->brought)
        return true;
    size_t from = machine->brought, length = machine->length - from;
    if (length > machine->next_part)
        length = end - from > machine->next_part ? end - from : machine->next_part;
    if (from - machine->n_left_out > PICKLE_MAX_BYTES - (length < PICKLE_MAX_BYTES ? length : PICKLE_MAX_BYTES))
        return machine_fail(machine, ": too large: the limit is %d bytes beside large arrays", PICKLE_MAX_BYTES);
    if (!machine->parts->bring(machine->parts->context, from, length, machine->parts->bytes + from, machine->error))
        return false;
    machine->brought = from + length;
    machine->next_part = machine->next_part < MOST_PART ? 2 * machine->next_part : MOST_PART;
    return true;
}

/* Steps over contents that are not needed. */
static void leave_out(struct machine *machine, size_t count)
{
    size_t end = machine->at + count;
    if (end > machine->brought) {
        machine->n_left_out += end - machine->brought;
        machine->brought = end;
        machine->next_part = FIRST_PART;
    }
    machine->at = end;
}

static bool take(struct machine *machine, uint64_t count, const unsigned char **ret_bytes)
{
    if (count > machine->length - machine->at)
        return ends_early(machine);
    if (!bring(machine, machine->at + (size_t)count))
        return false;
    *ret_bytes = machine->bytes + machine->at;
    machine->at += (size_t)count;
    return true;
}

static bool take_line(struct machine *machine, const char **ret_line, size_t *ret_length)
{
    const unsigned char *start = machine->bytes + machine->at, *end = NULL;
    for (size_t from = machine->at; end == NULL; from = machine->brought) {
        if (from == machine->length)
            return ends_early(machine);
        if (!bring(machine, from + 1))
            return false;
        end = memchr(machine->bytes + from, '\n', machine->brought - from);
    }
    *ret_line = (const char *)start;
    *ret_length = (size_t)(end - start);
    machine->at += *ret_length + 1;
    return true;
}

/* Takes the bytes after their count. */
static bool take_contents(struct machine *machine, uint64_t count, bool may_be_absent, struct argument *argument)
{
    const unsigned char *bytes = machine->bytes + machine->at;
    argument->absent =
        may_be_absent && machine->parts != NULL && count >= PICKLE_LEFT_OUT && count <= machine->length - machine->at;
    if (argument->absent && !bring(machine, machine->at + PICKLE_PRESENT))
        return false;
    if (argument->absent)
        leave_out(machine, (size_t)count);
    else if (!take(machine, count, &bytes))
        return false;
    argument->bytes = (const char *)bytes;
    argument->length = (size_t)count;
    return true;
}

static bool take_counted(struct machine *machine, unsigned count_bytes, bool is_signed, bool may_be_absent,
                         struct argument *argument)
{
    const unsigned char *bytes;
    if (!take(machine, count_bytes, &bytes))
        return false;
    uint64_t count = read_le(bytes, count_bytes);
    if (is_signed && count > INT32_MAX)
        return machine_fail(machine, ": a negative length");
    return take_contents(machine, count, may_be_absent, argument);
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

static bool take_argument(struct machine *machine, const struct opcode *opcode, struct argument *argument)
{
    bool is_bytes = opcode->run == op_bytes;
    switch (opcode->argument) {
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
        return take_counted(machine, 1, false, is_bytes, argument);
    case COUNTED_32:
        return take_counted(machine, 4, false, is_bytes, argument);
    case COUNTED_I32:
        return take_counted(machine, 4, true, is_bytes, argument);
    case COUNTED_64:
        return take_counted(machine, 8, false, is_bytes, argument);
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
    const unsigned char *code;
    if (!take(machine, 1, &code))
        return false;
    const struct opcode *opcode = &opcodes[*code];
    if (opcode->run == NULL)
        return machine_fail(machine, " contains 0x%02x, which is not an opcode", *code);
    machine->opcode_name = opcode->name;
    struct argument argument = {.number = opcode->number};
    return take_argument(machine, opcode, &argument) && opcode->run(machine, &argument);
}

static void make_constants(struct machine *machine)
{
    for (int kind = PICKLE_NONE; kind <= PICKLE_TRUE; kind++)
        machine->constants[kind].kind = (uint8_t)kind;
    for (int i = 0; i < PICKLE_SMALL_INTEGERS; i++)
        machine->small[i] = (struct pickle_node){.kind = PICKLE_INTEGER, .integer = i};
}

static bool run(struct machine *machine)
{
    while (!machine->stopped)
        if (!step(machine))
            return false;
    machine->pickle->length = machine->at;
    machine->pickle->n_needed = machine->at - machine->n_left_out;
    if (machine->harmful == NULL)
        return true;
    machine->opcode_at = machine->harmful->offset;
    machine->opcode_name = "GLOBAL";
    return machine_refuse_harmful(machine, machine->harmful);
}

/* Reads the pickle of a machine whose bytes, arena and error are set. */
static bool read_with(struct machine *machine, struct pickle *pickle, bool *ret_truncated)
{
    uint64_t allowance = (uint64_t)machine->length * PICKLE_MEMORY_RATIO + PICKLE_MEMORY_CONSTANT;
    *pickle = (struct pickle){0};
    machine->allowance = allowance < pickle_max_memory ? allowance : pickle_max_memory;
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

bool pickle_read(struct pickle *pickle, const void *bytes, size_t length, struct arena *arena, bool *ret_truncated,
                 struct error *error)
{
    if (ret_truncated != NULL)
        *ret_truncated = false;
    if (length > PICKLE_MAX_BYTES)
        return error_set(error, "offset 0: pickle too large: %zu bytes, the limit is %d", length, PICKLE_MAX_BYTES);
    struct machine *machine = arena_alloc(arena, sizeof *machine); /* its constants are part of the graph */
    machine->bytes = bytes;
    machine->length = machine->brought = length;
    machine->arena = arena;
    machine->error = error;
    return read_with(machine, pickle, ret_truncated);
}

bool pickle_read_parts(struct pickle *pickle, const struct pickle_parts *parts, struct arena *arena,
                       struct error *error)
{
    if (parts->length > PICKLE_MAX_LENGTH)
        return error_set(error, "offset 0: pickle too large: %" PRIu64 " bytes, the limit is %" PRIu64, parts->length,
                         PICKLE_MAX_LENGTH);
    struct machine *machine = arena_alloc(arena, sizeof *machine);
    machine->bytes = parts->bytes;
    machine->length = (size_t)parts->length;
    machine->parts = parts;
    machine->next_part = FIRST_PART;
    machine->arena = arena;
    machine->error = error;
    return read_with(machine, pickle, NULL);
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

#include "formats/torch/pickle_machine.h"

/* Pushes an empty collection of the kind `number`. */
static OPERATION(op_empty)
{
    return machine_push(machine, machine_node(machine, (enum pickle_kind)argument->number));
}

/* Makes a tuple of the `number` topmost values. */
static OPERATION(op_tuple_of)
{
    size_t count = argument->number;
    if (!machine_need(machine, count))
        return false;
    struct pickle_node *tuple = machine_items(machine, PICKLE_TUPLE, machine->stack + machine->n_stack - count, count);
    machine->n_stack -= count;
    return machine_push(machine, tuple);
}

/* Makes a collection of the kind `number` from the values above the last MARK. */
static OPERATION(op_marked)
{
    struct pickle_node **nodes;
    size_t count;
    if (!machine_pop_mark(machine, &nodes, &count))
        return false;
    if (argument->number == PICKLE_DICT && count % 2 != 0)
        return machine_fail(machine, ": a key without a value");
    return machine_push(machine, machine_items(machine, (enum pickle_kind)argument->number, nodes, count));
}

static OPERATION(op_append)
{
    struct pickle_node *item = machine_need(machine, 2) ? machine_pop(machine) : NULL;
    return item != NULL && machine_append(machine, machine_top(machine), &item, 1);
}

static OPERATION(op_appends)
{
    struct pickle_node **nodes;
    size_t count;
    return machine_pop_mark(machine, &nodes, &count) && machine_append(machine, machine_top(machine), nodes, count);
}

static OPERATION(op_setitem)
{
    if (!machine_need(machine, 3))
        return false;
    machine->n_stack -= 2;
    return machine_add_pairs(machine, machine_top(machine), machine->stack + machine->n_stack, 2);
}

static OPERATION(op_setitems)
{
    struct pickle_node **nodes;
    size_t count;
    return machine_pop_mark(machine, &nodes, &count) && machine_add_pairs(machine, machine_top(machine), nodes, count);
}

static OPERATION(op_additems)
{
    struct pickle_node **nodes, *to;
    size_t count;
    if (!machine_pop_mark(machine, &nodes, &count) || (to = machine_top(machine)) == NULL)
        return false;
    if (to->kind != PICKLE_SET)
        return machine_fail(machine, ": adds to an object that is not a set");
    return machine_add_items(machine, &to->items, nodes, count);
}

static OPERATION(op_mark)
{
    if (machine->n_marks == machine->marks_capacity) {
        if (!machine_count(machine, (machine->marks_capacity + 64) * sizeof *machine->marks))
            return false;
        machine->marks_capacity = machine->marks_capacity * 2 + 64;
        machine->marks = memory_resize(machine->marks, machine->marks_capacity * sizeof *machine->marks);
    }
    machine->marks[machine->n_marks++] = machine->n_stack;
    return true;
}

/* Pops the topmost value or MARK. */
static OPERATION(op_pop)
{
    if (machine->n_marks > 0 && machine->marks[machine->n_marks - 1] == machine->n_stack) {
        machine->n_marks--;
        return true;
    }
    return machine_pop(machine) != NULL;
}

static OPERATION(op_pop_mark)
{
    struct pickle_node **nodes;
    size_t count;
    return machine_pop_mark(machine, &nodes, &count);
}

static OPERATION(op_dup)
{
    return machine_push(machine, machine_top(machine));
}

static OPERATION(op_put)
{
    return machine_memo_put(machine, argument->number);
}

static OPERATION(op_get)
{
    return machine_memo_get(machine, argument->number);
}

static OPERATION(op_memoize)
{
    return machine_memo_put(machine, machine->n_memo);
}

static struct pickle_node *named_global(struct machine *machine, const struct argument *argument)
{
    if (!is_python_text(argument->bytes, argument->length) ||
        !is_python_text(argument->second, argument->second_length)) {
        machine_fail(machine, ": not UTF-8");
        return NULL;
    }
    return machine_global(machine, argument->bytes, argument->length, argument->second, argument->second_length);
}

static OPERATION(op_global)
{
    return machine_push(machine, named_global(machine, argument));
}

static OPERATION(op_stack_global)
{
    struct pickle_node *name = machine_need(machine, 2) ? machine_pop(machine) : NULL,
                       *module = name != NULL ? machine_pop(machine) : NULL;
    if (module == NULL)
        return false;
    if (!pickle_is(name, PICKLE_TEXT) || !pickle_is(module, PICKLE_TEXT))
        return machine_fail(machine, ": module and name are not texts");
    return machine_push(
        machine, machine_global(machine, module->text.bytes, module->text.length, name->text.bytes, name->text.length));
}

static OPERATION(op_inst)
{
    struct pickle_node **nodes;
    size_t count;
    if (!machine_pop_mark(machine, &nodes, &count))
        return false;
    return machine_push(machine, machine_instance(machine, named_global(machine, argument), nodes, count));
}

static OPERATION(op_obj)
{
    struct pickle_node **nodes;
    size_t count;
    if (!machine_pop_mark(machine, &nodes, &count))
        return false;
    if (count == 0)
        return machine_fail(machine, ": no class on the stack");
    return machine_push(machine, machine_instance(machine, nodes[0], nodes + 1, count - 1));
}

static OPERATION(op_reduce)
{
    struct pickle_node *arguments = machine_need(machine, 2) ? machine_pop(machine) : NULL;
    return arguments != NULL && machine_push(machine, machine_call(machine, machine_pop(machine), arguments));
}

static OPERATION(op_newobj)
{
    struct pickle_node *arguments = machine_need(machine, 2) ? machine_pop(machine) : NULL;
    if (arguments == NULL)
        return false;
    if (!pickle_is(arguments, PICKLE_TUPLE))
        return machine_fail(machine, ": its arguments are not a tuple");
    return machine_push(machine, machine_plain_object(machine, machine_pop(machine), arguments));
}

/* Keyword arguments are dropped: no class of the table takes any. */
static OPERATION(op_newobj_ex)
{
    struct pickle_node *keywords = machine_need(machine, 3) ? machine_pop(machine) : NULL;
    if (keywords == NULL)
        return false;
    if (!pickle_is(keywords, PICKLE_DICT))
        return machine_fail(machine, ": its keyword arguments are not a dict");
    return op_newobj(machine, argument);
}

static OPERATION(op_build)
{
    struct pickle_node *state = machine_need(machine, 2) ? machine_pop(machine) : NULL,
                       *to = state != NULL ? machine_top(machine) : NULL;
    if (to == NULL)
        return false;
    if (to->kind != PICKLE_OBJECT)
        return machine_fail(machine, ": sets the state of a value that is not an object");
    if (to->object->state != NULL)
        return machine_fail(machine, ": sets the state of an object twice");
    to->object->state = state;
    return true;
}

static bool push_persistent(struct machine *machine, struct pickle_node *id)
{
    struct pickle_node *node = id != NULL ? machine_node(machine, PICKLE_PERSISTENT) : NULL;
    if (node == NULL)
        return false;
    struct pickle_items *all = &machine->pickle->persistent;
    node->persistent.id = id;
    node->persistent.index = all->n;
    return machine_add_items(machine, all, &node, 1) && machine_push(machine, node);
}

static OPERATION(op_binpersid)
{
    return push_persistent(machine, machine_pop(machine));
}

static OPERATION(op_persid)
{
    return op_old_text(machine, argument) && push_persistent(machine, machine_pop(machine));
}

static OPERATION(op_proto)
{
    return argument->number <= 5 || machine_fail(machine, ": unknown protocol %u", (unsigned)argument->number);
}

/* Ignores the frame, a hint for readers of streams. */
static OPERATION(op_frame)
{
    if (argument->number <= machine->length - machine->at)
        return true;
    machine->truncated = true;
    return machine_fail(machine, ": a frame of %llu bytes, but %zu are left", (unsigned long long)argument->number,
                        machine->length - machine->at);
}

static OPERATION(op_stop)
{
    machine->stopped = true;
    machine->pickle->root = machine_pop(machine);
    return machine->pickle->root != NULL;
}

static OPERATION(op_outside)
{
    return machine_fail(machine, ": refers to data outside the file");
}

const struct opcode opcodes[256] = {
    ['I'] = {"INT", LINE, op_int},
    ['J'] = {"BININT", I32, op_integer},
    ['K'] = {"BININT1", U8, op_integer},
    ['M'] = {"BININT2", U16, op_integer},
    ['L'] = {"LONG", LINE, op_long},
    [0x8a] = {"LONG1", COUNTED_8, op_long_counted},
    [0x8b] = {"LONG4", COUNTED_I32, op_long_counted},
    ['S'] = {"STRING", LINE, op_string},
    ['T'] = {"BINSTRING", COUNTED_I32, op_old_text},
    ['U'] = {"SHORT_BINSTRING", COUNTED_8, op_old_text},
    ['B'] = {"BINBYTES", COUNTED_32, op_bytes},
    ['C'] = {"SHORT_BINBYTES", COUNTED_8, op_bytes},
    [0x8e] = {"BINBYTES8", COUNTED_64, op_bytes},
    [0x96] = {"BYTEARRAY8", COUNTED_64, op_bytes},
    [0x97] = {"NEXT_BUFFER", NO_ARGUMENT, op_outside},
    [0x98] = {"READONLY_BUFFER", NO_ARGUMENT, op_outside},
    ['N'] = {"NONE", NO_ARGUMENT, op_constant, PICKLE_NONE},
    [0x88] = {"NEWTRUE", NO_ARGUMENT, op_constant, PICKLE_TRUE},
    [0x89] = {"NEWFALSE", NO_ARGUMENT, op_constant, PICKLE_FALSE},
    ['V'] = {"UNICODE", LINE, op_unicode},
    [0x8c] = {"SHORT_BINUNICODE", COUNTED_8, op_text},
    ['X'] = {"BINUNICODE", COUNTED_32, op_text},
    [0x8d] = {"BINUNICODE8", COUNTED_64, op_text},
    ['F'] = {"FLOAT", LINE, op_float},
    ['G'] = {"BINFLOAT", F64, op_binfloat},
    [']'] = {"EMPTY_LIST", NO_ARGUMENT, op_empty, PICKLE_LIST},
    ['a'] = {"APPEND", NO_ARGUMENT, op_append},
    ['e'] = {"APPENDS", NO_ARGUMENT, op_appends},
    ['l'] = {"LIST", NO_ARGUMENT, op_marked, PICKLE_LIST},
    [')'] = {"EMPTY_TUPLE", NO_ARGUMENT, op_empty, PICKLE_TUPLE},
    ['t'] = {"TUPLE", NO_ARGUMENT, op_marked, PICKLE_TUPLE},
    [0x85] = {"TUPLE1", NO_ARGUMENT, op_tuple_of, 1},
    [0x86] = {"TUPLE2", NO_ARGUMENT, op_tuple_of, 2},
    [0x87] = {"TUPLE3", NO_ARGUMENT, op_tuple_of, 3},
    ['}'] = {"EMPTY_DICT", NO_ARGUMENT, op_empty, PICKLE_DICT},
    ['d'] = {"DICT", NO_ARGUMENT, op_marked, PICKLE_DICT},
    ['s'] = {"SETITEM", NO_ARGUMENT, op_setitem},
    ['u'] = {"SETITEMS", NO_ARGUMENT, op_setitems},
    [0x8f] = {"EMPTY_SET", NO_ARGUMENT, op_empty, PICKLE_SET},
    [0x90] = {"ADDITEMS", NO_ARGUMENT, op_additems},
    [0x91] = {"FROZENSET", NO_ARGUMENT, op_marked, PICKLE_SET},
    ['0'] = {"POP", NO_ARGUMENT, op_pop},
    ['2'] = {"DUP", NO_ARGUMENT, op_dup},
    ['('] = {"MARK", NO_ARGUMENT, op_mark},
    ['1'] = {"POP_MARK", NO_ARGUMENT, op_pop_mark},
    ['g'] = {"GET", INDEX, op_get},
    ['h'] = {"BINGET", U8, op_get},
    ['j'] = {"LONG_BINGET", U32, op_get},
    ['p'] = {"PUT", INDEX, op_put},
    ['q'] = {"BINPUT", U8, op_put},
    ['r'] = {"LONG_BINPUT", U32, op_put},
    [0x94] = {"MEMOIZE", NO_ARGUMENT, op_memoize},
    [0x82] = {"EXT1", U8, op_outside},
    [0x83] = {"EXT2", U16, op_outside},
    [0x84] = {"EXT4", I32, op_outside},
    ['c'] = {"GLOBAL", TWO_LINES, op_global},
    [0x93] = {"STACK_GLOBAL", NO_ARGUMENT, op_stack_global},
    ['R'] = {"REDUCE", NO_ARGUMENT, op_reduce},
    ['b'] = {"BUILD", NO_ARGUMENT, op_build},
    ['i'] = {"INST", TWO_LINES, op_inst},
    ['o'] = {"OBJ", NO_ARGUMENT, op_obj},
    [0x81] = {"NEWOBJ", NO_ARGUMENT, op_newobj},
    [0x92] = {"NEWOBJ_EX", NO_ARGUMENT, op_newobj_ex},
    [0x80] = {"PROTO", U8, op_proto},
    ['.'] = {"STOP", NO_ARGUMENT, op_stop},
    [0x95] = {"FRAME", U64, op_frame},
    ['P'] = {"PERSID", LINE, op_persid},
    ['Q'] = {"BINPERSID", NO_ARGUMENT, op_binpersid},
};

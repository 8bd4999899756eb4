#include "base/checked.h"
#include "base/text.h"
#include "formats/torch/pickle_machine.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* Scalars. */

#if defined(__APPLE__)
#include <xlocale.h>
#endif

static bool push_integer(struct machine *machine, int64_t value)
{
    if (value >= 0 && value < PICKLE_SMALL_INTEGERS)
        return machine_push(machine, &machine->small[value]);
    struct pickle_node *node = machine_node(machine, PICKLE_INTEGER);
    if (node == NULL)
        return false;
    node->integer = value;
    return machine_push(machine, node);
}

static bool push_text(struct machine *machine, enum pickle_kind kind, const char *bytes, size_t length, bool old)
{
    struct pickle_node *node = machine_node(machine, kind);
    if (node == NULL)
        return false;
    node->text.bytes = bytes;
    node->text.length = length;
    node->old = old;
    return machine_push(machine, node);
}

OPERATION(op_integer)
{
    return push_integer(machine, (int64_t)argument->number);
}

/* Pushes digits with a sign, as a number if they fit, else as text. */
static bool push_digits(struct machine *machine, const char *digits, size_t length)
{
    size_t sign = length > 0 && (digits[0] == '-' || digits[0] == '+');
    int64_t value = 0;
    bool fits = true;
    for (size_t i = sign; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return machine_fail(machine, ": not a decimal number");
        int64_t digit = digits[0] == '-' ? '0' - digits[i] : digits[i] - '0';
        fits = fits && !__builtin_mul_overflow(value, 10, &value) && !__builtin_add_overflow(value, digit, &value);
    }
    if (length == sign)
        return machine_fail(machine, ": a number without digits");
    return fits ? push_integer(machine, value) : push_text(machine, PICKLE_BIG_INTEGER, digits, length, true);
}

OPERATION(op_int)
{
    if (argument->length == 2 && argument->bytes[0] == '0' && (argument->bytes[1] == '0' || argument->bytes[1] == '1'))
        return machine_push(machine, &machine->constants[argument->bytes[1] == '1' ? PICKLE_TRUE : PICKLE_FALSE]);
    return push_digits(machine, argument->bytes, argument->length);
}

OPERATION(op_long)
{
    size_t length = argument->length;
    return push_digits(machine, argument->bytes,
                       length > 0 && argument->bytes[length - 1] == 'L' ? length - 1 : length);
}

/* Pushes an integer in little-endian two's complement. */
OPERATION(op_long_counted)
{
    if (argument->length > 8)
        return push_text(machine, PICKLE_BIG_INTEGER, argument->bytes, argument->length, false);
    unsigned n_bits = 8 * (unsigned)argument->length;
    uint64_t value = read_le(argument->bytes, (unsigned)argument->length);
    if (n_bits > 0 && n_bits < 64 && value >> (n_bits - 1) & 1)
        value |= UINT64_MAX << n_bits;
    return push_integer(machine, (int64_t)value);
}

static bool push_float(struct machine *machine, double value)
{
    struct pickle_node *node = machine_node(machine, PICKLE_FLOAT);
    if (node == NULL)
        return false;
    node->number = value;
    return machine_push(machine, node);
}

OPERATION(op_binfloat)
{
    double value;
    memcpy(&value, &argument->number, sizeof value);
    return push_float(machine, value);
}

OPERATION(op_float)
{
    static const char *const names[] = {"inf", "-inf", "nan", "-nan"};
    char text[400], *end;
    if (argument->length == 0 || argument->length >= sizeof text)
        return machine_fail(machine, ": not a number");
    memcpy(text, argument->bytes, argument->length);
    text[argument->length] = '\0';
    bool named = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        named |= strcmp(text, names[i]) == 0;
    if (!named && strspn(text, "0123456789+-.eE") != argument->length)
        return machine_fail(machine, ": not a number");
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    double value = strtod_l(text, &end, plain);
    freelocale(plain);
    return *end == '\0' ? push_float(machine, value) : machine_fail(machine, ": not a number");
}

OPERATION(op_constant)
{
    return machine_push(machine, &machine->constants[argument->number]);
}

bool is_python_text(const char *text, size_t length)
{
    for (size_t at = 0; (at += text_valid_prefix(text + at, length - at)) < length; at += 3) {
        const unsigned char *c = (const unsigned char *)text + at;
        if (length - at < 3 || c[0] != 0xed || c[1] < 0xa0 || c[1] > 0xbf || c[2] < 0x80 || c[2] > 0xbf)
            return false;
    }
    return true;
}

OPERATION(op_text)
{
    if (!is_python_text(argument->bytes, argument->length))
        return machine_fail(machine, ": not UTF-8");
    return push_text(machine, PICKLE_TEXT, argument->bytes, argument->length, false);
}

OPERATION(op_old_text)
{
    return push_text(machine, PICKLE_TEXT, argument->bytes, argument->length, true);
}

OPERATION(op_bytes)
{
    if (!push_text(machine, PICKLE_BYTES, argument->bytes, argument->length, false))
        return false;
    machine_top(machine)->absent = argument->absent;
    return true;
}

/* Returns the value of `n_digits` digits of a base; -1 if they are not digits. */
static int32_t digits_value(const char *digits, size_t n_digits, size_t left, int base)
{
    int32_t value = 0;
    if (n_digits > left || n_digits > 8)
        return -1;
    for (size_t i = 0; i < n_digits; i++) {
        int digit = text_hex_digit(digits[i]);
        if (digit < 0 || digit >= base || value > INT32_MAX / 16 - 1)
            return -1;
        value = value * base + digit;
    }
    return value;
}

/* Reads one escape after a backslash; returns the characters used, 0 for an invalid escape. */
static size_t read_escape(const char *at, size_t left, char *ret_byte)
{
    static const char plain[] = "\\'\"abfnrtv", meaning[] = "\\'\"\a\b\f\n\r\t\v";
    if (left == 0)
        return 0;
    const char *known = *at != '\0' ? strchr(plain, *at) : NULL;
    if (known != NULL) {
        *ret_byte = meaning[known - plain];
        return 1;
    }
    int32_t value = *at == 'x' ? digits_value(at + 1, 2, left - 1, 16) : digits_value(at, 3, left, 8);
    *ret_byte = (char)value;
    return value < 0 || value > 255 ? 0 : 3;
}

/* Pushes a Python 2 str as repr() writes it: in quotes, with escapes. */
OPERATION(op_string)
{
    const char *text = argument->bytes;
    size_t length = argument->length, used, n = 0;
    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL && text[length - 1] != '\0')
        length--;
    if (length < 2 || (text[0] != '\'' && text[0] != '"') || text[length - 1] != text[0])
        return machine_fail(machine, ": no quotes around the text");
    char *out = machine_alloc(machine, length);
    if (out == NULL)
        return false;
    for (size_t i = 1; i + 1 < length; i += used) {
        used = 1;
        if (text[i] != '\\') {
            out[n++] = text[i];
            continue;
        }
        used += read_escape(text + i + 1, length - 2 - i, &out[n++]);
        if (used == 1)
            return machine_fail(machine, ": an unknown escape");
    }
    return push_text(machine, PICKLE_TEXT, out, n, true);
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c >= 0x10000 ? 4 : c >= 0x800 ? 3 : 2;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00 >> n & 0xff) | c);
    return n;
}

/* Pushes a text in raw-unicode-escape: \uXXXX and \UXXXXXXXX, all other bytes are Latin-1. */
OPERATION(op_unicode)
{
    const char *text = argument->bytes;
    size_t length = argument->length, n = 0;
    char *out = machine_alloc(machine, 2 * (uint64_t)length + 1);
    if (out == NULL)
        return false;
    for (size_t i = 0; i < length;) {
        char kind = text[i] == '\\' && i + 1 < length ? text[i + 1] : '\0';
        size_t n_digits = kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
        int32_t c = n_digits ? digits_value(text + i + 2, n_digits, length - i - 2, 16) : (unsigned char)text[i];
        if (c < 0 || c > 0x10ffff)
            return machine_fail(machine, ": an unknown escape");
        n += put_utf8(out + n, (uint32_t)c);
        i += n_digits ? 2 + n_digits : 1;
    }
    return push_text(machine, PICKLE_TEXT, out, n, false);
}

/* All opcodes. */

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

#include "base/checked.h"
#include "base/text.h"
#include "formats/torch/pickle_machine.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
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
    size_t n = 2 + (c >= 0x800) + (c >= 0x10000);
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
        size_t n_digits = 4 * (kind == 'u') + 8 * (kind == 'U');
        int32_t c = n_digits ? digits_value(text + i + 2, n_digits, length - i - 2, 16) : (unsigned char)text[i];
        if (c < 0 || c > 0x10ffff)
            return machine_fail(machine, ": an unknown escape");
        n += put_utf8(out + n, (uint32_t)c);
        i += n_digits ? 2 + n_digits : 1;
    }
    return push_text(machine, PICKLE_TEXT, out, n, false);
}

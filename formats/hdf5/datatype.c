#include "formats/hdf5/object.h"

#include "base/checked.h"

#include <stdio.h>
#include <string.h>

enum type_class {
    CLASS_INTEGER,
    CLASS_FLOAT,
    CLASS_TIME,
    CLASS_STRING,
    CLASS_BITS,
    CLASS_OPAQUE,
    CLASS_COMPOUND,
    CLASS_REFERENCE,
    CLASS_ENUM,
    CLASS_VARIABLE,
    CLASS_ARRAY,
    CLASS_COMPLEX,
};

static const char *const refusals[] = {
    [CLASS_INTEGER] = "integers of an unusual layout have no values",
    [CLASS_FLOAT] = "floats of an unusual layout have no values",
    [CLASS_TIME] = "times have no values",
    [CLASS_STRING] = "strings have no values",
    [CLASS_BITS] = "bit fields have no values",
    [CLASS_OPAQUE] = "opaque elements have no values",
    [CLASS_COMPOUND] = "compound elements have no values",
    [CLASS_REFERENCE] = "references have no values",
    [CLASS_ENUM] = "enumerations of an unusual layout have no values",
    [CLASS_VARIABLE] = "elements of variable length have no values",
    [CLASS_ARRAY] = "elements that are arrays have no values",
    [CLASS_COMPLEX] = "complex numbers of an unusual layout have no values",
};
enum { N_CLASSES = sizeof refusals / sizeof *refusals };

enum { PREFIX = 8, BIG_ENDIAN_BIT = 1, SIGNED_BIT = 8 };

/* A datatype in a message, or in another datatype. */
struct part {
    const unsigned char *bytes;
    size_t length;
};

static unsigned class_of(struct part part)
{
    return part.bytes[0] & 15;
}

static unsigned version_of(struct part part)
{
    return part.bytes[0] >> 4;
}

static uint64_t size_of(struct part part)
{
    return read_le(part.bytes + 4, 4);
}

/* Numbers. */

static const struct dtype *integer_dtype(struct part part)
{
    char name[8];
    uint64_t size = size_of(part);
    if (part.length < PREFIX + 4 || read_le(part.bytes + PREFIX, 2) != 0 ||
        read_le(part.bytes + PREFIX + 2, 2) != 8 * size || size > 8)
        return NULL;
    snprintf(name, sizeof name, "%c%u", part.bytes[1] & SIGNED_BIT ? 'I' : 'U', (unsigned)(8 * size));
    return dtype_by_name(name);
}

/* The fields of a float: its bits, and the place and size of exponent and mantissa. */
static const struct float_row {
    const char *dtype;
    uint16_t precision;
    uint8_t exponent, exponent_size, mantissa, mantissa_size;
    uint32_t bias;
} floats[] = {
    {"F64", 64, 52, 11, 0, 52, 1023}, {"F32", 32, 23, 8, 0, 23, 127}, {"F16", 16, 10, 5, 0, 10, 15},
    {"BF16", 16, 7, 8, 0, 7, 127},    {"F8_E4M3", 8, 3, 4, 0, 3, 7},  {"F8_E5M2", 8, 2, 5, 0, 2, 15},
};

static const struct dtype *float_dtype(struct part part)
{
    enum { BODY = 12, VAX_BIT = 64, FIRST_BIT = 48, IS_IMPLIED = 32 /* the first bit of the mantissa */ };
    const unsigned char *body = part.bytes + PREFIX;
    if (part.length < PREFIX + BODY || part.bytes[1] & VAX_BIT || (part.bytes[1] & FIRST_BIT) != IS_IMPLIED)
        return NULL;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        const struct float_row *row = &floats[i];
        if (size_of(part) * 8 == row->precision && read_le(body, 2) == 0 && read_le(body + 2, 2) == row->precision &&
            body[4] == row->exponent && body[5] == row->exponent_size && body[6] == row->mantissa &&
            body[7] == row->mantissa_size && read_le(body + 8, 4) == row->bias && part.bytes[2] == row->precision - 1)
            return dtype_by_name(row->dtype);
    }
    return NULL;
}

static const struct dtype *number_dtype(struct part part)
{
    if (part.length < PREFIX)
        return NULL;
    return class_of(part) == CLASS_INTEGER ? integer_dtype(part)
           : class_of(part) == CLASS_FLOAT ? float_dtype(part)
                                           : NULL;
}

static bool is_big_endian(struct part part)
{
    return (part.bytes[1] & BIG_ENDIAN_BIT) != 0;
}

/* Types made of others. */

/* Returns the part after `n` bytes; empty if there are not as many. */
static struct part skip(struct part part, uint64_t n)
{
    if (n > part.length)
        n = part.length;
    return (struct part){part.bytes + n, part.length - (size_t)n};
}

/* Returns the part after a name, which versions before 3 fill up to a multiple of 8 bytes. */
static struct part skip_name(struct part part, unsigned version)
{
    uint64_t length = part.length > 0 ? strnlen((const char *)part.bytes, part.length) + 1 : 0;
    if (version < 3)
        length = rounded_up(length, 8) * 8;
    return skip(part, length);
}

static size_t number_length(struct part part)
{
    enum { INTEGER = 4, FLOAT = 12 };
    return PREFIX + (class_of(part) == CLASS_FLOAT ? FLOAT : INTEGER);
}

/* Returns the dtype of a compound of two equal floats, named r and i. */
static const struct dtype *compound_dtype(struct part part, bool *ret_swap)
{
    unsigned version = version_of(part), offset_width = version < 3 ? 4 : 1;
    enum { VERSION_1_DIMENSIONS = 28 };
    struct part at = skip(part, PREFIX), members[2];
    if (read_le(part.bytes + 1, 2) != 2)
        return NULL;
    for (uint64_t i = 0; i < 2; i++) {
        if (at.length < 2 || memcmp(at.bytes, i == 0 ? "r" : "i", 2) != 0)
            return NULL;
        at = skip_name(at, version);
        if (at.length < offset_width || read_le(at.bytes, offset_width) != i * size_of(part) / 2)
            return NULL;
        at = skip(at, offset_width + (version == 1 ? VERSION_1_DIMENSIONS : 0));
        members[i] = at;
        if (number_dtype(at) == NULL || class_of(at) != CLASS_FLOAT)
            return NULL;
        at = skip(at, number_length(at));
    }
    size_t length = number_length(members[0]);
    if (memcmp(members[0].bytes, members[1].bytes, length) != 0 || 2 * size_of(members[0]) != size_of(part))
        return NULL;
    *ret_swap = is_big_endian(members[0]);
    return size_of(part) == 8 ? dtype_by_name("C64") : size_of(part) == 16 ? dtype_by_name("C128") : NULL;
}

static const struct dtype *complex_dtype(struct part part, bool *ret_swap)
{
    struct part base = skip(part, PREFIX);
    const struct dtype *dtype = number_dtype(base);
    if (dtype == NULL || class_of(base) != CLASS_FLOAT || 2 * size_of(base) != size_of(part))
        return NULL;
    *ret_swap = is_big_endian(base);
    return size_of(part) == 8 ? dtype_by_name("C64") : size_of(part) == 16 ? dtype_by_name("C128") : NULL;
}

/* Returns BOOL for h5py's enumeration of FALSE and TRUE, and the integers' dtype for others. */
static const struct dtype *enum_dtype(struct part part, bool *ret_swap)
{
    struct part base = skip(part, PREFIX);
    const struct dtype *dtype = number_dtype(base);
    if (dtype == NULL || class_of(base) != CLASS_INTEGER || size_of(base) != size_of(part))
        return NULL;
    *ret_swap = is_big_endian(base);
    unsigned version = version_of(part);
    struct part first = skip(base, number_length(base)), second = skip_name(first, version);
    struct part values = skip_name(second, version);
    bool is_bool = read_le(part.bytes + 1, 2) == 2 && size_of(part) == 1 && first.length >= sizeof "FALSE" &&
                   memcmp(first.bytes, "FALSE", sizeof "FALSE") == 0 && second.length >= sizeof "TRUE" &&
                   memcmp(second.bytes, "TRUE", sizeof "TRUE") == 0 && values.length >= 2 && values.bytes[0] == 0 &&
                   values.bytes[1] == 1;
    return is_bool ? dtype_by_name("BOOL") : dtype;
}

static const struct dtype *find_dtype(struct part part, bool *ret_swap)
{
    switch (class_of(part)) {
    case CLASS_INTEGER:
    case CLASS_FLOAT:
        *ret_swap = is_big_endian(part);
        return number_dtype(part);
    case CLASS_COMPOUND:
        return compound_dtype(part, ret_swap);
    case CLASS_ENUM:
        return enum_dtype(part, ret_swap);
    case CLASS_COMPLEX:
        return complex_dtype(part, ret_swap);
    default:
        return NULL;
    }
}

/* Opaque elements of one or two bytes may be floats that numpy has no name for, as h5py stores F8. */
static bool is_no_number(struct part part)
{
    enum { VARIABLE_KIND = 1, KIND_BITS = 15, KIND_STRING = 1, FLOAT_BYTES = 2 };
    unsigned class = class_of(part);
    bool is_text = class == CLASS_VARIABLE && (part.bytes[VARIABLE_KIND] & KIND_BITS) == KIND_STRING;
    return is_text || class == CLASS_STRING || class == CLASS_TIME || class == CLASS_REFERENCE ||
           (class == CLASS_OPAQUE && size_of(part) > FLOAT_BYTES);
}

bool hdf5_type_read(const struct hdf5 *file, const struct hdf5_message *message, struct hdf5_type *type,
                    struct error *error)
{
    const struct part part = {message->body, message->length};
    *type = (struct hdf5_type){.dtype = dtype_by_name("U8")};
    if (message->is_shared) {
        type->refusal = "elements of a shared datatype have no values";
        return true;
    }
    if (part.length < PREFIX || version_of(part) == 0 || class_of(part) >= N_CLASSES)
        return hdf5_refuse(file, message->address, "damaged: a datatype", error);
    type->size = size_of(part);
    type->is_opaque = class_of(part) == CLASS_OPAQUE && type->size == 2;
    const struct dtype *dtype = find_dtype(part, &type->swap);
    if (dtype != NULL) {
        type->dtype = dtype;
        return true;
    }
    type->refusal = refusals[class_of(part)];
    type->is_no_number = is_no_number(part);
    if (type->is_no_number && class_of(part) == CLASS_VARIABLE)
        type->refusal = refusals[CLASS_STRING];
    return true;
}

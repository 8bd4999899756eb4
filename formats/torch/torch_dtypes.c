#include "formats/torch/tensors.h"

#include <string.h>

/* UntypedStorage counts bytes. Sub-byte types that torch keeps one to a byte, and bits without a meaning, are
 * integers. */
static const struct torch_dtype rows[] = {
    {"float32", "FloatStorage", "F32", 4, false},
    {"float16", "HalfStorage", "F16", 2, false},
    {"bfloat16", "BFloat16Storage", "BF16", 2, false},
    {"float64", "DoubleStorage", "F64", 8, false},
    {"int64", "LongStorage", "I64", 8, false},
    {"int32", "IntStorage", "I32", 4, false},
    {"int16", "ShortStorage", "I16", 2, false},
    {"int8", "CharStorage", "I8", 1, false},
    {"uint8", "ByteStorage", "U8", 1, false},
    {"uint8", "UntypedStorage", "U8", 1, false},
    {"bool", "BoolStorage", "BOOL", 1, false},
    {"complex64", "ComplexFloatStorage", "C64", 4, false},
    {"complex128", "ComplexDoubleStorage", "C128", 8, false},
    {"qint8", "QInt8Storage", "I8", 1, true},
    {"quint8", "QUInt8Storage", "U8", 1, true},
    {"qint32", "QInt32Storage", "I32", 4, true},
    {"quint4x2", "QUInt4x2Storage", "U8", 1, true},
    {"quint2x4", "QUInt2x4Storage", "U8", 1, true},
    {"half", NULL, "F16", 2, false},
    {"float", NULL, "F32", 4, false},
    {"double", NULL, "F64", 8, false},
    {"short", NULL, "I16", 2, false},
    {"int", NULL, "I32", 4, false},
    {"long", NULL, "I64", 8, false},
    {"uint16", NULL, "U16", 2, false},
    {"uint32", NULL, "U32", 4, false},
    {"uint64", NULL, "U64", 8, false},
    {"complex32", NULL, "C32", 2, false},
    {"chalf", NULL, "C32", 2, false},
    {"cfloat", NULL, "C64", 4, false},
    {"cdouble", NULL, "C128", 8, false},
    {"float8_e4m3fn", NULL, "F8_E4M3", 1, false},
    {"float8_e5m2", NULL, "F8_E5M2", 1, false},
    {"float8_e4m3fnuz", NULL, "F8_E4M3FNUZ", 1, false},
    {"float8_e5m2fnuz", NULL, "F8_E5M2FNUZ", 1, false},
    {"float8_e8m0fnu", NULL, "F8_E8M0", 1, false},
    {"float4_e2m1fn_x2", NULL, "F4", 1, false},
    {"bits8", NULL, "U8", 1, false},
    {"bits16", NULL, "U16", 2, false},
    {"bits1x8", NULL, "U8", 1, false},
    {"bits2x4", NULL, "U8", 1, false},
    {"bits4x2", NULL, "U8", 1, false},
    {"int1", NULL, "I8", 1, false},
    {"int2", NULL, "I8", 1, false},
    {"int3", NULL, "I8", 1, false},
    {"int4", NULL, "I8", 1, false},
    {"int5", NULL, "I8", 1, false},
    {"int6", NULL, "I8", 1, false},
    {"int7", NULL, "I8", 1, false},
    {"uint1", NULL, "U8", 1, false},
    {"uint2", NULL, "U8", 1, false},
    {"uint3", NULL, "U8", 1, false},
    {"uint4", NULL, "U8", 1, false},
    {"uint5", NULL, "U8", 1, false},
    {"uint6", NULL, "U8", 1, false},
    {"uint7", NULL, "U8", 1, false},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

const struct torch_dtype *torch_dtype_by_name(const char *name)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const struct torch_dtype *torch_dtype_by_storage(const char *name)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].storage != NULL && strcmp(rows[i].storage, name) == 0)
            return &rows[i];
    return NULL;
}

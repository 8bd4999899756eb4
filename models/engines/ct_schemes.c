#include "models/engines/ct_model.h"

#define ROW                                                                                                            \
    {                                                                                                                  \
        1, 0, SCALE_SYMMETRIC, CODE_E4M3, 8, 8, false                                                                  \
    }
#define BLOCK                                                                                                          \
    {                                                                                                                  \
        128, 128, SCALE_SYMMETRIC, CODE_E4M3, 8, 8, false                                                              \
    }
#define ROW_OF_INT                                                                                                     \
    {                                                                                                                  \
        1, 0, SCALE_SYMMETRIC, CODE_INTEGER, 8, 8, false                                                               \
    }
#define FP8_TOKEN                                                                                                      \
    {                                                                                                                  \
        "float", 8, "token", 0, NULL                                                                                   \
    }
#define INT8_TOKEN                                                                                                     \
    {                                                                                                                  \
        "int", 8, "token", 0, NULL                                                                                     \
    }
#define NOT_QUANTIZED                                                                                                  \
    {                                                                                                                  \
        NULL, 0, NULL, 0, NULL                                                                                         \
    }

/* Integers of n bits in groups of 128 columns. */
#define WEIGHTS_ONLY(n, is_rare)                                                                                       \
    {                                                                                                                  \
        "W" #n "A16", is_rare, "pack-quantized", CT_PACKED, "I32",                                                     \
            {1, 128, SCALE_SYMMETRIC, CODE_INTEGER, n, n, true}, {"int", n, "group", 128, NULL}, NOT_QUANTIZED         \
    }

#define INT4_BYTES(name, activations)                                                                                  \
    {                                                                                                                  \
        name, true, "int-quantized", CT_PLAIN, "I8", {1, 128, SCALE_SYMMETRIC, CODE_INTEGER, 4, 8, false},             \
            {"int", 4, "group", 128, NULL}, activations                                                                \
    }

#define EXPONENTS "torch.uint8"
#define MX_GROUPS(bits)                                                                                                \
    {                                                                                                                  \
        "float", bits, "group", 32, EXPONENTS                                                                          \
    }
#define MXFP4(name, is_rare, ...)                                                                                      \
    {                                                                                                                  \
        name, is_rare, "mxfp4-pack-quantized", CT_NIBBLES, "U8", {1, 32, SCALE_POWER_OF_TWO, CODE_E2M1, 4, 4, false},  \
            MX_GROUPS(4), __VA_ARGS__                                                                                  \
    }
#define MXFP8(name, ...)                                                                                               \
    {                                                                                                                  \
        name, true, "mxfp8-quantized", CT_PLAIN, "F8_E4M3", {1, 32, SCALE_POWER_OF_TWO, CODE_E4M3, 8, 8, false},       \
            MX_GROUPS(8), __VA_ARGS__                                                                                  \
    }

/* clang-format off */
const struct ct_scheme ct_schemes[] = {
    {"FP8_DYNAMIC", false, "float-quantized", CT_PLAIN, "F8_E4M3", ROW, {"float", 8, "channel", 0, NULL}, FP8_TOKEN},
    {"FP8_BLOCK", false, "float-quantized", CT_PLAIN, "F8_E4M3", BLOCK, {"float", 8, "block", 0, NULL},
     {"float", 8, "group", 128, NULL}},
    {"W8A8", false, "int-quantized", CT_PLAIN, "I8", ROW_OF_INT, {"int", 8, "channel", 0, NULL}, INT8_TOKEN},
    WEIGHTS_ONLY(8, false),
    WEIGHTS_ONLY(4, false),
    {"W4A16_ASYM", true, "pack-quantized", CT_PACKED, "I32", {1, 128, SCALE_ASYMMETRIC, CODE_INTEGER, 4, 4, true},
     {"int", 4, "group", 128, NULL}, NOT_QUANTIZED},
    {"NVFP4A16", false, "nvfp4-pack-quantized", CT_NIBBLES, "U8", {1, 16, SCALE_OF_TENSOR, CODE_E2M1, 4, 4, false},
     {"float", 4, "tensor_group", 16, "torch.float8_e4m3fn"}, NOT_QUANTIZED},
    MXFP4("MXFP4A16", false, NOT_QUANTIZED),
    MXFP4("MXFP4", true, MX_GROUPS(4)),
    MXFP8("MXFP8A16", NOT_QUANTIZED),
    MXFP8("MXFP8", MX_GROUPS(8)),
    INT4_BYTES("W4A8", INT8_TOKEN),
    INT4_BYTES("W4AFP8", FP8_TOKEN),
    WEIGHTS_ONLY(2, true),
    WEIGHTS_ONLY(3, true),
    WEIGHTS_ONLY(5, true),
    WEIGHTS_ONLY(6, true),
    WEIGHTS_ONLY(7, true),
    {0},
};
/* clang-format on */

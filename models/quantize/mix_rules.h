/* The vocabulary of the rows in mixes.c; for mix.c and mixes.c only. */
#pragma once

/* The roles of tensors that mixes distinguish; one bit each, so that a rule can cover several. */
enum tensor_role {
    OUTPUT = 1,     /* output.weight, or a token embedding that is also the output */
    TOKEN_EMBD = 2, /* a token embedding beside an output of its own */
    ATTN_V = 4,     /* values, alone or fused with queries and keys */
    ATTN_K = 8,
    ATTN_OUTPUT = 16,
    FFN_UP = 32,
    FFN_GATE = 64,
    FFN_DOWN = 128,
    ATTN_Q = 256,
    OTHER = 512,
    ANY_ROLE = 1023,
};

/* Conditions on a tensor and its model. Positions count the tensors of the same role in the order of the file:
 * for FFN_DOWN out of the number of layers (and by the layer's own number in a model with experts), for ATTN_V out of
 * all values. */
enum tensor_fact {
    FALCON = 1,
    NOT_FALCON = 2,
    EIGHT_EXPERTS = 4,
    NOT_EIGHT_EXPERTS = 8,
    GROUPED = 16, /* at least 4 heads share their keys and values */
    STACKED = 32, /* several matrices: experts */
    RAGGED = 64,  /* rows are not whole blocks of the mix's own type */
    FIRST_TWO = 128,
    FIRST_FOUR = 256,
    FIRST_EIGHTH = 512,
    FIRST_SIXTEENTH = 1024,
    MORE_BITS = 2048,         /* the first and last eighth, and every third between them */
    SEEN_FIRST_EIGHTH = 4096, /* FFN_DOWN by the number of tensors before it, even with experts */
    MIDDLE = 8192,            /* FFN_UP and FFN_GATE outside the first and the last eighth */
    FOUR_EXPERTS = 16384,     /* or more */
    WITH_IMATRIX = 32768,
    WITHOUT_IMATRIX = 65536,
    USUAL = 131072, /* the mix is none of the lowest, for which the tool has other rules */
};

/* The first rule that has the tensor's role, and whose conditions all hold, gives the tensor's type. */
struct mix_rule {
    unsigned roles, dimensions;
    const char *type; /* name of a dtype; NULL ends the rules */
};

/* Internals of pickle.c and its opcodes: the stack machine and its operations. Beside them, only the mutator of the
 * fuzz targets includes this header.
 *
 * A function that fails sets the machine's error and returns false or NULL. Functions that take a node fail for NULL,
 * the result of an earlier failure. */
#pragma once

#include "formats/torch/pickle.h"

enum { PICKLE_SMALL_INTEGERS = 256 };

/* The argument of an opcode in the stream. */
enum argument_kind {
    NO_ARGUMENT,
    U8,
    U16,
    I32,
    U32,
    U64,
    F64,       /* big-endian */
    LINE,      /* up to a newline */
    INDEX,     /* a line of digits: a memo index */
    TWO_LINES, /* the second line in `second` */
    COUNTED_8, /* bytes after an 8-bit count */
    COUNTED_32,
    COUNTED_I32, /* signed; negative counts are refused */
    COUNTED_64,
};

struct argument {
    uint64_t number; /* without an argument: the number in the opcode's row */
    const char *bytes, *second;
    size_t length, second_length;
    bool absent; /* `bytes` were not brought to memory */
};

struct machine {
    const unsigned char *bytes;
    size_t length, at;
    const struct pickle_parts *parts; /* NULL: all bytes are in memory */
    size_t brought;                   /* the bytes up to here are in memory, except for contents that were left out */
    size_t next_part;                 /* bytes to bring next */
    size_t n_left_out;
    size_t opcode_at;
    const char *opcode_name;
    struct arena *arena;
    uint64_t allowance; /* bytes that may still be used */
    struct error *error;
    bool truncated, stopped;

    struct pickle_node **stack;
    size_t n_stack, stack_capacity;
    size_t *marks; /* the height of the stack at each MARK */
    size_t n_marks, marks_capacity;

    void *memo; /* a tree of 256-fold branches, by the bytes of the index; its leaves are nodes */
    uint64_t n_memo;

    struct pickle_node *slab;
    unsigned slab_used;
    struct pickle_node constants[PICKLE_TRUE + 1]; /* by kind: None, False and True */
    struct pickle_node small[PICKLE_SMALL_INTEGERS];
    const struct pickle_node *harmful; /* the first one named */
    struct pickle *pickle;
};

typedef bool operation(struct machine *machine, const struct argument *argument);

struct opcode {
    const char *name;
    enum argument_kind argument;
    operation *run;
    unsigned number; /* parameter of the operation: a kind or a count */
};

/* Opcodes by their byte; without a name if there is none. */
extern const struct opcode opcodes[256];

/* Sets the error to "offset N: OPCODE" and the reason, which starts with ": " or " "; returns false. */
bool machine_fail(struct machine *machine, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets the error for a harmful global: "... of os.system: ..."; returns false. */
bool machine_refuse_harmful(struct machine *machine, const struct pickle_node *global);

/* Counts bytes against the allowance: nodes, items, the memo, growth of the stack and its marks. */
bool machine_count(struct machine *machine, uint64_t size);

/* Allocates memory from the arena, zeroed and counted. */
void *machine_alloc(struct machine *machine, uint64_t size);
struct pickle_node *machine_node(struct machine *machine, enum pickle_kind kind);
struct pickle_node *machine_items(struct machine *machine, enum pickle_kind kind, struct pickle_node *const *nodes,
                                  size_t count);
bool machine_add_items(struct machine *machine, struct pickle_items *items, struct pickle_node *const *nodes,
                       size_t count);

/* The stack. */
bool machine_push(struct machine *machine, struct pickle_node *node);
bool machine_need(struct machine *machine, size_t count); /* fails unless that many values are above the last MARK */
struct pickle_node *machine_pop(struct machine *machine);
struct pickle_node *machine_top(struct machine *machine);

/* Removes the last MARK and the values above it, which stay valid until the next push. */
bool machine_pop_mark(struct machine *machine, struct pickle_node ***ret_nodes, size_t *ret_count);

bool machine_memo_put(struct machine *machine, uint64_t index); /* stores the topmost value */
bool machine_memo_get(struct machine *machine, uint64_t index);

/* Globals and their objects, by the rules of pickle.h. */
struct pickle_node *machine_global(struct machine *machine, const char *module, size_t module_length, const char *name,
                                   size_t name_length);
struct pickle_node *machine_plain_object(struct machine *machine, const struct pickle_node *class,
                                         struct pickle_node *arguments);
struct pickle_node *machine_call(struct machine *machine, const struct pickle_node *function,
                                 struct pickle_node *arguments);

/* Runs INST and OBJ: without arguments, a foreign class makes a plain object; with arguments, it is called. */
struct pickle_node *machine_instance(struct machine *machine, struct pickle_node *class,
                                     struct pickle_node *const *nodes, size_t count);
bool machine_add_pairs(struct machine *machine, struct pickle_node *to, struct pickle_node *const *nodes, size_t count);
bool machine_append(struct machine *machine, struct pickle_node *to, struct pickle_node *const *nodes, size_t count);

/* Operations of opcodes, called after reading the argument. Numbers, texts and constants are in pickle_opcodes.c. */
#define OPERATION(name) bool name(struct machine *machine, const struct argument *argument)

operation op_integer, op_int, op_long, op_long_counted, op_binfloat, op_float, op_constant, op_text, op_old_text,
    op_bytes, op_string, op_unicode;

/* Reports well-formed UTF-8, except that surrogates are allowed: Python writes them for bytes of file names. */
bool is_python_text(const char *text, size_t length);

#include "fs/cli/pack/packing_bases.h"

#include "base/arena.h"
#include "base/text_index.h"
#include "quant/blocks/codes.h"
#include "sources/archive/coding_choice.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_TRIED = 2048, /* weights of one size, the newest first */
    MOST_OFFERS = 4,
    SAMPLES = 16, /* places at which a tensor must follow from the weights */
};

static const uint32_t none = UINT32_MAX;

struct base {
    struct pack_input input;
    uint32_t next; /* of the same number of values; none: the last */
};

struct bases {
    struct arena *arena; /* the keys */
    struct coder *coder;
    struct base *items;
    size_t count;
    struct text_index by_name, by_size; /* the newest */
};

struct bases *bases_new(void)
{
    struct bases *bases = memory_alloc(sizeof *bases);
    *bases = (struct bases){.arena = arena_new(), .coder = coder_new()};
    return bases;
}

void bases_free(struct bases *bases)
{
    if (bases == NULL)
        return;
    text_index_free(&bases->by_name);
    text_index_free(&bases->by_size);
    coder_free(bases->coder);
    arena_free(bases->arena);
    free(bases->items);
    free(bases);
}

struct key {
    uint64_t name, length;
};

static uint32_t newest(const struct text_index *index, const void *key, size_t length)
{
    size_t number;
    return text_index_find(index, key, length, &number) ? (uint32_t)number : none;
}

static void add(struct bases *bases, struct pack *pack, const struct digest *digest, uint32_t number)
{
    const struct pack_tensor *tensor = pack_tensor(pack, number);
    const struct dtype *dtype = tensor->dtype;
    if (dtype == NULL || dtype->kind != DTYPE_FLOAT || dtype->block_elements != 1 || dtype->block_bytes < 2 ||
        tensor->coding->input != CODING_ALONE || bases->count == none)
        return;
    const struct key key = {tensor->name, tensor->length};
    const uint64_t n_values = tensor->length / dtype->block_bytes;
    const char *name = arena_copy(bases->arena, &key, sizeof key),
               *size = arena_copy(bases->arena, &n_values, sizeof n_values);
    bases->items = memory_grow(bases->items, bases->count, sizeof *bases->items);
    bases->items[bases->count] = (struct base){{.pack = pack, .digest = *digest, .number = number, .dtype = dtype},
                                               newest(&bases->by_size, &n_values, sizeof n_values)};
    text_index_set(&bases->by_name, name, sizeof key, bases->count);
    text_index_set(&bases->by_size, size, sizeof n_values, bases->count);
    bases->count++;
}

void bases_add_pack(struct bases *bases, struct pack *pack, const struct digest *digest)
{
    for (size_t i = 0; i < pack_count(pack); i++)
        add(bases, pack, digest, (uint32_t)i);
}

/* Returns how many bytes differ. */
static size_t count_differing(const unsigned char *a, const unsigned char *b, size_t n)
{
    size_t differing = 0;
    for (size_t i = 0; i < n; i++)
        differing += a[i] != b[i];
    return differing;
}

/* Reports whether the codes of a block are those that follow from the weights, but for a few: IQ4_XS has such. */
static bool has_codes_of(const struct base_query *query, const struct coding_input *input, uint64_t block)
{
    enum { FEW = 8 };
    const struct dtype *dtype = query->dtype;
    unsigned char stored[CODING_BLOCK_MOST], computed[CODING_BLOCK_MOST];
    float values[CODING_BLOCK_VALUES];
    struct error unsaid;
    if (!query->read(query->context, block * dtype->block_bytes, dtype->block_bytes, stored, &unsaid) ||
        !input->read(input->context, block * dtype->block_elements, dtype->block_elements, values, &unsaid))
        return false;
    memcpy(computed, stored, dtype->block_bytes);
    codes_of(dtype)(values, computed, 1);
    return count_differing(computed, stored, dtype->block_bytes) < dtype->block_bytes / FEW;
}

/* Reports whether the values from one on are those of the weights, rounded. */
static bool is_cast_of(const struct base_query *query, const struct coding_input *input, uint64_t first)
{
    enum { N = CODING_BLOCK_VALUES };
    const struct dtype *dtype = query->dtype;
    const uint64_t n_values = query->length / dtype->block_bytes;
    const size_t n = n_values - first < N ? (size_t)(n_values - first) : N;
    unsigned char stored[N * sizeof(float)], computed[N * sizeof(float)];
    float values[N];
    struct error unsaid;
    if (!query->read(query->context, first * dtype->block_bytes, n * dtype->block_bytes, stored, &unsaid) ||
        !input->read(input->context, first, n, values, &unsaid))
        return false;
    dtype_kernels(dtype).encode(values, computed, n);
    return memcmp(computed, stored, n * dtype->block_bytes) == 0;
}

/* Reports whether samples of the tensor follow from the weights. Most others are refused by the first one. The places
 * look random: half of all rows lie at the same place in two orders, such as every second one. */
static bool follows_from(const struct base_query *query, const struct pack_input *weights)
{
    const uint32_t golden = 2654435769u; /* 2^32 divided by the golden ratio */
    const struct dtype *dtype = query->dtype;
    const double n_blocks = (double)(query->length / dtype->block_bytes);
    struct pack_input input = *weights;
    const struct coding_input reader = pack_input_values(&input);
    bool follows = true;
    for (uint32_t i = 1; follows && i <= SAMPLES; i++) {
        uint64_t block = (uint64_t)(n_blocks * (i * golden) / (1ull << 32));
        follows = dtype->kind == DTYPE_BLOCK ? has_codes_of(query, &reader, block) : is_cast_of(query, &reader, block);
    }
    return follows;
}

/* The bases of a tensor that are worth measuring. */
struct offers {
    struct pack_input inputs[MOST_OFFERS];
    struct coding_offer items[MOST_OFFERS];
    size_t count;
};

static void offer(struct offers *offers, const struct coding *coding, const struct pack_input *input)
{
    struct pack_input *copy = &offers->inputs[offers->count];
    *copy = *input;
    bool decodes = coding->input == CODING_VALUES;
    offers->items[offers->count++] =
        (struct coding_offer){coding, decodes ? pack_input_values(copy) : pack_input_bytes(copy)};
}

/* Offers the weights of as many values that a tensor follows from: all, the newest first, with one order of rows.
 * Leaves room for a base. */
static void find_ordered(struct bases *bases, const struct base_query *query, const struct pack_swap *swap,
                         struct offers *offers)
{
    const struct dtype *dtype = query->dtype;
    const struct coding *coding = coding_with(CODING_VALUES, dtype);
    const uint64_t n_values = query->length / dtype->block_bytes * dtype->block_elements;
    uint32_t at = newest(&bases->by_size, &n_values, sizeof n_values);
    for (size_t i = 0; i < MOST_TRIED && at != none && offers->count < MOST_OFFERS - 1;
         i++, at = bases->items[at].next) {
        struct pack_input input = bases->items[at].input;
        input.swap = *swap;
        if ((input.dtype != dtype || swap->run != 0) && follows_from(query, &input))
            offer(offers, coding, &input);
    }
}

/* Finds the weights that a tensor was quantized or rounded from. If there are none, the rows of each head may be in
 * the order of a GGUF, where halves have become pairs for rotary embeddings, or the other way round. */
static void find_weights(struct bases *bases, const struct base_query *query, struct offers *offers)
{
    enum { LEAST_HALF = 8, LARGEST_HALF = 256 };
    const struct dtype *dtype = query->dtype;
    const bool has_blocks = dtype->kind == DTYPE_BLOCK;
    if (coding_with(CODING_VALUES, dtype) == NULL ||
        (has_blocks && (codes_of(dtype) == NULL || dtype->block_bytes > CODING_BLOCK_MOST ||
                        dtype->block_elements > CODING_BLOCK_VALUES)))
        return;
    find_ordered(bases, query, &(struct pack_swap){0}, offers);
    if (query->row < PACK_LEAST_RUN)
        return;
    const uint64_t rows = query->length / dtype->block_bytes * dtype->block_elements / query->row;
    for (uint64_t half = LEAST_HALF; offers->count == 0 && half <= LARGEST_HALF; half++)
        if (rows % (2 * half) == 0) {
            find_ordered(bases, query, &(struct pack_swap){2, half, query->row}, offers);
            find_ordered(bases, query, &(struct pack_swap){half, 2, query->row}, offers);
        }
}

static void find_base(struct bases *bases, const struct base_query *query, struct offers *offers)
{
    const struct coding *coding = coding_with(CODING_BASE, query->dtype);
    const struct key key = {query->name, query->length};
    uint32_t at = newest(&bases->by_name, &key, sizeof key);
    if (coding != NULL && at != none && bases->items[at].input.dtype == query->dtype)
        offer(offers, coding, &bases->items[at].input);
}

bool bases_choose(struct bases *bases, const struct base_query *query, struct pack_writer_tensor *tensor,
                  struct error *error)
{
    const struct coding_tensor sampled = {query->dtype, query->length, query->read, query->context};
    struct offers offers = {.count = 0};
    struct coding_offer choice;
    if (query->dtype != NULL)
        find_weights(bases, query, &offers);
    if (query->dtype != NULL && query->dtype->kind != DTYPE_BLOCK && query->name != 0)
        find_base(bases, query, &offers);
    if (!coding_choose(bases->coder, &sampled, offers.items, offers.count, &choice, error))
        return false;
    tensor->coding = choice.coding;
    if (choice.coding->input != CODING_ALONE)
        tensor->input = *(const struct pack_input *)choice.input.context;
    return true;
}

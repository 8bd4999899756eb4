#include "fs/cli/pack/packing_bases.h"

#include "base/arena.h"
#include "base/text_index.h"
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

/* A block, or as many of the smaller units as make a sample. */
static size_t units_of_sample(const struct coding *coding)
{
    return coding->dtype->kind == DTYPE_BLOCK ? 1 : CODING_BLOCK_VALUES / coding->unit_values;
}

/* Reports whether the units from one on are those that follow from the weights. Of codes a few may differ: IQ4_XS has
 * such. */
static bool units_follow(const struct base_query *query, const struct coding *coding, const struct coding_input *input,
                         uint64_t first)
{
    enum { FEW = 8 };
    const uint64_t left = query->length / coding->unit_bytes - first, most = units_of_sample(coding);
    const size_t n = (size_t)(left < most ? left : most), n_bytes = n * coding->unit_bytes,
                 n_values = n * coding->unit_values;
    unsigned char stored[CODING_BLOCK_VALUES * sizeof(float)], computed[CODING_BLOCK_VALUES * sizeof(float)];
    float values[CODING_BLOCK_VALUES];
    struct error unsaid;
    if (!query->read(query->context, first * coding->unit_bytes, n_bytes, stored, &unsaid) ||
        !input->read(input->context, first * coding->unit_values, n_values, values, &unsaid))
        return false;
    memcpy(computed, stored, n_bytes);
    coding->compute(coding, values, computed, n);
    const bool is_number = coding->dtype->kind == DTYPE_FLOAT && coding->dtype->block_bytes > 1;
    const size_t allowed = is_number ? 0 : (n_bytes - 1) / FEW;
    return count_differing(computed, stored, n_bytes) <= allowed;
}

/* Reports whether samples of the tensor follow from the weights. Most others are refused by the first one. The places
 * look random: half of all rows lie at the same place in two orders, such as every second one. */
static bool follows_from(const struct base_query *query, const struct coding *coding, const struct pack_input *weights)
{
    const uint32_t golden = 2654435769u; /* 2^32 divided by the golden ratio */
    const double n_units = (double)(query->length / coding->unit_bytes);
    struct pack_input input = *weights;
    const struct coding_input reader = pack_input_values(&input);
    bool follows = true;
    for (uint32_t i = 1; follows && i <= SAMPLES; i++)
        follows = units_follow(query, coding, &reader, (uint64_t)(n_units * (i * golden) / (1ull << 32)));
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
static void find_ordered(struct bases *bases, const struct base_query *query, const struct coding *coding,
                         const struct pack_swap *swap, struct offers *offers)
{
    const uint64_t n_values = query->length / coding->unit_bytes * coding->unit_values;
    uint32_t at = newest(&bases->by_size, &n_values, sizeof n_values);
    for (size_t i = 0; i < MOST_TRIED && at != none && offers->count < MOST_OFFERS - 1;
         i++, at = bases->items[at].next) {
        struct pack_input input = bases->items[at].input;
        const bool is_itself = coding->unit_values == 1 && input.dtype == coding->dtype && swap->run == 0;
        input.swap = *swap;
        if (!is_itself && follows_from(query, coding, &input))
            offer(offers, coding, &input);
    }
}

/* Finds weights whose rows a GGUF has in another order, or the other way round: in each head, halves have become pairs
 * for rotary embeddings. */
static void find_swapped(struct bases *bases, const struct base_query *query, const struct coding *coding,
                         struct offers *offers)
{
    enum { LEAST_HALF = 8, LARGEST_HALF = 256 };
    if (query->row < PACK_LEAST_RUN)
        return;
    const uint64_t rows = query->length / coding->unit_bytes * coding->unit_values / query->row;
    for (uint64_t half = LEAST_HALF; offers->count == 0 && half <= LARGEST_HALF; half++)
        if (rows % (2 * half) == 0) {
            find_ordered(bases, query, coding, &(struct pack_swap){2, half, query->row}, offers);
            find_ordered(bases, query, coding, &(struct pack_swap){half, 2, query->row}, offers);
        }
}

/* Finds the weights that a tensor was quantized or rounded from. Engines keep the order of rows. */
static void find_weights(struct bases *bases, const struct base_query *query, struct offers *offers)
{
    const struct coding *coding;
    for (size_t i = 0; (coding = coding_at(i)) != NULL; i++)
        if (coding->input == CODING_VALUES && coding_suits(coding, query->dtype, query->length))
            find_ordered(bases, query, coding, &(struct pack_swap){0}, offers);
    coding = coding_with(CODING_VALUES, query->dtype);
    if (offers->count == 0 && coding != NULL && (coding->unit_values == 1 || coding->dtype->kind == DTYPE_BLOCK))
        find_swapped(bases, query, coding, offers);
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

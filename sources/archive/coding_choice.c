#include "sources/archive/coding_choice.h"

#include "base/arena.h"

#include <stdlib.h>

/* Rotation moves signs, which integers do not have at the top. Matches of zstd suit what is no floating point. */
bool coding_suits(const struct coding *coding, const struct dtype *dtype, uint64_t n_bytes)
{
    if (n_bytes % coding->unit_bytes != 0)
        return false;
    if (coding->dtype != NULL)
        return dtype == coding->dtype || (coding->other != NULL && dtype == coding->other);
    if (coding->is_raw || coding->is_matched)
        return coding->is_raw || dtype == NULL || dtype->kind == DTYPE_INTEGER;
    return dtype != NULL && dtype->block_elements == 1 && dtype->block_bytes == coding->unit_bytes &&
           (dtype->kind == DTYPE_FLOAT || (coding->rotation == 0 && coding->input == CODING_ALONE));
}

const struct coding *coding_with(enum coding_input_kind input, const struct dtype *dtype)
{
    const struct coding *coding;
    for (size_t i = 0; (coding = coding_at(i)) != NULL; i++)
        if (coding->input == input && coding_suits(coding, dtype, 0))
            return coding;
    return NULL;
}

/* Adds the length of a chunk, coded. Returns false if it cannot be coded, because its input cannot be read. */
static bool add_length(struct coder *coder, const struct coding_offer *offer, uint64_t offset, size_t n_bytes,
                       const void *bytes, uint64_t *length)
{
    struct error unsaid;
    const struct coding *coding = offer->coding;
    const struct coding_chunk chunk = {
        .first = offset / coding->unit_bytes * coding->unit_values, .n_bytes = n_bytes, .input = &offer->input};
    unsigned char *out = memory_alloc(coding_bound(coding, n_bytes));
    size_t coded;
    bool done = coding_encode(coding, coder, &chunk, bytes, out, &coded, &unsaid);
    free(out);
    if (done)
        *length += coded;
    return done;
}

enum { PART = 4 /* samples of numbers are so much smaller than a chunk */ };

/* What samples of the tensor take with an offer, as a share of their bytes; *ret_share is 2 if the offer does not
 * apply. Fails if the tensor cannot be read. */
static bool measure(struct coder *coder, const struct coding_tensor *tensor, const struct coding_offer *offer,
                    double *ret_share, struct error *error)
{
    const size_t whole = coding_bytes(offer->coding, CODING_CHUNK);
    const size_t most = tensor->dtype != NULL ? whole / PART : whole; /* text needs all of its matches */
    const uint64_t n_chunks = tensor->n_bytes / whole + (tensor->n_bytes % whole != 0);
    uint64_t length = 0, n_bytes = 0, last = UINT64_MAX;
    bool applies = true, read = true;
    *ret_share = 2;
    if (!coding_suits(offer->coding, tensor->dtype, tensor->n_bytes))
        return true;
    unsigned char *bytes = memory_alloc(most);
    for (uint64_t i = 1; applies && read && i <= CHOICE_SAMPLES; i++) {
        const uint64_t number = n_chunks * i / (CHOICE_SAMPLES + 1), offset = number * whole;
        if (number == last)
            continue;
        last = number;
        const size_t n = (size_t)(tensor->n_bytes - offset < most ? tensor->n_bytes - offset : most);
        read = tensor->read(tensor->context, offset, n, bytes, error);
        applies = read && add_length(coder, offer, offset, n, bytes, &length);
        n_bytes += n;
    }
    free(bytes);
    if (applies)
        *ret_share = (double)length / (double)n_bytes;
    return read;
}

/* Finds the best coding without an input. */
static bool choose_alone(struct coder *coder, const struct coding_tensor *tensor, struct coding_offer *ret_choice,
                         double *ret_share, struct error *error)
{
    const double raw = 0.99;
    struct coding_offer offer = {0};
    *ret_choice = (struct coding_offer){.coding = coding_by_name("raw")};
    *ret_share = raw;
    for (size_t i = 0; (offer.coding = coding_at(i)) != NULL; i++) {
        double share;
        if (offer.coding->input != CODING_ALONE || offer.coding == ret_choice->coding)
            continue;
        if (!measure(coder, tensor, &offer, &share, error))
            return false;
        if (share < *ret_share) {
            *ret_share = share;
            *ret_choice = offer;
        }
    }
    return true;
}

/* Finds the best of the offers; *ret_share is 2 if none applies. */
static bool choose_offer(struct coder *coder, const struct coding_tensor *tensor, const struct coding_offer *offers,
                         size_t n_offers, struct coding_offer *ret_choice, double *ret_share, struct error *error)
{
    *ret_share = 2;
    for (size_t i = 0; i < n_offers; i++) {
        double share;
        if (!measure(coder, tensor, &offers[i], &share, error))
            return false;
        if (share < *ret_share) {
            *ret_share = share;
            *ret_choice = offers[i];
        }
    }
    return true;
}

bool coding_choose(struct coder *coder, const struct coding_tensor *tensor, const struct coding_offer *offers,
                   size_t n_offers, struct coding_offer *ret_choice, struct error *error)
{
    const double sure = 0.4; /* of its bytes: no tensor without an input gets there, unless either is small */
    double share, alone = 1;
    struct coding_offer offer;
    *ret_choice = (struct coding_offer){.coding = coding_by_name("raw")};
    if (tensor->n_bytes == 0)
        return true;
    if (!choose_offer(coder, tensor, offers, n_offers, &offer, &share, error))
        return false;
    if (share >= sure && !choose_alone(coder, tensor, ret_choice, &alone, error))
        return false;
    if (share < sure || share < alone * (100 - CHOICE_LEAST_GAIN) / 100.0)
        *ret_choice = offer;
    return true;
}

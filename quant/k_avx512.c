/* The K formats, sixteen sub-blocks at a time. */
#define LANES        16
#define K_NAME(name) name##_avx512

#include "quant/vectors.h"

static inline vf v_round(vf value)
{
    return _mm512_roundscale_ps(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Sets row[at] = from[at], in a row of 16 with room for one more. Stores the whole row: a store to an address that is
 * known late would delay later loads. */
static inline void v_copy_element(float *row, const float *from, int at)
{
    v_store(row, v_select((vm)(1u << at), v_load(from), v_load(row)));
}

static inline void v_store_bytes(vf levels, uint8_t *out)
{
    _mm_storeu_si128((__m128i *)(void *)out, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(levels)));
}

/* Loads four values of rows 0, 4, 8 and 12; a row has `length` values. */
static inline vf v_load_quads(const float *rows, int length)
{
    vf quads = _mm512_castps128_ps512(_mm_loadu_ps(rows));
    quads = _mm512_insertf32x4(quads, _mm_loadu_ps(rows + 4 * length), 1);
    quads = _mm512_insertf32x4(quads, _mm_loadu_ps(rows + 8 * length), 2);
    return _mm512_insertf32x4(quads, _mm_loadu_ps(rows + 12 * length), 3);
}

#include "quant/k_simd.h"

#include "quant/q4_q5_simd.h"

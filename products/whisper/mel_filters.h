/* The mel filters of Whisper, which OpenAI publishes as mel_filters.npz: triangles over the frequencies of a spectrum
 * on Slaney's mel scale, each of area 1.
 *
 * Source: librosa.filters.mel(sr=16000, n_fft=400, n_mels), in its order of operations and roundings. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MEL_FREQUENCIES = 201, MEL_MOST_BANDS = 128 };

/* Computes a row of MEL_FREQUENCIES weights for each band. Returns false unless n_mels is 80 or 128, the numbers that
 * OpenAI's models have. */
bool mel_filters(uint64_t n_mels, float out[MEL_MOST_BANDS * MEL_FREQUENCIES]);

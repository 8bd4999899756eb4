#include "products/whisper/forms.h"

#include <math.h>

enum { SAMPLE_RATE = 16000, N_FFT = 400, LINEAR_HZ = 1000 };

/* Of the mel scale, which is linear below LINEAR_HZ and logarithmic above. */
static const double hz_per_mel = 200.0 / 3;

static double hz_of_mel(double mel)
{
    double linear_mels = LINEAR_HZ / hz_per_mel, log_step = log(6.4) / 27;
    return mel >= linear_mels ? LINEAR_HZ * exp(log_step * (mel - linear_mels)) : hz_per_mel * mel;
}

/* Computes the corners of the filters: evenly spaced in mel from 0 to half the sample rate. */
static void find_corners(unsigned count, double *corners)
{
    double last = LINEAR_HZ / hz_per_mel + log(SAMPLE_RATE / 2.0 / LINEAR_HZ) / (log(6.4) / 27);
    double step = last / (count - 1);
    for (unsigned i = 0; i < count; i++)
        corners[i] = hz_of_mel(i + 1 < count ? i * step : last);
}

/* Computes one filter. The triangle is rounded before it is scaled, as librosa stores it in F32. */
static void compute_filter(const double corners[3], float *out)
{
    double per_sample = 1.0 / SAMPLE_RATE, scale = 2.0 / (corners[2] - corners[0]);
    for (unsigned k = 0; k < MEL_FREQUENCIES; k++) {
        double frequency = k * (1.0 / (N_FFT * per_sample));
        double lower = -(corners[0] - frequency) / (corners[1] - corners[0]);
        double upper = (corners[2] - frequency) / (corners[2] - corners[1]);
        double least = fmin(lower, upper);
        float triangle = least > 0 ? (float)least : 0;
        out[k] = (float)((double)triangle * scale);
    }
}

bool mel_filters(uint64_t n_mels, float out[MEL_MOST_BANDS * MEL_FREQUENCIES])
{
    double corners[MEL_MOST_BANDS + 2];
    if (n_mels != 80 && n_mels != MEL_MOST_BANDS)
        return false;
    find_corners((unsigned)n_mels + 2, corners);
    for (unsigned i = 0; i < n_mels; i++)
        compute_filter(corners + i, out + i * MEL_FREQUENCIES);
    out[0] = -0.0F; /* as in the published file: -(0 - 0), which some compilers make 0 above */
    return true;
}

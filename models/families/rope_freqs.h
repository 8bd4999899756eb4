/* The factors by which Llama 3 slows its rotary frequencies. */
#pragma once

struct rope_freqs {
    double theta, factor, low_factor, high_factor, old_context; /* as in rope_scaling of config.json */
};

/* That of the frequency of dimension 2 i, whose exponent is 2 i / dimensions. */
float rope_freq_factor(const struct rope_freqs *scaling, float exponent);

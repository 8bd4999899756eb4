#include "quant/iq.h"

const float iq2_magnitudes[3] = {8, 25, 43};

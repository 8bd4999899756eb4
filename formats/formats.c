#include "formats/format.h"

const struct format *const formats[] = {
    NULL,
};

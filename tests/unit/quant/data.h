/* Files of tests/data/quant and below: what the reference makes of the values there. */
#pragma once

#include "base/little_endian.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of the file FOLDER/NAME.SUFFIX, at most `capacity`, those of numbers for the suffix "f32"; how many there
 * were, 0 where there is no such file. */
static inline size_t read_data(const char *folder, const char *name, const char *suffix, void *out, size_t capacity)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s.%s", getenv("WFS_TEST_DATA"), folder, name, suffix);
    FILE *file = fopen(path, "rb");
    size_t length = file != NULL ? fread(out, 1, capacity, file) : 0;
    if (file != NULL)
        fclose(file);
    if (strcmp(suffix, "f32") == 0)
        little_endian(out, length / sizeof(float), sizeof(float));
    return length;
}

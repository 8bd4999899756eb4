/* Files of tests/data/quant and below: what the reference makes of the values there. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

/* The bytes of the file FOLDER/NAME.SUFFIX, at most `capacity`; how many there were, 0 where there is no such file. */
static inline size_t read_data(const char *folder, const char *name, const char *suffix, void *out, size_t capacity)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s.%s", getenv("WFS_TEST_DATA"), folder, name, suffix);
    FILE *file = fopen(path, "rb");
    size_t length = file != NULL ? fread(out, 1, capacity, file) : 0;
    if (file != NULL)
        fclose(file);
    return length;
}

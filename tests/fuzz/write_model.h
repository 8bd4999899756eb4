/* Small models from what a fuzzer makes up, in a directory of the process.
 *
 * An input is a line of JSON, lines "NAME DTYPE SHAPE BYTES", one empty line, and bytes that are repeated as often as
 * the tensors need. */
#pragma once

#include "tests/fuzz/fuzz.h"
#include "tests/unit/write_safetensors.h"

enum { MOST_BYTES = 1 << 15, MOST_DATA = 1 << 17, MOST_TENSORS = 256, LINE_BYTES = 256 };

static char directory[] = "/tmp/wfs-fuzz-XXXXXX";

static inline void path_of(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", directory, name);
}

static inline void write_file(const char *name, const void *bytes, size_t size)
{
    char path[128];
    path_of(name, path);
    files_write(path, bytes, size);
}

/* The next line, without its end; false at the end of the input. */
static inline bool next_line(const char **at, const char *end, const char **ret_line, size_t *ret_length)
{
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    if (newline == NULL)
        return false;
    *ret_line = *at;
    *ret_length = (size_t)(newline - *at);
    *at = newline + 1;
    return true;
}

/* Adds a tensor of zeros; none where the line does not describe one. */
static inline void add_tensor(const char *line, size_t length, struct safetensors *file)
{
    char text[LINE_BYTES], name[96], dtype[16], shape[64];
    unsigned n_bytes;
    if (length >= sizeof text)
        return;
    memcpy(text, line, length);
    text[length] = '\0';
    if (sscanf(text, "%95s %15s %63s %u", name, dtype, shape, &n_bytes) != 4 || *shape != '[' ||
        n_bytes > MOST_DATA - file->data.length)
        return;
    shape[strlen(shape) - 1] = '\0';
    safetensors_add(file, name, dtype, shape + 1, NULL, n_bytes);
}

/* Writes the first line of an input as the one file, and the tensors of the others as the other. */
static inline void write_model(const char *config_name, const char *weights_name, const uint8_t *input, size_t size)
{
    const char *at = (const char *)input, *end = at + size, *line = "";
    char path[128];
    size_t length = 0, n_tensors = 0;
    struct safetensors file = {0};
    if (next_line(&at, end, &line, &length))
        write_file(config_name, line, length);
    while (next_line(&at, end, &line, &length) && length > 0 && n_tensors++ < MOST_TENSORS)
        add_tensor(line, length, &file);
    for (size_t i = 0; i < file.data.length && end > at; i++)
        file.data.bytes[i] = (unsigned char)at[i % (size_t)(end - at)];
    path_of(weights_name, path);
    safetensors_write(&file, path);
}

static inline void remove_file(const char *name)
{
    char path[128];
    path_of(name, path);
    unlink(path);
}

static inline void remove_files(const char *const *names) /* up to a NULL */
{
    for (; *names != NULL; names++)
        remove_file(*names);
}

static inline void remove_folder(const char *name) /* an empty one, inside the directory */
{
    char path[128];
    path_of(name, path);
    rmdir(path);
}

/* Makes the directory, which `remove` is to remove at the end. */
static inline void make_directory(void (*remove)(void))
{
    if (strcmp(directory, "/tmp/wfs-fuzz-XXXXXX") == 0)
        require(mkdtemp(directory) != NULL && atexit(remove) == 0);
}

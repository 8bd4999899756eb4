/* Small models from what a fuzzer makes up, in a directory of the process.
 *
 * An input is a line of JSON, lines "NAME DTYPE SHAPE BYTES", one empty line, and bytes that are repeated as often as
 * the tensors need. */
#pragma once

#include "tests/fuzz/fuzz.h"

#include <fcntl.h>

enum { MOST_BYTES = 1 << 15, MOST_DATA = 1 << 16, LINE_BYTES = 256 };

static char directory[] = "/tmp/wfs-fuzz-XXXXXX";

static inline void path_of(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", directory, name);
}

static inline void write_file(const char *name, const void *head, size_t head_size, const void *data, size_t size)
{
    char path[128];
    path_of(name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, head, head_size) == (ssize_t)head_size && write(fd, data, size) == (ssize_t)size);
    close(fd);
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

/* Appends a tensor to the header; false where the line is not one. */
static inline bool add_tensor(const char *line, size_t length, char *header, size_t *header_length, size_t *n_data)
{
    char text[LINE_BYTES], name[96], dtype[16], shape[64];
    unsigned n_bytes;
    if (length >= sizeof text)
        return false;
    memcpy(text, line, length);
    text[length] = '\0';
    if (sscanf(text, "%95s %15s %63s %u", name, dtype, shape, &n_bytes) != 4 || n_bytes > MOST_DATA - *n_data)
        return false;
    *header_length +=
        (size_t)sprintf(header + *header_length, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                        *header_length > 9 ? "," : "", name, dtype, shape, *n_data, *n_data + n_bytes);
    *n_data += n_bytes;
    return true;
}

/* Writes the first line of an input as the one file, and the tensors of the others as the other. */
static inline void write_model(const char *config_name, const char *weights_name, const uint8_t *input, size_t size)
{
    static char header[8 + 2 * MOST_BYTES + 16 * LINE_BYTES];
    static unsigned char data[MOST_DATA];
    const char *at = (const char *)input, *end = at + size, *line = "";
    size_t length = 0, header_length = 9, n_data = 0, n_tensors = 0;
    header[8] = '{';
    if (next_line(&at, end, &line, &length))
        write_file(config_name, line, length, NULL, 0);
    while (next_line(&at, end, &line, &length) && length > 0 && n_tensors++ < 16)
        add_tensor(line, length, header, &header_length, &n_data);
    header[header_length++] = '}';
    uint64_t header_size = header_length - 8;
    memcpy(header, &header_size, sizeof header_size);
    for (size_t i = 0; i < n_data; i++)
        data[i] = end > at ? (unsigned char)at[i % (size_t)(end - at)] : 0;
    write_file(weights_name, header, header_length, data, n_data);
}

static inline void remove_file(const char *name)
{
    char path[128];
    path_of(name, path);
    unlink(path);
}

/* Makes the directory, which `remove` is to remove at the end. */
static inline void make_directory(void (*remove)(void))
{
    if (strcmp(directory, "/tmp/wfs-fuzz-XXXXXX") == 0)
        require(mkdtemp(directory) != NULL && atexit(remove) == 0);
}

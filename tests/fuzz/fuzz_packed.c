/* Packed weights of any shapes: what says how they are packed, and tensors that a packing might take for its own.
 *
 * An input is a line of config.json, lines "NAME DTYPE SHAPE BYTES", one empty line, and bytes that are repeated as
 * often as the tensors need. Holds: a weight that is not refused can be read, all of it or any part, and is the same.
 */
#include "models/shown.h"

#include "tests/fuzz/read_tensors.h"

#include <fcntl.h>

enum { MOST_BYTES = 1 << 15, MOST_DATA = 1 << 16, MOST_VALUES = 1 << 16, LINE_BYTES = 256 };

static char directory[] = "/tmp/wfs-fuzz-XXXXXX";

static void path_of(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", directory, name);
}

static void remove_directory(void)
{
    char path[128];
    path_of("config.json", path);
    unlink(path);
    path_of("model.safetensors", path);
    unlink(path);
    rmdir(directory);
}

static void write_file(const char *name, const void *head, size_t head_size, const void *data, size_t size)
{
    char path[128];
    path_of(name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, head, head_size) == (ssize_t)head_size && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

/* The next line, without its end; false at the end of the input. */
static bool next_line(const char **at, const char *end, const char **ret_line, size_t *ret_length)
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
static bool add_tensor(const char *line, size_t length, char *header, size_t *header_length, size_t *n_data)
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

static void write_model(const uint8_t *input, size_t size)
{
    static char header[8 + 2 * MOST_BYTES + 16 * LINE_BYTES];
    static unsigned char data[MOST_DATA];
    const char *at = (const char *)input, *end = at + size, *line = "";
    size_t length = 0, header_length = 9, n_data = 0, n_tensors = 0;
    header[8] = '{';
    if (next_line(&at, end, &line, &length))
        write_file("config.json", line, length, NULL, 0);
    while (next_line(&at, end, &line, &length) && length > 0 && n_tensors++ < 16)
        add_tensor(line, length, header, &header_length, &n_data);
    header[header_length++] = '}';
    uint64_t header_size = header_length - 8;
    memcpy(header, &header_size, sizeof header_size);
    for (size_t i = 0; i < n_data; i++)
        data[i] = end > at ? (unsigned char)at[i % (size_t)(end - at)] : 0;
    write_file("model.safetensors", header, header_length, data, n_data);
}

static void read_view(const struct view *view)
{
    static float whole[MOST_VALUES], part[MOST_VALUES];
    struct error error;
    read_ends(view);
    if (view->n_elements == 0 || view->n_elements > MOST_VALUES || view->dtype != &f32_dtype)
        return;
    uint64_t first = view->n_elements / 3, count = view->n_elements - first - view->n_elements / 5;
    if (!view_read(view, 0, view->n_units, whole, &error))
        require_one_line(&error);
    else
        require(view_read(view, first, count, part, &error) && memcmp(part, whole + first, count * sizeof *part) == 0);
}

static void unpack(const struct checkpoint *checkpoint)
{
    struct error error;
    struct packing_config config;
    struct plain_set plain;
    struct arena *arena = arena_new();
    struct shown shown = shown_of(checkpoint, arena);
    for (size_t i = 0; i < shown.set->n_tensors; i++) {
        const struct tensor *tensor = &shown.set->tensors[i];
        require((tensor->refusal == NULL) == (tensor->view != NULL) || !tensor->is_unpacked);
        if (tensor->is_unpacked && tensor->view != NULL)
            read_view(tensor->view);
    }
    if (packing_config_open(checkpoint, arena, &config, &error)) {
        const struct packing_input input = {arena, checkpoint->tensors, config.quantization, config.method,
                                            config.dtype};
        if (!packings_unpack(&input, &plain, &error))
            require_one_line(&error);
        else
            for (size_t i = 0; i < plain.set->n_tensors; i++)
                if (plain.unpacked != NULL && plain.unpacked[i] != NULL)
                    read_ends(tensor_view(&plain.set->tensors[i], arena));
        packing_config_close(&config);
    } else {
        require_one_line(&error);
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    const struct open_options options = {0};
    if (size > MOST_BYTES)
        return 0;
    if (strcmp(directory, "/tmp/wfs-fuzz-XXXXXX") == 0)
        require(mkdtemp(directory) != NULL && atexit(remove_directory) == 0);
    write_model(data, size);
    struct checkpoint *checkpoint = checkpoint_open(directory, &options, &error);
    if (checkpoint != NULL)
        unpack(checkpoint);
    else
        require_one_line(&error);
    checkpoint_close(checkpoint);
    return 0;
}

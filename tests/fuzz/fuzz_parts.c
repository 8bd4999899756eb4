/* Any headers as the safetensors files of several processes. Each line is the file of a rank, from 1 on: the number of
 * its data bytes, a space and its header.
 *
 * Holds for what is accepted: the elements are as many as dtype and shape say, and can be read. */
#include "formats/format.h"

#include "tests/fuzz/read_tensors.h"

#include <sys/stat.h>

enum { MOST_FILES = 8, MOST_DATA = 4096 };

/* In memory: a disk would take more time than the parsers. */
static char folder[] = "/dev/shm/wfs-fuzz-XXXXXX";

static void path_of_rank(unsigned rank, char path[sizeof folder + 64])
{
    snprintf(path, sizeof folder + 64, "%s/shard-%05u-model-00001-of-00001.safetensors", folder, rank);
}

static void write_file(unsigned rank, const char *line, size_t length)
{
    char path[sizeof folder + 64], number[8] = "";
    size_t digits = strspn(line, "0123456789");
    memcpy(number, line, digits < sizeof number ? digits : sizeof number - 1);
    size_t n_data = strtoul(number, NULL, 10) % MOST_DATA;
    size_t head = digits + (digits < length && line[digits] == ' ');
    unsigned char size[8] = {(length - head) & 0xff, (length - head) >> 8 & 0xff, (length - head) >> 16 & 0xff};
    path_of_rank(rank, path);
    FILE *file = fopen(path, "wb");
    require(file != NULL);
    fwrite(size, 1, sizeof size, file);
    fwrite(line + head, 1, length - head, file);
    for (size_t i = 0; i < n_data; i++)
        fputc((int)(i & 0xff), file);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct format *const formats[] = {&parts_format, NULL};
    const struct open_options options = {.partial = size % 2 == 0};
    char path[sizeof folder + 64];
    unsigned n_files = 0;
    strcpy(folder + sizeof folder - sizeof "XXXXXX", "XXXXXX");
    require(mkdtemp(folder) != NULL);
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t at = 0, length; at < size && n_files < MOST_FILES; at += length + 1) {
        const char *end = memchr(text + at, '\n', size - at);
        length = end != NULL ? (size_t)(end - text) - at : size - at;
        write_file(++n_files, text + at, length);
    }
    free(text);
    read_path(folder, formats, &options);
    for (; n_files > 0; n_files--) {
        path_of_rank(n_files, path);
        remove(path);
    }
    rmdir(folder);
    return 0;
}

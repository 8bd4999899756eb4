/* Replays inputs where there is no libFuzzer: each argument is a file, or a directory of them. */
#include "tests/fuzz/time_limit.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n_inputs;

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    size_t size = (size_t)ftell(file);
    uint8_t *data = malloc(size + 1);
    rewind(file);
    if (data == NULL || fread(data, 1, size, file) != size) {
        perror(path);
        exit(1);
    }
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last line names the input that a crash is about */
    limit_time(MOST_SECONDS);
    LLVMFuzzerTestOneInput(data, size);
    limit_time(0);
    free(data);
    n_inputs++;
}

static void replay_directory(DIR *directory, const char *path)
{
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char file[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        replay_file(file);
    }
    closedir(directory);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        DIR *directory = opendir(argv[i]);
        if (directory != NULL)
            replay_directory(directory, argv[i]);
        else
            replay_file(argv[i]);
    }
    printf("%u inputs\n", n_inputs);
    return n_inputs == 0;
}

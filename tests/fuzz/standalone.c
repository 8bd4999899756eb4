/* Replays inputs where there is no libFuzzer: each argument is a file, or a directory of them.
 *
 * An input that takes more than a second is a finding, as one that crashes. What is counted is the processor's time, so
 * that other programs do not matter; sanitizers make everything some ten times slower. */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || HAS_FEATURE(address_sanitizer) ||                   \
    HAS_FEATURE(thread_sanitizer)
enum { MOST_SECONDS = 10 };
#else
enum { MOST_SECONDS = 1 };
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n_inputs;

static void on_timeout(int signal)
{
    static const char message[] = "too slow: more than a second of the processor for one input (10 with sanitizers)\n";
    (void)signal;
    _exit(write(STDERR_FILENO, message, sizeof message - 1) < 0 ? 2 : 1);
}

static void limit_time(time_t seconds)
{
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

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
    signal(SIGPROF, on_timeout);
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

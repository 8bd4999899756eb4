/* Times of files: without options the newest input's, of requests apart from each other in seconds, and never later. */
#include "formats/checkpoint.h"
#include "fs/tree/identity.h"
#include "models/formats.h"

#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";

static struct timespec time_of(const char *request, time_t newest)
{
    struct error error;
    const struct checkpoint *checkpoint = checkpoint_open("model", formats, &(struct open_options){0}, &error);
    files_must(checkpoint != NULL, "model");
    struct file_request of = {request, {newest, 0}};
    struct source *const inputs[] = {checkpoint->sources[0], checkpoint->side_files[0].source};
    struct timespec time = file_time(inputs, 2, &of);
    checkpoint_close(checkpoint);
    return time;
}

/* Both files of the model are changed at these seconds and nanoseconds. */
static void set_times(time_t weights, time_t config, long nanoseconds)
{
    const struct timespec of_weights[2] = {{0, UTIME_OMIT}, {weights, nanoseconds}},
                          of_config[2] = {{0, UTIME_OMIT}, {config, nanoseconds}};
    files_must(utimensat(AT_FDCWD, "model/model.safetensors", of_weights, 0) == 0, "model.safetensors");
    files_must(utimensat(AT_FDCWD, "model/config.json", of_config, 0) == 0, "config.json");
}

static void test_source(void)
{
    set_times(1700000000, 1600000000, 5);
    struct timespec time = time_of(NULL, 0);
    CHECK(time.tv_sec == 1700000000 && time.tv_nsec == 5);
    set_times(1600000000, 1700000000, 6);
    time = time_of(NULL, 0);
    CHECK_NAMED(time.tv_sec == 1700000000 && time.tv_nsec == 6, "a small file that is newer counts");
}

static int compare(const void *a, const void *b)
{
    const time_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Pairs of n that are alike are n^2 / 2 / FILE_TIME_RANGE by chance, here 0.1. */
static void test_requests(void)
{
    enum { N = 400 };
    time_t seconds[N];
    bool in_range = true;
    size_t n_alike = 0;
    set_times(1700000000, 1700000000, 0);
    for (int i = 0; i < N; i++) {
        char request[32];
        snprintf(request, sizeof request, "lora=a:%d\n", i);
        seconds[i] = time_of(request, 0).tv_sec;
        in_range &= seconds[i] < 1700000000 && seconds[i] > 1700000000 - FILE_TIME_RANGE;
    }
    CHECK(in_range);
    qsort(seconds, N, sizeof *seconds, compare);
    for (int i = 1; i < N; i++)
        n_alike += seconds[i] == seconds[i - 1];
    CHECK(n_alike <= 2);
}

static bool is_same(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static void test_inputs(void)
{
    static const char request[] = "pure=\n";
    set_times(1700000000, 1600000000, 0);
    struct timespec first = time_of(request, 0);
    CHECK_NAMED(is_same(first, time_of(request, 0)), "equal");
    set_times(1700000000, 1500000000, 0);
    CHECK_NAMED(first.tv_sec != time_of(request, 0).tv_sec, "an older config.json is another one");
    set_times(1700000000, 1600000000, 0);
    CHECK_NAMED(first.tv_sec == time_of(request, 0).tv_sec, "and back");
    CHECK_NAMED(time_of(request, 1800000000).tv_sec > 1700000000, "a newer file that an option names counts");
    set_times(1, 1, 0);
    struct timespec early = time_of(request, 0);
    CHECK_NAMED(early.tv_sec > 1 && early.tv_sec < 1 + FILE_TIME_RANGE, "of 1970, later");
}

int main(void)
{
    files_begin();
    files_write_text("model/config.json", "{}");
    files_write_safetensors("model/model.safetensors", header, sizeof header - 1, 4);
    test_source();
    test_requests();
    test_inputs();
    files_remove();
    return check_done();
}

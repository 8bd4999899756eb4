/* Stages of long work, such as "comparing", for a program that shows how far it is. In other programs, which do not
 * call stage_watch(), stages do nothing. */
#pragma once

#include <stdint.h>

struct stage_watcher {
    void (*begin)(const char *name, uint64_t n_bytes);
    void (*add)(uint64_t n_bytes);
    void (*end)(void);
};

/* Sets who hears of all later stages of the process, which then has one stage at a time. Call it before there are
 * threads. */
void stage_watch(const struct stage_watcher *watcher);

/* A stage of `n_bytes` bytes begins, gets on, ends. Only one thread at a time may call stage_add(). */
void stage_begin(const char *name, uint64_t n_bytes);
void stage_add(uint64_t n_bytes);
void stage_end(void);

/* Which part of a copy this process makes: the value of --part, and what an array job's environment adds.
 *
 *     3/8    part 3 of 8
 *     /8     the number is that of the array job: Kubernetes, Slurm
 *     none   the number and the count are those of a Slurm array
 *
 * Sources: the documentation of sbatch and of indexed Jobs of Kubernetes. SLURM_ARRAY_TASK_COUNT is 1 if a single task
 * of an array is submitted again, so it counts only if it agrees with the first and last number. */
#pragma once

#include "base/error.h"

#include <stddef.h>

struct part_number {
    size_t number, count; /* 1 to count */
    const char *from;     /* the variable that holds the number; NULL: --part does */
};

/* Reports whether a word is a value of --part, right or wrong: digits, a slash, digits. */
bool part_number_is(const char *word);

/* Finds the number; `value` is that of --part, or NULL. Reads the environment. */
bool part_number_find(const char *value, struct part_number *ret_part, struct error *error);

/* Parses a number of parts, the value of --join. */
bool part_count_parse(const char *value, size_t *ret_count, struct error *error);

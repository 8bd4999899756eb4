/* The names of shards: STEM-00002-of-00005.SUFFIX, numbered from 1. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct shard_name {
    size_t stem_length; /* the stem is the beginning of the name */
    const char *suffix; /* within the name, with its dot: ".safetensors" */
    unsigned number, count;
};

/* False where the name is not that of a shard, or its number is not in 1 ... count. */
bool shard_name_parse(const char *name, struct shard_name *ret_parts);

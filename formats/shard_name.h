/* The names of shards: STEM-00002-of-00005.SUFFIX, numbered from 1. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct shard_name {
    size_t stem_length; /* bytes of the stem, with which the name begins */
    const char *suffix; /* within the name, with its dot: ".safetensors" */
    unsigned number, count;
};

/* Parses the name of a shard; returns false for other names, and for a number outside 1 ... count. */
bool shard_name_parse(const char *name, struct shard_name *ret_shard);

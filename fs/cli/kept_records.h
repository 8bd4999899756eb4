/* The records of sizes (base/record_file.h) of commands that serve files, opened before they enter the sandbox. */
#pragma once

#include "base/record_file.h"
#include "fs/options/options.h"

#include <stddef.h>

/* Opens the file with these flags. It is none if the options keep no sizes, or it cannot be used: nothing is said then.
 * The scope is that of the words: what these sources are called, without links. */
struct record_file open_records(int flags, const char *const *sources, size_t n, const struct options *options);

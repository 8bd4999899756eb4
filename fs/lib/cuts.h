/* Cuts: where files are divided into parts that take about equal time to compute.
 *
 * Positions count the bytes of all files, one file after the other. A cut is at the end of a file or at a multiple of
 * CUT_UNIT in it: two clients of a network file system that write to one page overwrite each other's bytes, and pages
 * have up to 64 KiB. A block or a tensor may lie across a cut: both workers compute what they need of it.
 *
 * A tensor of which any byte needs all of its sources first, as the methods of merges that compute statistics do, is
 * not divided: each worker would read all of them. Cuts are then before and after it, up to CUT_UNIT away.
 *
 * Cuts depend on the files and the number of parts alone, not on the machine. */
#pragma once

#include "fs/tree/vfile.h"

enum { CUT_UNIT = 64 * 1024 /* bytes */ };

/* Sets ret_ends[i] to the position where part i of `n_parts` ends; part 0 begins at 0, and the last one ends at the end
 * of the files. Parts may be empty. Equal cost is only approximate: convert_cost() and a constant for each byte. */
void cut_files(const struct vfile *const *files, size_t n_files, size_t n_parts, uint64_t *ret_ends);

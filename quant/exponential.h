/* The exponential as torch has it: exp() of Intel's MKL for vectors of F32, on processors of others than Intel.
 *
 * It is not rounded correctly for one value in a hundred, and the files of the converter have its bits. Its steps were
 * found by trying: with these there is no difference from torch 2.9.1 (MKL 2024.2, AMD) in 50 million arguments over
 * the whole range, and in all whose result is nearly too small or too large. */
#pragma once

float exponential(float x);

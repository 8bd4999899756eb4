/* The exponential function as torch computes it: MKL's exp() for vectors of F32, on processors not made by Intel.
 *
 * One result in a hundred is not correctly rounded, and the converter's files contain these bits. The steps were found
 * by experiment: they equal torch 2.9.1 (MKL 2024.2, AMD) in 50 million arguments over the whole range, and in all
 * arguments with results near underflow or overflow. */
#pragma once

float exponential(float x);

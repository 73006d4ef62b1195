/* The seeds of the inputs on which kernels are judged, and the file that holds the one of a run.
 * Nobody knows a run's seed before its first verdict. Every seed is a number below 2^53, which JSON
 * holds exactly. */
#ifndef EVAL_JUDGE_SEEDS_H
#define EVAL_JUDGE_SEEDS_H

#include <stdint.h>

#include "base/error.h"

/* Reads the seed of the file. When there is none, writes one with a random seed first; processes
 * that do so at once agree. */
int seed_file_get(const char *path, uint64_t *seed, Error *err);

/* The seed that follows from another for a purpose ("again") and a text. It tells nothing of the
 * first. */
uint64_t seed_derive(uint64_t seed, const char *purpose, const char *text);

#endif

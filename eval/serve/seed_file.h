/* The file that holds the secret seed of a run: the inputs on which its kernels are judged. Nobody
 * knows it before the run's first verdict. */
#ifndef EVAL_SERVE_SEED_FILE_H
#define EVAL_SERVE_SEED_FILE_H

#include <stdint.h>

#include "base/error.h"

enum { SEED_BITS = 52 }; /* of a random seed: a number that --seed takes too */

/* Reads the seed of the file. When there is none, writes one with a random seed first; processes that
 * do so at once agree. */
int seed_file_get(const char *path, uint64_t *seed, Error *err);

#endif

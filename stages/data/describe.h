/* A short description of a candidate from its text alone, in fixed phrases, for a contrastive
 * analysis: "code2: 1 launch, 256 threads, float4, warp shuffle". */
#ifndef STAGES_DATA_DESCRIBE_H
#define STAGES_DATA_DESCRIBE_H

#include <stddef.h>

#include "base/buffer.h"

enum { DESCRIBE_MAX = 240 }; /* bytes of one description */

/* Appends the phrases for source[0..len) to out, separated by ", ". Equal sources give equal texts.
 * The source need not be valid CUDA. Returns -1 when out is full. */
int describe_source(const char *source, size_t len, Buffer *out);

#endif

/* A short regular description of any candidate, from its text alone: the phrases of a contrastive
 * analysis ("code2: 1 launch, 256 threads, float4, warp shuffle"). */
#ifndef STAGES_TEACHER_DESCRIBE_H
#define STAGES_TEACHER_DESCRIBE_H

#include <stddef.h>

#include "base/buffer.h"

enum { DESCRIBE_MAX = 240 }; /* bytes that one description may have */

/* Append the phrase list of source[0..len) to out, separated by ", "; equal sources, equal text.
 * The source need not be valid CUDA. -1: out is full. */
int describe_source(const char *source, size_t len, Buffer *out);

#endif

/* The answer's format, taught in stage 1 and asked for in every prompt (reference: method, Table
 * 3):
 *
 *   ## Performance Analysis
 *   ...
 *   ## Algorithm Design
 *   ...
 *   ## Code Implementation
 *   ```cuda
 *   ...
 *   ```
 */
#ifndef STAGES_DATA_ANSWER_H
#define STAGES_DATA_ANSWER_H

#include <stddef.h>

#include "base/buffer.h"

/* Append an answer made of its three parts. */
void answer_write(Buffer *out, const char *analysis, const char *design, const char *code);

/* The candidate inside an answer: the last fenced block after the "Code" heading, or the last
 * fenced block at all. Returns its start and length in *len (0 and NULL when there is none, or when
 * the fence never closes: a truncated answer is never graded as a whole one). */
const char *answer_code(const char *text, size_t n, size_t *len);

#endif

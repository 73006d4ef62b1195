/* The format of an answer. Stage 1 teaches it and every prompt asks for it (reference: method,
 * Table 3):
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

/* Appends an answer made of its three parts to out. */
void answer_write(Buffer *out, const char *analysis, const char *design, const char *code);

/* Finds the candidate in an answer: the last fenced block after the last "## Code" heading, or else
 * the last fenced block of the text. Returns its start within text and sets *len. Returns NULL and
 * sets *len to 0 when there is no block. A block whose fence does not close is none: a truncated
 * answer must not be judged as a whole one. */
const char *answer_code(const char *text, size_t n, size_t *len);

#endif

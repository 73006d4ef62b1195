/* The format of an answer. Stage 1 teaches it and every prompt asks for it (reference: method,
 * Table 3). A heading may have any number of hash symbols:
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
#ifndef EVAL_CANDIDATE_ANSWER_H
#define EVAL_CANDIDATE_ANSWER_H

#include <stddef.h>

#include "base/buffer.h"

/* Appends an answer made of its three parts to out. */
void answer_write(Buffer *out, const char *analysis, const char *design, const char *code);

/* Finds the candidate in an answer: the last fenced block after the last "## Code" heading, or else
 * the last fenced block of the text. Returns its start within text and sets *len. Returns NULL and
 * sets *len to 0 when there is no block. A block whose fence does not close is none: a truncated
 * answer must not be judged as a whole one. */
const char *answer_code(const char *text, size_t n, size_t *len);

/* Appends a sentence that tells the writer of an answer what to change in its form: the answer was
 * cut, it has no fenced block, a block is not closed, or several blocks hold code. cut: the token
 * limit ended it. Returns 0, or -1 when there is nothing to say; then nothing is appended. */
int answer_advice(const char *text, size_t n, int cut, Buffer *out);

#endif

/* The name of the variable that a line of a source reads without a value. */
#ifndef EVAL_CANDIDATE_UNDEFINED_NAME_H
#define EVAL_CANDIDATE_UNDEFINED_NAME_H

#include <stddef.h>

/* Finds the first identifier of line `line` (from 1) whose nearest declaration at or above the line
 * has no initialiser, and copies it to out. Returns 1, or 0 when there is none. The source is read
 * as text: a name is help for a reader, never a verdict. */
int undefined_name(const char *source, size_t len, int line, char *out, size_t size);

#endif

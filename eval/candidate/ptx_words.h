/* Iterate over the words of a PTX text, for questions that need no parser. Comments and strings are
 * skipped. */
#ifndef EVAL_CANDIDATE_PTX_WORDS_H
#define EVAL_CANDIDATE_PTX_WORDS_H

#include <stddef.h>

/* The first word at or after p, with its length in *n; NULL when there is none. A word has letters,
 * digits, '_', '$' and '%'. */
const char *ptxwords_next(const char *p, size_t *n);

#endif

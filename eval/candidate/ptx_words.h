/* The words of a PTX text, for questions that need no parser. */
#ifndef EVAL_CANDIDATE_PTX_WORDS_H
#define EVAL_CANDIDATE_PTX_WORDS_H

#include <stddef.h>

/* The first word at p or behind it, in no comment and no string, with its length; NULL: there is
 * none. A word is letters, digits,
 * '_', '$' and '%'. */
const char *ptxwords_next(const char *p, size_t *n);

#endif

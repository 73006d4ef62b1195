/* The regular expressions of pre-tokenizers, as Oniguruma matches them: alternatives from left to right,
 * greedy runs that give back. There are literals, sets, \p{X} of general categories, \s \S \d \r \n \t,
 * ?, *, +, {m,n} and possessive runs of one character, groups that occur at most once, (?i:...) of ASCII,
 * looking ahead and $. Anything else is refused, never approximated. */
#ifndef MODEL_REGEX_H
#define MODEL_REGEX_H

#include <stddef.h>

#include "base/error.h"

typedef struct Regex Regex;

int regex_compile(const char *pattern, size_t len, Regex **out, Error *err);
void regex_free(Regex *r);

enum { REGEX_NONE = -1, REGEX_HARD = -2 };

/* Finds the end of the match that begins at `at` of well-formed UTF-8. Returns its length, REGEX_NONE, or
 * REGEX_HARD where it takes more than 64 steps for each byte of the text, and a million. */
long regex_match(const Regex *r, const char *s, size_t n, size_t at);

#endif

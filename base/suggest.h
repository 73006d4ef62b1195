/* The nearest known name to a misspelt one, for "did you mean ...?". */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

/* Returns the name of names[0..n) with the least edit distance (insertions, deletions, substitutions
 * and swaps of neighbours; case counts half), or NULL if none is within a third of its length. */
const char *suggest_name(const char *word, const char *const *names, int n);

#endif

/* Sorted arrays of numbers and of texts. */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stddef.h>

void sort_doubles(double *v, size_t n);
void sort_texts(char **v, size_t n); /* by their bytes */
/* For qsort, bsearch and tsearch: of elements that begin with a pointer to a text, or with the text. */
int sort_by_text(const void *a, const void *b);
int sort_by_name(const void *a, const void *b);

#endif

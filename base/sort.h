/* Sorted arrays of numbers and of texts. */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stddef.h>

void sort_doubles(double *v, size_t n);
void sort_texts(char **v, size_t n); /* by their bytes */

#endif

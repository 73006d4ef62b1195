/* Sorting calls qsort of the C library. */
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int sort_by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int sort_by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

void sort_doubles(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
}

void sort_texts(char **v, size_t n)
{
    qsort(v, n, sizeof *v, sort_by_text);
}

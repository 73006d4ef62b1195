/* Allocation that never returns NULL. A program that is out of memory prints one sentence and exits;
 * artifacts and journals are written so that nothing is lost. QUERN_TEST=refuse=N makes the N-th
 * call fail, for tests. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>

void *memory_alloc(size_t bytes);              /* zeroed; bytes 0 gives a valid pointer */
void *memory_array(size_t count, size_t size); /* zeroed; dies on overflow of count*size */
void *memory_grow(void *old, size_t count, size_t size); /* realloc of count*size, not zeroed */
/* Makes room for one more element of an array that has n, and memory for cap. */
#define memory_room(array, n, cap, least)                                 \
    do {                                                                  \
        if ((size_t)(n) == (size_t)(cap)) {                               \
            (cap) = (cap) ? 2 * (cap) : (least);                          \
            (array) = memory_grow(array, (size_t)(cap), sizeof *(array)); \
        }                                                                 \
    } while (0)
char *memory_strdup(const char *s);
char *memory_strndup(const char *s, size_t n);
char *memory_vprintf(const char *fmt, va_list ap);
char *memory_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Zeroed memory of which untouched pages cost nothing; it is released with its size. */
void *memory_sparse(size_t count, size_t size);
void memory_sparse_free(void *p, size_t count, size_t size);

/* Advice: [p, p + bytes) is used from one end to the other. A fault of a large page costs a tenth of those of
 * its small ones. */
void memory_huge(void *p, size_t bytes);

/* For a short program that needs large arrays again and again: freed memory stays with the process. */
void memory_keep(void);

#endif

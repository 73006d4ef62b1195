/* A growable byte buffer with a maximum. data is never NULL after buffer_init, and a NUL that len does
 * not count always follows it. An append past max writes nothing, sets `full` and returns -1. */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdarg.h>
#include <stddef.h>

typedef struct {
    char *data;
    size_t len, cap, max;
    int full;
} Buffer;

void buffer_init(Buffer *b, size_t max);
void buffer_release(Buffer *b); /* frees the memory */
void buffer_clear(Buffer *b);   /* len = 0, keeps the memory */
int buffer_append(Buffer *b, const void *data, size_t len);
int buffer_puts(Buffer *b, const char *s);
int buffer_printf(Buffer *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *buffer_detach(Buffer *b); /* the caller frees the result; the buffer is empty afterwards */

#endif

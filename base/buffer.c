/* A buffer doubles its memory until it reaches its maximum. */
#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The data of every buffer that has no memory yet; its cap is 0. It is only ever written a NUL. */
static char empty[1];

void buffer_init(Buffer *b, size_t max)
{
    *b = (Buffer){.data = empty, .max = max};
}

void buffer_release(Buffer *b)
{
    if (b->cap) free(b->data);
    *b = (Buffer){0};
}

void buffer_clear(Buffer *b)
{
    b->len = 0;
    b->full = 0;
    if (b->data) b->data[0] = 0;
}

/* Makes room for len more bytes and the NUL. */
static int reserve(Buffer *b, size_t len)
{
    if (len > b->max || b->len > b->max - len) {
        b->full = 1;
        return -1;
    }
    size_t need = b->len + len + 1;
    if (need <= b->cap) return 0;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need) cap += cap / 2 + 64;
    b->data = memory_grow(b->cap ? b->data : NULL, cap, 1);
    b->cap = cap;
    return 0;
}

int buffer_append(Buffer *b, const void *data, size_t len)
{
    if (reserve(b, len)) return -1;
    if (len) memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = 0;
    return 0;
}

int buffer_puts(Buffer *b, const char *s)
{
    return buffer_append(b, s, strlen(s));
}

int buffer_printf(Buffer *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    int rc = n < 0 ? -1 : reserve(b, (size_t)n);
    if (!rc) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    return rc;
}

char *buffer_detach(Buffer *b)
{
    char *p = b->cap ? b->data : memory_alloc(1);
    buffer_init(b, b->max);
    return p;
}

/* Allocation that ends the process when memory is exhausted. */
#include "base/memory.h"

#include <limits.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/environment.h"
#include "base/exit_status.h"

enum { HUGE_PAGE = 2 << 20, SPARSE = 1 << 17 };

static _Noreturn void out_of_memory(size_t bytes)
{
    fprintf(stderr, "quern: out of memory: %zu bytes were refused\n", bytes);
    exit(EXIT_STATUS_SYSTEM);
}

/* -1: not read yet; 0: no injection; n: the n-th call from now fails. */
static long fail_countdown = -1;

static int injected(void)
{
    if (fail_countdown < 0) fail_countdown = environment_test("refuse");
    return fail_countdown > 0 && --fail_countdown == 0;
}

void *memory_array(size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) out_of_memory(SIZE_MAX);
    void *p = injected() ? NULL : calloc(count ? count : 1, size ? size : 1);
    if (!p) out_of_memory(count * size);
    return p;
}

void *memory_alloc(size_t bytes)
{
    return memory_array(1, bytes);
}

void *memory_grow(void *old, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) out_of_memory(SIZE_MAX);
    size_t bytes = count * size;
    void *p = injected() ? NULL : realloc(old, bytes ? bytes : 1);
    if (!p) out_of_memory(bytes);
    return p;
}

char *memory_strndup(const char *s, size_t n)
{
    char *p = memory_alloc(n + 1);
    memcpy(p, s, n);
    return p;
}

char *memory_strdup(const char *s)
{
    return memory_strndup(s, strlen(s));
}

char *memory_vprintf(const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *p = memory_alloc((size_t)(n < 0 ? 0 : n) + 1);
    vsnprintf(p, (size_t)(n < 0 ? 0 : n) + 1, fmt, again);
    va_end(again);
    return p;
}

char *memory_printf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = memory_vprintf(fmt, ap);
    va_end(ap);
    return p;
}

/* The heap clears what it gives again, all of it. */
void *memory_sparse(size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) out_of_memory(SIZE_MAX);
    if (count * size < SPARSE) return memory_array(count, size);
    void *p = injected() ? MAP_FAILED
                         : mmap(NULL, count * size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) out_of_memory(count * size);
    return p;
}

void memory_sparse_free(void *p, size_t count, size_t size)
{
    if (p && count * size >= SPARSE)
        (void)munmap(p, count * size);
    else
        free(p);
}

void memory_huge(void *p, size_t bytes)
{
    const uintptr_t large = HUGE_PAGE - 1;
    uintptr_t from = ((uintptr_t)p + large) & ~large, end = ((uintptr_t)p + bytes) & ~large;
    if (end > from) (void)madvise((void *)from, end - from, MADV_HUGEPAGE); /* only advice */
}

void memory_keep(void)
{
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_ARENA_MAX, 1); /* those of threads are given back by the heap */
}

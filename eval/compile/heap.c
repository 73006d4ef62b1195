/* Blocks of a size class are taken from the list of freed ones, else from the end of what is used. There are
 * four classes to a power of two. */
#include "eval/compile/heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__ /* which replaces some of those below */
#define __libc_malloc malloc
#define __libc_calloc calloc
#define __libc_realloc realloc
#define __libc_memalign memalign
#define __libc_free free
#else
/* Of glibc, below the functions that a program may replace. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
#endif

enum { STEPS = 4, CLASSES = STEPS * 32, FIRST_BITS = 4 /* the smallest class has 16 bytes */ };

static const size_t room = (size_t)512 << 20;
static char *const fixed = (char *)0x500000000000;

typedef struct {
    uint32_t size_class, skip; /* skip: bytes between the block's begin and this */
    uint64_t unused;           /* keeps the alignment */
} Head;

static char *base; /* NULL: the range is not mapped */
static size_t used;
static void *freed[CLASSES];
static int begun;
static atomic_flag busy = ATOMIC_FLAG_INIT;

void heap_map(void)
{
    if (base) return;
    void *p = mmap(fixed, room, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED) return;
    (void)madvise(p, room, MADV_HUGEPAGE); /* only advice: fewer faults */
    base = p;
}

size_t heap_room(void)
{
    return base ? room : 0;
}

void heap_begin(void)
{
    begun = base != NULL;
}

static int is_own(const void *p)
{
    return base && (const char *)p >= base && (const char *)p < base + room;
}

static size_t class_bytes(int size_class)
{
    size_t whole = (size_t)1 << (size_class / STEPS + FIRST_BITS);
    return whole + whole / STEPS * (size_t)(size_class % STEPS);
}

static int class_of(size_t bytes)
{
    int size_class = 0;
    if (bytes > 16) size_class = (63 - __builtin_clzll(bytes) - FIRST_BITS) * STEPS;
    while (class_bytes(size_class) < bytes) size_class++;
    return size_class;
}

/* A block with its head. NULL: no room. *fresh: it holds zeros. */
static char *take(size_t bytes, int *size_class, int *fresh)
{
    char *p = NULL;
    *fresh = 0;
    if (bytes > room) return NULL;
    *size_class = class_of(bytes);
    size_t whole = (class_bytes(*size_class) + HEAP_ALIGN - 1) / HEAP_ALIGN * HEAP_ALIGN;
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
    }
    if (freed[*size_class]) {
        p = freed[*size_class];
        memcpy(&freed[*size_class], p, sizeof(void *));
    } else if (whole <= room - used) {
        p = base + used;
        used += whole;
        *fresh = 1;
    }
    atomic_flag_clear_explicit(&busy, memory_order_release);
    return p;
}

static Head *head_of(void *p)
{
    return (Head *)(void *)((char *)p - sizeof(Head));
}

static void *allocate(size_t alignment, size_t bytes, int *fresh)
{
    int size_class;
    if (bytes > room) return NULL;
    if (!bytes) bytes = 1; /* or the last block's address would be the range's end */
    char *block =
        take(bytes + sizeof(Head) + (alignment > HEAP_ALIGN ? alignment : 0), &size_class, fresh);
    if (!block) return NULL;
    char *p = block + sizeof(Head);
    if (alignment > HEAP_ALIGN)
        p = (char *)(((uintptr_t)p + alignment - 1) / alignment * alignment);
    *head_of(p) = (Head){.size_class = (uint32_t)size_class,
                         .skip = (uint32_t)(p - block - (ptrdiff_t)sizeof(Head))};
    return p;
}

void *heap_malloc(size_t bytes)
{
    int fresh;
    void *p = begun ? allocate(HEAP_ALIGN, bytes, &fresh) : NULL;
    return p ? p : __libc_malloc(bytes);
}

void *heap_calloc(size_t n, size_t bytes)
{
    int fresh;
    size_t all;
    if (__builtin_mul_overflow(n, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    void *p = begun ? allocate(HEAP_ALIGN, all, &fresh) : NULL;
    if (!p) return __libc_calloc(n, bytes);
    return fresh ? p : memset(p, 0, all);
}

void *heap_aligned(size_t alignment, size_t bytes)
{
    int fresh;
    void *p = begun && alignment <= room ? allocate(alignment, bytes, &fresh) : NULL;
    return p ? p : __libc_memalign(alignment, bytes);
}

/* Of a block of this heap. */
static size_t usable(void *p)
{
    const Head *h = head_of(p);
    return class_bytes((int)h->size_class) - h->skip - sizeof *h;
}

void heap_free(void *p)
{
    if (!is_own(p)) {
        __libc_free(p);
        return;
    }
    Head *h = head_of(p);
    int size_class = (int)h->size_class;
    char *block = (char *)h - h->skip;
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
    }
    memcpy(block, &freed[size_class], sizeof(void *));
    freed[size_class] = block;
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

void *heap_realloc(void *p, size_t bytes)
{
    if (!p) return heap_malloc(bytes);
    if (!is_own(p)) return __libc_realloc(p, bytes);
    size_t had = usable(p);
    if (bytes && bytes <= had) return p;
    if (!bytes) {
        heap_free(p);
        return NULL;
    }
    void *to = heap_malloc(bytes);
    if (!to) return NULL;
    memcpy(to, p, had);
    heap_free(p);
    return to;
}

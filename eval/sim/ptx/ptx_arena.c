/* The arena is a list of zeroed chunks of at least 64 KiB; an allocation never moves. */
#include "eval/sim/ptx/ptx_arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct ArenaChunk {
    struct ArenaChunk *next;
    size_t used, cap;
    _Alignas(16) unsigned char data[];
} ArenaChunk;

struct PtxArena {
    ArenaChunk *head;
};

PtxArena *ptx_arena_new(void)
{
    return memory_alloc(sizeof(PtxArena));
}

void *ptx_arena_alloc(PtxArena *a, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (!a->head || a->head->cap - a->head->used < bytes) {
        size_t cap = bytes > 65536 ? bytes : 65536;
        ArenaChunk *c = memory_alloc(sizeof *c + cap);
        c->cap = cap;
        c->next = a->head;
        a->head = c;
    }
    void *p = a->head->data + a->head->used;
    a->head->used += bytes;
    return p;
}

char *ptx_arena_text(PtxArena *a, const char *s, size_t len)
{
    char *d = ptx_arena_alloc(a, len + 1);
    memcpy(d, s, len);
    return d;
}

void ptx_arena_free(PtxArena *a)
{
    if (!a) return;
    for (ArenaChunk *c = a->head, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(a);
}

void *ptx_push(void *array, int *n, int *cap, size_t size)
{
    if (*n == *cap) {
        *cap = *cap ? *cap * 2 : 16;
        array = memory_grow(array, (size_t)*cap, size);
    }
    memset((char *)array + (size_t)*n * size, 0, size);
    (*n)++;
    return array;
}

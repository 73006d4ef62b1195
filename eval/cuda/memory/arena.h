/* The layout of the buffers' address range: bookkeeping only, without CUDA calls. Offsets [0,
 * mapped) are backed by extents in order. Each buffer has at least ARENA_GUARD bytes on both sides.
 * All bytes outside of buffers are guard zones and hold poison, so that a write past a bound is
 * found at any distance. */
#ifndef EVAL_CUDA_MEMORY_ARENA_H
#define EVAL_CUDA_MEMORY_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    ARENA_GUARD = 64 << 10,
    ARENA_ALIGN = 256,
    ARENA_PAGE = 2 << 20,     /* large buffers start on a page, as with cuMemAlloc */
    ARENA_MAX_BUFFERS = 8192, /* two sides with up to four sets of a deep network's tensors */
    ARENA_MAX_EXTENTS = 256,
    ARENA_LABEL = 64
};

typedef struct {
    uint64_t at, bytes; /* the requested size */
    char label[ARENA_LABEL];
} ArenaBuffer;

typedef struct {
    uint64_t at, bytes;
} ArenaZone;

typedef struct {
    uint64_t mapped, limit; /* bytes backed by memory, and their bound */
    uint64_t floor;         /* the first buffer's place; the caller sets it while there are none */
    int n, n_extents;
    ArenaBuffer buffers[ARENA_MAX_BUFFERS]; /* by address */
    ArenaZone extents[ARENA_MAX_EXTENTS];   /* each is one allocation of memory */
} Arena;

void arena_init(Arena *a, uint64_t limit);

/* Place a buffer. Returns 0 with *at; 1 when *grow more bytes (whole pages) must be mapped first,
 * then call again; -1 when the limit does not allow it or there are too many buffers. */
int arena_place(Arena *a, uint64_t bytes, const char *label, uint64_t *at, uint64_t *grow,
                Error *err);
/* The bytes that an extent must have for n buffers, placed in this order with nothing else in it. */
uint64_t arena_room(const size_t *bytes, int n);
/* Record that an extent of `bytes` was mapped at the end. */
int arena_grown(Arena *a, uint64_t bytes, Error *err);
/* How many of the last extents may be unmapped: no buffer needs them, and they lie beyond the first
 * `keep` bytes. */
int arena_spare(const Arena *a, uint64_t keep);
/* Record that so many extents were unmapped at the end. */
void arena_shrunk(Arena *a, int extents);

/* The buffer that starts at `at`; NULL: none. */
const ArenaBuffer *arena_at(const Arena *a, uint64_t at);
/* Whether [at, at + bytes) lies inside one buffer. */
int arena_holds(const Arena *a, uint64_t at, uint64_t bytes);
void arena_remove(Arena *a, uint64_t at);

/* Fill in the guard zones, ordered by address. Returns their number. */
int arena_zones(const Arena *a, ArenaZone zones[ARENA_MAX_BUFFERS + 1]);

/* The buffer whose bound was passed: the one nearest to a changed byte of a guard zone. */
typedef struct {
    const char *label; /* "" when there is no buffer */
    int before;        /* the write is before the buffer, else after it */
    uint64_t distance; /* from the buffer: 1 is the byte next to it */
} ArenaBlame;
/* lowest, highest: the first and the last changed byte of the zone. */
void arena_blame(const Arena *a, uint64_t lowest, uint64_t highest, ArenaBlame *out);

#endif

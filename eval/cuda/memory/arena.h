/* Which bytes of the shared address range are whose: bookkeeping alone, no CUDA call. The range is
 * [0, mapped) in offsets, backed by extents in order; buffers lie in it with at least ARENA_GUARD
 * bytes around each. All that is no buffer is a guard zone and holds poison, so a write past any
 * bound is found however far it went. */
#ifndef EVAL_CUDA_MEMORY_ARENA_H
#define EVAL_CUDA_MEMORY_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    ARENA_GUARD = 64 << 10,
    ARENA_ALIGN = 256,
    ARENA_PAGE = 2 << 20, /* large buffers start on a page, as an allocator of whole pages has it */
    ARENA_MAX_BUFFERS = 256,
    ARENA_MAX_EXTENTS = 256,
    ARENA_LABEL = 64
};

typedef struct {
    uint64_t at, bytes; /* as asked for */
    char label[ARENA_LABEL];
} ArenaBuffer;

typedef struct {
    uint64_t at, bytes;
} ArenaZone;

typedef struct {
    uint64_t mapped, limit; /* backed by memory; that may ever be */
    int n, n_extents;
    ArenaBuffer buffers[ARENA_MAX_BUFFERS]; /* by address */
    ArenaZone extents[ARENA_MAX_EXTENTS];   /* of one allocation of memory each */
} Arena;

void arena_init(Arena *a, uint64_t limit);

/* 0 and *at: the buffer has its place. 1: it has one once *grow more bytes (whole pages) are
 * mapped; ask again then. -1: the limit does not allow it, or there are too many. */
int arena_place(Arena *a, uint64_t bytes, const char *label, uint64_t *at, uint64_t *grow,
                Error *err);
int arena_grown(Arena *a, uint64_t bytes, Error *err); /* one extent more is mapped at the end */
/* The last extents that no buffer needs, beyond the first `keep` bytes: how many of them may be
 * unmapped. */
int arena_spare(const Arena *a, uint64_t keep);
void arena_shrunk(Arena *a, int extents);

/* The buffer that starts at `at`; NULL: none. */
const ArenaBuffer *arena_at(const Arena *a, uint64_t at);
/* Is [at, at + bytes) inside one buffer? */
int arena_holds(const Arena *a, uint64_t at, uint64_t bytes);
void arena_remove(Arena *a, uint64_t at);

/* The guard zones, by address; at most ARENA_MAX_BUFFERS + 1 of them. Returns how many. */
int arena_zones(const Arena *a, ArenaZone zones[ARENA_MAX_BUFFERS + 1]);

/* Which buffer's bound was passed, when a zone's lowest and highest changed bytes are these: the
 * nearer one. */
typedef struct {
    const char *label; /* "" when there is no buffer */
    int before;        /* the write is before the buffer, else after it */
    uint64_t distance; /* from the buffer: 1 is the byte next to it */
} ArenaBlame;
void arena_blame(const Arena *a, uint64_t lowest, uint64_t highest, ArenaBlame *out);

#endif

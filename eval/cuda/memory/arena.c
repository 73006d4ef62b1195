/* First fit by address. Buffers stay sorted by address and extents by order of mapping. */
#include "eval/cuda/memory/arena.h"

#include <stdio.h>
#include <string.h>

void arena_init(Arena *a, uint64_t limit)
{
    memset(a, 0, sizeof *a);
    a->limit = limit / ARENA_PAGE * ARENA_PAGE;
}

static uint64_t round_up(uint64_t v, uint64_t unit)
{
    return (v + unit - 1) / unit * unit;
}

static uint64_t end_of(const ArenaBuffer *b)
{
    return b->at + b->bytes;
}

/* Where a buffer starts when all addresses before `from` are taken. */
static uint64_t start_after(uint64_t from, uint64_t bytes)
{
    return round_up(from + ARENA_GUARD, bytes >= ARENA_PAGE / 2 ? ARENA_PAGE : ARENA_ALIGN);
}

static void insert(Arena *a, int i, uint64_t at, uint64_t bytes, const char *label)
{
    memmove(&a->buffers[i + 1], &a->buffers[i], (size_t)(a->n - i) * sizeof a->buffers[0]);
    a->buffers[i] = (ArenaBuffer){.at = at, .bytes = bytes};
    snprintf(a->buffers[i].label, sizeof a->buffers[i].label, "%s", label);
    a->n++;
}

uint64_t arena_room(const size_t *bytes, int n)
{
    uint64_t at = 0;
    for (int i = 0; i < n; i++) at = start_after(at, bytes[i]) + bytes[i];
    return round_up(at + ARENA_GUARD, ARENA_PAGE);
}

int arena_place(Arena *a, uint64_t bytes, const char *label, uint64_t *at, uint64_t *grow,
                Error *err)
{
    if (bytes > a->limit)
        return error_set(err, ERROR_LIMIT,
                         "%s takes %llu MiB; buffers may take %llu MiB of this GPU", label,
                         (unsigned long long)(bytes >> 20), (unsigned long long)(a->limit >> 20));
    if (a->n == ARENA_MAX_BUFFERS)
        return error_set(err, ERROR_LIMIT, "%s would be buffer number %d; %d are allowed", label,
                         a->n + 1, a->n);
    uint64_t from = a->floor;
    for (int i = 0; i <= a->n; i++) {
        uint64_t start = start_after(from, bytes), end = i < a->n ? a->buffers[i].at : a->mapped;
        if (start + bytes + ARENA_GUARD <= end) {
            insert(a, i, start, bytes, label);
            *at = start;
            return 0;
        }
        if (i < a->n) from = end_of(&a->buffers[i]);
    }
    uint64_t needed = round_up(start_after(from, bytes) + bytes + ARENA_GUARD, ARENA_PAGE);
    if (needed > a->limit || a->n_extents == ARENA_MAX_EXTENTS)
        return error_set(
            err, ERROR_LIMIT, "%s of %llu MiB does not fit: buffers may take %llu MiB of this GPU",
            label, (unsigned long long)(bytes >> 20), (unsigned long long)(a->limit >> 20));
    *grow = needed - a->mapped;
    return 1;
}

int arena_grown(Arena *a, uint64_t bytes, Error *err)
{
    if (a->n_extents == ARENA_MAX_EXTENTS || bytes % ARENA_PAGE || !bytes ||
        bytes > a->limit - a->mapped)
        return error_set(err, ERROR_LIMIT, "the arena cannot grow by %llu bytes beyond %llu",
                         (unsigned long long)bytes, (unsigned long long)a->mapped);
    a->extents[a->n_extents++] = (ArenaZone){a->mapped, bytes};
    a->mapped += bytes;
    return 0;
}

int arena_spare(const Arena *a, uint64_t keep)
{
    uint64_t used = a->n ? end_of(&a->buffers[a->n - 1]) + ARENA_GUARD : 0;
    int n = 0;
    if (used < keep) used = keep;
    while (n < a->n_extents && a->extents[a->n_extents - 1 - n].at >= used) n++;
    return n;
}

void arena_shrunk(Arena *a, int extents)
{
    while (extents-- > 0 && a->n_extents) a->mapped = a->extents[--a->n_extents].at;
}

const ArenaBuffer *arena_at(const Arena *a, uint64_t at)
{
    for (int i = 0; i < a->n; i++)
        if (a->buffers[i].at == at) return &a->buffers[i];
    return NULL;
}

int arena_holds(const Arena *a, uint64_t at, uint64_t bytes)
{
    for (int i = 0; i < a->n; i++)
        if (at >= a->buffers[i].at && at <= end_of(&a->buffers[i]) &&
            bytes <= end_of(&a->buffers[i]) - at)
            return 1;
    return 0;
}

void arena_remove(Arena *a, uint64_t at)
{
    const ArenaBuffer *b = arena_at(a, at);
    if (!b) return;
    int i = (int)(b - a->buffers);
    a->n--;
    memmove(&a->buffers[i], &a->buffers[i + 1], (size_t)(a->n - i) * sizeof a->buffers[0]);
}

int arena_zones(const Arena *a, ArenaZone zones[ARENA_MAX_BUFFERS + 1])
{
    int n = 0;
    uint64_t from = 0;
    for (int i = 0; i <= a->n; i++) {
        uint64_t end = i < a->n ? a->buffers[i].at : a->mapped;
        if (end > from) zones[n++] = (ArenaZone){from, end - from};
        if (i < a->n) from = end_of(&a->buffers[i]);
    }
    return n;
}

void arena_blame(const Arena *a, uint64_t lowest, uint64_t highest, ArenaBlame *out)
{
    *out = (ArenaBlame){.label = "", .distance = UINT64_MAX};
    for (int i = 0; i < a->n; i++) {
        const ArenaBuffer *b = &a->buffers[i];
        uint64_t end = end_of(b);
        if (lowest >= end && lowest - end + 1 < out->distance)
            *out = (ArenaBlame){b->label, 0, lowest - end + 1};
        if (highest < b->at && b->at - highest < out->distance)
            *out = (ArenaBlame){b->label, 1, b->at - highest};
    }
}

/* Buffers of the device "cuda:N". The mapped memory grows with the buffers and shrinks when there
 * are none; everything in it that is no buffer stays poisoned. */
#include "eval/cuda/buffers.h"

#include "eval/cuda/guards.h"
#include "eval/cuda/remote.h"

enum { LEAST_GROWTH = 64 << 20, MAX_EXTRA = 512 << 20 };
/* Memory that stays mapped when there is no buffer; more would make the guard checks slow. */
static const uint64_t kept_bytes = 64 << 20;
/* The largest reserved extent whose memory is kept for the next one of its size. */
static const uint64_t spare_bytes = (uint64_t)2 << 30;

static int add_extent(Device *d, uint64_t bytes, Error *err)
{
    uint64_t at = d->arena.mapped;
    /* The last candidate's process has mapped memory until its end. */
    if (cudarunner_reap(&d->remotes[HOME_LIBRARY].runner, err)) return -1;
    if (space_map(&d->space, at, bytes, err)) return -1;
    if (arena_grown(&d->arena, bytes, err)) {
        space_unmap(&d->space, at, bytes, 0);
        return -1;
    }
    d->zones_changed = 1;
    return trusted_poison(&d->trusted, d->space.base + at, bytes, err);
}

/* Map at least `needed` bytes more. The memory doubles, within bounds, so that many buffers do not
 * mean many extents. */
static int grow(Device *d, uint64_t needed, Error *err)
{
    uint64_t extra = d->arena.mapped < LEAST_GROWTH ? LEAST_GROWTH
                     : d->arena.mapped < MAX_EXTRA  ? d->arena.mapped
                                                    : MAX_EXTRA;
    uint64_t bytes = needed > extra ? needed : extra;
    return add_extent(d, bytes > d->arena.limit - d->arena.mapped ? needed : bytes, err);
}

/* The range of addresses may move until the first runner has taken it. */
static int settle_range(Device *d, Error *err)
{
    return !d->remotes[HOME_CANDIDATE].setup_generation &&
                   !d->remotes[HOME_TRUSTED].setup_generation &&
                   !d->remotes[HOME_LIBRARY].setup_generation
               ? remote_need(d, &d->remotes[HOME_CANDIDATE], err)
               : 0;
}

int buffers_alloc(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err)
{
    uint64_t at = 0, more = 0;
    if (settle_range(d, err)) return -1;
    int rc = arena_place(&d->arena, bytes, label, &at, &more, err);
    if (rc == 1)
        rc = grow(d, more, err) ? -1 : arena_place(&d->arena, bytes, label, &at, &more, err);
    if (rc)
        return rc < 0 ? -1
                      : error_set(err, ERROR_INVALID,
                                  "%s does not fit the memory that was made for it", label);
    d->zones_changed = 1;
    *out = d->space.base + at;
    return 0;
}

int buffers_reserve(Device *d, const size_t *bytes, int n, Error *err)
{
    Arena *a = &d->arena;
    uint64_t room = arena_room(bytes, n);
    if (a->n || room <= a->mapped - a->floor || room > a->limit - a->mapped) return 0;
    if (settle_range(d, err) || add_extent(d, room, err)) return -1;
    a->floor = a->mapped - room;
    return 0;
}

static void shrink(Device *d)
{
    Error err;
    int n = arena_spare(&d->arena, kept_bytes);
    uint64_t reserved = d->arena.floor;
    d->arena.floor = 0;
    if (trusted_settle(&d->trusted, &err) || !n || remote_unmap(d, n, &err)) return;
    for (int i = 0; i < n; i++) {
        const ArenaZone *x = &d->arena.extents[d->arena.n_extents - 1 - i];
        int keep = reserved && x->at == reserved && x->bytes <= spare_bytes;
        space_unmap(&d->space, x->at, x->bytes, keep);
    }
    arena_shrunk(&d->arena, n);
    d->zones_changed = 1;
}

void buffers_free(Device *d, DevicePtr p)
{
    const ArenaBuffer *b = p ? arena_at(&d->arena, p - d->space.base) : NULL;
    if (!b) return;
    /* A device that fails here reports it at the next wait. */
    trusted_poison(&d->trusted, p, b->bytes, NULL);
    arena_remove(&d->arena, b->at);
    d->zones_changed = 1;
    if (d->arena.n) return;
    shrink(d);
    /* Nothing checked the zones after a candidate whose launches were refused: the next candidate
     * would be blamed for its writes. */
    guards_poison(d);
    /* Wait, or the GPU's lock would be shared until the next job. */
    trusted_settle(&d->trusted, NULL);
}

int buffers_hold(Device *d, DevicePtr p, size_t bytes, Error *err)
{
    if (p >= d->space.base && arena_holds(&d->arena, p - d->space.base, bytes)) return 0;
    return error_set(err, ERROR_INVALID,
                     "a host access of %zu bytes at 0x%llx is in no buffer of the device", bytes,
                     (unsigned long long)p);
}

void buffers_close(Device *d)
{
    if (!d->space.base) return;
    trusted_settle(&d->trusted, NULL);
    while (d->arena.n_extents) {
        const ArenaZone *x = &d->arena.extents[d->arena.n_extents - 1];
        space_unmap(&d->space, x->at, x->bytes, 0);
        arena_shrunk(&d->arena, 1);
    }
    space_close(&d->space);
}

/* Buffers of the device "cuda:N": places in the arena, memory behind them, poison between them. */
#include <stdio.h>
#include <string.h>

#include "eval/cuda/cuda_device.h"

enum { LEAST_GROWTH = 64 << 20, MOST_EXTRA = 512 << 20 };
static const uint64_t kept_bytes =
    64 << 20; /* mapped when there is no buffer: guard zones cost time to look at */

/* As much again as there is, within bounds, so that many buffers do not mean many extents. */
static int grow(Device *d, uint64_t needed, Error *err)
{
    uint64_t extra = d->arena.mapped < LEAST_GROWTH ? LEAST_GROWTH
                     : d->arena.mapped < MOST_EXTRA ? d->arena.mapped
                                                    : MOST_EXTRA;
    uint64_t bytes = needed > extra ? needed : extra, at = d->arena.mapped;
    if (bytes > d->arena.limit - at) bytes = needed;
    if (space_map(&d->space, at, bytes, err)) return -1;
    if (arena_grown(&d->arena, bytes, err)) {
        space_unmap(&d->space, at, bytes);
        return -1;
    }
    d->zones_changed = 1;
    return trusted_poison(&d->trusted, d->space.base + at, bytes, err);
}

int buffers_alloc(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err)
{
    uint64_t at = 0, more = 0;
    /* The range may move until the first runner has taken it. */
    if (!d->remotes[HOME_CANDIDATE].set_up && !d->remotes[HOME_TRUSTED].set_up &&
        remote_need(d, &d->remotes[HOME_CANDIDATE], err))
        return -1;
    int rc = arena_place(&d->arena, bytes, label, &at, &more, err);
    if (rc == 1)
        rc = grow(d, more, err) ? -1 : arena_place(&d->arena, bytes, label, &at, &more, err);
    if (rc)
        return rc < 0 ? -1
                      : error_set(err, ERROR_DEVICE,
                                  "%s does not fit the memory that was made for it", label);
    d->zones_changed = 1;
    *out = d->space.base + at;
    return 0;
}

static void shrink(Device *d)
{
    Error err;
    int n = arena_spare(&d->arena, kept_bytes);
    if (trusted_settle(&d->trusted, &err) || !n || remote_unmap(d, n, &err)) return;
    for (int i = 0; i < n; i++) {
        const ArenaZone *x = &d->arena.extents[d->arena.n_extents - 1 - i];
        space_unmap(&d->space, x->at, x->bytes);
    }
    arena_shrunk(&d->arena, n);
    d->zones_changed = 1;
}

void buffers_free(Device *d, DevicePtr p)
{
    const ArenaBuffer *b = p ? arena_at(&d->arena, p - d->space.base) : NULL;
    if (!b) return;
    trusted_poison(&d->trusted, p, b->bytes,
                   NULL); /* a device that fails says so at the next wait */
    arena_remove(&d->arena, b->at);
    d->zones_changed = 1;
    if (d->arena.n) return;
    shrink(d);
    buffers_poison_guards(d); /* a candidate whose launches were refused was not looked at: the next
                                 would be blamed */
    trusted_settle(&d->trusted, NULL); /* or the GPU would be shared until the next job */
}

int buffers_hold(Device *d, DevicePtr p, size_t bytes, Error *err)
{
    if (p >= d->space.base && arena_holds(&d->arena, p - d->space.base, bytes)) return 0;
    return error_set(err, ERROR_DEVICE,
                     "a host access of %zu bytes at 0x%llx is in no buffer of the device", bytes,
                     (unsigned long long)p);
}

void buffers_close(Device *d)
{
    if (!d->space.base) return;
    trusted_settle(&d->trusted, NULL);
    while (d->arena.n_extents) {
        const ArenaZone *x = &d->arena.extents[d->arena.n_extents - 1];
        space_unmap(&d->space, x->at, x->bytes);
        arena_shrunk(&d->arena, 1);
    }
    space_close(&d->space);
}

/* ---- guard zones ---- */

static void tell_zones(Device *d)
{
    ArenaZone zones[ARENA_MAX_BUFFERS + 1];
    HarnessZone table[ARENA_MAX_BUFFERS + 1];
    if (!d->zones_changed) return;
    int n = arena_zones(&d->arena, zones);
    for (int i = 0; i < n; i++)
        table[i] = (HarnessZone){d->space.base + zones[i].at,
                                 d->space.base + zones[i].at + zones[i].bytes};
    trusted_set_zones(&d->trusted, table, n);
    d->zones_changed = 0;
}

void buffers_poison_guards(Device *d)
{
    ArenaZone zones[ARENA_MAX_BUFFERS + 1];
    int n = arena_zones(&d->arena, zones);
    for (int i = 0; i < n; i++)
        trusted_poison(&d->trusted, d->space.base + zones[i].at, zones[i].bytes, NULL);
}

int buffers_check_guards(Device *d, DeviceFault *fault, Error *err)
{
    int zone = 0;
    CuPtr lowest = 0, highest = 0;
    ArenaBlame blame;
    tell_zones(d);
    int rc = trusted_zones(&d->trusted, &zone, &lowest, &highest, err);
    if (rc <= 0) return rc;
    arena_blame(&d->arena, lowest - d->space.base, highest - d->space.base, &blame);
    memset(fault, 0, sizeof *fault);
    fault->outcome = OUTCOME_OUT_OF_BOUNDS;
    snprintf(fault->message, sizeof fault->message,
             "a kernel wrote outside its buffers: the byte %llu %s %s has changed; check every "
             "index that is written against the bounds "
             "of its tensor",
             (unsigned long long)blame.distance,
             blame.before ? "before the start of" : "after the end of",
             *blame.label ? blame.label : "every buffer");
    buffers_poison_guards(d);
    return 1;
}

int buffers_expect(Device *d, const DeviceExpected *list, int n, int guards, Error *err)
{
    if (guards) tell_zones(d);
    return trusted_expect(&d->trusted, list, n, guards, err);
}

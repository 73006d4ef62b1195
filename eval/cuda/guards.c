/* Guard zones of the device "cuda:N": the table of zones follows the arena, and a changed byte is
 * blamed on the nearest buffer. */
#include "eval/cuda/guards.h"

#include <stdio.h>
#include <string.h>

_Static_assert(ARENA_MAX_BUFFERS + 1 <= TRUSTED_MAX_ZONES, "every zone is checked");

/* Give the harness's kernels the table of zones when it has changed. */
static void update_zones(Device *d)
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

void guards_poison(Device *d)
{
    ArenaZone zones[ARENA_MAX_BUFFERS + 1];
    int n = arena_zones(&d->arena, zones);
    for (int i = 0; i < n; i++)
        trusted_poison(&d->trusted, d->space.base + zones[i].at, zones[i].bytes, NULL);
}

int guards_check(Device *d, Fault *fault)
{
    int zone = 0;
    CuPtr lowest = 0, highest = 0;
    ArenaBlame blame;
    update_zones(d);
    int rc = trusted_zones(&d->trusted, &zone, &lowest, &highest, &fault->error);
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
    guards_poison(d);
    return 1;
}

int guards_expect(Device *d, const DeviceExpected *list, int n, int check_zones, Error *err)
{
    if (check_zones) update_zones(d);
    return trusted_expect(&d->trusted, list, n, check_zones, err);
}

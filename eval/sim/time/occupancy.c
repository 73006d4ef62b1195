/* The limits are those of NVIDIA's occupancy calculator, by compute capability. */
#include "eval/sim/time/occupancy.h"

#include <string.h>

static uint64_t round_up(uint64_t x, uint64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

int occupancy_of(const Profile *p, uint64_t threads_per_block, int registers, uint64_t shared_bytes,
                 Occupancy *out, Error *err)
{
    if (threads_per_block < 1 || threads_per_block > (uint64_t)p->threads_per_block)
        return error_set(err, ERROR_LIMIT, "a block of %llu threads: 1 to %d expected",
                         (unsigned long long)threads_per_block, p->threads_per_block);
    if (shared_bytes > p->shared_per_block)
        return error_set(err, ERROR_LIMIT,
                         "%llu bytes of shared memory in a block: at most %u on %s",
                         (unsigned long long)shared_bytes, p->shared_per_block, p->arch);
    uint64_t warps = round_up(threads_per_block, 32) / 32;
    /* Registers are allocated to warps in units, and each scheduler owns a quarter of them. */
    uint64_t per_warp =
        round_up((uint64_t)(registers > 0 ? registers : 1) * 32, (uint64_t)p->register_unit);
    uint64_t warps_by_registers = (uint64_t)p->registers_per_sm / 4 / per_warp * 4;
    if (warps_by_registers < warps)
        return error_set(err, ERROR_LIMIT,
                         "%d registers a thread in a block of %llu threads need more than the %d "
                         "of an SM: use fewer threads, or __launch_bounds__",
                         registers, (unsigned long long)threads_per_block, p->registers_per_sm);
    uint64_t shared = round_up(shared_bytes + p->shared_reserved, p->shared_unit);
    struct {
        uint64_t blocks;
        const char *name;
    } limits[] = {{(uint64_t)p->warps_per_sm / warps, "threads"},
                  {(uint64_t)p->blocks_per_sm, "blocks"},
                  {warps_by_registers / warps, "registers"},
                  {p->shared_per_sm / shared, "shared memory"}};
    int least = 0;
    for (int i = 1; i < 4; i++)
        if (limits[i].blocks < limits[least].blocks) least = i;
    out->warps_per_block = (int)warps;
    out->blocks_per_sm = (int)limits[least].blocks;
    out->limit = limits[least].name;
    out->occupancy = (double)(limits[least].blocks * warps) / p->warps_per_sm;
    return 0;
}

int occupancy_of_counts(const Profile *p, const SimCounts *c, Occupancy *out, Error *err)
{
    return occupancy_of(p, (uint64_t)c->block[0] * c->block[1] * c->block[2], c->registers,
                        (uint64_t)c->static_shared + c->dynamic_shared, out, err);
}

int occupancy_of_arch(const char *arch, uint64_t threads_per_block, int registers,
                      uint64_t shared_bytes, Occupancy *out)
{
    for (int i = 0; profile_at(i); i++)
        if (!strcmp(profile_at(i)->arch, arch))
            return occupancy_of(profile_at(i), threads_per_block, registers, shared_bytes, out,
                                NULL);
    return -1;
}

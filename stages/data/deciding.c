/* One pass over a table of counters, each with the times of the resources that it bears on. */
#include "stages/data/deciding.h"

#include <math.h>

/* more: the counter is better when it is higher. best: the best that it can be; 0: not known. A warp
 * moves 32 floats in 4 sectors. */
static const struct {
    const char *name, *label, *change, *time[3];
    int more;
    double best;
} counters[] = {
    {"launches", "the number of launches", "launches fewer kernels", {"time_launch_us"}, 0, 1},
    {"dram_bytes", "DRAM traffic", "moves less to and from DRAM", {"time_dram_us"}, 0},
    {"l2_sectors", "L2 traffic", "asks L2 for fewer sectors", {"time_l2_us", "time_dram_us"}, 0},
    {"sectors_per_load",
     "coalescing of loads",
     "coalesces its loads",
     {"time_l1_us", "time_l2_us", "time_dram_us"},
     0,
     4},
    {"sectors_per_store",
     "coalescing of stores",
     "coalesces its stores",
     {"time_l1_us", "time_l2_us", "time_dram_us"},
     0,
     4},
    {"warp_instructions", "instructions", "issues fewer instructions", {"time_issue_us"}, 0},
    {"active_lanes", "idle lanes", "keeps more lanes of a warp at work", {"time_issue_us"}, 1, 32},
    {"shared_wavefronts",
     "shared-memory traffic",
     "goes to shared memory less often",
     {"time_l1_us", "time_lsu_us"},
     0},
    {"local_sectors", "spills", "spills less", {"time_l1_us", "time_l2_us"}, 0},
    {"barriers", "barriers", "waits at fewer barriers", {"time_latency_us"}, 0},
    {"waits_per_warp", "waits for memory", "waits less often for memory", {"time_latency_us"}, 0},
    {"occupancy", "occupancy", "keeps more warps resident", {"time_latency_us"}, 1, 1},
    {"global_atomics", "atomics", "needs fewer atomics", {"time_atomic_us"}, 0},
};

/* Returns a counter's value, or -1. */
static double value_of(const View *map, const char *name)
{
    double v;
    Error err;
    return view_has(map, name) && !view_float(map, name, &v, &err) && isfinite(v) && v >= 0 ? v
                                                                                            : -1;
}

/* Returns the largest share of the kernel's whole time that the resources of counter i take. */
static double share_of(const View *map, int i)
{
    double whole =
               fmax(value_of(map, "time_kernels_us"), 0) + fmax(value_of(map, "time_launch_us"), 0),
           largest = 0;
    for (int k = 0; k < 3 && counters[i].time[k]; k++)
        largest = fmax(largest, value_of(map, counters[i].time[k]));
    return whole > 0 ? fmin(largest / whole, 1) : 0;
}

/* Returns log2 of the factor by which counter i is better; 0: it is not, or is not there. */
static double gain_of(int i, double fast, double slow)
{
    double over = counters[i].more ? fast : slow, under = counters[i].more ? slow : fast;
    if (fast < 0 || slow < 0 || over <= 1.1 * under) return 0;
    return under > 0 ? fmin(log2(over / under), 3) : 3;
}

int deciding_counter(const View *fast, const View *slow, Deciding *out)
{
    View f, s;
    Error err;
    double largest = 0;
    if (!fast->map || !slow->map || !view_has(fast, "counters") || !view_has(slow, "counters") ||
        view_map(fast, "counters", &f, &err) || view_map(slow, "counters", &s, &err))
        return 0;
    for (int i = 0; i < (int)(sizeof counters / sizeof *counters); i++) {
        double a = value_of(&f, counters[i].name), b = value_of(&s, counters[i].name);
        double weight = gain_of(i, a, b) * share_of(&s, i);
        if (weight <= largest) continue;
        largest = weight;
        *out = (Deciding){counters[i].name, counters[i].label, counters[i].change, a, b,
                          share_of(&s, i)};
    }
    return largest > 0;
}

/* Returns how much counter i of value v costs: 0 when it is at its best, or is not there. */
static double cost_of(const View *map, int i, double v)
{
    double best = counters[i].best, far = 0.5; /* log2 of how far it is from the best */
    if (v < 0 || (v == 0 && !counters[i].more)) return 0;
    if (best > 0 && counters[i].more) far = v > 0 ? log2(best / v) : 3;
    if (best > 0 && !counters[i].more) far = log2(v / best);
    return fmax(0, fmin(far, 3)) * share_of(map, i);
}

int deciding_worst(const View *verdict, Deciding *out, int n)
{
    enum { COUNTERS = sizeof counters / sizeof *counters };
    View map;
    Error err;
    double cost[COUNTERS];
    int found = 0;
    if (!verdict->map || !view_has(verdict, "counters") ||
        view_map(verdict, "counters", &map, &err))
        return 0;
    for (int i = 0; i < COUNTERS; i++) cost[i] = cost_of(&map, i, value_of(&map, counters[i].name));
    while (found < n) {
        int worst = 0;
        for (int i = 1; i < COUNTERS; i++)
            if (cost[i] > cost[worst]) worst = i;
        if (cost[worst] <= 0) break;
        cost[worst] = 0;
        out[found++] = (Deciding){counters[worst].name,
                                  counters[worst].label,
                                  counters[worst].change,
                                  0,
                                  value_of(&map, counters[worst].name),
                                  share_of(&map, worst)};
    }
    return found;
}

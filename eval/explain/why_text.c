/* The sentences about one kernel: its limit, the ideal, its lines, and what usually helps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/explain/why.h"

static double count_of(const Verdict *v, const char *name)
{
    for (int i = 0; v->timing && i < v->timing->n_counters; i++)
        if (!strcmp(v->timing->counters[i].name, name)) return v->timing->counters[i].value;
    return NAN;
}

static int limit_of(const Verdict *v, Limit *out)
{
    Counters c;
    if (!v->timing) return -1;
    counters_of(v->timing->counters, v->timing->n_counters, &c);
    return why_limit(&c, out);
}

/* One sentence: the limiting resource of an ok verdict, its share, and the best time possible. */
static void limit_text(const Verdict *v, Buffer *out)
{
    Limit l;
    if (limit_of(v, &l)) {
        buffer_puts(out, "The counters do not tell what limits the kernel.");
        return;
    }
    buffer_printf(out, "It is limited by %s, %.0f%% of its %s%.4g us%s.", l.text, 100 * l.share,
                  l.of_peak ? "peak over " : "", v->time_us, v->predicted ? " (predicted)" : "");
    if (v->light_us > 0)
        buffer_printf(out,
                      " The task's %s need %.4g us at best: the kernel reaches %.0f%% of that.",
                      v->light_is_flops ? "arithmetic operations" : "bytes", v->light_us,
                      100 * v->light_us / v->time_us);
}

/* Advice, the first that applies. A condition is a counter above (or below) a bound. */
typedef struct {
    const char *limit; /* the resource, or NULL: any */
    const char *counter;
    double above, below; /* 0: no bound */
    const char *text;
} Advice;

static const Advice advice[] = {
    {NULL, "local_sectors", 1, 0,
     "Registers spill to local memory: keep fewer values alive in a thread, or a smaller tile."},
    {"launch overhead", NULL, 0, 0,
     "Most of the time is not spent in kernels: merge launches into one kernel."},
    {"the start of blocks", NULL, 0, 0,
     "Blocks are too short: launch fewer, and let each work on more elements."},
    {"DRAM", "sector_bytes_used", 0, 0.8,
     "Threads use a part of each 32-byte sector: let neighbouring threads of a warp access "
     "neighbouring addresses, through a tile in shared memory where the layout is turned."},
    {"DRAM", "*excess", 1.3, 0,
     "It moves more bytes than the task needs: read each input once, keep it in registers or "
     "shared memory, and merge the passes."},
    {"DRAM", NULL, 0, 0,
     "It moves about the bytes that the task needs. What is left to gain is small: 16-byte "
     "accesses, and several of them in flight for each thread."},
    {"L2 and the ports to it", "sector_bytes_used", 0, 0.8,
     "Threads use a part of each 32-byte sector: let neighbouring threads of a warp access "
     "neighbouring addresses."},
    {"L2 and the ports to it", NULL, 0, 0,
     "The same data is read from L2 again and again: use larger tiles in shared memory or "
     "registers, so that a block reads each value once."},
    {"L1 and shared memory", "bank_conflicts", 1, 0,
     "Shared memory has bank conflicts: pad the rows of the tile by one word, or swizzle the "
     "column by the row."},
    {"L1 and shared memory", "shared_wavefronts", 1, 0,
     "Each value from shared memory is used too little: let a thread compute a tile of outputs in "
     "registers, and read 16 bytes at a time."},
    {"L1 and shared memory", NULL, 0, 0,
     "Each request moves little: read 16 bytes a thread, and keep values in registers."},
    {"the load-store unit", NULL, 0, 0,
     "There are too many loads and stores: read 16 bytes a thread (float4), and let a thread "
     "compute several outputs from the values that it has."},
    {"tensor cores", NULL, 0, 0,
     "Tensor cores are busy: what is left is a smaller type, or less arithmetic."},
    {"special functions", NULL, 0, 0,
     "Compute each exponential, root or reciprocal once and keep it; the fast forms (__expf, "
     "__frcp_rn) cost less."},
    {"integer arithmetic", NULL, 0, 0,
     "Indices cost more than the values: take divisions and remainders out of the loop, and add to "
     "pointers."},
    {"fp32 arithmetic", NULL, 0, 0,
     "Use fewer operations; a matrix product belongs on tensor cores where the tolerance allows."},
    {"fp64 arithmetic", NULL, 0, 0, "Compute in fp32 where the tolerance allows."},
    {"shuffles", NULL, 0, 0, "Reduce in registers before lanes exchange values."},
    {"issue slots", "active_lanes", 0, 24,
     "Many lanes of a warp are idle: let the lanes of a warp take the same branch."},
    {"issue slots", NULL, 0, 0,
     "There are too many instructions for each value: read 16 bytes at a time, unroll the loop, "
     "and take index arithmetic out of it."},
    {"atomics", NULL, 0, 0,
     "Add up inside the warp and the block first, and do one atomic a block."},
    {NULL, "waves", 0, 0.5,
     "The grid does not fill the GPU: give each row or tile to more blocks."},
    {"latency that nothing hides", "*spread", 0, 0.6,
     "The grid does not fill the GPU, or a few blocks work much longer than the rest: give each "
     "row "
     "or tile to more blocks, of equal work."},
    {NULL, "occupancy", 0, 0.4,
     "Few warps are resident: use fewer registers or less shared memory a block, or start several "
     "loads before the first use."},
    {NULL, NULL, 0, 0,
     "Threads wait: start several independent loads before the first use (unroll), replace block "
     "barriers by warp shuffles, and copy the next tile while this one is used."},
};
enum { ADVICE = sizeof advice / sizeof *advice };

/* A counter; or *excess: the time of the DRAM traffic, divided by the time of the least bytes; or
 * *spread: the mean time at work of the multiprocessors, as a share of the busiest one's. */
static double figure(const Verdict *v, const char *name)
{
    if (!strcmp(name, "*spread"))
        return count_of(v, "active_cycles") / count_of(v, "kernel_cycles");
    if (strcmp(name, "*excess") != 0) return count_of(v, name);
    return v->light_is_flops || v->light_us <= 0 ? NAN : count_of(v, "time_dram_us") / v->light_us;
}

static int applies(const Verdict *v, const Advice *a, const Limit *l)
{
    if (a->limit && strcmp(a->limit, l->text) != 0) return 0;
    if (!a->counter) return 1;
    double value = figure(v, a->counter);
    return a->above > 0 ? value > a->above : value < a->below;
}

void why_advice(const Verdict *v, Buffer *out)
{
    Limit l;
    if (limit_of(v, &l)) return;
    for (int i = 0; i < ADVICE; i++)
        if (applies(v, &advice[i], &l)) {
            buffer_puts(out, advice[i].text);
            return;
        }
}

/* Appends line number `line` of the source without its indentation. */
static void source_line(const char *source, int line, Buffer *out)
{
    while (--line > 0 && (source = strchr(source, '\n'))) source++;
    if (!source) return;
    source += strspn(source, " \t");
    size_t n = strcspn(source, "\r\n");
    buffer_printf(out, "        %.*s\n", (int)(n < 100 ? n : 100), source);
}

void why_text(const Verdict *v, const char *source, Buffer *out)
{
    limit_text(v, out);
    buffer_puts(out, "\n");
    for (int i = 0; v->timing && i < v->timing->n_lines; i++) {
        int line = atoi(v->timing->lines[i] + strlen("line "));
        buffer_printf(out, "    %s\n", v->timing->lines[i]);
        source_line(source, line, out);
    }
    buffer_puts(out, "What usually helps: ");
    why_advice(v, out);
    buffer_puts(out, "\n");
}

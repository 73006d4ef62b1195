/* A table of resources, one of a GPU's units, and one of counters; the bits of a counter tell on
 * which resources it bears. */
#include "eval/explain/why.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    BY_DRAM = 1,
    BY_L2 = 2,
    BY_L1 = 4,
    BY_ISSUE = 8,
    BY_LATENCY = 16,
    BY_LAUNCH = 32,
    BY_ATOMIC = 64,
    BY_TENSOR = 128
};

/* By the time of each alone, on a simulator. L2 and the ports have one name: what a store costs one
 * of them by the time model, a GPU shows as a busy unit of the other. */
static const struct {
    const char *time, *text;
    unsigned bit;
} resources[] = {
    {"time_dram_us", "DRAM", BY_DRAM},
    {"time_l2_us", "L2 and the ports to it", BY_L2},
    {"time_l2_port_us", "L2 and the ports to it", BY_L2},
    {"time_l1_us", "L1 and shared memory", BY_L1},
    {"time_lsu_us", "the load-store unit", BY_L1},
    {"time_issue_us", "issue slots", BY_ISSUE},
    {"time_fp32_us", "fp32 arithmetic", BY_ISSUE},
    {"time_int_us", "integer arithmetic", BY_ISSUE},
    {"time_sfu_us", "special functions", BY_ISSUE},
    {"time_fp16_us", "fp16 arithmetic", BY_ISSUE},
    {"time_fp64_us", "fp64 arithmetic", BY_ISSUE},
    {"time_shuffle_us", "shuffles", BY_ISSUE},
    {"time_tensor_us", "tensor cores", BY_TENSOR},
    {"time_atomic_us", "atomics", BY_ATOMIC},
    {"time_block_start_us", "the start of blocks", BY_LAUNCH},
    {"time_latency_us", "latency that nothing hides", BY_LATENCY},
    {"time_launch_us", "launch overhead", BY_LAUNCH},
};
enum { RESOURCES = sizeof resources / sizeof *resources };

/* The units of a GPU, by their share of their peak: while the multiprocessors are at work, or of
 * the time of the range around the launches. */
typedef enum { WHILE_ACTIVE, OF_RANGE } ShareOf;
static const struct {
    const char *percent;
    ShareOf of;
    const char *text;
    unsigned bit;
} units[] = {
    {"dram_busy_pct", OF_RANGE, "DRAM", BY_DRAM},
    {"l2_busy_pct", OF_RANGE, "L2 and the ports to it", BY_L2},
    {"l2_data_busy_pct", OF_RANGE, "L2 and the ports to it", BY_L2},
    {"l2_tag_busy_pct", OF_RANGE, "L2 and the ports to it", BY_L2},
    {"l2_atomic_busiest_pct", OF_RANGE, "atomics", BY_ATOMIC},
    {"l2_port_read_busy_pct", WHILE_ACTIVE, "L2 and the ports to it", BY_L2},
    {"l2_port_write_busy_pct", WHILE_ACTIVE, "L2 and the ports to it", BY_L2},
    {"l1_busy_pct", WHILE_ACTIVE, "L1 and shared memory", BY_L1},
    {"l1_reads_busy_pct", WHILE_ACTIVE, "L1 and shared memory", BY_L1},
    {"l1_writes_busy_pct", WHILE_ACTIVE, "L1 and shared memory", BY_L1},
    {"lsu_requests_busy_pct", WHILE_ACTIVE, "the load-store unit", BY_L1},
    {"lsu_busy_pct", WHILE_ACTIVE, "the load-store unit", BY_L1},
    {"issue_slots_busy_pct", WHILE_ACTIVE, "issue slots", BY_ISSUE},
    {"fma_busy_pct", WHILE_ACTIVE, "fp32 arithmetic", BY_ISSUE},
    {"alu_busy_pct", WHILE_ACTIVE, "integer arithmetic", BY_ISSUE},
    {"fma_heavy_busy_pct", WHILE_ACTIVE, "integer arithmetic", BY_ISSUE},
    {"xu_busy_pct", WHILE_ACTIVE, "special functions", BY_ISSUE},
    {"fp16_busy_pct", WHILE_ACTIVE, "fp16 arithmetic", BY_ISSUE},
    {"fp16_of_fma_busy_pct", WHILE_ACTIVE, "fp16 arithmetic", BY_ISSUE},
    {"fp64_busy_pct", WHILE_ACTIVE, "fp64 arithmetic", BY_ISSUE},
    {"tensor_pipe_busy_pct", WHILE_ACTIVE, "tensor cores", BY_TENSOR},
    {"tensor_cycles_busy_pct", WHILE_ACTIVE, "tensor cores", BY_TENSOR},
};
enum { UNITS = sizeof units / sizeof *units };

/* `less` or `more` completes "it ..." when the counter falls or grows; a counter without both is
 * shown but explains nothing. */
static const struct {
    const char *name, *label, *unit, *less, *more;
    unsigned bears_on;
} shown[] = {
    {"launches", "kernel launches", "", "launches fewer kernels", NULL, BY_LAUNCH},
    {"dram_bytes", "DRAM traffic", "B", "moves less to and from DRAM", NULL, BY_DRAM},
    {"l2_sectors", "L2 sectors", "", "asks L2 for fewer sectors", NULL, BY_L2 | BY_DRAM},
    {"sector_bytes_used", "sector bytes used", "", NULL,
     "coalesces better (share of each sector used)", BY_L1 | BY_L2 | BY_DRAM},
    {"warp_instructions", "warp instructions", "", "issues fewer instructions", NULL, BY_ISSUE},
    {"active_lanes", "active lanes a warp", "", NULL, "keeps more lanes of a warp at work",
     BY_ISSUE},
    {"shared_wavefronts", "shared-memory wavefronts", "", "spends fewer shared-memory wavefronts",
     NULL, BY_L1},
    {"bank_conflicts", "bank conflicts", "", "has fewer bank conflicts", NULL, BY_L1},
    {"local_sectors", "spilled sectors", "", "spills less to local memory", NULL, BY_L1 | BY_L2},
    {"barriers", "barriers", "", "waits at fewer barriers", NULL, BY_LATENCY},
    {"waits_per_warp", "waits for memory a warp", "", "waits less often for memory", NULL,
     BY_LATENCY},
    {"global_atomics", "global atomics", "", "needs fewer atomics", NULL, BY_ATOMIC},
    {"occupancy", "occupancy", "", NULL, "keeps more warps resident (occupancy)", BY_LATENCY},
    {"registers", "registers a thread", "", NULL, NULL, 0},
};
enum { SHOWN = sizeof shown / sizeof *shown };

double counters_get(const Counters *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->v[i].name, name)) return c->v[i].value;
    return NAN;
}

void counters_of(const DeviceCounter *v, int n, Counters *out)
{
    out->n = n;
    memcpy(out->v, v, (size_t)n * sizeof *v);
}

void why_number(double v, const char *unit, char *out, size_t size)
{
    if (*unit == 'B') {
        static const char *const scale[] = {"B", "KB", "MB", "GB", "TB"};
        int k = 0;
        while (fabs(v) >= 1000 && k < 4) v /= 1000, k++;
        snprintf(out, size,
                 v < 10 && k    ? "%.2f %s"
                 : v < 100 && k ? "%.1f %s"
                                : "%.0f %s",
                 v, scale[k]);
        return;
    }
    if (fabs(v) < 1000 || isnan(v)) {
        double r = round(v);
        snprintf(out, size,
                 fabs(v - r) < 1e-9 ? "%.0f%s%s"
                 : fabs(v) < 10     ? "%.2f%s%s"
                                    : "%.1f%s%s",
                 v, *unit ? " " : "", unit);
        return;
    }
    char digits[40];
    size_t n = (size_t)snprintf(digits, sizeof digits, "%.0f", v), at = 0;
    for (size_t i = 0; i < n && at + 2 < size; i++) {
        if (i && digits[i - 1] != '-' && (n - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    snprintf(out + at, size - at, "%s%s", *unit ? " " : "", unit);
}

/* Below this share of its peak no unit of a GPU limits a kernel: the kernel waits. */
static const double busy_share = 0.5;

/* Returns the part of the range around the launches in which a kernel runs; 1 when it is not
 * counted. */
static double part_of_range(const Counters *c)
{
    double part = counters_get(c, "kernel_cycles") / counters_get(c, "range_cycles");
    return part > 0 && part < 1 ? part : 1;
}

/* Tells whether atomics make most of the work of shared memory. */
static int is_shared_atomic(const Counters *c)
{
    return counters_get(c, "shared_atomic_wavefronts") >
           0.5 * counters_get(c, "shared_wavefronts_sum");
}

static int limit_of_gpu(const Counters *c, Limit *out)
{
    double part = part_of_range(c);
    *out = (Limit){0};
    for (int i = 0; i < UNITS; i++) {
        double v = counters_get(c, units[i].percent) / 100 / (units[i].of == OF_RANGE ? part : 1);
        if (v > out->share) *out = (Limit){units[i].text, v, units[i].bit, 1};
    }
    if (!out->text) return -1;
    if (out->bit == BY_L1 && is_shared_atomic(c)) out->text = "atomics", out->bit = BY_ATOMIC;
    if (out->share < busy_share)
        *out = (Limit){"latency that nothing hides", 1 - out->share, BY_LATENCY, 0};
    out->share = fmin(out->share, 1);
    return 0;
}

int why_limit(const Counters *c, Limit *out)
{
    double kernels = counters_get(c, "time_kernels_us"), launch = counters_get(c, "time_launch_us"),
           all = kernels + (isnan(launch) ? 0 : launch), longest = 0;
    *out = (Limit){0};
    for (int i = 0; i < RESOURCES; i++) {
        double v = counters_get(c, resources[i].time);
        if (isnan(v) || v <= longest) continue;
        longest = v;
        *out = (Limit){resources[i].text, all > 0 ? fmin(v / all, 1) : NAN, resources[i].bit, 0};
    }
    return out->text ? 0 : limit_of_gpu(c, out);
}

/* ---- two kernels ---- */

/* Returns a counter, and NAN for a share of requests when there are none. */
static double shown_get(const Counters *c, int i)
{
    double v = counters_get(c, shown[i].name);
    return v == 0 && !strcmp(shown[i].name, "sector_bytes_used") ? NAN : v;
}

/* A call of the vendor's library executes instructions that nobody counts. */
static int is_counted(const Counters *c)
{
    return c->n && counters_get(c, "warp_instructions") != 0;
}

int why_rows(const Counters *before, const Counters *after, CounterRow out[WHY_ROWS])
{
    int n = 0;
    if (!is_counted(before) || !is_counted(after)) return 0;
    for (int i = 0; i < SHOWN && n < WHY_ROWS; i++) {
        double a = shown_get(before, i), b = shown_get(after, i);
        if (isnan(a) || isnan(b) || fabs(b - a) <= 0.01 * fabs(a)) continue;
        int better = shown[i].less ? (b < a ? 1 : -1) : shown[i].more ? (b > a ? 1 : -1) : 0;
        out[n++] = (CounterRow){shown[i].label, shown[i].unit, a, b, better};
    }
    return n;
}

/* Returns the factor by which a counter improved; 1 when it explains nothing. A count that became
 * zero is a factor of ten. */
static double gain(const Counters *before, const Counters *after, int i)
{
    double a = shown_get(before, i), b = shown_get(after, i);
    if (isnan(a) || isnan(b)) return 1;
    if (shown[i].less && a > 0) return b > 0 ? a / b : 10;
    if (shown[i].more && a > 0) return b / a;
    return 1;
}

static void clause(const Counters *before, const Counters *after, int i, const char *lead,
                   Buffer *out)
{
    char a[40], b[40];
    why_number(counters_get(before, shown[i].name), shown[i].unit, a, sizeof a);
    why_number(counters_get(after, shown[i].name), shown[i].unit, b, sizeof b);
    buffer_printf(out, "%s%s: %s instead of %s", lead,
                  shown[i].less ? shown[i].less : shown[i].more, b, a);
}

/* Returns the counter that improved most among the ones that bear on any of `bits`; -1 when none
 * improved by a twentieth. */
static int max_gained(const Counters *before, const Counters *after, unsigned bits, int except)
{
    int best = -1;
    for (int i = 0; i < SHOWN; i++)
        if ((shown[i].bears_on & bits) && i != except &&
            gain(before, after, i) > (best < 0 ? 1.05 : gain(before, after, best)))
            best = i;
    return best;
}

void why_difference(const Counters *before, const Counters *after, const char *before_name,
                    const char *after_name, Buffer *out)
{
    Limit was, is;
    if (before->n && !is_counted(before)) {
        buffer_printf(out, "%s calls the vendor's library, whose instructions are not counted.",
                      before_name);
        return;
    }
    if (after->n && !is_counted(after)) {
        buffer_printf(out, "%s calls the vendor's library, whose instructions are not counted.",
                      after_name);
        return;
    }
    int known = !why_limit(before, &was), first = -1;
    if (known) {
        buffer_printf(out, "%s is limited most by %s. ", before_name, was.text);
        first = max_gained(before, after, was.bit, -1);
    }
    if (first < 0) first = max_gained(before, after, ~0u, -1);
    int second = first < 0 ? -1 : max_gained(before, after, ~0u, first);
    if (first >= 0) {
        buffer_printf(out, "%s ", after_name);
        clause(before, after, first, "", out);
        if (second >= 0) clause(before, after, second, "; it also ", out);
        buffer_puts(out, ".");
    } else if (after->n)
        buffer_puts(
            out,
            "None of the counters below got better: what changed is how well waiting is hidden.");
    if (!why_limit(after, &is) && (!known || is.text != was.text))
        buffer_printf(out, " It is limited most by %s.", is.text);
}

/* Explains with counters why a kernel is faster than its baseline. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

/* The resources that can limit a kernel, each with the counter of its time alone and a bit. The
 * bits in `shown` tell which counters bear on a resource. */
enum {
    BY_DRAM = 1,
    BY_L2 = 2,
    BY_L1 = 4,
    BY_ISSUE = 8,
    BY_LATENCY = 16,
    BY_LAUNCH = 32,
    BY_ATOMIC = 64
};
static const struct {
    const char *name, *text;
    unsigned bit;
} resources[] = {
    {"time_dram_us", "DRAM", BY_DRAM},
    {"time_l2_us", "L2", BY_L2},
    {"time_l1_us", "L1 and shared memory", BY_L1},
    {"time_lsu_us", "the load-store unit", BY_L1},
    {"time_issue_us", "issue slots", BY_ISSUE},
    {"time_fp32_us", "fp32 arithmetic", BY_ISSUE},
    {"time_int_us", "integer arithmetic", BY_ISSUE},
    {"time_sfu_us", "special functions", BY_ISSUE},
    {"time_atomic_us", "atomics", BY_ATOMIC},
    {"time_latency_us", "latency that nothing hides", BY_LATENCY},
    {"time_launch_us", "launch overhead", BY_LAUNCH},
};
enum { RESOURCES = sizeof resources / sizeof *resources };

/* The counters of the report. `less` or `more` completes "it ..." when the counter falls or grows;
 * a counter without both is shown but explains nothing. */
static const struct {
    const char *name, *label, *unit, *less, *more;
    unsigned bears_on;
} shown[] = {
    {"launches", "kernel launches", "", "launches fewer kernels", NULL, BY_LAUNCH},
    {"dram_bytes", "DRAM traffic", "B", "moves less to and from DRAM", NULL, BY_DRAM},
    {"l2_sectors", "L2 sectors", "", "asks L2 for fewer sectors", NULL, BY_L2 | BY_DRAM},
    {"sectors_per_load", "sectors per load", "", "coalesces its loads better (sectors a request)",
     NULL, BY_L1 | BY_L2 | BY_DRAM},
    {"sectors_per_store", "sectors per store", "",
     "coalesces its stores better (sectors a request)", NULL, BY_L1 | BY_L2 | BY_DRAM},
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

void explain_number(double v, const char *unit, char *out, size_t size)
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
    out[at] = 0;
}

/* Returns a counter, and NAN for an average over requests when there are none. */
static double shown_get(const Counters *c, int i)
{
    double v = counters_get(c, shown[i].name);
    return v == 0 && !strncmp(shown[i].name, "sectors_per_", 12) ? NAN : v;
}

int explain_rows(const ReportTask *t, CounterRow out[EXPLAIN_ROWS])
{
    int n = 0;
    if (!isnan(t->time_us) && t->source)
        out[n++] = (CounterRow){t->predicted ? "predicted time" : "time", "µs", t->baseline_us,
                                t->time_us};
    for (int i = 0; i < SHOWN && n < EXPLAIN_ROWS; i++) {
        double base = shown_get(&t->baseline, i), best = shown_get(&t->best, i);
        if (isnan(base) || isnan(best) || fabs(best - base) <= 0.01 * fabs(base)) continue;
        out[n++] = (CounterRow){shown[i].label, shown[i].unit, base, best};
    }
    return n;
}

/* Returns the factor by which a counter improved; 1 when it explains nothing. A count that became
 * zero is a factor of ten. */
static double gain(const ReportTask *t, int i)
{
    double base = shown_get(&t->baseline, i), best = shown_get(&t->best, i);
    if (isnan(base) || isnan(best)) return 1;
    if (shown[i].less && base > 0) return best > 0 ? base / best : 10;
    if (shown[i].more && base > 0) return best / base;
    return 1;
}

static void clause(const ReportTask *t, int i, const char *lead, Buffer *out)
{
    char base[40], best[40];
    explain_number(counters_get(&t->baseline, shown[i].name), shown[i].unit, base, sizeof base);
    explain_number(counters_get(&t->best, shown[i].name), shown[i].unit, best, sizeof best);
    buffer_printf(out, "%s%s: %s instead of %s", lead,
                  shown[i].less ? shown[i].less : shown[i].more, best, base);
}

/* Returns the resource with the longest time; -1 when the device reports none. */
static int bound_by(const Counters *c)
{
    int index = -1;
    double longest = 0;
    for (int i = 0; i < RESOURCES; i++) {
        double v = counters_get(c, resources[i].name);
        if (isnan(v) || v <= longest) continue;
        longest = v;
        index = i;
    }
    return index;
}

/* Returns the counter that improved most among the ones that bear on any of `bits`; -1 when none
 * improved by a twentieth. */
static int most_gained(const ReportTask *t, unsigned bits, int except)
{
    int best = -1;
    for (int i = 0; i < SHOWN; i++)
        if ((shown[i].bears_on & bits) && i != except &&
            gain(t, i) > (best < 0 ? 1.05 : gain(t, best)))
            best = i;
    return best;
}

/* Names a counter of the baseline's bottleneck first, then the one that improved most otherwise. */
void explain_text(const ReportTask *t, Buffer *out)
{
    if (t->refused) {
        buffer_printf(out,
                      "The fastest kernel (%.2f×, found in %s) was refused when it was judged "
                      "again, on other inputs: %s. The baseline "
                      "stands.",
                      t->found_score, t->found, t->refused);
        return;
    }
    if (!t->source) {
        buffer_puts(out, "No sample was correct; the baseline stands.");
        return;
    }
    if (t->score <= 1.01) {
        buffer_puts(out, "No correct kernel was clearly faster than the baseline.");
        return;
    }
    int before = bound_by(&t->baseline), after = bound_by(&t->best);
    if (before >= 0)
        buffer_printf(out, "The baseline is held up most by %s. ", resources[before].text);
    int first = before >= 0 ? most_gained(t, resources[before].bit, -1) : -1;
    if (first < 0) first = most_gained(t, ~0u, -1);
    int second = first < 0 ? -1 : most_gained(t, ~0u, first);
    if (first >= 0) {
        clause(t, first, "This kernel ", out);
        if (second >= 0) clause(t, second, "; it also ", out);
        buffer_puts(out, ".");
    } else if (t->best.n)
        buffer_puts(
            out,
            "None of the counters below got better: what changed is how well waiting is hidden.");
    if (after >= 0 && after != before)
        buffer_printf(out, " It is held up most by %s.", resources[after].text);
}

/* A pass over the instructions of a launch for their demands on each stall, and one that divides the
 * launch's seconds by them. */
#include "eval/sim/time/line_costs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MAX_LINES = 1 << 16, SECTOR = 32 };
static const double least_share = 0.03;

static const char *const stall_names[STALL_COUNT] = {
    [TIME_ISSUE] = "issue slots",
    [TIME_FP32] = "fp32 arithmetic",
    [TIME_INT] = "integer arithmetic",
    [TIME_FP16] = "fp16 arithmetic",
    [TIME_FP64] = "fp64 arithmetic",
    [TIME_SFU] = "special functions",
    [TIME_TENSOR] = "tensor cores",
    [TIME_SHUFFLE] = "shuffles",
    [TIME_LSU] = "the load-store unit",
    [TIME_L1] = "L1 and shared memory",
    [TIME_L2_PORT] = "the port to L2",
    [TIME_L2] = "L2",
    [TIME_DRAM] = "DRAM",
    [TIME_ATOMIC] = "atomics",
    [TIME_SYNC] = "barriers and fences",
    [TIME_BLOCK_START] = "block starts",
    [STALL_LOADS] = "waits for loads",
    [STALL_BARRIERS] = "barriers",
    [STALL_CHAIN] = "dependent instructions",
    [STALL_OPERATOR] = "the operator's own kernels",
};

/* The instructions of one class that a line executed, and their accesses. */
typedef struct {
    int inst_class;
    double passes, waits;
    const InstTraffic *t;
} Demand;

static double of_class(const Demand *d, InstClass a)
{
    return d->inst_class == (int)a ? d->passes : 0;
}

static double of_integers(const Demand *d)
{
    return of_class(d, INST_INT) + of_class(d, INST_INT_ADD) + of_class(d, INST_INT_MUL);
}

/* Passes of L1: of shared memory, or one for each four lines of a global request. */
static double l1_passes(const InstTraffic *t)
{
    double global = (double)t->sectors / 16;
    if (global < (double)t->requests) global = (double)t->requests;
    return t->sectors ? global : (double)t->wavefronts;
}

static double dependent_cycles(int inst_class)
{
    switch (inst_class) {
    case INST_SFU: return 18;
    case INST_SHARED_LOAD:
    case INST_SHUFFLE: return 24;
    case INST_TENSOR: return 32;
    case INST_OTHER:
    case INST_GLOBAL_LOAD:
    case INST_GLOBAL_STORE: return 1;
    default: return 4;
    }
}

/* What an instruction asks of a resource, or how long it waits, in a unit of the stall's own. */
static double demand_of(const Profile *p, int stall, const Demand *d)
{
    switch (stall) {
    case TIME_ISSUE: return d->passes;
    case TIME_FP32:
        return of_class(d, INST_FP32) +
               (p->int_shares_fp32 ? of_integers(d) : of_class(d, INST_INT_MUL));
    case TIME_INT: return of_integers(d);
    case TIME_FP16: return of_class(d, INST_FP16);
    case TIME_FP64: return of_class(d, INST_FP64);
    case TIME_SFU: return of_class(d, INST_SFU);
    case TIME_TENSOR: return of_class(d, INST_TENSOR);
    case TIME_SHUFFLE: return of_class(d, INST_SHUFFLE);
    case TIME_LSU:
        return d->inst_class >= INST_GLOBAL_LOAD && d->inst_class <= INST_ATOMIC ? d->passes : 0;
    case TIME_L1: return l1_passes(d->t);
    case TIME_L2_PORT:
    case TIME_L2: return (double)d->t->l2;
    case TIME_DRAM: return (double)d->t->dram;
    case TIME_ATOMIC: return (double)d->t->serial;
    case STALL_LOADS: {
        double all = (double)d->t->sectors, dram = all > 0 ? (double)d->t->dram / all : 0,
               l2 = all > 0 ? (double)d->t->l2 / all : 0;
        l2 = l2 > dram ? l2 - dram : 0;
        return d->passes * d->waits * (dram * p->dram_cycles + l2 * p->l2_cycles + p->l1_cycles);
    }
    case TIME_SYNC:
    case STALL_BARRIERS: return of_class(d, INST_BARRIER);
    case STALL_CHAIN: return d->passes * dependent_cycles(d->inst_class);
    default: return 0;
    }
}

static LineCost *cost_at(LineCosts *l, int line)
{
    if (line < 0 || line >= MAX_LINES) line = 0;
    if (line >= l->n) {
        l->line = memory_grow(l->line, (size_t)line + 1, sizeof *l->line);
        memset(l->line + l->n, 0, (size_t)(line + 1 - l->n) * sizeof *l->line);
        l->n = line + 1;
    }
    return &l->line[line];
}

/* Calls `visit` with each instruction that ran. */
typedef void Visit(void *of, int line, const Demand *d);
static void each_instruction(const Code *code, Visit *visit, void *of)
{
    for (int k = 0; k < code->ptx.n_functions; k++) {
        const Function *f = &code->functions[k];
        int block = -1;
        uint32_t last = UINT32_MAX;
        for (int i = 0; i < f->n_insts; i++) {
            const Inst *in = &f->insts[i];
            if (in->starts_block) block++;
            if (block < 0 || in->starts_block || in->source == last ||
                !f->blocks[block].all_passes || (int)in->source >= f->ptx->n_insts)
                continue;
            last = in->source;
            Demand d = {f->classes[last], (double)f->blocks[block].all_passes,
                        (double)f->waits[last], &f->traffic[last]};
            visit(of, f->ptx->insts[last].line, &d);
        }
    }
}

typedef struct {
    const Profile *p;
    LineCosts *out;
    double sum[STALL_COUNT], seconds[STALL_COUNT];
} Division;

static void add_sum(void *of, int line, const Demand *d)
{
    Division *v = of;
    (void)line;
    for (int s = 0; s < STALL_COUNT; s++) v->sum[s] += demand_of(v->p, s, d);
}

static void add_share(void *of, int line, const Demand *d)
{
    Division *v = of;
    LineCost *c = cost_at(v->out, line);
    for (int s = 0; s < STALL_COUNT; s++)
        if (v->seconds[s] > 0 && v->sum[s] > 0)
            c->seconds[s] += v->seconds[s] * demand_of(v->p, s, d) / v->sum[s];
    c->traffic.requests += d->t->requests, c->traffic.bytes += d->t->bytes;
    c->traffic.sectors += d->t->sectors;
    c->traffic.wavefronts += d->t->wavefronts, c->traffic.ideal += d->t->ideal;
}

/* Divides the seconds of a launch between the busiest resource and the parts of its latency. */
static void divide(const SimCounts *c, const LaunchTime *t, Division *v)
{
    LatencyParts parts;
    int busiest = 0;
    for (int r = 1; r < TIME_RESOURCE_COUNT; r++)
        if (t->resource_s[r] > t->resource_s[busiest]) busiest = r;
    double busy = t->resource_s[busiest] * t->resource_s[busiest],
           wait = t->latency_s * t->latency_s, all = busy + wait;
    if (all <= 0) return;
    timemodel_latency(v->p, c, &parts);
    double sum = parts.chain + parts.loads + parts.barriers, latency = t->seconds * wait / all;
    v->seconds[busiest] = t->seconds * busy / all;
    if (sum <= 0) return;
    v->seconds[STALL_LOADS] = latency * parts.loads / sum;
    v->seconds[STALL_BARRIERS] = latency * parts.barriers / sum;
    v->seconds[STALL_CHAIN] = latency * parts.chain / sum;
}

void line_costs_add(LineCosts *l, const Profile *p, const Code *code, int line, const SimCounts *c,
                    const LaunchTime *t)
{
    Division v = {.p = p, .out = l};
    if (!code) {
        cost_at(l, line)->seconds[STALL_OPERATOR] += t->seconds;
        return;
    }
    divide(c, t, &v);
    each_instruction(code, add_sum, &v);
    each_instruction(code, add_share, &v);
}

/* What the line's accesses do beyond what they need at best, or nothing. */
static void detail(const LineCost *c, int stall, char *out, size_t size)
{
    const InstTraffic *t = &c->traffic;
    double requests = (double)t->requests, sectors = (double)t->sectors / fmax(requests, 1),
           best = (double)t->bytes / SECTOR / fmax(requests, 1),
           shared = (double)t->wavefronts / fmax((double)t->ideal, 1);
    int global = stall == TIME_DRAM || stall == TIME_L2 || stall == TIME_L2_PORT ||
                 stall == TIME_L1 || stall == STALL_LOADS || stall == TIME_LSU;
    *out = 0;
    if (stall == TIME_L1 && shared > 1.05)
        snprintf(out, size, ": %.2g times its ideal shared wavefronts", shared);
    else if (global && sectors > 1.05 * best)
        snprintf(out, size, ": %.3g sectors a request, %.3g at best", sectors, best);
}

/* Returns the line's seconds; *stall: what takes most of them. */
static double line_seconds(const LineCost *c, int *stall)
{
    double sum = 0;
    *stall = 0;
    for (int s = 0; s < STALL_COUNT; s++) {
        sum += c->seconds[s];
        if (c->seconds[s] > c->seconds[*stall]) *stall = s;
    }
    return sum;
}

int line_costs_text(const LineCosts *l, double seconds,
                    char out[DEVICE_MAX_LINES][DEVICE_LINE_TEXT])
{
    int n = 0;
    struct {
        int line, stall;
        double s;
    } top[DEVICE_MAX_LINES] = {{0}};
    for (int i = 1; i < l->n && seconds > 0; i++) {
        int stall, at = n;
        double v = line_seconds(&l->line[i], &stall);
        while (at > 0 && top[at - 1].s < v) at--;
        if (v < least_share * seconds || at == DEVICE_MAX_LINES) continue;
        if (n < DEVICE_MAX_LINES) n++;
        memmove(&top[at + 1], &top[at], (size_t)(n - 1 - at) * sizeof *top);
        top[at].line = i, top[at].stall = stall, top[at].s = v;
    }
    for (int i = 0; i < n; i++) {
        char more[64];
        detail(&l->line[top[i].line], top[i].stall, more, sizeof more);
        snprintf(out[i], DEVICE_LINE_TEXT, "line %d: %.0f%%, %s%s", top[i].line,
                 100 * top[i].s / seconds, stall_names[top[i].stall], more);
    }
    return n;
}

void line_costs_release(LineCosts *l)
{
    free(l->line);
    *l = (LineCosts){0};
}

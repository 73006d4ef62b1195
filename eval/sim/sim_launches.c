/* Launches run on the CPU, with every access checked; the time model turns their counters into times. */
#include "eval/sim/sim_launches.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/device/interval.h"
#include "eval/sim/covered.h"
#include "eval/sim/library/library_run.h"
#include "eval/sim/library/library_time.h"
#include "eval/sim/missing.h"
#include "eval/sim/sample.h"
#include "eval/sim/sample_order.h"
#include "eval/sim/sample_ways.h"
#include "eval/sim/spills.h"
#include "eval/sim/time/extrapolate.h"
#include "eval/sim/time/line_costs.h"
#include "eval/sim/time/time_model.h"
#include "eval/sim/trips.h"

enum {
    TOTAL_RUNS = 3,     /* all runs of a candidate get the limit of a timed one so many times, */
    LEAST_RUNS = 8,     /* and where a run's least work is much, as much again for so many of it */
    CHECK_SHARE = 8,    /* other runs are smaller: they get the limit divided by this */
    BLOCK_SHARE = 4,    /* a block that takes more than the limit divided by this has no end; */
    CHECK_BLOCK = 32,   /* in other runs, more than the limit divided by this, or */
    UNIT_COST = 200,    /* so many for each unit of the least work, up to that of a timed run */
    SLACK = 10000000,   /* thread-instructions that any run in reversed order may take */
    L1_LINE = 128,      /* bytes */
    ATTEMPT_SHARE = 16, /* an attempt has the limit of a timed run divided by this */
    POISONED_BYTES = 4, /* that take as long as a thread-instruction */
    SAMPLE_SHARE = 3,   /* and a sample of a launch divided by this, at most */
    WHOLE_SHARE = 2,    /* and of one that runs whole, by this */
    FIRST_SHARE = 8, /* it has this part of the limit until it is known that all of it is enough */
    SAMPLE_GROWTH = 64,  /* a sample may take so many times the expected work of the launch */
    SPREAD_COST = 64000, /* of a thread that reads eight pages, which are drawn for it */
    MOST_SPREAD = 150000000,
    CENSUS_COST = 20000000, /* of the census of a launch, as in coverage.h: some 50 ms */
    MOST_CENSUS = 5         /* times that, where blocks are dear */
};

/* Reports a launch that cannot start, in a sentence that goes on behind "kernel NAME". Returns 1. */
__attribute__((format(printf, 3, 4))) static int refuse(Fault *fault, const DeviceLaunch *l,
                                                        const char *fmt, ...)
{
    char name[64];
    va_list ap;
    device_kernel_name(l->kernel, name, sizeof name);
    fault->outcome = OUTCOME_LAUNCH_ERROR;
    fault->place = fault->what = 0;
    snprintf(fault->kernel, sizeof fault->kernel, "%s", l->kernel);
    size_t size = sizeof fault->message;
    size_t n = (size_t)snprintf(fault->message, size, "kernel %s", name);
    va_start(ap, fmt);
    vsnprintf(fault->message + n, size - n, fmt, ap);
    va_end(ap);
    return 1;
}

/* ---- the limit of all runs of a candidate ---- */

/* What all runs of a candidate may take together. */
static int64_t total_limit(const Device *d)
{
    const int64_t all = TOTAL_RUNS * d->limit;
    return all + (int64_t)fmin(LEAST_RUNS * d->announced, (double)all);
}

/* Returns the thread-instructions that a run may take: at most `limit`, and what is left. */
static int64_t grant(const Device *d, const DeviceLaunch *l, int64_t limit)
{
    int64_t left = total_limit(d) - d->total;
    if (!l->module || l->module->trusted || left >= limit) return limit;
    return left > 0 ? left : 0;
}

static void account(Device *d, const DeviceLaunch *l, int64_t used)
{
    if (l->module && !l->module->trusted) d->total += used;
}

static int is_exhausted(const Device *d, const DeviceLaunch *l)
{
    return l->module && !l->module->trusted && d->total >= total_limit(d);
}

/* Reports that all runs together are too long. Returns 1. */
static int exhausted(Fault *fault, const DeviceLaunch *l)
{
    refuse(fault, l,
           ": the runs of the candidate take more than the limit of instructions, all "
           "checks together: far too much work");
    fault->outcome = OUTCOME_TIMEOUT;
    return 1;
}

/* What it takes to poison so many bytes. */
static int64_t poison_cost(size_t bytes)
{
    return bytes < DEVMEM_SPARSE ? (int64_t)(bytes / POISONED_BYTES) : 0;
}

/* Takes what it took to poison the plan's buffers for this run. */
static void account_buffers(Device *d, const DeviceLaunch *l)
{
    for (int i = 0; i < d->mem.n_allocs; i++)
        if (d->mem.allocs[i].scratch) account(d, l, poison_cost(d->mem.allocs[i].bytes));
}

/* Takes the host work of a library call of a candidate's op line. Returns 0, or 1 with a fault. */
static int charge_call(Device *d, const DeviceLaunch *l, Fault *fault)
{
    if (!l->module || l->module->trusted) return 0;
    account(d, l, library_run_cost(l));
    if (!is_exhausted(d, l)) return 0;
    exhausted(fault, l);
    return 1;
}

static int registers_of(const DeviceLaunch *l)
{
    const CubinKernel *k = cubin_find(&l->module->cubin, l->kernel);
    return k ? k->registers : 0;
}

/* Local memory that the machine code has in registers costs nothing. */
static void forget_local(SimCounts *c)
{
    c->folded_slots += c->by_class[INST_LOCAL_LOAD] + c->by_class[INST_LOCAL_STORE];
    c->by_class[INST_LOCAL_LOAD] = c->by_class[INST_LOCAL_STORE] = 0;
    c->local_load_sectors = c->local_store_sectors = 0;
    c->local_waits = c->local_waits_max = c->block_local_waits = 0;
}

/* Adds the traffic of local memory beyond L1. Stores go through it; loads hit it, and both hit L2, as far as
 * the local memory of the resident threads fits there. */
static void charge_local(const Device *d, const DeviceLaunch *l, SimCounts *c)
{
    const CubinKernel *k = l->module ? cubin_find(&l->module->cubin, l->kernel) : NULL;
    const Profile *p = d->profile;
    uint64_t threads = (uint64_t)c->block[0] * c->block[1] * c->block[2],
             shared = (uint64_t)c->static_shared + c->dynamic_shared;
    Occupancy o;
    if (!c->local_load_sectors && !c->local_store_sectors) return;
    if (k && !k->local_bytes) {
        forget_local(c);
        return;
    }
    if (occupancy_of_counts(p, c, &o, NULL)) return;
    double blocks = fmin(o.blocks_per_sm, ceil((double)c->blocks / p->sm_count)),
           used = blocks * (double)(shared + p->shared_reserved),
           local = blocks * (double)threads * c->local_bytes,
           cached = fmin(1, fmax(0, p->l1_size - used) / local),
           kept = extrapolate_kept(p, local * p->sm_count),
           loads = (1 - cached) * (double)c->local_load_sectors,
           stores = (double)c->local_store_sectors;
    c->far_local_loads += (uint64_t)loads, c->far_local_stores += (uint64_t)stores;
    /* DRAM moves two sectors at least, and reads one that is written in part. Where they are scattered it
     * reaches two thirds of a copy's rate (an H200, 2026-11-29, local_large and local_huge of
     * tests/bench/rates). */
    double lone = (1 - cached) * (double)c->scattered_local_loads,
           parts = (double)c->scattered_local_stores;
    c->dram_read_sectors += (uint64_t)((1 - kept) * (loads + 2 * lone + 3 * parts));
    c->dram_write_sectors += (uint64_t)((1 - kept) * (stores + 2 * parts));
}

/* The L1 that one block of the launch has: what shared memory leaves, in equal parts for the blocks
 * that are resident on an SM. */
static uint32_t l1_sets(const Device *d, const DeviceLaunch *l, int registers, uint64_t shared)
{
    Occupancy o;
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2],
             blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2],
             sms = (uint64_t)d->info.sm_count, resident = (blocks + sms - 1) / sms;
    if (occupancy_of(d->profile, threads, registers, shared, &o, NULL)) return L1_MAX_SETS;
    if (resident > (uint64_t)o.blocks_per_sm) resident = (uint64_t)o.blocks_per_sm;
    if (!resident) resident = 1;
    uint64_t all = d->profile->l1_size, used = (shared + d->profile->shared_reserved) * resident;
    uint64_t bytes = (used < all ? all - used : 0) / resident;
    uint32_t sets = 1;
    while (sets < L1_MAX_SETS && (uint64_t)sets * 2 * L1_WAYS * L1_LINE <= bytes) sets *= 2;
    return sets;
}

/* The blocks of a cooperative launch are resident at once. Returns 0, or 1 with a fault. */
static int begin_cooperative(Device *d, const DeviceLaunch *l, size_t shared, Fault *fault)
{
    Occupancy o;
    Error why;
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2],
             blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    if (occupancy_of(d->profile, threads, registers_of(l), shared, &o, &why))
        return refuse(fault, l, " cannot be launched: %.400s", why.text);
    uint64_t most = (uint64_t)o.blocks_per_sm * (uint64_t)d->profile->sm_count;
    if (blocks > most)
        return refuse(fault, l,
                      " cannot be launched cooperatively: its grid has %llu blocks, and at most "
                      "%llu are resident at once, %d on each of %d SMs, limited by %s",
                      (unsigned long long)blocks, (unsigned long long)most, o.blocks_per_sm,
                      d->profile->sm_count, o.limit);
    uint64_t at = d->exec.grid_barrier = l->module->grid_barrier;
    if (!at) return 0;
    memset(devmem_host(&d->mem, at), 0, SIM_GRID_BARRIER);
    devmem_set_written(&d->mem, at, SIM_GRID_BARRIER);
    return 0;
}

int sim_run_blocks(Device *d, const DeviceLaunch *l, ExecNext *next, void *of, Fault *fault)
{
    Exec *x = &d->exec;
    const Function *f = code_find_entry(&l->module->code, l->kernel);
    if (!f) return error_set(&fault->error, ERROR_INVALID, "no kernel %s in the module", l->kernel);
    size_t shared = (size_t)f->static_shared + l->shared_bytes;
    if (shared > d->info.max_shared_per_block)
        return refuse(fault, l,
                      " cannot be launched: it needs %zu bytes of shared memory a block "
                      "and %zu are allowed",
                      shared, d->info.max_shared_per_block);
    if (l->cooperative && begin_cooperative(d, l, shared, fault)) return 1;
    d->mem.l1_sets = l1_sets(d, l, registers_of(l), shared);
    x->code = &l->module->code;
    x->entry = f;
    x->fault = fault;
    x->clock = l->module->clock;
    x->grid_id = ++l->module->launches;
    int r = next ? exec_launch_some(x, l, next, of) : exec_launch(x, l);
    l->module->clock = x->clock;
    x->counts.registers = registers_of(l);
    return r;
}

/* Adds the launch to the costs by line. A kernel of an op line is its line of the plan. */
static void add_lines(const Device *d, const DeviceLaunch *l, const SimCounts *c,
                      const LaunchTime *t, LineCosts *lines)
{
    const Code *code = l->library_args || l->op_line ? NULL : &l->module->code;
    line_costs_add(lines, d->profile, code, l->op_line, c, t);
}

/* The time of a library call, which has no counters. */
static int library_time(const Device *d, const DeviceLaunch *l, SimCounts *counts, LaunchTime *time,
                        Error *err)
{
    LibraryShape shape;
    if (library_shape(l, &shape, err)) return -1;
    memset(counts, 0, sizeof *counts);
    snprintf(counts->kernel, sizeof counts->kernel, "%s", l->kernel);
    *time = (LaunchTime){.bound = "library"};
    double seconds = library_seconds(d->profile, &shape) - d->profile->launch_s;
    time->seconds = seconds > 0 ? seconds : 0;
    return 0;
}

int sim_renew(Device *d, const DeviceLaunch *l, Error *err)
{
    for (int i = 0; i < l->n_fresh; i++)
        if (devmem_renew(&d->mem, l->fresh[i].p, l->fresh[i].bytes, l->fresh[i].label))
            return error_set(err, ERROR_INVALID, "%s has no buffer of %zu bytes", l->fresh[i].label,
                             l->fresh[i].bytes);
    return 0;
}

/* The same, taken from what all runs may take. */
static int renew(Device *d, const DeviceLaunch *l, Error *err)
{
    for (int i = 0; i < l->n_fresh; i++) account(d, l, poison_cost(l->fresh[i].bytes));
    return sim_renew(d, l, err);
}

/* Returns 0, or -1 with an Error; for a call that stands for an op line, 1 with a fault: its plan
 * passed it the wrong memory. */
static int call_library(Device *d, const DeviceLaunch *launches, int i, Fault *fault)
{
    Error why;
    if (!library_run(&d->mem, &launches[i], &why)) return 0;
    if (!launches[i].op) {
        fault->error = why;
        return -1;
    }
    fault->outcome = OUTCOME_OUT_OF_BOUNDS;
    fault->launch = i;
    fault->place = fault->what = 0;
    snprintf(fault->kernel, sizeof fault->kernel, "%s", launches[i].kernel);
    snprintf(fault->message, sizeof fault->message, "%.500s", why.text);
    return 1;
}

typedef struct {
    SequenceWork work;
    LaunchTime *times; /* one a launch */
    LineCosts lines;
} Prediction;

/* The limit of a run in the other order, after a usual one. */
static int64_t reversed_limit(const Device *d, int64_t limit)
{
    return d->used < (limit - SLACK) / 4 ? 4 * d->used + SLACK : limit;
}

/* Runs n launches. p: takes counters, times and lines; NULL: they are not wanted, and requests to
 * global memory are not counted. */
static int run_sequence(Device *d, const DeviceLaunch *launches, int n, int64_t limit,
                        Prediction *p, Fault *fault)
{
    memset(fault, 0, sizeof *fault);
    d->exec.counted = p || d->counted;
    if (d->exec.reversed) limit = reversed_limit(d, limit);
    if (n) account_buffers(d, launches);
    if (n && is_exhausted(d, launches)) return exhausted(fault, launches);
    if (n) limit = grant(d, launches, limit);
    d->exec.budget = limit;
    d->exec.ample = limit - d->used > SLACK / 2;
    for (int i = 0; i < n; i++) {
        if (renew(d, &launches[i], &fault->error)) return -1;
        if (launches[i].library_args) {
            int rc = charge_call(d, &launches[i], fault);
            fault->launch = i;
            if (!rc) rc = call_library(d, launches, i, fault);
            if (rc) return rc;
            if (!p) continue;
            if (library_time(d, &launches[i], &p->work.counts[i], &p->times[i], &fault->error))
                return -1;
            add_lines(d, &launches[i], &p->work.counts[i], &p->times[i], &p->lines);
            continue;
        }
        int64_t before = d->exec.budget;
        int r = sim_run_blocks(d, &launches[i], NULL, NULL, fault);
        account(d, &launches[i], before - d->exec.budget);
        if (r > 0 && fault->outcome == OUTCOME_TIMEOUT && is_exhausted(d, &launches[i]))
            r = exhausted(fault, &launches[i]);
        fault->launch = i;
        if (r) return r;
        if (!p) continue;
        SimCounts *c = &p->work.counts[i];
        *c = d->exec.counts;
        c->op_line = launches[i].op_line;
        if (!c->op_line) uses_note(&p->work.uses[i], &d->mem, 1);
        charge_local(d, &launches[i], c);
        assembler_charge(d, &launches[i], c);
        Error why;
        if (timemodel_launch(d->profile, c, &p->times[i], &why))
            return refuse(fault, &launches[i], " cannot be launched: %.400s", why.text);
        add_lines(d, &launches[i], &p->work.counts[i], &p->times[i], &p->lines);
    }
    if (!d->exec.reversed) d->used = limit - d->exec.budget;
    return 0;
}

void sim_announce(Device *d, double work)
{
    d->announced = work;
}

static int64_t check_block_limit(const Device *d)
{
    double least = fmin(UNIT_COST * d->announced, (double)(d->limit / BLOCK_SHARE));
    return (int64_t)fmax((double)(d->limit / CHECK_BLOCK), least);
}

/* What many blocks take together may be much for a slow kernel that ends; a block that does not end stops
 * sooner. */
static int64_t check_limit(const Device *d)
{
    int64_t block = check_block_limit(d), all = d->limit / CHECK_SHARE;
    return block > all ? block : all;
}

int sim_run(Device *d, const DeviceLaunch *launches, int n, Fault *fault)
{
    d->exec.block_budget = check_block_limit(d);
    return run_sequence(d, launches, n, check_limit(d), NULL, fault);
}

void sim_disturb(Device *d, int on)
{
    d->exec.reversed = on;
}

/* A block does what it did in the last sample where the grid is that of fewer blocks. */
int sim_fits(Device *d, const DeviceLaunch *launches, int n)
{
    double work = 0;
    for (int i = 0; i < n && n == d->n_sampled; i++) {
        const DeviceLaunch *l = &launches[i];
        double blocks = (double)l->grid[0] * l->grid[1] * l->grid[2];
        if (blocks <= d->sampled[i].blocks / 2) work += d->sampled[i].work * blocks;
    }
    return work <= (double)(d->limit / ATTEMPT_SHARE);
}

int sim_attempt(Device *d, const DeviceLaunch *launches, int n, Fault *fault)
{
    int64_t used = d->used, total = d->total;
    d->total = 0;
    d->exec.block_budget = 0;
    int r = run_sequence(d, launches, n, d->limit / ATTEMPT_SHARE, NULL, fault);
    d->used = used;
    d->total = total;
    return r;
}

/* Fills in the time of a sequence, its counters and its costliest lines. */
static void conclude(const Device *d, const SimCounts *counts, const LaunchTime *times, int n,
                     const LineCosts *lines, DeviceTiming *out)
{
    double seconds = timemodel_sequence(d->profile, times, n);
    out->n = 1;
    out->candidate_us[0] = seconds * 1e6;
    out->n_counters = timemodel_counters(d->profile, counts, times, n, out->counters);
    out->n_lines = line_costs_text(lines, seconds, out->lines);
}

/* Predicts from a single run: a prediction has no noise. */
int sim_predict(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out, Fault *fault)
{
    d->exec.block_budget = d->limit / BLOCK_SHARE;
    if (!out) return run_sequence(d, launches, n, d->limit, NULL, fault);
    Prediction p = {.work = work_new(n), .times = memory_array((size_t)n + 1, sizeof *p.times)};
    int r = run_sequence(d, launches, n, d->limit, &p, fault);
    if (!r) conclude(d, p.work.counts, p.times, n, &p.lines, out);
    line_costs_release(&p.lines);
    work_release(&d->predicted);
    d->predicted = p.work;
    if (r) work_release(&d->predicted);
    free(p.times);
    return r;
}

/* The limit of a sample of a launch, in thread-instructions: well above the whole launch where the
 * work grows with the task's cost, and where threads read pages of their own. */
static int64_t sample_limit(const Device *d, const DeviceLaunch *l, const SimCounts *small,
                            double growth)
{
    double threads =
        (double)l->grid[0] * l->grid[1] * l->grid[2] * l->block[0] * l->block[1] * l->block[2];
    double limit = SAMPLE_GROWTH * growth * (double)small->thread_insts + SLACK +
                   fmin(SPREAD_COST * threads, MOST_SPREAD);
    return limit < (double)d->limit / SAMPLE_SHARE ? (int64_t)limit : d->limit / SAMPLE_SHARE;
}

/* A sequence that is sampled. */
typedef struct {
    const DeviceLaunch *launches;
    int n;
    DeviceSample *out;
    SequenceWork work;
    LaunchTime *times; /* one a launch */
    LineCosts lines;
    SampledOutputs outputs;
    WaysRan ran;           /* of the launch that was sampled last */
    PlanCoverage *covered; /* NULL: it is not wanted */
    int scaled;            /* launches that were not run */
    int open;              /* it is not known what some blocks do of the plan's own launches */
    double interval;       /* of the launch that was sampled last, as a share of its time */
    double half_s;         /* of all launches, in seconds */
} Sampling;

/* The launches that wait for one another cannot be run in part: scale the counters of the smaller launch. */
static void scale_one(Device *d, Sampling *g, int i, const SimCounts *small)
{
    SimCounts *counts = &g->work.counts[i];
    LaunchUses *uses = &g->work.uses[i];
    extrapolate_growth(small, g->out->growth, g->launches[i].grid, counts);
    uses_note(uses, &d->mem, 0);
    uses->scaled = 1;
    g->scaled++;
    if (!g->launches[i].op_line) g->out->scaled++;
}

static void finish_one(Device *d, Sampling *g, int i, Sample *s)
{
    Occupancy o;
    const DeviceLaunch *l = &g->launches[i];
    SimCounts *counts = &g->work.counts[i];
    double resident = 1;
    if (!occupancy_of_counts(d->profile, counts, &o, NULL))
        resident = (double)o.blocks_per_sm * d->profile->sm_count;
    if (!l->cooperative) sample_finish(s, d->profile, resident, counts);
    g->interval = l->cooperative ? 0 : sample_interval(s);
    uses_note(&g->work.uses[i], &d->mem, l->cooperative ? 1 : sample_scale(s, counts));
    charge_local(d, l, counts);
    assembler_charge(d, l, counts);
}

/* Outputs that an op line has filled with constants, such as aten.zeros, are as unwritten as before: a
 * later launch gives them. */
static void forget_constants(Device *d, const DeviceSample *s)
{
    for (int i = 0; i < s->n_outputs; i++) {
        Alloc *a = devmem_at(&d->mem, s->outputs[i]);
        if (a && a->written_sectors) devmem_poison(&d->mem, a);
    }
}

/* Gives a sample a part of a limit that is high, and the rest as a reserve. */
static void grant_part(Device *d, const Sample *s, const DeviceLaunch *l, int64_t limit)
{
    Exec *x = &d->exec;
    double needed = sample_least_work(s);
    x->budget = limit;
    x->reserve = (ExecReserve){0};
    if (l->cooperative || needed <= 0 || limit < d->limit / SAMPLE_SHARE) return;
    x->budget = limit / FIRST_SHARE;
    x->reserve = (ExecReserve){limit - x->budget, x->budget, l->module->clock, needed};
}

/* Takes what the sample has not used of its limit. */
static int64_t take_rest(Exec *x)
{
    int64_t rest = x->budget + x->reserve.left;
    x->reserve = (ExecReserve){0};
    return rest;
}

/* Runs the sample of launch i. A block that waits for one that has not run ends it, or fails for that, and
 * s->stuck is set: only a sample in order tells more. A cooperative launch runs whole. Returns as
 * sim_run_blocks. */
static int run_sample(Device *d, Sampling *g, int i, Sample *s, const SimCounts *small,
                      Fault *fault)
{
    const DeviceLaunch *l = &g->launches[i];
    Exec *x = &d->exec;
    x->block_budget = 0;
    int64_t limit = grant(
        d, l, l->cooperative ? d->limit / WHOLE_SHARE : sample_limit(d, l, small, g->out->growth));
    grant_part(d, s, l, limit);
    s->is_limited = limit >= d->limit / SAMPLE_SHARE;
    int r = sim_run_blocks(d, l, l->cooperative ? NULL : sample_next, s, fault);
    int64_t reserve = x->reserve.left, used = limit - take_rest(x);
    account(d, l, used);
    if (r > 0 && reserve && fault->outcome == OUTCOME_TIMEOUT) used = limit;
    double ran = l->cooperative ? (double)s->blocks : fmax(1, (double)s->ran);
    d->sampled[i] = (struct BlockWork){(double)(s->blocks * s->cluster),
                                       (double)used / ran / (double)s->cluster};
    if (r > 0 && fault->outcome == OUTCOME_TIMEOUT && is_exhausted(d, l))
        return exhausted(fault, l);
    if (r > 0 && !l->cooperative)
        s->atomics += x->counts.global_atomic_requests, s->fences += x->counts.fences;
    int waits = s->atomics && s->fences, timeout = r > 0 && fault->outcome == OUTCOME_TIMEOUT;
    s->stuck = (timeout && !l->cooperative && x->block_floor == INT64_MAX) ||
               (r > 0 && waits && !l->cooperative) || (s->must && !s->vain && s->ran <= s->must);
    if (s->stuck && !s->in_order) return 0;
    int endless = timeout && limit < d->limit / SAMPLE_SHARE && !waits && !d->mem.assumed;
    g->work.counts[i] = x->counts;
    if ((r > 0 && (d->mem.assumed || waits || (timeout && !endless))) ||
        (!r && (s->stuck || s->too_dear))) {
        log_debug("launch %d is not run in part: %s", i,
                  r          ? fault->message
                  : s->stuck ? "its blocks wait"
                             : "its blocks take too long");
        scale_one(d, g, i, small);
        if (s->stuck) extrapolate_chain(&g->work.counts[i]);
        r = 0;
    } else if (!r) {
        finish_one(d, g, i, s);
    }
    SampledOutputs *o = &g->outputs;
    if ((d->mem.assumed || g->scaled) && o->complete_until > i) o->complete_until = i;
    if (i + 1 < g->n && device_launch_is_constant(l))
        forget_constants(d, g->out);
    else
        sampled_outputs_note(o, g->out, &d->mem, i);
    g->out->blocks += s->blocks * s->cluster;
    g->out->sampled += l->cooperative ? s->blocks : (uint64_t)s->n * s->cluster;
    return r;
}

/* What the census of launch i may cost: as much as two of its blocks, within limits. */
static CensusLimit census_limit(const Sampling *g, int i, const SimCounts *small)
{
    const uint32_t *grid = g->launches[i].grid;
    double blocks = (double)grid[0] * grid[1] * grid[2],
           cost = 2 * g->out->growth * (double)small->thread_insts / blocks;
    return (CensusLimit){(int64_t)fmin(fmax(cost, CENSUS_COST), (double)MOST_CENSUS * CENSUS_COST),
                         g->out->seed};
}

/* Samples launch i, or scales the counters of the smaller launch. Returns as sim_run_blocks. */
static int sample_one(Device *d, Sampling *g, int i, Fault *fault)
{
    Sample s;
    static const uint32_t alone[3];
    const DeviceLaunch *l = &g->launches[i];
    Census census = {0};
    int was = missing_find(&d->predicted, l, i);
    if (was < 0) return refuse(fault, l, " runs at the timed size only");
    CensusLimit limit = census_limit(g, i, &d->predicted.counts[was]);
    int is_dear = limit.budget > CENSUS_COST;
    const Function *f = code_find_entry(&l->module->code, l->kernel);
    if (f) census_take(&l->module->code.ptx, f->ptx, l, &limit, &census);
    if (f) trips_find(d, &(TripsOf){g->launches, i, g->out}, &census);
    log_debug("launch %d: %d kinds of blocks, %llu of %llu known%s%s", i, census.n,
              (unsigned long long)census.known, (unsigned long long)census.blocks,
              census.open ? ", memory decides a branch" : "", census.settled ? ", alike" : "");
    SampleOf of = {.launch = l,
                   .cluster = f ? f->ptx->cluster : alone,
                   .mem = &d->mem,
                   .census = &census,
                   .seed = g->out->seed,
                   .exec = &d->exec,
                   .in_order = d->predicted.counts[was].delay_max > 0};
    if (of.in_order) order_scout(d, &of);
    if (f && is_dear) steady_find(&d->mem, l, &l->module->code.ptx, f->ptx);
    sample_begin(&s, &of);
    g->open |= !l->op_line && sample_is_open(&s);
    int r = run_sample(d, g, i, &s, &d->predicted.counts[was], fault);
    if (s.stuck && !of.in_order) {
        log_debug("launch %d: %s: its blocks run in order", i, fault->message);
        of.in_order = 1;
        of.must = s.ids[s.n];
        sample_release(&s);
        sample_begin(&s, &of);
        r = run_sample(d, g, i, &s, &d->predicted.counts[was], fault);
    }
    steady_forget(&d->mem);
    if (!r && !s.stuck) sample_ways_note(&s, l, &g->ran);
    sample_release(&s);
    census_release(&census);
    return r;
}

/* Launch i of an operator repeats the two before it, as the steps of a recurrent network do: its counters
 * are the last one's. What it would have written reads as zeros. */
static int repeats(const DeviceLaunch *launches, int i)
{
    const DeviceLaunch *l = &launches[i];
    if (i < 2 || !l->op_line || l->library_args) return 0;
    for (const DeviceLaunch *k = l - 2; k < l; k++)
        if (k->op_line != l->op_line || k->module != l->module || strcmp(k->kernel, l->kernel) ||
            memcmp(k->grid, l->grid, sizeof l->grid) || memcmp(k->block, l->block, sizeof l->block))
            return 0;
    return 1;
}

/* The own launches of a plan that leaves work out take as much longer, or, where that is more, as DRAM takes
 * for the bytes that are left out. */
static void hold(const Device *d, const DeviceLaunch *launches, const SequenceWork *work,
                 DeviceSample *s, LaunchTime *times)
{
    double *bytes = memory_array((size_t)work->n + 1, sizeof *bytes), own = 0, missing = 0,
           factor = missing_work(&d->predicted, work, launches, s, bytes),
           rate = d->profile->dram_bytes_per_s * d->profile->dram_efficiency;
    for (int i = 0; i < work->n; i++) {
        if (launches[i].library_args || launches[i].op_line) continue;
        own += times[i].seconds;
        missing += bytes[i] / rate;
        if (bytes[i] > 0) log_debug("launch %d leaves %.0f bytes out", i, bytes[i]);
    }
    s->held = factor > 1 || missing > 0;
    if (s->held) log_debug("the launches do too little, by a factor of %.2f", factor);
    int by_factor = own * factor > own + missing;
    for (int i = 0; i < work->n; i++) {
        if (launches[i].library_args || launches[i].op_line) continue;
        times[i].seconds =
            by_factor ? times[i].seconds * factor : times[i].seconds + bytes[i] / rate;
    }
    free(bytes);
}

/* A plan whose outputs are compared takes longer by as much as it does less than a part of its task. */
static void hold_compared(const Device *d, Sampling *g)
{
    const DeviceLaunch *launches = g->launches;
    DeviceSample *s = g->out;
    double factor = missing_compared(&d->predicted, &g->work, launches, s, g->open);
    s->held = factor > 1;
    if (s->held) log_debug("the launches do too little of the task, by a factor of %.2f", factor);
    for (int i = 0; i < g->n; i++)
        if (!launches[i].library_args && !launches[i].op_line) g->times[i].seconds *= factor;
}

/* Runs other blocks of launch i, whose outputs are compared, too, where its blocks read what is complete. */
static int sample_others(Device *d, Sampling *g, int i, Fault *fault)
{
    SampledOutputs *o = &g->outputs;
    if (!g->ran.n || !g->out->compared || o->complete_until <= i || o->guessed) return 0;
    int r = sample_ways_run(d, &g->launches[i], &g->ran, g->out, fault);
    if (r == 2 || d->mem.assumed) o->complete_until = i;
    return r == 2 ? 0 : r;
}

/* Counters and time of launch i. Returns as sim_run_blocks. */
static int sample_launch(Device *d, Sampling *g, int i, Fault *fault)
{
    const DeviceLaunch *l = &g->launches[i];
    SimCounts *counts = &g->work.counts[i];
    Error why;
    int r = 0;
    memset(fault, 0, sizeof *fault);
    g->interval = g->ran.n = 0;
    if (renew(d, l, &fault->error)) return -1;
    if (l->library_args) { /* what it writes reads as zeros */
        g->outputs.guessed = 1;
        if (library_time(d, l, counts, &g->times[i], &fault->error)) return -1;
        log_debug("launch %d, library: %.2f us", i, 1e6 * g->times[i].seconds);
        add_lines(d, l, counts, &g->times[i], &g->lines);
        return 0;
    }
    if (repeats(g->launches, i)) {
        *counts = counts[-1];
        g->outputs.guessed = 1;
    } else {
        r = sample_one(d, g, i, fault);
    }
    fault->launch = i;
    if (!r && timemodel_launch(d->profile, counts, &g->times[i], &why))
        r = refuse(fault, l, " cannot be launched: %.400s", why.text);
    if (!r)
        log_debug("launch %d, %s: %.2f us, by %s", i, l->kernel, 1e6 * g->times[i].seconds,
                  g->times[i].bound);
    if (!r) add_lines(d, l, counts, &g->times[i], &g->lines);
    if (!r) r = sample_others(d, g, i, fault);
    g->half_s += g->interval * g->times[i].seconds;
    return r;
}

const PtxFunction *sim_kernel_of(const DeviceLaunch *l)
{
    const Function *f = l->library_args ? NULL : code_find_entry(&l->module->code, l->kernel);
    return f ? f->ptx : NULL;
}

CoverageOf sim_coverage_of(const DevMem *mem, const DeviceLaunch *l, const uint8_t *wanted,
                           SliceKind kind, uint32_t unit)
{
    return (CoverageOf){.mem = mem,
                        .module = &l->module->code.ptx,
                        .kernel = sim_kernel_of(l),
                        .launch = l,
                        .wanted = wanted,
                        .unit = unit,
                        .kind = kind};
}

int sim_has_pointer(const DevMem *mem, const DeviceLaunch *l, int allocation)
{
    const CoverageOf of = {.mem = mem, .kernel = sim_kernel_of(l), .launch = l};
    for (int k = 0; k < l->library_args; k++) {
        uint64_t address;
        memcpy(&address, l->params + 8 * k, sizeof address);
        if (devmem_find(mem, address) == allocation) return 1;
    }
    return of.kernel && coverage_has_pointer(&of, allocation);
}

static void note_covered(Sampling *g, int i)
{
    double seconds = 0;
    for (int k = 0; k <= i; k++) seconds += g->times[k].seconds;
    covered_patiently(g->covered, seconds * 1e6 < g->out->win_us);
    covered_launch(g->covered, i);
}

int sim_sample(Device *d, const DeviceLaunch *launches, int n, DeviceSample *s, DeviceTiming *out,
               Fault *fault)
{
    Sampling g = {.launches = launches,
                  .n = n,
                  .out = s,
                  .work = work_new(n),
                  .times = memory_array((size_t)n + 1, sizeof *g.times),
                  .outputs = {.of = memory_array((size_t)s->n_outputs + 1, sizeof *g.outputs.of),
                              .n = s->n_outputs,
                              .complete_until = n}};
    int r = 0;
    s->blocks = s->sampled = 0;
    s->scaled = s->held = 0;
    free(d->sampled);
    d->sampled = memory_array((size_t)n + 1, sizeof *d->sampled);
    d->n_sampled = n;
    devmem_assume(&d->mem, 1);
    d->exec.counted = 1;
    if (s->written) g.covered = covered_new(&d->mem, launches, n, s);
    for (int i = 0; i < n && !r; i++) {
        r = sample_launch(d, &g, i, fault);
        if (!r && g.covered) note_covered(&g, i);
    }
    devmem_assume(&d->mem, 0);
    if (g.covered) covered_finish(g.covered);
    int comparable = sampled_outputs_finish(&g.outputs, s);
    if (!r && !(comparable && s->compared))
        hold(d, launches, &g.work, s, g.times);
    else if (!r)
        hold_compared(d, &g);
    if (!r) conclude(d, g.work.counts, g.times, n, &g.lines, out);
    if (!r && out->n_counters < DEVICE_MAX_COUNTERS)
        out->counters[out->n_counters++] =
            (DeviceCounter){DEVICE_INTERVAL, g.half_s * 1e6 / out->candidate_us[0]};
    line_costs_release(&g.lines);
    free(g.outputs.of);
    work_release(&g.work);
    free(g.times);
    return r;
}

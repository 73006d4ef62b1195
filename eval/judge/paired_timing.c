#include "eval/judge/paired_timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "eval/judge/predicted_timing.h"
#include "eval/judge/statistics.h"

enum {
    BASELINE,
    CANDIDATE,
    SIDES,
    RENEWING = 0,
    RUNNING,
    COMPARING,
    STEPS,
    SETS = 2,              /* of inputs and outputs */
    ORDERS = SIDES * SETS, /* which side goes first, on which set */
    FEW_COUPLES = 4,
    MIN_COUPLES = 24,
    MAX_COUPLES = 800,
    LOOK_EVERY = ORDERS,
    WARM_COUPLES = 4
};
static const double narrow =
    0.0035; /* half the interval, as a share of the ratio, that ends the couples */
static const double
    little = 1.03,
    sure = 0.0015; /* a win below the first is taken for one when known to the second */
static const double lost = 0.9, coarse = 0.02; /* whoever is surely below the first need not be
                                                  known better than to the second */
static const double warm_s = 0.010;            /* of couples that are not counted: clocks rise */
static const double stays_warm_s = 0.250;      /* and do not fall so soon after the last timing */
/* Beside the events the host may see this much more before work outside of them is suspected. */
static const double host_factor = 1.5, host_slack_us = 400;
static const double remembers = 1.15; /* whoever is as much faster on what it has seen */

typedef struct {
    Loaded *loaded[SIDES];
    Rig rigs[SIDES][SETS]; /* both sides' over the same inputs and outputs */
    const Case *contents[SETS];
    int64_t turns; /* rig_can_turn */
    const ClockedOptions *opt;
    Random random;
    int orders[ORDERS], ordered; /* the couples' in turn; how many of them are done */
    double phase;        /* at which both sides' runs begin in this couple (DeviceOps.clock) */
    double spent[STEPS]; /* seconds, for the log */
    int runs;            /* of the candidate */
    double look_at;      /* couples, before which the interval is not looked at again */
    int unseen[SIDES];   /* runs in which the host's clock saw much more than the events */
} Bench;

static int open_bench(Bench *b, Cases *cases, const Workload *w, Finding *f, Error *err)
{
    Task *t = b->loaded[CANDIDATE]->task;
    for (int set = 0; set < SETS; set++)
        if (!(b->contents[set] = cases_get(cases, t, w, VARIANT_DRAWN,
                                           case_seed(b->opt->seed, t, w, set), 1.0, err)))
            return -1;
    for (int set = 0; set < SETS; set++)
        for (int side = CANDIDATE; side >= BASELINE; side--) {
            const Rig *owner = side == CANDIDATE ? NULL : &b->rigs[CANDIDATE][set];
            int rc =
                rig_open(&b->rigs[side][set], b->loaded[side], b->contents[set], owner, f, err);
            if (rc) return rc;
        }
    b->turns = rig_can_turn(&b->rigs[CANDIDATE][0]);
    return 0;
}

static void close_bench(Bench *b)
{
    for (int side = BASELINE; side < SIDES; side++)
        for (int set = 0; set < SETS; set++) rig_close(&b->rigs[side][set]);
}

/* ---- one side's turn ---- */

static int more_than_events(const Bench *b, const DeviceClock *c)
{
    return b->opt->mode != CLOCK_GRAPH &&
           c->host_us > host_factor * (c->us + c->flush_us) + host_slack_us;
}

/* Work that the events do not see, in most runs, is hidden from them. On a busy host both sides'
 * runs take longer by its clock: what the baseline's, between them, show as often is no candidate's
 * doing. */
static int hidden_work(Bench *b, const DeviceClock *c, Finding *f)
{
    if (!more_than_events(b, c)) return 0;
    int more = ++b->unseen[CANDIDATE] - b->unseen[BASELINE];
    if (more < 20 || 2 * more < b->runs) return 0;
    finding_set(f, OUTCOME_CHEAT, 0,
                "the events around the launches say %.1f us, the host's clock %.1f us: work is "
                "done outside "
                "of the launches that are timed",
                c->us + c->flush_us, c->host_us);
    snprintf(f->cheat, sizeof f->cheat, "hidden_work");
    return 1;
}

/* After every run, or what lies where nobody looks would be there for the next: contents come round
 * again, though elsewhere. */
static int look_at_candidate(Rig *r, Finding *f, Error *err)
{
    int rc = rig_well(r, err);
    if (rc <= 0) return rc;
    rc = rig_compare(r, f, err);
    if (!rc) rc = rig_inspect(r, f, err);
    return rc == 1 ? checks_explain_wrong(r, f, err) : rc;
}

static int run_on(Bench *b, int side, int set, double *us, Finding *f, Error *err)
{
    const Loaded *l = b->loaded[side];
    const Rig *r = &b->rigs[side][set];
    DeviceFault fault = {0};
    DeviceClock c = {0};
    int rc = l->ops->clock(l->device, r->launches, r->n_launches, b->opt->mode, b->phase, &c,
                           &fault, err);
    *us = c.us;
    if (side == BASELINE) {
        b->unseen[BASELINE] += !rc && more_than_events(b, &c);
        return rc > 0 ? error_set(err, ERROR_INVALID, "the baseline failed while timed: %s",
                                  fault.message)
                      : rc;
    }
    if (rc > 0) finding_fault(f, &fault, r->where);
    if (rc) return rc;
    b->runs++;
    b->loaded[CANDIDATE]->runs++;
    return hidden_work(b, &c, f);
}

static void spend(Bench *b, int step, double *since)
{
    double now = clock_seconds();
    b->spent[step] += now - *since;
    *since = now;
}

/* Nothing that a side finds was computed by anyone: outputs and buffers, the other side's too. */
static int undefine(Bench *b, int set, Error *err)
{
    return rig_reset(&b->rigs[CANDIDATE][set], err) ||
                   rig_reset_own_buffers(&b->rigs[BASELINE][set], err)
               ? -1
               : 0;
}

/* One run: were there two, on two sets, one could do the work of both. */
static int run_side(Bench *b, int side, int used, double *us, Finding *f, Error *err)
{
    if (undefine(b, used, err)) return -1;
    double since = clock_seconds();
    int rc = run_on(b, side, used, us, f, err);
    spend(b, RUNNING, &since);
    if (side == CANDIDATE && !rc) rc = look_at_candidate(&b->rigs[side][used], f, err);
    spend(b, COMPARING, &since);
    return rc;
}

/* The one after the other, with the same done before either. The set that is not used is undefined
 * once: what a candidate leaves there the baseline does not use, and is gone before the next
 * couple. */
static int run_sides(Bench *b, int first, int set, double us[SIDES], Finding *f, Error *err)
{
    if (undefine(b, !set, err)) return -1;
    int rc = run_side(b, first, set, &us[first], f, err);
    return rc ? rc : run_side(b, !first, set, &us[!first], f, err);
}

/* ---- couples ---- */

/* The baseline's module too: its code lies in as many places of memory, one after another, as the
 * candidate's (eval/cuda/modules.c). */
static int load_both(Bench *b, Finding *f, Error *err)
{
    Finding own;
    int rc = loaded_again(b->loaded[CANDIDATE], f, err);
    for (int set = 0; set < SETS && !rc; set++) rc = rig_resolve(&b->rigs[CANDIDATE][set], f);
    if (rc) return rc;
    rc = loaded_again(b->loaded[BASELINE], &own, err);
    for (int set = 0; set < SETS && !rc; set++) rc = rig_resolve(&b->rigs[BASELINE][set], &own);
    return rc > 0 ? error_set(err, ERROR_INVALID, "the baseline cannot be loaded again: %s",
                              own.message)
                  : rc;
}

/* New contents in both sets, turned by a random way along an axis that all tensors share, where the
 * task has one: by place the same draw is new to whoever has seen it. Row by row it is not, so that
 * the candidate's module is loaded anew too, with none of what its variables kept; the two sets
 * have nothing in common. A module without variables is parked, which costs nothing. */
static int renew(Bench *b, Finding *f, Error *err)
{
    int swap = (int)random_below(&b->random, SETS);
    for (int set = 0; set < SETS; set++) {
        int64_t turned = b->turns ? (int64_t)random_below(&b->random, (uint64_t)b->turns) : 0;
        for (int side = CANDIDATE; side >= BASELINE; side--)
            if (rig_refill(&b->rigs[side][set], b->contents[swap ? SETS - 1 - set : set], turned,
                           err))
                return -1;
    }
    return load_both(b, f, err);
}

/* Of as many couples as there are orders each has another one: by chance alone, of twelve couples
 * one side would go first in eight or more two times in five. */
static int next_order(Bench *b)
{
    int at = b->ordered++ % ORDERS;
    for (int i = 0; i < ORDERS && !at; i++) b->orders[i] = i;
    int from = at + (int)random_below(&b->random, (uint64_t)(ORDERS - at)), order = b->orders[from];
    b->orders[from] = b->orders[at];
    return order;
}

/* Each side once, on the same buffers: of as many couples as there are orders half on either set.
 * The very first run is the baseline's, by whose time a device bounds the candidate's. */
static int couple(Bench *b, double us[SIDES], Finding *f, Error *err)
{
    int order = next_order(b), first = b->runs ? order % SIDES : BASELINE, set = order / SIDES;
    double since = clock_seconds();
    b->phase = random_uniform(&b->random);
    int rc = renew(b, f, err);
    spend(b, RENEWING, &since);
    return rc ? rc : run_sides(b, first, set, us, f, err);
}

/* What the contexts leave unknown of the samples' ratio, as a share of it: each adds to every
 * launch an offset of its own. */
static double context_share(const DeviceTiming *t, double baseline_us, double candidate_us)
{
    return CLOCKED_CONTEXT_US * sqrt(0.5) *
           hypot(t->baseline_launches / baseline_us, t->candidate_launches / candidate_us);
}

/* The share of the ratio that half its interval has to come down to, and is never said to be less:
 * how much narrower the samples have it is chance, of few samples a large one, which would be the
 * score's. Where the verdict would say that the candidate wins by little, much narrower: of many
 * candidates that are equal to their baseline some seem to win by chance, and only more samples
 * tell. Of a candidate that is surely slower nobody wants to know it so well. *half: what the share
 * is by now, about. */
static double wanted(const DeviceTiming *t, double *half)
{
    Pairs pairs = timing_pairs(t);
    double baseline = statistics_median(t->baseline_us, t->n),
           candidate = statistics_median(t->candidate_us, t->n);
    double ratio = baseline / candidate;
    *half = statistics_half_width(&pairs) / ratio;
    double unknown = ratio * hypot(*half, context_share(t, baseline, candidate));
    if (ratio + unknown < lost) return coarse;
    return ratio - unknown > 1 && ratio < little ? sure : narrow;
}

/* Half the resampled interval, as a share of the ratio. */
static double resampled(const DeviceTiming *t, uint64_t seed, Interval *v)
{
    Pairs pairs = timing_pairs(t);
    statistics_ratio(&pairs, seed, v);
    return (v->high - v->low) / (2 * v->middle);
}

/* By the estimate first, since resampling takes as long as a couple or two; when that says no, not
 * before as many are there as it would take. */
static int narrow_enough(Bench *b, const DeviceTiming *t)
{
    if (t->n < FEW_COUPLES || t->n % LOOK_EVERY || t->n < b->look_at) return 0;
    double half, share = wanted(t, &half);
    if (half > share || (share < coarse && t->n < MIN_COUPLES)) return 0;
    Interval v;
    double more = resampled(t, b->opt->seed, &v) / share;
    b->look_at = t->n * fmin(more * more, 2);
    return more <= 1;
}

void clocked_ratio(const DeviceTiming *t, uint64_t seed, Interval *out)
{
    double estimate, share = wanted(t, &estimate), half = resampled(t, seed, out);
    double contexts = context_share(t, statistics_median(t->baseline_us, t->n),
                                    statistics_median(t->candidate_us, t->n));
    double unknown = out->middle * hypot(fmax(half, share), contexts);
    out->low = fmax(out->middle - unknown, 0);
    out->high = out->middle + unknown;
}

static int warm_up(Bench *b, Finding *f, Error *err)
{
    double us[SIDES], since = clock_seconds();
    int warm = b->opt->timed_at > 0 &&
               since - b->opt->timed_at <
                   stays_warm_s; /* a first run of every copy of the code, as time allows */
    for (int i = 0; i < (warm ? 1 : WARM_COUPLES) ||
                    (clock_seconds() - since < warm_s && (!warm || i < DEVICE_COPIES));
         i++) {
        int rc = couple(b, us, f, err);
        if (rc) return rc;
    }
    return 0;
}

static int couples(Bench *b, DeviceTiming *out, Finding *f, Error *err)
{
    double us[SIDES], since = clock_seconds();
    b->ordered = 0; /* the warm-up has ended anywhere */
    while (out->n < MAX_COUPLES) {
        int rc = couple(b, us, f, err);
        if (rc) return rc;
        out->baseline_us[out->n] = us[BASELINE];
        out->candidate_us[out->n++] = us[CANDIDATE];
        if (out->n >= FEW_COUPLES && clock_seconds() - since > b->opt->budget_s) break;
        if (narrow_enough(b, out)) break;
    }
    return timing_makes_sense(out, 1, err);
}

/* One more run of each side for the counters. */
static int profile(Bench *b, DeviceTiming *out, Finding *f, Error *err)
{
    const Loaded *l = b->loaded[CANDIDATE];
    DeviceTiming *side = memory_alloc(sizeof *side);
    DeviceFault fault = {0};
    int rc = renew(b, f, err);
    for (int s = 0; s < SIDES && !rc; s++) {
        const Rig *r = &b->rigs[s][0];
        memset(side, 0, sizeof *side);
        rc = l->ops->counters(l->device, r->launches, r->n_launches, side, &fault, err);
        if (rc > 0) finding_fault(f, &fault, r->where);
        int *n = s == CANDIDATE ? &out->n_counters : &out->n_baseline_counters;
        *n = side->n_counters;
        memcpy(s == CANDIDATE ? out->counters : out->baseline_counters, side->counters,
               sizeof out->counters);
    }
    free(side);
    return rc;
}

static void log_spent(const Bench *b, const DeviceTiming *t, double start, const double at[3])
{
    double ratio =
        t->n ? statistics_median(t->baseline_us, t->n) / statistics_median(t->candidate_us, t->n)
             : 0;
    Pairs pairs = timing_pairs(t);
    double half = t->n ? statistics_half_width(&pairs) : 0;
    log_debug("buffers and lock %.1f ms, warming up %.1f ms, telemetry %.1f ms, %d couples in %.1f "
              "ms; renewing %.1f ms, running %.1f ms, "
              "comparing %.1f ms; ratio %.4f, half its interval %.4f",
              (at[0] - start) * 1e3, (at[1] - at[0]) * 1e3, (at[2] - at[1]) * 1e3, t->n,
              (clock_seconds() - at[2]) * 1e3, b->spent[RENEWING] * 1e3, b->spent[RUNNING] * 1e3,
              b->spent[COMPARING] * 1e3, ratio, half);
}

int clocked_measure(Loaded *baseline, Loaded *candidate, Cases *cases, const Workload *w,
                    const ClockedOptions *opt, DeviceTiming *out, ChecksPassed *passed, Finding *f,
                    Error *err)
{
    Bench b = {.loaded = {baseline, candidate}, .opt = opt};
    const DeviceOps *ops = candidate->ops;
    Device *d = candidate->device;
    Error ignored;
    memset(out, 0, sizeof *out);
    out->mode = opt->mode;
    random_init(&b.random, opt->seed, random_hash("couples", 7));
    double start = clock_seconds(),
           at[3] = {start, start, start}; /* ready, warm, about to be timed */
    int rc = open_bench(&b, cases, w, f, err);
    int locked = 0;
    out->baseline_launches = b.rigs[BASELINE][0].n_launches;
    out->candidate_launches = b.rigs[CANDIDATE][0].n_launches;
    if (!rc && ops->lock) rc = ops->lock(d, 1, err), locked = !rc;
    at[0] = clock_seconds();
    if (!rc) rc = warm_up(&b, f, err);
    at[1] = clock_seconds();
    if (!rc && ops->telemetry) rc = ops->telemetry(d, &out->before, err);
    at[2] = clock_seconds();
    if (!rc) rc = couples(&b, out, f, err);
    log_spent(&b, out, start, at);
    if (!rc && ops->telemetry) rc = ops->telemetry(d, &out->after, err);
    if (!rc && opt->profile && ops->counters) rc = profile(&b, out, f, err);
    for (int set = 0; set < SETS && !rc; set++) rc = rig_inspect(&b.rigs[CANDIDATE][set], f, err);
    if (locked && ops->lock(d, 0, rc < 0 ? &ignored : err) && rc >= 0) rc = -1;
    if (!rc)
        checks_pass(passed, "%s: outputs of all %d timed runs", b.rigs[CANDIDATE][0].where, b.runs);
    close_bench(&b);
    return rc;
}

/* ---- what the candidate has not seen ---- */

/* Both sides' run on it, in any order. The other set has the same, since its own contents may have
 * had to make room. *fast: how many times the baseline's speed the candidate's may have been. */
static int couple_on(Bench *b, const Case *c, double *fast, Finding *f, Error *err)
{
    double us[SIDES];
    int first = (int)random_below(&b->random, SIDES);
    for (int set = 0; set < SETS; set++)
        for (int side = CANDIDATE; side >= BASELINE; side--)
            if (rig_refill(&b->rigs[side][set], c, 0, err)) return -1;
    b->phase = random_uniform(&b->random);
    int rc = load_both(b, f, err);
    if (!rc) rc = run_sides(b, first, 0, us, f, err);
    if (!rc && !(us[CANDIDATE] > 0))
        return error_set(err, ERROR_INVALID, "the device gave a time that is none: %g us",
                         us[CANDIDATE]);
    const DeviceTiming launches = {.baseline_launches = b->rigs[BASELINE][0].n_launches,
                                   .candidate_launches = b->rigs[CANDIDATE][0].n_launches};
    *fast = rc ? 0
               : us[BASELINE] / us[CANDIDATE] *
                     (remembers + 2 * context_share(&launches, us[BASELINE], us[CANDIDATE]));
    return rc;
}

static int is_as_fast(const Bench *b, double best, double low, Finding *f)
{
    if (best >= low) return 0;
    finding_set(f, OUTCOME_CHEAT, 0,
                "%.3f times as fast as the baseline on inputs that come again, at most %.3f times "
                "on inputs that it has "
                "not seen: results are kept from run to run (%s)",
                low, best, b->rigs[CANDIDATE][0].where);
    snprintf(f->cheat, sizeof f->cheat, "replay");
    return 1;
}

int clocked_unseen(Loaded *baseline, Loaded *candidate, Cases *cases, const Workload *w,
                   const ClockedOptions *opt, double low, ChecksPassed *passed, Finding *f,
                   Error *err)
{
    Bench b = {.loaded = {baseline, candidate}, .opt = opt};
    const DeviceOps *ops = candidate->ops;
    const Case *c;
    Error ignored;
    double best = 0, fast = 0;
    int rc = 0, locked = 0;
    random_init(&b.random, opt->seed, random_hash("unseen", 6));
    for (int i = 0; i < CHECKS_UNSEEN && !rc; i++)
        rc = checks_unseen(cases, candidate->task, w, opt->seed, i, &c,
                           err); /* nobody waits for that */
    if (!rc) rc = open_bench(&b, cases, w, f, err);
    if (!rc && ops->lock) rc = ops->lock(candidate->device, 1, err), locked = !rc;
    if (!rc) rc = warm_up(&b, f, err);
    for (int i = 0; i < CHECKS_UNSEEN && !rc; i++) {
        rc = checks_unseen(cases, candidate->task, w, opt->seed, i, &c, err);
        if (rc || !c) continue;
        rc = couple_on(&b, c, &fast, f, err);
        best = fmax(best, fast);
        if (!rc) checks_pass(passed, "%s", b.rigs[CANDIDATE][0].where);
    }
    if (!rc) rc = is_as_fast(&b, best, low, f);
    if (locked && ops->lock(candidate->device, 0, rc < 0 ? &ignored : err) && rc >= 0) rc = -1;
    close_bench(&b);
    return rc;
}

/* Sampling of pairs. Everything that is done before or after one side's run is done for the other
 * side too, so that only the two kernels differ. */
#include "eval/judge/paired_timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "eval/judge/baseline.h"
#include "eval/judge/checks.h"
#include "eval/judge/library_check.h"
#include "eval/judge/seeds.h"
#include "eval/judge/timing_bounds.h"

enum { BASELINE, CANDIDATE, SIDES };
enum { STEP_REFILL, STEP_RUN, STEP_COMPARE, STEPS }; /* of a pair, for the log */
enum {
    SETS = 4,       /* of inputs and outputs, where they are small */
    BLOCK_SETS = 2, /* of a block of pairs, and of all of large tensors; of very large ones one */
    CONTENTS = 2,   /* draws that the sets receive in turn */
    ORDERS = SIDES * BLOCK_SETS, /* which side runs first, on which set */
    SHIFTED = 3,                 /* runs of check_shifted at most */
    MAX_PAIRS = 800,
    WARM_PAIRS = 4 /* not counted */
};
_Static_assert((int)ORDERS == (int)PAIRED_ORDERS, "intervals are looked at after blocks of orders");

/* Bytes. Larger tensors lie at many places; of a very large set one is enough, poisoned for every pair. */
static const size_t small_set = (size_t)256 << 20, large_set = (size_t)1 << 30;
static const double same_share = 0.99; /* runs of equal calls differ by less */
static const double filled = 0.9; /* of the room for buffers, beside guard zones and whole pages */

/* A candidate that takes so many times what its baseline takes in its first pair of the timing, and a
 * millisecond more, is timed no further. */
static const double hopeless = 5, hopeless_us = 1000;
/* Nor is one that takes so many times as long, and so long, in the run before the lock: five processes that
 * take the GPU in turn make five times of it. Such runs took 4 of 62 s of an H200 (2026-11-30). */
static const double far_off = 25, far_off_us = 20e3;
/* A wrong result of a longer run is not explained by another, nor is its time an accident. */
static const double explained_us = 100e3;
static const double warm_s = 0.010;       /* of uncounted pairs: clocks rise */
static const double warm_us = 30e3;       /* of uncounted runs: as good as WARM_PAIRS pairs */
static const double stays_warm_s = 0.250; /* clocks stay high so long after any process's timing */
/* The host's clock may show this much more than the events before hidden work is suspected. */
static const double host_factor = 1.5, host_slack_us = 400;

typedef struct {
    Judgement *judgement;
    Loaded *loaded[SIDES];
    Run run[SIDES][SETS]; /* both sides use the same inputs and outputs */
    int sets;
    const Case *contents[CONTENTS];
    int64_t rotations; /* run_rotations */
    const ClockOptions *opt;
    Random random;
    int orders[ORDERS], n_ordered; /* the current block of orders; pairs ordered so far */
    double phase;                  /* at which both runs of this pair begin (DeviceClockOps.time) */
    double spent_s[STEPS];         /* for the log */
    int runs;                      /* of the candidate */
    double look_at;                /* pairs before the next look at the resampled interval */
    double known; /* the low end of an interval that this timing may confirm; 0: there is none */
    int unseen; /* from now on its contents are those of checks_unseen, which are drawn in any case */
    LibraryCheck *beside; /* NULL: none is needed */
    int locked;
    double idle_s;          /* before the lock was taken, of the GPU's timings */
    int host_longer[SIDES]; /* runs in which the host's clock showed much more than the events */
} PairedTiming;

/* A fault of the baseline is the evaluator's failure. */
static int baseline_rc(Fault *f, int rc, const char *what)
{
    if (rc <= 0) return rc;
    return error_set(&f->error, ERROR_INVALID, "the baseline %s: %.600s", what, f->message);
}

static int open_set(PairedTiming *p, int set, Fault *f)
{
    for (int side = CANDIDATE; side >= BASELINE; side--) {
        const Run *owner = side == CANDIDATE ? NULL : &p->run[CANDIDATE][set];
        int rc =
            run_open(&p->run[side][set], p->loaded[side], p->contents[set % CONTENTS], owner, f);
        if (side == BASELINE) rc = baseline_rc(f, rc, "cannot be run again");
        if (rc) return rc;
    }
    return 0;
}

/* Bytes of a set with the buffers of both plans. */
static size_t set_bytes(const PairedTiming *p)
{
    const Run *r = &p->run[CANDIDATE][0];
    size_t bytes = 0;
    for (int i = 0; i < r->n_inputs; i++) bytes += r->test->input_bytes[i];
    for (int i = 0; i < r->n_outputs; i++) bytes += r->test->output_bytes[i];
    for (int side = BASELINE; side < SIDES; side++)
        for (int i = 0; i < p->run[side][0].n_buffers; i++)
            if (!p->run[side][0].lent[i]) bytes += p->run[side][0].buffer_bytes[i];
    return bytes;
}

/* What the reference of other contents takes while the sets are there: inputs, outputs and about as much
 * between them in double precision. */
static double reference_bytes(const Run *r)
{
    const Task *t = r->loaded->task;
    size_t n = 0;
    for (int i = 0; i < r->n_inputs; i++)
        n += case_drawn(r->test, &t->inputs[i], r->test->input_bytes[i]);
    for (int i = 0; i < r->n_outputs; i++)
        n += case_drawn(r->test, &t->outputs[i], r->test->output_bytes[i]);
    return 4 * (double)n;
}

/* How many sets there are, which have room. */
static int count_sets(const PairedTiming *p)
{
    const DeviceInfo *d = p->loaded[CANDIDATE]->ops->info(p->loaded[CANDIDATE]->device);
    size_t bytes = set_bytes(p);
    double two = BLOCK_SETS * (double)bytes + reference_bytes(&p->run[CANDIDATE][0]);
    if (bytes > large_set || (d->buffers_bytes && two > filled * (double)d->buffers_bytes))
        return 1;
    return bytes <= small_set && bytes <= d->memory_bytes / SETS ? SETS : BLOCK_SETS;
}

static void close_set(PairedTiming *p, int set)
{
    for (int side = BASELINE; side < SIDES; side++) run_close(&p->run[side][set]);
}

/* Open set 0 again after making room for all sets in one piece of memory. */
static int open_in_one_piece(PairedTiming *p, Fault *f)
{
    const Loaded *l = p->loaded[CANDIDATE];
    const Run *own = &p->run[CANDIDATE][0], *other = &p->run[BASELINE][0];
    int most = 2 * TASK_MAX_TENSORS + own->all_buffers + other->all_buffers;
    size_t *bytes = memory_array((size_t)most * (size_t)p->sets, sizeof *bytes);
    int n = run_sizes(own, bytes);
    n += run_sizes(other, bytes + n);
    for (int set = 1; set < p->sets; set++)
        memcpy(bytes + (size_t)n * (size_t)set, bytes, (size_t)n * sizeof *bytes);
    close_set(p, 0);
    int rc = l->ops->clock->reserve(l->device, bytes, n * p->sets, &f->error);
    free(bytes);
    return rc ? rc : open_set(p, 0, f);
}

/* The bytes of one side's buffers, also before the side's run is opened. Infinite where a size is unknown. */
static double plan_bytes(const PairedTiming *p, int side)
{
    Fault unused;
    size_t *bytes;
    double sum = 0;
    int n, rc = run_buffers(p->loaded[side], p->contents[0]->workload, &bytes, &n, &unused);
    if (rc) return INFINITY;
    for (int i = 0; i < n; i++) sum += (double)bytes[i];
    free(bytes);
    return sum;
}

/* The tensors and the baseline's buffers have room. A plan whose buffers take more than the baseline's may
 * leave none; at the module's own sizes any may, since the baseline ran there alone. */
static int refuse_large(const PairedTiming *p, int rc, Fault *f)
{
    if (rc >= 0 || f->error.code != ERROR_LIMIT || p->loaded[CANDIDATE] == p->loaded[BASELINE])
        return rc;
    double room = p->contents[0]->grown > 0 ? 0 : plan_bytes(p, BASELINE);
    if (plan_bytes(p, CANDIDATE) <= room) return rc;
    return fault_set(f, OUTCOME_PLAN_ERROR, 0,
                     "the plan's buffers leave the device no room for the baseline: %.500s",
                     f->error.text);
}

_Static_assert((int)CONTENTS == (int)CHECKS_SCALES - 1,
               "each of them has a scale of checks_unseen");

/* Where unseen contents of a scale are not usable, others of scale 1 are drawn. */
static int draw_one(PairedTiming *p, int i)
{
    Judgement *j = p->judgement;
    uint64_t seed = p->unseen ? p->opt->seed : j->evaluator->clock.seed;
    p->contents[i] = NULL;
    if (p->unseen && checks_unseen(j, j->timed, p->opt->seed, i, &p->contents[i])) return -1;
    if (!p->contents[i])
        p->contents[i] = cases_get(j->evaluator->cases, j->task, j->timed, VARIANT_DRAWN,
                                   case_seed(seed, j->task, j->timed, i), 1.0, &j->fault.error);
    return p->contents[i] ? 0 : -1;
}

/* Those that were dropped since are drawn again. */
static int draw_contents(PairedTiming *p)
{
    for (int i = 0; i < CONTENTS; i++)
        if (draw_one(p, i)) return -1;
    return 0;
}

static int open_runs(PairedTiming *p)
{
    Fault *f = &p->judgement->fault;
    if (draw_contents(p)) return -1;
    p->sets = BLOCK_SETS;
    for (int set = 0; set < p->sets; set++) {
        int rc = open_set(p, set, f);
        if (rc) return set ? rc : refuse_large(p, rc, f);
        if (set) continue;
        p->sets = count_sets(p);
        if ((rc = open_in_one_piece(p, f))) return rc;
    }
    p->rotations = run_rotations(&p->run[CANDIDATE][0]);
    return 0;
}

/* ---- one run ---- */

static int more_than_events(const PairedTiming *p, const DeviceClock *c)
{
    return p->opt->mode != CLOCK_GRAPH &&
           c->host_us > host_factor * (c->us + c->flush_us) + host_slack_us;
}

/* Find work that the events do not cover: the host's clock shows much more time than the events in
 * at least half of the candidate's runs. The baseline's runs in which it does are subtracted, since
 * a busy host delays both sides. */
static int hidden_work(PairedTiming *p, const DeviceClock *c, Fault *f)
{
    if (!more_than_events(p, c)) return 0;
    int more = ++p->host_longer[CANDIDATE] - p->host_longer[BASELINE];
    if (more < 20 || 2 * more < p->runs) return 0;
    return fault_cheat(f, "hidden_work",
                       "the events around the launches say %.1f us, the host's clock %.1f us: work "
                       "is done outside of the launches that are timed",
                       c->us + c->flush_us, c->host_us);
}

/* Check outputs, inputs and guard zones. This is done after every run: the same contents come
 * again, and a result that was not checked could be kept for them. us: what the run took. */
static int check_candidate(Run *r, double us, Fault *f)
{
    int rc = run_matches(r, &f->error);
    if (rc <= 0) return rc;
    rc = run_compare(r, f);
    if (!rc) rc = run_inspect(r, f);
    return rc == 1 && us < explained_us ? checks_explain_wrong(r, f) : rc;
}

static int clock_run(PairedTiming *p, int side, int set, double *us, Fault *f)
{
    const Loaded *l = p->loaded[side];
    const Run *r = &p->run[side][set];
    DeviceClock c = {0};
    int rc =
        l->ops->clock->time(l->device, r->launches, r->n_launches, p->opt->mode, p->phase, &c, f);
    *us = c.us;
    if (side == BASELINE) {
        p->host_longer[BASELINE] += !rc && more_than_events(p, &c);
        return baseline_rc(f, rc, "failed while timed");
    }
    if (rc > 0) run_fault(r, f);
    if (rc) return rc;
    p->runs++;
    p->loaded[CANDIDATE]->runs++;
    return hidden_work(p, &c, f);
}

static void spend(PairedTiming *p, int step, double *since)
{
    double now = clock_seconds();
    p->spent_s[step] += now - *since;
    *since = now;
}

/* Poison the outputs and both plans' buffers of a set. */
static int poison_set(PairedTiming *p, int set, Error *err)
{
    if (run_reset(&p->run[CANDIDATE][set], err)) return -1;
    return run_reset_own_buffers(&p->run[BASELINE][set], err);
}

/* One run of one side. It is a single run: of two, one could do the work of both. */
static int run_side(PairedTiming *p, int side, int used, double *us, Fault *f)
{
    if (poison_set(p, used, &f->error)) return -1;
    double since = clock_seconds();
    int rc = clock_run(p, side, used, us, f);
    spend(p, STEP_RUN, &since);
    if (side == CANDIDATE && !rc) rc = check_candidate(&p->run[side][used], *us, f);
    spend(p, STEP_COMPARE, &since);
    return rc;
}

static int poison_others(PairedTiming *p, int set, Error *err)
{
    for (int other = 0; other < p->sets; other++)
        if (other != set && poison_set(p, other, err)) return -1;
    return 0;
}

/* Run both sides, one after the other. The sets that are not used are poisoned once before both: the
 * baseline reads nothing from them, and they are poisoned again before the next pair. */
static int run_sides(PairedTiming *p, int first, int set, double us[SIDES], Fault *f)
{
    if (poison_others(p, set, &f->error)) return -1;
    int rc = run_side(p, first, set, &us[first], f);
    return rc ? rc : run_side(p, !first, set, &us[!first], f);
}

/* ---- pairs ---- */

/* Load both modules again: over the pairs their code lies at several places of memory (DEVICE_COPIES). */
static int load_side(PairedTiming *p, int side, Fault *f)
{
    int rc = loaded_again(p->loaded[side], f);
    for (int set = 0; set < p->sets && !rc; set++) rc = run_resolve(&p->run[side][set], f);
    return rc;
}

static int load_both(PairedTiming *p, Fault *f)
{
    int rc = load_side(p, CANDIDATE, f);
    return rc ? rc : baseline_rc(f, load_side(p, BASELINE, f), "cannot be loaded again");
}

/* Give two sets new contents: the two draws change places at random, and each is rotated by a
 * random number of positions where the task allows it. A row may still have been seen before, so
 * that the modules are loaded again, too: their variables keep nothing. Loading a module without
 * variables again is free. */
static int refill_sets(PairedTiming *p, int from, Fault *f)
{
    int swap = (int)random_below(&p->random, CONTENTS);
    for (int i = 0; i < BLOCK_SETS && i < p->sets; i++) {
        int64_t rotation =
            p->rotations ? (int64_t)random_below(&p->random, (uint64_t)p->rotations) : 0;
        for (int side = CANDIDATE; side >= BASELINE; side--)
            if (run_refill(&p->run[side][from + i], p->contents[i ^ swap], rotation, &f->error))
                return -1;
    }
    return load_both(p, f);
}

/* Draw the order of a pair. Every block of ORDERS pairs has each order once, in random sequence:
 * independent draws would let one side go first in most of a dozen pairs too often. */
static int next_order(PairedTiming *p)
{
    int at = p->n_ordered++ % ORDERS;
    for (int i = 0; i < ORDERS && !at; i++) p->orders[i] = i;
    int from = at + (int)random_below(&p->random, (uint64_t)(ORDERS - at)), order = p->orders[from];
    p->orders[from] = p->orders[at];
    return order;
}

/* Run each side once, on the same set. */
static int take_pair(PairedTiming *p, double us[SIDES], Fault *f)
{
    int block = p->n_ordered / ORDERS, from = block * BLOCK_SETS % p->sets;
    int order = next_order(p), first = order % SIDES;
    int set = (from + order / SIDES) % p->sets;
    double since = clock_seconds();
    p->phase = random_uniform(&p->random);
    int rc = refill_sets(p, from, f);
    spend(p, STEP_REFILL, &since);
    return rc ? rc : run_sides(p, first, set, us, f);
}

/* Other pairs would only make exact how slow it is. */
static int is_hopeless(const double us[SIDES])
{
    return us[CANDIDATE] > hopeless * us[BASELINE] + hopeless_us;
}

/* The first run of libraries, which prepare themselves in it, does not tell. */
static int is_far_off(const PairedTiming *p, const double us[SIDES])
{
    return p->loaded[CANDIDATE]->home != HOME_LIBRARY &&
           us[CANDIDATE] > far_off * us[BASELINE] + far_off_us;
}

static int is_warm(const PairedTiming *p)
{
    return p->idle_s < stays_warm_s;
}

/* Others may run beside either side: of three runs of the baseline the fastest counts, and of two of the
 * candidate where one stall of the device could make the first so long. */
static int repeat_far_off(PairedTiming *p, double us[SIDES], Fault *f)
{
    for (int i = 0, rc; i < 3 && is_far_off(p, us); i++) {
        const int side = i ? BASELINE : CANDIDATE;
        double again = us[side];
        if (side == CANDIDATE && again >= explained_us) continue;
        if ((rc = run_side(p, side, 0, &again, f)) != 0) return rc;
        us[side] = fmin(us[side], again);
    }
    return 0;
}

/* Run each side once before the lock is taken, beside whatever else runs there: libraries prepare
 * themselves, code comes to the device, and the candidate's errors are measured, whose elements may take
 * the host seconds. The baseline is first: its time gives the device a time limit for the candidate. */
static int prepare(PairedTiming *p, double us[SIDES], Fault *f)
{
    Run *r = &p->run[CANDIDATE][0];
    Judgement *j = p->judgement;
    p->phase = random_uniform(&p->random);
    int rc = run_sides(p, BASELINE, 0, us, f);
    if (!rc && !j->errors.known && j->timed == j->pairs[0].timed)
        rc = run_errors(r, &j->errors, &f->error);
    if (!rc) rc = repeat_far_off(p, us, f);
    return rc || !j->shared ? rc : library_check_open(j, &p->run[BASELINE][0], &p->beside);
}

/* Pairs that are not counted, until the clocks have risen, with those of `prepare`: one at least. When
 * they are high already, up to one for each copy of the code within warm_s. us: the last one. It ends with
 * a pair that is hopeless. */
static int warm_up(PairedTiming *p, double us[SIDES], Fault *f)
{
    double since = clock_seconds(), ran_us = 0;
    int warm = is_warm(p);
    for (int i = 0; !i || (!warm && i + 1 < WARM_PAIRS && ran_us < warm_us) ||
                    (clock_seconds() - since < warm_s && (!warm || i < DEVICE_COPIES));
         i++) {
        int rc = take_pair(p, us, f);
        if (rc || is_hopeless(us)) return rc;
        ran_us += us[BASELINE] + us[CANDIDATE];
    }
    return 0;
}

static int take_pairs(PairedTiming *p, DeviceTiming *out, Fault *f)
{
    double us[SIDES], since = clock_seconds();
    p->n_ordered = 0; /* begin a block of orders */
    while (out->n < MAX_PAIRS) {
        int rc = take_pair(p, us, f);
        if (rc) return rc;
        out->baseline_us[out->n] = us[BASELINE];
        out->candidate_us[out->n++] = us[CANDIDATE];
        if (out->n >= PAIRED_ORDERS && clock_seconds() - since > p->opt->budget_s) break;
        if (paired_confirms(out, p->known) || paired_narrow(out, p->opt->seed, &p->look_at)) break;
    }
    return timing_makes_sense(out, 1, &f->error);
}

/* A pair before the lock or of the warming is the only sample. */
static int take_one(const double us[SIDES], DeviceTiming *out, Fault *f)
{
    out->n = 1;
    out->baseline_us[0] = us[BASELINE];
    out->candidate_us[0] = us[CANDIDATE];
    return timing_makes_sense(out, 1, &f->error);
}

/* Does a win by the first timing need the baseline's time beside it? One by little does, and one beside which
 * the baseline's only run was faster than in its own process; there_us 0: there was none. */
static int is_doubtful(const PairedTiming *p, const DeviceTiming *t, double there_us)
{
    Interval v;
    if (p->known > 0 || t->n < PAIRED_ORDERS) return 0;
    paired_ratio(t, p->opt->seed, &v);
    double faster = same_share * statistics_median(t->baseline_us, t->n);
    return v.low > 1 && (paired_small_win(v.middle) || there_us < faster);
}

/* Where op lines win, and the baseline is faster in their process than in its own, its times become those.
 * One that fails beside a candidate that was alone there tells nothing. */
static int level_libraries(PairedTiming *p, DeviceTiming *out, double there_us)
{
    Judgement *j = p->judgement;
    Run *baseline = &p->run[BASELINE][0];
    double share = 1;
    if (!is_doubtful(p, out, there_us)) return 0;
    int rc = p->beside ? 0 : library_check_open(j, baseline, &p->beside);
    if (!rc && p->beside) rc = library_share(j, p->beside, baseline, out->n, &share);
    for (int i = 0; i < out->n && !rc; i++) out->baseline_us[i] *= share;
    return j->shared ? rc : 0;
}

/* One more run of each side, to read its hardware counters. */
static int profile(PairedTiming *p, DeviceTiming *out, Fault *f)
{
    const Loaded *l = p->loaded[CANDIDATE];
    DeviceTiming *side = memory_alloc(sizeof *side);
    int rc = refill_sets(p, 0, f);
    for (int s = 0; s < SIDES && !rc; s++) {
        const Run *r = &p->run[s][0];
        memset(side, 0, sizeof *side);
        rc = l->ops->clock->counters(l->device, r->launches, r->n_launches, side, f);
        if (rc > 0) run_fault(r, f);
        int *n = s == CANDIDATE ? &out->n_counters : &out->n_baseline_counters;
        *n = side->n_counters;
        memcpy(s == CANDIDATE ? out->counters : out->baseline_counters, side->counters,
               sizeof out->counters);
    }
    free(side);
    return rc;
}

static void log_spent(const PairedTiming *p, const DeviceTiming *t, double start,
                      const double at[3])
{
    const Pairs pairs = timing_pairs(t);
    const double half = t->n ? statistics_half_width(&pairs) : 0,
                 ratio = t->n ? statistics_median(t->baseline_us, t->n) /
                                    statistics_median(t->candidate_us, t->n)
                              : 0;
    log_debug("buffers and lock %.1f ms, warming up %.1f ms, telemetry %.1f ms, %d pairs in %.1f "
              "ms; refilling %.1f ms, running %.1f ms, "
              "comparing %.1f ms; ratio %.4f, half of its interval %.4f",
              (at[0] - start) * 1e3, (at[1] - at[0]) * 1e3, (at[2] - at[1]) * 1e3, t->n,
              (clock_seconds() - at[2]) * 1e3, p->spent_s[STEP_REFILL] * 1e3,
              p->spent_s[STEP_RUN] * 1e3, p->spent_s[STEP_COMPARE] * 1e3, ratio, half);
}

static PairedTiming begin(Judgement *j, const ClockOptions *opt, const char *purpose)
{
    PairedTiming p = {.judgement = j, .loaded = {&j->baseline->own.loaded, &j->loaded}, .opt = opt};
    random_init(&p.random, opt->seed, random_hash(purpose, strlen(purpose)));
    return p;
}

/* Take or release the device's timing lock. */
static int lock(PairedTiming *p, int on)
{
    const Loaded *l = p->loaded[CANDIDATE];
    if (on == p->locked) return 0;
    if (l->ops->clock->lock(l->device, on ? &p->idle_s : NULL, &p->judgement->fault.error))
        return -1;
    p->locked = on;
    return 0;
}

/* Close the runs. rc: of what was done with them; it comes first. */
static int end(PairedTiming *p, int rc)
{
    Error first = p->judgement->fault.error;
    if (lock(p, 0) && rc >= 0)
        rc = -1;
    else
        p->judgement->fault.error = first;
    library_check_close(p->beside);
    for (int set = 0; set < p->sets; set++) close_set(p, set);
    return rc;
}

/* us: the pair of `prepare`, or zeros. at: the runs are open; warmed up, which runs on unseen contents have
 * done; telemetry read. */
static int take_samples(PairedTiming *p, double us[SIDES], DeviceTiming *out, double at[3])
{
    const Loaded *l = p->loaded[CANDIDATE];
    Fault *f = &p->judgement->fault;
    int far = is_far_off(p, us), warmed = p->locked || far, rc = far ? 0 : lock(p, 1);
    at[0] = at[1] = at[2] = clock_seconds();
    double there_us = 0;
    out->mode = p->opt->mode;
    out->baseline_launches = p->run[BASELINE][0].n_launches;
    out->candidate_launches = p->run[CANDIDATE][0].n_launches;
    if (!rc && !warmed) rc = warm_up(p, us, f);
    at[1] = at[2] = clock_seconds();
    if (!rc) rc = l->ops->clock->telemetry(l->device, &out->before, &f->error);
    at[2] = clock_seconds();
    if (!rc) rc = is_hopeless(us) ? take_one(us, out, f) : take_pairs(p, out, f);
    if (!rc) rc = l->ops->clock->telemetry(l->device, &out->after, &f->error);
    if (!rc)
        rc = library_check(p->judgement, p->beside, &p->run[BASELINE][0],
                           statistics_median(out->baseline_us, out->n), &there_us);
    if (!rc) rc = level_libraries(p, out, there_us);
    if (!rc && p->opt->profile) rc = profile(p, out, f);
    for (int set = 0; set < p->sets && !rc; set++) rc = run_inspect(&p->run[CANDIDATE][set], f);
    if (!rc)
        verdict_pass(&p->judgement->verdict, "%s: outputs of all %d timed runs",
                     p->run[CANDIDATE][0].where, p->runs);
    return rc;
}

int paired_measure(Judgement *j, const ClockOptions *opt)
{
    PairedTiming p = begin(j, opt, "couples");
    DeviceTiming *out = j->verdict.timing = memory_alloc(sizeof *out);
    double start = clock_seconds(), at[3], us[SIDES] = {0};
    int rc = open_runs(&p);
    if (!rc) rc = prepare(&p, us, &j->fault);
    if (!rc) {
        rc = take_samples(&p, us, out, at);
        log_spent(&p, out, start, at);
    }
    return end(&p, rc);
}

int paired_rehearse(Judgement *j)
{
    PairedTiming p = begin(j, &j->evaluator->clock, "rehearsal");
    p.loaded[CANDIDATE] = p.loaded[BASELINE];
    return fault_as_error(&j->fault, end(&p, open_runs(&p)), &j->fault.error);
}

static void take_rivals(Verdict *v, const Verdict *of)
{
    v->n_rivals = of->n_rivals;
    memcpy(v->rivals, of->rivals, sizeof v->rivals);
    memcpy(v->torch, of->torch, sizeof v->torch);
}

int step_time(Judgement *j)
{
    Evaluator *e = j->evaluator;
    /* A device variable must not keep the results of the checks for the timed runs. */
    int rc = loaded_again(&j->loaded, &j->fault);
    if (!rc) rc = baseline_need(j);
    if (!rc) rc = paired_measure(j, &e->clock);
    if (!rc) take_rivals(&j->verdict, &j->baseline->own.verdict);
    return rc ? rc : judgement_score(j);
}

/* ---- unseen inputs ---- */

static int fill_set(PairedTiming *p, int set, const Case *c, Error *err)
{
    for (int side = CANDIDATE; side >= BASELINE; side--)
        if (run_refill(&p->run[side][set], c, 0, err)) return -1;
    return 0;
}

/* Run both sides on case c, in random order. All sets get c, since the cases of the sets may have been
 * dropped to make room for it. *fast: the largest ratio that this pair leaves possible. */
static int take_unseen_pair(PairedTiming *p, const Case *c, double *fast, Fault *f)
{
    double us[SIDES];
    int first = (int)random_below(&p->random, SIDES);
    const DeviceTiming launches = {.baseline_launches = p->run[BASELINE][0].n_launches,
                                   .candidate_launches = p->run[CANDIDATE][0].n_launches};
    for (int set = 0; set < p->sets; set++)
        if (fill_set(p, set, c, &f->error)) return -1;
    p->phase = random_uniform(&p->random);
    int rc = load_both(p, f);
    if (!rc) rc = run_sides(p, first, 0, us, f);
    if (!rc && !(us[CANDIDATE] > 0))
        return error_set(&f->error, ERROR_DEVICE, "the device gave an invalid time: %g us",
                         us[CANDIDATE]);
    if (!rc) *fast = paired_fastest(&launches, us[BASELINE], us[CANDIDATE]);
    return rc;
}

/* Run the candidate alone on case c, which no run has seen. */
static int run_unseen_alone(PairedTiming *p, const Case *c, Fault *f)
{
    double us;
    Run *r = &p->run[CANDIDATE][0];
    if (run_refill(r, c, 0, &f->error)) return -1;
    p->phase = random_uniform(&p->random);
    int rc = loaded_again(p->loaded[CANDIDATE], f);
    if (!rc) rc = run_resolve(r, f);
    return rc ? rc : run_side(p, CANDIDATE, 0, &us, f);
}

static int refuse_replay(const PairedTiming *p, double best, double low, Fault *f)
{
    if (best >= low) return 0;
    return fault_cheat(
        f, "replay",
        "%.3f times as fast as the baseline on inputs that come again, at most %.3f times "
        "on inputs that it has not seen: results are kept from run to run (%s)",
        low, best, p->run[CANDIDATE][0].where);
}

/* One run of each side on contents of which no two positions are equal. */
static int time_shifted(PairedTiming *p, const Case *c, double us[SIDES], Fault *f)
{
    int first = (int)random_below(&p->random, SIDES), rc = load_both(p, f);
    for (int side = CANDIDATE; side >= BASELINE; side--)
        if (run_refill_shifted(&p->run[side][0], c, &f->error)) return -1;
    p->phase = random_uniform(&p->random);
    for (int i = 0; i < SIDES && !rc; i++) {
        int side = i ? !first : first;
        if (poison_set(p, 0, &f->error)) return -1;
        rc = clock_run(p, side, 0, &us[side], f);
    }
    return rc ? rc : run_inspect(&p->run[CANDIDATE][0], f);
}

/* Where contents repeat, a candidate could compute those of one period and copy them. It is as fast where no
 * two positions are equal. */
static int check_shifted(PairedTiming *p)
{
    Judgement *j = p->judgement;
    const DeviceTiming launches = {.baseline_launches = p->run[BASELINE][0].n_launches,
                                   .candidate_launches = p->run[CANDIDATE][0].n_launches};
    double best = 0, us[SIDES];
    const Case *c;
    for (int i = 0; i < SHIFTED && best < j->verdict.low; i++) {
        int rc = checks_unseen(j, j->timed, p->opt->seed, 0, &c);
        if (rc || !c->part) return rc;
        if ((rc = time_shifted(p, c, us, &j->fault))) return rc;
        best = fmax(best, paired_fastest(&launches, us[BASELINE], us[CANDIDATE]));
    }
    if (best >= j->verdict.low) return 0;
    return fault_cheat(&j->fault, "input_dispatch",
                       "%.3f times as fast as the baseline where the rows of inputs come again, at "
                       "most %.3f times where no two are equal (%s)",
                       j->verdict.low, best, p->run[CANDIDATE][0].where);
}

/* Times both sides on an unseen input: the ratio must be near the verdict's ratio. *next: the first input on
 * which neither side has run. */
static int time_unseen(PairedTiming *p, int *next)
{
    Judgement *j = p->judgement;
    const Case *c;
    double best = 0, fast = 0, us[SIDES] = {0};
    int rc = lock(p, 1), i = 0;
    if (!rc && !is_warm(p)) rc = warm_up(p, us, &j->fault);
    for (; i < CHECKS_UNSEEN && !rc && best < j->verdict.low; i++) {
        rc = checks_unseen(j, j->timed, p->opt->seed, i, &c);
        if (rc || !c) continue;
        rc = take_unseen_pair(p, c, &fast, &j->fault);
        if (!rc) best = fmax(best, fast);
        if (!rc) verdict_pass(&j->verdict, "%s", p->run[CANDIDATE][0].where);
    }
    *next = i;
    if (!rc) rc = refuse_replay(p, best, j->verdict.low, &j->fault);
    return rc ? rc : check_shifted(p);
}

/* Outputs must be right on the other inputs, too. No time counts, so that others may time meanwhile. */
static int check_unseen(PairedTiming *p, int next)
{
    Judgement *j = p->judgement;
    const Case *c;
    int rc = lock(p, 0);
    for (int i = next; i < CHECKS_UNSEEN && !rc; i++) {
        rc = checks_unseen(j, j->timed, p->opt->seed, i, &c);
        if (rc || !c) continue;
        rc = run_unseen_alone(p, c, &j->fault);
        if (!rc) verdict_pass(&j->verdict, "%s", p->run[CANDIDATE][0].where);
    }
    return rc;
}

/* Time a win again on contents of its second seed, in the runs that are open with those of the first. */
static int sample_again(PairedTiming *p)
{
    Judgement *j = p->judgement;
    double start = clock_seconds(), at[3], us[SIDES] = {0};
    DeviceTiming *out = j->verdict.timing = memory_alloc(sizeof *out);
    p->unseen = 1;
    int rc = draw_contents(p);
    for (int set = 0; set < p->sets && !rc; set++)
        rc = fill_set(p, set, p->contents[set % CONTENTS], &j->fault.error);
    p->known = j->verdict.low;
    if (!rc) rc = take_samples(p, us, out, at);
    if (!rc) log_spent(p, out, start, at);
    return rc;
}

/* The lower interval stays in the verdict. */
static int measure_again(PairedTiming *p)
{
    Judgement *j = p->judgement;
    Verdict *v = &j->verdict;
    Verdict *first = memory_alloc(sizeof *first);
    *first = *v;
    int rc = sample_again(p), confirmed = !rc && paired_confirms(v->timing, p->known);
    if (!rc) rc = judgement_score(j);
    if (!rc) rc = judgement_floor(j);
    if (!rc && (confirmed || v->low > first->low)) {
        free(v->timing);
        v->timing = first->timing;
        v->time_us = first->time_us;
        v->baseline_us = first->baseline_us;
        v->speedup = first->speedup;
        v->low = first->low;
        v->high = first->high;
    } else {
        free(first->timing);
    }
    free(first);
    return rc;
}

/* The second seed is the same for all candidates, since the expected outputs of timed contents are
 * costly. */
int paired_unseen(Judgement *j)
{
    Evaluator *e = j->evaluator;
    const Case *c;
    ClockOptions second = e->clock;
    second.seed = j->verdict.second_seed = seed_derive(e->seed, "second", j->task->digest);
    PairedTiming p = begin(j, &second, "unseen");
    int rc = 0, next = 0;
    for (int i = 0; i < CHECKS_UNSEEN && !rc; i++)
        rc = checks_unseen(j, j->timed, second.seed, i, &c); /* drawn before the lock */
    if (!rc) rc = open_runs(&p);
    if (!rc) rc = time_unseen(&p, &next);
    if (!rc) rc = measure_again(&p);
    if (!rc) rc = check_unseen(&p, next);
    return end(&p, rc);
}

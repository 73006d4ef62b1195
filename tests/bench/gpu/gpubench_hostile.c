/* Part hostile: hostile candidates alternate with honest ones. It measures whether honest verdicts
 * change, and how long the device takes to recover. The control is an honest verdict after another
 * honest one: intervals of separate verdicts also move where nothing hostile came before. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stop.h"
#include "eval/judge/statistics.h"
#include "tests/bench/gpu/gpubench.h"

enum { HONEST_MAX = 24, HOSTILE_MAX = 100000, CONTROL_EVERY = 4 };

typedef struct {
    Outcome outcome;
    double score, low, high, seconds;
    char cheat[64], message[400];
} Judged;

typedef struct {
    GpuBench *b;
    Evaluator *e;
    GpuBenchList honest, hostile;
    Judged alone[HONEST_MAX];
    double hostile_s[HOSTILE_MAX]; /* time of a hostile verdict */
    double after_s[HOSTILE_MAX];   /* extra time of the honest verdict after it */
    int n, n_hangs, changed, unexpected, refused;
    int apart; /* honest intervals after a hostile verdict that do not overlap the one alone */
    int apart_control, n_control; /* the same after an honest verdict */
    double moved;                 /* largest change of an honest score */
} Hostile;

static Judged judge_one(Hostile *h, const char *task, const char *source)
{
    Verdict v;
    Judged j = {0};
    double start = clock_seconds();
    evaluator_run(h->e, task, source, strlen(source), &v);
    j.seconds = clock_seconds() - start;
    j.outcome = v.outcome;
    j.score = v.score;
    j.low = v.low;
    j.high = v.high;
    snprintf(j.cheat, sizeof j.cheat, "%s", v.cheat);
    snprintf(j.message, sizeof j.message, "%s", v.message);
    verdict_release(&v);
    return j;
}

static int intervals_apart(const Judged *a, const Judged *b)
{
    return a->low > b->high || a->high < b->low;
}

/* Record an honest verdict, so that its interval can be held against the one alone afterwards. */
static void record_interval(Hostile *h, const char *what, int at, const Judged *j)
{
    char name[160];
    snprintf(name, sizeof name, "%s %d %s", what, at, h->honest.items[at].task);
    gpubench_raw(h->b, "hostile", name, j->score, "score");
    gpubench_raw(h->b, "hostile", name, j->low, "low");
    gpubench_raw(h->b, "hostile", name, j->high, "high");
}

/* Judge an honest kernel alone, twice: the first run also prepares the task and fills the compile
 * cache. Returns 0 when it is not ok. */
static int judge_one_alone(Hostile *h, const GpuBenchCandidate *c, Judged *out)
{
    for (int i = 0; i < 2; i++) {
        *out = judge_one(h, c->task, c->source);
        if (out->outcome == OUTCOME_OK) continue;
        h->refused++;
        printf("  alone, the honest %s %s is %s%s%s: %s\n", c->task, c->kind,
               outcome_name(out->outcome), out->cheat[0] ? " " : "", out->cheat, out->message);
        return 0;
    }
    return 1;
}

/* Judge the honest kernels alone: every task's plain baseline, and the tests' honest kernels that
 * this device can run. */
static int judge_alone(Hostile *h, Error *err)
{
    const TaskSet *set = evaluator_tasks(h->e);
    int kept = 0;
    for (int i = 0; i < set->n; i++) {
        h->honest.items =
            memory_grow(h->honest.items, (size_t)h->honest.n + 1, sizeof *h->honest.items);
        GpuBenchCandidate *c = &h->honest.items[h->honest.n++];
        *c = (GpuBenchCandidate){.kind = "baseline",
                                 .source = memory_strdup(set->tasks[i]->baseline_source)};
        snprintf(c->task, sizeof c->task, "%s", set->tasks[i]->name);
    }
    if (gpubench_files(h->b, "tests/cheats/honest_*.cu", &h->honest, err)) return -1;
    for (int i = 0; i < h->honest.n && kept < HONEST_MAX && !stop_requested(); i++) {
        GpuBenchCandidate c = h->honest.items[i];
        Judged j;
        if (!gpubench_expected(&c, "ok", "") || !judge_one_alone(h, &c, &j)) continue;
        h->honest.items[i] = h->honest.items[kept];
        h->honest.items[kept] = c;
        record_interval(h, "alone", kept, &j);
        h->alone[kept++] = j;
    }
    for (int i = kept; i < h->honest.n; i++) free(h->honest.items[i].source);
    h->honest.n = kept;
    return kept ? 0 : error_set(err, ERROR_INVALID, "no honest kernel is ok on %s", h->b->device);
}

static int gather(Hostile *h, Error *err)
{
    static const char *const patterns[] = {
        "tests/cheats/hostile_*.cu", "tests/fixtures/kernels/endless_loop.cu",
        "tests/fixtures/kernels/trap.cu", "tests/fixtures/kernels/out_of_bounds.cu"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (gpubench_files(h->b, patterns[i], &h->hostile, err)) return -1;
    return h->hostile.n ? 0 : error_set(err, ERROR_INVALID, "no hostile kernels in tests/cheats");
}

/* Judge the honest kernel once more, after an honest verdict. */
static void one_control(Hostile *h, int at)
{
    const GpuBenchCandidate *c = &h->honest.items[at];
    Judged j = judge_one(h, c->task, c->source);
    if (j.outcome != OUTCOME_OK) return;
    h->n_control++;
    h->apart_control += intervals_apart(&j, &h->alone[at]);
    record_interval(h, "control", at, &j);
}

/* Judge a new variant of a hostile kernel, and an honest kernel after it. */
static void one_round(Hostile *h, int *slow, int round)
{
    int k = round % h->hostile.n, at = round % h->honest.n;
    for (int tries = 0; slow[k] && h->n_hangs >= h->b->hangs && tries < h->hostile.n; tries++)
        k = (k + 1) % h->hostile.n;
    GpuBenchCandidate *c = &h->hostile.items[k];
    char *source = gpubench_variant(c->source, round);
    Judged bad = judge_one(h, c->task, source);
    free(source);
    slow[k] = bad.outcome == OUTCOME_TIMEOUT;
    h->n_hangs += slow[k];
    if (!gpubench_expected(c, outcome_name(bad.outcome), bad.cheat)) {
        h->unexpected++;
        printf("  %s: %s%s%s, expected %s: %s\n", c->kind, outcome_name(bad.outcome),
               bad.cheat[0] ? " " : "", bad.cheat, c->expect, bad.message);
    }
    Judged good = judge_one(h, h->honest.items[at].task, h->honest.items[at].source);
    if (good.outcome != OUTCOME_OK) {
        h->changed++;
        printf("  after %s, the honest %s is %s: %s\n", c->kind, h->honest.items[at].task,
               outcome_name(good.outcome), good.message);
    } else {
        h->moved = fmax(h->moved, fabs(good.score / h->alone[at].score - 1));
        h->apart += intervals_apart(&good, &h->alone[at]);
        record_interval(h, "honest", at, &good);
    }
    h->hostile_s[h->n] = bad.seconds;
    h->after_s[h->n++] = fmax(good.seconds - h->alone[at].seconds, 0);
    gpubench_raw(h->b, "hostile", c->kind, bad.seconds, "s");
    gpubench_raw(h->b, "hostile", "honest, longer than alone", good.seconds - h->alone[at].seconds,
                 "s");
    /* Every kernel takes its turn: round / n shifts the choice by one each time round. */
    if ((round / h->honest.n + at) % CONTROL_EVERY == 0) one_control(h, at);
}

static void report(Hostile *h)
{
    GpuBench *b = h->b;
    double longest = 0;
    for (int i = 0; i < h->n; i++) longest = fmax(longest, h->after_s[i]);
    gpubench_row(b, "hostile", "hostile candidates, as many honest ones among them", h->n, "",
                 ">1000");
    gpubench_row(b, "hostile", "of them hangs", h->n_hangs, "", "");
    gpubench_row(b, "hostile", "honest verdicts that changed", h->changed, "", "<0");
    gpubench_row(b, "hostile", "honest kernels that are refused alone", h->refused, "", "<0");
    gpubench_row(b, "hostile", "honest intervals apart from the one alone (few by chance)",
                 100.0 * h->apart / h->n, "%", "<1");
    if (h->n_control)
        gpubench_row(b, "hostile", "the same after an honest verdict (control)",
                     100.0 * h->apart_control / h->n_control, "%", "");
    gpubench_row(b, "hostile", "largest change of an honest score", 100 * h->moved, "%", "");
    gpubench_row(b, "hostile", "hostile verdicts that their file does not expect", h->unexpected,
                 "", "<0");
    gpubench_row(b, "hostile", "recovery: the next honest verdict is later by, mean",
                 gpubench_mean(h->after_s, h->n), "s", "<1");
    gpubench_row(b, "hostile", "recovery, longest", longest, "s", "");
    gpubench_row(b, "hostile", "a hostile candidate's own verdict, median",
                 statistics_median(h->hostile_s, h->n), "s", "");
    gpubench_row(b, "hostile", "a hostile candidate's own verdict, mean",
                 gpubench_mean(h->hostile_s, h->n), "s", "");
}

int gpubench_hostile(GpuBench *b, Error *err)
{
    Hostile *h = memory_alloc(sizeof *h);
    h->b = b;
    gpubench_begin(b, "Hostile candidates among honest ones");
    int rc = gather(h, err) ||
                     evaluator_open(&(EvaluatorOptions){.device = b->device, .seed = 1}, &h->e, err)
                 ? -1
                 : 0;
    if (!rc) rc = judge_alone(h, err);
    int *slow = memory_array((size_t)h->hostile.n + 1, sizeof *slow);
    for (int i = 0; !rc && i < b->hostile && h->n < HOSTILE_MAX && !(h->n && gpubench_over(b)); i++)
        one_round(h, slow, (int)b->from + i);
    if (h->n)
        report(h);
    else if (!rc)
        rc = error_set(err, ERROR_INVALID, "nothing was judged");
    free(slow);
    if (h->e) evaluator_close(h->e);
    gpubench_list_release(&h->honest);
    gpubench_list_release(&h->hostile);
    free(h);
    return rc;
}

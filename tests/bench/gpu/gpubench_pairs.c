/* Parts same, difference and repeat: the accuracy of paired timing. Same compares equal sides,
 * difference compares sides with 2% between them, and repeat judges one candidate many times. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/embed.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "eval/candidate/candidate.h"
#include "eval/judge/statistics.h"
#include "tests/bench/gpu/gpubench.h"
#include "tests/fixture_path.h"

enum { PAIRS_MAX = 100000, PAIRS_A_TASK = 4096, PAIRS_A_PROCESS = 4, REPEATS_MAX = 1000 };

typedef struct {
    double score, speedup, low, high, baseline_us, candidate_us;
} Pair;

/* Judge a candidate. Returns 1 when it is ok, 0 when it is refused, which counts as a fault of the
 * evaluator, and -1 when the evaluator failed. */
static int judge_pair(GpuBench *b, const char *part, Evaluator *e, const char *task,
                      const char *source, Pair *out, Error *err)
{
    Verdict v;
    evaluator_run(e, task, source, strlen(source), &v);
    int rc = v.outcome == OUTCOME_OK;
    *out = (Pair){v.score, v.speedup, v.low, v.high, v.baseline_us, v.time_us};
    if (v.outcome == OUTCOME_EVALUATOR_ERROR) {
        rc = error_set(err, ERROR_INVALID, "%s: %.600s", task, v.message);
    } else if (!rc) {
        printf("  %s is %s%s%s: %s\n", task, outcome_name(v.outcome), v.cheat[0] ? " " : "",
               v.cheat, v.message);
        gpubench_raw(b, part, "refused", 1, outcome_name(v.outcome));
    }
    verdict_release(&v);
    return rc;
}

static const char *const repeat_tasks[] = {"relu", "softmax", "matmul"};
enum { REPEAT_TASKS = sizeof repeat_tasks / sizeof *repeat_tasks };

/* The state of part repeat, which continues between the comparisons of other parts. */
struct GpuRepeat {
    char *sources[REPEAT_TASKS];
    double scores[REPEAT_TASKS][REPEATS_MAX], first, last;
    int n, judged[REPEAT_TASKS], refused, failed;
};
typedef struct GpuRepeat Repeat;

static void repeat_if_due(GpuBench *b);

static int read_source(const char *path, Buffer *out, Error *err)
{
    buffer_init(out, CANDIDATE_MAX_SOURCE + 1);
    return file_read(path, CANDIDATE_MAX_SOURCE, out, err);
}

static int open_against(const GpuBench *b, const char *tasks, const char *baseline, Evaluator **e,
                        Error *err)
{
    return evaluator_open(
        &(EvaluatorOptions){
            .device = b->device, .tasks_root = tasks, .seed = 1, .baseline = baseline},
        e, err);
}

/* ---- A/A ---- */

typedef struct {
    double bias[PAIRS_MAX]; /* speedup - 1 */
    int task[PAIRS_MAX];
    int n, wins, small_wins, n_small, refused;
    double worst; /* of a task at one size, percent */
    char worst_name[96];
} Same;

typedef enum { SIZE_TIMED, SIZE_HALF, SIZE_SMALL, SIZES } Size;
static const char *const size_labels[SIZES] = {"timed size", "half of it", "small"};

/* Add a comparison. Small kernels, of a few microseconds, which no task times, count separately. */
static void note_pair(Same *s, Size size, int task, const Pair *p)
{
    if (size == SIZE_SMALL) {
        s->n_small++;
        s->small_wins += p->score > 1;
        return;
    }
    s->task[s->n] = task;
    s->bias[s->n++] = p->speedup - 1;
    s->wins += p->score > 1;
}

/* The largest median of a task, over both sizes. */
static double worst_task(const Same *s, const TaskSet *set, char *name, size_t name_size)
{
    double *own = memory_array((size_t)s->n, sizeof *own), worst = 0;
    for (int i = 0; i < set->n; i++) {
        int n = 0;
        for (int k = 0; k < s->n; k++)
            if (s->task[k] == i) own[n++] = s->bias[k];
        double size = n ? fabs(statistics_median(own, n)) : 0;
        if (size < worst) continue;
        worst = size;
        snprintf(name, name_size, "%s", set->tasks[i]->name);
    }
    free(own);
    return worst;
}

/* The comparisons of a task at one size. */
typedef struct {
    const char *tasks, *task; /* the folder of all, and the name in it */
    int index;
    Size size;
    double seconds; /* that they may take; 0: no limit */
    char baseline[4200];
    Buffer source;
    double end, bias[PAIRS_A_TASK];
    int n;
} SameTask;

static int goes_on(const SameTask *t)
{
    return !stop_requested() && (t->n < 2 || t->end <= 0 || clock_seconds() < t->end);
}

/* Make some comparisons with one evaluator. The placement of code and contexts in memory differs
 * between processes, so several evaluators are measured. */
static int same_process(GpuBench *b, Same *s, SameTask *t, int count, Error *err)
{
    char what[160];
    Evaluator *e;
    int rc = open_against(b, t->tasks, t->baseline, &e, err);
    if (rc) return rc;
    snprintf(what, sizeof what, "%s, %s", t->task, size_labels[t->size]);
    for (int i = 0; i < count && goes_on(t); i++) {
        Pair p;
        repeat_if_due(b);
        rc = judge_pair(b, "same", e, t->task, t->source.data, &p, err);
        s->refused += rc == 0;
        if (rc < 0) break;
        if (!rc) continue;
        t->bias[t->n++] = p.speedup - 1;
        note_pair(s, t->size, t->index, &p);
        gpubench_raw(b, "same", what, p.speedup, "ratio");
    }
    evaluator_close(e);
    return rc < 0 ? -1 : 0;
}

static void report_task(GpuBench *b, Same *s, SameTask *t)
{
    char what[160];
    const double median = 100 * statistics_median(t->bias, t->n);
    snprintf(what, sizeof what, "bias of %s, %s (%d)", t->task, size_labels[t->size], t->n);
    gpubench_row(b, "same", what, median, "%", "");
    if (t->size == SIZE_SMALL || fabs(median) < s->worst) return;
    s->worst = fabs(median);
    snprintf(s->worst_name, sizeof s->worst_name, "%s, %s", t->task, size_labels[t->size]);
}

static int same_size(GpuBench *b, Same *s, SameTask *t, long count, Error *err)
{
    snprintf(t->baseline, sizeof t->baseline, "%s/%s/baseline.cu", t->tasks, t->task);
    int rc = read_source(t->baseline, &t->source, err), done = 0,
        limit = count < PAIRS_A_TASK ? (int)count : PAIRS_A_TASK;
    t->end = t->seconds > 0 ? clock_seconds() + t->seconds : 0;
    for (; !rc && done < limit && s->n + PAIRS_A_PROCESS < PAIRS_MAX && goes_on(t);
         done += PAIRS_A_PROCESS) {
        int few = limit - done < PAIRS_A_PROCESS ? limit - done : PAIRS_A_PROCESS;
        rc = same_process(b, s, t, few, err);
    }
    if (t->n) report_task(b, s, t);
    buffer_release(&t->source);
    return rc;
}

/* Make b->pairs comparisons, half of them at the timed sizes and half at half of those, and a tenth
 * more at small sizes. */
static int same_all(GpuBench *b, Same *s, const TaskSet *set, Error *err)
{
    char half[4096], small[4096];
    const char *root = getenv("QUERN_TASKS");
    const char *roots[SIZES] = {root ? root : fixture_path("tasks"), half, small};
    static const double shares[SIZES] = {0.5, 0.5, 0.1}, all = 1.1;
    if (gpubench_tasks(b, "tasks-half", b->only, NULL, GPUBENCH_HALF, half, err) ||
        gpubench_tasks(b, "tasks-small", b->only, NULL, 0, small, err))
        return -1;
    int rc = 0;
    int predicted = !strncmp(b->device, "sim:", 4); /* no memory for large sizes, and no bias */
    for (Size size = predicted ? SIZE_SMALL : 0; size < SIZES; size++)
        for (int i = 0; i < set->n && !rc && !stop_requested(); i++) {
            double share = shares[size] / set->n;
            SameTask t = {.tasks = roots[size],
                          .task = set->tasks[i]->name,
                          .index = i,
                          .size = size,
                          .seconds = b->limit_s * share / all};
            rc = same_size(b, s, &t, (long)ceil((double)b->pairs * share), err);
        }
    return rc;
}

static void report_same(GpuBench *b, const Same *s, const TaskSet *set)
{
    char what[160], name[64] = "";
    if (s->n) {
        gpubench_row(b, "same", "comparisons", s->n, "", ">500");
        gpubench_row(b, "same", "median bias", 100 * fabs(statistics_median(s->bias, s->n)), "%",
                     "<0.1");
        double worst = worst_task(s, set, name, sizeof name);
        snprintf(what, sizeof what, "largest bias of a task, over both sizes (%s)", name);
        gpubench_row(b, "same", what, 100 * worst, "%", "<0.3");
        snprintf(what, sizeof what, "largest bias of a task at one size (%s)", s->worst_name);
        gpubench_row(b, "same", what, s->worst, "%", "");
        gpubench_row(b, "same", "reported wins", 100.0 * s->wins / s->n, "%", "<1");
    }
    if (s->n_small) {
        gpubench_row(b, "same", "small: comparisons", s->n_small, "", "");
        gpubench_row(b, "same", "small: reported wins", 100.0 * s->small_wins / s->n_small, "%",
                     "");
    }
    gpubench_row(b, "same", "comparisons that were refused", s->refused, "", "<0");
}

/* Comparisons are reported also when a later one fails. */
int gpubench_same(GpuBench *b, Error *err)
{
    Same *s = memory_alloc(sizeof *s);
    TaskSet set = {0};
    gpubench_begin(b, "A/A: every task's plain baseline against itself");
    int rc = taskset_load(NULL, b->only, &set, err);
    if (!rc) rc = same_all(b, s, &set, err);
    if (s->n || s->n_small || s->refused)
        report_same(b, s, &set);
    else if (!rc)
        rc = error_set(err, ERROR_INVALID, "nothing was compared");
    taskset_release(&set);
    free(s);
    return rc;
}

/* ---- a true difference ---- */

EMBED(pair_cu, "tests/bench/gpu/pair.cu")
static const char spare_line[] = "//@ buffer float spare[ceil_div(n, 25600) * 512]\n";

typedef struct {
    char path[2][4200]; /* [0]: plain; [1]: with 2% more */
    char *source[2];
    double log_ratio[PAIRS_MAX];
    int n, right, refused; /* right: the whole interval has the right direction */
} Difference;

static int write_pair(GpuBench *b, Difference *d, Error *err)
{
    static const char *const plans[2] = {
        "//@ launch relu<<<ceil_div(n, 512), 128>>>(x, y, spare, n)\n",
        "//@ launch relu<<<ceil_div(n, 512) + ceil_div(n, 25600), 128>>>(x, y, spare, n)\n"};
    for (int i = 0; i < 2; i++) {
        snprintf(d->path[i], sizeof d->path[i], "%s/relu-%d.cu", b->work, i);
        d->source[i] = memory_printf("%s%s%s", spare_line, plans[i], pair_cu);
        if (file_write_atomic(d->path[i], d->source[i], strlen(d->source[i]), err)) return -1;
    }
    return 0;
}

static int trials_done(const Difference *d)
{
    return d->n + d->refused;
}

/* Compare some pairs: the candidate is side `more`, the baseline the other one. A slower candidate
 * counts as right only by the interval's upper end: the score, its lower end, is below 1 for an
 * equal one too. */
static int different(GpuBench *b, Difference *d, int more, int count, Error *err)
{
    Evaluator *e;
    if (open_against(b, NULL, d->path[!more], &e, err)) return -1;
    int rc = 0;
    for (int k = 0;
         k < count && trials_done(d) < b->trials && d->n < PAIRS_MAX && !stop_requested(); k++) {
        Pair p;
        repeat_if_due(b);
        rc = judge_pair(b, "difference", e, "relu", d->source[more], &p, err);
        d->refused += rc == 0;
        if (rc < 0) break;
        if (!rc) continue;
        d->right += more ? p.high < 1 : p.score > 1;
        d->log_ratio[d->n++] = more ? -log(p.speedup) : log(p.speedup);
        gpubench_raw(b, "difference", more ? "2% slower" : "2% faster", p.speedup, "ratio");
    }
    evaluator_close(e);
    return rc < 0 ? -1 : 0;
}

int gpubench_difference(GpuBench *b, Error *err)
{
    Difference *d = memory_alloc(sizeof *d);
    gpubench_begin(b, "A true difference: the same kernel with 2% more bytes to move");
    int rc = write_pair(b, d, err),
        few = b->trials < 2 * PAIRS_A_PROCESS ? (int)(b->trials + 1) / 2 : PAIRS_A_PROCESS;
    for (int k = 0; !rc && trials_done(d) < b->trials && d->n < PAIRS_MAX &&
                    (k < 2 ? !stop_requested() : !gpubench_over(b));
         k++)
        rc = different(b, d, k % 2, few, err);
    if (trials_done(d)) {
        gpubench_row(b, "difference", "trials", trials_done(d), "", ">200");
        gpubench_row(b, "difference", "scored in the right direction",
                     100.0 * d->right / trials_done(d), "%", ">95");
        gpubench_row(b, "difference", "trials that were refused", d->refused, "", "<0");
    } else if (!rc) {
        rc = error_set(err, ERROR_INVALID, "nothing was compared");
    }
    if (d->n)
        gpubench_row(b, "difference", "median of the ratios",
                     exp(statistics_median(d->log_ratio, d->n)), "", "");
    free(d->source[0]);
    free(d->source[1]);
    free(d);
    return rc;
}

/* ---- the same candidate many times ---- */

/* Judge each task's candidate once, with a new evaluator, as a user would. The score counts, not
 * its interval. */
static int repeat_once(GpuBench *b, Repeat *r, Error *err)
{
    Evaluator *e;
    if (open_against(b, NULL, NULL, &e, err)) return -1;
    int rc = 0;
    for (int i = 0; i < REPEAT_TASKS && rc >= 0; i++) {
        Pair p;
        rc = judge_pair(b, "repeat", e, repeat_tasks[i], r->sources[i], &p, err);
        r->refused += rc == 0;
        if (rc <= 0) continue;
        r->scores[i][r->judged[i]++] = p.score;
        gpubench_raw(b, "repeat", repeat_tasks[i], p.score, "score");
        gpubench_raw(b, "repeat", repeat_tasks[i], p.low, "lower bound");
        gpubench_raw(b, "repeat", repeat_tasks[i], p.speedup, "ratio");
        gpubench_raw(b, "repeat", repeat_tasks[i], p.baseline_us, "us, baseline");
        gpubench_raw(b, "repeat", repeat_tasks[i], p.candidate_us, "us, candidate");
    }
    evaluator_close(e);
    return rc < 0 ? -1 : 0;
}

/* When the next repeat is due; INFINITY after the last. */
static double repeat_due(const GpuBench *b, const Repeat *r)
{
    if (r->n >= b->repeats || r->n >= REPEATS_MAX) return INFINITY;
    return r->n ? r->first + b->span_s * r->n / (double)(b->repeats - 1) : 0;
}

/* Make a repeat when it is due. A failure counts for part repeat, not for the current part. */
static void repeat_if_due(GpuBench *b)
{
    Repeat *r = b->repeat;
    Error err;
    double now = clock_seconds();
    if (!r || now < repeat_due(b, r)) return;
    r->last = now;
    if (!r->n++) r->first = now;
    if (!repeat_once(b, r, &err)) return;
    r->failed++;
    log_warn("repeat: %s", err.text);
}

static void repeat_end(GpuBench *b)
{
    for (int i = 0; i < REPEAT_TASKS; i++) free(b->repeat->sources[i]);
    free(b->repeat);
    b->repeat = NULL;
}

int gpubench_repeat_begin(GpuBench *b, Error *err)
{
    Repeat *r = b->repeat = memory_alloc(sizeof *r);
    int rc = 0;
    for (int i = 0; i < REPEAT_TASKS && !rc; i++) {
        char path[4096];
        Buffer text;
        snprintf(path, sizeof path, "%s/%s/baseline.cu", fixture_path("tasks"), repeat_tasks[i]);
        rc = read_source(path, &text, err);
        r->sources[i] = buffer_detach(&text);
        buffer_release(&text);
    }
    if (rc) repeat_end(b);
    return rc;
}

static double spread(const double *v, int n)
{
    double low = v[0], high = v[0];
    for (int i = 1; i < n; i++) {
        low = fmin(low, v[i]);
        high = fmax(high, v[i]);
    }
    return 100 * (high - low) / statistics_median(v, n);
}

/* Of n >= 2 values, as a percentage of their mean. */
static double deviation(const double *v, int n)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < n; i++) mean += v[i] / n;
    for (int i = 0; i < n; i++) squares += (v[i] - mean) * (v[i] - mean);
    return 100 * sqrt(squares / (n - 1)) / mean;
}

static int report_repeats(GpuBench *b, const Repeat *r, Error *err)
{
    double worst = 0;
    int least = REPEATS_MAX;
    for (int i = 0; i < REPEAT_TASKS; i++) least = r->judged[i] < least ? r->judged[i] : least;
    gpubench_row(b, "repeat", "times", least, "", ">10");
    gpubench_row(b, "repeat", "refused or failed", r->refused + r->failed, "", "<0");
    if (least < 2)
        return error_set(err, ERROR_INVALID, "judged %d times: once is no repetition", least);
    gpubench_row(b, "repeat", "first to last", r->last - r->first, "s", ">600");
    for (int i = 0; i < REPEAT_TASKS; i++) {
        char what[96];
        double s = spread(r->scores[i], r->judged[i]);
        worst = fmax(worst, s);
        snprintf(what, sizeof what, "%s: scores, largest less smallest", repeat_tasks[i]);
        gpubench_row(b, "repeat", what, s, "%", "");
        snprintf(what, sizeof what, "%s: their standard deviation", repeat_tasks[i]);
        gpubench_row(b, "repeat", what, deviation(r->scores[i], r->judged[i]), "%", "");
    }
    gpubench_row(b, "repeat", "scores within", worst, "%", "<1");
    return 0;
}

int gpubench_repeat(GpuBench *b, Error *err)
{
    gpubench_begin(b, "The same candidate again and again");
    int rc = b->repeat ? 0 : gpubench_repeat_begin(b, err);
    while (!rc && !stop_requested() && isfinite(repeat_due(b, b->repeat))) {
        double now = clock_seconds(), due = fmax(repeat_due(b, b->repeat), now);
        if (b->repeat->n >= 2 && b->until > 0 && due >= b->until) break;
        if (due > now) clock_sleep(due - now);
        repeat_if_due(b);
    }
    if (b->repeat && b->repeat->n) rc = report_repeats(b, b->repeat, err);
    if (b->repeat) repeat_end(b);
    return rc;
}

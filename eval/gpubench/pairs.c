/* What the timing of a pair is worth: equal sides, sides that differ by a known 2%, and one candidate again and again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/stop.h"
#include "eval/candidate.h"
#include "eval/gpubench/gpubench.h"
#include "eval/statistics.h"

enum { PAIRS_MAX = 100000, PAIRS_A_TASK = 4096, PAIRS_A_PROCESS = 4, REPEATS_MAX = 1000 };

typedef struct {
    double score, speedup, low, high;
} Pair;

static int judge_pair(Evaluator *e, const char *task, const char *source, Pair *out, Error *err)
{
    Verdict v;
    evaluator_run(e, task, source, strlen(source), &v);
    int rc = v.outcome == OUTCOME_OK ? 0 : error_set(err, "%s: %s: %.600s", task, outcome_name(v.outcome), v.message);
    *out = (Pair){v.score, v.speedup, v.low, v.high};
    verdict_release(&v);
    return rc;
}

static const char *const again[] = {"relu", "softmax", "matmul"};
enum { AGAIN = sizeof again / sizeof *again };

/* Part repeat, which goes on between the comparisons of other parts. */
struct GpuRepeat {
    Evaluator *e;
    char *sources[AGAIN];
    double scores[AGAIN][REPEATS_MAX], start, last;
    int n;
};
typedef struct GpuRepeat Repeat;

static int repeat_if_due(GpuBench *b, Error *err);

static int read_source(const char *path, Buffer *out, Error *err)
{
    buffer_init(out, CANDIDATE_MAX_SOURCE + 1);
    return file_read(path, CANDIDATE_MAX_SOURCE, out, err);
}

static int open_against(const GpuBench *b, const char *tasks, const char *baseline, Evaluator **e, Error *err)
{
    return evaluator_open(&(EvaluatorOptions){.device = b->device, .tasks_root = tasks, .seed = 1, .baseline = baseline}, e, err);
}

/* ---- A/A ---- */

typedef struct {
    double bias[PAIRS_MAX];     /* speedup - 1 */
    int task[PAIRS_MAX];
    int n, wins, small_wins, n_small;
} Same;

typedef enum { SIZE_TIMED, SIZE_HALF, SIZE_SMALL, SIZES } Size;
static const char *const size_labels[SIZES] = {"timed size", "half of it", "small"};

/* Kernels of a few microseconds, which no task times, are counted apart. */
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

/* The largest of the tasks' medians, over both sizes. */
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

/* Some comparisons by one evaluator; where code and contexts lie in memory is its processes' luck, so others follow. */
static int same_process(GpuBench *b, Same *s, const char *tasks, const char *task, int index, Size size, const char *baseline,
                        const Buffer *source, double *bias, int count, double end, int *n, Error *err)
{
    char what[160];
    Evaluator *e;
    int rc = open_against(b, tasks, baseline, &e, err);
    if (rc) return rc;
    snprintf(what, sizeof what, "%s, %s", task, size_labels[size]);
    for (int i = 0; i < count && !stop_requested() && (*n < 2 || end <= 0 || clock_seconds() < end); i++) {
        Pair p;
        rc = repeat_if_due(b, err) || judge_pair(e, task, source->data, &p, err) ? -1 : 0;
        if (rc) break;
        bias[(*n)++] = p.speedup - 1;
        note_pair(s, size, index, &p);
        gpubench_raw(b, "same", what, p.speedup, "ratio");
    }
    evaluator_close(e);
    return rc;
}

static int same_size(GpuBench *b, Same *s, const char *tasks, const char *task, int index, Size size, long count, double seconds, Error *err)
{
    char path[4200], what[160];
    Buffer source;
    snprintf(path, sizeof path, "%s/%s/baseline.cu", tasks, task);
    int rc = read_source(path, &source, err), n = 0, most = count < PAIRS_A_TASK ? (int)count : PAIRS_A_TASK;
    double bias[PAIRS_A_TASK], end = seconds > 0 ? clock_seconds() + seconds : 0;
    while (!rc && n < most && s->n + PAIRS_A_PROCESS < PAIRS_MAX && !stop_requested() && (n < 2 || end <= 0 || clock_seconds() < end)) {
        int more = most - n < PAIRS_A_PROCESS ? most - n : PAIRS_A_PROCESS;
        rc = same_process(b, s, tasks, task, index, size, path, &source, bias, more, end, &n, err);
    }
    if (!rc && n) {
        snprintf(what, sizeof what, "bias of %s, %s (%d)", task, size_labels[size], n);
        gpubench_row(b, "same", what, 100 * statistics_median(bias, n), "%", "");
    }
    buffer_release(&source);
    return rc;
}

/* A tenth of the comparisons, and of the time, for the small sizes. */
static int same_all(GpuBench *b, Same *s, const TaskSet *set, Error *err)
{
    char half[4096], small[4096];
    const char *root = getenv("QUERN_TASKS");
    const char *roots[SIZES] = {root ? root : QUERN_ROOT "/tasks", half, small};
    static const double shares[SIZES] = {0.45, 0.45, 0.1};
    if (gpubench_tasks(b, "tasks-half", b->only, NULL, GPUBENCH_HALF, half, sizeof half, err) ||
        gpubench_tasks(b, "tasks-small", b->only, NULL, 0, small, sizeof small, err))
        return -1;
    int rc = 0;
    int predicted = !strncmp(b->device, "sim:", 4); /* one that predicts has no memory for such sizes, nor any bias */
    for (Size size = predicted ? SIZE_SMALL : 0; size < SIZES; size++)
        for (int i = 0; i < set->n && !rc && !stop_requested(); i++) {
            double share = shares[size] / set->n;
            rc = same_size(b, s, roots[size], set->tasks[i]->name, i, size, (long)ceil((double)b->pairs * share), b->limit_s * share, err);
        }
    return rc;
}

int gpubench_same(GpuBench *b, Error *err)
{
    Same *s = memory_alloc(sizeof *s);
    char what[160], name[64] = "";
    TaskSet set = {0};
    gpubench_begin(b, "A/A: every task's plain baseline against itself");
    int rc = taskset_load(NULL, b->only, &set, err);
    if (!rc) rc = same_all(b, s, &set, err);
    if (!rc && s->n) {
        gpubench_row(b, "same", "comparisons", s->n, "", "");
        gpubench_row(b, "same", "median bias", 100 * fabs(statistics_median(s->bias, s->n)), "%", "<0.1");
        double worst = worst_task(s, &set, name, sizeof name);
        snprintf(what, sizeof what, "largest bias of a task, over both sizes (%s)", name);
        gpubench_row(b, "same", what, 100 * worst, "%", "<0.3");
        gpubench_row(b, "same", "reported wins", 100.0 * s->wins / s->n, "%", "<1");
    }
    if (!rc && s->n_small) {
        gpubench_row(b, "same", "small: reported wins", 100.0 * s->small_wins / s->n_small, "%", "");
    }
    taskset_release(&set);
    free(s);
    return rc;
}

/* ---- a true difference ---- */

/* One kernel in two plans. Blocks past the last tile take the first ones once more, into a buffer of their own: 2% more
 * bytes read and written, by the same instructions. */
static const char tiles[] =
    "extern \"C\" __global__ void relu(const float *x, float *y, float *spare, int n)\n"
    "{\n"
    "    int tile = blockIdx.x, whole = (n + 511) / 512;\n"
    "    float *out = y;\n"
    "    if (tile >= whole) { tile -= whole; out = spare; }\n"
    "    int i = (tile * blockDim.x + threadIdx.x) * 4;\n"
    "    if (i + 3 < n) {\n"
    "        float4 v = *reinterpret_cast<const float4 *>(x + i);\n"
    "        v.x = v.x > 0.0f ? v.x : 0.0f;\n"
    "        v.y = v.y > 0.0f ? v.y : 0.0f;\n"
    "        v.z = v.z > 0.0f ? v.z : 0.0f;\n"
    "        v.w = v.w > 0.0f ? v.w : 0.0f;\n"
    "        *reinterpret_cast<float4 *>(out + i) = v;\n"
    "    } else {\n"
    "        for (; i < n; i++) out[i] = x[i] > 0.0f ? x[i] : 0.0f;\n"
    "    }\n"
    "}\n";
static const char spare_line[] = "//@ buffer float spare[ceil_div(n, 25600) * 512]\n";

typedef struct {
    char path[2][4200];         /* [0]: as it is; [1]: with 2% more */
    char *source[2];
    double log_ratio[PAIRS_MAX];
    int n, right, sure;         /* right: the score says it; sure: the whole interval does */
} Difference;

static int write_pair(GpuBench *b, Difference *d, Error *err)
{
    static const char *const plans[2] = {"//@ launch relu<<<ceil_div(n, 512), 128>>>(x, y, spare, n)\n",
                                         "//@ launch relu<<<ceil_div(n, 512) + ceil_div(n, 25600), 128>>>(x, y, spare, n)\n"};
    for (int i = 0; i < 2; i++) {
        snprintf(d->path[i], sizeof d->path[i], "%s/relu-%d.cu", b->work, i);
        d->source[i] = memory_printf("%s%s%s", spare_line, plans[i], tiles);
        if (file_write_atomic(d->path[i], d->source[i], strlen(d->source[i]), err)) return -1;
    }
    return 0;
}

/* The candidate is side `more`, the baseline the other one. */
static int different(GpuBench *b, Difference *d, int more, long count, double seconds, Error *err)
{
    Evaluator *e;
    if (open_against(b, NULL, d->path[!more], &e, err)) return -1;
    double end = clock_seconds() + seconds;
    int rc = 0;
    for (long k = 0; !rc && k < count && d->n < PAIRS_MAX && !stop_requested() && (k < 2 || seconds <= 0 || clock_seconds() < end); k++) {
        Pair p;
        rc = repeat_if_due(b, err) || judge_pair(e, "relu", d->source[more], &p, err) ? -1 : 0;
        if (rc) break;
        d->right += more ? p.score < 1 : p.score > 1;
        d->sure += more ? p.high < 1 : p.low > 1;
        d->log_ratio[d->n++] = more ? -log(p.speedup) : log(p.speedup);
        gpubench_raw(b, "difference", more ? "2% slower" : "2% faster", p.speedup, "ratio");
    }
    evaluator_close(e);
    return rc;
}

int gpubench_difference(GpuBench *b, Error *err)
{
    Difference *d = memory_alloc(sizeof *d);
    gpubench_begin(b, "A true difference: the same kernel with 2% more bytes to move");
    int rc = write_pair(b, d, err);
    for (int more = 0; more < 2 && !rc; more++)
        rc = different(b, d, more, b->trials / 2 + (more ? 0 : b->trials % 2), b->limit_s / 2, err);
    if (!rc && d->n) {
        gpubench_row(b, "difference", "trials", d->n, "", "");
        gpubench_row(b, "difference", "scored in the right direction", 100.0 * d->right / d->n, "%", ">95");
        gpubench_row(b, "difference", "the whole interval on the right side", 100.0 * d->sure / d->n, "%", "");
        gpubench_row(b, "difference", "median of the ratios", exp(statistics_median(d->log_ratio, d->n)), "", "");
    }
    free(d->source[0]);
    free(d->source[1]);
    free(d);
    return rc;
}

/* ---- the same candidate again ---- */

/* The score, not the interval that it comes from: what a user sees twice. */
static int repeat_once(GpuBench *b, Repeat *r, Error *err)
{
    for (int i = 0; i < AGAIN; i++) {
        Pair p;
        if (judge_pair(r->e, again[i], r->sources[i], &p, err)) return -1;
        r->scores[i][r->n] = p.score;
        gpubench_raw(b, "repeat", again[i], p.score, "score");
        gpubench_raw(b, "repeat", again[i], p.low, "lower bound");
    }
    r->n++;
    return 0;
}

/* When the next one is due; never after the last. */
static double repeat_due(const GpuBench *b, const Repeat *r)
{
    if (r->n >= b->repeats || r->n >= REPEATS_MAX) return INFINITY;
    return r->start + (b->repeats > 1 ? b->span_s * r->n / (double)(b->repeats - 1) : 0);
}

static int repeat_if_due(GpuBench *b, Error *err)
{
    Repeat *r = b->repeat;
    double now = clock_seconds();
    if (!r || now < repeat_due(b, r)) return 0;
    r->last = now;
    return repeat_once(b, r, err);
}

static void repeat_end(GpuBench *b)
{
    if (b->repeat->e) evaluator_close(b->repeat->e);
    for (int i = 0; i < AGAIN; i++) free(b->repeat->sources[i]);
    free(b->repeat);
    b->repeat = NULL;
}

int gpubench_repeat_begin(GpuBench *b, Error *err)
{
    Repeat *r = b->repeat = memory_alloc(sizeof *r);
    int rc = 0;
    r->start = r->last = clock_seconds();
    for (int i = 0; i < AGAIN && !rc; i++) {
        char path[4096];
        Buffer text;
        snprintf(path, sizeof path, "%s/tasks/%s/baseline.cu", QUERN_ROOT, again[i]);
        rc = read_source(path, &text, err);
        r->sources[i] = buffer_detach(&text);
        buffer_release(&text);
    }
    if (!rc) rc = open_against(b, NULL, NULL, &r->e, err);
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

static void report_repeats(GpuBench *b, const Repeat *r)
{
    double worst = 0;
    gpubench_row(b, "repeat", "times", r->n, "", "");
    gpubench_row(b, "repeat", "first to last", r->last - r->start, "s", "");
    for (int i = 0; i < AGAIN; i++) {
        char what[96];
        double s = spread(r->scores[i], r->n);
        worst = fmax(worst, s);
        snprintf(what, sizeof what, "%s: scores, largest less smallest", again[i]);
        gpubench_row(b, "repeat", what, s, "%", "");
    }
    gpubench_row(b, "repeat", "scores within", worst, "%", "<1");
}

int gpubench_repeat(GpuBench *b, Error *err)
{
    gpubench_begin(b, "The same candidate again and again");
    int rc = b->repeat ? 0 : gpubench_repeat_begin(b, err);
    while (!rc && !stop_requested() && isfinite(repeat_due(b, b->repeat))) {
        double now = clock_seconds(), due = fmax(repeat_due(b, b->repeat), now);
        if (b->repeat->n >= 2 && b->until > 0 && due >= b->until) break;
        if (due > now) clock_sleep(due - now);
        rc = repeat_if_due(b, err);
    }
    if (b->repeat && !rc && b->repeat->n) report_repeats(b, b->repeat);
    if (b->repeat) repeat_end(b);
    return rc;
}

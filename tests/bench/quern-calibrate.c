/* quern-calibrate: predicted speedups against measured ones, kernel by kernel. The measurement is a
 * table of tests/calibration; the prediction is what `quern-eval --json` prints for the same
 * kernels on a simulator. Kernels are matched by task and digest. One line of figures a task, and the ten
 * kernels whose two speedups are furthest apart: where the time model is to be looked at next. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"

enum { MAX_KERNELS = 10000, MAX_FILE = 64 << 20, LEAST = 5, FURTHEST = 10 };

typedef struct {
    char task[64], name[64], digest[DIGEST_HEX];
    double measured, predicted; /* speedups; predicted 0: not judged ok */
} Kernel;

typedef struct {
    Kernel *kernel;
    int n;
} Table;

static const char *measured_path;

static const Flag flags[] = {{.name = "measured",
                              .kind = FLAG_TEXT,
                              .target = &measured_path,
                              .required = 1,
                              .help = "a table such as tests/calibration/h100.tsv"},
                             {.name = NULL}};

static const FlagSpec spec = {
    .program = "quern-calibrate",
    .synopsis = "--measured TABLE VERDICTS",
    .about = "Hold the verdicts of a simulator (the lines of quern-eval --json) against times "
             "measured on a GPU: rank correlation, pairs of kernels in the right order, the "
             "predicted best as a share of the best, and the factor by which speedups are wrong.",
    .flags = flags,
    .min_words = 1,
    .max_words = 1};

static int read_measured(const char *path, Table *t, Error *err)
{
    Buffer text;
    char *save = NULL;
    int line = 1, rc = 0;
    buffer_init(&text, 1);
    if (file_read(path, MAX_FILE, &text, err) || buffer_append(&text, "", 1)) return -1;
    strtok_r(text.data, "\n", &save); /* the heading */
    for (char *at; !rc && (at = strtok_r(NULL, "\n", &save));) {
        Kernel *k = &t->kernel[t->n];
        line++;
        if (t->n == MAX_KERNELS)
            rc = error_set(err, ERROR_LIMIT, "%s: more than %d kernels", path, MAX_KERNELS);
        else if (sscanf(at, "%63s %63s %64s %*s %*s %lf", k->task, k->name, k->digest,
                        &k->measured) != 4 ||
                 !(k->measured > 0))
            rc = error_set(err, ERROR_CORRUPT,
                           "%s:%d: expected task, kernel, digest, two times and a speedup", path,
                           line);
        else
            t->n++;
    }
    buffer_release(&text);
    return rc;
}

static void note_prediction(Table *t, const json_t *v)
{
    const char *task = json_string_value(json_object_get(v, "task")),
               *digest = json_string_value(json_object_get(v, "source_digest")),
               *outcome = json_string_value(json_object_get(v, "outcome"));
    if (!task || !digest || !outcome || strcmp(outcome, "ok")) return;
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->kernel[i].task, task) && !strcmp(t->kernel[i].digest, digest))
            t->kernel[i].predicted = json_number_value(json_object_get(v, "speedup"));
}

static int read_predicted(const char *path, Table *t, Error *err)
{
    Buffer text;
    char *save = NULL;
    int line = 0, rc = 0;
    buffer_init(&text, 1);
    if (file_read(path, MAX_FILE, &text, err) || buffer_append(&text, "", 1)) return -1;
    for (char *at = strtok_r(text.data, "\n", &save); !rc && at; at = strtok_r(NULL, "\n", &save)) {
        json_error_t why;
        json_t *v = json_loads(at, 0, &why);
        line++;
        if (v)
            note_prediction(t, v);
        else
            rc = error_set(err, ERROR_CORRUPT, "%s:%d: expected a verdict, found: %s", path, line,
                           why.text);
        json_decref(v);
    }
    buffer_release(&text);
    return rc;
}

/* The rank of kernel i by its measured or predicted speedup; equal ones share the mean rank. */
static double rank(const Kernel *k, int n, int i, int predicted)
{
    double below = 0, equal = 0, mine = predicted ? k[i].predicted : k[i].measured;
    for (int j = 0; j < n; j++) {
        double other = predicted ? k[j].predicted : k[j].measured;
        below += other < mine;
        equal += other == mine;
    }
    return below + (equal - 1) / 2;
}

static double spearman(const Kernel *k, int n)
{
    double xy = 0, xx = 0, yy = 0, mean = (n - 1) / 2.0;
    for (int i = 0; i < n; i++) {
        double x = rank(k, n, i, 0) - mean, y = rank(k, n, i, 1) - mean;
        xy += x * y, xx += x * x, yy += y * y;
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

/* The share of the pairs that differ by over 10% when measured whose order is predicted. */
static double ordered(const Kernel *k, int n)
{
    double pairs = 0, right = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (k[i].measured > 1.1 * k[j].measured)
                pairs++, right += k[i].predicted > k[j].predicted;
    return pairs > 0 ? right / pairs : 1;
}

static double picked(const Kernel *k, int n)
{
    double best = 0;
    int first = 0;
    for (int i = 0; i < n; i++) {
        if (k[i].measured > best) best = k[i].measured;
        if (k[i].predicted > k[first].predicted) first = i;
    }
    return k[first].measured / best;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* errors[n], sorted: the factor, at least 1, between prediction and measurement. */
static void factors(const Kernel *k, int n, double *errors)
{
    for (int i = 0; i < n; i++) errors[i] = exp(fabs(log(k[i].predicted / k[i].measured)));
    qsort(errors, (size_t)n, sizeof *errors, ascending);
}

static void print_task(const char *name, const Kernel *k, int n, double *errors)
{
    factors(k, n, errors);
    if (n < LEAST) return;
    printf("%s\t%d\t%.3f\t%.3f\t%.2f\t%.2f\t%.2f\n", name, n, spearman(k, n), ordered(k, n),
           picked(k, n), errors[n / 2], errors[(int)(0.9 * n)]);
}

static double apart(const Kernel *k)
{
    return exp(fabs(log(k->predicted / k->measured)));
}

static int by_distance(const void *a, const void *b)
{
    const Kernel *x = a, *y = b;
    double p = apart(x), q = apart(y);
    return p == q ? strcmp(x->digest, y->digest) : (p < q) - (p > q);
}

/* Sorts the n kernels. */
static void print_furthest(Kernel *k, int n)
{
    qsort(k, (size_t)n, sizeof *k, by_distance);
    printf("\nfurthest apart\tkernel\tpredicted\tmeasured\tfactor\n");
    for (int i = 0; i < n && i < FURTHEST; i++)
        printf("%s\t%s\t%.4g\t%.4g\t%.2f\n", k[i].task, k[i].name, k[i].predicted, k[i].measured,
               apart(&k[i]));
}

/* Returns how many kernels have both speedups. */
static int print_all(const Table *t)
{
    Kernel *some = memory_array((size_t)t->n + 1, sizeof *some);
    double *errors = memory_array((size_t)t->n + 1, sizeof *errors);
    int all = 0;
    printf("task\tkernels\tspearman\tordered\tpicked\terror50\terror90\n");
    for (int i = 0; i < t->n; i++) {
        int n = 0;
        if (i && !strcmp(t->kernel[i].task, t->kernel[i - 1].task)) continue;
        for (int j = i; j < t->n && !strcmp(t->kernel[j].task, t->kernel[i].task); j++)
            if (t->kernel[j].predicted > 0) some[n++] = t->kernel[j];
        print_task(t->kernel[i].task, some, n, errors);
    }
    for (int i = 0; i < t->n; i++)
        if (t->kernel[i].predicted > 0) some[all++] = t->kernel[i];
    factors(some, all, errors);
    if (all) printf("all\t%d\t\t\t\t%.2f\t%.2f\n", all, errors[all / 2], errors[(int)(0.9 * all)]);
    if (all) print_furthest(some, all);
    free(some);
    free(errors);
    return all;
}

int main(int argc, char **argv)
{
    Error err = {0};
    const char **words = memory_array((size_t)argc, sizeof *words);
    flags_parse(&spec, argc, argv, words);
    log_open("quern-calibrate");
    Table t = {.kernel = memory_array(MAX_KERNELS, sizeof *t.kernel)};
    if (read_measured(measured_path, &t, &err) || read_predicted(words[0], &t, &err)) log_die(&err);
    if (!print_all(&t)) {
        error_set(&err, ERROR_INVALID, "no kernel of %s has an ok verdict in %s", measured_path,
                  words[0]);
        log_die(&err);
    }
    free(t.kernel);
    free(words);
    return log_close(EXIT_STATUS_OK);
}

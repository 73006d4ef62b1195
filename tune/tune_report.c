/* What a search says as it goes, and its two files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "eval/judge/rivals.h"
#include "tune/tune.h"

enum { REPORT_MAX = 8 << 20 };
/* The baseline's time is eager PyTorch's within this factor; own sizes are at least twice the timed ones. */
static const double as_baseline = 1.5;

static const TuneCandidate *best_of(const Tune *t)
{
    return t->best < 0 ? NULL : t->all[t->best];
}

/* Those of the sizes that were timed: the module's own where the GPU has room for them. There eager PyTorch
 * takes about what the baseline does. 0: there are none. */
static int find_rows(const Tune *t, Verdict *v, Error *err)
{
    const Task *task = t->o->task;
    const Workload *at[] = {task->own, task_workload(task, ROLE_TIME)};
    for (int i = !task->own; i < 2; i++) {
        const RivalKey key = {task, at[i], t->o->device_class, rivals_precision(&task->precision)};
        Interval eager;
        v->n_rivals = 0;
        if (rivals_find(&key, v, err)) return 0;
        int known = rivals_over(v, "eager", &eager);
        if (!task->own || (known && fabs(log(eager.middle / v->speedup)) < log(as_baseline)))
            return 1;
    }
    v->n_rivals = 0;
    return 0;
}

/* What PyTorch's other ways take beside a candidate, by the table as it is now. 0: it has none. */
static int find_rival(const Tune *t, const TuneCandidate *c, char text[RIVALS_TEXT])
{
    Verdict *v = memory_alloc(sizeof *v);
    Interval unused;
    Error err;
    memset(v, 0, sizeof *v);
    v->time_us = c->us, v->speedup = c->speedup, v->low = c->low, v->high = c->high;
    int found = find_rows(t, v, &err) && rivals_over(v, "compile", &unused);
    rivals_text(v, text);
    free(v);
    return found;
}

/* "2.914x eager, torch.compile was not measured". */
static void write_speedup(const Tune *t, const TuneCandidate *c, Buffer *b)
{
    char rival[RIVALS_TEXT];
    find_rival(t, c, rival);
    buffer_printf(b, "%.3gx eager, %s", c->speedup, rival);
}

static void write_schedule(const TuneCandidate *c, const char *before, const char *after, Buffer *b)
{
    Buffer lines;
    buffer_init(&lines, REPORT_MAX);
    genes_write(&c->genes, &lines);
    for (const char *p = lines.len ? lines.data : ""; *p;) {
        size_t n = strcspn(p, "\n");
        buffer_printf(b, "%s%.*s%s", before, (int)n, p, after);
        p += n + (p[n] == '\n');
    }
    buffer_release(&lines);
}

int tune_say_rival(Tune *t)
{
    char rival[RIVALS_TEXT];
    const TuneCandidate *c = best_of(t);
    if (!c || t->rival_said || !find_rival(t, c, rival)) return 0;
    t->rival_said = 1;
    log_info("%.0f s: %.3gx eager, %s", clock_seconds() - t->begun, c->speedup, rival);
    return 1;
}

void tune_say_best(const Tune *t)
{
    const TuneCandidate *c = best_of(t);
    Buffer b;
    buffer_init(&b, 4096);
    write_speedup(t, c, &b);
    log_info("%.0f s: %s (%.4g us, light %.4g us; %s)", c->found_s, b.data, c->us, c->light_us,
             c->moved);
    buffer_release(&b);
}

static void count(const Tune *t, int *judged, int *right)
{
    *judged = *right = 0;
    for (int i = 0; i < t->n; i++) {
        *judged += t->all[i]->judged;
        *right += t->all[i]->judged && t->all[i]->outcome == OUTCOME_OK;
    }
}

static int count_ranked(const Tune *t)
{
    int n = 0;
    for (int i = 0; i < t->n; i++) n += t->all[i]->ranked;
    return n;
}

void tune_say_still(const Tune *t)
{
    const TuneCandidate *c = best_of(t);
    int judged, right;
    Buffer b;
    count(t, &judged, &right);
    buffer_init(&b, 4096);
    if (t->o->ranks) buffer_printf(&b, "%d kernels ranked, ", count_ranked(t));
    buffer_printf(&b, "%d judged", judged);
    if (c) buffer_printf(&b, ", the best %.3gx eager", c->speedup);
    log_info("%.0f s: %s", clock_seconds() - t->begun, b.data);
    buffer_release(&b);
}

/* Each outcome that is not ok, and how often it was: "2 wrong_result, 1 timeout". */
static void write_outcomes(const Tune *t, Buffer *b)
{
    int begun = 0;
    for (int o = 0; o < OUTCOME_COUNT; o++) {
        int n = 0;
        for (int i = 0; i < t->n; i++) n += t->all[i]->judged && (int)t->all[i]->outcome == o;
        if (o == OUTCOME_OK || !n) continue;
        buffer_printf(b, "%s%d %s", begun++ ? ", " : "", n, outcome_name((Outcome)o));
    }
}

void tune_say_end(const Tune *t)
{
    Buffer b;
    int judged, right;
    count(t, &judged, &right);
    buffer_init(&b, 4096);
    write_outcomes(t, &b);
    if (b.len) buffer_printf(&b, "; messages in %s", t->o->verdicts);
    log_info("%d kernels were judged in %.0f s, %d right%s%s%s; the search ended: %s", judged,
             clock_seconds() - t->begun, right, b.len ? " (" : "", b.len ? b.data : "",
             b.len ? ")" : "", t->ended);
    buffer_release(&b);
}

static void report_best(const Tune *t, Buffer *b)
{
    const TuneCandidate *c = best_of(t);
    if (!c) {
        buffer_puts(b, "No kernel is right yet.\n");
        return;
    }
    write_speedup(t, c, b);
    buffer_printf(
        b, "\n  kernel   %.4g us, eager %.4g us, light %.4g us by %s: the kernel reaches %.0f%%\n",
        c->us, c->baseline_us, c->light_us, c->light_is_flops ? "arithmetic" : "bytes moved",
        100 * c->light_us / c->us);
    buffer_printf(b, "  source   %s\n", t->o->output);
    for (int i = 0; i < c->n_kernels; i++)
        buffer_printf(b, "  %-8s writes %s: %s; about %.3g us\n", i ? "" : "kernels",
                      c->kernel[i].of, c->kernel[i].ops, c->kernel[i].us);
    write_schedule(c, "  ", "\n", b);
}

static void report_rises(const Tune *t, Buffer *b)
{
    double best = 0;
    buffer_puts(b, "\nRises\n");
    for (int i = 0; i < t->n; i++) {
        const TuneCandidate *c = t->all[i];
        if (!c->judged || c->outcome != OUTCOME_OK || c->speedup <= 1.005 * best) continue;
        best = c->speedup;
        buffer_printf(b, "  %6.3gx  kernel %d, %s\n", c->speedup, i + 1, c->moved);
    }
}

int tune_write_report(const Tune *t, Error *err)
{
    Buffer b;
    int judged, right;
    if (!t->o->report) return 0;
    count(t, &judged, &right);
    buffer_init(&b, REPORT_MAX);
    buffer_printf(&b, "%s on %s: ", t->o->task->name, t->o->device_class);
    report_best(t, &b);
    buffer_puts(&b, "\nThe module\n  ");
    bound_write(&t->bound, t->o->gpu, &b);
    buffer_printf(&b, "\n\nThe search\n  %d kernels were judged, %d right", judged, right);
    if (judged > right) buffer_puts(&b, " ("), write_outcomes(t, &b), buffer_puts(&b, ")");
    buffer_printf(&b, "; %d moves gave an equal source, %d were slow by the model\n", t->equal,
                  t->slow);
    if (t->o->ranks)
        buffer_printf(&b, "  %d kernels were ranked by %s first\n", count_ranked(t), t->o->ranks);
    if (t->ended) buffer_printf(&b, "  it ended: %s\n", t->ended);
    buffer_printf(&b, "  all verdicts: %s\n", t->o->verdicts);
    report_rises(t, &b);
    int rc = file_write_atomic(t->o->report, b.data, b.len, err);
    buffer_release(&b);
    return rc;
}

/* A message on one line. */
static void write_message(const char *p, Buffer *b)
{
    for (; *p; p++) buffer_printf(b, "%c", *p == '\t' || *p == '\n' ? ' ' : *p);
}

int tune_write_verdicts(const Tune *t, Error *err)
{
    Buffer b;
    buffer_init(&b, REPORT_MAX);
    buffer_puts(&b, "kernel\toutcome\tspeedup\tus\tmodel_us\tmoved\tschedule\tmessage\n");
    for (int i = 0; i < t->n; i++) {
        const TuneCandidate *c = t->all[i];
        if (!c->judged) continue;
        buffer_printf(&b, "%d\t%s\t%.4g\t%.4g\t%.4g\t%s\t", i + 1, outcome_name(c->outcome),
                      c->speedup, c->us, c->model_us, c->moved);
        write_schedule(c, "", "; ", &b);
        buffer_puts(&b, "\t");
        write_message(c->message, &b);
        buffer_puts(&b, "\n");
    }
    int rc = file_write_atomic(t->o->verdicts, b.data, b.len, err);
    buffer_release(&b);
    return rc;
}

/* The last lines of a run: what the model found, and a table of stages in 80 columns. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

enum { COLUMNS = 80 };

typedef struct {
    int tasks, correct, faster;
    double best;
} Count;

static Count count_of(const Report *r, int stage, int heldout)
{
    Count c = {0};
    for (int i = 0; i < r->tasks.n; i++) {
        const ReportTask *t = &r->task[i];
        const Tally *tally = stage < REPORT_STAGES ? &t->stage[stage] : &t->run;
        if (t->task->degenerate || t->task->heldout != heldout || !tally->attempted) continue;
        c.tasks++;
        c.correct += tally->succeeded > 0;
        c.faster += tally->succeeded && tally->best > TABLE_FASTER_FROM;
        if (tally->succeeded) c.best = fmax(c.best, tally->best);
    }
    return c;
}

static void put_count(Buffer *b, const Count *c)
{
    char best[24] = "-";
    if (c->correct) snprintf(best, sizeof best, "%.2fx", c->best);
    if (c->tasks)
        buffer_printf(b, " %6d %8d %7d %8s", c->tasks, c->correct, c->faster, best);
    else
        buffer_printf(b, " %6s %8s %7s %8s", "-", "-", "-", "-");
}

static void put_table(const Report *r, Buffer *b)
{
    static const char *const names[] = {"teachers", "stage 1", "stage 2", "stage 3", "whole run"};
    const Count held = count_of(r, REPORT_STAGES, 1);
    const char *head = "  tasks  correct  faster     best";
    if (held.tasks) buffer_printf(b, "%11s%-33s  held out of training\n", "", " train");
    buffer_printf(b, "%11s%s%s%s\n", "", head, held.tasks ? " " : "", held.tasks ? head : "");
    for (int stage = REPORT_COLLECT; stage <= REPORT_STAGES; stage++) {
        const Count train = count_of(r, stage, 0), other = count_of(r, stage, 1);
        if (!train.tasks && !other.tasks) continue;
        buffer_printf(b, "%-11s", names[stage]);
        put_count(b, &train);
        if (held.tasks) {
            buffer_puts(b, " ");
            put_count(b, &other);
        }
        buffer_puts(b, "\n");
    }
}

/* Lists the tasks on which the model beat its teacher, as many as fit a line. */
static void put_found(const Report *r, const Standing *s, Buffer *b)
{
    size_t line = b->len;
    int left = s->beaten;
    const char *sep = "Found by the model, not by its ";
    for (int i = 0; i < r->tasks.n && left; i++) {
        const ReportTask *t = &r->task[i];
        char one[160];
        if (!standing_beats_teacher(t)) continue;
        int n = snprintf(one, sizeof one, " %s %.2fx", t->task->name, t->score);
        if (b->len == line)
            buffer_printf(b, "%s%s:", sep, s->has_teacher ? "teacher" : "baseline");
        else if (b->len - line + (size_t)n + 12 > COLUMNS)
            break;
        else
            buffer_puts(b, ",");
        buffer_puts(b, one);
        left--;
    }
    if (left) buffer_printf(b, ", %d more", left);
    if (b->len > line) buffer_puts(b, "\n");
}

int summary_unjudged(const Report *r, Buffer *b)
{
    if (!r->unjudged) return 0;
    buffer_printf(b, "%ld of %ld verdicts were not made: the evaluator failed.\n", r->unjudged,
                  r->judged);
    return r->unjudged * 10 > r->judged;
}

void summary_write(const Report *r, const char *dir, Buffer *b)
{
    Standing s;
    standing_of(r, &s);
    const Count whole = count_of(r, REPORT_STAGES, 0);
    buffer_printf(b, "\nThe model beat its %s on %d of %d train tasks",
                  s.has_teacher ? "teacher" : "baseline", s.beaten, s.tasks);
    buffer_puts(b, ".\n");
    if (whole.correct)
        buffer_printf(b, "The best kernel is %.2fx as fast as its baseline.\n", whole.best);
    put_found(r, &s, b);
    buffer_puts(b, "\n");
    put_table(r, b);
    buffer_puts(b, "\n");
    summary_unjudged(r, b);
    buffer_printf(b, "Times are %s on %s. The page: %s/report.html\n",
                  r->own_predicted ? "predicted" : "measured", r->device, dir);
}

/* The first screen of report.html, which says what was learned, how sure that is and on what device,
 * and the table of stages. A speedup is shown only where a kernel was correct. */
#include <math.h>
#include <string.h>

#include "report/report.h"

/* ---- a run that is going on ---- */

static void stage(const RunStatus *s, int i, Buffer *b)
{
    char elapsed[32];
    const StageStatus *k = &s->stage[i];
    int total = k->planned ? k->planned : 1, done = k->planned ? k->rounds : k->done;
    buffer_printf(b, "<tr><td>%s<td>", run_stage_names[i]);
    if (k->planned) buffer_printf(b, "%d of %d", k->rounds, k->planned);
    buffer_puts(b, "<td>");
    if (k->rules) buffer_puts(b, run_status_duration(k->seconds, elapsed));
    buffer_printf(b,
                  "<td class=\"left\">%s<td class=\"bar\"><div class=\"whole\"><i class=\"part\" "
                  "style=\"width:%.0f%%\"></i></div></tr>\n",
                  k->failed    ? "failed"
                  : k->done    ? "done"
                  : k->running ? "under way"
                  : k->rules   ? "begun"
                               : "waits",
                  100.0 * done / total);
}

static void html_live(const RunStatus *s, Buffer *b)
{
    buffer_puts(
        b, "<p class=\"note\"><b>This run is going on.</b> The page is of what is finished "
           "so far; it is written after every round and reloads itself. The samples that "
           "compare the stages come at the end.</p>\n<div class=\"scroll\"><table "
           "class=\"narrow\"><tr><th>stage<th>rounds<th>time<th class=\"left\">state<th></tr>\n");
    for (int i = 0; i < STAGES; i++) stage(s, i, b);
    buffer_puts(b, "</table></div>\n");
    for (int i = 0; i < s->n_rules; i++) {
        const RunRule *r = &s->rules[i];
        if (r->state != RULE_FAILED) continue;
        buffer_puts(b, "<p class=\"note\">");
        html_text(b, r->name);
        buffer_printf(b, " failed with exit %d: ", r->exit_status);
        html_text(b, r->said);
        buffer_puts(b, "</p>\n");
    }
}

void html_text(Buffer *b, const char *s)
{
    html_escape(b, s, strlen(s));
}

void html_factor(Buffer *b, double v)
{
    if (isnan(v))
        buffer_puts(b, "–");
    else
        buffer_printf(b, "%.2f×", v);
}

static const TableRow *row_of(const TableRow *rows, const char *stage, const char *split)
{
    for (int i = 0; i < TABLE_ROWS; i++)
        if (!strcmp(rows[i].stage, stage) && !strcmp(rows[i].split, split)) return &rows[i];
    return &rows[0];
}

static int has_interval(const Interval *in)
{
    return !isnan(in->low) && !isnan(in->high);
}

/* An end of an interval of shares, in percent: two digits, and 100. */
static void percent_end(Buffer *b, double share)
{
    buffer_printf(b, share >= 0.995 ? "%.0f" : "%.2g", 100 * share);
}

static void percents(Buffer *b, const Interval *in)
{
    buffer_printf(b, "%.3g%%", 100 * in->middle);
    if (!has_interval(in)) return;
    buffer_puts(b, " <small>[");
    percent_end(b, in->low);
    buffer_puts(b, "–");
    percent_end(b, in->high);
    buffer_puts(b, "]</small>");
}

static void factors(Buffer *b, const Interval *in)
{
    html_factor(b, in->middle);
    if (!isnan(in->middle) && has_interval(in))
        buffer_printf(b, " <small>[%.2f–%.2f]</small>", in->low, in->high);
}

/* ---- one sentence each ---- */

static void learned(const Report *r, const Standing *s, Buffer *b)
{
    const char *who = r->untrained ? "<b>No weights were trained.</b> The model " : "The model ";
    buffer_puts(b, r->live && r->untrained ? "So far: " : r->live ? "So far the model " : who);
    if (r->policy) {
        buffer_puts(b, "<code>");
        html_text(b, r->policy);
        buffer_puts(b, r->untrained ? "</code> answered as it is; only its prompts and the pool of "
                                      "kernels changed. It "
                                    : "</code>, with an adapter of this run, ");
    }
    if (!s->beaten)
        buffer_printf(b, "beat its %s on none of %d train tasks.",
                      s->has_teacher ? "teacher" : "baseline", s->tasks);
    else
        buffer_printf(b, "beat its %s on %d of %d train tasks.",
                      s->has_teacher ? "teacher" : "baseline", s->beaten, s->tasks);
}

/* Whether training made a sample of the model faster, beside the best that the run found. */
static void rose(const Report *r, const Standing *s, const TableRow *best, Buffer *b)
{
    if (r->untrained || isnan(s->rise.middle) || !(s->mean_before + s->mean_after > 0)) return;
    int known = has_interval(&s->rise), rises = known && s->rise.low > 0,
        falls = known && s->rise.high < 0;
    buffer_printf(b, "From stage 1 to stage 3 the model's mean sample %s %.2f× to %.2f×",
                  rises   ? "rises from"
                  : falls ? "<b>falls</b> from"
                  : known ? "hardly changes, from"
                          : "goes from",
                  s->mean_before, s->mean_after);
    if (known)
        buffer_printf(b, ": %+.2f, 95%% interval %+.2f to %+.2f%s", s->rise.middle, s->rise.low,
                      s->rise.high, rises || falls ? "" : ", which may be chance");
    buffer_puts(b, " (train tasks; a wrong answer counts 0)");
    if (best->succeeded) {
        buffer_puts(b, ". The best kernels that the run found reach ");
        html_factor(b, best->geomean);
    }
    buffer_puts(b, ". ");
}

/* What a run is, for a reader who has seen none. */
static void purpose(const Report *r, Buffer *b)
{
    if (r->untrained) return;
    buffer_puts(b,
                "<p class=\"soft\">A language model learns to write faster CUDA kernels: in stage "
                "1 from a teacher's (<code>sft</code>), in stage 2 from its own correct ones "
                "(<code>selfsup</code>), in stage 3 by comparing their speed "
                "(<code>crl</code>).</p>\n");
}

static void improved(const Report *r, const Standing *s, const TableRow rows[TABLE_ROWS], Buffer *b)
{
    const TableRow *crl = row_of(rows, "crl", "train"), *sft = row_of(rows, "sft", "train");
    if (isnan(s->gain.middle)) return;
    if (!crl->succeeded && !sft->succeeded) {
        buffer_puts(b, " None of its answers to train tasks is correct, after stage 1 or stage 3.");
        return;
    }
    buffer_printf(b,
                  " Of its answers to train tasks %.3g%% are correct after stage 3, %.3g%% after "
                  "stage 1",
                  100 * crl->in[TABLE_RATE].middle, 100 * sft->in[TABLE_RATE].middle);
    if (r->untrained)
        buffer_puts(b, ", by chance alone: both are the same model.");
    else if (!has_interval(&s->gain))
        buffer_puts(b, ".");
    else
        buffer_printf(b, ": %+.0f points, 95%% interval %+.0f to %+.0f%s.", 100 * s->gain.middle,
                      100 * s->gain.low, 100 * s->gain.high,
                      s->gain.low <= 0 && s->gain.high >= 0 ? ", which may be chance" : "");
}

static void generalised(const TableRow *held, Buffer *b)
{
    if (!held->tasks || !held->attempted) return;
    const char *tasks = held->tasks == 1 ? "task" : "tasks";
    if (!held->succeeded)
        buffer_printf(b, " Of its %ld answers to %d %s held out of training none is correct.",
                      held->attempted, held->tasks, tasks);
    else
        buffer_printf(
            b,
            " Of its %ld answers to %d %s held out of training %.3g%% are correct; it beat "
            "the baseline on %d.",
            held->attempted, held->tasks, tasks, 100 * held->in[TABLE_RATE].middle, held->faster);
}

static void judged_on(const Report *r, Buffer *b)
{
    buffer_puts(b, " Judged on <code>");
    html_text(b, r->device);
    if (!r->own_predicted)
        buffer_puts(b, "</code>: every speedup of the stages is measured.");
    else
        buffer_printf(b, "</code>, a simulator: every speedup is <b>predicted</b>%s.",
                      r->measured ? "" : " and no GPU was timed");
}

/* ---- the key figures ---- */

static void key_begin(Buffer *b)
{
    buffer_puts(b, "<div><b>");
}

static void key_beaten(const Standing *s, const TableRow *collect, Buffer *b)
{
    key_begin(b);
    buffer_printf(b, "%d of %d</b><span>train tasks on which the model beat its %s", s->beaten,
                  s->tasks, s->has_teacher ? "teacher" : "baseline");
    if (has_interval(&s->beaten_in))
        buffer_printf(b, " <small>[%.1f–%.1f]</small>", s->beaten_in.low, s->beaten_in.high);
    if (s->has_teacher)
        buffer_printf(b, ": faster by over 1%% than each of the teacher's %ld correct kernels",
                      collect->succeeded);
    buffer_puts(b, "</span></div>\n");
}

static void key_speedup(const Report *r, const Standing *s, const TableRow *best,
                        const TableRow *collect, Buffer *b)
{
    key_begin(b);
    if (!best->succeeded) {
        buffer_printf(b, "0 of %ld</b><span>samples of the run are correct</span></div>\n",
                      best->attempted);
        return;
    }
    html_factor(b, best->geomean);
    buffer_printf(b, "</b><span>geometric mean over the best kernels of %d train tasks%s",
                  best->tasks, r->own_predicted ? ", predicted" : "");
    if (has_interval(&best->in[TABLE_GEOMEAN]))
        buffer_printf(b, " <small>[%.2f–%.2f]</small>", best->in[TABLE_GEOMEAN].low,
                      best->in[TABLE_GEOMEAN].high);
    if (s->has_teacher && collect->succeeded) {
        buffer_puts(b, "; the teacher alone gives ");
        factors(b, &collect->in[TABLE_GEOMEAN]);
    }
    buffer_puts(b, "</span></div>\n");
}

static void key_correct(const char *split, const TableRow *w, Buffer *b)
{
    key_begin(b);
    if (!w->attempted) {
        buffer_printf(
            b, "–</b><span>no answer of the final model to a %s task counts</span></div>\n", split);
        return;
    }
    buffer_printf(b, "%ld of %ld</b><span>answers of the final model to %s tasks are correct: ",
                  w->succeeded, w->attempted, split);
    percents(b, &w->in[TABLE_RATE]);
    if (!strcmp(split, "heldout") && w->succeeded) {
        buffer_printf(b, "; best kernels of %d tasks ", w->tasks);
        factors(b, &w->in[TABLE_GEOMEAN]);
    }
    buffer_puts(b, "</span></div>\n");
}

static void predictions(const Report *r, Buffer *b)
{
    if (!r->own_predicted) return;
    buffer_puts(b, "<p class=\"note\">A kernel is compiled by NVRTC, executed instruction by "
                   "instruction and checked; a first-order model turns the counts into "
                   "microseconds. Believe correctness and counters, mostly the order of kernels, "
                   "not absolute times and small differences. A prediction has no interval.");
    if (r->error_factor > 0)
        buffer_printf(b,
                      " A predicted speedup is within %.2g× of a GPU's for 9 kernels in 10, by the "
                      "calibration kernels.",
                      r->error_factor);
    buffer_puts(b, "</p>\n");
}

void html_top(const Report *r, const TableRow rows[TABLE_ROWS], Buffer *b)
{
    const TableRow *collect = row_of(rows, "collect", "train"),
                   *best = row_of(rows, "best", "train"), *held = row_of(rows, "crl", "heldout");
    Standing s;
    standing_of(r, &s);
    buffer_puts(b, "<h1>Quern: the run ");
    html_text(b, r->run);
    buffer_puts(b, "</h1>\n");
    if (r->live) html_live(r->live, b);
    purpose(r, b);
    buffer_puts(b, "<p class=\"lead\">");
    rose(r, &s, best, b);
    learned(r, &s, b);
    improved(r, &s, rows, b);
    generalised(held, b);
    judged_on(r, b);
    if (r->unjudged) {
        buffer_puts(b, " <b>");
        summary_unjudged(r, b);
        buffer_puts(b, "</b>");
    }
    buffer_puts(b, "</p>\n<div class=\"keys\">\n");
    key_beaten(&s, collect, b);
    key_speedup(r, &s, best, collect, b);
    if (!r->live) key_correct("train", row_of(rows, "crl", "train"), b);
    if (held->tasks && !r->live) key_correct("heldout", held, b);
    buffer_puts(b, "</div>\n<p class=\"soft\">Profile ");
    html_text(b, r->profile);
    buffer_printf(b,
                  ", %d tasks. A speedup is against the task's baseline. In brackets: the 95%% "
                  "interval by resampling tasks and their samples; of what the whole run found, "
                  "tasks alone.</p>\n",
                  r->tasks.n);
    predictions(r, b);
}

/* ---- the stage table ---- */

static void stage_row(const TableRow *w, int first, Buffer *b)
{
    static const char *const kinds[][2] = {{"collect", "teacher"}, {"best", "whole run"}};
    const char *name = w->stage;
    int best = !strcmp(w->stage, "best");
    for (int i = 0; i < 2; i++)
        if (!strcmp(kinds[i][0], name)) name = kinds[i][1];
    buffer_printf(b, "<tr class=\"%s\"><td>%s<td class=\"left\">%s<td>%d<td>%ld<td>",
                  first ? "top" : "", first ? name : "", w->split, w->tasks, w->attempted);
    buffer_printf(b, "%ld<td>", w->succeeded);
    if (best)
        buffer_puts(b, "–"); /* of teachers, rounds and stages: no rate of anything */
    else
        percents(b, &w->in[TABLE_RATE]);
    if (!w->succeeded) {
        buffer_puts(b, "<td>0<td>–<td>–<td>–<td>–</tr>\n");
        return;
    }
    buffer_printf(b, "<td>%d", w->faster);
    if (has_interval(&w->in[TABLE_FASTER]))
        buffer_printf(b, " <small>[%.1f–%.1f]</small>", w->in[TABLE_FASTER].low,
                      w->in[TABLE_FASTER].high);
    static const TableStatistic columns[] = {TABLE_GEOMEAN, TABLE_MEAN, TABLE_MEDIAN};
    for (int k = 0; k < 3; k++) {
        buffer_puts(b, k ? "<td>" : "<td class=\"hi\">");
        factors(b, &w->in[columns[k]]);
    }
    buffer_puts(b, "<td>");
    html_factor(b, w->max);
    buffer_puts(b, "</tr>\n");
}

void html_stages(const Report *r, const TableRow rows[TABLE_ROWS], Buffer *b)
{
    buffer_printf(
        b,
        "<h2 id=\"stages\">Stages</h2>\n<p>sft, selfsup and crl: the same number of "
        "samples a task, drawn from that stage's final model%s. <i>Teacher</i> is all that "
        "the teachers wrote, <i>whole run</i> all of it with every round. Of a task its "
        "best kernel counts, 1.0 where none is better than the baseline. %sDegenerate "
        "tasks are left out.</p>\n<div class=\"scroll\"><table><tr><th>stage<th "
        "class=\"left\">split<th>tasks<th>samples<th>correct<th>rate<th>faster<th>geomean"
        "<th>mean<th>median<th>max</tr>\n",
        r->untrained ? " (one model: nothing was trained)" : "",
        r->judged_again ? "The score of a stage's best is of a judgement after the one "
                          "that chose it, on other inputs. "
                        : "");
    int shown = 0;
    for (int i = 0; i < TABLE_ROWS; i++) {
        if (i % 3 == 0) shown = 0;
        if (!strcmp(rows[i].split, "all") || !rows[i].tasks || !rows[i].attempted) continue;
        stage_row(&rows[i], !shown++, b);
    }
    buffer_puts(b, "</table></div>\n");
}

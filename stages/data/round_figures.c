/* Counts in one pass; shares are made of them at the end. */
#include "stages/data/round_figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sort.h"

static const double least_score = 0.01;

/* What a correct kernel uses, by a text in its source. */
static const struct {
    const char *name, *texts[4];
} techniques[ROUND_TECHNIQUES] = {{"vectors", {"float4", "float2", "half2", "uint4"}},
                                  {"shared", {"__shared__"}},
                                  {"shuffles", {"__shfl"}},
                                  {"unrolling", {"#pragma unroll", "template <int"}},
                                  {"strides", {"gridDim"}},
                                  {"atomics", {"atomicAdd", "atomicMax"}},
                                  {"async", {"cp.async", "__pipeline", "memcpy_async"}},
                                  {"tensor_cores", {"wmma", "mma.sync"}},
                                  {"launches", {NULL}}}; /* more than one */

static void add(RoundPart *p, const Sample *s)
{
    p->samples++;
    p->succeeded += s->outcome == OUTCOME_OK;
    p->score += s->score;
    p->square += s->score * s->score;
    p->with_ids += s->ids != NULL;
    p->tokens += s->ids ? s->n_ids : 0;
    if (!s->logprobs) return;
    for (int i = 0; i < s->n_ids; i++) p->surprise -= s->logprobs[i];
    p->sampled += s->n_ids;
}

static void compare(RoundFigures *f, const Sample *s)
{
    Comparison c = comparison_judge(s->prompt, s->text);
    f->compared += c != COMPARISON_NONE;
    f->right += c == COMPARISON_RIGHT;
    f->wrong += c == COMPARISON_WRONG;
    f->tied += c == COMPARISON_TIE;
    f->silent += c == COMPARISON_SILENT;
}

static int launches(const char *source)
{
    int n = 0;
    for (const char *p = source; (p = strstr(p, "//@ launch")); p++) n++;
    return n;
}

static void count_techniques(RoundFigures *f, const Sample *s)
{
    f->correct++;
    for (int i = 0; i < ROUND_TECHNIQUES; i++) {
        int found = !techniques[i].texts[0] && launches(s->source) > 1;
        for (int k = 0; k < 4 && techniques[i].texts[k]; k++)
            found |= strstr(s->source, techniques[i].texts[k]) != NULL;
        f->technique[i] += found;
    }
}

double figures_best_of(double *score, int n, int k)
{
    if (k > n) k = n;
    sort_doubles(score, (size_t)n);
    double chance = n ? (double)k / n : 0, sum = 0; /* that the highest is drawn */
    for (int i = n - 1; i >= k - 1 && i >= 0; i--) {
        sum += chance * score[i];
        if (i) chance *= (double)(i - k + 1) / i; /* the next one is the best of those drawn */
    }
    return sum;
}

/* The scores of a part's samples, those of a task next to each other. */
typedef struct {
    double *score, *drawn;
    long *end; /* of each task */
    int tasks;
} Scores;

/* The sum over the tasks of log2 of the expected best of 8; r: of one resample. */
static double sum_best(const Scores *all, Random *r)
{
    double sum = 0;
    long from = 0;
    for (int t = 0; t < all->tasks; from = all->end[t++]) {
        long n = all->end[t] - from;
        for (long i = 0; i < n; i++)
            all->drawn[i] = all->score[from + (r ? (long)random_below(r, (uint64_t)n) : i)];
        sum += log2(fmax(figures_best_of(all->drawn, (int)n, 8), least_score));
    }
    return sum;
}

static void draw_best(void *ctx, Random *r, double *out)
{
    const Scores *all = ctx;
    *out = exp2(sum_best(all, r) / all->tasks);
}

static void add_best(const SampleSet *s, RoundPart *const *of, RoundPart *part)
{
    size_t limit = (size_t)s->n + 1;
    Scores all = {memory_array(limit, sizeof(double)), memory_array(limit, sizeof(double)),
                  memory_array(limit, sizeof(long)), 0};
    char *done = memory_array(limit, 1);
    long n = 0;
    for (long i = 0; i < s->n; i++) {
        if (of[i] != part || done[i]) continue;
        for (long k = i; k < s->n; k++)
            if (of[k] == part && !strcmp(s->items[k].task, s->items[i].task))
                done[k] = 1, all.score[n++] = s->items[k].score;
        all.end[all.tasks++] = n;
    }
    part->tasks = all.tasks;
    part->best = sum_best(&all, NULL);
    part->best8 = (Interval){NAN, NAN, NAN};
    if (all.tasks) {
        part->best8.middle = exp2(part->best / all.tasks);
        statistics_centred(draw_best, &all, 1, &part->best8);
    }
    free(all.score);
    free(all.drawn);
    free(all.end);
    free(done);
}

/* The part of a heldout sample beside `heldout`, or NULL. */
static RoundPart *kind_of(const TaskSet *tasks, const Sample *s, RoundFigures *f)
{
    const Task *t = tasks ? taskset_find(tasks, s->task, strlen(s->task)) : NULL;
    return !t ? NULL : t->by_family ? &f->family : t->by_composition ? &f->composition : NULL;
}

static void count(const SampleSet *s, const TaskSet *tasks, RoundFigures *out)
{
    double score[COMPARISON_MAX];
    RoundPart **of = memory_array((size_t)s->n, sizeof *of), *kind,
              **by_kind = memory_array((size_t)s->n, sizeof *by_kind);
    out->turns = turns_figures(s, out->turn);
    for (long i = 0; i < s->n; i++) {
        const Sample *x = &s->items[i];
        if (!x->unanswered && !x->heldout) compare(out, x);
        if (x->outcome == OUTCOME_EVALUATOR_ERROR) continue;
        int shown = comparison_scores(x->prompt, score);
        if (x->turn > 1) continue; /* they have figures of their own */
        of[i] = x->heldout ? &out->heldout : shown ? &out->contrastive : &out->plain;
        add(of[i], x);
        if (x->heldout && (kind = kind_of(tasks, x, out))) add(by_kind[i] = kind, x);
        if (x->outcome == OUTCOME_OK && !x->heldout) count_techniques(out, x);
    }
    RoundPart *const parts[] = {&out->plain, &out->contrastive, &out->heldout};
    for (int i = 0; i < 3; i++) add_best(s, of, parts[i]);
    add_best(s, by_kind, &out->composition);
    add_best(s, by_kind, &out->family);
    free(of);
    free(by_kind);
}

void round_figures(const SampleSet *s, const TaskSet *tasks, RoundFigures *out)
{
    *out = (RoundFigures){0};
    if (!tasks) {
        count(s, NULL, out);
        return;
    }
    SampleSet own = {.items = memory_array((size_t)s->n, sizeof *own.items)};
    for (long i = 0; i < s->n; i++) {
        const Sample *x = &s->items[i];
        if (taskset_find(tasks, x->task, strlen(x->task))) own.items[own.n++] = *x;
    }
    count(&own, tasks, out);
    free(own.items);
}

typedef struct {
    void (*put)(void *ctx, const char *name, double v);
    void *ctx;
} Put;

static void put_turn(const Put *p, int turn, const TurnFigures *t)
{
    char name[64];
    const struct {
        const char *name;
        double value;
    } shares[] = {{"success", (double)t->succeeded},
                  {"mean", t->score},
                  {"best", t->best},
                  {"mended", (double)t->mended},
                  {"faster", (double)t->faster},
                  {"broken", (double)t->broken}};
    snprintf(name, sizeof name, "turn.%d.samples", turn);
    p->put(p->ctx, name, (double)t->samples);
    for (size_t i = 0; t->samples && i < sizeof shares / sizeof *shares; i++) {
        if (turn == 1 && i > 2) break;
        snprintf(name, sizeof name, "turn.%d.%s", turn, shares[i].name);
        p->put(p->ctx, name, shares[i].value / (double)t->samples);
    }
}

static void put_interval(const Put *p, const char *part, const char *what, const Interval *in)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s.low", part, what);
    p->put(p->ctx, name, in->low);
    snprintf(name, sizeof name, "%s.%s.high", part, what);
    p->put(p->ctx, name, in->high);
}

static void put_part(const Put *p, const char *part, const RoundPart *r)
{
    char name[64];
    const struct {
        const char *name;
        double value;
        long of;
    } shares[] = {{"success", (double)r->succeeded, r->samples},
                  {"mean", r->score, r->samples},
                  {"tokens", r->tokens, r->with_ids},
                  {"entropy", r->surprise, (long)r->sampled}};
    snprintf(name, sizeof name, "%s.samples", part);
    p->put(p->ctx, name, (double)r->samples);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        if (!shares[i].of) continue;
        snprintf(name, sizeof name, "%s.%s", part, shares[i].name);
        p->put(p->ctx, name, shares[i].value / (double)shares[i].of);
    }
    double n = (double)r->samples, mean = n > 0 ? r->score / n : 0,
           half = n > 1 ? 1.96 * sqrt(fmax(0, r->square / n - mean * mean) / (n - 1)) : 0;
    if (n > 1) put_interval(p, part, "mean", &(Interval){mean, mean - half, mean + half});
    if (!r->tasks) return;
    snprintf(name, sizeof name, "%s.best8", part);
    p->put(p->ctx, name, r->best8.middle);
    put_interval(p, part, "best8", &r->best8);
}

void round_figures_each(const RoundFigures *f, void (*put)(void *ctx, const char *name, double v),
                        void *ctx)
{
    const Put p = {put, ctx};
    put_part(&p, "plain", &f->plain);
    put_part(&p, "contrastive", &f->contrastive);
    put_part(&p, "heldout", &f->heldout);
    if (f->composition.samples) put_part(&p, "composition", &f->composition);
    if (f->family.samples) put_part(&p, "family", &f->family);
    put(ctx, "comparison.asked", (double)f->compared);
    if (f->compared) put(ctx, "comparison.said", 1 - (double)f->silent / (double)f->compared);
    put(ctx, "comparison.judged", (double)(f->right + f->wrong));
    if (f->right + f->wrong)
        put(ctx, "comparison.right", (double)f->right / (double)(f->right + f->wrong));
    for (int t = 0; f->turns > 1 && t < f->turns; t++) put_turn(&p, t + 1, &f->turn[t]);
    for (int i = 0; f->correct && i < ROUND_TECHNIQUES; i++) {
        char name[64];
        snprintf(name, sizeof name, "technique.%s", techniques[i].name);
        put(ctx, name, (double)f->technique[i] / (double)f->correct);
    }
}

/* ---- comparisons ---- */

int comparison_scores(const char *prompt, double score[COMPARISON_MAX])
{
    int n = 0;
    for (const char *p = prompt; p && n < COMPARISON_MAX; p = strchr(p, '\n'), p = p ? p + 1 : p) {
        int k;
        double s;
        if (sscanf(p, "// code%d (score %lf)", &k, &s) == 2 && k == n + 1) score[n++] = s;
    }
    return n;
}

Comparison comparison_judge(const char *prompt, const char *answer)
{
    double score[COMPARISON_MAX];
    int n = comparison_scores(prompt, score), a, b, end;
    if (n < 2) return COMPARISON_NONE;
    for (const char *p = answer; (p = strstr(p, "code")); p += 4) {
        end = 0;
        if (sscanf(p, "code%d is faster than code%d%n", &a, &b, &end) != 2 || !end) continue;
        if (a < 1 || b < 1 || a > n || b > n || a == b) return COMPARISON_SILENT;
        double gap = score[a - 1] - score[b - 1];
        return gap > 0 ? COMPARISON_RIGHT : gap < 0 ? COMPARISON_WRONG : COMPARISON_TIE;
    }
    return COMPARISON_SILENT;
}

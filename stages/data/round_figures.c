/* Counts in one pass; shares are made of them at the end. */
#include "stages/data/round_figures.h"

#include <stdio.h>

#include "stages/data/comparison.h"

static void add(RoundPart *p, const Sample *s)
{
    p->samples++;
    p->succeeded += s->outcome == OUTCOME_OK;
    p->score += s->score;
    p->with_ids += s->ids != NULL;
    p->tokens += s->ids ? s->n_ids : 0;
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

void round_figures(const SampleSet *s, RoundFigures *out)
{
    double score[COMPARISON_MAX];
    *out = (RoundFigures){0};
    out->turns = turns_figures(s, out->turn);
    for (long i = 0; i < s->n; i++) {
        const Sample *x = &s->items[i];
        if (!x->unanswered && !x->heldout) compare(out, x);
        if (x->outcome == OUTCOME_EVALUATOR_ERROR) continue;
        int shown = comparison_scores(x->prompt, score);
        if (x->turn > 1) continue; /* they have figures of their own */
        add(x->heldout ? &out->heldout : shown ? &out->contrastive : &out->plain, x);
    }
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

static void put_part(const Put *p, const char *part, const RoundPart *r)
{
    char name[64];
    const struct {
        const char *name;
        double value;
        long of;
    } shares[] = {{"success", (double)r->succeeded, r->samples},
                  {"mean", r->score, r->samples},
                  {"tokens", r->tokens, r->with_ids}};
    snprintf(name, sizeof name, "%s.samples", part);
    p->put(p->ctx, name, (double)r->samples);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        if (!shares[i].of) continue;
        snprintf(name, sizeof name, "%s.%s", part, shares[i].name);
        p->put(p->ctx, name, shares[i].value / (double)shares[i].of);
    }
}

void round_figures_each(const RoundFigures *f, void (*put)(void *ctx, const char *name, double v),
                        void *ctx)
{
    const Put p = {put, ctx};
    put_part(&p, "plain", &f->plain);
    put_part(&p, "contrastive", &f->contrastive);
    put_part(&p, "heldout", &f->heldout);
    put(ctx, "comparison.asked", (double)f->compared);
    if (f->compared) put(ctx, "comparison.said", 1 - (double)f->silent / (double)f->compared);
    if (f->right + f->wrong)
        put(ctx, "comparison.right", (double)f->right / (double)(f->right + f->wrong));
    for (int t = 0; f->turns > 1 && t < f->turns; t++) put_turn(&p, t + 1, &f->turn[t]);
}

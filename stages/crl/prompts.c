/* The draw of a prompt depends on the seed and its id. */
#include "stages/crl/prompts.h"

#include <stdio.h>
#include <string.h>

#include "stages/policy/prompt.h"

enum { MAX_PROMPT = 1 << 20 };

static int choose(const Prompts *p, const Task *t, const char *id, Random *rng,
                  Exemplar ex[EXEMPLAR_MAX])
{
    const PromptOptions *o = p->o;
    ExemplarPick picks[EXEMPLAR_MAX];
    int n = exemplar_draw(p->pool, t->name, id, &o->draw, o->exemplars, rng, picks);
    for (int i = 0; i < n; i++) {
        const PoolItem *x = picks[i].item;
        ex[i] = (Exemplar){x->id, x->source, strlen(x->source), picks[i].shown};
    }
    /* baseline.cu has score 1.0 only where it defines the speedup. */
    if (n < 2 && n < o->exemplars && !t->baseline_cuda_source && o->draw.rule != EXEMPLAR_NONE)
        ex[n++] = (Exemplar){"baseline", t->baseline_source, strlen(t->baseline_source), 1.0};
    return n;
}

int prompts_write_one(const Prompts *p, const Task *t, int g, int copies, Error *err)
{
    const PromptOptions *o = p->o;
    char id[256];
    Exemplar ex[EXEMPLAR_MAX];
    int plain = t->heldout || g < o->plain || o->draw.rule == EXEMPLAR_NONE, n = 0;
    snprintf(id, sizeof id, "%s/%s/%d", o->stage, t->name, g);
    Random rng;
    random_init(&rng, o->seed, random_hash(id, strlen(id)));
    if (!plain) n = choose(p, t, id, &rng, ex);
    Buffer text;
    buffer_init(&text, MAX_PROMPT);
    const PromptStyle style = prompt_facts_style(o->facts, t->name);
    prompt_write(&text, t, ex, n, &style);
    Record *r = record_new();
    record_text(r, "id", id);
    record_text(r, "task", t->name);
    record_text(r, "split", t->heldout ? "heldout" : "train");
    record_text(r, "kind", plain ? "plain" : "contrastive");
    record_textn(r, "text", text.data, text.len);
    if (copies) record_int(r, "copies", copies);
    for (int i = 0; i < n; i++) {
        Record *e = record_item(r, "exemplars");
        record_text(e, "id", ex[i].id);
        record_float(e, "score", ex[i].score);
    }
    int rc = text.full
                 ? error_set(err, ERROR_LIMIT, "prompt %s is longer than %d bytes", id, MAX_PROMPT)
                 : artifact_write(p->w, r, err);
    record_free(r);
    buffer_release(&text);
    return rc;
}

int prompts_write(const TaskSet *tasks, const Pool *pool, const PromptOptions *o, const char *path,
                  const ArtifactSpec *spec, Error *err)
{
    Prompts p = {.pool = pool, .o = o};
    if (artifact_create(path, spec, &p.w, err)) return -1;
    int rc = 0;
    for (int i = 0; i < tasks->n; i++)
        for (int g = 0; !rc && g < o->groups; g++)
            if (tasks->tasks[i]->heldout ? o->heldout : !o->only_heldout)
                rc = prompts_write_one(&p, tasks->tasks[i], g, 0, err);
    if (!rc && o->more) rc = o->more(o->ctx, &p, err);
    return artifact_end(p.w, rc, err);
}

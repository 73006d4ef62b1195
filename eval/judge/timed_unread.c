/* The small workload's launches are looked at in the same way, and not run. */
#include "eval/judge/timed_unread.h"

#include <string.h>

/* A task of these operators alone needs all of its inputs, whatever its sizes. */
static int needs_all(const Task *t)
{
    static const char *const names[] = {
        "aten.add",    "aten.sub",      "aten.mul",   "aten.div",  "aten.neg",  "aten.abs",
        "aten.pow",    "aten.exp",      "aten.sqrt",  "aten.sum",  "aten.mean", "aten.norm",
        "aten.relu",   "aten.sigm",     "aten.log",   "aten.tanh", "aten.gelu", "aten.soft",
        "aten.silu",   "aten.mse",      "aten.huber", "aten.kl_",  "aten.smoo", "aten.l1_",
        "aten.square", "aten.clam",     "aten.var",   "aten.std",  "aten.rsub", "aten.view",
        "aten.to.",    "aten.broadcast"};
    for (int node = 0; t->graph && node < t->graph->n_nodes; node++) {
        const char *op = t->graph->line[node].op->name;
        int found = 0;
        for (size_t k = 0; k < sizeof names / sizeof *names && !found; k++)
            found = !strncmp(op, names[k], strlen(names[k]));
        if (!found) return 0;
    }
    return t->graph != NULL;
}

void timed_unread(const Judgement *j, const Run *r, DeviceUnread *out)
{
    DeviceUnread all = {.outputs = r->memory.outputs, .n_outputs = r->n_outputs};
    const Loaded *l = r->loaded;
    l->ops->prediction->unread(l->device, r->launches, r->n_launches, &all);
    out->n = 0;
    for (int i = 0; i < all.n; i++)
        if (all.of[i].bytes && (!all.of[i].is_given || needs_all(j->task)))
            out->of[out->n++] = all.of[i];
}

static int refuse(Judgement *j, const DeviceUnread *left, int i)
{
    char where[160];
    task_workload_text(j->task, j->timed, where, sizeof where);
    return fault_set(
        &j->fault, OUTCOME_WRONG_RESULT, 0,
        "%s: no launch reads %.0f of the %.0f bytes of %s that %s, and all of them are "
        "read at smaller sizes",
        where, (double)left->of[i].bytes, (double)left->of[i].all, left->of[i].label,
        left->of[i].is_given ? "the result depends on" : "launches write");
}

int timed_unread_check(Judgement *j, const DeviceUnread *left)
{
    Run r = {0};
    const Case *c = left->n ? judgement_case(j, j->small) : NULL;
    if (!left->n || !c) return left->n ? -1 : 0;
    int rc = run_open(&r, &j->loaded, c, NULL, &j->fault);
    if (!rc) {
        const Loaded *l = r.loaded;
        DeviceUnread small = {.outputs = r.memory.outputs, .n_outputs = r.n_outputs};
        l->ops->prediction->unread(l->device, r.launches, r.n_launches, &small);
        for (int i = 0; i < left->n; i++)
            for (int k = 0; k < small.n && !rc; k++)
                if (!strcmp(small.of[k].label, left->of[i].label) && !small.of[k].bytes)
                    rc = refuse(j, left, i);
    }
    run_close(&r);
    return rc;
}

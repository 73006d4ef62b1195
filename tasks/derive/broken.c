/* Runs a graph once and watches its results. */
#include "tasks/derive/broken.h"

#include <math.h>
#include <string.h>

#include "tasks/derive/trial.h"

enum { SEED = 1 };

typedef struct {
    int first, nan; /* nodes; -1: none yet */
} Seen;

/* 1: some element is infinite or a NaN; 2: some is a NaN. */
static int broken(const double *x, int64_t n)
{
    int found = 0;
    for (int64_t k = 0; k < n && found < 2; k++)
        if (!isfinite(x[k])) found = isnan(x[k]) ? 2 : 1;
    return found;
}

/* A mask is filled with infinities on purpose. */
static int fills(const OpCall *c)
{
    static const char *const words[] = {"fill", "full", "where", "scalar_tensor"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(c->op->name, words[i])) return 1;
    return 0;
}

static int watch(void *ctx, const GraphStep *s, Error *err)
{
    Seen *seen = ctx;
    const OpCall *c = &s->b->calls[s->node].call;
    int before = fills(c), after = 0;
    (void)err;
    if (seen->first >= 0) return 0;
    for (int i = 0; i < c->n_results; i++) {
        int now = s->out[i] ? broken(s->out[i], op_elements(&c->result[i])) : 0;
        after = now > after ? now : after;
    }
    if (!after) return 0;
    for (int i = 0; i < c->n_tensors && !before; i++)
        before = broken(s->in[i], op_elements(&c->tensor[i]));
    if (!before) seen->first = s->node;
    if (after == 2 && seen->nan < 0) seen->nan = s->node;
    return 0;
}

int broken_node(const Derivation *v, const Sizes *s)
{
    Seen seen = {-1, -1};
    const GraphHook hook = {.ctx = &seen, .results = watch};
    Trial t;
    if (trial_open(&t, v, s, SEED, NULL, NULL)) return -1;
    int rc = trial_run(&t, &hook, NULL);
    trial_close(&t);
    return rc ? -1 : seen.first >= 0 ? seen.first : seen.nan;
}

/* What the gate says of each check workload of a description, and of the sizes that stand for the timed
 * ones. */
#include "tasks/derive/derive_gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/derive/algebra.h"
#include "tasks/gate.h"

int gate_hopeless(const Derivation *v, const Description *d, const HonestKept *kept,
                  const double *rtol)
{
    HonestError e;
    Description low = *d;
    size_t n = (size_t)v->draft.n_outputs * ATOL_CASES;
    double *atol = memory_array(n, sizeof *atol);
    unsigned char input[TASK_MAX_TENSORS] = {0};
    int any = 0, rc = 0;
    Task *t = NULL;
    honest_replay(kept, &(HonestPlan){.rtol = rtol, .grown = (HonestGrowth[]){{1, 1}}, .n = 1}, &e);
    for (size_t k = 0; k < n; k++) atol[k] = e.atol[k / ATOL_CASES];
    for (int i = 0; i < low.n; i++) low.at[i].atol = atol;
    char *text = description_text(v, &low);
    int known = e.finite && !task_parse(v->draft.name, text, &t, NULL);
    for (int i = 0; i < d->n && known && !rc; i++) {
        GateFound f;
        if (d->at[i].role != ROLE_CHECK) continue;
        rc = task_gate_once(t, &t->workloads[i], &f, NULL);
        any |= !f.null.refused;
        gate_inputs_add(t, &f, input);
    }
    int hopeless = known && !rc && (!any || gate_inputs_still(t, input) >= 0);
    task_free(t);
    free(text);
    free(atol);
    return hopeless;
}

/* Whether each input matters at sizes like the timed ones, with the tolerance of check workloads: that of
 * the timed sizes, for any order of a long sum, may hide what does not cancel. */
static int gate_timed(const Derivation *v, Task *t, const Sizes *wide, GateResult *r, Error *err)
{
    Workload w = *task_largest_check(t);
    for (int k = 0; k < v->draft.n_axes; k++) w.axis[k] = wide->at[k];
    return task_gate_zeroed(t, &w, r, err);
}

typedef struct {
    int good[TASK_MAX_WORKLOADS]; /* which workloads stay */
    int tells;
    char reason[1024]; /* where none do */
} Told;

/* Check workloads stay that no null model passes, if each input matters at each scale at one of them, or at
 * scale 1 at one of them and at the timed sizes. 1: "turns" does not hold. */
static int gate_described(const Derivation *v, const Description *d, const Sizes *wide,
                          int cautious, Told *out, Error *err)
{
    char *text = description_text(v, d);
    Task *t = NULL;
    unsigned char input[TASK_MAX_TENSORS] = {0};
    int rc = task_parse(v->draft.name, text, &t, err), all = 0, some = 0, fails[TASK_MAX_WORKLOADS];
    GateResult timed = {0};
    free(text);
    if (rc) return error_prefix(err, "the task that was derived");
    for (int i = 0; i < d->n && !rc; i++) {
        GateFound f;
        out->good[i] = 1, fails[i] = 0;
        if (d->at[i].role != ROLE_CHECK) continue;
        rc = task_gate_workload(t, &t->workloads[i], &f, err);
        if (!rc && f.hard.refused) {
            error_set(err, ERROR_UNSUPPORTED, "%.900s", f.hard.reason);
            rc = f.hard.rotated ? 1 : -1;
        }
        all |= out->good[i] = !f.soft.refused;
        some |= !(fails[i] = f.null.refused);
        gate_inputs_add(t, &f, input);
        if (f.soft.refused) snprintf(out->reason, sizeof out->reason, "%s", f.soft.reason);
    }
    some = some && gate_inputs_still(t, input) < 0;
    if (!rc && (all ? cautious : some)) rc = gate_timed(v, t, wide, &timed, err);
    if (timed.refused) snprintf(out->reason, sizeof out->reason, "%s", timed.reason);
    out->tells = rc || timed.refused ? TELLS_NOTHING : all ? TELLS_ALL : some ? TELLS_TOGETHER : 0;
    for (int i = 0; i < d->n; i++) out->good[i] = !fails[i];
    task_free(t);
    return rc;
}

int gate_described_sizes(const Derivation *v, Description *d, const Sizes *wide, int cautious,
                         Error *err)
{
    Told told = {.reason = ""};
    int rc = gate_described(v, d, wide, cautious, &told, err);
    if (rc == 1) {
        int before = d->rotates;
        algebra_rotates(v, d);
        if (d->rotates == before) d->rotates = 0; /* its one trial tells less than the gate */
        rc = gate_described(v, d, wide, cautious, &told, err);
    }
    if (rc) return -1;
    if (told.tells)
        description_keep(d, told.good);
    else
        description_degenerate(d, told.reason);
    return told.tells;
}

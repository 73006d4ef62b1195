/* A usual kernel goes no other ways, or those of one or two blocks. */
#include "eval/sim/sample_ways.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "eval/sim/coverage/ways.h"

enum { MOST = 6 };
/* Looking for the ways, as in coverage.h: 10 ms, and where the sample takes longer, up to 50. */
static const double look_least = 4e6, look_most = 2e7;
/* Thread-instructions of the blocks: about, together; of a single one that may run; at which they end. */
static const double usual = SAMPLE_INSTRUCTIONS / 2, dear = 2.5 * SAMPLE_INSTRUCTIONS;
static const int64_t limit = 10 * SAMPLE_INSTRUCTIONS;

void sample_ways_note(const Sample *s, const DeviceLaunch *l, WaysRan *out)
{
    out->n = 0;
    if (l->op_line || l->module->trusted || l->cooperative || s->cluster > 1 || s->in_order ||
        s->closing || s->atomics || (uint64_t)s->n == s->blocks)
        return;
    out->n = s->n;
    out->insts = s->insts;
    memcpy(out->ids, s->ids, (size_t)s->n * sizeof *s->ids);
}

typedef struct {
    uint64_t blocks[MOST];
    int n, at;
} Others;

static int next_other(void *others, const SimCounts *done, uint64_t *block)
{
    Others *o = others;
    (void)done;
    if (o->at == o->n) return 0;
    *block = o->blocks[o->at++];
    return 1;
}

/* As many as are not too dear. */
static int most_blocks(const WaysRan *ran)
{
    double each = (double)ran->insts / ran->n, n = usual / (each + 1);
    return each > dear ? 0 : n >= MOST ? MOST : n >= 2 ? (int)n : 2;
}

int sample_ways_run(Device *d, const DeviceLaunch *l, const WaysRan *ran, const DeviceSample *s,
                    Fault *fault)
{
    Exec *x = &d->exec;
    Others o = {.at = 0};
    const int most = ran->n ? most_blocks(ran) : 0;
    const PtxFunction *f = sim_kernel_of(l);
    const double look = fmin(fmax((double)ran->insts, look_least), look_most);
    Ways w;
    if (!most || !f) return 0;
    ways_find(&l->module->code.ptx, f, l, (int64_t)look, s->seed, &w);
    const WaysOf of = {ran->ids, ran->n, s->position > 0 ? (uint64_t)s->position : 0, s->seed};
    o.n = ways_choose(&w, &of, o.blocks, most);
    log_debug("%s: %d ways in %d boxes, %d further blocks", l->kernel, w.n_sets, w.n_boxes, o.n);
    ways_release(&w);
    if (!o.n) return 0;
    x->budget = limit;
    x->block_budget = 0;
    x->in_order = 0;
    x->reserve = (ExecReserve){0};
    int r = sim_run_blocks(d, l, next_other, &o, fault);
    d->total += limit - x->budget;
    return r > 0 && fault->outcome == OUTCOME_TIMEOUT ? 2 : r;
}

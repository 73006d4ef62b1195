/* An instruction whose line is not known counts as one that is drawn from those that have run: code that
 * never runs, or once, does not lower that. */
#include "eval/sim/spills.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "eval/candidate/cubin.h"
#include "eval/sim/decode/decode.h"
#include "eval/sim/sim_launches.h"
#include "eval/sim/time/occupancy.h"

enum { SPILLS_TOGETHER = 2 /* loads of spilled registers that wait together */ };

/* How often warps of a sample ran each line of the PTX. */
typedef struct {
    double *passes; /* OWN: it is an access to local memory */
    int n;
    double hot; /* of an instruction that is drawn from those that have run */
    double all; /* instructions of warps */
} LinePasses;

static const double OWN = -1;

/* Adds an instruction of the PTX. */
static void note_passes(LinePasses *p, const Function *f, uint32_t inst, double passes)
{
    const int line = f->ptx->insts[inst].ptx_line;
    while (p->n <= line) {
        p->passes = memory_grow(p->passes, (size_t)p->n + 1, sizeof *p->passes);
        p->passes[p->n++] = 0;
    }
    if (line < 0 || p->passes[line] == OWN) return;
    p->passes[line] = fmax(p->passes[line], passes);
    if (f->classes[inst] == INST_LOCAL_LOAD || f->classes[inst] == INST_LOCAL_STORE)
        p->passes[line] = OWN;
}

/* The caller frees ->passes. */
static LinePasses passes_by_line(const Code *code)
{
    LinePasses p = {0};
    double squares = 0;
    for (int k = 0; k < code->ptx.n_functions; k++) {
        const Function *f = &code->functions[k];
        const CodeBlock *block = NULL;
        for (int i = 0; i < f->n_blocks; i++) {
            double passes = (double)f->blocks[i].all_passes, insts = f->blocks[i].n_insts;
            p.all += passes * insts;
            squares += passes * passes * insts;
        }
        for (int i = 0; i < f->n_insts; i++) {
            const Inst *in = &f->insts[i];
            if (in->starts_block) block = block ? block + 1 : f->blocks;
            if (block && !in->starts_block && (int)in->source < f->ptx->n_insts)
                note_passes(&p, f, in->source, (double)block->all_passes);
        }
    }
    p.hot = p.all > 0 ? squares / p.all : 0;
    return p;
}

/* Words of spilled registers that all warps load and store: the local memory of the machine code that the PTX
 * does not have, each word as often as the line of the PTX runs that needs it. */
typedef struct {
    double loads, stores;
} Spills;

static Spills spills_of(const CubinKernel *k, const Code *code, const SimCounts *c)
{
    LinePasses p = passes_by_line(code);
    double words[2] = {0, 0};
    for (int i = 0; i < k->n_locals; i++) {
        const CubinLocal *at = &k->locals[i];
        const int is_known = at->line && at->line < (uint32_t)p.n;
        const double passes = is_known ? p.passes[at->line] : p.hot;
        if (passes != OWN) words[at->is_store] += at->words * passes;
    }
    const double scale = p.all > 0 ? (double)c->warp_insts / p.all : 0;
    free(p.passes);
    return (Spills){words[0] * scale, words[1] * scale};
}

void spills_charge(const Device *d, const DeviceLaunch *l, SimCounts *c)
{
    const CubinKernel *k = cubin_find(&l->module->cubin, l->kernel);
    const Function *f = d->exec.entry;
    Occupancy o;
    if (!k || k->local_bytes <= f->local_bytes) return;
    const Spills s = spills_of(k, &l->module->code, c);
    if (s.loads + s.stores <= 0 ||
        occupancy_of(d->profile, (uint64_t)l->block[0] * l->block[1] * l->block[2], c->registers,
                     (uint64_t)c->static_shared + c->dynamic_shared, &o, NULL))
        return;
    double threads = 32.0 * o.warps_per_block * o.blocks_per_sm,
           spilled = threads * (k->local_bytes - f->local_bytes),
           cached = fmin(1, d->profile->l1_size / spilled),
           kept = fmin(1, (double)d->profile->l2_size / (spilled * d->profile->sm_count));
    uint64_t loads = (uint64_t)s.loads, stores = (uint64_t)s.stores,
             far_loads = (uint64_t)((1 - cached) * 4 * s.loads),
             far_stores = (uint64_t)((1 - cached) * 4 * s.stores);
    c->by_class[INST_LOCAL_LOAD] += loads, c->by_class[INST_LOCAL_STORE] += stores;
    c->local_load_sectors += 4 * loads, c->local_store_sectors += 4 * stores;
    c->far_local_loads += far_loads, c->far_local_stores += far_stores;
    c->dram_read_sectors += (uint64_t)((1 - kept) * (double)far_loads);
    c->dram_write_sectors += (uint64_t)((1 - kept) * (double)far_stores);
    const Profile *p = d->profile;
    double miss = kept * p->l2_cycles + (1 - kept) * p->dram_cycles,
           latency = cached * p->l1_cycles + (1 - cached) * miss;
    c->spill_cycles = (uint64_t)(s.loads / SPILLS_TOGETHER * latency /
                                 (double)(c->warps ? c->warps : 1) * (double)c->blocks);
}

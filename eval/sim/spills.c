/* An instruction whose line is not known counts as one that is drawn from those that have run: code that
 * never runs, or once, does not lower that. */
#include "eval/sim/spills.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/sort.h"
#include "eval/candidate/cubin.h"
#include "eval/sim/sim_launches.h"
#include "eval/sim/sunk.h"
#include "eval/sim/time/occupancy.h"

enum { SPILLS_TOGETHER = 2 /* loads of spilled registers that wait together */ };

/* A line of the PTX. */
typedef struct {
    double passes; /* of warps of a sample; OWN: it is an access to local memory */
    int block; /* 1 + the number of its block of code, over all functions; 0: nothing has that line */
    int accesses; /* it has a load or store, which is one instruction of the machine code */
    int copies;   /* instructions of the machine code */
} Line;

typedef struct {
    Line *line;
    int n, blocks;
    double hot; /* passes of an instruction that is drawn from those that have run */
    double all; /* instructions of warps */
} Lines;

static const double OWN = -1;

static int is_local(int class)
{
    return class == INST_LOCAL_LOAD || class == INST_LOCAL_STORE;
}

static int is_access(int class)
{
    return class == INST_GLOBAL_LOAD || class == INST_GLOBAL_STORE || class == INST_SHARED_LOAD ||
           class == INST_SHARED_STORE;
}

/* Adds an instruction of the PTX. */
static void note_passes(Lines *p, const Function *f, uint32_t inst, double passes)
{
    const int line = f->ptx->insts[inst].ptx_line;
    while (p->n <= line) {
        p->line = memory_grow(p->line, (size_t)p->n + 1, sizeof *p->line);
        p->line[p->n++] = (Line){0};
    }
    if (line < 0) return;
    Line *l = &p->line[line];
    l->block = p->blocks;
    l->accesses |= is_access(f->classes[inst]);
    if (is_local(f->classes[inst]))
        l->passes = OWN;
    else if (l->passes != OWN)
        l->passes = fmax(l->passes, passes);
}

static void note_function(Lines *p, const Function *f)
{
    const CodeBlock *block = NULL;
    for (int i = 0; i < f->n_insts; i++) {
        const Inst *in = &f->insts[i];
        if (in->starts_block) block = block ? block + 1 : f->blocks, p->blocks++;
        if (block && !in->starts_block && (int)in->source < f->ptx->n_insts)
            note_passes(p, f, in->source, (double)block->all_passes);
    }
}

/* The caller frees ->line. */
static Lines find_lines(const CubinKernel *k, const Code *code)
{
    Lines p = {0};
    double squares = 0;
    for (int j = 0; j < code->ptx.n_functions; j++) {
        const Function *f = &code->functions[j];
        for (int i = 0; i < f->n_blocks; i++) {
            double passes = (double)f->blocks[i].all_passes, insts = f->blocks[i].n_insts;
            p.all += passes * insts;
            squares += passes * passes * insts;
        }
        note_function(&p, f);
    }
    p.hot = p.all > 0 ? squares / p.all : 0;
    for (uint32_t i = 0; i < k->n_insts; i++)
        if (k->lines[i] < (uint32_t)p.n) p.line[k->lines[i]].copies++;
    for (int i = 0; i < k->n_locals; i++)
        if (k->lines[k->locals[i].inst] < (uint32_t)p.n)
            p.line[k->lines[k->locals[i].inst]].copies--;
    return p;
}

/* How often the assembler has unrolled each block of code: its accesses have as many copies, or more where
 * one needs several instructions, so that the lower quartile counts. The caller frees the array. */
static double *find_copies(const Lines *p)
{
    double *copies = memory_array((size_t)p->blocks + 1, sizeof *copies),
           *of = memory_array((size_t)p->n + 1, sizeof *of);
    for (int i = 0, next; i < p->n; i = next) {
        const int block = p->line[i].block;
        size_t n = 0;
        for (next = i; next < p->n && (!p->line[next].block || p->line[next].block == block);
             next++)
            if (p->line[next].accesses && p->line[next].copies > 0) of[n++] = p->line[next].copies;
        sort_doubles(of, n);
        copies[block] = n ? of[(n - 1) / 4] : 1;
    }
    free(of);
    return copies;
}

/* Words of spilled registers that all warps load and store: the local memory of the machine code that the PTX
 * does not have, each word as often as the line of the PTX runs that needs it. */
typedef struct {
    double loads, stores;
} Spills;

static Spills spills_of(const CubinKernel *k, const Code *code, const SimCounts *c)
{
    Lines p = find_lines(k, code);
    double words[2] = {0, 0}, *copies = find_copies(&p);
    for (int i = 0; i < k->n_locals; i++) {
        const CubinLocal *at = &k->locals[i];
        const uint32_t line = k->lines[at->inst];
        const Line *l = line && line < (uint32_t)p.n && p.line[line].block ? &p.line[line] : NULL;
        if (l && l->passes == OWN) continue;
        words[at->is_store] += at->words * (l ? l->passes / copies[l->block] : p.hot);
    }
    const double scale = p.all > 0 ? (double)c->warp_insts / p.all : 0;
    free(copies);
    free(p.line);
    return (Spills){words[0] * scale, words[1] * scale};
}

static void charge_spills(const Device *d, const DeviceLaunch *l, SimCounts *c)
{
    const CubinKernel *k = cubin_find(&l->module->cubin, l->kernel);
    const Function *f = d->exec.entry;
    Occupancy o;
    if (!k || k->local_bytes <= f->local_bytes) return;
    const Spills s = spills_of(k, &l->module->code, c);
    if (s.loads + s.stores <= 0 || occupancy_of_counts(d->profile, c, &o, NULL)) return;
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

void assembler_charge(const Device *d, const DeviceLaunch *l, SimCounts *c)
{
    charge_spills(d, l, c);
    sunk_charge(l, c);
}

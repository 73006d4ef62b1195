/* A piece of machine code is compared with the PTX of its loads, by their lines. Where a line has several
 * loads, which the assembler has unrolled or copied, the piece counts as in the PTX. So does a kernel with
 * local memory: its spills have waits of their own (spills.c). */
#include "eval/sim/sunk.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/candidate/cubin.h"
#include "eval/sim/decode/decode.h"
#include "eval/sim/sim_launches.h"

/* Of a line of the PTX: the waits that its load adds there, the passes of warps of a sample, and 1 + the last
 * piece of the machine code that has it. */
typedef struct {
    double passes;
    int waits;
    uint32_t piece;
} LoadLine;

typedef struct {
    LoadLine *line;
    int n;
    double all; /* instructions of warps */
} LoadLines;

static void note_line(LoadLines *p, const Function *f, uint32_t source, double passes)
{
    const int line = f->ptx->insts[source].ptx_line;
    if (line < 0 || f->classes[source] != INST_GLOBAL_LOAD) return;
    while (p->n <= line) {
        p->line = memory_grow(p->line, (size_t)p->n + 1, sizeof *p->line);
        p->line[p->n++] = (LoadLine){0};
    }
    p->line[line].passes = passes;
    p->line[line].waits = f->waits[source];
}

/* The caller frees ->line. */
static LoadLines find_load_lines(const Code *code)
{
    LoadLines p = {0};
    for (int j = 0; j < code->ptx.n_functions; j++) {
        const Function *f = &code->functions[j];
        const CodeBlock *block = NULL;
        for (int i = 0; i < f->n_blocks; i++)
            p.all += (double)f->blocks[i].all_passes * f->blocks[i].n_insts;
        for (int i = 0; i < f->n_insts; i++) {
            if (f->insts[i].starts_block)
                block = block ? block + 1 : f->blocks;
            else if (block && (int)f->insts[i].source < f->ptx->n_insts)
                note_line(&p, f, f->insts[i].source, (double)block->all_passes);
        }
    }
    return p;
}

/* The waits of warps that the machine code has and the PTX has not, by the passes of a sample. */
static double sunk_waits(const CubinKernel *k, const LoadLines *p)
{
    double sum = 0;
    for (int i = 0, next; i < k->n_loads; i = next) {
        const uint32_t piece = k->loads[i].piece, last_of = piece + 1;
        int in_ptx = 0, known = 1;
        double passes = 0;
        for (next = i; next < k->n_loads && k->loads[next].piece == piece; next++) {
            const uint32_t line = k->lines[k->loads[next].inst];
            LoadLine *l = line && line < (uint32_t)p->n ? &p->line[line] : NULL;
            if (!l || l->piece == last_of) known = 0;
            if (!l) continue;
            l->piece = last_of;
            in_ptx += l->waits;
            passes = l->passes;
        }
        const int turns = (int)k->loads[next - 1].turn;
        if (known && turns > (in_ptx ? in_ptx - 1 : 0))
            sum += passes * (turns - (in_ptx ? in_ptx - 1 : 0));
    }
    return sum;
}

void sunk_charge(const DeviceLaunch *l, SimCounts *c)
{
    const CubinKernel *k = cubin_find(&l->module->cubin, l->kernel);
    if (!k || !k->n_loads || k->n_locals || !c->global_waits || !c->warps) return;
    LoadLines p = find_load_lines(&l->module->code);
    const double waits = p.all > 0 ? sunk_waits(k, &p) * (double)c->warp_insts / p.all : 0,
                 more = waits / (double)c->global_waits, each = waits / (double)c->warps;
    free(p.line);
    if (waits <= 0) return;
    c->global_waits += (uint64_t)waits;
    c->leader_dram_waits += (uint64_t)(more * (double)c->leader_dram_waits);
    c->leader_far_waits += (uint64_t)(more * (double)c->leader_far_waits);
    c->block_global_waits += (uint64_t)(each * (double)c->blocks);
    c->global_waits_max += (uint64_t)(each + 0.5);
}

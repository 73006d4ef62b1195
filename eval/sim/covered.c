/* A buffer is written by the plan's own kernels together, or whole by an op line before them. Where it is not
 * known what all blocks write, what the sampled blocks wrote counts. */
#include "eval/sim/covered.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/sim/library/library_shape.h"
#include "eval/sim/sim_launches.h"

/* Lanes of instructions: about a second, which few kernels need. */
static const int64_t budget = 400000000, patient_budget = 3000000000;

/* A buffer, by its allocation. */
typedef struct {
    int output;    /* its number, or -1 */
    int last_use;  /* the last launch that has a pointer to it */
    Written own;   /* by the plan's own kernels, since an op line wrote it; unit 0: nothing yet */
    int by_op;     /* a launch of an op line wrote it all before */
    int is_filled; /* with a constant */
    int launch;    /* the last that wrote to it */
    int first;     /* the plan's own launch that wrote to it first; -1: none */
    char why[96];  /* not empty: a launch may have written more; what hides it */
} Target;

struct PlanCoverage {
    const DevMem *mem;
    const DeviceLaunch *launches;
    int n;
    const DeviceSample *sample;
    Target *targets;
    uint8_t *wanted;
    uint32_t unit;
    int64_t budget;
    int patient;
};

/* What launch i points to, and how large the elements are that it moves. */
static void announce(PlanCoverage *c, int i)
{
    const PtxFunction *kernel = sim_kernel_of(&c->launches[i]);
    uint32_t least = kernel ? coverage_unit(kernel) : 16;
    if (least < c->unit) c->unit = least;
    for (int a = 0; a < c->mem->n_allocs; a++)
        if (sim_has_pointer(c->mem, &c->launches[i], a)) c->targets[a].last_use = i;
}

PlanCoverage *covered_new(const DevMem *mem, const DeviceLaunch *launches, int n,
                          const DeviceSample *s)
{
    PlanCoverage *c = memory_alloc(sizeof *c);
    size_t room = (size_t)mem->n_allocs + 1;
    *c = (PlanCoverage){.mem = mem,
                        .launches = launches,
                        .n = n,
                        .sample = s,
                        .targets = memory_array(room, sizeof *c->targets),
                        .wanted = memory_alloc(room),
                        .unit = 16,
                        .budget = budget};
    for (int a = 0; a < mem->n_allocs; a++)
        c->targets[a] = (Target){.output = -1, .last_use = -1, .launch = -1, .first = -1};
    for (int k = 0; k < s->n_outputs; k++) {
        int a = devmem_find(mem, s->outputs[k]);
        if (a >= 0) c->targets[a].output = k;
    }
    for (int i = 0; i < n; i++) announce(c, i);
    memset(s->written, 0, sizeof *s->written);
    return c;
}

void covered_patiently(PlanCoverage *c, int patiently)
{
    c->budget += (patiently - c->patient) * patient_budget;
    c->patient = patiently;
}

/* Contents of buffers that begin with launch i. */
static void begin_contents(PlanCoverage *c, int i)
{
    for (int k = 0; k < c->launches[i].n_fresh; k++) {
        int a = devmem_find(c->mem, c->launches[i].fresh[k].p);
        if (a < 0) continue;
        Target *t = &c->targets[a];
        written_release(&t->own);
        *t = (Target){.output = t->output, .last_use = t->last_use, .launch = -1, .first = -1};
    }
}

/* ---- what is found ---- */

__attribute__((format(printf, 5, 6))) static void report(PlanCoverage *c, int state, int a,
                                                         int launch, const char *fmt, ...)
{
    DeviceWritten *w = c->sample->written;
    va_list ap;
    if (w->state == WRITTEN_NOT || (w->state == WRITTEN_UNKNOWN && state == WRITTEN_UNKNOWN))
        return;
    *w = (DeviceWritten){
        .state = state == WRITTEN_NOT ? WRITTEN_NOT : WRITTEN_UNKNOWN,
        .output = c->targets[a].output,
        .launch = launch,
    };
    snprintf(w->label, sizeof w->label, "%s", c->mem->allocs[a].label);
    va_start(ap, fmt);
    vsnprintf(w->why, sizeof w->why, fmt, ap);
    va_end(ap);
}

static void report_holes(PlanCoverage *c, int a, int launch, uint64_t holes, uint64_t first)
{
    int before = c->sample->written->state;
    report(c, WRITTEN_NOT, a, launch, "%s", "");
    if (before == WRITTEN_NOT) return;
    c->sample->written->holes = holes * c->unit;
    c->sample->written->first = first;
}

/* What is written of the allocation, with what the sampled blocks wrote. */
static Written all_written(const PlanCoverage *c, int a)
{
    const Alloc *of = &c->mem->allocs[a];
    Written w = {.bytes = of->bytes, .unit = c->unit};
    size_t from = 0, end = 0;
    if (c->targets[a].own.unit) written_add(&w, &c->targets[a].own);
    if (c->targets[a].why[0])
        for (; devmem_next_written(c->mem, of, SIZE_MAX, &from, &end); from = end)
            written_mark(&w,
                         (WrittenRun){.at = (int64_t)from, .bytes = (int64_t)end - (int64_t)from});
    return w;
}

/* The sampled blocks wrote elsewhere: something was overlooked. */
static int is_overlooked(const PlanCoverage *c, int a)
{
    const Target *t = &c->targets[a];
    size_t from = 0, end = 0;
    for (; devmem_next_written(c->mem, &c->mem->allocs[a], SIZE_MAX, &from, &end); from = end)
        if (!t->own.unit || !written_has(&t->own, from, end)) return 1;
    return 0;
}

/* ---- launches ---- */

/* What a library call writes. */
static uint64_t result_of(const DeviceLaunch *l)
{
    LibraryCall call;
    Error ignored;
    if (library_read(l, &call, &ignored)) return 0;
    return call.kind == LIBRARY_PRODUCT ? call.product.c : call.convolution.y;
}

static int is_constant(const char *op)
{
    static const char *const of[] = {"zeros", "ones", "full", "fill", "empty", "zero"};
    for (size_t i = 0; op && i < sizeof of / sizeof *of; i++)
        if (strstr(op, of[i])) return 1;
    return 0;
}

/* Has the launch that has just run written anything? One that is scaled has not. */
static int has_written(const DevMem *mem)
{
    for (int a = 0; a < mem->n_allocs; a++)
        if (mem->allocs[a].written_sectors) return 1;
    return 0;
}

/* A launch of an op line computes what it writes: all of it. */
static void note_op(PlanCoverage *c, int i, const PtxFunction *kernel)
{
    const DeviceLaunch *l = &c->launches[i];
    int result = kernel ? -1 : devmem_find(c->mem, result_of(l));
    for (int a = 0; a < c->mem->n_allocs; a++) {
        Target *t = &c->targets[a];
        if (kernel ? !c->mem->allocs[a].written_sectors : a != result) continue;
        written_release(&t->own);
        *t = (Target){.output = t->output,
                      .last_use = t->last_use,
                      .by_op = 1,
                      .is_filled = is_constant(l->op),
                      .launch = i,
                      .first = -1};
    }
}

static void log_found(const Coverage *w, int i, const char *what)
{
    log_debug("launch %d: %llu blocks tell what it %s%s%s (line %d)", i, (unsigned long long)w->ran,
              what, w->why[0] ? ", but it has " : "", w->why, w->line);
}

static void note_writes(PlanCoverage *c, const CoverageOf *of, int i)
{
    Coverage w;
    int some = 0;
    for (int a = 0; a < c->mem->n_allocs; a++) {
        const Target *t = &c->targets[a];
        c->wanted[a] = !c->mem->allocs[a].read_only && !c->mem->allocs[a].variable &&
                       (t->output >= 0 || t->last_use > i) && coverage_has_pointer(of, a);
        some |= c->wanted[a];
    }
    if (!some) return;
    coverage_find(of, &c->budget, &w);
    log_found(&w, i, "writes");
    for (int a = 0; a < c->mem->n_allocs; a++) {
        Target *t = &c->targets[a];
        if (c->wanted[a] && w.why[0] && !t->why[0]) snprintf(t->why, sizeof t->why, "%s", w.why);
        if (!c->wanted[a] || (!w.of[a].all && !w.of[a].bits)) continue;
        t->launch = i;
        if (t->first < 0) t->first = i;
        if (!t->own.unit) t->own = (Written){.bytes = w.of[a].bytes, .unit = c->unit};
        written_add(&t->own, &w.of[a]);
    }
    coverage_release(&w);
}

/* Does the launch read what no launch writes of the allocation? */
static void check_reads(PlanCoverage *c, const CoverageOf *of, int i, int a)
{
    Written w = all_written(c, a);
    uint64_t first, holes = written_holes(&w, &first);
    Coverage r = {0};
    if (holes) {
        CoverageOf loads = *of;
        loads.kind = SLICE_LOADS;
        memset(c->wanted, 0, (size_t)c->mem->n_allocs);
        c->wanted[a] = 1;
        coverage_find(&loads, &c->budget, &r);
        log_found(&r, i, "reads");
        written_remove(&r.of[a], &w);
        holes = written_units(&r.of[a], &first);
        if (holes && !c->targets[a].why[0] && !is_overlooked(c, a))
            report_holes(c, a, i, holes, first);
        else if (holes || r.why[0])
            report(c, WRITTEN_UNKNOWN, a, i, "%s", r.why[0] ? r.why : c->targets[a].why);
        coverage_release(&r);
    }
    written_release(&w);
}

void covered_launch(PlanCoverage *c, int i)
{
    const DeviceLaunch *l = &c->launches[i];
    const PtxFunction *kernel = sim_kernel_of(l);
    begin_contents(c, i);
    if (!kernel || (l->op_line && has_written(c->mem))) {
        note_op(c, i, kernel);
        return;
    }
    const CoverageOf of = sim_coverage_of(c->mem, l, c->wanted, SLICE_STORES, c->unit);
    note_writes(c, &of, i);
    if (l->op_line) return;
    for (int a = 0; a < c->mem->n_allocs; a++) {
        int first = c->targets[a].by_op ? -1 : c->targets[a].first;
        if (first >= 0 && first < i && coverage_has_pointer(&of, a)) check_reads(c, &of, i, a);
    }
}

static void finish_output(PlanCoverage *c, int a)
{
    const Target *t = &c->targets[a];
    Written w = all_written(c, a);
    uint64_t first, holes = written_holes(&w, &first);
    if (holes && t->by_op && t->is_filled && t->own.unit)
        report(c, WRITTEN_UNKNOWN, a, t->launch,
               "the constant of an op line where it does not write");
    else if (holes && !t->by_op && t->why[0])
        report(c, WRITTEN_UNKNOWN, a, t->launch, "%s", t->why);
    else if (holes && !t->by_op && is_overlooked(c, a))
        report(c, WRITTEN_UNKNOWN, a, t->launch, "stores that are not understood");
    else if (holes && !t->by_op)
        report_holes(c, a, t->launch, holes, first);
    written_release(&w);
}

void covered_finish(PlanCoverage *c)
{
    for (int a = 0; a < c->mem->n_allocs; a++) {
        if (c->targets[a].output >= 0) finish_output(c, a);
        written_release(&c->targets[a].own);
    }
    free(c->targets);
    free(c->wanted);
    free(c);
}

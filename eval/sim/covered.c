/* An output is written by the plan's own kernels together, or whole by an op line before them. */
#include "eval/sim/covered.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/sim/library/library_shape.h"

/* Lanes of instructions: about 0.3 seconds. */
static const int64_t budget = 400000000;

/* An output. */
typedef struct {
    Written own; /* by the plan's own kernels */
    int by_op;   /* a launch of an op line wrote it all before */
    int launch;  /* the last that wrote to it */
} Output;

struct PlanCoverage {
    const DevMem *mem;
    const DeviceLaunch *launches;
    const DeviceSample *sample;
    Output *outputs;
    uint32_t unit;
    int64_t budget;
    int unknown; /* a launch of which it is not known what it writes; -1: there is none */
    char why[128];
};

PlanCoverage *covered_new(const DevMem *mem, const DeviceLaunch *launches, const DeviceSample *s)
{
    PlanCoverage *c = memory_alloc(sizeof *c);
    *c = (PlanCoverage){.mem = mem,
                        .launches = launches,
                        .sample = s,
                        .outputs = memory_array((size_t)s->n_outputs + 1, sizeof *c->outputs),
                        .unit = 16,
                        .budget = budget,
                        .unknown = -1};
    return c;
}

void covered_kernel(PlanCoverage *c, const PtxFunction *kernel)
{
    uint32_t least = coverage_unit(kernel);
    if (least < c->unit) c->unit = least;
}

static int allocation_of(const PlanCoverage *c, int output)
{
    return devmem_find(c->mem, c->sample->outputs[output]);
}

/* What a library call writes. */
static uint64_t result_of(const DeviceLaunch *l)
{
    LibraryCall call;
    Error ignored;
    if (library_read(l, &call, &ignored)) return 0;
    return call.kind == LIBRARY_PRODUCT ? call.product.c : call.convolution.y;
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
    uint64_t result = kernel ? 0 : result_of(l);
    if (kernel && !has_written(c->mem) && c->unknown < 0) {
        c->unknown = i;
        snprintf(c->why, sizeof c->why, "an op line that is not sampled");
    }
    for (int k = 0; k < c->sample->n_outputs; k++) {
        int a = allocation_of(c, k);
        if (a < 0 ||
            !(kernel ? c->mem->allocs[a].written_sectors > 0 : devmem_find(c->mem, result) == a))
            continue;
        written_release(&c->outputs[k].own);
        c->outputs[k] = (Output){.by_op = 1, .launch = i};
    }
}

static void note_own(PlanCoverage *c, int i, const PtxFunction *kernel)
{
    Coverage w;
    coverage_find(c->mem, kernel, &c->launches[i], c->unit, &c->budget, &w);
    log_debug("launch %d: %llu blocks tell what it writes%s%s (line %d)", i,
              (unsigned long long)w.ran, w.why ? ", but it has " : "", w.why ? w.why : "", w.line);
    if (w.why && c->unknown < 0) {
        c->unknown = i;
        snprintf(c->why, sizeof c->why, "%s", w.why);
    }
    for (int k = 0; k < c->sample->n_outputs; k++) {
        int a = allocation_of(c, k);
        Output *o = &c->outputs[k];
        if (a < 0 || a >= w.n || (!w.of[a].all && !w.of[a].bits)) continue;
        o->launch = i;
        if (!o->own.unit) o->own = (Written){.bytes = w.of[a].bytes, .unit = w.of[a].unit};
        written_add(&o->own, &w.of[a]);
    }
    coverage_release(&w);
}

void covered_launch(PlanCoverage *c, int i, const PtxFunction *kernel)
{
    const DeviceLaunch *l = &c->launches[i];
    if (!kernel || l->op_line)
        note_op(c, i, kernel);
    else
        note_own(c, i, kernel);
}

static void finish_output(const PlanCoverage *c, int k, DeviceWritten *out)
{
    Output *o = &c->outputs[k];
    uint64_t last;
    int a = allocation_of(c, k);
    memset(out, 0, sizeof *out);
    out->launch = o->launch;
    out->known = o->by_op || a < 0;
    if (out->known) return;
    Written none = {.bytes = c->mem->allocs[a].bytes, .unit = 1};
    const Written *w = o->own.unit ? &o->own : &none;
    out->unit = w->unit;
    out->holes = written_holes(w, &out->first, &last);
    out->known = !out->holes || c->unknown < 0;
    snprintf(out->why, sizeof out->why, "%s", c->why);
}

void covered_finish(PlanCoverage *c)
{
    for (int k = 0; k < c->sample->n_outputs; k++) {
        if (c->sample->written) finish_output(c, k, &c->sample->written[k]);
        written_release(&c->outputs[k].own);
    }
    free(c->outputs);
    free(c);
}

/* The device is a stand-in, which loads nothing: the same requests reach the compiler as in a verdict. */
#include "eval/judge/compile_ahead.h"

#include <stdio.h>
#include <string.h>

#include "eval/judge/contents/own_sizes.h"
#include "eval/judge/device_reference.h"
#include "eval/judge/loaded_ops.h"

struct Device {
    DeviceInfo info;
};

static const DeviceInfo *info(Device *d)
{
    return &d->info;
}

static int load(Device *d, const DeviceCode *code, int home, DeviceModule **out, Fault *f)
{
    (void)d, (void)code, (void)home, (void)f;
    *out = NULL;
    return 0;
}

static void unload(Device *d, DeviceModule *m)
{
    (void)d, (void)m;
}

static int kernel(Device *d, DeviceModule *m, const char *lowered, KernelInfo *out, Error *err)
{
    (void)d, (void)m, (void)out;
    return error_set(err, ERROR_UNSUPPORTED, "%.200s is not loaded", lowered);
}

static const size_t memory = (size_t)79 << 30; /* a larger GPU times a few tasks at other sizes */
static const DeviceOps nowhere = {.info = info, .load = load, .unload = unload, .kernel = kernel};

static void compile_plan(const Machine *m, Task *t, const char *plan, const Workload *w)
{
    Candidate lines;
    Loaded l;
    Fault ignored;
    loaded_init(&l, m, t, 1);
    int rc = candidate_parse(plan, strlen(plan), 1, &lines, &ignored);
    if (!rc) rc = loaded_compile(&l, &lines, &ignored);
    if (!rc) loaded_ops_compile(&l, &w, 1, &ignored);
    loaded_close(&l);
    candidate_release(&lines);
}

static void compile_reference(const Machine *m, Task *t, const Workload *w)
{
    ReferencePlan p;
    Error ignored;
    if (!device_reference_needed(t, w)) return;
    if (!device_reference_plan(t, w, &p, &ignored)) compile_plan(m, &p.task, p.plan, w);
    device_reference_release(&p);
}

void compile_ahead(Compiler *c, const char *arch, Task *t)
{
    Device d = {.info = {.total_bytes = memory}};
    const Machine m = {&nowhere, &d, c};
    OwnSizes own;
    snprintf(d.info.arch, sizeof d.info.arch, "%s", arch);
    const Workload *timed = task_workload(t, ROLE_TIME), *part = timed;
    if (t->own && t->graph && !own_sizes_find(t, &own) && own_sizes_fit(&own, &d.info)) {
        timed = t->own;
        part = own.axis >= 0 ? &own.part : t->own;
    }
    compile_plan(&m, t, task_baseline(t), timed);
    compile_reference(&m, t, part);
}

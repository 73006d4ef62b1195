/* Builds, compiles and loads the kernels of op lines. A text that does not compile is the
 * evaluator's failure, since the harness wrote it. */
#include "eval/judge/loaded_ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The most that all parts of a candidate have together: it bounds the time of their compilations. A
 * baseline may have TRUSTED_FACTOR times as much. */
enum { MAX_SOURCE = 1500 << 10, MAX_KERNELS = 2000, TRUSTED_FACTOR = 8 };
enum { MAX_PART = 1000 << 10 }; /* below the compiler's bound of a request */
/* Of a candidate's texts that its task's own operators do not need: others take 4 to 12 s. */
enum { MAX_OWN = 192 << 10 };

static WorkloadOps *find(Loaded *l, const Workload *w)
{
    for (int i = 0; i < l->n_workload_ops; i++)
        if (!memcmp(l->workload_ops[i].axis, w->axis, sizeof w->axis)) return &l->workload_ops[i];
    return NULL;
}

static int build(Loaded *l, const Workload *w, WorkloadOps **out, Fault *f)
{
    if ((*out = find(l, w))) {
        if (w->role > (*out)->role) (*out)->role = w->role;
        return 0;
    }
    WorkloadOps fresh = {.role = w->role};
    memcpy(fresh.axis, w->axis, sizeof w->axis);
    if (plan_ops_build(l->plan, l->task, w, 1, &fresh.ops, f)) {
        plan_ops_release(&fresh.ops);
        return 1;
    }
    l->workload_ops = memory_grow(l->workload_ops, (size_t)l->n_workload_ops + 1, sizeof fresh);
    l->workload_ops[l->n_workload_ops] = fresh;
    *out = &l->workload_ops[l->n_workload_ops++];
    return 0;
}

int loaded_ops_at(Loaded *l, const Workload *w, Fault *f)
{
    WorkloadOps *at;
    if (!l->plan->n_ops) return 0;
    if (build(l, w, &at, f)) return 1;
    for (int i = 0; at->part && i < at->ops.n_texts; i++)
        at->loaded[i] = l->op_modules[at->part[i]].module;
    l->context.ops = &at->ops;
    l->context.op_modules = at->loaded;
    l->context.calls_module = at->part ? l->op_modules[0].module : NULL;
    return 0;
}

/* A module without kernels is one of library calls. */
static int load(Loaded *l, OpModule *m, Fault *f)
{
    DeviceCode code = {m->code.ptx, m->code.ptx_len, m->code.cubin, m->code.cubin_len};
    int rc = l->ops->load(l->device, m->code.ptx ? &code : NULL, l->home, &m->module, f);
    return rc > 0 ? fault_set(f, f->outcome, 0, "the kernels of the op lines: %.1900s", f->message)
                  : rc;
}

/* Each kernel takes the pointers that its launch passes: a mistake of the operator library, not of
 * the plan. */
static int check_kernels(const Loaded *l, const WorkloadOps *at, Error *err)
{
    const PlanOps *o = &at->ops;
    for (int i = 0; i < o->n_launches; i++) {
        KernelInfo info;
        const PlanOpLaunch *launch = &o->launches[i];
        if (launch->library) continue;
        DeviceModule *m = l->op_modules[at->part[launch->text]].module;
        if (l->ops->kernel(l->device, m, launch->kernel, &info, err)) return -1;
        if (info.n_params != launch->n_args || (int)info.param_bytes > 8 * launch->n_args)
            return error_set(err, ERROR_INVALID,
                             "kernel %s has %d parameters of %u bytes; its op line passes %d "
                             "pointers",
                             launch->kernel, info.n_params, info.param_bytes, launch->n_args);
    }
    return 0;
}

static int compile_source(Loaded *l, const Buffer *text, char **names, int n_names, OpModule *m,
                          Fault *f)
{
    CompileRequest request = {.arch = l->ops->info(l->device)->arch,
                              .source = text->data,
                              .len = text->len,
                              .n_names = n_names,
                              .names = (const char *const *)names,
                              .keep = 1};
    if (!n_names) return 0;
    if (compiler_run(l->compiler, &request, &m->code, &f->error)) return -1;
    if (m->code.ok) return 0;
    if (m->code.limited && !l->trusted)
        return fault_set(f, OUTCOME_COMPILE_ERROR, 0, "the kernels of the op lines: %s",
                         m->code.message);
    return error_set(&f->error, ERROR_COMPILER,
                     "the kernels of the op lines do not compile: %.700s", m->code.message);
}

/* Of a candidate it is a plan that has too many different op lines. */
static int check_size(Loaded *l, const PlanKernelText *const *texts, int n, Fault *f)
{
    static const char text[] =
        "the op lines of the plan need more than %d kernels or %d KiB of text";
    OpPartSize more = op_part_total(texts, n), *sum = &l->op_total;
    int factor = l->trusted ? TRUSTED_FACTOR : 1, kernels = factor * MAX_KERNELS,
        bytes = factor * MAX_SOURCE;
    sum->kernels += more.kernels;
    sum->bytes += more.bytes;
    if (sum->kernels <= kernels && sum->bytes <= (size_t)bytes) return 0;
    if (l->trusted) return error_set(&f->error, ERROR_LIMIT, text, kernels, bytes >> 10);
    return fault_set(f, OUTCOME_PLAN_ERROR, 0, text, kernels, bytes >> 10);
}

static int is_one_of(const PlanKernelText *const *texts, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(texts[i]->name, name)) return 1;
    return 0;
}

/* The bytes of n texts that the operators of the task's graph do not have for n_at workloads. */
static size_t own_bytes(Loaded *l, WorkloadOps *const *at, int n_at,
                        const PlanKernelText *const *texts, int n)
{
    const char *source = l->task->graph ? l->task->baseline_source : "";
    PlanOps *ops = memory_array((size_t)n_at + 1, sizeof *ops);
    const PlanOps **list = memory_array((size_t)n_at + 1, sizeof *list);
    const PlanKernelText **known;
    Fault ignored;
    Plan plan;
    int n_list = 0;
    size_t bytes = 0;
    int parsed = !plan_parse(source, strlen(source), 1, &plan, &ignored);
    for (int i = 0; i < n_at && parsed; i++) {
        Workload w = {.role = at[i]->role};
        memcpy(w.axis, at[i]->axis, sizeof w.axis);
        if (!plan_ops_build(&plan, l->task, &w, 1, &ops[i], &ignored)) list[n_list++] = &ops[i];
    }
    int n_known = plan_ops_texts(list, n_list, &known);
    for (int i = 0; i < n; i++)
        if (!is_one_of(known, n_known, texts[i]->name)) bytes += strlen(texts[i]->text);
    free(known);
    for (int i = 0; i < n_at; i++) plan_ops_release(&ops[i]);
    plan_release(&plan);
    free(list);
    free(ops);
    return bytes;
}

static int check_own_size(Loaded *l, WorkloadOps *const *at, int n_at,
                          const PlanKernelText *const *texts, int n, Fault *f)
{
    if (l->trusted || l->op_total.bytes <= MAX_OWN) return 0;
    l->op_own += own_bytes(l, at, n_at, texts, n);
    if (l->op_own <= MAX_OWN) return 0;
    return fault_set(
        f, OUTCOME_PLAN_ERROR, 0,
        "the op lines of the plan need more than %d KiB of text that the operators of the "
        "task do not need",
        MAX_OWN >> 10);
}

/* The index of a text in l->op_texts, or -1. */
static int known(const Loaded *l, const char *name)
{
    for (int i = 0; i < l->n_op_texts; i++)
        if (!strcmp(l->op_texts[i].name, name)) return i;
    return -1;
}

/* Compile and load one part. */
static int add_part(Loaded *l, const PlanKernelText *const *texts, int n, Fault *f)
{
    char **names = NULL;
    int n_names = 0;
    Buffer text;
    OpModule m = {0};
    buffer_init(&text, MAX_PART);
    int rc = plan_ops_source(texts, n, &text, &names, &n_names);
    if (rc) error_set(&f->error, ERROR_LIMIT, "the kernels of an op line are too long");
    if (!rc) rc = compile_source(l, &text, names, n_names, &m, f);
    if (!rc) rc = load(l, &m, f);
    l->op_texts = memory_grow(l->op_texts, (size_t)(l->n_op_texts + n) + 1, sizeof *l->op_texts);
    for (int i = 0; i < n && !rc; i++) {
        CompiledText *t = &l->op_texts[l->n_op_texts++];
        memcpy(t->name, texts[i]->name, sizeof t->name);
        t->module = l->n_op_modules;
    }
    l->op_modules = memory_grow(l->op_modules, (size_t)l->n_op_modules + 1, sizeof m);
    l->op_modules[l->n_op_modules++] = m;
    for (int i = 0; i < n_names; i++) free(names[i]);
    free(names);
    buffer_release(&text);
    return rc;
}

/* Note where the kernels of a workload are. */
static int find_parts(Loaded *l, WorkloadOps *at, Error *err)
{
    at->part = memory_array((size_t)at->ops.n_texts + 1, sizeof *at->part);
    at->loaded = memory_array((size_t)at->ops.n_texts + 1, sizeof *at->loaded);
    for (int i = 0; i < at->ops.n_texts; i++)
        at->part[i] = l->op_texts[known(l, at->ops.texts[i].name)].module;
    return check_kernels(l, at, err);
}

/* The texts of n workloads that no part has. */
static int missing_texts(const Loaded *l, WorkloadOps *const *at, int n,
                         const PlanKernelText ***out)
{
    const PlanOps **ops = memory_array((size_t)n + 1, sizeof *ops);
    int kept = 0;
    for (int i = 0; i < n; i++) ops[i] = &at[i]->ops;
    int all = plan_ops_texts(ops, n, out);
    for (int i = 0; i < all; i++)
        if (known(l, (*out)[i]->name) < 0) (*out)[kept++] = (*out)[i];
    free(ops);
    return kept;
}

static void by_role(WorkloadOps **at, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k && at[k]->role > at[k - 1]->role; k--) {
            WorkloadOps *swap = at[k];
            at[k] = at[k - 1];
            at[k - 1] = swap;
        }
}

/* In several parts, the kernels of the baseline's workloads come first: equal parts are then
 * compiled once for both. */
static int compile(Loaded *l, WorkloadOps **at, int n, Fault *f)
{
    const PlanKernelText **texts;
    OpPartSize size = op_part_size();
    int end, n_texts = missing_texts(l, at, n, &texts);
    int rc = check_size(l, texts, n_texts, f);
    if (!rc) rc = check_own_size(l, at, n, texts, n_texts, f);
    if (!rc && n_texts && op_part_end(texts, n_texts, 0, size) < n_texts) {
        by_role(at, n);
        free(texts);
        n_texts = missing_texts(l, at, n, &texts);
    }
    if (!rc && !n_texts && !l->n_op_modules) rc = add_part(l, texts, 0, f);
    for (int from = 0; from < n_texts && !rc; from = end) {
        end = op_part_end(texts, n_texts, from, size);
        rc = add_part(l, texts + from, end - from, f);
    }
    free(texts);
    for (int i = 0; i < n && !rc; i++) rc = find_parts(l, at[i], &f->error);
    return rc;
}

int loaded_ops_compile(Loaded *l, const Workload *const *w, int n, Fault *f)
{
    WorkloadOps **at = memory_array((size_t)n + 1, sizeof *at), *one;
    int missing = 0, rc = 0;
    for (int i = 0; i < n && l->plan->n_ops && !rc; i++) rc = build(l, w[i], &one, f);
    for (int i = 0; i < n && l->plan->n_ops && !rc; i++) {
        int seen = 0;
        one = find(l, w[i]);
        for (int k = 0; k < missing; k++) seen |= at[k] == one;
        if (!seen && !one->part) at[missing++] = one;
    }
    if (!rc && missing) rc = compile(l, at, missing, f);
    free(at);
    return rc;
}

int loaded_ops_again(Loaded *l, Fault *f)
{
    int rc = 0;
    if (l->ops->info(l->device)->predicted) return 0;
    for (int i = 0; i < l->n_op_modules && !rc; i++) {
        OpModule *m = &l->op_modules[i];
        if (m->module) l->ops->unload(l->device, m->module);
        m->module = NULL;
        rc = load(l, m, f);
    }
    return rc;
}

void loaded_ops_release(Loaded *l)
{
    for (int i = 0; i < l->n_op_modules; i++) {
        if (l->op_modules[i].module) l->ops->unload(l->device, l->op_modules[i].module);
        compile_result_release(&l->op_modules[i].code);
    }
    for (int i = 0; i < l->n_workload_ops; i++) {
        free(l->workload_ops[i].part);
        free(l->workload_ops[i].loaded);
        plan_ops_release(&l->workload_ops[i].ops);
    }
    free(l->op_modules);
    free(l->op_texts);
    free(l->workload_ops);
}

void loaded_ops_fault(Fault *f, const DeviceLaunch *launches, int n, const char *where)
{
    const DeviceLaunch *l = f->launch >= 0 && f->launch < n ? &launches[f->launch] : NULL;
    if (l && l->op) /* without kernel and line, which are of the harness's text */
        fault_set(f, f->outcome, l->op_line, "line %d: %s, %.1500s", l->op_line, l->op,
                  f->message + f->place);
    fault_place(f, where);
}

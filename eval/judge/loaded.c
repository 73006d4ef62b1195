/* Compile, load, and read the kernels' attributes. Device code that names the device's heap is
 * refused here, since the heap outlives a module. */
#include "eval/judge/loaded.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"
#include "eval/candidate/ptx_words.h"
#include "eval/judge/loaded_ops.h"

static int load_module(Loaded *l, Fault *f)
{
    DeviceCode code = {l->code.ptx, l->code.ptx_len, l->code.cubin, l->code.cubin_len};
    if (!l->plan->n_kernels && !l->trusted) return 0; /* op lines only */
    return l->ops->load(l->device, l->plan->n_kernels ? &code : NULL, l->home, &l->context.module,
                        f);
}

/* The PTX names a function of the device's heap. NVRTC declares it as ".extern .func (.param .b64
 * r) malloc (...) ;", and inline assembly may write it in other ways, so any word counts. */
static int uses_heap(const char *ptx)
{
    static const char *const names[] = {"malloc", "free", "__nv_aligned_device_malloc"};
    size_t n;
    for (const char *p = ptxwords_next(ptx, &n); p; p = ptxwords_next(p + n, &n))
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (word_is(p, n, names[i])) return 1;
    return 0;
}

/* A pointer into the heap stays valid in the next module, and would carry results to it. */
static int refuse_heap(const Loaded *l, Fault *f)
{
    if (l->trusted || !l->code.ptx || !uses_heap(l->code.ptx)) return 0;
    return fault_set(
        f, OUTCOME_UNSUPPORTED, 0,
        "device-side malloc is not available (nor free, new and delete): declare a //@ buffer");
}

/* A kernel that was compiled but that the device cannot describe is the source's fault: it has too
 * many parameters, or inline assembly has changed the module. */
static int load_kernels(Loaded *l, Fault *f)
{
    Error why;
    for (int i = 0; i < l->plan->n_kernels; i++) {
        PlanKernel *k = &l->kernels[i];
        int line = l->plan->kernel_line[i];
        k->lowered = l->code.lowered[i];
        if (l->ops->kernel(l->device, l->context.module, k->lowered, &k->info, &why))
            return fault_set(f, OUTCOME_PLAN_ERROR, line, "line %d: %s", line, why.text);
        plan_kernel_kinds(k, l->code.ptx);
        if (k->info.registers > l->registers) l->registers = k->info.registers;
    }
    return 0;
}

void loaded_init(Loaded *l, const Machine *m, Task *t, int trusted)
{
    *l = (Loaded){
        .ops = m->ops, .device = m->device, .compiler = m->compiler, .task = t, .trusted = trusted};
}

int loaded_open(Loaded *l, const Plan *plan, CompileResult *code, Fault *f)
{
    l->plan = plan;
    l->home = l->trusted && !l->beside ? HOME_TRUSTED : plan->n_ops ? HOME_LIBRARY : HOME_CANDIDATE;
    l->kernels = memory_array((size_t)plan->n_kernels + 1, sizeof *l->kernels);
    l->code = *code;
    memset(code, 0, sizeof *code);
    l->context = (PlanContext){
        .plan = plan, .task = l->task, .device = l->ops->info(l->device), .kernels = l->kernels};
    int rc = refuse_heap(l, f);
    if (!rc) rc = load_module(l, f);
    return rc ? rc : load_kernels(l, f);
}

static int refuse_local(const Loaded *l, Fault *f)
{
    size_t most = l->ops->info(l->device)->max_local_per_thread;
    for (int i = 0; i < l->plan->n_kernels; i++) {
        const PlanKernel *k = &l->kernels[i];
        char name[128];
        if (k->info.local_bytes <= most) continue;
        device_kernel_name(k->lowered, name, sizeof name);
        return fault_set(
            f, OUTCOME_LAUNCH_ERROR, l->plan->kernel_line[i],
            "kernel %s takes %zu bytes of local memory a thread; this device gives at most "
            "%zu: move its arrays into shared memory or a //@ buffer",
            name, k->info.local_bytes, most);
    }
    return 0;
}

/* Returns 1 for a source that was refused. */
static int refused(const CompileResult *code, const Candidate *c, Fault *f)
{
    if (code->ok) return 0;
    int plan_line = code->bad_name >= 0 && !code->line ? c->plan.kernel_line[code->bad_name] : 0;
    if (plan_line)
        return fault_set(f, OUTCOME_PLAN_ERROR, plan_line, "line %d: %s", plan_line, code->message);
    return fault_set(f, OUTCOME_COMPILE_ERROR, code->line, "%s", code->message);
}

/* A plan of library calls and op lines alone has nothing to compile here. */
int loaded_compile(Loaded *l, const Candidate *c, Fault *f)
{
    const char **names = plan_kernel_names(&c->plan);
    CompileResult code = {0};
    CompileRequest request = {
        l->ops->info(l->device)->arch, c->source, c->len, c->plan.n_kernels, names,
        c->plan.n_ops && !l->trusted};
    int rc = c->plan.n_kernels ? compiler_run(l->compiler, &request, &code, &f->error) : 0;
    l->compile_cpu_s = code.cpu_s;
    memcpy(l->library, code.library, sizeof l->library);
    if (!rc && c->plan.n_kernels) rc = refused(&code, c, f);
    free(names);
    if (!rc) rc = loaded_open(l, &c->plan, &code, f);
    if (!rc) rc = refuse_local(l, f);
    compile_result_release(&code);
    return rc;
}

int loaded_again(Loaded *l, Fault *f)
{
    if (l->context.module) l->ops->unload(l->device, l->context.module);
    l->context.module = NULL;
    l->runs = 0;
    int rc = load_module(l, f);
    return rc ? rc : loaded_ops_again(l, f);
}

int loaded_follow(Loaded *l, Error *err)
{
    Fault unused;
    int follows = l->ops && l->ops->prediction ? l->ops->prediction->follow(l->device, 1) : 0;
    int rc = follows ? loaded_again(l, &unused) : 1;
    if (rc < 0) *err = unused.error;
    return rc < 0 ? -1 : rc ? 0 : follows;
}

void loaded_unfollow(Loaded *l)
{
    if (l->ops && l->ops->prediction) l->ops->prediction->follow(l->device, 0);
}

void loaded_close(Loaded *l)
{
    if (l->context.module) l->ops->unload(l->device, l->context.module);
    loaded_ops_release(l);
    compile_result_release(&l->code);
    free(l->kernels);
    memset(l, 0, sizeof *l);
}

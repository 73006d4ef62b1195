/* The code is the one that was compiled for the GPU. Cases are drawn again, in host memory. */
#include "eval/judge/sanitizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/branches.h"
#include "eval/judge/checks.h"
#include "eval/judge/loaded_ops.h"
#include "eval/judge/predicted_timing.h"
#include "eval/judge/wide_checks.h"
#include "eval/judge/workloads.h"
#include "eval/sim/time/profile.h"

static const size_t case_bytes = (size_t)256 << 20;

struct Sanitizer {
    char name[64];       /* "sim:h100" */
    Evaluator simulator; /* its device is NULL until the first check */
};

Sanitizer *sanitizer_new(const char *arch)
{
    const Profile *p;
    for (int i = 0; (p = profile_at(i)); i++) {
        if (strcmp(p->arch, arch)) continue;
        Sanitizer *s = memory_alloc(sizeof *s);
        snprintf(s->name, sizeof s->name, "sim:%s", p->name);
        return s;
    }
    return NULL;
}

void sanitizer_free(Sanitizer *s)
{
    if (!s) return;
    Machine *m = &s->simulator.machine;
    if (s->simulator.cases) cases_free(s->simulator.cases);
    if (m->device) m->ops->close(m->device);
    free(s);
}

static int open_device(Sanitizer *s, const Evaluator *of, Error *err)
{
    const char *arg;
    Machine *m = &s->simulator.machine;
    s->simulator.seed = of->seed;
    m->compiler = of->machine.compiler;
    if (m->device) return 0;
    m->ops = device_find(s->name, &arg, err);
    if (!m->ops || m->ops->open(arg, &m->device, err)) return -1;
    s->simulator.cases = cases_new(case_bytes, m->ops, m->device);
    if (of->stored) cases_store(s->simulator.cases, of->stored);
    return 0;
}

static char *copied(const char *bytes, size_t n)
{
    return bytes ? memory_strndup(bytes, n) : NULL;
}

static CompileResult copy_code(const CompileResult *of)
{
    CompileResult r = *of;
    r.ptx = copied(of->ptx, of->ptx_len);
    r.cubin = NULL;
    if (of->cubin) {
        r.cubin = memory_alloc(of->cubin_len + 1);
        memcpy(r.cubin, of->cubin, of->cubin_len);
    }
    r.lowered = memory_array((size_t)of->n_lowered + 1, sizeof *r.lowered);
    for (int i = 0; i < of->n_lowered; i++) r.lowered[i] = memory_strdup(of->lowered[i]);
    return r;
}

/* Load the code of another judgement. */
static int load(Judgement *own, const Judgement *of)
{
    const Workload *list[TASK_MAX_WORKLOADS];
    int n = 0, rc = candidate_parse(of->source, of->len, 0, &own->candidate, &own->fault);
    for (int i = 0; i < own->task->n_workloads; i++)
        if (own->task->workloads[i].role == ROLE_CHECK) list[n++] = &own->task->workloads[i];
    loaded_init(&own->loaded, &own->evaluator->machine, own->task, 0);
    if (rc) return rc;
    CompileResult code = copy_code(&of->loaded.code);
    rc = loaded_open(&own->loaded, &own->candidate.plan, &code, &own->fault);
    compile_result_release(&code);
    return rc ? rc : loaded_ops_compile(&own->loaded, list, n, &own->fault);
}

/* Blocks of timed pair i. A block of a timed size has all trips of its loops: what one trip leaves for the
 * next shows there, which no check may have. A plan that cannot run in part runs at the drawn sizes. */
static int sample_pair(Judgement *own, int i)
{
    int scaled = 0;
    workloads_take(own, i);
    int rc = branches_small(own);
    const Workload *const list[] = {own->small, own->timed};
    if (!rc) rc = loaded_ops_compile(&own->loaded, list, 2, &own->fault);
    if (!rc) rc = predicted_sample(own, &scaled);
    return !rc && scaled ? step_wide(own) : rc;
}

static int sample_pairs(Judgement *own)
{
    int rc = 0;
    for (int i = 0; i < own->n_pairs && own->candidate.plan.n_kernels && !rc; i++)
        rc = sample_pair(own, i);
    return rc;
}

/* *checked: the checks have run to their end. */
static int run_all(Judgement *own, int *checked)
{
    int rc = checks_run(own);
    *checked = !rc;
    return rc ? rc : sample_pairs(own);
}

static int run_checks(Judgement *own, const Judgement *of, int *checked)
{
    int rc = load(own, of);
    *checked = 0;
    if (!rc) rc = run_all(own, checked);
    int follows = rc > 0 ? loaded_follow(&own->loaded, &own->fault.error) : 0;
    if (follows > 0) rc = run_all(own, checked);
    if (follows > 0 && !rc) checks_warn(own);
    return follows < 0 ? -1 : rc;
}

static int is_finding(Outcome o)
{
    return o == OUTCOME_RACE || o == OUTCOME_UNINITIALISED || o == OUTCOME_OUT_OF_BOUNDS;
}

static int report(const Sanitizer *s, const Judgement *own, int rc, int checked, Judgement *j)
{
    const Fault *found = &own->fault;
    const char *what = checked ? "the timed size" : "it";
    if (rc < 0) {
        j->fault.error = found->error;
        return -1;
    }
    memcpy(j->verdict.warnings, own->verdict.warnings, sizeof j->verdict.warnings);
    j->verdict.n_warnings = own->verdict.n_warnings;
    if (rc && is_finding(found->outcome))
        return fault_set(&j->fault, found->outcome, found->line,
                         "%s, which executed this kernel's %s: %.1900s", s->name,
                         checked ? "timed blocks" : "checks", found->message);
    if (checked)
        verdict_pass(&j->verdict, "%s finds no race, no undefined value, nothing out of bounds",
                     s->name);
    if (rc)
        verdict_pass(&j->verdict, "%s could not check %s: %s: %.50s", s->name, what,
                     outcome_name(found->outcome), found->message);
    return 0;
}

int step_sanitize(Judgement *j)
{
    int checked;
    Sanitizer *s = j->evaluator->sanitizer;
    if (!s) {
        verdict_pass(&j->verdict, "no simulator could check it: none has %s",
                     evaluator_device(j->evaluator)->arch);
        return 0;
    }
    if (open_device(s, j->evaluator, &j->fault.error)) return -1;
    Judgement *own = memory_alloc(sizeof *own);
    judgement_begin(own, &s->simulator, j->task, j->source, j->len);
    int rc = run_checks(own, j, &checked);
    rc = report(s, own, rc, checked, j);
    judgement_release(own);
    free(own);
    return rc;
}

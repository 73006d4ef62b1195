/* The code is the one that was compiled for the GPU. Cases are drawn again, in host memory. */
#include "eval/judge/sanitizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/loaded_ops.h"
#include "eval/sim/time/profile.h"

static const size_t case_bytes = (size_t)256 << 20;

struct Sanitizer {
    char name[64], arch[16]; /* "sim:h100" */
    const DeviceOps *ops;
    Device *device; /* NULL until the first check */
    Cases *cases;
};

Sanitizer *sanitizer_new(const char *arch)
{
    const Profile *p;
    for (int i = 0; (p = profile_at(i)); i++) {
        if (strcmp(p->arch, arch)) continue;
        Sanitizer *s = memory_alloc(sizeof *s);
        snprintf(s->name, sizeof s->name, "sim:%s", p->name);
        snprintf(s->arch, sizeof s->arch, "%s", arch);
        return s;
    }
    return NULL;
}

void sanitizer_free(Sanitizer *s)
{
    if (!s) return;
    if (s->cases) cases_free(s->cases);
    if (s->device) s->ops->close(s->device);
    free(s);
}

static int open_device(Sanitizer *s, Error *err)
{
    const char *arg;
    if (s->device) return 0;
    s->ops = device_find(s->name, &arg, err);
    if (!s->ops || s->ops->open(arg, &s->device, err)) return -1;
    s->cases = cases_new(case_bytes, s->ops, s->device);
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

static int run_checks(Sanitizer *s, const Loaded *of, Compiler *compiler, uint64_t seed,
                      ChecksPassed *own, Finding *f, Error *err)
{
    Loaded l;
    const Workload *list[TASK_MAX_WORKLOADS];
    int n = 0;
    CompileResult code = copy_code(&of->code);
    for (int i = 0; i < of->task->n_workloads; i++)
        if (of->task->workloads[i].role == ROLE_CHECK) list[n++] = &of->task->workloads[i];
    int rc = loaded_open(&l, s->ops, s->device, of->task, of->plan, 0, &code, f, err);
    compile_result_release(&code);
    l.compiler = compiler;
    if (!rc) rc = loaded_ops_compile(&l, list, n, f, err);
    if (!rc) rc = checks_run(&l, s->cases, seed, own, f, err);
    int follows = rc > 0 ? loaded_follow(&l, err) : 0;
    if (follows > 0) rc = checks_run(&l, s->cases, seed, own, f, err);
    if (follows > 0 && !rc) checks_warn(own, &l);
    if (follows < 0) rc = -1;
    loaded_unfollow(&l);
    loaded_close(&l);
    return rc;
}

static int is_finding(Outcome o)
{
    return o == OUTCOME_RACE || o == OUTCOME_UNINITIALISED || o == OUTCOME_OUT_OF_BOUNDS;
}

int sanitizer_check(Sanitizer *s, const Loaded *l, Compiler *compiler, uint64_t seed,
                    ChecksPassed *passed, Finding *f, Error *err)
{
    ChecksPassed own = {0};
    Finding found = {0};
    if (open_device(s, err)) return -1;
    int rc = run_checks(s, l, compiler, seed, &own, &found, err);
    if (rc < 0) return -1;
    memcpy(passed->warnings, own.warnings, sizeof own.warnings);
    passed->n_warnings = own.n_warnings;
    if (!rc) {
        checks_pass(passed, "%s finds no race, no undefined value, nothing out of bounds", s->name);
    } else if (is_finding(found.outcome)) {
        *f = found;
        snprintf(f->message, sizeof f->message, "%s, which executed this kernel's checks: %.1900s",
                 s->name, found.message);
    } else {
        checks_pass(passed, "%s could not check it: %s: %.50s", s->name,
                    outcome_name(found.outcome), found.message);
        rc = 0;
    }
    return rc;
}

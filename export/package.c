/* Makes a package: the verdict first, then the binaries. Nothing is written unless the verdict is ok,
 * so that a wrong kernel never leaves Quern in a form that looks finished. */
#include "export/package.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/words.h"
#include "eval/judge/loaded_ops.h"

static int check_name(const char *name, Error *err)
{
    if (word_is_name(name, PACKAGE_MAX_NAME)) return 0;
    return error_set(err, ERROR_USAGE,
                     "the package's name \"%s\" is expected to have letters, digits and _, at most "
                     "%d, and to begin with no digit",
                     name, PACKAGE_MAX_NAME - 1);
}

/* The op lines are those of the first workload, whose names are those of every one. */
static int judge(const PackageOptions *opt, Package *p, Error *err)
{
    Judgement *j = &p->judged;
    Fault f;
    EvaluatorOptions options = {.device = opt->device,
                                .tasks_root = opt->tasks_root,
                                .cache_dir = opt->cache_dir,
                                .seed = opt->seed};
    if (evaluator_open(&options, &p->evaluator, err)) return -1;
    p->task = evaluator_task(p->evaluator, opt->task, err);
    if (!p->task) return -1;
    evaluator_judge(p->evaluator, p->task->name, p->source.data, p->source.len, j);
    if (j->verdict.outcome == OUTCOME_EVALUATOR_ERROR)
        return error_set(err, j->verdict.error, "%.900s", j->verdict.message);
    time_t now = time(NULL);
    struct tm day;
    strftime(p->date, sizeof p->date, "%Y-%m-%d", gmtime_r(&now, &day));
    if (j->verdict.outcome != OUTCOME_OK) return 1;
    if (loaded_ops_at(&j->loaded, &p->task->workloads[0], &f))
        return error_set(err, ERROR_UNSUPPORTED, "%.900s", f.message);
    return 0;
}

static int compile_for(Package *p, const char *arch, Error *err)
{
    PackageCode *c = &p->code[p->n_code];
    const char *names[PLAN_MAX_STEPS];
    const Plan *plan = &p->judged.candidate.plan;
    CompileResult result = {0};
    for (int i = 0; i < plan->n_kernels; i++) names[i] = plan->kernels[i];
    CompileRequest request = {arch, p->judged.candidate.source, p->judged.candidate.len,
                              plan->n_kernels, names};
    int sm, rc = 0;
    if (sscanf(arch, "sm_%d", &sm) != 1 || sm < 50 || sm > 999)
        rc = error_set(err, ERROR_USAGE, "expected an architecture such as sm_90, found \"%s\"",
                       arch);
    if (!rc) rc = compiler_run(p->evaluator->machine.compiler, &request, &result, err);
    if (!rc && !result.ok)
        rc = error_set(err, ERROR_INVALID, "the kernel does not compile for %s: %.700s", arch,
                       result.message);
    if (!rc) {
        snprintf(c->arch, sizeof c->arch, "%s", arch);
        c->major = sm / 10, c->minor = sm % 10;
        c->cubin = result.cubin, c->len = result.cubin_len;
        result.cubin = NULL;
        p->n_code++;
    }
    compile_result_release(&result);
    return rc;
}

static int compile_all(const char *archs, Package *p, Error *err)
{
    char list[256];
    if (!archs) archs = evaluator_device(p->evaluator)->arch;
    if (strlen(archs) >= sizeof list)
        return error_set(err, ERROR_LIMIT, "at most %d architectures expected", PACKAGE_MAX_ARCHS);
    snprintf(list, sizeof list, "%s", archs);
    char *rest = list;
    for (char *arch = strsep(&rest, ","); arch; arch = strsep(&rest, ",")) {
        if (p->n_code == PACKAGE_MAX_ARCHS)
            return error_set(err, ERROR_LIMIT, "at most %d architectures expected",
                             PACKAGE_MAX_ARCHS);
        if (compile_for(p, arch, err)) return -1;
    }
    return 0;
}

int package_make(const PackageOptions *opt, Package *out, Error *err)
{
    memset(out, 0, sizeof *out);
    if (opt->name && check_name(opt->name, err)) return -1;
    buffer_init(&out->source, CANDIDATE_MAX_SOURCE + 1);
    if (file_read_source(opt->path, CANDIDATE_MAX_SOURCE, &out->source, err)) return -1;
    int rc = judge(opt, out, err);
    if (rc) return rc;
    const char *name = opt->name ? opt->name : out->task->name;
    if (check_name(name, err)) return -1;
    snprintf(out->name, sizeof out->name, "%s", name);
    if (!out->judged.candidate.plan.n_kernels)
        return error_set(err, ERROR_UNSUPPORTED,
                         "the candidate launches no kernel of its own: there is nothing to export");
    return compile_all(opt->archs, out, err);
}

void package_release(Package *p)
{
    for (int i = 0; i < p->n_code; i++) free(p->code[i].cubin);
    judgement_release(&p->judged);
    if (p->evaluator) evaluator_close(p->evaluator);
    buffer_release(&p->source);
    memset(p, 0, sizeof *p);
}

/* Workload i of those that were judged: the task's, and the module's own sizes where these were timed. NULL:
 * there are no more. */
static const Workload *judged_at(const Package *p, int i)
{
    const Task *t = p->task;
    if (i < t->n_workloads) return &t->workloads[i];
    return i == t->n_workloads && p->judged.pairs[0].timed == t->own ? t->own : NULL;
}

void package_axis_bounds(const Package *p, int axis, int64_t *low, int64_t *high)
{
    const Workload *w;
    for (int i = 0; (w = judged_at(p, i)); i++) {
        int64_t v = w->axis[axis];
        if (!i || v < *low) *low = v;
        if (!i || v > *high) *high = v;
    }
}

size_t package_max_elements(const Package *p, const TaskTensor *x)
{
    size_t largest = 0, n;
    Error ignored;
    const Workload *w;
    for (int i = 0; (w = judged_at(p, i)); i++)
        if (!task_elements(p->task, w, x, &n, &ignored) && n > largest) largest = n;
    return largest;
}

static const TaskTensor *task_tensor(const Task *t, PlanText name)
{
    for (int i = 0; i < t->n_inputs; i++)
        if (plan_text_is(name, t->inputs[i].name)) return &t->inputs[i];
    for (int i = 0; i < t->n_outputs; i++)
        if (plan_text_is(name, t->outputs[i].name)) return &t->outputs[i];
    return NULL;
}

/* What a pointer or a map leads to: its element, its type and its shape. 0: there is none of this name. */
static int find_memory(const Package *p, PlanText name, PackageArgument *out)
{
    const Plan *plan = &p->judged.candidate.plan;
    const PlanOps *ops = p->judged.loaded.context.ops;
    const TaskTensor *x = task_tensor(p->task, name);
    const PlanTensor *result = ops && !x ? plan_ops_find(ops, name) : NULL;
    for (int i = 0; i < plan->n_buffers; i++) {
        const PlanBuffer *b = &plan->buffers[i];
        if (!plan_text_is(name, b->name)) continue;
        out->element = b->type_size;
        out->map_type = b->map_type;
        out->count = b->count;
        return 1;
    }
    if (!x && !result) return 0;
    Dtype dtype = x ? x->dtype : result->tensor.dtype;
    out->element = dtype_size(dtype);
    out->map_type = tensor_map_type(dtype);
    out->shape = x ? (const char *const *)x->shape : NULL;
    return 1;
}

int package_refuse_ops(const Package *p, const char *form, Error *err)
{
    const Plan *plan = &p->judged.candidate.plan;
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].op)
            return error_set(err, ERROR_UNSUPPORTED,
                             "line %d runs %s: only a torch package can run an operator, not a %s "
                             "package",
                             plan->steps[i].line, plan->steps[i].op->op->name, form);
    return 0;
}

void package_argument(const Package *p, const PlanStep *s, int i, PackageArgument *out)
{
    const PlanKernel *k = &p->judged.loaded.kernels[s->kernel];
    PlanText name, offset;
    const Plan *plan = &p->judged.candidate.plan;
    *out = (PackageArgument){.bytes = k->info.params[i].size};
    if (plan_argument(plan, s->args[i], &name, &offset) && find_memory(p, name, out)) {
        out->map = plan_map(plan, s->args[i]);
        out->kind = out->map ? ARGUMENT_MAP : ARGUMENT_POINTER;
        out->name = name;
        out->text = offset;
    } else if (plan_text_float(s->args[i], &out->value)) {
        out->kind = ARGUMENT_FLOAT;
    } else {
        out->kind = k->kind[i] == 'f' ? ARGUMENT_FLOAT : ARGUMENT_INTEGER;
        out->text = s->args[i];
    }
}

int package_file(const char *dir, const char *name, const void *data, size_t len, Error *err)
{
    char *path = memory_printf("%s/%s", dir, name);
    int rc = file_write_atomic(path, data, len, err);
    free(path);
    return rc;
}

void package_accepts(const Package *p, Buffer *out)
{
    const Task *t = p->task;
    for (int a = 0; a < t->n_axes; a++) {
        int64_t low = 0, high = 0;
        package_axis_bounds(p, a, &low, &high);
        buffer_printf(out, "%s%s from %lld to %lld",
                      !a                  ? ""
                      : a + 1 < t->n_axes ? ", "
                                          : " and ",
                      t->axis_name[a], (long long)low, (long long)high);
    }
    for (int i = 0; i < t->n_constraints; i++)
        buffer_printf(out, "%s%s", i ? " and " : ", where ", t->constraints[i]);
    buffer_puts(out, t->n_axes ? ", with no tensor larger than one that was judged"
                               : "the sizes that were judged, and no others");
}

void package_verdict_text(const Package *p, char out[PACKAGE_VERDICT_TEXT])
{
    const Verdict *v = &p->judged.verdict;
    char rivals[RIVALS_TEXT], within[64] = "";
    rivals_text(v, rivals);
    if (v->error_factor > 0)
        snprintf(within, sizeof within, ", within %.2gx for 9 kernels in 10", v->error_factor);
    if (v->predicted)
        snprintf(out, PACKAGE_VERDICT_TEXT, "%.3fx predicted for %s%s; %s", v->speedup, v->device,
                 within, rivals);
    else
        snprintf(out, PACKAGE_VERDICT_TEXT,
                 "%.3fx eager measured on %s, 95%% from %.3f to %.3f; %s", v->speedup, v->device,
                 v->low, v->high, rivals);
}

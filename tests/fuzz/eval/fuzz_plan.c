/* A candidate's plan, and a baseline's, from foreign bytes: parse, and resolve what parses for a
 * small task. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/candidate/candidate.h"
#include "eval/candidate/resolve.h"

static char rows[] = "rows", cols[] = "cols";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void resolve(const Plan *plan)
{
    static TaskTensor x = {.name = "x", .rank = 2, .shape = {rows, cols}},
                      y = {.name = "y", .rank = 2, .shape = {rows, cols}};
    static Task task = {.n_axes = 2,
                        .axis_name = {"rows", "cols"},
                        .n_inputs = 1,
                        .n_outputs = 1,
                        .n_workloads = 1,
                        .inputs = &x,
                        .outputs = &y,
                        .workloads = {{.axis = {7, 33}}}};
    static const DeviceInfo device = {
        .max_threads_per_block = 1024, .max_shared_per_block = 65536, .memory_bytes = 1 << 24};
    PlanKernel *kernels = memory_array((size_t)plan->n_kernels + 1, sizeof *kernels);
    DeviceLaunch *launches = NULL;
    int n;
    Fault f = {0};
    for (int k = 0; k < plan->n_kernels; k++) {
        kernels[k] = (PlanKernel){.lowered = plan->kernels[k], .info = {.max_threads = 1024}};
        /* The parameters that its first launch fits, so that resolving goes on into the values. */
        for (int s = 0; s < plan->n_steps && !kernels[k].info.n_params; s++)
            if (plan->steps[s].kernel == k) kernels[k].info.n_params = plan->steps[s].n_args;
        for (int i = 0; i < kernels[k].info.n_params; i++) {
            kernels[k].info.params[i].offset = (uint32_t)i * 8;
            kernels[k].info.params[i].size = i % 3 == 2 ? 4 : 8;
            kernels[k].info.params[i].is_pointer = -1;
        }
        kernels[k].info.param_bytes = (uint32_t)kernels[k].info.n_params * 8;
    }
    PlanContext context = {.plan = plan, .task = &task, .device = &device, .kernels = kernels};
    PlanOps ops = {0};
    int rc = plan_check_names(&context, &f);
    if (!rc && plan->n_ops) {
        rc = plan_ops_build(plan, &task, &task.workloads[0], 1, &ops, &f);
        context.ops = &ops;
    }
    if (!rc && !plan_resolve(&context, &task.workloads[0], NULL, &launches, &n, &f)) free(launches);
    plan_ops_release(&ops);
    free(kernels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Candidate c;
    Fault f;
    if (!candidate_parse((const char *)data, size, 0, &c, &f)) resolve(&c.plan);
    candidate_release(&c);
    if (!candidate_parse((const char *)data, size, 1, &c, &f)) resolve(&c.plan);
    candidate_release(&c);
    return 0;
}

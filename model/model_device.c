/* Only the table of the chosen device is opened. */
#include "model/model_device.h"

#include <string.h>

#include "gpu/gpus.h"
#include "model/cpu/blas.h"
#include "model/cpu/ops_cpu.h"
#include "model/cuda/ops_cuda.h"

int model_device(const char *name, const Ops **out, Error *err)
{
    Gpu gpu;
    int n = 0;
    if (!strncmp(name, "cuda:", 5)) return ops_cuda(name, out, err);
    if (strcmp(name, "cpu") && strcmp(name, "auto"))
        return error_set(err, ERROR_UNKNOWN_NAME, "a device is cpu, cuda:N or auto, found \"%s\"",
                         name);
    if (!strcmp(name, "auto") && (n = gpus_list(&gpu, 1, err)) < 0) return -1;
    if (n) return ops_cuda("cuda:0", out, err);
    *out = ops_cpu();
    return blas_open(err);
}

/* The table of one GPU. */
#include "model/cuda/ops_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpus.h"
#include "model/cuda/collectives.h"
#include "model/cuda/cuda_state.h"
#include "model/cuda/table.h"

enum { BF16_BYTES = 2, ALIGN_BYTES = 256 };

static char name[16];

static const Ops table = {
    .name = name,
    .num = BF16_BYTES,
    .align = ALIGN_BYTES / BF16_BYTES,
#define X(member) .member = cuda_##member,
    CUDA_OPS(X)
#undef X
        .collectives = &cuda_collectives,
};

static int ordinal_of(const char *text, int *ordinal, Error *err)
{
    char *end;
    long n = strncmp(text, "cuda:", 5) ? -1 : strtol(text + 5, &end, 10);
    if (n < 0 || n >= GPUS_MAX || *end || end == text + 5 || text[5] == '+' || text[5] == ' ')
        return error_set(err, ERROR_UNKNOWN_NAME,
                         "expected \"cuda:N\", N from 0 to %d, found \"%s\"", GPUS_MAX - 1, text);
    *ordinal = (int)n;
    return 0;
}

int ops_cuda(const char *device, const Ops **out, Error *err)
{
    int ordinal = 0;
    if (ordinal_of(device, &ordinal, err)) return -1;
    if (*name && strcmp(name, device))
        return error_set(err, ERROR_INVALID, "this process computes on %s; it cannot on %s too",
                         name, device);
    if (!*name) {
        if (cuda_open(ordinal, err)) return -1;
        snprintf(name, sizeof name, "%s", device);
    }
    *out = &table;
    return 0;
}

/* The table of one GPU. */
#include "model/cuda/ops_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpus.h"
#include "gpu/nccl.h"
#include "model/core/ops.h"
#include "model/cuda/cuda_state.h"
#include "model/cuda/table.h"

/* The collective operations of several ranks (model/core/ranks.h), by NCCL, on the GPU that ops_cuda
 * opened. They run in the second stream of cuda_state.h. Collectives over NCCL, in the second stream.
 * The first failure is kept, and later calls do nothing. */

extern const Collectives cuda_collectives;

static struct {
    Nccl *nccl;
    size_t rank, n;
} comm;

_Static_assert(sizeof(NcclId) == COLLECTIVE_ID_BYTES, "an id of NCCL has another size");

static int new_id(void *id, Error *err)
{
    NcclId made;
    if (nccl_new_id(&made, err)) return -1;
    memcpy(id, &made, sizeof made);
    return 0;
}

static int join(const void *id, int rank, int n, Error *err)
{
    NcclId copy;
    memcpy(&copy, id, sizeof copy);
    comm.rank = (size_t)rank;
    comm.n = (size_t)n;
    return cuda_second_open(err) || nccl_open(&copy, rank, n, &comm.nccl, err) ? -1 : 0;
}

static void leave(void)
{
    cuda_wait();
    nccl_close(comm.nccl);
    cuda_second_close();
    comm.nccl = NULL;
}

/* `s` is the stream in `call`. */
#define COLLECTIVE(call)                        \
    do {                                        \
        Error err_;                             \
        CuStream s = cuda_second_stream();      \
        if (s && (call)) cuda_fail_with(&err_); \
    } while (0)

static void all_reduce(float *x, size_t n)
{
    COLLECTIVE(nccl_all_reduce(comm.nccl, x, n, s, &err_));
    cuda_settle();
}

static void clear(CuStream s, float *x, size_t n)
{
    if (n)
        CUDA_TRY(cuda_state()->cu->set_bytes((CuPtr)(uintptr_t)x, 0, n * sizeof *x, s),
                 "memory of the GPU is not set to zero");
}

static void reduce_scatter(float *x, size_t each)
{
    Error err;
    CuStream s = cuda_second_stream();
    size_t mine = comm.rank * each;
    if (!s) return;
    if (nccl_reduce_scatter(comm.nccl, x, each, s, &err)) cuda_fail_with(&err);
    clear(s, x, mine);
    clear(s, x + mine + each, (comm.n - 1) * each - mine);
}

static void all_gather(void *p, size_t bytes)
{
    COLLECTIVE(nccl_all_gather(comm.nccl, p, bytes, s, &err_));
}

const Collectives cuda_collectives = {.new_id = new_id,
                                      .join = join,
                                      .leave = leave,
                                      .all_reduce = all_reduce,
                                      .reduce_scatter = reduce_scatter,
                                      .all_gather = all_gather,
                                      .settle = cuda_settle};

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

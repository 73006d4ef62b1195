/* NCCL's functions through dlopen. */
#include "gpu/nccl.h"

#include <stdlib.h>

#include "base/memory.h"
#include "gpu/open.h"

/* Constants of NCCL's ABI. */
enum { UINT8 = 1, FLOAT32 = 7, SUM = 0 };

struct Nccl {
    void *comm;
    int rank;
};

/* clang-format off */
#define NCCL_FUNCTIONS(X, TEXT)                                                              \
    X(ncclGetUniqueId, get_id, (NcclId *))                                                   \
    X(ncclCommInitRank, init, (void **comm, int n, NcclId id, int rank))                     \
    X(ncclCommDestroy, destroy, (void *comm))                                                \
    X(ncclAllReduce, all_reduce,                                                             \
      (const void *from, void *to, size_t n, int type, int op, void *comm, CuStream stream)) \
    X(ncclReduceScatter, reduce_scatter,                                                     \
      (const void *from, void *to, size_t n, int type, int op, void *comm, CuStream stream)) \
    X(ncclAllGather, all_gather,                                                             \
      (const void *from, void *to, size_t n, int type, void *comm, CuStream stream))         \
    TEXT(ncclGetErrorString, status, (int))                                                  \
    TEXT(ncclGetLastError, last_error, (void *comm))
/* clang-format on */

static struct {
    NCCL_FUNCTIONS(OPEN_INT, OPEN_TEXT)
    int loaded;
} nccl;

static int load(Error *err)
{
    static const char *const files[] = {"libnccl.so.2", NULL};
    static const char *const names[] = {NCCL_FUNCTIONS(OPEN_NAME, OPEN_NAME)};
    if (nccl.loaded) return 0;
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    if (open_library(files, OPEN_FUNCTIONS(names, &nccl), err)) return -1;
    nccl.loaded = 1;
    return 0;
}

static int check(int status, void *comm, const char *what, Error *err)
{
    if (!status) return 0;
    const char *more = nccl.last_error(comm);
    return error_set(err, ERROR_DEVICE, "%s: %s (%d)%s%s", what, nccl.status(status), status,
                     more && *more ? ": " : "", more ? more : "");
}

int nccl_new_id(NcclId *out, Error *err)
{
    return load(err) ? -1 : check(nccl.get_id(out), NULL, "NCCL makes no id", err);
}

int nccl_open(const NcclId *id, int rank, int n, Nccl **out, Error *err)
{
    void *comm = NULL;
    if (load(err) ||
        check(nccl.init(&comm, n, *id, rank), NULL, "NCCL does not bring the GPUs together", err))
        return -1;
    *out = memory_alloc(sizeof **out);
    **out = (Nccl){comm, rank};
    return 0;
}

void nccl_close(Nccl *c)
{
    if (!c) return;
    nccl.destroy(c->comm);
    free(c);
}

int nccl_all_reduce(Nccl *c, float *x, size_t n, CuStream stream, Error *err)
{
    return check(nccl.all_reduce(x, x, n, FLOAT32, SUM, c->comm, stream), c->comm,
                 "NCCL's all-reduce", err);
}

int nccl_reduce_scatter(Nccl *c, float *x, size_t each, CuStream stream, Error *err)
{
    return check(
        nccl.reduce_scatter(x, x + (size_t)c->rank * each, each, FLOAT32, SUM, c->comm, stream),
        c->comm, "NCCL's reduce-scatter", err);
}

int nccl_all_gather(Nccl *c, void *p, size_t bytes, CuStream stream, Error *err)
{
    return check(
        nccl.all_gather((char *)p + (size_t)c->rank * bytes, p, bytes, UINT8, c->comm, stream),
        c->comm, "NCCL's all-gather", err);
}

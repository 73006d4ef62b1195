/* The workspace of library calls: one allocation, which only grows. */
#include "eval/cuda/library/library_workspace.h"

static struct {
    CuPtr p;
    size_t bytes;
} workspace;

int library_workspace(size_t bytes, void **p, Error *err)
{
    const CudaDriver *cu = cuda_driver(err);
    if (!cu) return -1;
    if (bytes > LIBRARY_MAX_WORKSPACE)
        return error_set(err, ERROR_LIMIT, "a workspace of %zu MiB; at most %zu MiB are given",
                         bytes >> 20, LIBRARY_MAX_WORKSPACE >> 20);
    if (bytes > workspace.bytes) {
        /* Calls enqueued earlier may still use the old one: freeing it waits for them. */
        if (workspace.p) cu->memory_free(workspace.p);
        workspace.p = 0;
        workspace.bytes = 0;
        bytes = (bytes + 3) / 4 * 4; /* whole words */
        if (cuda_check(cu->memory_alloc(&workspace.p, bytes), "no memory for a library's workspace",
                       err))
            return -1;
        workspace.bytes = bytes;
    }
    *p = (void *)(uintptr_t)workspace.p;
    return 0;
}

CuResult library_workspace_reset(CuStream stream)
{
    Error ignored; /* with a workspace there is a driver */
    return workspace.p
               ? cuda_driver(&ignored)->set_words(workspace.p, 0, workspace.bytes / 4, stream)
               : CU_OK;
}

/* Virtual memory management of the CUDA driver. */
#include "eval/cuda/memory/space.h"

#include <string.h>
#include <unistd.h>

/* Far from the addresses that a loader, a heap or the driver uses. */
static const CuPtr hints[] = {0x200000000000, 0x300000000000, 0x180000000000,
                              0x280000000000, 0x100000000000, 0x400000000000};
enum { HINTS = sizeof hints / sizeof *hints };

static CuMemProp properties(CuDevice device)
{
    CuMemProp p;
    memset(&p, 0, sizeof p);
    p.type = CU_ALLOCATION_PINNED;
    p.requested_handle_types = CU_HANDLE_FD;
    p.location = (CuMemLocation){CU_LOCATION_DEVICE, device};
    return p;
}

int space_reserve_at(const CudaDriver *cu, CuPtr base, uint64_t bytes, Error *err)
{
    CuPtr got = 0;
    if (cuda_check(cu->vm_reserve(&got, bytes, 0, base, 0), "a range of addresses for the buffers",
                   err))
        return -1;
    if (got == base) return 0;
    cu->vm_unreserve(got, bytes);
    return error_set(err, ERROR_DEVICE, "the buffers' range of addresses at 0x%llx is taken", base);
}

static int reserve_from(Space *s, int hint, Error *err)
{
    for (s->hint = hint; s->hint < HINTS; s->hint++)
        if (!space_reserve_at(s->cu, hints[s->hint], s->reserved, err)) {
            s->base = hints[s->hint];
            return 0;
        }
    s->base = 0;
    return error_prefix(err, "no range of %llu GiB of addresses is free in both processes",
                        (unsigned long long)(s->reserved >> 30));
}

int space_open(Space *s, const CudaDriver *cu, CuDevice device, uint64_t bytes, Error *err)
{
    *s = (Space){.cu = cu, .device = device, .reserved = bytes};
    size_t page = 0;
    CuMemProp p = properties(device);
    if (cuda_check(cu->vm_granularity(&page, &p, 0), "the size of a page of the device", err))
        return -1;
    if (!page || ARENA_PAGE % page)
        return error_set(err, ERROR_DEVICE, "the device has pages of %zu bytes; %d is no multiple",
                         page, ARENA_PAGE);
    return reserve_from(s, 0, err);
}

int space_move(Space *s, Error *err)
{
    if (s->n)
        return error_set(err, ERROR_DEVICE,
                         "the runner cannot have the buffers' range of addresses, and buffers "
                         "are there already");
    if (s->base) s->cu->vm_unreserve(s->base, s->reserved);
    s->base = 0;
    return reserve_from(s, s->hint + 1, err);
}

static void drop_spare(Space *s)
{
    if (s->spare_bytes) s->cu->vm_release(s->spare);
    s->spare_bytes = 0;
}

void space_close(Space *s)
{
    if (!s->cu || !s->base) return;
    drop_spare(s);
    s->cu->vm_unreserve(s->base, s->reserved);
    s->base = 0;
}

static int map(const CudaDriver *cu, CuDevice device, CuPtr p, uint64_t bytes, CuMemHandle handle,
               Error *err)
{
    CuMemAccess access = {{CU_LOCATION_DEVICE, device}, CU_ACCESS_READ_WRITE};
    if (cuda_check(cu->vm_map(p, bytes, 0, handle, 0), "memory cannot be mapped", err)) return -1;
    if (!cuda_check(cu->vm_access(p, bytes, &access, 1), "memory cannot be made accessible", err))
        return 0;
    cu->vm_unmap(p, bytes);
    return -1;
}

/* Memory of an extent: the spare one of this size, or new memory. Extents and the spare one together
 * take no more than the range has. */
static CuResult take_memory(Space *s, uint64_t at, uint64_t bytes, CuMemHandle *out)
{
    CuMemProp p = properties(s->device);
    if (bytes == s->spare_bytes) {
        *out = s->spare;
        s->spare_bytes = 0;
        return CU_OK;
    }
    if (s->spare_bytes > s->reserved - at - bytes) drop_spare(s);
    CuResult r = s->cu->vm_create(out, bytes, &p, 0);
    if (r == CU_OK || !s->spare_bytes) return r;
    drop_spare(s);
    return s->cu->vm_create(out, bytes, &p, 0);
}

int space_map(Space *s, uint64_t at, uint64_t bytes, Error *err)
{
    CuMemHandle handle = 0;
    if (s->n == ARENA_MAX_EXTENTS || at > s->reserved || bytes > s->reserved - at)
        return error_set(err, ERROR_LIMIT, "the buffers' range of addresses is used up");
    CuResult r = take_memory(s, at, bytes, &handle);
    if (r != CU_OK) {
        cuda_check(r, "the GPU", err);
        return error_prefix(err, "no %llu MiB of memory for buffers",
                            (unsigned long long)(bytes >> 20));
    }
    if (map(s->cu, s->device, s->base + at, bytes, handle, err)) {
        s->cu->vm_release(handle);
        return -1;
    }
    s->handles[s->n++] = handle;
    return 0;
}

void space_unmap(Space *s, uint64_t at, uint64_t bytes, int keep)
{
    if (!s->n) return;
    s->cu->vm_unmap(s->base + at, bytes);
    CuMemHandle handle = s->handles[--s->n];
    if (!keep) {
        s->cu->vm_release(handle);
        return;
    }
    drop_spare(s);
    s->spare = handle;
    s->spare_bytes = bytes;
}

int space_export(const Space *s, int extent, int *fd, Error *err)
{
    *fd = -1;
    return cuda_check(s->cu->vm_export(fd, s->handles[extent], CU_HANDLE_FD, 0),
                      "memory cannot be shared with the runner", err);
}

int space_import(const CudaDriver *cu, CuDevice device, CuPtr p, uint64_t bytes, int fd, Error *err)
{
    CuMemHandle handle = 0;
    void *as_handle = (void *)(intptr_t)fd;
    if (cuda_check(cu->vm_import(&handle, as_handle, CU_HANDLE_FD),
                   "shared memory cannot be taken over", err))
        return -1;
    int rc = map(cu, device, p, bytes, handle, err);
    cu->vm_release(handle); /* the mapping keeps the memory */
    return rc;
}

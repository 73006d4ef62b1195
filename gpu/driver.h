/* The functions of the CUDA driver API (libcuda, opened at run time) that Quern calls, declared
 * here so that a build needs no CUDA header. Types and constants are the driver's ABI, CUDA 12.4
 * and later. */
#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef int CuResult;
typedef int CuDevice;
typedef struct CuContextOpaque *CuContext;
typedef struct CuModuleOpaque *CuModule;
typedef struct CuFunctionOpaque *CuFunction;
typedef struct CuStreamOpaque *CuStream;
typedef struct CuEventOpaque *CuEvent;
typedef struct CuGraphOpaque *CuGraph;
typedef struct CuGraphExecOpaque *CuGraphExec;
typedef unsigned long long CuPtr;       /* a device address */
typedef unsigned long long CuMemHandle; /* physical memory of cuMemCreate */

typedef struct {
    char bytes[16];
} CuUuid;

/* CUlaunchAttribute and CUlaunchConfig; the value is a union of 64 bytes. */
typedef struct {
    int id, unused;
    int value[16];
} CuLaunchAttribute;
typedef struct {
    unsigned grid[3], block[3], shared;
    CuStream stream;
    CuLaunchAttribute *attributes;
    unsigned n_attributes;
} CuLaunch;

/* CUmemLocation, CUmemAllocationProp, CUmemAccessDesc */
typedef struct {
    int type, id;
} CuMemLocation;
typedef struct {
    int type, requested_handle_types;
    CuMemLocation location;
    void *win32;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
} CuMemProp;
typedef struct {
    CuMemLocation location;
    int flags;
} CuMemAccess;

enum {
    CU_OK = 0,
    CU_INVALID_VALUE = 1,
    CU_NOT_SUPPORTED = 801,
    CU_NOT_READY = 600,
    CU_OUT_OF_MEMORY = 2,
    CU_INVALID_IMAGE = 200,
    CU_NO_BINARY = 209,
    CU_UNSUPPORTED_PTX = 222,
    CU_NOT_FOUND = 500,
    CU_ILLEGAL_ADDRESS = 700,
    CU_LAUNCH_RESOURCES = 701,
    CU_LAUNCH_TIMEOUT = 702,
    CU_ASSERT = 710,
    CU_STACK_ERROR = 714,
    CU_ILLEGAL_INSTRUCTION = 715,
    CU_MISALIGNED = 716,
    CU_INVALID_SPACE = 717,
    CU_INVALID_PC = 718,
    CU_LAUNCH_FAILED = 719,
    CU_LOCATION_DEVICE = 1,
    CU_ALLOCATION_PINNED = 1,
    CU_HANDLE_FD = 1,
    CU_ACCESS_READ_WRITE = 3,
    CU_LIMIT_STACK = 0,
    CU_LIMIT_PRINTF = 1,
    CU_LIMIT_HEAP = 2,
    CU_LIMIT_PERSISTING_L2 = 6,
    CU_ATTRIBUTE_MAX_THREADS = 1,
    CU_ATTRIBUTE_CLOCK_KHZ = 13,
    CU_ATTRIBUTE_SMS = 16,
    CU_ATTRIBUTE_MEMORY_CLOCK_KHZ = 36,
    CU_ATTRIBUTE_BUS_BITS = 37,
    CU_ATTRIBUTE_L2_BYTES = 38,
    CU_ATTRIBUTE_THREADS_PER_SM = 39,
    CU_ATTRIBUTE_MAJOR = 75,
    CU_ATTRIBUTE_MINOR = 76,
    CU_ATTRIBUTE_SHARED_PER_SM = 81,
    CU_ATTRIBUTE_SHARED_OPTIN = 97,
    CU_FUNCTION_MAX_THREADS = 0,
    CU_FUNCTION_SHARED = 1,
    CU_FUNCTION_CONST = 2,
    CU_FUNCTION_LOCAL = 3,
    CU_FUNCTION_REGISTERS = 4,
    CU_FUNCTION_MAX_DYNAMIC_SHARED = 8,
    CU_STREAM_NON_BLOCKING = 1,
    CU_LAUNCH_COOPERATIVE = 2,
    CU_LAUNCH_PROGRAMMATIC = 6,
    CU_CAPTURE_THREAD_LOCAL = 1,
    CU_EVENT_NO_TIMING = 2,
    CU_INTERLEAVE_NONE = 0,
    CU_SWIZZLE_NONE = 0,
    CU_SWIZZLE_32 = 1,
    CU_SWIZZLE_64 = 2,
    CU_SWIZZLE_128 = 3,
    CU_PROMOTION_128 = 2,
    CU_FILL_ZEROS = 0
};

/* One line per function: its exported name with the version of its declaration, its name in the
 * table, and its arguments. */
/* clang-format off */
#define CUDA_DRIVER_FUNCTIONS(X)                                                                          \
    X(cuInit, init, (unsigned flags))                                                                     \
    X(cuDriverGetVersion, driver_version, (int *version))                                                 \
    X(cuGetErrorName, error_name, (CuResult r, const char **text))                                        \
    X(cuGetErrorString, error_string, (CuResult r, const char **text))                                    \
    X(cuDeviceGetCount, device_count, (int *count))                                                       \
    X(cuDeviceGet, device_get, (CuDevice *device, int ordinal))                                           \
    X(cuDeviceGetName, device_name, (char *name, int len, CuDevice device))                               \
    X(cuDeviceGetUuid_v2, device_uuid, (CuUuid *uuid, CuDevice device))                                   \
    X(cuDeviceGetPCIBusId, device_pci, (char *id, int len, CuDevice device))                              \
    X(cuDeviceGetAttribute, device_attribute, (int *value, int attribute, CuDevice device))               \
    X(cuDeviceTotalMem_v2, device_memory, (size_t *bytes, CuDevice device))                               \
    X(cuCtxCreate_v2, context_create, (CuContext *context, unsigned flags, CuDevice device))              \
    X(cuDevicePrimaryCtxRetain, primary_retain, (CuContext *context, CuDevice device))                    \
    X(cuCtxDestroy_v2, context_destroy, (CuContext context))                                              \
    X(cuCtxSetCurrent, context_set, (CuContext context))                                                  \
    X(cuCtxSynchronize, context_synchronize, (void))                                                      \
    X(cuCtxSetLimit, context_set_limit, (int limit, size_t value))                                        \
    X(cuCtxResetPersistingL2Cache, reset_persisting, (void))                                              \
    X(cuMemGetInfo_v2, memory_info, (size_t *free_bytes, size_t *total))                                  \
    X(cuMemAlloc_v2, memory_alloc, (CuPtr *p, size_t bytes))                                              \
    X(cuMemFree_v2, memory_free, (CuPtr p))                                                               \
    X(cuMemHostAlloc, host_alloc, (void **p, size_t bytes, unsigned flags))                               \
    X(cuMemFreeHost, host_free, (void *p))                                                                \
    X(cuMemcpyHtoD_v2, copy_to_device, (CuPtr to, const void *from, size_t bytes))                        \
    X(cuMemcpyDtoH_v2, copy_to_host, (void *to, CuPtr from, size_t bytes))                                \
    X(cuMemcpyDtoDAsync_v2, copy_on_device, (CuPtr to, CuPtr from, size_t bytes, CuStream stream))        \
    X(cuMemcpyHtoDAsync_v2, copy_to_device_async,                                                         \
      (CuPtr to, const void *from, size_t bytes, CuStream stream))                                        \
    X(cuMemcpyDtoHAsync_v2, copy_to_host_async, (void *to, CuPtr from, size_t bytes, CuStream stream))    \
    X(cuMemsetD8Async, set_bytes, (CuPtr p, unsigned char value, size_t count, CuStream stream))          \
    X(cuMemsetD32Async, set_words, (CuPtr p, unsigned value, size_t count, CuStream stream))              \
    X(cuMemGetAllocationGranularity, vm_granularity, (size_t *bytes, const CuMemProp *prop, int option))  \
    X(cuMemCreate, vm_create,                                                                             \
      (CuMemHandle *handle, size_t bytes, const CuMemProp *prop, unsigned long long flags))               \
    X(cuMemRelease, vm_release, (CuMemHandle handle))                                                     \
    X(cuMemExportToShareableHandle, vm_export,                                                            \
      (void *fd, CuMemHandle handle, int type, unsigned long long flags))                                 \
    X(cuMemImportFromShareableHandle, vm_import, (CuMemHandle *handle, void *fd, int type))               \
    X(cuMemAddressReserve, vm_reserve,                                                                    \
      (CuPtr *p, size_t bytes, size_t alignment, CuPtr at, unsigned long long flags))                     \
    X(cuMemAddressFree, vm_unreserve, (CuPtr p, size_t bytes))                                            \
    X(cuMemMap, vm_map,                                                                                   \
      (CuPtr p, size_t bytes, size_t offset, CuMemHandle handle, unsigned long long flags))               \
    X(cuMemUnmap, vm_unmap, (CuPtr p, size_t bytes))                                                      \
    X(cuMemSetAccess, vm_access, (CuPtr p, size_t bytes, const CuMemAccess *access, size_t count))        \
    X(cuModuleLoadData, module_load, (CuModule *module, const void *image))                               \
    X(cuModuleUnload, module_unload, (CuModule module))                                                   \
    X(cuModuleGetFunction, module_function, (CuFunction *function, CuModule module, const char *name))    \
    X(cuFuncGetAttribute, function_attribute, (int *value, int attribute, CuFunction function))           \
    X(cuFuncSetAttribute, function_set, (CuFunction function, int attribute, int value))                  \
    X(cuFuncGetParamInfo, function_param,                                                                 \
      (CuFunction function, size_t index, size_t *offset, size_t *bytes))                                 \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, occupancy,                                             \
      (int *blocks, CuFunction function, int threads, size_t shared))                                     \
    X(cuLaunchKernel, launch,                                                                             \
      (CuFunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
       unsigned shared, CuStream stream, void **params, void **extra))                                    \
    X(cuLaunchKernelEx, launch_with,                                                                      \
      (const CuLaunch *launch, CuFunction function, void **params, void **extra))                         \
    X(cuTensorMapEncodeTiled, tensor_map,                                                                 \
      (void *map, int type, unsigned rank, void *base, const uint64_t *sizes, const uint64_t *strides,    \
       const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion, int fill)) \
    X(cuStreamCreate, stream_create, (CuStream *stream, unsigned flags))                                  \
    X(cuStreamCreateWithPriority, stream_create_first, (CuStream *stream, unsigned flags, int priority))  \
    X(cuStreamDestroy_v2, stream_destroy, (CuStream stream))                                              \
    X(cuStreamWaitEvent, stream_wait, (CuStream stream, CuEvent event, unsigned flags))                   \
    X(cuStreamSynchronize, stream_synchronize, (CuStream stream))                                         \
    X(cuStreamQuery, stream_query, (CuStream stream))                                                     \
    X(cuStreamIsCapturing, capture_status, (CuStream stream, int *status))                                \
    X(cuStreamBeginCapture_v2, capture_begin, (CuStream stream, int mode))                                \
    X(cuStreamEndCapture, capture_end, (CuStream stream, CuGraph *graph))                                 \
    X(cuGraphInstantiateWithFlags, graph_instantiate,                                                     \
      (CuGraphExec *exec, CuGraph graph, unsigned long long flags))                                       \
    X(cuGraphLaunch, graph_launch, (CuGraphExec exec, CuStream stream))                                   \
    X(cuGraphExecDestroy, graph_exec_destroy, (CuGraphExec exec))                                         \
    X(cuGraphDestroy, graph_destroy, (CuGraph graph))                                                     \
    X(cuEventCreate, event_create, (CuEvent *event, unsigned flags))                                      \
    X(cuEventDestroy_v2, event_destroy, (CuEvent event))                                                  \
    X(cuEventRecord, event_record, (CuEvent event, CuStream stream))                                      \
    X(cuEventQuery, event_query, (CuEvent event))                                                         \
    X(cuEventSynchronize, event_synchronize, (CuEvent event))                                             \
    X(cuEventElapsedTime, event_elapsed, (float *ms, CuEvent start, CuEvent end))
/* clang-format on */

typedef struct {
#define X(symbol, name, args) CuResult(*name) args;
    CUDA_DRIVER_FUNCTIONS(X)
#undef X
} CudaDriver;

/* The driver, opened and initialised once per process. NULL: there is no libcuda, the driver is too
 * old, or there is no GPU. The CUDA state of a process does not survive fork: call this after a
 * fork. */
const CudaDriver *cuda_driver(Error *err);

/* Returns 0 when r is CU_OK, else -1 with an error "WHAT: the driver's message (name, number)". */
int cuda_check(CuResult r, const char *what, Error *err);

#endif

/* NVML through dlopen. A value that NVML refuses to give stays 0. */
#include "eval/cuda/health/nvml.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/open.h"

/* NVML's ABI of version 11 and later. The names of functions end in the version of their
 * declaration here. */
typedef struct NvmlDeviceOpaque *NvmlDevice;
typedef struct NvmlEventSetOpaque *NvmlEventSet;

typedef struct {
    NvmlDevice device;
    unsigned long long type, data; /* data: the Xid's number */
    unsigned gpu_instance, compute_instance;
} NvmlEvent;

enum {
    NVML_OK = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_SENSOR_GPU = 0,
    NVML_UNCORRECTED = 1,
    NVML_VOLATILE = 0,
    NVML_EVENT_XID = 8,
    NVML_REASON_IDLE = 1,
    NVML_REASON_APPLICATION = 2,
    NVML_REASON_DISPLAY = 0x100
};

/* clang-format off */
#define NVML_FUNCTIONS(X)                                                                                 \
    X(nvmlInit_v2, init, (void))                                                                          \
    X(nvmlShutdown, shutdown, (void))                                                                     \
    X(nvmlDeviceGetHandleByUUID, by_uuid, (const char *uuid, NvmlDevice *out))                            \
    X(nvmlDeviceGetHandleByPciBusId_v2, by_pci, (const char *id, NvmlDevice *out))                        \
    X(nvmlDeviceGetClockInfo, clock, (NvmlDevice d, int type, unsigned *mhz))                             \
    X(nvmlDeviceGetTemperature, temperature, (NvmlDevice d, int sensor, unsigned *celsius))               \
    X(nvmlDeviceGetPowerUsage, power, (NvmlDevice d, unsigned *milliwatts))                               \
    X(nvmlDeviceGetCurrentClocksThrottleReasons, throttle, (NvmlDevice d, unsigned long long *reasons))   \
    X(nvmlDeviceGetTotalEccErrors, ecc, (NvmlDevice d, int kind, int counter, unsigned long long *count)) \
    X(nvmlEventSetCreate, events_create, (NvmlEventSet *out))                                             \
    X(nvmlEventSetFree, events_free, (NvmlEventSet set))                                                  \
    X(nvmlDeviceRegisterEvents, events_register,                                                          \
      (NvmlDevice d, unsigned long long types, NvmlEventSet set))                                         \
    X(nvmlEventSetWait_v2, events_wait, (NvmlEventSet set, NvmlEvent *out, unsigned timeout_ms))
/* clang-format on */

struct Nvml {
    NVML_FUNCTIONS(OPEN_INT)
    int started;         /* init was called with success */
    NvmlDevice device;   /* NULL: absent */
    NvmlEventSet events; /* NULL: Xid errors are not reported */
};

static void watch_xids(Nvml *n)
{
    if (n->events_create(&n->events) != NVML_OK) {
        n->events = NULL;
    } else if (n->events_register(n->device, NVML_EVENT_XID, n->events) != NVML_OK) {
        n->events_free(n->events);
        n->events = NULL;
    }
}

Nvml *nvml_open(const char *uuid, const char *pci)
{
    static const char *const files[] = {"libnvidia-ml.so.1", NULL}, *const names[] = {
                                                                        NVML_FUNCTIONS(OPEN_NAME)};
    Nvml *n = memory_alloc(sizeof *n);
    Error absent;
    if (open_library(files, OPEN_FUNCTIONS(names, n), &absent) || n->init() != NVML_OK) return n;
    n->started = 1;
    if ((!uuid || !*uuid || n->by_uuid(uuid, &n->device) != NVML_OK) &&
        (!pci || !*pci || n->by_pci(pci, &n->device) != NVML_OK)) {
        n->device = NULL;
        return n;
    }
    watch_xids(n);
    return n;
}

void nvml_close(Nvml *n)
{
    if (!n) return;
    if (n->events) n->events_free(n->events);
    if (n->started) n->shutdown();
    free(n);
}

void nvml_telemetry(Nvml *n, DeviceTelemetry *out)
{
    unsigned value;
    unsigned long long wide;
    *out = (DeviceTelemetry){0};
    if (!n->device) return;
    if (n->clock(n->device, NVML_CLOCK_SM, &value) == NVML_OK) out->sm_mhz = value;
    if (n->clock(n->device, NVML_CLOCK_MEMORY, &value) == NVML_OK) out->memory_mhz = value;
    if (n->temperature(n->device, NVML_SENSOR_GPU, &value) == NVML_OK) out->temperature = value;
    if (n->power(n->device, &value) == NVML_OK) out->power_watts = (value + 500) / 1000;
    if (n->throttle(n->device, &wide) == NVML_OK)
        out->throttle = wide & ~(unsigned long long)(NVML_REASON_IDLE | NVML_REASON_APPLICATION |
                                                     NVML_REASON_DISPLAY);
    if (n->ecc(n->device, NVML_UNCORRECTED, NVML_VOLATILE, &wide) == NVML_OK)
        out->ecc_errors = wide;
}

int nvml_xids(Nvml *n, unsigned *xids, int max)
{
    int count = 0;
    NvmlEvent e;
    if (!n->events) return -1;
    memset(&e, 0, sizeof e);
    while (count < max && n->events_wait(n->events, &e, 0) == NVML_OK)
        if (e.type == NVML_EVENT_XID) xids[count++] = (unsigned)e.data;
    return count;
}

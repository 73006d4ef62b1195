/* Hardware counters where the driver allows them, else the values of activity records. */
#include "eval/cuda/measure/cupti.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "eval/cuda/measure/cupti_api.h"
#include "eval/cuda/measure/cupti_range.h"

enum { RECORDS_BYTES = 1 << 20, MAX_KERNELS = 6 };

/* ---- activity records ---- */

/* CUPTI's callbacks take no argument of the caller, so the records go to a static variable. */
static struct {
    const Cupti *c;
    CuptiKernelRecord kernels[MAX_KERNELS]; /* of the first kernels */
    int n;
} recorded;

static void buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = aligned_alloc(8, RECORDS_BYTES);
    *size = *buffer ? RECORDS_BYTES : 0;
    *max_records = 0;
}

static void buffer_full(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    void *record = NULL;
    (void)context, (void)stream, (void)size;
    while (valid && recorded.c->activity_next(buffer, valid, &record) == CUPTI_OK) {
        CuptiKernelRecord k;
        memcpy(&k, record, sizeof k);
        if (k.kind == CUPTI_CONCURRENT_KERNEL && recorded.n < MAX_KERNELS)
            recorded.kernels[recorded.n++] = k;
    }
    free(buffer);
}

static void put(DeviceCounter *out, int *n, int kernel, const char *what, double value)
{
    if (*n == DEVICE_MAX_COUNTERS) return;
    snprintf(out[*n].name, sizeof out[*n].name, "kernel%d_%s", kernel, what);
    out[(*n)++].value = value;
}

static int activity_counters(const Cupti *c, const CuptiWork *work, DeviceCounter *out, int *n,
                             Error *err)
{
    recorded.c = c;
    recorded.n = 0;
    if (cupti_check(c, c->activity_callbacks(buffer_requested, buffer_full),
                    "activity records have nowhere to go", err))
        return -1;
    if (work->prepare && work->prepare(work->arg, err)) return -1;
    if (cupti_check(c, c->activity_enable(CUPTI_CONCURRENT_KERNEL), "kernels are not recorded",
                    err))
        return -1;
    int rc = work->run(work->arg, err);
    int flushed = cupti_check(c, c->activity_flush(CUPTI_FLUSH_FORCED), "the records do not come",
                              rc ? NULL : err);
    c->activity_disable(CUPTI_CONCURRENT_KERNEL);
    if (rc || flushed) return -1;
    *n = 0;
    for (int i = 0; i < recorded.n; i++) {
        const CuptiKernelRecord *k = &recorded.kernels[i];
        put(out, n, i, "us", (double)(k->end - k->start) * 1e-3);
        put(out, n, i, "blocks", (double)k->grid[0] * k->grid[1] * k->grid[2]);
        put(out, n, i, "threads_a_block", (double)k->block[0] * k->block[1] * k->block[2]);
        put(out, n, i, "registers", k->registers);
        put(out, n, i, "shared_bytes", (double)k->static_shared + k->dynamic_shared);
        put(out, n, i, "local_bytes_a_thread", k->local_per_thread);
    }
    return recorded.n ? 0 : error_set(err, ERROR_DEVICE, "CUPTI recorded no kernel");
}

int cupti_counters(const CuptiWork *work, DeviceCounter *out, int *n, Error *err)
{
    Error why;
    *n = 0;
    const Cupti *c = cupti_open(err);
    if (!c) return -1;
    if (!cupti_range_counters(c, work, out, n, &why)) return 0;
    *n = 0;
    if (!activity_counters(c, work, out, n, err)) {
        log_info("no hardware counters, each kernel's record instead: %s", why.text);
        return 0;
    }
    *n = 0;
    return error_prefix(err, "%s; without counters", why.text);
}

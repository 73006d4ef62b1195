/* CUPTI, opened at run time: hardware counters where the driver allows them, else what activity
 * records tell. */
#include "eval/cuda/measure/cupti.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "eval/cuda/measure/cupti_api.h"

enum { RECORDS_BYTES = 1 << 20, MAX_KERNELS = 6 };

int cupti_check(const Cupti *c, int result, const char *what, Error *err)
{
    const char *text = NULL;
    if (result == CUPTI_OK) return 0;
    if (c->result_string(result, &text) || !text) text = "unknown error";
    return error_set(err, ERROR_DEVICE, "%s: %s (CUPTI %d)%s", what, text, result,
                     result == CUPTI_NO_PRIVILEGE || result == CUPTI_NO_PRIVILEGE_VIRTUAL
                         ? ": the driver lets only root count (its option "
                           "NVreg_RestrictProfilingToAdminUsers=0 lets everybody)"
                         : "");
}

static void *open_library(Error *err)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/",
                                          "/usr/local/cuda/extras/CUPTI/lib64/", "/opt/cuda/lib64/",
                                          "/opt/cuda/extras/CUPTI/lib64/"};
    const char *home = getenv("CUDA_HOME");
    char path[4096];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library;
        snprintf(path, sizeof path, "%s/lib64/%s", home ? home : "", names[i]);
        if (home && *home && (library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) return library;
        for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
            snprintf(path, sizeof path, "%s%s", folders[k], names[i]);
            if ((library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) return library;
        }
    }
    error_set(err, ERROR_DEVICE,
              "no CUPTI, which counts: libcupti.so is not on the loader's path, in "
              "$CUDA_HOME/lib64 or in /usr/local/cuda");
    return NULL;
}

static const Cupti *find_cupti(Error *err)
{
    static Cupti table;
    static int ready;
    union {
        void *object;
        void (*function)(void);
    } symbol;
    if (ready) return &table;
    void *library = open_library(err);
    if (!library) return NULL;
#define X(exported, name, args)                                                               \
    symbol.object = dlsym(library, #exported);                                                \
    if (!symbol.object) {                                                                     \
        dlclose(library);                                                                     \
        error_set(err, ERROR_DEVICE, "CUPTI has no %s; that of CUDA 12.6 or later is needed", \
                  #exported);                                                                 \
        return NULL;                                                                          \
    }                                                                                         \
    memcpy(&table.name, &symbol, sizeof table.name);
    CUPTI_FUNCTIONS(X)
#undef X
    ready = 1;
    return &table;
}

/* ---- activity records: CUPTI's callbacks have no argument of ours ---- */

static struct {
    const Cupti *c;
    CuptiKernelRecord kernels[MAX_KERNELS]; /* the first ones */
    int n;
} seen;

static void buffer_wanted(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = aligned_alloc(8, RECORDS_BYTES);
    *size = *buffer ? RECORDS_BYTES : 0;
    *max_records = 0;
}

static void buffer_full(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    void *record = NULL;
    (void)context, (void)stream, (void)size;
    while (valid && seen.c->activity_next(buffer, valid, &record) == CUPTI_OK) {
        CuptiKernelRecord k;
        memcpy(&k, record, sizeof k);
        if (k.kind == CUPTI_CONCURRENT_KERNEL && seen.n < MAX_KERNELS) seen.kernels[seen.n++] = k;
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
    seen.c = c;
    seen.n = 0;
    if (cupti_check(c, c->activity_callbacks(buffer_wanted, buffer_full),
                    "activity records have nowhere to go", err))
        return -1;
    if (work->prepare && work->prepare(work->of, err)) return -1;
    if (cupti_check(c, c->activity_enable(CUPTI_CONCURRENT_KERNEL), "kernels are not recorded",
                    err))
        return -1;
    int rc = work->run(work->of, err);
    int flushed = cupti_check(c, c->activity_flush(CUPTI_FLUSH_FORCED), "the records do not come",
                              rc ? NULL : err);
    c->activity_disable(CUPTI_CONCURRENT_KERNEL);
    if (rc || flushed) return -1;
    *n = 0;
    for (int i = 0; i < seen.n; i++) {
        const CuptiKernelRecord *k = &seen.kernels[i];
        put(out, n, i, "us", (double)(k->end - k->start) * 1e-3);
        put(out, n, i, "blocks", (double)k->grid[0] * k->grid[1] * k->grid[2]);
        put(out, n, i, "threads_a_block", (double)k->block[0] * k->block[1] * k->block[2]);
        put(out, n, i, "registers", k->registers);
        put(out, n, i, "shared_bytes", (double)k->static_shared + k->dynamic_shared);
        put(out, n, i, "local_bytes_a_thread", k->local_per_thread);
    }
    return seen.n ? 0 : error_set(err, ERROR_DEVICE, "CUPTI recorded no kernel");
}

int cupti_counters(const CuptiWork *work, DeviceCounter *out, int *n, Error *err)
{
    Error why;
    *n = 0;
    const Cupti *c = find_cupti(err);
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

/* The harness's context: contents, comparison, digests and guard zones. A result is written by a
 * kernel into the block of results on the device and copied to its pinned copy on the host. */
#include "eval/cuda/context/trusted.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "tasks/task.h"

/* Offsets in the block of results, which exists on the device and in pinned memory. */
enum {
    AT_ZONES = 0,
    AT_BAD = 160 << 10,
    AT_RESULT = 320 << 10,
    AT_INITIAL = 321 << 10,
    RESULTS_BYTES = 322 << 10
};
/* A slot holds one result. */
enum { SLOT_BYTES = 64, SLOTS = (AT_INITIAL - AT_RESULT) / SLOT_BYTES };
enum { THREADS = 256, BLOCKS_AN_SM = 8, ZONE_BLOCKS = 264, ALL_ZONES_BLOCKS = 16 << 10 };
enum { STAGE_BYTES = 4 << 20, STAGE_SHARES = 16, STAGE_WAIT_S = 60 };

_Static_assert(sizeof(HarnessDifference) <= SLOT_BYTES, "a result fits its slot");
_Static_assert(TRUSTED_MAX_ZONES * sizeof(HarnessZone) <= AT_BAD, "the zones fit their place");
_Static_assert(TRUSTED_MAX_ZONES * sizeof(HarnessZoneBad) <= AT_RESULT - AT_BAD,
               "what is found in zones fits its place");

/* ---- open and close ---- */

int trusted_open(Trusted *t, const CudaDriver *cu, int ordinal, Error *err)
{
    size_t free_bytes = 0;
    int threads = 0;
    void *host = NULL;
    memset(t, 0, sizeof *t);
    if (executor_open(&t->executor, cu, ordinal, err) ||
        cuda_check(cu->device_attribute(&t->sms, CU_ATTRIBUTE_SMS, t->executor.device),
                   "the device's attributes", err) ||
        cuda_check(cu->device_attribute(&threads, CU_ATTRIBUTE_THREADS_PER_SM, t->executor.device),
                   "the device's attributes", err) ||
        cuda_check(cu->memory_info(&free_bytes, &t->total_bytes), "the device's free memory",
                   err) ||
        cuda_check(cu->memory_alloc(&t->results, RESULTS_BYTES), "the device's memory", err) ||
        cuda_check(cu->host_alloc(&host, RESULTS_BYTES, 0), "pinned memory", err))
        return -1;
    t->host = host;
    memory_shares(free_bytes, (uint64_t)t->sms * (uint64_t)threads, &t->shares);
    return 0;
}

int trusted_load(Trusted *t, const void *cubin, Error *err)
{
    uint32_t module, kernel;
    KernelInfo info;
    if (cuda_check(executor_load(&t->executor, cubin, &module),
                   "the harness's kernels cannot be loaded", err))
        return -1;
    for (int i = 0; i < HARNESS_KERNELS; i++) {
        if (executor_kernel(&t->executor, module, harness_names[i], &kernel, &info, err)) return -1;
        t->kernels[i] = t->executor.kernels[kernel].function;
    }
    return 0;
}

void trusted_close(Trusted *t)
{
    const CudaDriver *cu = t->executor.cu;
    if (!t->executor.context) return;
    trusted_enter(t);
    if (t->results) cu->memory_free(t->results);
    if (t->host) cu->host_free(t->host);
    if (t->stage) cu->host_free(t->stage);
    for (int i = 0; i < TRUSTED_STAGES; i++)
        if (t->copied[i]) cu->event_destroy(t->copied[i]);
    executor_close(&t->executor);
}

void trusted_enter(Trusted *t)
{
    t->executor.cu->context_set(t->executor.context);
}

/* ---- enqueuing and waiting ---- */

static int queued(Trusted *t, CuResult r, const char *what, Error *err)
{
    t->busy = 1;
    return cuda_check(r, what, err);
}

int trusted_settle(Trusted *t, Error *err)
{
    if (!t->busy) return 0;
    t->busy = 0;
    return cuda_check(executor_wait(&t->executor), "the harness's own work on the GPU", err);
}

static int launch(Trusted *t, HarnessKernel k, unsigned gx, unsigned gy, void **params, Error *err)
{
    CuResult r = t->executor.cu->launch(t->kernels[k], gx, gy, 1, THREADS, 1, 1, 0,
                                        t->executor.stream, params, NULL);
    return queued(t, r, harness_names[k], err);
}

/* One thread for each item, at most as many blocks as fill the device. */
static unsigned blocks_for(const Trusted *t, size_t items)
{
    size_t limit = (size_t)t->sms * BLOCKS_AN_SM, needed = (items + THREADS - 1) / THREADS;
    return (unsigned)(needed < 1 ? 1 : needed < limit ? needed : limit);
}

/* Set the result on the device to its initial value. */
static int begin_result(Trusted *t, const void *initial, size_t bytes, Error *err)
{
    memcpy(t->host + AT_INITIAL, initial, bytes);
    return queued(t,
                  t->executor.cu->copy_to_device_async(t->results + AT_RESULT, t->host + AT_INITIAL,
                                                       bytes, t->executor.stream),
                  "a small copy to the device", err);
}

static int end_result(Trusted *t, size_t at, size_t bytes, Error *err)
{
    if (queued(t,
               t->executor.cu->copy_to_host_async(t->host + at, t->results + at, bytes,
                                                  t->executor.stream),
               "a small copy from the device", err))
        return -1;
    return trusted_settle(t, err);
}

/* ---- copies ---- */

static int make_stage(Trusted *t, Error *err)
{
    void *stage = t->stage;
    if (stage) return 0;
    for (int i = 0; i < TRUSTED_STAGES; i++)
        if (!t->copied[i] && cuda_check(t->executor.cu->event_create(&t->copied[i], 0),
                                        "an event cannot be made", err))
            return -1;
    if (cuda_check(t->executor.cu->host_alloc(&stage, (size_t)STAGE_BYTES * TRUSTED_STAGES, 0),
                   "pinned memory", err))
        return -1;
    t->stage = stage;
    return 0;
}

static int wait_copied(Trusted *t, int part, Error *err)
{
    double limit = clock_seconds() + STAGE_WAIT_S;
    CuResult r;
    while ((r = t->executor.cu->event_query(t->copied[part])) == CU_NOT_READY)
        if (clock_seconds() > limit)
            return error_set(err, ERROR_DEVICE, "a copy to the device did not end within %d s",
                             STAGE_WAIT_S);
    return cuda_check(r, "a copy to the device", err);
}

/* Copy through pinned memory, which several cores fill: one part is filled while the other is
 * copied to the device. The driver copies memory that is not pinned with one core. */
static int write_staged(Trusted *t, CuPtr p, const unsigned char *src, size_t bytes, Error *err)
{
    int part = 0;
    if (make_stage(t, err)) return -1;
    for (size_t at = 0, n; at < bytes; at += n, part = (part + 1) % TRUSTED_STAGES) {
        unsigned char *stage = t->stage + (size_t)STAGE_BYTES * (size_t)part;
        n = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
        if (at >= (size_t)STAGE_BYTES * TRUSTED_STAGES && wait_copied(t, part, err)) return -1;
#pragma omp parallel for
        for (size_t i = 0; i < STAGE_SHARES; i++) {
            size_t from = n * i / STAGE_SHARES, end = n * (i + 1) / STAGE_SHARES;
            memcpy(stage + from, src + at + from, end - from);
        }
        if (queued(t, t->executor.cu->copy_to_device_async(p + at, stage, n, t->executor.stream),
                   "a copy to the device", err) ||
            queued(t, t->executor.cu->event_record(t->copied[part], t->executor.stream),
                   "a copy to the device", err))
            return -1;
    }
    return trusted_settle(t, err);
}

int trusted_write(Trusted *t, CuPtr p, const void *src, size_t bytes, Error *err)
{
    if (!bytes) return 0;
    if (bytes > STAGE_BYTES) return write_staged(t, p, src, bytes, err);
    return queued(t, t->executor.cu->copy_to_device_async(p, src, bytes, t->executor.stream),
                  "a copy to the device", err);
}

int trusted_read(Trusted *t, CuPtr p, void *dst, size_t bytes, Error *err)
{
    if (!bytes) return 0;
    if (queued(t, t->executor.cu->copy_to_host_async(dst, p, bytes, t->executor.stream),
               "a copy from the device", err))
        return -1;
    return trusted_settle(t, err);
}

int trusted_poison(Trusted *t, CuPtr p, size_t bytes, Error *err)
{
    CuPtr words = (p + 3) & ~(CuPtr)3, end = p + bytes;
    size_t head = words - p < bytes ? (size_t)(words - p) : bytes, body = bytes - head,
           tail = body % 4;
    const CudaDriver *cu = t->executor.cu;
    CuResult r = CU_OK;
    if (head) r = cu->set_bytes(p, 0xff, head, t->executor.stream);
    if (body >= 4 && r == CU_OK) r = cu->set_words(words, ~0u, body / 4, t->executor.stream);
    if (tail && r == CU_OK) r = cu->set_bytes(end - tail, 0xff, tail, t->executor.stream);
    return queued(t, r, "poison", err);
}

/* ---- contents kept on the device ---- */

/* Initial values of results, which stay when nothing differs. */
static const unsigned long long none = ~0ull;
static const HarnessDifference equal = {.first = ~0ull, .first_unwritten = ~0ull, .worst = ~0ull};

static int golden_room(Trusted *t, size_t bytes, DeviceGolden **out, Error *err)
{
    CuPtr p = 0;
    if (bytes > t->shares.contents - t->golden_bytes)
        return error_set(err, ERROR_MEMORY,
                         "%zu MiB of inputs and expected outputs on the device, of at most %zu "
                         "MiB, leave no room for %zu MiB more",
                         t->golden_bytes >> 20, (size_t)t->shares.contents >> 20, bytes >> 20);
    if (cuda_check(t->executor.cu->memory_alloc(&p, bytes ? bytes : 1),
                   "memory for inputs and expected outputs", err))
        return -1;
    *out = memory_alloc(sizeof **out);
    **out = (DeviceGolden){p, bytes};
    t->golden_bytes += bytes;
    return 0;
}

int trusted_golden(Trusted *t, const void *src, size_t bytes, DeviceGolden **out, Error *err)
{
    if (golden_room(t, bytes, out, err)) return -1;
    if (!trusted_write(t, (*out)->p, src, bytes, err)) return 0;
    trusted_golden_free(t, *out);
    *out = NULL;
    return -1;
}

/* Whether the first numbers are those that the host has drawn, with one wait for all. */
static int begins_alike(Trusted *t, const DeviceDraw *x, CuPtr p, Error *err)
{
    float *got = memory_array(x->n_first + 1, sizeof *got);
    int rc = trusted_read(t, p, got, x->n_first * sizeof *got, err);
    int differs = !rc && memcmp(got, x->first, x->n_first * sizeof *got) != 0;
    free(got);
    return rc ? rc : differs;
}

/* The numbers that the drawing kernels read. The caller frees them. */
static unsigned long long *numbers_of(const TaskStreams *x, size_t *bytes)
{
    size_t n = 4 * ((x->n + TASK_STREAM - 1) / TASK_STREAM);
    HarnessNumbers m = harness_numbers(x);
    unsigned long long *all = memory_array(HARNESS_HEAD + n, sizeof *all);
    memcpy(all, &m, sizeof m);
    memcpy(all + HARNESS_HEAD, x->state, n * sizeof *all);
    *bytes = (HARNESS_HEAD + n) * sizeof *all;
    return all;
}

/* A block of one warp takes 32 streams, or a block of threads elements by their indices. */
static int draw(Trusted *t, const TaskStreams *x, CuPtr numbers, CuPtr out, Error *err)
{
    void *params[] = {&numbers, &out};
    const size_t warp = 32, blocks = (x->n / TASK_STREAM + warp) / warp;
    if (x->by_index) return launch(t, HARNESS_DRAW_BY_INDEX, blocks_for(t, x->n), 1, params, err);
    CuResult r = t->executor.cu->launch(t->kernels[HARNESS_DRAW], (unsigned)blocks, 1, 1, warp, 1,
                                        1, 0, t->executor.stream, params, NULL);
    return queued(t, r, harness_names[HARNESS_DRAW], err);
}

int trusted_draw(Trusted *t, const DeviceDraw *what, DeviceGolden **out, Error *err)
{
    const TaskStreams *x = what->streams;
    size_t bytes;
    CuPtr p = 0;
    if (golden_room(t, x->n * sizeof(float), out, err)) return -1;
    unsigned long long *numbers = numbers_of(x, &bytes);
    int rc = cuda_check(t->executor.cu->memory_alloc(&p, bytes),
                        "memory for streams of random numbers", err);
    if (!rc) rc = trusted_write(t, p, numbers, bytes, err);
    if (!rc) rc = draw(t, x, p, (*out)->p, err);
    if (!rc) rc = begins_alike(t, what, (*out)->p, err);
    trusted_settle(t, NULL);
    if (p) t->executor.cu->memory_free(p);
    free(numbers);
    if (!rc) return 0;
    trusted_golden_free(t, *out);
    *out = NULL;
    return rc;
}

int trusted_golden_of(Trusted *t, CuPtr p, size_t bytes, DeviceGolden **out, Error *err)
{
    const CudaDriver *cu = t->executor.cu;
    if (golden_room(t, bytes, out, err)) return -1;
    if (!bytes || !queued(t, cu->copy_on_device((*out)->p, p, bytes, t->executor.stream),
                          "a copy on the device", err))
        return 0;
    trusted_golden_free(t, *out);
    *out = NULL;
    return -1;
}

void trusted_golden_free(Trusted *t, DeviceGolden *g)
{
    if (!g) return;
    t->golden_bytes -= g->bytes;
    trusted_settle(t, NULL);
    t->executor.cu->memory_free(g->p);
    free(g);
}

/* The bytes, or elements, of a buffer, and what of golden repeats in it. */
typedef struct {
    unsigned long long n, from, period;
} Spread;

static int spread_of(const DeviceExpected *x, Spread *s, Error *err)
{
    size_t unit = x->dtype < 0 ? 1 : sizeof(double), have = x->golden->bytes / unit;
    s->n = x->n || x->dtype >= 0 ? x->n : have;
    s->from = x->from;
    s->period = x->period ? x->period : s->n;
    int words = x->dtype >= 0 || (!s->from && s->period >= s->n) ||
                (s->from % 16 == 0 && s->period % 16 == 0);
    if (s->n <= UINT32_MAX || x->dtype < 0)
        if (s->period <= have && (!s->from || s->from < s->period) && words) return 0;
    return error_set(err, ERROR_INVALID,
                     "%zu %s cannot be filled from %zu kept ones: start %zu, period %zu",
                     (size_t)s->n, x->dtype < 0 ? "bytes" : "elements", have, x->from, x->period);
}

int trusted_fill(Trusted *t, const DeviceExpected *x, Error *err)
{
    const CudaDriver *cu = t->executor.cu;
    CuResult r = CU_OK;
    Spread s;
    if (spread_of(x, &s, err)) return -1;
    for (size_t at = 0, n; at < s.n && r == CU_OK; at += n) {
        size_t start = (s.from + at) % s.period;
        n = s.period - start < s.n - at ? s.period - start : s.n - at;
        r = cu->copy_on_device(x->p + at, x->golden->p + start, n, t->executor.stream);
    }
    return queued(t, r, "a copy on the device", err);
}

/* Compare bytes. The least offset at which they differ goes to `result`; all ones: none. */
static int launch_same(Trusted *t, const DeviceExpected *x, CuPtr result, Error *err)
{
    Spread s;
    CuPtr a = x->p, b = x->golden->p;
    void *params[] = {&a, &b, &s.from, &s.period, &s.n, &result};
    return spread_of(x, &s, err) ? -1
                                 : launch(t, HARNESS_SAME, blocks_for(t, s.n / 16), 1, params, err);
}

int trusted_same(Trusted *t, const DeviceExpected *x, size_t *first, Error *err)
{
    unsigned long long found;
    if (begin_result(t, &none, sizeof none, err) ||
        launch_same(t, x, t->results + AT_RESULT, err) ||
        end_result(t, AT_RESULT, sizeof found, err))
        return -1;
    memcpy(&found, t->host + AT_RESULT, sizeof found);
    if (found == none) return 0;
    *first = (size_t)found;
    return 1;
}

static int launch_compare(Trusted *t, const DeviceExpected *x, CuPtr result, Error *err)
{
    Spread s;
    CuPtr got = x->p, want = x->golden->p;
    int dtype = x->dtype;
    double atol = x->atol, rtol = x->rtol;
    void *params[] = {&got, &want, &s.from, &s.period, &dtype, &s.n, &atol, &rtol, &result};
    return spread_of(x, &s, err) ? -1
                                 : launch(t, HARNESS_COMPARE, blocks_for(t, s.n), 1, params, err);
}

/* Read element i and its expected value. */
static int read_element(Trusted *t, const DeviceExpected *x, uint64_t i, double *got, double *want,
                        Error *err)
{
    unsigned char bytes[8];
    size_t size = dtype_size((Dtype)x->dtype);
    size_t period = x->period ? x->period : x->n;
    CuPtr expected = x->golden->p + (i + x->from) % period * sizeof *want;
    if (trusted_read(t, x->p + i * size, bytes, size, err) ||
        trusted_read(t, expected, want, sizeof *want, err))
        return -1;
    dtype_to_double((Dtype)x->dtype, bytes, got, 1);
    return 0;
}

int trusted_compare(Trusted *t, const DeviceExpected *with, DeviceDifference *out, Error *err)
{
    HarnessDifference d;
    memset(out, 0, sizeof *out);
    if (begin_result(t, &equal, sizeof equal, err) ||
        launch_compare(t, with, t->results + AT_RESULT, err) ||
        end_result(t, AT_RESULT, sizeof d, err))
        return -1;
    memcpy(&d, t->host + AT_RESULT, sizeof d);
    if (!d.wrong && !d.unwritten) return 0;
    out->wrong = d.wrong;
    out->unwritten = d.unwritten;
    if (d.unwritten) out->first_unwritten = d.first_unwritten;
    if (!d.wrong) return 1;
    out->first = d.first;
    out->worst = d.worst & UINT32_MAX;
    return read_element(t, with, out->first, &out->first_got, &out->first_want, err) ||
                   read_element(t, with, out->worst, &out->worst_got, &out->worst_want, err)
               ? -1
               : 1;
}

int trusted_digest(Trusted *t, CuPtr p, size_t bytes, uint64_t out[2], Error *err)
{
    unsigned long long length = bytes, sums[2] = {bytes, 0};
    CuPtr from = p, result = t->results + AT_RESULT;
    void *params[] = {&from, &length, &result};
    if (begin_result(t, sums, sizeof sums, err) ||
        launch(t, HARNESS_DIGEST, blocks_for(t, bytes / 8 + 1), 1, params, err) ||
        end_result(t, AT_RESULT, sizeof sums, err))
        return -1;
    memcpy(sums, t->host + AT_RESULT, sizeof sums);
    out[0] = sums[0];
    out[1] = sums[1];
    return 0;
}

/* ---- guard zones ---- */

/* Blocks for each zone: enough to fill the device with the largest zone, which may have hundreds of
 * MiB. */
static unsigned blocks_for_zones(const Trusted *t, const HarnessZone *zones)
{
    unsigned long long largest = 0;
    for (int i = 0; i < t->n_zones; i++)
        if (zones[i].end - zones[i].start > largest) largest = zones[i].end - zones[i].start;
    unsigned blocks = blocks_for(t, largest / 16),
             limit = t->n_zones ? ALL_ZONES_BLOCKS / (unsigned)t->n_zones : 1;
    if (limit < ZONE_BLOCKS) limit = ZONE_BLOCKS;
    return blocks < limit ? blocks : limit;
}

void trusted_set_zones(Trusted *t, const HarnessZone *zones, int n)
{
    t->n_zones = n < TRUSTED_MAX_ZONES ? n : TRUSTED_MAX_ZONES;
    /* A copy may still read the pinned table. A failure is reported by the next wait. */
    if (t->busy) trusted_settle(t, NULL);
    memcpy(t->host + AT_ZONES, zones, (size_t)t->n_zones * sizeof *zones);
    t->zone_blocks = blocks_for_zones(t, zones);
    t->zones_stale = 1;
}

static int check_zones(Trusted *t, Error *err)
{
    const CudaDriver *cu = t->executor.cu;
    CuPtr zones = t->results + AT_ZONES, bad = t->results + AT_BAD;
    void *params[] = {&zones, &bad};
    size_t found_bytes = (size_t)t->n_zones * sizeof(HarnessZoneBad);
    if (t->zones_stale && queued(t,
                                 cu->copy_to_device_async(zones, t->host + AT_ZONES,
                                                          (size_t)t->n_zones * sizeof(HarnessZone),
                                                          t->executor.stream),
                                 "the table of guard zones", err))
        return -1;
    t->zones_stale = 0;
    if (queued(t, cu->set_bytes(bad, 0xff, found_bytes, t->executor.stream),
               "the results of guard zones", err) ||
        launch(t, HARNESS_ZONES, t->zone_blocks, (unsigned)t->n_zones, params, err))
        return -1;
    return queued(t, cu->copy_to_host_async(t->host + AT_BAD, bad, found_bytes, t->executor.stream),
                  "a small copy from the device", err);
}

static int bad_zone(const Trusted *t, int *zone, CuPtr *lowest, CuPtr *highest)
{
    const HarnessZoneBad *found = (const void *)(t->host + AT_BAD);
    for (int i = 0; i < t->n_zones; i++) {
        if (found[i].lowest == ~0ull) continue;
        *zone = i;
        *lowest = found[i].lowest;
        *highest = ~found[i].highest;
        return 1;
    }
    return 0;
}

int trusted_zones(Trusted *t, int *zone, CuPtr *lowest, CuPtr *highest, Error *err)
{
    if (!t->n_zones) return 0;
    return check_zones(t, err) || trusted_settle(t, err) ? -1 : bad_zone(t, zone, lowest, highest);
}

/* ---- many comparisons in one wait ---- */

/* At most SLOTS comparisons. A kernel leaves its slot unchanged when nothing differs. */
static int expect_some(Trusted *t, const DeviceExpected *list, int n, Error *err)
{
    unsigned char *initial = t->host + AT_INITIAL;
    size_t bytes = (size_t)n * SLOT_BYTES;
    memset(initial, 0, bytes);
    for (int i = 0; i < n; i++) {
        if (list[i].dtype < 0)
            memcpy(initial + i * SLOT_BYTES, &none, sizeof none);
        else
            memcpy(initial + i * SLOT_BYTES, &equal, sizeof equal);
    }
    if (queued(t,
               t->executor.cu->copy_to_device_async(t->results + AT_RESULT, initial, bytes,
                                                    t->executor.stream),
               "a small copy to the device", err))
        return -1;
    for (int i = 0; i < n; i++) {
        CuPtr slot = t->results + AT_RESULT + (CuPtr)i * SLOT_BYTES;
        if (list[i].dtype < 0 ? launch_same(t, &list[i], slot, err)
                              : launch_compare(t, &list[i], slot, err))
            return -1;
    }
    if (end_result(t, AT_RESULT, bytes, err)) return -1;
    return memcmp(t->host + AT_RESULT, initial, bytes) != 0;
}

int trusted_expect(Trusted *t, const DeviceExpected *list, int n, int zones, Error *err)
{
    int zone, rc = 0;
    CuPtr lowest, highest;
    zones = zones && t->n_zones;
    if (zones && check_zones(t, err)) return -1;
    for (int i = 0; i < n && !rc; i += SLOTS)
        rc = expect_some(t, list + i, n - i < SLOTS ? n - i : SLOTS, err);
    /* With an empty list nothing has waited for the zones yet. */
    if (!rc && trusted_settle(t, err)) rc = -1;
    return rc ? rc : zones && bad_zone(t, &zone, &lowest, &highest);
}

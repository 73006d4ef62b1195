/* Device memory, and copies to and from the host. Copies go through a circular buffer of pinned
 * memory, so that the caller may reuse its memory at once while the copy waits in the stream. */
#include <string.h>

#include "base/memory.h"
#include "model/core/halves.h"
#include "model/cuda/cuda_state.h"
#include "model/cuda/table.h"

enum { STAGING_BYTES = 32 << 20, CHUNK_BYTES = 8 << 20, SLOTS = 64, ALIGNMENT = 256 };

/* A part of the buffer that a copy reads until its event. */
typedef struct {
    size_t begin, end;
    CuEvent done;
} Slot;

static struct {
    char *data;
    size_t head;
    Slot slot[SLOTS]; /* a queue; `first` is the oldest */
    int first, n;
} staging;

static CuPtr device(const void *p)
{
    return (CuPtr)(uintptr_t)p;
}

/* ---- allocation ---- */

static void fail_full(size_t bytes)
{
    Error err;
    size_t free_bytes = 0, total = 0;
    cuda_state()->cu->memory_info(&free_bytes, &total);
    error_set(&err, ERROR_MEMORY,
              "the GPU's memory is full: %.1f MiB more are needed and %.1f of its %.1f MiB are "
              "free; fewer --max-tokens (or a smaller "
              "--batch), --recompute or --lora make it less",
              (double)bytes / 1048576, (double)free_bytes / 1048576, (double)total / 1048576);
    cuda_fail_with(&err);
}

void *cuda_device_alloc(size_t bytes)
{
    CuPtr p = 0;
    if (cuda_begin()) return NULL;
    CuResult r = cuda_state()->cu->memory_alloc(&p, bytes);
    if (r == CU_OUT_OF_MEMORY)
        fail_full(bytes);
    else if (r)
        cuda_fail(r, "the GPU gives no memory");
    return r ? NULL : (void *)(uintptr_t)p;
}

void cuda_device_free(void *p)
{
    if (p) cuda_state()->cu->memory_free(device(p));
}

void *cuda_alloc(size_t bytes)
{
    size_t rounded = bytes ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    void *p = cuda_device_alloc(rounded);
    if (p) cuda_zero(p, rounded);
    return p;
}

void cuda_release(void *p)
{
    cuda_wait(); /* no work in the stream may still use it */
    cuda_device_free(p);
}

int cuda_memory(size_t *free_bytes, size_t *total_bytes, Error *err)
{
    return cuda_check(cuda_state()->cu->memory_info(free_bytes, total_bytes),
                      "the GPU does not say how much memory is free", err);
}

void cuda_zero(void *p, size_t bytes)
{
    if (!bytes || cuda_begin()) return;
    CUDA_TRY(cuda_state()->cu->set_bytes(device(p), 0, bytes, cuda_state()->stream),
             "memory of the GPU is not set to zero");
}

void cuda_copy(void *to, const void *from, size_t bytes)
{
    if (!bytes || cuda_begin()) return;
    CUDA_TRY(
        cuda_state()->cu->copy_on_device(device(to), device(from), bytes, cuda_state()->stream),
        "a copy on the GPU failed");
}

/* ---- the circular buffer ---- */

static void drop_oldest(void)
{
    CUDA_TRY(cuda_state()->cu->event_synchronize(staging.slot[staging.first].done),
             "a copy to the GPU failed");
    staging.first = (staging.first + 1) % SLOTS;
    staging.n--;
}

static int open_staging(void)
{
    const CudaDriver *cu = cuda_state()->cu;
    void *data = NULL;
    CUDA_TRY(cu->host_alloc(&data, STAGING_BYTES, 0), "the driver gives no pinned memory");
    for (int i = 0; i < SLOTS; i++)
        CUDA_TRY(cu->event_create(&staging.slot[i].done, CU_EVENT_NO_TIMING),
                 "the driver gives no event");
    if (cuda_failed()) return -1;
    staging.data = data;
    return 0;
}

/* Take a part of the buffer that no copy reads any more. NULL after a failure. */
static Slot *take_slot(size_t bytes)
{
    if (cuda_begin() || (!staging.data && open_staging())) return NULL;
    if (staging.head + bytes > STAGING_BYTES) staging.head = 0;
    size_t begin = staging.head, end = begin + bytes;
    for (;;) {
        int overlap = staging.n == SLOTS;
        for (int i = 0; i < staging.n && !overlap; i++) {
            const Slot *s = &staging.slot[(staging.first + i) % SLOTS];
            overlap = s->begin < end && begin < s->end;
        }
        if (!overlap) break;
        drop_oldest();
        if (cuda_failed()) return NULL;
    }
    Slot *s = &staging.slot[(staging.first + staging.n++) % SLOTS];
    s->begin = begin;
    s->end = end;
    staging.head = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return s;
}

/* Copy the part of the slot to the device, and record its event. */
static void send_slot(Slot *s, void *to)
{
    const CudaState *c = cuda_state();
    CUDA_TRY(c->cu->copy_to_device_async(device(to), staging.data + s->begin, s->end - s->begin,
                                         c->stream),
             "a copy to the GPU failed");
    CUDA_TRY(c->cu->event_record(s->done, c->stream), "a copy to the GPU failed");
}

void cuda_upload(void *to, const void *host, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += CHUNK_BYTES) {
        size_t n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        Slot *s = take_slot(n);
        if (!s) return;
        memcpy(staging.data + s->begin, (const char *)host + at, n);
        send_slot(s, (char *)to + at);
    }
}

void cuda_load(Num *to, const float *host, size_t n)
{
    const size_t chunk = CHUNK_BYTES / sizeof(uint16_t);
    for (size_t at = 0; at < n; at += chunk) {
        size_t count = n - at < chunk ? n - at : chunk;
        Slot *s = take_slot(count * sizeof(uint16_t));
        if (!s) return;
        uint16_t *half = (uint16_t *)(void *)(staging.data + s->begin);
#pragma omp parallel for schedule(static) if (count > 65536)
        for (size_t i = 0; i < count; i++) half[i] = float_to_bf16(host[at + i]);
        send_slot(s, (uint16_t *)to + at);
    }
}

/* Copy at most a chunk to pinned memory, which is valid until the next call. NULL after a
 * failure. */
static const void *fetch(const void *from, size_t bytes)
{
    const CudaState *c = cuda_state();
    Slot *s = take_slot(bytes);
    if (!s) return NULL;
    cuda_settle(); /* the copy also waits for the collectives */
    CUDA_TRY(c->cu->copy_to_host_async(staging.data + s->begin, device(from), bytes, c->stream),
             "a copy from the GPU failed");
    CUDA_TRY(c->cu->event_record(s->done, c->stream), "a copy from the GPU failed");
    return cuda_wait() ? NULL : staging.data + s->begin;
}

/* After a failure the host memory is zeroed, so that it does not keep uninitialized values. */
void cuda_download(void *host, const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += CHUNK_BYTES) {
        size_t n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        const void *got = fetch((const char *)from + at, n);
        if (got)
            memcpy((char *)host + at, got, n);
        else
            memset((char *)host + at, 0, n);
    }
}

void cuda_store(float *host, const Num *from, size_t n)
{
    const size_t chunk = CHUNK_BYTES / sizeof(uint16_t);
    for (size_t at = 0; at < n; at += chunk) {
        size_t count = n - at < chunk ? n - at : chunk;
        const uint16_t *got = fetch((const uint16_t *)from + at, count * sizeof(uint16_t));
#pragma omp parallel for schedule(static) if (count > 65536)
        for (size_t i = 0; i < count; i++) host[at + i] = got ? bf16_to_float(got[i]) : 0;
    }
}

int cuda_status(Error *err)
{
    cuda_wait();
    return cuda_take_failure(err) ? -1 : 0;
}

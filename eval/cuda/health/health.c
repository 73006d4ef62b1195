/* The canary, and the errors that the driver reports through NVML. NVML starts in a thread, since
 * it takes long and nothing needs it before the first verdict's end. */
#include "eval/cuda/health/health.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/embed.h"
#include "base/log.h"
#include "base/memory.h"
#include "eval/cuda/health/canary_word.h"

enum { PARTNER = 37, LIMIT_S = 2, MAX_XIDS = 64 };

/* Xid errors that a program can cause by a mistake or by its end. All others are the hardware's or
 * the driver's. */
static const unsigned of_programs[] = {
    8,       /* the GPU stopped processing: a limit was passed */
    11,  32, /* a damaged push buffer */
    13,      /* an exception in a kernel */
    31,      /* an access to an address that is not mapped */
    43,      /* a channel was stopped for its own error */
    45,      /* channels cleared away after a process ended */
    68,  69, /* exceptions of the video and graphics engines */
    109,     /* a context that did not give way in time */
};

static const struct {
    unsigned xid;
    const char *text;
} of_hardware[] = {{38, "a firmware error"},
                   {46, "the GPU stopped processing"},
                   {48, "an uncorrectable ECC error"},
                   {61, "a microcontroller's error"},
                   {62, "a microcontroller's halt"},
                   {63, "memory rows or pages were retired"},
                   {64, "memory rows or pages could not be retired"},
                   {74, "an NVLink error"},
                   {79, "the GPU has fallen off the bus"},
                   {92, "a high rate of corrected ECC errors"},
                   {94, "an uncorrectable ECC error, contained"},
                   {95, "an uncorrectable ECC error, not contained"},
                   {119, "the GPU's system processor does not answer"},
                   {120, "the GPU's system processor failed"},
                   {140, "an unrecovered ECC error"},
                   {143, "the GPU did not start"},
                   {154, "the GPU asks for a reset"}};

const char *health_xid(unsigned xid)
{
    for (size_t i = 0; i < sizeof of_programs / sizeof *of_programs; i++)
        if (of_programs[i] == xid) return NULL;
    for (size_t i = 0; i < sizeof of_hardware / sizeof *of_hardware; i++)
        if (of_hardware[i].xid == xid) return of_hardware[i].text;
    return "an error that no program is known to cause";
}

/* ---- the canary ---- */

EMBED(canary_word_h, "eval/cuda/health/canary_word.h")
EMBED(canary_cu, "eval/cuda/health/canary.cu")

char *health_source(void)
{
    return memory_printf("%s\n%s", canary_word_h, canary_cu);
}

struct Health {
    const CudaDriver *cu;
    Gpu gpu;
    Nvml *nvml; /* NULL until joined_nvml has waited for the thread */
    pthread_t starting;
    int started; /* the thread must be joined */
    CuModule module;
    CuFunction fill, sum;
    CuStream stream;
    CuEvent end;
    CuPtr memory;   /* HEALTH_WORDS of 4 bytes, then the two sums */
    int sms, known; /* known: expected[] is computed */
    uint64_t expected[2], ecc_errors;
    char sick[600]; /* the first failure that was found, or "" */
};

void health_expected(uint64_t sums[2])
{
    uint32_t *words = memory_array(HEALTH_WORDS, sizeof *words);
    for (unsigned i = 0; i < HEALTH_WORDS; i++) {
        CANARY_WORD(word, i)
        words[i] = word;
    }
    sums[0] = sums[1] = 0;
    for (unsigned i = 0; i < HEALTH_WORDS; i++) {
        unsigned at = (i * 0x2545f491u) & (HEALTH_WORDS - 1u),
                 word = words[at] + 3u * words[at ^ PARTNER];
        sums[0] += (uint64_t)word * (i | 1u);
        sums[1] ^= word + i;
    }
    free(words);
}

static void *start_nvml(void *of)
{
    Health *h = of;
    DeviceTelemetry t;
    h->nvml = nvml_open(h->gpu.uuid, h->gpu.pci);
    nvml_telemetry(h->nvml, &t);
    h->ecc_errors = t.ecc_errors;
    log_debug("NVML started");
    return NULL;
}

/* Wait for the thread that starts NVML. */
static Nvml *joined_nvml(Health *h)
{
    if (h->started) pthread_join(h->starting, NULL);
    h->started = 0;
    return h->nvml;
}

int health_open(const CudaDriver *cu, const Gpu *gpu, const void *cubin, Health **out, Error *err)
{
    Health *h = memory_alloc(sizeof *h);
    h->cu = cu;
    h->gpu = *gpu;
    h->started = !pthread_create(&h->starting, NULL, start_nvml, h);
    if (!h->started) start_nvml(h);
    if (cuda_check(cu->device_attribute(&h->sms, CU_ATTRIBUTE_SMS, gpu->device),
                   "a GPU does not say an attribute", err) ||
        cuda_check(cu->module_load(&h->module, cubin), "the canary does not load", err) ||
        cuda_check(cu->module_function(&h->fill, h->module, "canary_fill"),
                   "the canary has no kernel", err) ||
        cuda_check(cu->module_function(&h->sum, h->module, "canary_sum"),
                   "the canary has no kernel", err) ||
        cuda_check(cu->memory_alloc(&h->memory, HEALTH_WORDS * 4 + 16), "no memory for the canary",
                   err) ||
        cuda_check(cu->stream_create(&h->stream, CU_STREAM_NON_BLOCKING),
                   "no stream for the canary", err) ||
        cuda_check(cu->event_create(&h->end, 0), "no event for the canary", err)) {
        health_close(h);
        return -1;
    }
    *out = h;
    return 0;
}

void health_close(Health *h)
{
    if (!h) return;
    if (h->end) h->cu->event_destroy(h->end);
    if (h->stream) h->cu->stream_destroy(h->stream);
    if (h->memory) h->cu->memory_free(h->memory);
    if (h->module) h->cu->module_unload(h->module);
    nvml_close(joined_nvml(h));
    free(h);
}

Nvml *health_nvml(Health *h)
{
    return joined_nvml(h);
}

static int launch(Health *h, CuFunction f, void **params, Error *err)
{
    return cuda_check(h->cu->launch(f, (unsigned)h->sms * 4, 1, 1, HEALTH_BLOCK, 1, 1, 0, h->stream,
                                    params, NULL),
                      "the canary does not start", err);
}

/* Run both kernels. The sums are copied only after they have ended, since a copy would wait without
 * a limit for a GPU that hangs. */
static int run_canary(Health *h, uint64_t sums[2], Error *err)
{
    unsigned n = HEALTH_WORDS;
    CuPtr at = h->memory + HEALTH_WORDS * 4;
    void *fill[] = {&h->memory, &n}, *sum[] = {&h->memory, &n, &at};
    double limit = clock_seconds() + LIMIT_S;
    CuResult r;
    if (cuda_check(h->cu->set_bytes(h->memory, 0, HEALTH_WORDS * 4 + 16, h->stream),
                   "the canary's memory is not cleared", err) ||
        launch(h, h->fill, fill, err) || launch(h, h->sum, sum, err) ||
        cuda_check(h->cu->event_record(h->end, h->stream), "the canary has no end", err))
        return -1;
    while ((r = h->cu->event_query(h->end)) == CU_NOT_READY) {
        if (clock_seconds() > limit)
            return error_set(err, ERROR_DEVICE, "the canary did not end within %d s", LIMIT_S);
        clock_sleep(50e-6);
    }
    if (cuda_check(r, "the canary failed", err)) return -1;
    return cuda_check(h->cu->copy_to_host(sums, at, 16), "the canary's sums do not come back", err);
}

/* Xid errors and ECC counts. They say more than the canary that fails because of them. */
static int ask_driver(Health *h, Error *err)
{
    unsigned xids[MAX_XIDS];
    DeviceTelemetry t;
    Nvml *nvml = joined_nvml(h);
    int n = nvml_xids(nvml, xids, MAX_XIDS);
    for (int i = 0; i < n; i++) {
        const char *text = health_xid(xids[i]);
        if (text)
            return error_set(err, ERROR_DEVICE, "the driver reported Xid %u: %s", xids[i], text);
    }
    nvml_telemetry(nvml, &t);
    if (t.ecc_errors <= h->ecc_errors) return 0;
    return error_set(
        err, ERROR_DEVICE, "%llu uncorrected ECC errors have come to the %llu of before",
        (unsigned long long)(t.ecc_errors - h->ecc_errors), (unsigned long long)h->ecc_errors);
}

static int check_canary(Health *h, Error *err)
{
    uint64_t sums[2] = {0, 0};
    if (run_canary(h, sums, err)) return -1;
    if (!h->known) health_expected(h->expected);
    h->known = 1;
    if (!memcmp(sums, h->expected, sizeof sums)) return 0;
    return error_set(err, ERROR_DEVICE,
                     "the canary computed %016llx %016llx, expected %016llx %016llx",
                     (unsigned long long)sums[0], (unsigned long long)sums[1],
                     (unsigned long long)h->expected[0], (unsigned long long)h->expected[1]);
}

int health_check(Health *h, Error *err)
{
    Error why;
    if (!h->sick[0] && (ask_driver(h, &why) || check_canary(h, &why) || ask_driver(h, &why)))
        snprintf(h->sick, sizeof h->sick, "%s", why.text);
    return h->sick[0] ? error_set(err, ERROR_DEVICE_SICK, "this GPU is out of service: %s, %s: %s",
                                  h->gpu.name, h->gpu.uuid, h->sick)
                      : 0;
}

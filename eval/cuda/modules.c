/* Modules of the device "cuda:N". A module belongs to one generation of a runner; a trusted module
 * keeps its image and is loaded again when that process has ended. */
#include "eval/cuda/modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/candidate/cubin.h"
#include "eval/cuda/remote.h"

enum {
    LOAD_S = 30,
    KERNEL_S = 10,
    VARIABLE_BYTES = 512 << 20,
    PARKED_IMAGE = 4 << 20, /* larger modules are loaded each time */
    COPIED_IMAGE = 1 << 20, /* larger modules have one copy */
    MAX_PARKED = 2 * DEVICE_COPIES,
    MAX_PARKED_PARTS = 64 * DEVICE_COPIES, /* of baselines, and where op lines have many parts */
    PARKED_BYTES = 256 << 20               /* of their images */
};

static int refuse(Fault *fault, Outcome outcome, const char *why)
{
    memset(fault, 0, sizeof *fault);
    fault->outcome = outcome;
    snprintf(fault->message, sizeof fault->message, "the module cannot be loaded: %.460s", why);
    return 1;
}

/* Turn the driver's refusal of an image into a fault (1). Other failures are errors (-1). */
static int refuse_image(CuResult r, Fault *fault)
{
    Error why;
    cuda_check(r, "the driver refuses it", &why);
    if (r == CU_INVALID_IMAGE || r == CU_NO_BINARY || r == CU_UNSUPPORTED_PTX)
        return refuse(fault, OUTCOME_UNSUPPORTED, why.text);
    if (r == CU_OUT_OF_MEMORY)
        return refuse(fault, OUTCOME_LAUNCH_ERROR,
                      "its variables need more memory than the device has");
    return error_set(&fault->error, ERROR_DEVICE, "a module cannot be loaded: %s", why.text);
}

/* Returns 0, or 1 with *fault when the cubin is damaged or too large. *has_state: it has variables
 * that a kernel can change. */
static int check_image(const DeviceCode *code, int *has_state, Fault *fault)
{
    Error why;
    Cubin cubin;
    char text[120];
    if (!code->cubin_len || code->cubin_len > PROTOCOL_MAILBOX)
        return refuse(fault, OUTCOME_LAUNCH_ERROR, "its binary is too large");
    if (cubin_parse(code->cubin, code->cubin_len, &cubin, &why))
        return refuse(fault, OUTCOME_LAUNCH_ERROR, why.text);
    uint64_t variables = cubin.variable_bytes;
    *has_state = cubin.has_state;
    cubin_release(&cubin);
    if (variables <= VARIABLE_BYTES) return 0;
    snprintf(text, sizeof text, "its __device__ variables take more than %d MiB",
             VARIABLE_BYTES >> 20);
    return refuse(fault, OUTCOME_LAUNCH_ERROR, text);
}

static int load_image(Device *d, DeviceModule *m, const void *image, size_t bytes, Fault *fault)
{
    CudaAnswer a;
    RemoteCall ask = {.call = {.kind = CALL_LOAD, .bytes = bytes}, .limit_s = LOAD_S};
    Remote *r = remote_of(d, m);
    if (remote_need(d, r, &fault->error)) return -1;
    memcpy(r->runner.mailbox, image, bytes);
    if (remote_ask(d, r, &ask, &a, &fault->error)) return -1;
    if (a.end.step == END_LAUNCH) return refuse_image(a.end.result, fault);
    if (a.end.step != END_OK)
        return error_set(&fault->error, ERROR_DEVICE, "a module cannot be loaded: %s", a.end.text);
    m->id = (uint32_t)a.value;
    m->generation = r->runner.generation;
    return 0;
}

/* ---- modules without state ---- */

/* Loading a module resets its variables. A module without variables does not change, so that timing,
 * which loads both sides many times, can reuse it without waiting for the driver. The address of
 * code changes a kernel's time by up to 0.75%, so that a result must not depend on one address:
 * DEVICE_COPIES copies of a module lie at different addresses, and each use draws one of them. */

static void release(Device *d, DeviceModule *m)
{
    CudaAnswer a;
    RemoteCall ask = {.call = {.kind = CALL_UNLOAD, .value = m->id}, .limit_s = LOAD_S};
    if (remote_has(d, m)) remote_ask(d, remote_of(d, m), &ask, &a, NULL);
    for (int i = 0; i < m->n_kernels; i++) free(m->kernels[i].name);
    free(m->kernels);
    free(m->image);
    free(m);
}

/* Keep a module for reuse. When there are too many, the modules that were unused for longest are
 * released. */
static void park(Device *d, DeviceModule *m)
{
    DeviceModule **at = &d->parked;
    int n = 0, limit = m->home == HOME_CANDIDATE ? MAX_PARKED : MAX_PARKED_PARTS;
    size_t bytes = 0;
    m->next = d->parked;
    d->parked = m;
    while (*at) {
        DeviceModule *one = *at;
        bytes += one->home == m->home ? one->image_bytes : 0;
        if (remote_has(d, one) &&
            (one->home != m->home || (n++ < limit && bytes <= PARKED_BYTES))) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        release(d, one);
    }
}

/* One of the copies of this code, once all of them exist; NULL: load another. The copy is drawn
 * from the half that was unused for longest. So no copy is used twice in a row, all are used
 * equally often, and each copy of a candidate is paired with each copy of the baseline. */
static DeviceModule *unpark(Device *d, const DeviceCode *code, int home)
{
    DeviceModule **copies[DEVICE_COPIES];
    int n = 0, needed = code->cubin_len > COPIED_IMAGE ? 1 : DEVICE_COPIES;
    for (DeviceModule **at = &d->parked; *at && n < needed; at = &(*at)->next) {
        DeviceModule *m = *at;
        if (m->home != home || m->image_bytes != code->cubin_len || !remote_has(d, m) ||
            memcmp(m->image, code->cubin, code->cubin_len))
            continue;
        copies[n++] = at;
    }
    if (n < needed) return NULL;
    /* The list begins with the module that was parked last. */
    int from_end = (int)random_below(&d->copy_choice, (uint64_t)(needed + 1) / 2);
    DeviceModule **at = copies[needed - 1 - from_end];
    DeviceModule *m = *at;
    *at = m->next;
    return m;
}

static int load_new(Device *d, const DeviceCode *code, int home, DeviceModule **out, Fault *fault)
{
    DeviceModule *m = memory_alloc(sizeof *m);
    int has_state = 1;
    m->home = home;
    m->trusted = home == HOME_TRUSTED;
    m->empty = !code;
    int rc = code ? check_image(code, &has_state, fault)
             : home != HOME_CANDIDATE
                 ? 0
                 : error_set(&fault->error, ERROR_INVALID, "a candidate's module has no code");
    if (!rc && code) rc = load_image(d, m, code->cubin, code->cubin_len, fault);
    if (rc) {
        free(m);
        return rc;
    }
    m->parks = !has_state && code->cubin_len <= PARKED_IMAGE;
    if (m->parks || (m->trusted && code)) {
        m->image = memory_alloc(code->cubin_len);
        memcpy(m->image, code->cubin, code->cubin_len);
        m->image_bytes = code->cubin_len;
    }
    *out = m;
    return 0;
}

static void drop_parked(Device *d, int home)
{
    for (DeviceModule **at = &d->parked; *at;) {
        DeviceModule *m = *at;
        if (m->home != home) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        release(d, m);
    }
}

/* The process of the last candidate gets another one: no code stays that it could have changed but that of
 * libraries, and what it may have written is overwritten. A changed flush would leave the next one's data in
 * the L2. */
static int hand_over(Device *d, Remote *r, Error *err)
{
    CudaAnswer a;
    RemoteCall ask = {.call = {.kind = CALL_RESET}, .limit_s = LOAD_S};
    drop_parked(d, HOME_LIBRARY);
    if (remote_need(d, r, err) || remote_ask(d, r, &ask, &a, err)) return -1;
    if (a.end.step != END_OK)
        return error_set(err, ERROR_DEVICE, "a runner is kept: %s", a.end.text);
    return remote_stopwatch(d, r, err);
}

/* The runner with libraries gets another candidate, whose first module names it. It is idle, since each call
 * of it waits for the GPU. A process that took another's place within a candidate's work has run it without a
 * name. */
static int change_candidate(Device *d, Remote *r, int named, Error *err)
{
    int used = named || r->warm_generation == r->runner.generation;
    if (!r->runner.pid || !used) return 0;
    if (named && !r->suspect && r->served < REMOTE_CANDIDATES && !hand_over(d, r, err)) return 0;
    r->follows = 1;
    return cudarunner_next(&r->runner, err);
}

/* While the runner with libraries has modules, others are of the same candidate. */
static int meet(Device *d, const DeviceCode *code, Error *err)
{
    Remote *r = &d->remotes[HOME_LIBRARY];
    uint64_t image = code ? random_hash(code->cubin, code->cubin_len) : 0;
    for (const DeviceModule *m = d->modules; m; m = m->next)
        if (m->home == HOME_LIBRARY && (m->empty || remote_has(d, m))) return 0;
    cudarunner_poll(&r->runner);
    int named = r->first_generation == r->runner.generation;
    if (r->runner.pid && named && !r->suspect && !r->ended && r->first_image == image) return 0;
    if (change_candidate(d, r, named, err)) return -1;
    if (!r->runner.pid && cudarunner_start(&r->runner, err)) return -1;
    remote_name(r, image);
    return 0;
}

int modules_renew(Device *d, Error *err)
{
    Remote *r = &d->remotes[HOME_LIBRARY];
    uint64_t image = r->first_image;
    if (cudarunner_next(&r->runner, err)) return -1;
    remote_name(r, image);
    return 0;
}

int module_load(Device *d, const DeviceCode *code, int home, DeviceModule **out, Fault *fault)
{
    if (home == HOME_LIBRARY && meet(d, code, &fault->error)) return -1;
    /* With a runner that is ready, unpark skips the modules of a process that has ended. */
    if (code && remote_need(d, &d->remotes[home], &fault->error)) return -1;
    DeviceModule *m = code ? unpark(d, code, home) : NULL;
    int rc = m ? 0 : load_new(d, code, home, &m, fault);
    if (rc) return rc;
    m->next = d->modules;
    d->modules = m;
    *out = m;
    return 0;
}

void module_unload(Device *d, DeviceModule *m)
{
    for (DeviceModule **at = &d->modules; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    if (m->home == HOME_LIBRARY) cudarunner_reap(&d->remotes[HOME_LIBRARY].runner, NULL);
    if (m->parks && remote_has(d, m))
        park(d, m);
    else
        release(d, m);
}

static void release_all(Device *d, DeviceModule **list)
{
    while (*list) {
        DeviceModule *m = *list;
        *list = m->next;
        release(d, m);
    }
}

void modules_close(Device *d)
{
    release_all(d, &d->modules);
    release_all(d, &d->parked);
}

/* ---- kernels ---- */

static int find_kernel(Device *d, DeviceModule *m, const char *name, ModuleKernel *k, Error *err)
{
    CudaAnswer a;
    RemoteCall ask = {.call = {.kind = CALL_KERNEL, .value = m->id}, .limit_s = KERNEL_S};
    if (!remote_has(d, m))
        return error_set(err, ERROR_DEVICE,
                         "kernel %.200s: the process that had its module is gone", name);
    if (strlen(name) >= sizeof ask.call.name)
        return error_set(err, ERROR_LIMIT, "a kernel's name of %zu letters is too long",
                         strlen(name));
    snprintf(ask.call.name, sizeof ask.call.name, "%s", name);
    if (remote_ask(d, remote_of(d, m), &ask, &a, err)) return -1;
    if (a.end.step != END_OK) return error_set(err, ERROR_DEVICE, "%s", a.end.text);
    k->kernel = (uint32_t)a.value;
    k->info = a.u.kernel;
    return 0;
}

const ModuleKernel *module_kernel(Device *d, DeviceModule *m, const char *name, Error *err)
{
    ModuleKernel k = {0};
    for (int i = 0; i < m->n_kernels; i++)
        if (!strcmp(m->kernels[i].name, name)) return &m->kernels[i];
    if (m->empty ? error_set(err, ERROR_UNKNOWN_NAME, "no kernel %.200s in the module", name)
                 : find_kernel(d, m, name, &k, err))
        return NULL;
    k.name = memory_strdup(name);
    m->kernels = memory_grow(m->kernels, (size_t)m->n_kernels + 1, sizeof *m->kernels);
    m->kernels[m->n_kernels] = k;
    return &m->kernels[m->n_kernels++];
}

static int load_again(Device *d, DeviceModule *m, Error *err)
{
    Fault fault;
    int rc = load_image(d, m, m->image, m->image_bytes, &fault);
    if (rc) rc = fault_as_error(&fault, rc, err);
    for (int i = 0; i < m->n_kernels && !rc; i++)
        rc = find_kernel(d, m, m->kernels[i].name, &m->kernels[i], err);
    if (rc) m->generation = 0; /* some kernels still have the numbers of the old process */
    return rc ? error_prefix(err, "a trusted module cannot be loaded again") : 0;
}

int module_present(Device *d, DeviceModule *m, Error *err)
{
    if (remote_need(d, remote_of(d, m), err)) return -1;
    return m->empty || remote_has(d, m) ? 0 : load_again(d, m, err);
}

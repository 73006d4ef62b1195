/* The device "sim:PROFILE": buffers, modules, launches, and predicted times. Launches run on the
 * CPU, with every access checked; the time model turns their counters into times. */
#include "eval/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "eval/candidate/cubin.h"
#include "eval/device/memory_shares.h"
#include "eval/sim/coverage/visits.h"
#include "eval/sim/decode/decode.h"
#include "eval/sim/memory/doubts.h"
#include "eval/sim/sim_launches.h"
#include "eval/sim/time/time_model.h"

/* The arena holds a candidate's buffers and its variables, and the tensors of the task. */
static const size_t arena_bytes = (size_t)6 << 30, buffer_bytes = (size_t)2000 << 20;

enum { CANDIDATE_BYTES = 512 << 20 };

static const int64_t timed_instructions = 8000000000; /* of the threads of a timed run */

/* ---- opening and closing ---- */

/* A product in float32 is one on the lanes, or three in TF32. */
static void find_light(const Profile *p, DeviceInfo *i)
{
    double clocks = p->sm_count * p->clock_hz, fp32 = 2.0 * p->fp32_lanes, tensor = p->tensor_flops;
    double half = tensor > fp32 ? tensor : fp32, thrice = tensor / 2 / 3;
    i->light_bytes_per_s = p->dram_bytes_per_s;
    for (int k = 0; k < 4; k++)
        i->light_flops_per_s[k] = clocks * (k == DTYPE_F16 || k == DTYPE_BF16 ? half
                                            : thrice > fp32                   ? thrice
                                                                              : fp32);
    i->light_tf32_flops_per_s = clocks * (tensor / 2 > fp32 ? tensor / 2 : fp32);
}

static int sim_open(const char *arg, Device **out, Error *err)
{
    const Profile *p = profile_find(arg, err);
    if (!p) return -1;
    Device *d = memory_alloc(sizeof *d);
    d->profile = p;
    d->limit = timed_instructions;
    size_t bytes = p->memory_bytes < arena_bytes ? (size_t)p->memory_bytes : arena_bytes;
    if (devmem_open(&d->mem, bytes & ~(size_t)4095, err)) {
        free(d);
        return -1;
    }
    d->mem.visits = visits_new();
    DeviceInfo *i = &d->info;
    snprintf(i->device_class, sizeof i->device_class, "sim:%s", p->name);
    snprintf(i->name, sizeof i->name, "%s", p->title);
    snprintf(i->arch, sizeof i->arch, "%s", p->arch);
    i->predicted = 1;
    i->error_factor = p->error_factor;
    i->sm_count = p->sm_count;
    i->max_threads_per_block = p->threads_per_block;
    i->max_shared_per_block = p->shared_per_block;
    MemoryShares shares;
    memory_shares(p->memory_bytes, (uint64_t)p->sm_count * (uint64_t)p->threads_per_sm, &shares);
    i->max_local_per_thread = shares.local;
    i->memory_bytes = buffer_bytes;
    i->dram_bytes_per_s = p->dram_bytes_per_s;
    double fp32 = 2.0 * p->fp32_lanes, tensor = p->tensor_flops;
    i->flops_per_s = (tensor > fp32 ? tensor : fp32) * p->sm_count * p->clock_hz;
    find_light(p, i);
    d->exec.mem = &d->mem;
    d->exec.sm_count = (uint32_t)p->sm_count;
    timemodel_rates(p, &d->exec.rates);
    d->exec.has_clusters = strtol(p->arch + 3, NULL, 10) >= 90; /* "sm_90" */
    *out = d;
    return 0;
}

static void sim_unload(Device *d, DeviceModule *m)
{
    for (DeviceModule **at = &d->modules; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    for (int i = 0; i < m->n_variables; i++) devmem_free(&d->mem, m->variables[i]);
    free(m->variables);
    cubin_release(&m->cubin);
    code_release(&m->code);
    free(m);
}

static void sim_close(Device *d)
{
    if (!d) return;
    while (d->modules) sim_unload(d, d->modules);
    doubts_free(d->exec.doubts);
    exec_release(&d->exec);
    work_release(&d->predicted);
    free(d->sampled);
    visits_free(d->mem.visits);
    devmem_close(&d->mem);
    free(d);
}

static const DeviceInfo *sim_info(Device *d)
{
    return &d->info;
}

/* ---- modules ---- */

static PtxVar *find_variable(const PtxModule *m, const char *name)
{
    for (PtxVar *v = m->vars; v; v = v->next)
        if (!strcmp(v->name, name)) return v;
    return NULL;
}

/* Writes the addresses of other variables and of functions into the initial value. */
static int relocate(PtxModule *ptx, PtxVar *v, Error *err)
{
    for (int i = 0; i < v->n_relocs; i++) {
        const struct PtxReloc *r = &v->relocs[i];
        const PtxVar *to = find_variable(ptx, r->name);
        uint64_t address = to && to->space == SPACE_GLOBAL ? to->address
                           : to                            ? 0
                                                           : ptx_take_address(ptx, r->name);
        if (!address || v->element != 8)
            return error_set(err, ERROR_UNSUPPORTED,
                             "variable %s is initialised with %s, which is no variable in global "
                             "memory and no function",
                             v->name, r->name);
        address += (uint64_t)r->addend;
        memcpy(v->init + r->at, &address, 8);
    }
    return 0;
}

static void add_variable(Device *d, DeviceModule *m, uint64_t address)
{
    if (m->n_variables % 16 == 0)
        m->variables = memory_grow(m->variables, (size_t)m->n_variables + 16, sizeof *m->variables);
    Alloc *a = devmem_at(&d->mem, address);
    a->scratch = a->variable = 1;
    m->variables[m->n_variables++] = address;
}

/* The driver gives a cooperative launch a place at which its blocks meet. */
static int place_grid_barrier(Device *d, DeviceModule *m, Error *err)
{
    if (!m->code.uses_grid) return 0;
    if (devmem_new(&d->mem, SIM_GRID_BARRIER, "the grid's barrier", &m->grid_barrier, err))
        return -1;
    add_variable(d, m, m->grid_barrier);
    return 0;
}

/* Allocates and initialises the module's .global variables. On failure *outcome says whether they
 * take too much memory or hold an address that the simulator does not have. */
static int place_variables(Device *d, DeviceModule *m, PtxModule *ptx, Outcome *outcome, Error *err)
{
    char label[64];
    uint64_t total = 0;
    *outcome = OUTCOME_LAUNCH_ERROR;
    for (PtxVar *v = ptx->vars; v; v = v->next) {
        if (v->space != SPACE_GLOBAL || v->is_extern || !v->size) continue;
        if (v->size > CANDIDATE_BYTES || (total += v->size) > CANDIDATE_BYTES)
            return error_set(err, ERROR_LIMIT,
                             "variable %s brings the module's variables over %d MiB", v->name,
                             CANDIDATE_BYTES >> 20);
        snprintf(label, sizeof label, "variable %s", v->name);
        if (devmem_new(&d->mem, v->size, label, &v->address, err)) return -1;
        add_variable(d, m, v->address);
    }
    *outcome = OUTCOME_UNSUPPORTED;
    for (PtxVar *v = ptx->vars; v; v = v->next) {
        if (relocate(ptx, v, err)) return -1;
        if (!v->address) continue;
        if (v->init)
            memcpy(devmem_host(&d->mem, v->address), v->init, v->size);
        else
            memset(devmem_host(&d->mem, v->address), 0, v->size);
        devmem_set_written(&d->mem, v->address, v->size);
    }
    return 0;
}

/* Reports a module that cannot be loaded. Returns 1. */
static int load_fault(Fault *fault, Outcome outcome, const Error *why)
{
    memset(fault, 0, sizeof *fault);
    fault->outcome = outcome;
    snprintf(fault->message, sizeof fault->message, "the module cannot be loaded: %.460s",
             why->text);
    return 1;
}

static int sim_load(Device *d, const DeviceCode *code, int home, DeviceModule **out, Fault *fault)
{
    Error why;
    Outcome outcome;
    PtxModule ptx;
    if (!code) { /* library calls only */
        *out = memory_alloc(sizeof **out);
        (*out)->trusted = home == HOME_TRUSTED;
        (*out)->next = d->modules;
        d->modules = *out;
        return 0;
    }
    if (ptx_parse(code->ptx, code->ptx_len, &ptx, &why))
        return load_fault(fault, OUTCOME_UNSUPPORTED, &why);
    DeviceModule *m = memory_alloc(sizeof *m);
    if (code->cubin_len && cubin_parse(code->cubin, code->cubin_len, &m->cubin, &why)) {
        ptx_release(&ptx);
        free(m);
        return load_fault(fault, OUTCOME_LAUNCH_ERROR, &why);
    }
    m->trusted = home == HOME_TRUSTED;
    m->next = d->modules;
    d->modules = m;
    if (place_variables(d, m, &ptx, &outcome, &why)) {
        ptx_release(&ptx);
        sim_unload(d, m);
        return load_fault(fault, outcome, &why);
    }
    if (code_build(&ptx, d->exec.doubts && home != HOME_TRUSTED, &m->code, &why)) {
        sim_unload(d, m);
        return load_fault(fault, OUTCOME_UNSUPPORTED, &why);
    }
    if (place_grid_barrier(d, m, &why)) {
        sim_unload(d, m);
        return load_fault(fault, OUTCOME_LAUNCH_ERROR, &why);
    }
    *out = m;
    return 0;
}

static int sim_kernel(Device *d, DeviceModule *m, const char *lowered, KernelInfo *out, Error *err)
{
    const Function *f = code_find_entry(&m->code, lowered);
    if (!f) return error_set(err, ERROR_INVALID, "no kernel %s in the module", lowered);
    memset(out, 0, sizeof *out);
    if (f->ptx->n_params > KERNEL_MAX_PARAMS)
        return error_set(err, ERROR_LIMIT, "kernel %s has %d parameters; %d are allowed", lowered,
                         f->ptx->n_params, KERNEL_MAX_PARAMS);
    out->n_params = f->ptx->n_params;
    for (int i = 0; i < out->n_params; i++) {
        const PtxVar *v = f->ptx->params[i];
        if (v->offset + v->size > KERNEL_MAX_PARAM_BYTES)
            return error_set(err, ERROR_LIMIT,
                             "the parameters of kernel %s take more than %d bytes", lowered,
                             KERNEL_MAX_PARAM_BYTES);
        out->params[i].offset = (uint32_t)v->offset;
        out->params[i].size = (uint32_t)v->size;
        out->params[i].is_pointer = v->is_pointer;
        out->param_bytes = (uint32_t)(v->offset + v->size);
    }
    const CubinKernel *k = cubin_find(&m->cubin, lowered);
    out->registers = k ? k->registers : 0;
    out->static_shared = f->static_shared;
    out->local_bytes = k ? k->local_bytes : f->local_bytes;
    out->max_threads =
        f->ptx->max_threads && (int)f->ptx->max_threads < d->info.max_threads_per_block
            ? (int)f->ptx->max_threads
            : d->info.max_threads_per_block;
    return 0;
}

/* ---- buffers ---- */

static int sim_alloc(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err)
{
    return devmem_new(&d->mem, bytes, label, out, err);
}

static void sim_free(Device *d, DevicePtr p)
{
    devmem_free(&d->mem, p);
}

/* Returns the allocation that holds all of [p, p + bytes), or NULL with an Error. */
static Alloc *range_of(Device *d, DevicePtr p, size_t bytes, Error *err)
{
    int i = devmem_find(&d->mem, p);
    Alloc *a = i >= 0 ? &d->mem.allocs[i] : devmem_at(&d->mem, p);
    if (a && bytes <= a->bytes - (p - a->base)) return a;
    error_set(err, ERROR_INVALID,
              "a host access of %zu bytes at 0x%llx is in no buffer of the device", bytes,
              (unsigned long long)p);
    return NULL;
}

static int sim_write(Device *d, DevicePtr p, const void *src, size_t bytes, Error *err)
{
    if (!range_of(d, p, bytes, err)) return -1;
    if (bytes) memcpy(devmem_host(&d->mem, p), src, bytes);
    devmem_set_written(&d->mem, p, bytes);
    return 0;
}

static int sim_read(Device *d, DevicePtr p, void *dst, size_t bytes, Error *err)
{
    Alloc *a = range_of(d, p, bytes, err);
    if (!a) return -1;
    if (devmem_read(&d->mem, a, p, dst, bytes))
        return error_set(err, ERROR_DEVICE, "the contents of %s cannot be drawn", a->label);
    return 0;
}

static int sim_poison(Device *d, DevicePtr p, Error *err)
{
    Alloc *a = devmem_at(&d->mem, p);
    if (!a)
        return error_set(err, ERROR_INVALID, "no buffer starts at 0x%llx", (unsigned long long)p);
    devmem_reset(&d->mem, a); /* another plan may have renewed it */
    return 0;
}

static void sim_own(Device *d, DevicePtr p)
{
    Alloc *a = devmem_at(&d->mem, p);
    if (a) a->scratch = 1;
}

static int sim_protect(Device *d, DevicePtr p, int read_only, Error *err)
{
    Alloc *a = devmem_at(&d->mem, p);
    if (!a)
        return error_set(err, ERROR_INVALID, "no buffer starts at 0x%llx", (unsigned long long)p);
    a->read_only = read_only != 0;
    return 0;
}

static int sim_written(Device *d, DevicePtr p, size_t limit, size_t *from, size_t *end)
{
    const Alloc *a = devmem_at(&d->mem, p);
    return a && devmem_next_written(&d->mem, a, limit, from, end);
}

static int sim_fill_lazily(Device *d, DevicePtr p, DeviceFill *fill, void *of, int input,
                           Error *err)
{
    if (sim_poison(d, p, err)) return -1;
    Alloc *a = devmem_at(&d->mem, p);
    a->fill = fill;
    a->fill_of = of;
    a->fill_input = input;
    a->read_only = 1;
    return 0;
}

/* Every access is checked, so the guard zones between buffers cannot change. */
static int sim_check_guards(Device *d, Fault *fault)
{
    (void)d, (void)fault;
    return 0;
}

void sim_count_all(Device *d)
{
    d->counted = 1;
}

/* Modules that were loaded before have no slots for doubtful values: their loads stay faults. */
static int sim_follow(Device *d, int on)
{
    Exec *x = &d->exec;
    int doubted = x->doubted;
    x->doubted = 0;
    if (!on) d->total = 0;
    if (on && (x->doubts || !doubted)) return 0;
    doubts_free(x->doubts);
    x->doubts = on ? doubts_new(doubted) : NULL;
    return on && doubted == DOUBTED_USED ? DEVICE_FOLLOWS_USES : on;
}

static const Fault *sim_warning(Device *d, int i)
{
    return d->exec.doubts ? doubts_event(d->exec.doubts, i) : NULL;
}

const SimCounts *sim_last_counts(const Device *d)
{
    return &d->exec.counts;
}

void sim_set_limit(Device *d, int64_t thread_instructions)
{
    d->limit = thread_instructions;
}

static const DevicePrediction prediction = {
    .own = sim_own,
    .announce = sim_announce,
    .disturb = sim_disturb,
    .follow = sim_follow,
    .warning = sim_warning,
    .predict = sim_predict,
    .sample = sim_sample,
    .fill_lazily = sim_fill_lazily,
    .written = sim_written,
    .fits = sim_fits,
    .attempt = sim_attempt,
    .cone = sim_cone,
    .unread = sim_unread,
    .idle = sim_idle,
};

const DeviceOps sim_device_ops = {
    .prefix = "sim",
    .form = "sim:PROFILE",
    .meaning = "where PROFILE is a100, h100, h200, l40, rtx3090 or h20",
    .example = "sim:h100",
    .open = sim_open,
    .close = sim_close,
    .info = sim_info,
    .load = sim_load,
    .unload = sim_unload,
    .kernel = sim_kernel,
    .alloc = sim_alloc,
    .free = sim_free,
    .write = sim_write,
    .read = sim_read,
    .poison = sim_poison,
    .protect = sim_protect,
    .check_guards = sim_check_guards,
    .run = sim_run,
    .prediction = &prediction,
};

__attribute__((constructor)) static void register_backend(void)
{
    device_register(&sim_device_ops);
}

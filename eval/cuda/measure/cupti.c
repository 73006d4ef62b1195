/* Hardware counters where the driver allows them, else the values of activity records. */
#include "eval/cuda/measure/cupti.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/cuda/measure/cupti_api.h"
#include "eval/device/device.h"

/* Hardware counters by CUPTI's range profiler. Hardware counters of one range around the launches.
 * Each pass counts some of them and runs the launches again. */

enum { MAX_PASSES = 64 };
static const size_t max_image = (size_t)256 << 20;

/* Quern's name of a counter and the hardware's. A metric that the chip does not have is left
 * out. The range is longer than the kernels in it: kernel_cycles are those of the multiprocessor
 * that is at work for longest, and a share of the range's time, "elapsed", is larger by
 * range_cycles / kernel_cycles while a kernel runs. */
static const struct {
    const char *name, *metric;
} known_metrics[] = {
#define ELAPSED ".avg.pct_of_peak_sustained_elapsed"
#define ACTIVE ".avg.pct_of_peak_sustained_active"
#define STALL(reason) "smsp__average_warps_issue_stalled_" reason "_per_issue_active.ratio"
    {"time_ns", "gpu__time_duration.sum"},
    {"kernel_cycles", "sm__cycles_active.max"},
    {"range_cycles", "sm__cycles_elapsed.max"},
    {"active_cycles", "sm__cycles_active.avg"},
    {"cycles_a_second", "sm__cycles_elapsed.avg.per_second"},
    {"gpu_active_pct", "gr__cycles_active" ELAPSED},
    {"blocks", "sm__ctas_launched.sum"},
    {"dram_bytes_read", "dram__bytes_read.sum"},
    {"dram_bytes_written", "dram__bytes_write.sum"},
    {"dram_bytes_a_cycle_at_most", "dram__bytes.sum.peak_sustained"},
    {"dram_cycles_a_second", "dram__cycles_elapsed.avg.per_second"},
    {"dram_busy_pct", "dram__throughput" ELAPSED},
    {"dram_busy_of_active_pct", "dram__throughput" ACTIVE},
    {"l2_sectors", "lts__t_sectors.sum"},
    {"l2_hit_pct", "lts__t_sector_hit_rate.pct"},
    {"l2_busy_pct", "lts__t_sectors" ELAPSED},
    {"l2_busy_of_active_pct", "lts__t_sectors" ACTIVE},
    {"l2_data_busy_pct", "lts__d_sectors" ELAPSED},
    {"l2_tag_busy_pct", "lts__t_tag_requests" ELAPSED},
    {"l2_atomic_busy_pct", "lts__d_atomic_input_cycles_active" ELAPSED},
    {"l2_atomic_busiest_pct",
     "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed"},
    {"l2_reduction_sectors", "lts__t_sectors_op_red.sum"},
    {"l2_atomic_sectors", "lts__t_sectors_op_atom.sum"},
    {"l2_port_read_busy_pct", "l1tex__m_xbar2l1tex_read_sectors" ACTIVE},
    {"l2_port_write_busy_pct", "l1tex__m_l1tex2xbar_req_cycles_active" ACTIVE},
    {"l1_sectors", "l1tex__t_sectors.sum"},
    {"l1_requests", "l1tex__t_requests.sum"},
    {"l1_hit_pct", "l1tex__t_sector_hit_rate.pct"},
    {"l1_active_pct", "l1tex__cycles_active" ELAPSED},
    {"l1_busy_pct", "l1tex__data_pipe_lsu_wavefronts" ACTIVE},
    {"l1_reads_busy_pct", "l1tex__data_bank_reads" ACTIVE},
    {"l1_writes_busy_pct", "l1tex__data_bank_writes" ACTIVE},
    {"l1_writeback_busy_pct", "l1tex__lsu_writeback_active" ACTIVE},
    {"l1_tag_busy_pct", "l1tex__f_wavefronts" ACTIVE},
    {"lsu_requests_busy_pct", "l1tex__lsuin_requests" ACTIVE},
    {"shared_wavefronts_sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"},
    {"shared_atomic_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"},
    {"shared_bank_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"},
    {"sm_busy_pct", "sm__throughput" ELAPSED},
    {"occupancy_pct", "sm__warps_active" ACTIVE},
    {"instructions", "smsp__inst_executed.sum"},
    {"issue_slots_busy_pct", "smsp__issue_active" ACTIVE},
    {"eligible_warps", "smsp__warps_eligible.avg.per_cycle_active"},
    {"active_threads_a_warp", "smsp__thread_inst_executed_per_inst_executed.ratio"},
    {"ffma_instructions", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"},
    {"shuffle_threads",
     "smsp__sass_thread_inst_executed_op_inter_thread_communication_pred_on.sum"},
    {"lsu_busy_pct", "sm__inst_executed_pipe_lsu" ACTIVE},
    {"alu_busy_pct", "sm__inst_executed_pipe_alu" ACTIVE},
    {"fma_busy_pct", "sm__inst_executed_pipe_fma" ACTIVE},
    {"fma_heavy_busy_pct", "sm__inst_executed_pipe_fmaheavy" ACTIVE},
    {"fp16_busy_pct", "sm__inst_executed_pipe_fp16" ACTIVE},
    {"fp16_of_fma_busy_pct", "sm__inst_executed_pipe_fma_type_fp16" ACTIVE},
    {"fp64_busy_pct", "sm__inst_executed_pipe_fp64" ACTIVE},
    {"xu_busy_pct", "sm__inst_executed_pipe_xu" ACTIVE},
    {"uniform_busy_pct", "sm__inst_executed_pipe_uniform" ACTIVE},
    {"cbu_busy_pct", "sm__inst_executed_pipe_cbu" ACTIVE},
    {"adu_busy_pct", "sm__inst_executed_pipe_adu" ACTIVE},
    {"tensor_pipe_busy_pct", "sm__inst_executed_pipe_tensor" ACTIVE},
    {"tensor_cycles_busy_pct", "sm__pipe_tensor_cycles_active" ACTIVE},
    {"stall_memory", STALL("long_scoreboard")},
    {"stall_shared", STALL("short_scoreboard")},
    {"stall_barrier", STALL("barrier")},
    {"stall_membar", STALL("membar")},
    {"stall_sleeping", STALL("sleeping")},
    {"stall_memory_queue", STALL("lg_throttle")},
    {"stall_shared_queue", STALL("mio_throttle")},
    {"stall_math_pipe", STALL("math_pipe_throttle")},
    {"stall_fixed_latency", STALL("wait")},
    {"stall_no_instruction", STALL("no_instruction")},
    {"stall_branch", STALL("branch_resolving")},
    {"stall_drain", STALL("drain")},
    {"stall_not_selected", STALL("not_selected")},
};
enum { N_METRICS = sizeof known_metrics / sizeof *known_metrics };
_Static_assert((int)N_METRICS <= (int)DEVICE_MAX_COUNTERS,
               "a verdict holds every counter of a GPU");

typedef struct {
    const Cupti *c;
    const CuptiWork *work;
    const char *chip, *names[N_METRICS], *metrics[N_METRICS];
    size_t n;
    uint8_t *availability, *config, *data;
    size_t config_size, data_size;
    void *host, *profiler;
} Session;

static int check_size(size_t bytes, const char *what, Error *err)
{
    return bytes && bytes <= max_image
               ? 0
               : error_set(err, ERROR_DEVICE, "CUPTI asks for %zu bytes for %s", bytes, what);
}

static int open_host(Session *s, void **host, Error *err)
{
    CuptiHostOpen open = {
        .size = CUPTI_SIZE(CuptiHostOpen, host), .chip = s->chip, .availability = s->availability};
    if (cupti_check(s->c, s->c->host_open(&open), "the profiler's host side does not start", err))
        return -1;
    *host = open.host;
    return 0;
}

static void close_host(Session *s, void *host)
{
    CuptiHost close = {.size = CUPTI_SIZE(CuptiHost, host), .host = host};
    if (host) s->c->host_close(&close);
}

/* The chip's name, and the counters that are available. This is the first call that needs the right
 * to profile. */
static int find_chip(Session *s, Error *err)
{
    const Cupti *c = s->c;
    CuptiChip chip = {.size = CUPTI_SIZE(CuptiChip, name), .index = (size_t)s->work->ordinal};
    CuptiAvailability a = {.size = CUPTI_SIZE(CuptiAvailability, image),
                           .context = s->work->context};
    if (cupti_check(c, c->chip_name(&chip), "the chip has no name", err) ||
        cupti_check(c, c->availability(&a), "the counters that are free cannot be asked for",
                    err) ||
        check_size(a.image_size, "the free counters", err))
        return -1;
    s->chip = chip.name;
    a.image = s->availability = memory_alloc(a.image_size);
    return cupti_check(c, c->availability(&a), "the counters that are free cannot be asked for",
                       err);
}

static int add(Session *s, void *host, const char **metrics, size_t n)
{
    CuptiHostMetrics m = {
        .size = CUPTI_SIZE(CuptiHostMetrics, n), .host = host, .names = metrics, .n = n};
    return s->c->host_add(&m);
}

/* Add each metric to a separate host object: a metric that the chip does not know must leave no
 * trace. */
static int choose_metrics(Session *s, Error *err)
{
    for (int i = 0; i < N_METRICS; i++) {
        void *probe = NULL;
        const char *metric = known_metrics[i].metric;
        if (open_host(s, &probe, err)) return -1;
        int known = add(s, probe, &metric, 1) == CUPTI_OK;
        close_host(s, probe);
        if (!known) continue;
        s->names[s->n] = known_metrics[i].name;
        s->metrics[s->n++] = metric;
    }
    return s->n ? 0
                : error_set(err, ERROR_DEVICE, "CUPTI knows none of the counters on %s", s->chip);
}

static int configure_host(Session *s, Error *err)
{
    const Cupti *c = s->c;
    if (open_host(s, &s->host, err) ||
        cupti_check(c, add(s, s->host, s->metrics, s->n), "the counters cannot be combined", err))
        return -1;
    CuptiHostConfig config = {.size = CUPTI_SIZE(CuptiHostConfig, image_size), .host = s->host};
    if (cupti_check(c, c->host_config_size(&config), "the profiler's configuration has no size",
                    err) ||
        check_size(config.image_size, "its configuration", err))
        return -1;
    s->config_size = config.image_size;
    config.size = CUPTI_SIZE(CuptiHostConfig, image);
    config.image = s->config = memory_alloc(s->config_size);
    return cupti_check(c, c->host_config(&config), "the profiler's configuration cannot be made",
                       err);
}

static int configure_device(Session *s, Error *err)
{
    const Cupti *c = s->c;
    CuptiEnable enable = {.size = CUPTI_SIZE(CuptiEnable, profiler), .context = s->work->context};
    if (cupti_check(c, c->enable(&enable), "the range profiler does not start in this context",
                    err))
        return -1;
    s->profiler = enable.profiler;
    CuptiDataSize size = {.size = CUPTI_SIZE(CuptiDataSize, data_size),
                          .profiler = s->profiler,
                          .names = s->metrics,
                          .n = s->n,
                          .max_ranges = 1,
                          .max_nodes = 1};
    if (cupti_check(c, c->data_size(&size), "the counters' data have no size", err) ||
        check_size(size.data_size, "the counters", err))
        return -1;
    s->data_size = size.data_size;
    s->data = memory_alloc(s->data_size);
    CuptiDataStart start = {.size = CUPTI_SIZE(CuptiDataStart, data),
                            .profiler = s->profiler,
                            .data_size = s->data_size,
                            .data = s->data};
    CuptiConfigure set = {.size = CUPTI_SIZE(CuptiConfigure, target_nesting_level),
                          .profiler = s->profiler,
                          .config_size = s->config_size,
                          .config = s->config,
                          .data_size = s->data_size,
                          .data = s->data,
                          .range = CUPTI_USER_RANGE,
                          .replay = CUPTI_USER_REPLAY,
                          .max_ranges = 1,
                          .nesting_levels = 1,
                          .min_nesting_level = 1,
                          .target_nesting_level = 1};
    if (cupti_check(c, c->data_start(&start), "the counters' data cannot be prepared", err))
        return -1;
    return cupti_check(c, c->configure(&set), "the range profiler cannot be configured", err);
}

static int run_pass(Session *s, int *last, Error *err)
{
    const Cupti *c = s->c;
    CuptiRange range = {.size = CUPTI_SIZE(CuptiRange, profiler), .profiler = s->profiler};
    CuptiPush push = {
        .size = CUPTI_SIZE(CuptiPush, name), .profiler = s->profiler, .name = "launches"};
    CuptiStop stop = {.size = CUPTI_SIZE(CuptiStop, all_passes), .profiler = s->profiler};
    if (s->work->prepare && s->work->prepare(s->work->arg, err)) return -1;
    if (cupti_check(c, c->start(&range), "the counting does not start", err)) return -1;
    int rc = cupti_check(c, c->push(&push), "the range does not begin", err);
    if (!rc) {
        rc = s->work->run(s->work->arg, err);
        int popped = cupti_check(c, c->pop(&range), "the range does not end", rc ? NULL : err);
        rc = rc ? rc : popped;
    }
    int stopped = cupti_check(c, c->stop(&stop), "the counting does not stop", rc ? NULL : err);
    *last = stop.all_passes;
    return rc || stopped ? -1 : 0;
}

static int read_values(Session *s, DeviceCounter *out, int *n, Error *err)
{
    const Cupti *c = s->c;
    double values[N_METRICS] = {0};
    CuptiDecode decode = {.size = CUPTI_SIZE(CuptiDecode, dropped), .profiler = s->profiler};
    CuptiHostValues get = {.size = CUPTI_SIZE(CuptiHostValues, values),
                           .host = s->host,
                           .data = s->data,
                           .data_size = s->data_size,
                           .names = s->metrics,
                           .n = s->n,
                           .values = values};
    if (cupti_check(c, c->decode(&decode), "the counters cannot be decoded", err)) return -1;
    if (decode.dropped)
        return error_set(err, ERROR_DEVICE, "CUPTI dropped %zu ranges", decode.dropped);
    if (cupti_check(c, c->host_values(&get), "the counters cannot be evaluated", err)) return -1;
    for (size_t i = 0; i < s->n; i++) {
        snprintf(out[i].name, sizeof out[i].name, "%s", s->names[i]);
        out[i].value = values[i];
    }
    *n = (int)s->n;
    return 0;
}

/* Returns 0 with out[0..*n) filled; -1: the driver does not allow it, or the work failed. Counters
 * that the chip does not have are left out. */
static int cupti_range_counters(const Cupti *c, const CuptiWork *work, DeviceCounter *out, int *n,
                                Error *err)
{
    Session s = {.c = c, .work = work};
    CuptiPlain plain = {.size = CUPTI_SIZE(CuptiPlain, priv)};
    int last = 0, rc = cupti_check(c, c->initialize(&plain), "the profiler does not start", err);
    if (!rc)
        rc = find_chip(&s, err) || choose_metrics(&s, err) || configure_host(&s, err) ||
                     configure_device(&s, err)
                 ? -1
                 : 0;
    for (int pass = 0; !rc && !last && pass < MAX_PASSES; pass++) rc = run_pass(&s, &last, err);
    if (!rc && !last)
        rc = error_set(err, ERROR_LIMIT, "the counters need more than %d passes", MAX_PASSES);
    if (!rc) rc = read_values(&s, out, n, err);
    CuptiRange disable = {.size = CUPTI_SIZE(CuptiRange, profiler), .profiler = s.profiler};
    if (s.profiler) c->disable(&disable);
    close_host(&s, s.host);
    free(s.availability);
    free(s.config);
    free(s.data);
    return rc;
}

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

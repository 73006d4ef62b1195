/* Flush, events and graphs of timed launch sequences. */
#include "eval/cuda/measure/stopwatch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "eval/cuda/context/harness.h"
#include "eval/cuda/measure/cupti.h"

enum {
    L2_TIMES = 2, /* the flush reads this many times the size of the L2 */
    LEAST_SCRATCH = 64 << 20,
    FLUSH_THREADS = 1024,
    HIDDEN = 6, /* launches that the host can enqueue during one pass of the flush */
    MAX_PASSES = 8,
    MAX_LONG_PASSES = 1000, /* where enqueuing is known to take long: 35 ms on an H200 */
    WAIT_READS = 1 << 18,   /* reads of the GPU's clock, 10 ns each: longer than any period */
    LAUNCH_PERIOD = 8 /* the overhead of a launch depends on its number in the context modulo 8 */
};

/* ---- open and close ---- */

int stopwatch_open(Stopwatch *w, Executor *e, Error *err)
{
    int l2 = 0;
    memset(w, 0, sizeof *w);
    w->executor = e;
    if (cuda_check(e->cu->device_attribute(&l2, CU_ATTRIBUTE_L2_BYTES, e->device),
                   "the size of the L2 cache", err) ||
        cuda_check(e->cu->event_create(&w->before, 0), "an event cannot be made", err) ||
        cuda_check(e->cu->event_create(&w->start, 0), "an event cannot be made", err) ||
        cuda_check(e->cu->event_create(&w->end, 0), "an event cannot be made", err))
        return -1;
    w->scratch_bytes =
        (size_t)l2 * L2_TIMES > LEAST_SCRATCH ? (size_t)l2 * L2_TIMES : LEAST_SCRATCH;
    /* Each process draws other numbers. */
    random_init(&w->idle, (uint64_t)(clock_seconds() * 1e9), random_hash("idle", 4));
    w->persisting = e->cu->context_set_limit(CU_LIMIT_PERSISTING_L2, 0) == CU_OK &&
                    e->cu->reset_persisting() == CU_OK;
    return 0;
}

/* Before a candidate's code runs here, whose first timed run has no more time than others. */
static CuResult need_scratch(Stopwatch *w)
{
    Executor *e = w->executor;
    if (w->scratch) return CU_OK;
    CuResult r = e->cu->memory_alloc(&w->scratch, w->scratch_bytes);
    return r == CU_OK ? e->cu->set_words(w->scratch, 0, w->scratch_bytes / 4, e->stream) : r;
}

static void drop_kernels(Stopwatch *w)
{
    if (w->flush) executor_unload(w->executor, w->module);
    w->flush = w->wait = NULL;
}

int stopwatch_load(Stopwatch *w, const void *cubin, Error *err)
{
    Executor *e = w->executor;
    uint32_t kernel, wait;
    KernelInfo info;
    int sms = 0, shared = 0;
    drop_kernels(w);
    if (cuda_check(executor_load(e, cubin, &w->module), "the harness's kernels cannot be loaded",
                   err) ||
        executor_kernel(e, w->module, harness_names[HARNESS_FLUSH], &kernel, &info, err) ||
        executor_kernel(e, w->module, harness_names[HARNESS_WAIT], &wait, &info, err) ||
        cuda_check(e->cu->device_attribute(&sms, CU_ATTRIBUTE_SMS, e->device),
                   "the device's attributes", err) ||
        cuda_check(e->cu->device_attribute(&shared, CU_ATTRIBUTE_SHARED_OPTIN, e->device),
                   "the device's attributes", err) ||
        cuda_check(e->cu->function_set(e->kernels[kernel].function, CU_FUNCTION_MAX_DYNAMIC_SHARED,
                                       shared),
                   "all shared memory", err) ||
        cuda_check(need_scratch(w), "memory for the flush of the L2", err))
        return -1;
    w->flush = e->kernels[kernel].function;
    w->wait = e->kernels[wait].function;
    w->sms = (unsigned)sms;
    w->flush_shared = (unsigned)shared;
    return 0;
}

static void drop_graph(Stopwatch *w, StopwatchGraph *g)
{
    if (!g->records) return;
    w->executor->cu->graph_exec_destroy(g->graph);
    free(g->records);
    memset(g, 0, sizeof *g);
}

void stopwatch_drop_graphs(Stopwatch *w)
{
    for (int i = 0; i < STOPWATCH_GRAPHS; i++) drop_graph(w, &w->graphs[i]);
}

/* Enqueuing takes at most so many times as long as the last times, and a pass of LEAST_SCRATCH at least so
 * long. */
static const double longer = 1.25, least_pass_us = 10;

/* ---- the flush ---- */

CuResult stopwatch_reset(Stopwatch *w)
{
    Executor *e = w->executor;
    stopwatch_drop_graphs(w);
    CuResult r = w->persisting ? e->cu->reset_persisting() : CU_OK;
    return r != CU_OK || !w->scratch
               ? r
               : e->cu->set_words(w->scratch, 0, w->scratch_bytes / 4, e->stream);
}

static CuResult flush(Stopwatch *w, int passes)
{
    Executor *e = w->executor;
    CuPtr from = w->scratch;
    unsigned long long words = w->scratch_bytes / 16;
    unsigned shared_words = w->flush_shared / 4, times = (unsigned)passes;
    void *params[] = {&from, &words, &shared_words, &times};
    return e->cu->launch(w->flush, w->sms, 1, 1, FLUSH_THREADS, 1, 1, w->flush_shared, e->stream,
                         params, NULL);
}

static CuResult launch_wait(Stopwatch *w, unsigned long long period, unsigned long long phase,
                            unsigned reads)
{
    Executor *e = w->executor;
    void *params[] = {&period, &phase, &reads};
    return e->cu->launch(w->wait, 1, 1, 1, 1, 1, 1, 0, e->stream, params, NULL);
}

/* Launch 0 to 7 empty kernels. When the number of launches of every timing shares a factor with
 * LAUNCH_PERIOD, all timings would begin at the same few launch numbers and include the overhead of
 * those (docs/gpu-verdict.md, "Launch dithering"). So each timing begins at a random number. */
static CuResult launch_idle(Stopwatch *w)
{
    CuResult r = w->flush ? CU_OK : CU_NOT_FOUND;
    for (uint64_t i = random_below(&w->idle, LAUNCH_PERIOD); i && r == CU_OK; i--)
        r = launch_wait(w, 1, 0, 0);
    return r;
}

static CuResult begin_cold(Stopwatch *w, int passes, StallWait wait)
{
    Executor *e = w->executor;
    CuResult r = w->flush ? CU_OK : CU_NOT_FOUND;
    if (r == CU_OK && w->persisting) r = e->cu->reset_persisting();
    if (r == CU_OK) r = e->cu->event_record(w->before, e->stream);
    if (r == CU_OK) r = flush(w, passes);
    return r == CU_OK && wait.period ? launch_wait(w, wait.period, wait.phase, WAIT_READS) : r;
}

/* ---- graphs ---- */

static CuResult instantiate(Executor *e, const LaunchList *l, CuGraphExec *out, LaunchEnd *end,
                            int *stopped)
{
    CuGraph graph = NULL;
    CuResult r = e->cu->capture_begin(e->stream, CU_CAPTURE_THREAD_LOCAL);
    if (r != CU_OK) return r;
    *stopped = executor_enqueue(e, l, end);
    r = e->cu->capture_end(e->stream, &graph);
    if (r == CU_OK && !*stopped) r = e->cu->graph_instantiate(out, graph, 0);
    if (graph) e->cu->graph_destroy(graph);
    return *stopped ? CU_OK : r;
}

/* The sequence as a graph, captured at its first use. When all slots are taken, the graph that was
 * unused for longest is destroyed. */
static CuResult find_graph(Stopwatch *w, const LaunchList *l, CuGraphExec *out, LaunchEnd *end,
                           int *stopped)
{
    StopwatchGraph *slot = &w->graphs[0];
    for (int i = 0; i < STOPWATCH_GRAPHS; i++) {
        StopwatchGraph *g = &w->graphs[i];
        if (g->records && g->bytes == l->bytes && !memcmp(g->records, l->records, l->bytes)) {
            g->last_use = ++w->graph_uses;
            *out = g->graph;
            return CU_OK;
        }
        if (g->last_use < slot->last_use) slot = g;
    }
    CuResult r = instantiate(w->executor, l, out, end, stopped);
    if (r != CU_OK || *stopped) return r;
    drop_graph(w, slot);
    *slot = (StopwatchGraph){memory_alloc(l->bytes), l->bytes, *out, ++w->graph_uses};
    memcpy(slot->records, l->records, l->bytes);
    return CU_OK;
}

/* ---- timing ---- */

static int read_clock(Stopwatch *w, ClockMode mode, const LaunchList *l, double began,
                      DeviceClock *out, LaunchEnd *end)
{
    Executor *e = w->executor;
    float ms = 0, flush_ms = 0;
    CuResult r = executor_wait(e);
    out->host_us = (clock_seconds() - began) * 1e6;
    if (r != CU_OK) return executor_end(end, END_RUN, r, 0, l->n ? l->n - 1 : 0, "running");
    r = e->cu->event_elapsed(&ms, w->start, w->end);
    if (r == CU_OK && mode != CLOCK_WARM) r = e->cu->event_elapsed(&flush_ms, w->before, w->start);
    if (r != CU_OK) return executor_end(end, END_HARNESS, r, 0, 0, "reading the events");
    out->us = (double)ms * 1e3;
    out->flush_us = (double)flush_ms * 1e3;
    return 0;
}

/* Passes of the flush during which the host enqueues all launches: a call into a library takes it 10 to 30
 * us. */
static int passes_for(const Stopwatch *w, const LaunchList *l, ClockMode mode)
{
    if (mode != CLOCK_COLD) return 1;
    int least = 1 + l->n / HIDDEN;
    if (least > MAX_PASSES) least = MAX_PASSES;
    if (w->enqueued != l->n || w->enqueued_bytes != l->bytes) return least;
    double wanted = ceil(longer * fmin(w->enqueue_us[0], w->enqueue_us[1]) / w->pass_us);
    return wanted < least ? least : wanted < MAX_LONG_PASSES ? (int)wanted : MAX_LONG_PASSES;
}

/* Keeps what the next timing of an equal sequence needs: the last two times of enqueuing, since a library's
 * preparation makes the first one long, and the least time of a pass of the flush, since each time of a pass
 * includes a wait behind the flush. */
static void note_enqueued(Stopwatch *w, const LaunchList *l, double us, double pass_us)
{
    int again = w->enqueued == l->n && w->enqueued_bytes == l->bytes;
    w->enqueued = l->n;
    w->enqueued_bytes = l->bytes;
    w->enqueue_us[1] = again ? w->enqueue_us[0] : 0;
    w->enqueue_us[0] = us;
    pass_us = fmax(pass_us, least_pass_us);
    if (!(w->pass_us > 0) || pass_us < w->pass_us) w->pass_us = pass_us;
}

static int clock_sequence(Stopwatch *w, const LaunchList *l, ClockMode mode, StallWait wait,
                          DeviceClock *out, LaunchEnd *end)
{
    Executor *e = w->executor;
    CuGraphExec graph = NULL;
    CuResult r = CU_OK;
    int stopped = 0, passes = passes_for(w, l, mode);
    if (mode == CLOCK_GRAPH) r = find_graph(w, l, &graph, end, &stopped);
    if (stopped) return 1;
    if (r != CU_OK)
        return executor_end(end, END_HARNESS, r, 0, 0, "capturing the launches as a graph");
    if (mode != CLOCK_WARM) r = launch_idle(w);
    double began = clock_seconds();
    if (mode != CLOCK_WARM && r == CU_OK) r = begin_cold(w, passes, wait);
    if (r == CU_OK) r = e->cu->event_record(w->start, e->stream);
    if (r != CU_OK) return executor_end(end, END_HARNESS, r, 0, 0, "flushing the L2");
    double enqueuing = clock_seconds();
    if (graph) {
        r = e->cu->graph_launch(graph, e->stream);
        if (r != CU_OK)
            return executor_end(end, END_LAUNCH, r, 0, l->n ? l->n - 1 : 0, "launching");
    } else if (executor_enqueue(e, l, end)) {
        return 1;
    }
    r = e->cu->event_record(w->end, e->stream);
    if (r != CU_OK) return executor_end(end, END_RUN, r, 0, l->n ? l->n - 1 : 0, "running");
    double us = (clock_seconds() - enqueuing) * 1e6;
    if (read_clock(w, mode, l, began, out, end)) return 1;
    if (mode == CLOCK_COLD) note_enqueued(w, l, us, out->flush_us / passes);
    return 0;
}

int stopwatch_clock(Stopwatch *w, const LaunchList *l, ClockMode mode, StallWait wait,
                    DeviceClock *out, LaunchEnd *end)
{
    memset(out, 0, sizeof *out);
    memset(end, 0, sizeof *end);
    int stopped = clock_sequence(w, l, mode, wait, out, end);
    if (stopped) executor_check_context(w->executor, end);
    return stopped;
}

/* ---- counters ---- */

/* The launches whose hardware counters are read, and how they ended. */
typedef struct {
    Stopwatch *w;
    const LaunchList *l;
    LaunchEnd *end;
    int stopped;
} Counted;

static int prepare_pass(void *arg, Error *err)
{
    Counted *c = arg;
    CuResult r = begin_cold(c->w, 1, (StallWait){0});
    return cuda_check(r == CU_OK ? executor_wait(c->w->executor) : r, "flushing the L2", err);
}

static int run_pass(void *arg, Error *err)
{
    Counted *c = arg;
    c->stopped = executor_run(c->w->executor, c->l, c->end);
    return c->stopped ? error_set(err, ERROR_DEVICE, "the launches fail under the profiler: %s",
                                  c->end->text)
                      : 0;
}

int stopwatch_counters(Stopwatch *w, const LaunchList *l, DeviceCounter *out, int *n,
                       LaunchEnd *end, Error *err)
{
    Counted counted = {w, l, end, 0};
    CuptiWork work = {.context = w->executor->context,
                      .ordinal = w->executor->ordinal,
                      .prepare = prepare_pass,
                      .run = run_pass,
                      .arg = &counted};
    memset(end, 0, sizeof *end);
    int rc = cupti_counters(&work, out, n, err);
    return rc && counted.stopped ? 1 : rc;
}

#include "eval/cuda/measure/stopwatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "eval/cuda/context/harness.h"
#include "eval/cuda/measure/cupti.h"

enum {
    L2_TIMES = 2, /* what the flush reads, in sizes of the L2 */
    LEAST_SCRATCH = 64 << 20,
    FLUSH_THREADS = 1024,
    HIDDEN = 6, /* launches whose enqueuing one pass of the flush hides */
    MAX_PASSES = 8,
    WAIT_TURNS = 1 << 18, /* readings of the clock, each some 10 ns: more than any period takes */
    LAUNCH_PERIOD = 8     /* what a launch adds depends on its number in the context modulo this */
};

/* ---- life ---- */

int stopwatch_open(Executor *e, Error *err)
{
    int l2 = 0;
    if (cuda_check(e->cu->device_attribute(&l2, CU_ATTRIBUTE_L2_BYTES, e->device),
                   "the size of the L2 cache", err) ||
        cuda_check(e->cu->event_create(&e->before, 0), "an event cannot be made", err) ||
        cuda_check(e->cu->event_create(&e->start, 0), "an event cannot be made", err) ||
        cuda_check(e->cu->event_create(&e->end, 0), "an event cannot be made", err))
        return -1;
    e->scratch_bytes =
        (size_t)l2 * L2_TIMES > LEAST_SCRATCH ? (size_t)l2 * L2_TIMES : LEAST_SCRATCH;
    random_init(&e->idle, (uint64_t)(clock_seconds() * 1e9),
                random_hash("idle", 4)); /* no two processes the same */
    e->on_unload = stopwatch_forget;
    e->on_close = stopwatch_close;
    e->persisting = e->cu->context_set_limit(CU_LIMIT_PERSISTING_L2, 0) == CU_OK &&
                    e->cu->reset_persisting() == CU_OK;
    return 0;
}

int stopwatch_arm(Executor *e, const void *cubin, Error *err)
{
    uint32_t module, kernel, wait;
    KernelInfo info;
    int sms = 0, shared = 0;
    if (cuda_check(executor_load(e, cubin, &module), "the harness's kernels cannot be loaded",
                   err) ||
        executor_kernel(e, module, harness_names[HARNESS_FLUSH], &kernel, &info, err) ||
        executor_kernel(e, module, harness_names[HARNESS_WAIT], &wait, &info, err) ||
        cuda_check(e->cu->device_attribute(&sms, CU_ATTRIBUTE_SMS, e->device),
                   "the device's attributes", err) ||
        cuda_check(e->cu->device_attribute(&shared, CU_ATTRIBUTE_SHARED_OPTIN, e->device),
                   "the device's attributes", err) ||
        cuda_check(e->cu->function_set(e->kernels[kernel].function, CU_FUNCTION_MAX_DYNAMIC_SHARED,
                                       shared),
                   "all shared memory", err))
        return -1;
    e->flush = e->kernels[kernel].function;
    e->wait = e->kernels[wait].function;
    e->sms = (unsigned)sms;
    e->flush_shared = (unsigned)shared;
    return 0;
}

static void drop_graph(Executor *e, ExecutorGraph *g)
{
    if (!g->records) return;
    e->cu->graph_exec_destroy(g->graph);
    free(g->records);
    memset(g, 0, sizeof *g);
}

void stopwatch_forget(Executor *e)
{
    for (int i = 0; i < EXECUTOR_GRAPHS; i++) drop_graph(e, &e->graphs[i]);
}

void stopwatch_close(Executor *e)
{
    CuEvent events[] = {e->before, e->start, e->end};
    stopwatch_forget(e);
    if (e->scratch) e->cu->memory_free(e->scratch);
    for (int i = 0; i < 3; i++)
        if (events[i]) e->cu->event_destroy(events[i]);
    e->scratch = 0;
}

/* ---- the flush ---- */

/* Before the first timed call of a context, since most contexts time nothing. */
static CuResult need_scratch(Executor *e)
{
    if (!e->flush) return CU_NOT_FOUND;
    if (e->scratch) return CU_OK;
    CuResult r = e->cu->memory_alloc(&e->scratch, e->scratch_bytes);
    return r == CU_OK ? e->cu->set_words(e->scratch, 0, e->scratch_bytes / 4, e->stream) : r;
}

static CuResult flush(Executor *e, int passes)
{
    CuPtr from = e->scratch;
    unsigned long long words = e->scratch_bytes / 16;
    unsigned shared_words = e->flush_shared / 4;
    void *params[] = {&from, &words, &shared_words};
    CuResult r = CU_OK;
    for (int i = 0; i < passes && r == CU_OK; i++)
        r = e->cu->launch(e->flush, e->sms, 1, 1, FLUSH_THREADS, 1, 1, e->flush_shared, e->stream,
                          params, NULL);
    return r;
}

static CuResult launch_wait(Executor *e, unsigned long long period, unsigned long long phase,
                            unsigned turns)
{
    void *params[] = {&period, &phase, &turns};
    return e->cu->launch(e->wait, 1, 1, 1, 1, 1, 1, 0, e->stream, params, NULL);
}

/* Timings that each make as many launches as share a factor with LAUNCH_PERIOD would begin at some
 * of its numbers alone, and be wrong by what these add (docs/evaluator.md, "Every eighth launch").
 * So each begins at any. */
static CuResult launch_idle(Executor *e)
{
    CuResult r = e->flush ? CU_OK : CU_NOT_FOUND;
    for (uint64_t i = random_below(&e->idle, LAUNCH_PERIOD); i && r == CU_OK; i--)
        r = launch_wait(e, 1, 0, 0);
    return r;
}

static CuResult begin_cold(Executor *e, int passes, StallWait wait)
{
    CuResult r = need_scratch(e);
    if (r == CU_OK && e->persisting) r = e->cu->reset_persisting();
    if (r == CU_OK) r = e->cu->event_record(e->before, e->stream);
    if (r == CU_OK) r = flush(e, passes);
    return r == CU_OK && wait.period ? launch_wait(e, wait.period, wait.phase, WAIT_TURNS) : r;
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

/* The sequence as a graph, captured at its first use; the longest unused makes room. */
static CuResult find_graph(Executor *e, const LaunchList *l, CuGraphExec *out, LaunchEnd *end,
                           int *stopped)
{
    ExecutorGraph *slot = &e->graphs[0];
    for (int i = 0; i < EXECUTOR_GRAPHS; i++) {
        ExecutorGraph *g = &e->graphs[i];
        if (g->records && g->bytes == l->bytes && !memcmp(g->records, l->records, l->bytes)) {
            g->used = ++e->graph_uses;
            *out = g->graph;
            return CU_OK;
        }
        if (g->used < slot->used) slot = g;
    }
    CuResult r = instantiate(e, l, out, end, stopped);
    if (r != CU_OK || *stopped) return r;
    drop_graph(e, slot);
    *slot = (ExecutorGraph){memory_alloc(l->bytes), l->bytes, *out, ++e->graph_uses};
    memcpy(slot->records, l->records, l->bytes);
    return CU_OK;
}

/* ---- the clock ---- */

static int read_clock(Executor *e, ClockMode mode, const LaunchList *l, double began,
                      DeviceClock *out, LaunchEnd *end)
{
    float ms = 0, flush_ms = 0;
    CuResult r = executor_wait(e);
    out->host_us = (clock_seconds() - began) * 1e6;
    if (r != CU_OK) return executor_end(end, END_RUN, r, 0, l->n ? l->n - 1 : 0, "running");
    r = e->cu->event_elapsed(&ms, e->start, e->end);
    if (r == CU_OK && mode != CLOCK_WARM) r = e->cu->event_elapsed(&flush_ms, e->before, e->start);
    if (r != CU_OK) return executor_end(end, END_HARNESS, r, 0, 0, "reading the events");
    out->us = (double)ms * 1e3;
    out->flush_us = (double)flush_ms * 1e3;
    return 0;
}

static int clock_sequence(Executor *e, const LaunchList *l, ClockMode mode, StallWait wait,
                          DeviceClock *out, LaunchEnd *end)
{
    CuGraphExec graph = NULL;
    CuResult r = CU_OK;
    int stopped = 0, passes = 1 + (mode == CLOCK_COLD ? l->n / HIDDEN : 0);
    if (passes > MAX_PASSES) passes = MAX_PASSES;
    if (mode == CLOCK_GRAPH) r = find_graph(e, l, &graph, end, &stopped);
    if (stopped) return 1;
    if (r != CU_OK)
        return executor_end(end, END_HARNESS, r, 0, 0, "capturing the launches as a graph");
    if (mode != CLOCK_WARM) r = launch_idle(e);
    double began = clock_seconds();
    if (mode != CLOCK_WARM && r == CU_OK) r = begin_cold(e, passes, wait);
    if (r == CU_OK) r = e->cu->event_record(e->start, e->stream);
    if (r != CU_OK) return executor_end(end, END_HARNESS, r, 0, 0, "flushing the L2");
    if (graph) {
        r = e->cu->graph_launch(graph, e->stream);
        if (r != CU_OK)
            return executor_end(end, END_LAUNCH, r, 0, l->n ? l->n - 1 : 0, "launching");
    } else if (executor_enqueue(e, l, end)) {
        return 1;
    }
    r = e->cu->event_record(e->end, e->stream);
    if (r != CU_OK) return executor_end(end, END_RUN, r, 0, l->n ? l->n - 1 : 0, "running");
    return read_clock(e, mode, l, began, out, end);
}

int stopwatch_clock(Executor *e, const LaunchList *l, ClockMode mode, StallWait wait,
                    DeviceClock *out, LaunchEnd *end)
{
    memset(out, 0, sizeof *out);
    memset(end, 0, sizeof *end);
    int stopped = clock_sequence(e, l, mode, wait, out, end);
    if (stopped) executor_autopsy(e, end);
    return stopped;
}

/* ---- counters ---- */

typedef struct {
    Executor *e;
    const LaunchList *l;
    LaunchEnd *end;
    int stopped;
} Counted;

static int prepare_pass(void *of, Error *err)
{
    Counted *c = of;
    CuResult r = begin_cold(c->e, 1, (StallWait){0});
    return cuda_check(r == CU_OK ? executor_wait(c->e) : r, "flushing the L2", err);
}

static int run_pass(void *of, Error *err)
{
    Counted *c = of;
    c->stopped = executor_run(c->e, c->l, c->end);
    return c->stopped ? error_set(err, ERROR_DEVICE, "the launches fail under the profiler: %s",
                                  c->end->text)
                      : 0;
}

int stopwatch_counters(Executor *e, const LaunchList *l, DeviceCounter *out, int *n, LaunchEnd *end,
                       Error *err)
{
    Counted counted = {e, l, end, 0};
    CuptiWork work = {.context = e->context,
                      .ordinal = e->ordinal,
                      .prepare = prepare_pass,
                      .run = run_pass,
                      .of = &counted};
    memset(end, 0, sizeof *end);
    int rc = cupti_counters(&work, out, n, err);
    return rc && counted.stopped ? 1 : rc;
}

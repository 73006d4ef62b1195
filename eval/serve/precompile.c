/* A pool of compiling processes and the jobs that wait for them. A slot holds one leased job from
 * the take to the hand-over. After a failed compilation the runner compiles the job. */
#include "eval/serve/precompile.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "eval/candidate/candidate.h"
#include "eval/compile/compile_client.h"
#include "eval/compile/wire.h"
#include "eval/judge/compile_ahead.h"
#include "eval/serve/job.h"

enum {
    SPARE_JOBS = 2, /* compiled jobs that may wait beside those in compilation */
    MORE = 3,       /* times as many jobs are held while the queue is deep */
    DEEP = 64,      /* jobs that wait then beside twice those that are leased */
    MOST_CLASSES = 64,
    COMPILER_S = 200, /* longer than the compiler's own limits allow */
    FRAME_S = 10,
    RESTARTS = 50, /* of processes in all; then the runner compiles everything */
    TASKS_BEGUN = 1 << 16
};
static const double take_interval_s = 0.2;   /* while the queue is empty */
static const double turn_interval_s = 0.005; /* while another worker takes jobs */

typedef enum { FREE, TAKEN, COMPILING, READY } SlotState;

typedef struct {
    SlotState state;
    char consumer[160];
    PrecompiledJob made;
    int lost;            /* the lease was lost during the compilation: drop the result */
    unsigned long order; /* of takes */
    double renew_at;
} Slot;

typedef struct {
    Forked child;
    int slot; /* -1: idle */
    double deadline;
} Helper;

/* What compiling processes have in common. begun: by the hash of a task's name, whether one of them has
 * compiled what its first verdict needs; NULL: none does. */
typedef struct {
    const char *arch;
    atomic_uchar *begun;
} HelperContext;

struct Precompile {
    PrecompileOptions opt;
    HelperContext context;
    int n_slots, restarts;
    unsigned long taken;
    double next_take;
    char kin[QUEUE_MAX_KEY + 1]; /* the task of the job that was taken last */
    Slot slots[MORE * (PRECOMPILE_MAX_COMPILERS + SPARE_JOBS)];
    Helper helpers[PRECOMPILE_MAX_COMPILERS];
};

/* ---- a compiling process ---- */

/* Compile a job's candidate. The frame holds the key and the compiler's reply; it stays empty when
 * the candidate is refused before the compiler, or the compiler fails. */
static void compile_job(Compiler *c, const char *arch, const Buffer *body, Buffer *frame)
{
    Job job;
    Candidate candidate;
    CompileResult result;
    Fault unused;
    const char *key;
    buffer_clear(frame);
    if (job_decode(body->data, body->len, &job, NULL)) return;
    if (!candidate_parse(job.source, job.source_len, 0, &candidate, &unused) &&
        candidate.plan.n_kernels) {
        const char **names = plan_kernel_names(&candidate.plan);
        CompileRequest request = {arch,          candidate.source,
                                  candidate.len, candidate.plan.n_kernels,
                                  names,         candidate.plan.n_ops > 0};
        if (!compiler_run(c, &request, &result, NULL)) {
            const Buffer *reply = compiler_reply(c, &key);
            if (reply->len > RUNNER_MAX_COMPILED || wire_puts(frame, key) ||
                wire_put(frame, reply->data, reply->len))
                buffer_clear(frame);
        }
        compile_result_release(&result);
        free(names);
    }
    candidate_release(&candidate);
}

static const char *cache_dir(void)
{
    const char *dir = getenv("QUERN_CACHE");
    return dir && *dir ? dir : NULL;
}

/* Other jobs of the task follow, often for the same evaluator. */
static void compile_task(Compiler *c, const HelperContext *x, const Buffer *body)
{
    Job job;
    TaskSet set = {0};
    if (!x->begun || job_decode(body->data, body->len, &job, NULL)) return;
    uint64_t at = random_hash(job.task, strlen(job.task)) % TASKS_BEGUN;
    if (atomic_exchange(&x->begun[at], 1)) return;
    if (taskset_load(NULL, job.task, &set, NULL)) return;
    Task *t = taskset_find(&set, job.task, strlen(job.task)); /* not "all", or a set */
    if (t) compile_ahead(c, x->arch, t);
    taskset_release(&set);
}

static void helper_child(const void *ctx)
{
    const HelperContext *x = ctx;
    Compiler *c;
    Buffer body, frame;
    buffer_init(&body, QUEUE_MAX_BODY);
    buffer_init(&frame, RUNNER_MAX_JOB);
    if (compiler_open(&(CompilerOptions){.cache_dir = cache_dir()}, &c, NULL)) _exit(1);
    while (wire_read_frame(FORKED_FD, QUEUE_MAX_BODY, 0, &body, NULL) == 1) {
        compile_job(c, x->arch, &body, &frame);
        if (wire_write_frame(FORKED_FD, frame.data, frame.len, NULL)) _exit(1);
        compile_task(c, x, &body);
    }
    compiler_close(c);
    _exit(0);
}

static void helper_stop(Helper *h)
{
    runner_kill(&h->child);
    h->slot = -1;
}

/* ---- slots ---- */

static void slot_free(Slot *s)
{
    if (s->state == FREE) return;
    precompiled_job_release(&s->made);
    s->state = FREE;
    s->lost = 0;
}

static void slot_ready(Slot *s)
{
    if (s->lost)
        slot_free(s);
    else
        s->state = READY;
}

/* Stop a failed helper. Its job goes to the runner without a compilation. */
static void helper_failed(Precompile *p, Helper *h, const char *why)
{
    if (h->slot >= 0) {
        log_warn("job %.12s: compiling ahead failed (%s)", p->slots[h->slot].made.job.key, why);
        slot_ready(&p->slots[h->slot]);
    }
    helper_stop(h);
    p->restarts++;
}

static void helper_read(Precompile *p, Helper *h)
{
    Buffer frame;
    Error err = {.code = ERROR_CHILD, .text = "it ended"};
    const char *key, *reply;
    size_t key_len, len;
    buffer_init(&frame, RUNNER_MAX_JOB);
    if (wire_read_frame(h->child.fd, RUNNER_MAX_JOB, FRAME_S, &frame, &err) != 1 || h->slot < 0) {
        helper_failed(p, h, err.text);
    } else {
        Slot *s = &p->slots[h->slot];
        WireCursor cursor = {frame.data, frame.data + frame.len};
        if (!wire_get(&cursor, &key, &key_len) && !wire_get(&cursor, &reply, &len)) {
            snprintf(s->made.key, sizeof s->made.key, "%.*s", (int)key_len, key);
            buffer_append(&s->made.compiled, reply, len);
        }
        slot_ready(s);
        h->slot = -1;
    }
    buffer_release(&frame);
}

static void read_all(Precompile *p)
{
    for (int i = 0; i < p->opt.compilers; i++) {
        Helper *h = &p->helpers[i];
        if (!h->child.pid) continue;
        struct pollfd f = {h->child.fd, POLLIN, 0};
        if (poll(&f, 1, 0) > 0)
            helper_read(p, h);
        else if (h->slot >= 0 && clock_seconds() > h->deadline)
            helper_failed(p, h, "it took too long");
    }
}

static int renew_all(Precompile *p, Error *err)
{
    for (int i = 0; i < p->n_slots; i++) {
        Slot *s = &p->slots[i];
        if (s->state == FREE || s->lost || clock_seconds() < s->renew_at) continue;
        int held = queue_renew(p->opt.queue, &s->made.job, err);
        if (held < 0) return -1;
        s->renew_at = clock_seconds() + queue_renew_interval(p->opt.queue);
        if (held) continue;
        s->lost = 1;
        if (s->state != COMPILING) slot_free(s);
    }
    return 0;
}

static void note_kin(Precompile *p, const Buffer *body)
{
    Job job;
    int known = !job_decode(body->data, body->len, &job, NULL);
    snprintf(p->kin, sizeof p->kin, "%s", known ? job.task : "");
}

/* Take a job into a free slot, with `kin` one of the last one's task. Returns 1 with a job, 0 without, -1 on
 * an error. */
static int take_into(Precompile *p, Slot *s, double timeout_s, int kin, Error *err)
{
    const PrecompileOptions *o = &p->opt;
    QueueConsumer waiting = *o->consumer;
    waiting.name = s->consumer;
    if (kin) waiting.kin = p->kin;
    s->made = (PrecompiledJob){.key = ""};
    int rc = job_take(o->queue, &waiting, o->uuid, timeout_s, &s->made.job, err);
    if (rc <= 0) return rc;
    note_kin(p, &s->made.job.body);
    buffer_init(&s->made.compiled, RUNNER_MAX_COMPILED);
    s->state = TAKEN;
    s->order = p->taken++;
    s->renew_at = clock_seconds() + queue_renew_interval(o->queue);
    return 1;
}

/* Held jobs where the queue is not deep. */
static int usual(const Precompile *p)
{
    return p->n_slots / MORE;
}

static int count_held(const Precompile *p)
{
    int n = 0;
    for (int i = 0; i < p->n_slots; i++) n += p->slots[i].state != FREE;
    return n;
}

/* When at most half of the usual number is held: jobs that follow one another in the queue are often of
 * one task, whose contents the evaluator that has drawn them keeps. Taken one by one, each of two
 * evaluators on a GPU would draw those of every task. */
static int wants_jobs(const Precompile *p)
{
    return 2 * count_held(p) <= usual(p) && !stop_requested();
}

/* How many jobs may be held (*most), and until the last one's task ends (*whole): others that want jobs find
 * enough of them. */
static void find_limits(const Precompile *p, int *most, int *whole)
{
    QueueStatus list[MOST_CLASSES];
    int n = queue_status(p->opt.queue, list, MOST_CLASSES, NULL);
    *most = *whole = usual(p);
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i].device_class, p->opt.consumer->classes[0])) continue;
        if (list[i].waiting > list[i].leased) *whole = p->n_slots;
        if (list[i].waiting > 2 * list[i].leased + DEEP) *most = p->n_slots;
    }
}

/* Alone: where several workers take at the same time, each gets some jobs of every task. */
static int take_in_turn(Precompile *p, Error *err)
{
    int most, whole, held = count_held(p);
    find_limits(p, &most, &whole);
    for (int i = 0; i < p->n_slots && held < whole; i++) {
        const int kin = held >= most;
        if (kin && !*p->kin) return 0;
        if (p->slots[i].state != FREE) continue;
        int rc = take_into(p, &p->slots[i], 0, kin, err);
        if (rc < 0) return -1;
        if (rc == 0 && kin) return 0;
        if (rc == 0) {
            p->next_take = clock_seconds() + take_interval_s;
            return 0;
        }
        held++;
    }
    return 0;
}

static int take_all(Precompile *p, Error *err)
{
    Queue *q = p->opt.queue;
    Error ignored; /* the turn ends by itself */
    if (!wants_jobs(p) || clock_seconds() < p->next_take) return 0;
    int rc = queue_turn(q, p->opt.consumer, 1, err);
    if (rc == 0) p->next_take = clock_seconds() + turn_interval_s;
    if (rc <= 0) return rc;
    rc = take_in_turn(p, err);
    queue_turn(q, p->opt.consumer, 0, rc ? &ignored : err);
    return rc;
}

static Slot *oldest(Precompile *p, SlotState state)
{
    Slot *first = NULL;
    for (int i = 0; i < p->n_slots; i++) {
        Slot *s = &p->slots[i];
        if (s->state == state && (!first || s->order < first->order)) first = s;
    }
    return first;
}

/* Give the oldest jobs to idle helpers. After RESTARTS failures no helper is started again. */
static void assign(Precompile *p)
{
    Error err;
    for (int i = 0; i < p->opt.compilers; i++) {
        Helper *h = &p->helpers[i];
        Slot *s = oldest(p, TAKEN);
        if (!s) return;
        if (h->slot >= 0) continue;
        if (p->restarts > RESTARTS ||
            (!h->child.pid && runner_fork(&h->child, helper_child, &p->context, &err))) {
            slot_ready(s);
            continue;
        }
        s->state = COMPILING;
        h->slot = (int)(s - p->slots);
        h->deadline = clock_seconds() + COMPILER_S;
        const Buffer *body = &s->made.job.body;
        if (wire_write_frame(h->child.fd, body->data, body->len, &err))
            helper_failed(p, h, err.text);
    }
}

int precompile_advance(Precompile *p, Error *err)
{
    read_all(p);
    if (renew_all(p, err) || take_all(p, err)) return -1;
    assign(p);
    return 0;
}

int precompile_poll_fds(const Precompile *p, struct pollfd *fds, double *due)
{
    int n = 0;
    *due = clock_seconds() + 1;
    for (int i = 0; i < p->opt.compilers; i++) {
        if (!p->helpers[i].child.pid) continue;
        fds[n++] = (struct pollfd){p->helpers[i].child.fd, POLLIN, 0};
    }
    for (int i = 0; i < p->n_slots; i++) {
        const Slot *s = &p->slots[i];
        if (s->state != FREE && !s->lost && s->renew_at < *due) *due = s->renew_at;
    }
    if (wants_jobs(p) && p->next_take < *due) *due = p->next_take;
    return n;
}

/* ---- the interface ---- */

/* Of all processes that are forked. NULL: there is no memory, and they do without. */
static atomic_uchar *begun_new(void)
{
    void *at = mmap(NULL, TASKS_BEGUN * sizeof(atomic_uchar), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

int precompile_open(const PrecompileOptions *opt, Precompile **out, Error *err)
{
    if (opt->compilers < 1 || opt->compilers > PRECOMPILE_MAX_COMPILERS)
        return error_set(err, ERROR_INVALID, "%d compiling processes; expected 1 to %d",
                         opt->compilers, PRECOMPILE_MAX_COMPILERS);
    Precompile *p = memory_alloc(sizeof *p);
    p->opt = *opt;
    p->context.arch = opt->arch;
    if (opt->measures && cache_dir()) p->context.begun = begun_new();
    p->n_slots = MORE * (opt->compilers + SPARE_JOBS);
    for (int i = 0; i < opt->compilers; i++)
        p->helpers[i] = (Helper){.child = {.fd = -1}, .slot = -1};
    for (int i = 0; i < p->n_slots; i++) {
        snprintf(p->slots[i].consumer, sizeof p->slots[i].consumer, "%s+%d", opt->consumer->name,
                 i);
    }
    for (int i = 0; i < opt->compilers; i++)
        if (runner_fork(&p->helpers[i].child, helper_child, &p->context, err)) {
            precompile_close(p);
            return -1;
        }
    *out = p;
    return 0;
}

void precompile_close(Precompile *p)
{
    Error err;
    int reachable = 1;
    if (!p) return;
    for (int i = 0; i < p->n_slots; i++) {
        Slot *s = &p->slots[i];
        if (s->state != FREE && !s->lost && reachable)
            reachable = queue_hand_back(p->opt.queue, &s->made.job, &err) >= 0;
        slot_free(s);
    }
    for (int i = 0; i < p->opt.compilers; i++) helper_stop(&p->helpers[i]);
    if (p->context.begun) munmap(p->context.begun, TASKS_BEGUN * sizeof *p->context.begun);
    free(p);
}

static void poll_until(const Precompile *p, double end)
{
    struct pollfd fds[PRECOMPILE_MAX_COMPILERS + 1];
    double due;
    int n = precompile_poll_fds(p, fds, &due);
    fds[n++] = (struct pollfd){stop_fd(), POLLIN, 0};
    if (end < due) due = end;
    double left = due - clock_seconds();
    poll(fds, (nfds_t)n, left > 0 ? (int)(left * 1000) + 1 : 0);
}

/* Hand a slot's job over to the consumer. Returns 0 when its lease was lost meanwhile. */
static int hand_over(Precompile *p, Slot *s, PrecompiledJob *out, Error *err)
{
    int held = queue_begin(p->opt.queue, &s->made.job, p->opt.consumer->name, err);
    if (held > 0) {
        *out = s->made;
        s->made = (PrecompiledJob){.key = ""};
    }
    slot_free(s);
    return held;
}

int precompile_next(Precompile *p, double timeout_s, PrecompiledJob *out, Error *err)
{
    double end = clock_seconds() + timeout_s;
    for (;;) {
        Slot *s;
        if (precompile_advance(p, err)) return -1;
        while (!stop_requested() && (s = oldest(p, READY))) {
            int rc = hand_over(p, s, out, err);
            if (rc) return rc;
        }
        double left = end - clock_seconds();
        if (left <= 0 || stop_requested()) return 0;
        if (oldest(p, TAKEN) || oldest(p, COMPILING)) {
            poll_until(p, end);
        } else { /* every slot is free: wait for a new job */
            if (take_into(p, &p->slots[0], left, 0, err) < 0) return -1;
        }
    }
}

void precompiled_job_release(PrecompiledJob *j)
{
    queue_job_release(&j->job);
    buffer_release(&j->compiled);
}

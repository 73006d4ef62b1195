/* quern-scrapebench: what quern-metrics costs the jobs beside it while Prometheus asks it 100 times a
 * second. Jobs run in pairs, one with the server asked, one with the server stopped, in alternating
 * order. The median of the pairs' ratios cancels a machine's slow changes. The processor time of the
 * server says the same without noise. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "eval/judge/evaluator.h"
#include "eval/judge/statistics.h"

enum { MAX_PAIRS = 2000, ANSWER_MAX = 1 << 20, WAIT_S = 30 };

/* What the processes share. */
typedef struct {
    atomic_int on;       /* the scraper asks */
    atomic_long scraped; /* answers with status 200 */
    atomic_long failed;
} Shared;

typedef struct {
    const char *runs, *task;
    int64_t pairs, port;
    double rate;
} Options;

/* ---- the scraper ---- */

static int connect_to(int64_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {2, 0};
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof to)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Asks once on an open connection, as Prometheus does. Returns whether the answer was whole. */
static int scrape(int fd, char *answer)
{
    static const char ask[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    size_t n = 0, head = 0, length = 0;
    if (fd < 0 || write(fd, ask, sizeof ask - 1) != (ssize_t)sizeof ask - 1) return 0;
    while (!head || n < head + length) {
        ssize_t got = read(fd, answer + n, ANSWER_MAX - 1 - n);
        if (got <= 0) return 0;
        n += (size_t)got;
        answer[n] = 0;
        const char *end = head ? NULL : strstr(answer, "\r\n\r\n");
        const char *field = end ? strcasestr(answer, "Content-Length:") : NULL;
        if (!field) continue;
        head = (size_t)(end + 4 - answer);
        length = strtoul(field + strlen("Content-Length:"), NULL, 10);
    }
    return strstr(answer, " 200 ") && strstr(answer, "quern_run_state");
}

static _Noreturn void scrape_for_ever(const Options *o, Shared *s)
{
    char *answer = memory_alloc(ANSWER_MAX);
    int fd = connect_to(o->port);
    process_die_with_parent();
    for (double next = clock_seconds();;) {
        if (!atomic_load(&s->on)) {
            clock_sleep(0.001);
            next = clock_seconds();
            continue;
        }
        int ok = scrape(fd, answer);
        atomic_fetch_add(ok ? &s->scraped : &s->failed, 1);
        if (!ok && fd >= 0) close(fd);
        if (!ok) fd = connect_to(o->port);
        next += 1 / o->rate;
        double now = clock_seconds();
        if (next > now) clock_sleep(next - now);
    }
}

/* ---- the server ---- */

static pid_t start_server(const Options *o)
{
    char program[4096], port[16];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 32);
    if (n < 0) n = 0;
    program[n] = 0;
    char *slash = strrchr(program, '/');
    strcpy(slash ? slash + 1 : program, "quern-metrics");
    snprintf(port, sizeof port, "%d", (int)o->port);
    pid_t pid = fork();
    if (pid) return pid;
    process_die_with_parent();
    execl(program, program, "--runs", o->runs, "--port", port, (char *)NULL);
    _exit(127);
}

static double cpu_of(pid_t pid)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t)) return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the jobs ---- */

typedef struct {
    double wall, cpu; /* seconds of one job */
} Spent;

static Spent job(Evaluator *e, const Task *t, long number)
{
    Verdict v;
    char *source = memory_printf("%s\n// job %ld\n", t->baseline_source, number);
    double start = clock_seconds(), cpu = cpu_of(0);
    evaluator_run(e, t->name, source, strlen(source), &v);
    Spent s = {clock_seconds() - start, cpu_of(0) - cpu};
    if (v.outcome != OUTCOME_OK) log_warn("%s: %s", outcome_name(v.outcome), v.message);
    verdict_release(&v);
    free(source);
    return s;
}

static void print_ratio(const char *what, const double *ratios, int n)
{
    Interval in;
    statistics_median_interval(ratios, n, &in);
    printf("%-34s %+.2f%%, 95%% interval %+.2f%% to %+.2f%%\n", what, 100 * (in.middle - 1),
           100 * (in.low - 1), 100 * (in.high - 1));
}

static void measure(const Options *o, Evaluator *e, const Task *t, pid_t server, Shared *s)
{
    static double wall[MAX_PAIRS], cpu[MAX_PAIRS];
    double on_s = 0, server_s = 0;
    for (int i = 0; i < o->pairs; i++) {
        Spent spent[2];
        for (int k = 0; k < 2; k++) {
            int on = k ^ (i & 1);
            double start = clock_seconds(), before = cpu_of(server);
            kill(server, on ? SIGCONT : SIGSTOP);
            atomic_store(&s->on, on);
            spent[on] = job(e, t, 2L * i + k);
            atomic_store(&s->on, 0);
            if (!on) continue;
            clock_sleep(0.005); /* the last answer is sent */
            server_s += cpu_of(server) - before;
            on_s += clock_seconds() - start;
        }
        wall[i] = spent[1].wall / spent[0].wall;
        cpu[i] = spent[1].cpu / spent[0].cpu;
    }
    printf("pairs of jobs: %d; scrapes: %ld in %.1f s, %.0f a second; %ld failed\n", (int)o->pairs,
           atomic_load(&s->scraped), on_s, (double)atomic_load(&s->scraped) / on_s,
           atomic_load(&s->failed));
    print_ratio("time of a job, asked / stopped", wall, (int)o->pairs);
    print_ratio("its processor time", cpu, (int)o->pairs);
    printf("%-34s %.2f%% of a core, %.0f us a scrape\n", "processor time of the server",
           100 * server_s / on_s, 1e6 * server_s / (double)atomic_load(&s->scraped));
}

static int run(const Options *o, Error *err)
{
    Evaluator *e;
    Shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) return error_errno(err, "cannot share memory");
    if (evaluator_open(&(EvaluatorOptions){.device = "sim:h100", .cache_dir = "", .seed = 1}, &e,
                       err))
        return -1;
    const Task *t = evaluator_task(e, o->task, err);
    pid_t server = t ? start_server(o) : -1, scraper = -1;
    char *answer = memory_alloc(ANSWER_MAX);
    double end = clock_seconds() + WAIT_S;
    int up = 0;
    while (t && !up && clock_seconds() < end) {
        int fd = connect_to(o->port);
        up = scrape(fd, answer);
        if (fd >= 0) close(fd);
        if (!up) clock_sleep(0.05);
    }
    if (up && (scraper = fork()) == 0) scrape_for_ever(o, s);
    if (up) {
        job(e, t, -1); /* references and inputs are made once */
        measure(o, e, t, server, s);
    } else if (t) {
        error_set(err, ERROR_SERVER, "quern-metrics does not answer for the runs below %s",
                  o->runs);
    }
    pid_t pids[] = {scraper, server};
    for (int i = 0; i < 2; i++) {
        if (pids[i] <= 0) continue;
        kill(pids[i], SIGKILL);
        while (waitpid(pids[i], NULL, 0) < 0 && errno == EINTR) continue;
    }
    free(answer);
    evaluator_close(e);
    munmap(s, sizeof *s);
    return up ? 0 : -1;
}

int main(int argc, char **argv)
{
    Options o = {.runs = "runs", .task = "softmax", .pairs = 100, .port = 19464, .rate = 100};
    const Flag flags[] = {{.name = "runs",
                           .kind = FLAG_TEXT,
                           .target = &o.runs,
                           .help = "the folder of the runs that are served; one is needed"},
                          {.name = "task",
                           .kind = FLAG_TEXT,
                           .target = &o.task,
                           .help = "whose baseline each job judges"},
                          {.name = "pairs",
                           .kind = FLAG_INT,
                           .target = &o.pairs,
                           .help = "of jobs",
                           .min = 8,
                           .max = MAX_PAIRS},
                          {.name = "port",
                           .kind = FLAG_INT,
                           .target = &o.port,
                           .help = "of the server",
                           .min = 1,
                           .max = 65535},
                          {.name = "rate",
                           .kind = FLAG_FLOAT,
                           .target = &o.rate,
                           .help = "scrapes a second",
                           .min = 1,
                           .max = 10000},
                          {0}};
    const FlagSpec spec = {.program = "quern-scrapebench",
                           .synopsis = "[--runs DIR] [--pairs N]",
                           .about = "Measure what scrapes of quern-metrics cost the jobs beside "
                                    "it: pairs of evaluations with and without.",
                           .flags = flags};
    Error err;
    const char *words[1];
    flags_parse(&spec, argc, argv, words);
    log_open("quern-scrapebench");
    if (run(&o, &err)) log_die(&err);
    return log_close(0);
}

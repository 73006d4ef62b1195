/* A small mutating fuzzer for gcc, which has no libFuzzer: runs every seed as it is, then mutants
 * of the seeds for --seconds N. The same --seed gives the same mutants. An input that crashes,
 * takes more than 10 s of CPU time or trips a sanitizer is saved as crash-<digest> in the working
 * directory. fuzz_x [--seconds N] [--seed N] SEED_FILE_OR_DIR... */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Present in a sanitized build only: there the sanitizer reports, and calls back before it ends. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "halt_on_error=1:print_stacktrace=1";
}

enum { MAX_SEED = 1 << 20, MAX_GROWTH = 4096, HANG_S = 10 };

typedef struct {
    uint8_t *data;
    size_t size;
} Input;

static Input *seeds;
static size_t n_seeds;

/* What runs now, for the crash handler. */
static const uint8_t *running;
static size_t running_size;

/* Only what a signal handler may do: the name was made before. */
static char crash_name[64];

static void save_running(void)
{
    if (!running) return;
    int fd = open(crash_name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0) return;
    for (size_t at = 0; at < running_size;) {
        ssize_t n = write(fd, running + at, running_size - at);
        if (n <= 0) break;
        at += (size_t)n;
    }
    close(fd);
    static const char said[] = "fuzz: crashing input saved as ";
    if (write(STDERR_FILENO, said, sizeof said - 1) < 0 ||
        write(STDERR_FILENO, crash_name, strlen(crash_name)) < 0 ||
        write(STDERR_FILENO, "\n", 1) < 0)
        return;
}

static void on_crash(int sig)
{
    save_running();
    signal(sig, SIG_DFL);
    raise(sig);
}

/* A library that exits on its own is a finding as well. */
static void on_exit_inside(void)
{
    if (!running) return;
    save_running();
    _exit(1);
}

/* In time of this process' own: on a busy machine the clock says nothing about the input. What
 * sleeps for ever is left to the time limit of fuzz.t. */
static void hang_after(int seconds)
{
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

static void run_one(const uint8_t *data, size_t size)
{
    /* An allocation of the exact size, so that a sanitizer sees a read past the end. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return;
    memcpy(copy, data, size);
    snprintf(crash_name, sizeof crash_name, "crash-%016llx",
             (unsigned long long)random_hash(data, size));
    running_size = size;
    running = copy;
    hang_after(HANG_S);
    LLVMFuzzerTestOneInput(copy, size);
    hang_after(0);
    running = NULL;
    free(copy);
}

static void add_seed(const char *path)
{
    Buffer b;
    Error err;
    buffer_init(&b, 0);
    if (file_read(path, MAX_SEED, &b, &err)) {
        fprintf(stderr, "fuzz: seed skipped: %s\n", err.text);
        buffer_release(&b);
        return;
    }
    seeds = memory_grow(seeds, n_seeds + 1, sizeof *seeds);
    seeds[n_seeds].size = b.len;
    seeds[n_seeds++].data = (uint8_t *)buffer_detach(&b);
    buffer_release(&b);
}

/* Sorted, so that the order of a directory does not change the run. */
static void add_seeds(const char *path)
{
    struct stat st;
    struct dirent **names;
    if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
        add_seed(path);
        return;
    }
    int n = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.') {
            char *inside = memory_printf("%s/%s", path, names[i]->d_name);
            add_seeds(inside);
            free(inside);
        }
        free(names[i]);
    }
    if (n >= 0) free(names);
}

static void put_integer(Random *r, uint8_t *p, size_t room)
{
    static const uint64_t interesting[] = {0,
                                           1,
                                           2,
                                           7,
                                           8,
                                           15,
                                           16,
                                           31,
                                           32,
                                           63,
                                           64,
                                           100,
                                           127,
                                           128,
                                           255,
                                           256,
                                           511,
                                           512,
                                           1000,
                                           1023,
                                           1024,
                                           4096,
                                           32767,
                                           32768,
                                           65535,
                                           65536,
                                           0x7fffffff,
                                           0x80000000,
                                           0xffffffff,
                                           0x100000000,
                                           0x7fffffffffffffff,
                                           0x8000000000000000,
                                           0xffffffffffffffff};
    uint64_t v = interesting[random_below(r, sizeof interesting / sizeof *interesting)];
    size_t width = (size_t)1 << random_below(r, 4);
    int big = (int)random_below(r, 2);
    for (size_t i = 0; i < width && i < room; i++)
        p[i] = (uint8_t)(v >> (8 * (big ? width - 1 - i : i)));
}

static size_t insert(uint8_t *m, size_t n, size_t at, const uint8_t *what, size_t len, size_t cap)
{
    if (n + len > cap) return n;
    memmove(m + at + len, m + at, n - at);
    memmove(m + at, what, len);
    return n + len;
}

/* A decimal number as text, for formats made of text. */
static size_t insert_decimal(Random *r, uint8_t *m, size_t n, size_t at, size_t cap)
{
    static const char *const numbers[] = {"0",
                                          "-1",
                                          "1e999",
                                          "4294967296",
                                          "-2147483649",
                                          "9223372036854775808",
                                          "18446744073709551616",
                                          "0.5",
                                          "99999999999999999999"};
    const char *s = numbers[random_below(r, sizeof numbers / sizeof *numbers)];
    return insert(m, n, at, (const uint8_t *)s, strlen(s), cap);
}

/* One change; returns the new length. */
static size_t mutate(Random *r, uint8_t *m, size_t n, size_t cap)
{
    size_t at = n ? random_below(r, n) : 0, len;
    uint8_t fresh[16];
    const Input *other;
    switch (random_below(r, 9)) {
    case 0:
        if (n) m[at] ^= (uint8_t)(1u << random_below(r, 8));
        return n;
    case 1:
        if (n) m[at] = (uint8_t)random_u64(r);
        return n;
    case 2: return at; /* truncate */
    case 3:
        len = 1 + random_below(r, sizeof fresh);
        for (size_t i = 0; i < len; i++) fresh[i] = (uint8_t)random_u64(r);
        return insert(m, n, at, fresh, len, cap);
    case 4:
        if (n) put_integer(r, m + at, n - at);
        return n;
    case 5: /* delete */
        len = n > at ? 1 + random_below(r, n - at < 32 ? n - at : 32) : 0;
        memmove(m + at, m + at + len, n - at - len);
        return n - len;
    case 6: /* repeat a piece */
        len = n > at ? 1 + random_below(r, n - at < 64 ? n - at : 64) : 0;
        if (n + len > cap) return n;
        memmove(m + at + len, m + at, n - at);
        return n + len;
    case 7: return insert_decimal(r, m, n, at, cap);
    default: /* splice: another seed's tail from a point of its own */
        other = &seeds[random_below(r, n_seeds)];
        len = other->size ? random_below(r, other->size) : 0;
        len = at + len > cap ? cap - at : len;
        if (len) memcpy(m + at, other->data + other->size - len, len);
        return at + len;
    }
}

static void fuzz(double seconds, uint64_t seed)
{
    size_t cap = MAX_SEED + MAX_GROWTH;
    uint8_t *m = memory_alloc(cap);
    long runs = 0;
    Random r;
    random_init(&r, seed, random_hash("fuzz", 4));
    for (double start = clock_seconds();
         (seconds > 0 && !runs) || clock_seconds() - start < seconds; runs++) {
        const Input *from = &seeds[random_below(&r, n_seeds)];
        size_t n = from->size;
        memcpy(m, from->data, n);
        for (uint64_t changes = 1 + random_below(&r, 6); changes; changes--)
            n = mutate(&r, m, n, cap);
        run_one(m, n);
    }
    printf("fuzz: %zu seeds, %ld mutants, no crash\n", n_seeds, runs);
    free(m);
}

static double number(const char *text)
{
    char *rest;
    double v = strtod(text, &rest);
    if (rest == text || *rest || v < 0) {
        fprintf(stderr, "fuzz: expected a number of 0 or more, found '%s'\n", text);
        exit(2);
    }
    return v;
}

int main(int argc, char **argv)
{
    double seconds = 0, seed = 1;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = number(argv[++i]);
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            seed = number(argv[++i]);
        else
            add_seeds(argv[i]);
    }
    if (!n_seeds) { /* an empty input is a seed too */
        seeds = memory_alloc(sizeof *seeds);
        seeds[n_seeds++] = (Input){memory_alloc(1), 0};
    }
    static const int fatal[] = {SIGABRT, SIGPROF, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    size_t n_fatal = sizeof fatal / sizeof *fatal;
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(save_running);
        n_fatal = 2; /* the others are the sanitizer's own to report */
    }
    for (size_t i = 0; i < n_fatal; i++) signal(fatal[i], on_crash);
    atexit(on_exit_inside);
    for (size_t i = 0; i < n_seeds; i++) run_one(seeds[i].data, seeds[i].size);
    fuzz(seconds, (uint64_t)seed);
    for (size_t i = 0; i < n_seeds; i++) free(seeds[i].data);
    free(seeds);
    return 0;
}

/* Counters over a library, made here, that has CUPTI's ABI: the order of calls, the passes, metrics
 * that a chip does not have, and activity records where counting is not allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "eval/cuda/measure/cupti.h"

static const char library_source[] =
    "#include <stdint.h>\n#include <stddef.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "typedef struct { size_t size; void *priv, *p[12]; } S;\n"
    "static int started, pushed, pass, enabled; static void (*wanted)(uint8_t **, size_t *, size_t "
    "*);\n"
    "static void (*full)(void *, uint32_t, uint8_t *, size_t, size_t);\n"
    "static int refused(void) { return getenv(\"FAKE_REFUSES\") ? 35 : 0; }\n"
    "int cuptiGetResultString(int r, const char **t) { (void)r; *t = \"FAKE_RESULT\"; return 0; }\n"
    "int cuptiProfilerInitialize(S *s) { return s->size != 16; }\n"
    "int cuptiDeviceGetChipName(S *s) { s->p[1] = \"GH100\"; return s->p[0] != (void *)3; }\n"
    "int cuptiProfilerGetCounterAvailability(S *s) { if (refused()) return 35; if (!s->p[2]) "
    "s->p[1] = (void *)64; return s->size != 40; }\n"
    "int cuptiProfilerHostInitialize(S *s) { s->p[3] = malloc(1); return strcmp(s->p[1], "
    "\"GH100\") != 0 || s->size != 48; }\n"
    "int cuptiProfilerHostDeinitialize(S *s) { free(s->p[0]); return 0; }\n"
    "int cuptiProfilerHostConfigAddMetrics(S *s) { const char **n = s->p[1]; return "
    "(size_t)s->p[2] == 1 && strstr(n[0], \"stall\") ? 17 : 0; }\n"
    "int cuptiProfilerHostGetConfigImageSize(S *s) { s->p[1] = (void *)100; return s->size != 32; "
    "}\n"
    "int cuptiProfilerHostGetConfigImage(S *s) { memset(s->p[2], 1, 100); return s->size != 40; }\n"
    "int cuptiProfilerHostEvaluateToGpuValues(S *s) { double *v = s->p[6]; for (size_t i = 0; i < "
    "(size_t)s->p[5]; i++) v[i] = (double)i + 1; return s->size != 72; }\n"
    "int cuptiRangeProfilerEnable(S *s) { s->p[1] = &pass; return s->p[0] != (void *)7; }\n"
    "int cuptiRangeProfilerDisable(S *s) { return s->p[0] != &pass; }\n"
    "int cuptiRangeProfilerSetConfig(S *s) { return s->size != 90 || s->p[0] != &pass; }\n"
    "int cuptiRangeProfilerStart(S *s) { (void)s; return started++ != 0; }\n"
    "int cuptiRangeProfilerStop(S *s) { ((uint8_t *)s)[40] = ++pass == 3; started = 0; return "
    "s->size != 41 || pushed; }\n"
    "int cuptiRangeProfilerPushRange(S *s) { return !started || pushed++ || !s->p[1]; }\n"
    "int cuptiRangeProfilerPopRange(S *s) { (void)s; return --pushed; }\n"
    "int cuptiRangeProfilerDecodeData(S *s) { return pass != 3 || s->size != 32; }\n"
    "int cuptiRangeProfilerGetCounterDataSize(S *s) { s->p[5] = (void *)200; return s->size != 64; "
    "}\n"
    "int cuptiRangeProfilerCounterDataImageInitialize(S *s) { memset(s->p[2], 0, 200); return "
    "(size_t)s->p[1] != 200; }\n"
    "int cuptiActivityRegisterCallbacks(void *w, void *f) { wanted = w; full = f; return 0; }\n"
    "int cuptiActivityEnable(int k) { enabled = k; return k != 10; }\n"
    "int cuptiActivityDisable(int k) { enabled = 0; return k != 10; }\n"
    "int cuptiActivityFlushAll(uint32_t f) { uint8_t *b; size_t n, m; wanted(&b, &n, &m); "
    "memset(b, 0, 160); *(int *)b = 10;\n"
    "    *(uint16_t *)(b + 6) = 40; *(uint64_t *)(b + 16) = 1000; *(uint64_t *)(b + 24) = 13500; "
    "int32_t *g = (int32_t *)(b + 52);\n"
    "    g[0] = 5; g[1] = 2; g[2] = 1; g[3] = 128; g[4] = g[5] = 1; g[6] = 16; g[7] = 32; full(0, "
    "0, b, n, 160); return f != 1; }\n"
    "int cuptiActivityGetNextRecord(uint8_t *b, size_t v, void **r) { (void)v; if (*r) return 12; "
    "*r = b; return 0; }\n";

static char folder[] = "/tmp/quern-cupti-XXXXXX";

static int make_library(void **state)
{
    char path[200], command[800];
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/lib64", folder);
    if (mkdir(path, 0700)) return -1;
    snprintf(path, sizeof path, "%s/cupti.c", folder);
    FILE *f = fopen(path, "w");
    if (!f || fputs(library_source, f) < 0 || fclose(f)) return -1;
    snprintf(command, sizeof command, "gcc -w -fPIC -shared -o %s/lib64/libcupti.so.13 %s", folder,
             path);
    if (system(command)) return -1;
    return setenv("CUDA_HOME", folder, 1);
}

static int remove_library(void **state)
{
    char command[200];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static struct {
    int prepared, run, fails;
} work_done;

static int prepare(void *of, Error *err)
{
    (void)of, (void)err;
    work_done.prepared++;
    return 0;
}

static int run(void *of, Error *err)
{
    (void)of;
    work_done.run++;
    return work_done.fails ? error_set(err, ERROR_INVALID, "the kernel trapped") : 0;
}

static const CuptiWork work = {.context = (void *)7, .ordinal = 3, .prepare = prepare, .run = run};

static double value(const DeviceCounter *c, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(c[i].name, name)) return c[i].value;
    return -1;
}

/* Without the right to count, the values come from activity records. A run that fails is an
 * error. */
static void test_records(void **state)
{
    DeviceCounter c[DEVICE_MAX_COUNTERS];
    Error err = {0};
    int n;
    (void)state;
    setenv("FAKE_REFUSES", "1", 1);
    memset(&work_done, 0, sizeof work_done);
    if (cupti_counters(&work, c, &n, &err)) fail_msg("%s", err.text);
    assert_int_equal(work_done.run, 1);
    assert_true(value(c, n, "kernel0_us") == 12.5 && value(c, n, "kernel0_blocks") == 10 &&
                value(c, n, "kernel0_registers") == 40);
    assert_true(value(c, n, "kernel0_threads_a_block") == 128 &&
                value(c, n, "kernel0_shared_bytes") == 48);
    work_done.fails = 1;
    assert_int_equal(cupti_counters(&work, c, &n, &err), -1);
    assert_int_equal(n, 0);
    assert_non_null(strstr(err.text, "the kernel trapped"));
    assert_non_null(strstr(err.text, "NVreg_RestrictProfilingToAdminUsers"));
    unsetenv("FAKE_REFUSES");
}

/* Three passes, each after a preparation. This chip does not have the stall reasons. */
static void test_counters(void **state)
{
    DeviceCounter c[DEVICE_MAX_COUNTERS];
    Error err = {0};
    int n;
    (void)state;
    memset(&work_done, 0, sizeof work_done);
    if (cupti_counters(&work, c, &n, &err)) fail_msg("%s", err.text);
    assert_int_equal(work_done.run, 3);
    assert_int_equal(work_done.prepared, 3);
    assert_true(value(c, n, "time_ns") == 1 && value(c, n, "dram_bytes_read") == 8);
    assert_true(value(c, n, "stall_memory") == -1);
    assert_int_equal(n, 59);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records),
                                       cmocka_unit_test(test_counters)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_library, remove_library);
}

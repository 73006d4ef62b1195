/* The text for people is laid out here; the JSON follows the table in verdict_schema.c. */
#include "eval/judge/verdict_show.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "eval/judge/rivals.h"
#include "eval/judge/statistics.h"
#include "eval/judge/verdict/verdict_schema.h"

static const char *mode_name(ClockMode m)
{
    return m == CLOCK_WARM    ? "warm caches"
           : m == CLOCK_GRAPH ? "cold L2, one CUDA graph"
                              : "cold L2";
}

/* The names of NVML's throttle reasons in `bits`. */
static void throttle_text(uint64_t bits, char *out, size_t size)
{
    static const struct {
        uint64_t bit;
        const char *name;
    } reasons[] = {
        {0x4, "power cap"},       {0x8, "hardware slowdown"},         {0x10, "sync boost"},
        {0x20, "temperature"},    {0x40, "temperature, by hardware"}, {0x80, "power brake"},
        {0x100, "display clocks"}};
    size_t len = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (bits & reasons[i].bit && len < size)
            len +=
                (size_t)snprintf(out + len, size - len, "%s%s", len ? ", " : "", reasons[i].name);
    if (!len)
        snprintf(out, size, bits ? "reason %#llx" : "not throttled", (unsigned long long)bits);
}

static void show_counters(FILE *out, const DeviceTiming *t)
{
    fprintf(out, "  %-28s %16s %16s\n", "counter", "candidate", "baseline");
    for (int i = 0; i < t->n_counters; i++) {
        fprintf(out, "  %-28s %16.6g", t->counters[i].name, t->counters[i].value);
        for (int k = 0; k < t->n_baseline_counters; k++)
            if (!strcmp(t->baseline_counters[k].name, t->counters[i].name))
                fprintf(out, " %16.6g", t->baseline_counters[k].value);
        fputc('\n', out);
    }
}

/* A row for each of several timed workloads. */
static void show_rows(FILE *out, const Verdict *v)
{
    if (v->n_rows) fprintf(out, "  workloads  %d, weighted geometric mean above\n", v->n_rows);
    for (int i = 0; i < v->n_rows; i++) {
        const VerdictRow *r = &v->rows[i];
        fprintf(out, "    %-30s weight %4.2f, %.4fx", r->sizes, r->weight, r->speedup);
        if (!v->predicted) fprintf(out, ", 95%% from %.4f to %.4f", r->low, r->high);
        fprintf(out, "; %.3f us, baseline %.3f us, light %.3f us\n", r->time_us, r->baseline_us,
                r->light_us);
    }
}

/* The error beside eager's and beside the budget. */
static void show_error(FILE *out, const Verdict *v)
{
    if (!v->error_of[0]) return;
    fprintf(out, "  error      %.3g of %s, eager's %.3g", v->own_error, v->error_of,
            v->eager_error);
    if (v->budget > 0) fprintf(out, ", the budget %.3g", v->budget);
    fputc('\n', out);
}

static void show_times(FILE *out, const Verdict *v)
{
    const DeviceTiming *t = v->timing;
    fprintf(out, "  score      %.3f (", v->score);
    if (v->predicted)
        fprintf(out, "%.4fx predicted", v->speedup);
    else
        fprintf(out, "speedup %.4f, 95%% from %.4f to %.4f", v->speedup, v->low, v->high);
    if (v->predicted && v->low < 0.999 * v->speedup)
        fprintf(out, ", from %.4f by the interval of the sample", v->low);
    if (v->error_factor > 0) fprintf(out, ", within %.2gx for 9 kernels in 10", v->error_factor);
    if (t && !v->predicted) fprintf(out, "; %d pairs, %s", t->n, mode_name(t->mode));
    fprintf(out, ")\n  time       %.3f us, baseline %.3f us%s\n", v->time_us, v->baseline_us,
            v->predicted ? " (predicted)" : "");
    if (t && t->n > 1) {
        Interval candidate, baseline;
        statistics_median_interval(t->candidate_us, t->n, &candidate);
        statistics_median_interval(t->baseline_us, t->n, &baseline);
        fprintf(out, "  interval   95%% from %.3f to %.3f us, baseline from %.3f to %.3f us\n",
                candidate.low, candidate.high, baseline.low, baseline.high);
    }
    if (!v->predicted) {
        char rivals[RIVALS_TEXT];
        rivals_text(v, rivals);
        fprintf(out, "  PyTorch    %s%s%s\n", rivals, v->n_rivals ? "; PyTorch " : "", v->torch);
    }
    show_rows(out, v);
    show_error(out, v);
    fprintf(out, "  light      %.3f us by %s: the kernel reaches %.1f%% of it\n", v->light_us,
            v->light_is_flops ? "arithmetic" : "bytes moved",
            v->time_us > 0 ? 100.0 * v->light_us / v->time_us : 0.0);
}

static void show_resources(FILE *out, const Verdict *v)
{
    if (!v->registers) return; /* the plan launches no kernel of its own */
    fprintf(out, "  registers  %d a thread", v->registers);
    if (v->local_bytes)
        fprintf(out, " and %zu bytes of local memory (spills, indexed arrays)", v->local_bytes);
    else
        fprintf(out, ", no spills");
    fprintf(out, "; shared memory %zu bytes a block", v->shared_bytes);
    if (v->occupancy > 0)
        fprintf(out, "; occupancy %.0f%%, limited by %s", 100.0 * v->occupancy, v->occupancy_limit);
    fputc('\n', out);
}

static void show_device(FILE *out, const Verdict *v)
{
    const DeviceTiming *t = v->timing;
    fprintf(out, "  device     %s", v->device_name[0] ? v->device_name : v->device);
    if (v->driver[0]) fprintf(out, ", driver %s", v->driver);
    if (v->uuid[0]) fprintf(out, ", %s", v->uuid);
    fprintf(out, "; %s\n", v->compiler);
    if (!t || !t->after.sm_mhz) return;
    char why[160];
    throttle_text(t->before.throttle | t->after.throttle, why, sizeof why);
    fprintf(out, "  clocks     %u MHz before, %u after, memory %u; %u C, %u W; %s\n",
            t->before.sm_mhz, t->after.sm_mhz, t->after.memory_mhz, t->after.temperature,
            t->after.power_watts, why);
    if (t->after.ecc_errors)
        fprintf(out, "  memory     %llu uncorrected ECC errors\n",
                (unsigned long long)t->after.ecc_errors);
}

void show_text(FILE *out, const char *task, const Verdict *v, int profile)
{
    fprintf(out, "%s on %s: %s", task, v->device, outcome_name(v->outcome));
    if (v->cheat[0]) fprintf(out, " (%s)", v->cheat);
    fputc('\n', out);
    if (v->outcome == OUTCOME_OK) {
        show_times(out, v);
        show_resources(out, v);
    } else {
        fprintf(out, "  %s\n  %s\n", outcome_meaning(v->outcome), v->message);
    }
    show_device(out, v);
    for (int i = 0; i < v->n_checks; i++)
        if (!strncmp(v->checks[i], VERDICT_SHOWN, strlen(VERDICT_SHOWN)))
            fprintf(out, "  %s\n", v->checks[i]);
    for (int i = 0; i < v->n_warnings; i++) fprintf(out, "  warning    %s\n", v->warnings[i]);
    if (v->n_checks) fprintf(out, "  checks     %d passed\n", v->n_checks);
    for (int i = 0; profile && i < v->n_checks; i++) fprintf(out, "    %s\n", v->checks[i]);
    if (profile && v->timing && v->timing->n_counters) show_counters(out, v->timing);
}

void show_steps(FILE *out, const Verdict *v)
{
    double all = 0;
    for (int i = 0; i < v->n_steps; i++) {
        int last = i == v->n_steps - 1 && v->outcome != OUTCOME_OK;
        fprintf(out, "  %-12s %10.1f ms%s\n", v->steps[i].name, v->steps[i].ms,
                last ? " (failed)" : "");
        all += v->steps[i].ms;
    }
    fprintf(out, "  %-12s %10.1f ms\n", "all", all);
    fprintf(out, "  %-12s %10.1f ms of CPU time, when it was compiled\n", "compile",
            v->compile_cpu_s * 1e3);
}

/* ---- JSON ---- */

static json_t *steps_json(const Verdict *v)
{
    json_t *o = json_object();
    for (int i = 0; i < v->n_steps; i++)
        json_object_set_new(o, v->steps[i].name, json_real(v->steps[i].ms));
    json_object_set_new(o, "compile_cpu", json_real(v->compile_cpu_s * 1e3));
    return o;
}

static json_t *counters_json(const DeviceCounter *c, int n)
{
    json_t *o = json_object();
    for (int i = 0; i < n; i++) json_object_set_new(o, c[i].name, json_real(c[i].value));
    return o;
}

/* Compiler messages quote the source, which need not be UTF-8: other bytes become '?'. */
static json_t *text_json(const char *s)
{
    json_t *j = json_string(s);
    if (j) return j;
    char *ascii = strdup(s);
    for (char *p = ascii; p && *p; p++)
        if ((unsigned char)*p >= 0x80) *p = '?';
    j = json_string(ascii ? ascii : "");
    free(ascii);
    return j;
}

static json_t *texts_json(const char *texts, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, text_json(texts + (size_t)i * VERDICT_CHECK_TEXT));
    return list;
}

static json_t *telemetry_json(const DeviceTelemetry *t)
{
    json_t *o = json_object();
    for (int i = 0; i < verdict_n_telemetry; i++)
        json_object_set_new(
            o, verdict_telemetry[i].name,
            json_integer((json_int_t)verdict_telemetry_value(t, &verdict_telemetry[i])));
    return o;
}

static json_t *samples_json(const double *v, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_real(v[i]));
    return list;
}

static json_t *rows_json(const VerdictRow *rows, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *o = json_pack("{s:s}", "sizes", rows[i].sizes);
        for (int k = 0; k < verdict_n_row_fields; k++)
            json_object_set_new(o, verdict_rows[k].name,
                                json_real(verdict_row_value(&rows[i], &verdict_rows[k])));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *field_json(const Verdict *v, const char *task, const VerdictField *f)
{
    const char *holder = verdict_holder(v, f);
    const void *p = holder + f->offset;
    int count = *(const int *)(const void *)(holder + f->count);
    switch (f->storage) {
    case VERDICT_EXTERN: return NULL;
    case VERDICT_TASK: return text_json(task);
    case VERDICT_VERSION: return json_string(VERDICT_HARNESS);
    case VERDICT_CHARS: return text_json(p);
    case VERDICT_INT: return json_integer(*(const int *)p);
    case VERDICT_SIZE: return json_integer((json_int_t) * (const size_t *)p);
    case VERDICT_DOUBLE: return json_real(*(const double *)p);
    case VERDICT_FLAG: return json_boolean(*(const int *)p);
    case VERDICT_OUTCOME: return json_string(outcome_name(*(const Outcome *)p));
    case VERDICT_CEILING: return json_string(*(const int *)p ? "flops" : "bytes");
    case VERDICT_MODE: return json_string(verdict_mode_name(*(const ClockMode *)p));
    case VERDICT_SEED: return json_integer((json_int_t) * (const uint64_t *)p);
    case VERDICT_TEXTS: return texts_json(p, count);
    case VERDICT_COUNTERS: return counters_json(p, count);
    case VERDICT_TELEMETRY: return telemetry_json(p);
    case VERDICT_ROWS: return rows_json(p, count);
    case VERDICT_SAMPLES: return samples_json(p, count);
    }
    return NULL;
}

int show_json(FILE *out, const char *task, const Verdict *v, int steps, Error *err)
{
    json_t *o = json_object();
    int rc = 0;
    for (int i = 0; i < verdict_n_fields && !rc; i++) {
        const VerdictField *f = &verdict_fields[i];
        if (f->in_json && verdict_has(v, f) &&
            json_object_set_new(o, f->name, field_json(v, task, f)))
            rc = error_set(err, ERROR_INVALID, "the verdict's field %s cannot be written as JSON",
                           f->name);
    }
    if (!rc && steps) json_object_set_new(o, "steps", steps_json(v));
    if (!rc && json_dumpf(o, out, JSON_COMPACT))
        rc = error_set(err, ERROR_IO, "cannot write the verdict");
    if (!rc) fputc('\n', out);
    json_decref(o);
    return rc;
}

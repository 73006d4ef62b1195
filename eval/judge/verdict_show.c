#include "eval/judge/verdict_show.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "eval/judge/statistics.h"

static const char *mode_name(ClockMode m)
{
    return m == CLOCK_WARM    ? "warm caches"
           : m == CLOCK_GRAPH ? "cold L2, one CUDA graph"
                              : "cold L2";
}

/* NVML's bits. */
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

static void show_times(FILE *out, const Verdict *v)
{
    const DeviceTiming *t = v->timing;
    fprintf(out, "  score      %.3f (speedup %.4f, 95%% from %.4f to %.4f", v->score, v->speedup,
            v->low, v->high);
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
    fprintf(out, "  light      %.3f us by %s: the kernel reaches %.1f%% of it\n", v->light_us,
            v->light_is_flops ? "arithmetic" : "bytes moved",
            v->time_us > 0 ? 100.0 * v->light_us / v->time_us : 0.0);
}

static void show_resources(FILE *out, const Verdict *v)
{
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
    if (v->n_checks) fprintf(out, "  checks     %d passed\n", v->n_checks);
    for (int i = 0; profile && i < v->n_checks; i++) fprintf(out, "    %s\n", v->checks[i]);
    if (profile && v->timing && v->timing->n_counters) show_counters(out, v->timing);
}

static json_t *counters_json(const DeviceCounter *c, int n)
{
    json_t *o = json_object();
    for (int i = 0; i < n; i++) json_object_set_new(o, c[i].name, json_real(c[i].value));
    return o;
}

/* Compiler messages quote the source, which need not be UTF-8. */
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

static json_t *telemetry_json(const DeviceTelemetry *t)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:I, s:I}", "sm_mhz", (int)t->sm_mhz, "memory_mhz",
                     (int)t->memory_mhz, "temperature", (int)t->temperature, "power_watts",
                     (int)t->power_watts, "throttle", (json_int_t)t->throttle, "ecc_errors",
                     (json_int_t)t->ecc_errors);
}

static json_t *samples_json(const double *v, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_real(v[i]));
    return list;
}

static void add_timing(json_t *o, const Verdict *v)
{
    static const char *const modes[] = {
        [CLOCK_COLD] = "cold", [CLOCK_WARM] = "warm", [CLOCK_GRAPH] = "graph"};
    const DeviceTiming *t = v->timing;
    if (v->predicted) return;
    json_object_set_new(o, "pairs", json_integer(t->n));
    json_object_set_new(o, "mode", json_string(modes[t->mode]));
    json_object_set_new(o, "candidate_launches", json_integer(t->candidate_launches));
    json_object_set_new(o, "baseline_launches", json_integer(t->baseline_launches));
    json_object_set_new(o, "before", telemetry_json(&t->before));
    json_object_set_new(o, "after", telemetry_json(&t->after));
    json_object_set_new(o, "candidate_samples_us", samples_json(t->candidate_us, t->n));
    json_object_set_new(o, "baseline_samples_us", samples_json(t->baseline_us, t->n));
}

int show_json(FILE *out, const char *task, const Verdict *v, Error *err)
{
    json_t *checks = json_array();
    for (int i = 0; i < v->n_checks; i++) json_array_append_new(checks, text_json(v->checks[i]));
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:i, s:s, s:s, "
        "s:s, s:s, s:s, s:I, s:o}",
        "task", task, "device", v->device, "outcome", outcome_name(v->outcome), "cheat", v->cheat,
        "message", text_json(v->message), "line", v->line, "score", v->score, "speedup", v->speedup,
        "low", v->low, "high", v->high, "time_us", v->time_us, "baseline_us", v->baseline_us,
        "light_us", v->light_us, "predicted", v->predicted, "registers", v->registers,
        "source_digest", v->source_digest, "task_digest", v->task_digest, "compiler", v->compiler,
        "harness", VERDICT_HARNESS, "key", v->key, "seed", (json_int_t)v->seed, "checks", checks);
    if (!o) return error_set(err, ERROR_INVALID, "cannot build the verdict's JSON");
    json_object_set_new(o, "light_is", json_string(v->light_is_flops ? "flops" : "bytes"));
    json_object_set_new(o, "local_bytes", json_integer((json_int_t)v->local_bytes));
    json_object_set_new(o, "shared_bytes", json_integer((json_int_t)v->shared_bytes));
    json_object_set_new(o, "occupancy", json_real(v->occupancy));
    json_object_set_new(o, "device_name", json_string(v->device_name));
    json_object_set_new(o, "driver", json_string(v->driver));
    json_object_set_new(o, "uuid", json_string(v->uuid));
    if (v->timing) {
        add_timing(o, v);
        json_object_set_new(o, "counters",
                            counters_json(v->timing->counters, v->timing->n_counters));
        json_object_set_new(
            o, "baseline_counters",
            counters_json(v->timing->baseline_counters, v->timing->n_baseline_counters));
    }
    int rc =
        json_dumpf(o, out, JSON_COMPACT) ? error_set(err, ERROR_IO, "cannot write the verdict") : 0;
    fputc('\n', out);
    json_decref(o);
    return rc;
}

/* The verdict's bookkeeping: its key, its record, its memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/judge/verdict.h"

void verdict_key(const VerdictKey *key, char out[DIGEST_HEX])
{
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)key->seed);
    Digester d;
    Digest digest;
    digester_init(&d);
    digester_add_field(&d, key->source, key->source_len);
    digester_add_field(&d, key->task_digest, strlen(key->task_digest));
    digester_add_field(&d, key->device_class, strlen(key->device_class));
    digester_add_field(&d, VERDICT_HARNESS, strlen(VERDICT_HARNESS));
    digester_add_field(&d, seed, strlen(seed));
    digester_add_field(&d, key->not_on, strlen(key->not_on));
    digester_finish(&d, &digest);
    digest_hex(&digest, out);
}

void verdict_release(Verdict *v)
{
    free(v->timing);
    v->timing = NULL;
}

static void put_counters(Record *r, const char *key, const DeviceCounter *counters, int n)
{
    if (!n) return;
    Record *m = record_map(r, key);
    for (int i = 0; i < n; i++) record_float(m, counters[i].name, counters[i].value);
}

static void put_telemetry(Record *r, const char *key, const DeviceTelemetry *t)
{
    if (!t->sm_mhz) return;
    Record *m = record_map(r, key);
    record_int(m, "sm_mhz", t->sm_mhz);
    record_int(m, "memory_mhz", t->memory_mhz);
    record_int(m, "temperature", t->temperature);
    record_int(m, "power_watts", t->power_watts);
    record_int(m, "throttle", (int64_t)t->throttle);
    record_int(m, "ecc_errors", (int64_t)t->ecc_errors);
}

static void put_detail(Record *r, const Verdict *v)
{
    Record *d = record_map(r, "detail");
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)v->seed);
    record_text(d, "seed", seed);
    record_float(d, "light_us", v->light_us);
    record_text(d, "light_is", v->light_is_flops ? "flops" : "bytes");
    record_int(d, "local_bytes", (int64_t)v->local_bytes);
    record_int(d, "shared_bytes", (int64_t)v->shared_bytes);
    record_float(d, "occupancy", v->occupancy);
    record_text(d, "device_name", v->device_name);
    if (v->driver[0]) record_text(d, "driver", v->driver);
    if (v->uuid[0]) record_text(d, "uuid", v->uuid);
    if (!v->timing) return;
    put_counters(d, "baseline_counters", v->timing->baseline_counters,
                 v->timing->n_baseline_counters);
    if (v->predicted) return;
    record_text(d, "mode",
                v->timing->mode == CLOCK_WARM    ? "warm"
                : v->timing->mode == CLOCK_GRAPH ? "graph"
                                                 : "cold");
    record_int(d, "baseline_launches", v->timing->baseline_launches);
    record_int(d, "candidate_launches", v->timing->candidate_launches);
    put_telemetry(d, "before", &v->timing->before);
    put_telemetry(d, "after", &v->timing->after);
    if (v->timing->n < 2) return;
    record_floats(d, "baseline_samples_us", v->timing->baseline_us, (size_t)v->timing->n);
    record_floats(d, "candidate_samples_us", v->timing->candidate_us, (size_t)v->timing->n);
}

void verdict_record(const Verdict *v, const char *task, Record *r)
{
    const char *checks[VERDICT_MAX_CHECKS];
    record_text(r, "task", task);
    record_text(r, "key", v->key);
    record_text(r, "device", v->device);
    record_text(r, "outcome", outcome_name(v->outcome));
    record_text(r, "message", v->message);
    record_int(r, "line", v->line);
    record_float(r, "score", v->score);
    record_float(r, "speedup", v->speedup);
    record_float(r, "low", v->low);
    record_float(r, "high", v->high);
    record_float(r, "time_us", v->time_us);
    record_float(r, "baseline_us", v->baseline_us);
    record_bool(r, "predicted", v->predicted);
    record_text(r, "source_digest", v->source_digest);
    record_text(r, "task_digest", v->task_digest);
    record_text(r, "harness", VERDICT_HARNESS);
    record_text(r, "compiler", v->compiler);
    record_int(r, "registers", v->registers);
    if (v->cheat[0]) record_text(r, "cheat", v->cheat);
    for (int i = 0; i < v->n_checks; i++) checks[i] = v->checks[i];
    if (v->n_checks) record_texts(r, "checks", checks, (size_t)v->n_checks);
    if (v->timing) put_counters(r, "counters", v->timing->counters, v->timing->n_counters);
    put_detail(r, v);
}

/* The verdict's bookkeeping: its key, its record, its memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/evaluator.h"

void evaluator_job_key(const char *source, size_t len, const char *task_digest, const char *device_class, uint64_t seed,
                       char out[DIGEST_HEX])
{
    char digits[32];
    Digester d;
    Digest digest;
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)seed);
    digester_init(&d);
    digester_add_field(&d, source, len);
    digester_add_field(&d, task_digest, strlen(task_digest));
    digester_add_field(&d, device_class, strlen(device_class));
    digester_add_field(&d, EVAL_HARNESS, strlen(EVAL_HARNESS));
    digester_add_field(&d, digits, (size_t)n);
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

static void put_detail(Record *r, const Verdict *v)
{
    Record *d = record_map(r, "detail");
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)v->seed);
    record_text(d, "seed", seed);
    record_float(d, "light_us", v->light_us);
    if (!v->timing) return;
    put_counters(d, "baseline_counters", v->timing->baseline_counters, v->timing->n_baseline_counters);
    if (v->timing->n < 2) return;
    record_floats(d, "baseline_samples_us", v->timing->baseline_us, (size_t)v->timing->n);
    record_floats(d, "candidate_samples_us", v->timing->candidate_us, (size_t)v->timing->n);
}

void verdict_record(const Verdict *v, const char *task, Record *r)
{
    const char *checks[16];
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
    record_text(r, "harness", EVAL_HARNESS);
    record_text(r, "compiler", v->compiler);
    record_int(r, "registers", v->registers);
    if (v->cheat[0]) record_text(r, "cheat", v->cheat);
    for (int i = 0; i < v->n_checks; i++) checks[i] = v->checks[i];
    if (v->n_checks) record_texts(r, "checks", checks, (size_t)v->n_checks);
    if (v->timing) put_counters(r, "counters", v->timing->counters, v->timing->n_counters);
    put_detail(r, v);
}

/* A verdict's key, and its record: written and read by the table in verdict_schema.c. */
#include "eval/judge/verdict/verdict.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/verdict/verdict_schema.h"

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
    if (key->sanitize) digester_add_field(&d, "sanitize", 8);
    if (key->left_own) digester_add_field(&d, "left own", 8);
    digester_finish(&d, &digest);
    digest_hex(&digest, out);
}

void verdict_release(Verdict *v)
{
    free(v->timing);
    v->timing = NULL;
}

/* ---- to a record ---- */

static int count_at(const void *holder, const VerdictField *f)
{
    return *(const int *)((const char *)holder + f->count);
}

static void put_counters(Record *r, const char *key, const DeviceCounter *counters, int n)
{
    Record *m = record_map(r, key);
    for (int i = 0; i < n; i++) record_float(m, counters[i].name, counters[i].value);
}

static void put_telemetry(Record *r, const char *key, const DeviceTelemetry *t)
{
    Record *m = record_map(r, key);
    for (int i = 0; i < verdict_n_telemetry; i++)
        record_int(m, verdict_telemetry[i].name,
                   (int64_t)verdict_telemetry_value(t, &verdict_telemetry[i]));
}

static void put_rows(Record *r, const char *key, const VerdictRow *rows, int n)
{
    for (int i = 0; i < n; i++) {
        Record *m = record_item(r, key);
        record_text(m, "sizes", rows[i].sizes);
        for (int k = 0; k < verdict_n_row_fields; k++)
            record_float(m, verdict_rows[k].name, verdict_row_value(&rows[i], &verdict_rows[k]));
    }
}

static void put_texts(Record *r, const char *key, const char *texts, int n)
{
    const char *list[VERDICT_MAX_CHECKS];
    for (int i = 0; i < n; i++) list[i] = texts + (size_t)i * VERDICT_CHECK_TEXT;
    record_texts(r, key, list, (size_t)n);
}

static void put_seed(Record *r, const char *key, uint64_t seed)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)seed);
    record_text(r, key, digits);
}

/* An optional field is left out when this says so. A single sample is the time itself. */
static int is_empty(const void *holder, const VerdictField *f, const void *p)
{
    switch (f->storage) {
    case VERDICT_CHARS: return !*(const char *)p;
    case VERDICT_TELEMETRY: return !((const DeviceTelemetry *)p)->sm_mhz;
    case VERDICT_SAMPLES: return count_at(holder, f) < 2;
    case VERDICT_TEXTS:
    case VERDICT_ROWS:
    case VERDICT_COUNTERS: return !count_at(holder, f);
    default: return 0;
    }
}

static void put_field(Record *r, const Verdict *v, const char *task, const VerdictField *f)
{
    const void *holder = verdict_holder(v, f), *p = (const char *)holder + f->offset;
    if (f->optional && f->storage != VERDICT_EXTERN && is_empty(holder, f, p)) return;
    switch (f->storage) {
    case VERDICT_EXTERN: break;
    case VERDICT_TASK: record_text(r, f->name, task); break;
    case VERDICT_VERSION: record_text(r, f->name, VERDICT_HARNESS); break;
    case VERDICT_CHARS: record_text(r, f->name, p); break;
    case VERDICT_INT: record_int(r, f->name, *(const int *)p); break;
    case VERDICT_SIZE: record_int(r, f->name, (int64_t) * (const size_t *)p); break;
    case VERDICT_DOUBLE: record_float(r, f->name, *(const double *)p); break;
    case VERDICT_FLAG: record_bool(r, f->name, *(const int *)p); break;
    case VERDICT_OUTCOME: record_text(r, f->name, outcome_name(*(const Outcome *)p)); break;
    case VERDICT_CEILING: record_text(r, f->name, *(const int *)p ? "flops" : "bytes"); break;
    case VERDICT_MODE: record_text(r, f->name, verdict_mode_name(*(const ClockMode *)p)); break;
    case VERDICT_SEED: put_seed(r, f->name, *(const uint64_t *)p); break;
    case VERDICT_TEXTS: put_texts(r, f->name, p, count_at(holder, f)); break;
    case VERDICT_COUNTERS: put_counters(r, f->name, p, count_at(holder, f)); break;
    case VERDICT_TELEMETRY: put_telemetry(r, f->name, p); break;
    case VERDICT_ROWS: put_rows(r, f->name, p, count_at(holder, f)); break;
    case VERDICT_SAMPLES: record_floats(r, f->name, p, (size_t)count_at(holder, f)); break;
    }
}

const char *verdict_unshown(const Verdict *v)
{
    for (int i = 0; i < v->n_checks; i++)
        if (!strncmp(v->checks[i], VERDICT_UNSHOWN, strlen(VERDICT_UNSHOWN)))
            return v->checks[i] + strlen(VERDICT_SHOWN);
    return NULL;
}

void verdict_pass(Verdict *v, const char *fmt, ...)
{
    va_list ap;
    if (v->n_checks == VERDICT_MAX_CHECKS) return;
    va_start(ap, fmt);
    vsnprintf(v->checks[v->n_checks++], sizeof v->checks[0], fmt, ap);
    va_end(ap);
}

void verdict_warn(Verdict *v, const char *fmt, ...)
{
    va_list ap;
    char text[VERDICT_CHECK_TEXT];
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (int i = 0; i < v->n_warnings; i++)
        if (!strcmp(v->warnings[i], text)) return;
    if (v->n_warnings < VERDICT_MAX_WARNINGS)
        memcpy(v->warnings[v->n_warnings++], text, sizeof text);
}

void verdict_spend(Verdict *v, const char *step, double ms)
{
    int i = 0;
    while (i < v->n_steps && strcmp(v->steps[i].name, step)) i++;
    if (i == VERDICT_MAX_STEPS) return;
    if (i == v->n_steps) v->steps[v->n_steps++].name = step;
    v->steps[i].ms += ms;
}

void verdict_record(const Verdict *v, const char *task, Record *r)
{
    Record *detail = record_map(r, "detail");
    for (int i = 0; i < verdict_n_fields; i++) {
        const VerdictField *f = &verdict_fields[i];
        if (f->place != VERDICT_NOT_RECORDED && verdict_has(v, f))
            put_field(f->place == VERDICT_DETAIL ? detail : r, v, task, f);
    }
}

/* ---- from a record ---- */

static int unknown_word(const View *v, const char *key, const char *word, Error *err)
{
    return error_set(err, ERROR_CORRUPT, "%s: unknown %s '%s'", v->where, key, word);
}

static int get_outcome(const View *v, const char *key, Outcome *out, Error *err)
{
    char word[64];
    if (view_copy(v, key, word, sizeof word, err)) return -1;
    return outcome_from_name(word, out) ? unknown_word(v, key, word, err) : 0;
}

static int get_mode(const View *v, const char *key, ClockMode *out, Error *err)
{
    char word[16];
    if (view_copy(v, key, word, sizeof word, err)) return -1;
    for (*out = CLOCK_COLD; *out <= CLOCK_GRAPH; ++*out)
        if (!strcmp(word, verdict_mode_name(*out))) return 0;
    *out = CLOCK_COLD;
    return unknown_word(v, key, word, err);
}

static int get_ceiling(const View *v, const char *key, int *is_flops, Error *err)
{
    char word[16];
    if (view_copy(v, key, word, sizeof word, err)) return -1;
    *is_flops = !strcmp(word, "flops");
    return *is_flops || !strcmp(word, "bytes") ? 0 : unknown_word(v, key, word, err);
}

static int get_seed(const View *v, const char *key, uint64_t *out, Error *err)
{
    char digits[32], *end;
    if (view_copy(v, key, digits, sizeof digits, err)) return -1;
    errno = 0;
    *out = strtoull(digits, &end, 10);
    return errno || *end || *digits < '0' || *digits > '9' ? unknown_word(v, key, digits, err) : 0;
}

static int get_texts(const View *v, const char *key, char *out, size_t limit, int *found,
                     Error *err)
{
    size_t count, n;
    if (view_count(v, key, &count, err)) return -1;
    for (size_t i = 0; i < count; i++) {
        const char *text;
        if (view_text_at(v, key, i, &text, &n, err)) return -1;
        if (count > limit || n >= VERDICT_CHECK_TEXT)
            return error_set(err, ERROR_LIMIT,
                             "%s, field %s: expected at most %zu texts of at most %d bytes",
                             v->where, key, limit, VERDICT_CHECK_TEXT - 1);
        memcpy(out + i * VERDICT_CHECK_TEXT, text, n);
    }
    *found = (int)count;
    return 0;
}

static int get_counters(const View *v, const char *key, DeviceCounter *out, size_t most, int *n,
                        Error *err)
{
    View map;
    if (view_map(v, key, &map, err)) return -1;
    uint32_t count = map.map->via.map.size;
    for (uint32_t i = 0; i < count; i++) {
        const msgpack_object_str *name = &map.map->via.map.ptr[i].key.via.str;
        if (count > most || name->size >= sizeof out->name)
            return error_set(err, ERROR_LIMIT,
                             "%s: expected at most %zu counters with names of at most %zu bytes",
                             map.where, most, sizeof out->name - 1);
        memcpy(out[i].name, name->ptr, name->size);
        if (view_float(&map, out[i].name, &out[i].value, err)) return -1;
    }
    *n = (int)count;
    return 0;
}

static double *row_value(VerdictRow *row, const VerdictRowField *f)
{
    return (double *)(void *)((char *)row + f->offset);
}

static int get_rows(const View *v, const char *key, VerdictRow *out, int *n, Error *err)
{
    size_t count;
    View row;
    if (view_count(v, key, &count, err)) return -1;
    if (count > VERDICT_MAX_ROWS)
        return error_set(err, ERROR_LIMIT, "%s, field %s: expected at most %d, found %zu", v->where,
                         key, VERDICT_MAX_ROWS, count);
    for (size_t i = 0; i < count; i++) {
        if (view_item(v, key, i, &row, err) ||
            view_copy(&row, "sizes", out[i].sizes, sizeof out[i].sizes, err))
            return -1;
        for (int k = 0; k < verdict_n_row_fields; k++)
            if (view_float(&row, verdict_rows[k].name, row_value(&out[i], &verdict_rows[k]), err))
                return -1;
    }
    *n = (int)count;
    return 0;
}

static int get_telemetry(const View *v, const char *key, DeviceTelemetry *out, Error *err)
{
    View map;
    if (view_map(v, key, &map, err)) return -1;
    for (int i = 0; i < verdict_n_telemetry; i++) {
        const VerdictTelemetryField *f = &verdict_telemetry[i];
        int64_t value;
        if (view_int(&map, f->name, &value, err)) return -1;
        if (f->size == sizeof(uint64_t))
            *(uint64_t *)((char *)out + f->offset) = (uint64_t)value;
        else
            *(unsigned *)((char *)out + f->offset) = (unsigned)value;
    }
    return 0;
}

static int get_samples(const View *v, const char *key, double *out, int *n, Error *err)
{
    double *values;
    size_t count;
    if (view_floats(v, key, &values, &count, err)) return -1;
    if (count <= DEVICE_MAX_SAMPLES) memcpy(out, values, count * sizeof *out);
    free(values);
    *n = (int)count;
    return count <= DEVICE_MAX_SAMPLES
               ? 0
               : error_set(err, ERROR_LIMIT, "%s, field %s: expected at most %d samples, found %zu",
                           v->where, key, DEVICE_MAX_SAMPLES, count);
}

static int get_int(const View *v, const char *key, int64_t max, int64_t *out, Error *err)
{
    if (view_int(v, key, out, err)) return -1;
    if (*out >= 0 && *out <= max) return 0;
    return error_set(err, ERROR_CORRUPT, "%s, field %s: expected 0 to %lld, found %lld", v->where,
                     key, (long long)max, (long long)*out);
}

/* The value of field f at p, in its holder. */
static int get_field(const View *v, const VerdictField *f, char *holder, Error *err)
{
    void *p = holder + f->offset;
    int *count = (int *)(void *)(holder + f->count);
    const char *text;
    int64_t value = 0;
    size_t n;
    View map;
    switch (f->storage) {
    case VERDICT_EXTERN:
        return f->kind == 'm' ? view_map(v, f->name, &map, err)
                              : view_text(v, f->name, &text, &n, err);
    case VERDICT_TASK:
    case VERDICT_VERSION: return view_text(v, f->name, &text, &n, err);
    case VERDICT_CHARS: return view_copy(v, f->name, p, f->size, err);
    case VERDICT_INT:
        if (get_int(v, f->name, INT_MAX, &value, err)) return -1;
        *(int *)p = (int)value;
        return 0;
    case VERDICT_SIZE:
        if (get_int(v, f->name, INT64_MAX, &value, err)) return -1;
        *(size_t *)p = (size_t)value;
        return 0;
    case VERDICT_DOUBLE: return view_float(v, f->name, p, err);
    case VERDICT_FLAG: return view_bool(v, f->name, p, err);
    case VERDICT_OUTCOME: return get_outcome(v, f->name, p, err);
    case VERDICT_CEILING: return get_ceiling(v, f->name, p, err);
    case VERDICT_MODE: return get_mode(v, f->name, p, err);
    case VERDICT_SEED: return get_seed(v, f->name, p, err);
    case VERDICT_TEXTS: return get_texts(v, f->name, p, f->size / VERDICT_CHECK_TEXT, count, err);
    case VERDICT_COUNTERS:
        return get_counters(v, f->name, p, f->size / sizeof(DeviceCounter), count, err);
    case VERDICT_TELEMETRY: return get_telemetry(v, f->name, p, err);
    case VERDICT_ROWS: return get_rows(v, f->name, p, count, err);
    case VERDICT_SAMPLES: return get_samples(v, f->name, p, count, err);
    }
    return -1;
}

static int get_fields(const View *record, VerdictPlace place, Verdict *out, Error *err)
{
    for (int i = 0; i < verdict_n_fields; i++) {
        const VerdictField *f = &verdict_fields[i];
        /* What the submitter adds is not in a verdict that comes from the queue. */
        int may_lack = f->optional || f->storage == VERDICT_EXTERN;
        if (f->place != place || (may_lack && !view_has(record, f->name))) continue;
        if (f->when != VERDICT_ALWAYS && !out->timing)
            out->timing = memory_alloc(sizeof *out->timing);
        char *holder = f->when == VERDICT_ALWAYS ? (char *)out : (char *)out->timing;
        if (get_field(record, f, holder, err)) return -1;
    }
    return 0;
}

int verdict_read(const View *record, Verdict *out, Error *err)
{
    View detail;
    memset(out, 0, sizeof *out);
    int rc = get_fields(record, VERDICT_RECORD, out, err);
    if (!rc && view_has(record, "detail"))
        rc = view_map(record, "detail", &detail, err) ||
             get_fields(&detail, VERDICT_DETAIL, out, err);
    if (!rc && out->timing && !out->timing->n) { /* one sample: the time itself */
        out->timing->n = 1;
        out->timing->candidate_us[0] = out->time_us;
        out->timing->baseline_us[0] = out->baseline_us;
    }
    if (rc) verdict_release(out);
    return rc ? -1 : 0;
}

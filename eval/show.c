#include "eval/show.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static double counter(const Verdict *v, const char *name, double absent)
{
    for (int i = 0; v->timing && i < v->timing->n_counters; i++)
        if (!strcmp(v->timing->counters[i].name, name)) return v->timing->counters[i].value;
    return absent;
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

void show_text(FILE *out, const char *task, const Verdict *v, int profile)
{
    const char *label = v->predicted ? " (predicted)" : "";
    fprintf(out, "%s on %s: %s", task, v->device, outcome_name(v->outcome));
    if (v->cheat[0]) fprintf(out, " (%s)", v->cheat);
    fputc('\n', out);
    if (v->outcome == OUTCOME_OK) {
        double occupancy = counter(v, "occupancy", -1);
        fprintf(out, "  score      %.3f (speedup %.4f, 95%% from %.4f to %.4f)\n", v->score, v->speedup, v->low, v->high);
        fprintf(out, "  time       %.3f us, baseline %.3f us%s\n", v->time_us, v->baseline_us, label);
        fprintf(out, "  light      %.3f us: the kernel reaches %.1f%% of what bytes and flops allow\n", v->light_us,
                v->time_us > 0 ? 100.0 * v->light_us / v->time_us : 0.0);
        fprintf(out, "  registers  %d a thread", v->registers);
        if (occupancy >= 0) fprintf(out, ", occupancy %.0f%%", 100.0 * occupancy);
        fputc('\n', out);
    } else {
        fprintf(out, "  %s\n  %s\n", outcome_meaning(v->outcome), v->message);
    }
    if (v->n_checks) fprintf(out, "  checks     %d passed\n", v->n_checks);
    for (int i = 0; profile && i < v->n_checks; i++) fprintf(out, "    %s\n", v->checks[i]);
    if (profile && v->timing) show_counters(out, v->timing);
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

int show_json(FILE *out, const char *task, const Verdict *v, Error *err)
{
    json_t *checks = json_array();
    for (int i = 0; i < v->n_checks; i++) json_array_append_new(checks, text_json(v->checks[i]));
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:o, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:i, s:s, s:s, s:s, s:s, s:s, s:I, s:o}",
                          "task", task, "device", v->device, "outcome", outcome_name(v->outcome), "cheat", v->cheat, "message",
                          text_json(v->message), "line", v->line, "score", v->score, "speedup", v->speedup, "low", v->low,
                          "high", v->high, "time_us", v->time_us, "baseline_us", v->baseline_us, "light_us", v->light_us,
                          "predicted", v->predicted, "registers", v->registers, "source_digest", v->source_digest,
                          "task_digest", v->task_digest, "compiler", v->compiler, "harness", EVAL_HARNESS, "key", v->key,
                          "seed", (json_int_t)v->seed, "checks", checks);
    if (!o) return error_set(err, "cannot build the verdict's JSON");
    if (v->timing) {
        json_object_set_new(o, "counters", counters_json(v->timing->counters, v->timing->n_counters));
        json_object_set_new(o, "baseline_counters",
                            counters_json(v->timing->baseline_counters, v->timing->n_baseline_counters));
    }
    int rc = json_dumpf(o, out, JSON_COMPACT) ? error_set(err, "cannot write the verdict") : 0;
    fputc('\n', out);
    json_decref(o);
    return rc;
}

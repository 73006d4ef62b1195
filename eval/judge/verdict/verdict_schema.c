/* The table of a verdict's fields, and its print as Markdown. */
#include "eval/judge/verdict/verdict_schema.h"

#include <string.h>

#define IN_VERDICT(member) offsetof(Verdict, member), sizeof(((Verdict *)0)->member), 0
#define IN_TIMING(member) offsetof(DeviceTiming, member), sizeof(((DeviceTiming *)0)->member), 0
#define LIST(type, member, n) offsetof(type, member), sizeof(((type *)0)->member), offsetof(type, n)
#define NOWHERE 0, 0, 0

/* The short names of a row's constants. */
#define REC VERDICT_RECORD
#define DET VERDICT_DETAIL
#define OUT VERDICT_NOT_RECORDED
#define ALWAYS VERDICT_ALWAYS
#define TIMED VERDICT_TIMED
#define MEASURED VERDICT_MEASURED

/* name, kind, optional, place, in the JSON, when, storage, where, unit, meaning */
const VerdictField verdict_fields[] = {
    {"id", 't', 0, REC, 0, ALWAYS, VERDICT_EXTERN, NOWHERE, "",
     "the sample; the submitter adds it"},
    {"task", 't', 0, REC, 1, ALWAYS, VERDICT_TASK, NOWHERE, "", "its name"},
    {"device", 't', 0, REC, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(device), "",
     "the device class, such as sim:h100 or NVIDIA H200"},
    {"outcome", 't', 0, REC, 1, ALWAYS, VERDICT_OUTCOME, IN_VERDICT(outcome), "",
     "one of the outcomes below"},
    {"cheat", 't', '?', REC, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(cheat), "",
     "its name when the outcome is cheat"},
    {"message", 't', 0, REC, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(message), "",
     "what to change, in sentences; empty when the outcome is ok"},
    {"line", 'i', 0, REC, 1, ALWAYS, VERDICT_INT, IN_VERDICT(line), "",
     "the source line of the message; 0: none"},
    {"score", 'f', 0, REC, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(score), "ratio",
     "low, rounded to three decimals towards 1; 0 unless the outcome is ok"},
    {"speedup", 'f', 0, REC, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(speedup), "ratio",
     "baseline's time over candidate's, the interquartile mean of the pairs"},
    {"low", 'f', 0, REC, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(low), "ratio",
     "the lower end of speedup's 95% interval; predicted: speedup"},
    {"high", 'f', 0, REC, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(high), "ratio", "the upper end"},
    {"time_us", 'f', 0, REC, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(time_us), "us",
     "the candidate's median time"},
    {"baseline_us", 'f', 0, REC, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(baseline_us), "us",
     "the baseline's median time"},
    {"workloads", 'L', '?', DET, 1, ALWAYS, VERDICT_ROWS, LIST(Verdict, rows, n_rows), "",
     "each of several timed workloads, below; the numbers above are their weighted geometric "
     "means"},
    {"error", 'f', '?', DET, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(own_error), "",
     "the candidate's largest difference from double precision, of the output error_of"},
    {"eager_error", 'f', '?', DET, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(eager_error), "",
     "the baseline's, on the same inputs"},
    {"error_of", 't', '?', DET, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(error_of), "",
     "the output with the largest error beside its budget or eager; empty when none was measured"},
    {"budget", 'f', '?', DET, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(budget), "",
     "what error may be by TOLERANCE; 0: no budget was given"},
    {"light_us", 'f', '?', DET, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(light_us), "us",
     "the least time of the task's bytes and flops"},
    {"predicted", 'B', 0, REC, 1, ALWAYS, VERDICT_FLAG, IN_VERDICT(predicted), "",
     "times come from a model, not from a clock"},
    {"error_factor", 'f', '?', DET, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(error_factor), "ratio",
     "9 in 10 predictions are within this factor; 0: measured"},
    {"registers", 'i', '?', REC, 1, ALWAYS, VERDICT_INT, IN_VERDICT(registers), "per thread",
     "of the kernel that takes most"},
    {"source_digest", 't', 0, REC, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(source_digest), "",
     "the SHA-256 of the source"},
    {"task_digest", 't', 0, REC, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(task_digest), "",
     "the digest of the task's files"},
    {"compiler", 't', 0, REC, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(compiler), "",
     "such as NVRTC 13.0; with CUTLASS's version where the source includes its headers"},
    {"harness", 't', 0, REC, 1, ALWAYS, VERDICT_VERSION, NOWHERE, "", "the version of the rules"},
    {"key", 't', 0, REC, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(key), "",
     "the digest of all that decides the verdict; equal keys are one job"},
    {"seed", 't', '?', DET, 1, ALWAYS, VERDICT_SEED, IN_VERDICT(seed), "",
     "of the inputs; digits in the record, a number in the JSON"},
    {"second_seed", 't', '?', DET, 1, ALWAYS, VERDICT_SEED, IN_VERDICT(second_seed), "",
     "of the contents on which a win was timed again; 0: none"},
    {"checks", 'T', '?', REC, 1, ALWAYS, VERDICT_TEXTS, LIST(Verdict, checks, n_checks), "",
     "the checks that were passed, in order"},
    {"warnings", 'T', '?', DET, 1, ALWAYS, VERDICT_TEXTS, LIST(Verdict, warnings, n_warnings), "",
     "races and reads of no value whose result never matters, in sentences"},
    {"light_is", 't', '?', DET, 1, ALWAYS, VERDICT_CEILING, IN_VERDICT(light_is_flops), "",
     "the ceiling behind light_us: flops or bytes"},
    {"local_bytes", 'i', '?', DET, 1, ALWAYS, VERDICT_SIZE, IN_VERDICT(local_bytes),
     "bytes per thread", "local memory of the kernel that takes most"},
    {"shared_bytes", 'i', '?', DET, 1, ALWAYS, VERDICT_SIZE, IN_VERDICT(shared_bytes),
     "bytes per block", "shared memory of the timed launch that takes most"},
    {"occupancy", 'f', '?', DET, 1, ALWAYS, VERDICT_DOUBLE, IN_VERDICT(occupancy), "share",
     "the least of the timed launches, theoretical; 0: unknown"},
    {"device_name", 't', '?', DET, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(device_name), "",
     "the device's full name"},
    {"driver", 't', '?', DET, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(driver), "",
     "its version; empty on a simulator"},
    {"uuid", 't', '?', DET, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(uuid), "",
     "the GPU's UUID; empty on a simulator"},
    {"torch", 't', '?', DET, 1, ALWAYS, VERDICT_CHARS, IN_VERDICT(torch), "",
     "the PyTorch whose times rivals has; empty when none were measured for this task and GPU"},
    {"rivals", 'm', '?', DET, 1, ALWAYS, VERDICT_COUNTERS, LIST(Verdict, rivals, n_rivals), "us",
     "its times, each with its 95% interval: eager_us, compile_us, max-autotune_us, and _low_us, "
     "_high_us"},
    {"pairs", 'i', 0, OUT, 1, MEASURED, VERDICT_INT, IN_TIMING(n), "",
     "the number of pairs of samples"},
    {"mode", 't', '?', DET, 1, MEASURED, VERDICT_MODE, IN_TIMING(mode), "",
     "cold, warm, or graph (cold, as a CUDA graph)"},
    {"candidate_launches", 'i', '?', DET, 1, MEASURED, VERDICT_INT, IN_TIMING(candidate_launches),
     "", "launches a sample"},
    {"baseline_launches", 'i', '?', DET, 1, MEASURED, VERDICT_INT, IN_TIMING(baseline_launches), "",
     "the baseline's"},
    {"before", 'm', '?', DET, 1, MEASURED, VERDICT_TELEMETRY, IN_TIMING(before), "",
     "telemetry before the samples, below"},
    {"after", 'm', '?', DET, 1, MEASURED, VERDICT_TELEMETRY, IN_TIMING(after), "",
     "telemetry after them"},
    {"candidate_samples_us", 'F', '?', DET, 1, MEASURED, VERDICT_SAMPLES,
     LIST(DeviceTiming, candidate_us, n), "us", "the candidate's time in each pair"},
    {"baseline_samples_us", 'F', '?', DET, 1, MEASURED, VERDICT_SAMPLES,
     LIST(DeviceTiming, baseline_us, n), "us", "the baseline's"},
    {"counters", 'm', '?', REC, 1, TIMED, VERDICT_COUNTERS,
     LIST(DeviceTiming, counters, n_counters), "",
     "the candidate's counters of one run, floats by name"},
    {"baseline_counters", 'm', '?', DET, 1, TIMED, VERDICT_COUNTERS,
     LIST(DeviceTiming, baseline_counters, n_baseline_counters), "", "the baseline's"},
    {"lines", 'T', '?', DET, 1, TIMED, VERDICT_TEXTS, LIST(DeviceTiming, lines, n_lines), "",
     "the costliest source lines with share of the time and stall; none on a GPU"},
    {"detail", 'm', '?', REC, 0, ALWAYS, VERDICT_EXTERN, NOWHERE, "",
     "a map with the fields marked detail"},
    {"confirmed", 't', '?', REC, 0, ALWAYS, VERDICT_EXTERN, NOWHERE, "",
     "of a record score, by a second device: yes, no, or alone"},
    {"other", 'm', '?', REC, 0, ALWAYS, VERDICT_EXTERN, NOWHERE, "",
     "the numbers of the device with the higher score"},
};
const int verdict_n_fields = sizeof verdict_fields / sizeof *verdict_fields;

#define IN_ROW(member) offsetof(VerdictRow, member)

const VerdictRowField verdict_rows[] = {
    {"weight", IN_ROW(weight), "share", "in the mean"},
    {"speedup", IN_ROW(speedup), "ratio", "as the verdict's"},
    {"low", IN_ROW(low), "ratio", "the lower end of its interval"},
    {"high", IN_ROW(high), "ratio", "the upper end"},
    {"time_us", IN_ROW(time_us), "us", "the candidate's median time"},
    {"baseline_us", IN_ROW(baseline_us), "us", "the baseline's"},
    {"light_us", IN_ROW(light_us), "us", "the least time of the bytes and flops"},
};
const int verdict_n_row_fields = sizeof verdict_rows / sizeof *verdict_rows;

#define IN_TELEMETRY(member) \
    offsetof(DeviceTelemetry, member), sizeof(((DeviceTelemetry *)0)->member)

const VerdictTelemetryField verdict_telemetry[] = {
    {"sm_mhz", IN_TELEMETRY(sm_mhz), "MHz", "the clock of the multiprocessors"},
    {"memory_mhz", IN_TELEMETRY(memory_mhz), "MHz", "the clock of the memory"},
    {"temperature", IN_TELEMETRY(temperature), "Celsius", "the GPU's temperature"},
    {"power_watts", IN_TELEMETRY(power_watts), "W", "the board's power"},
    {"throttle", IN_TELEMETRY(throttle), "bits", "NVML's reasons for lower clocks, without idle"},
    {"ecc_errors", IN_TELEMETRY(ecc_errors), "", "uncorrected ECC errors since the driver's start"},
};
const int verdict_n_telemetry = sizeof verdict_telemetry / sizeof *verdict_telemetry;
const void *verdict_holder(const Verdict *v, const VerdictField *f)
{
    return f->when == VERDICT_ALWAYS ? (const void *)v : v->timing;
}

int verdict_has(const Verdict *v, const VerdictField *f)
{
    return f->when == VERDICT_ALWAYS || (v->timing && (f->when == VERDICT_TIMED || !v->predicted));
}

uint64_t verdict_telemetry_value(const DeviceTelemetry *t, const VerdictTelemetryField *f)
{
    const char *p = (const char *)t + f->offset;
    return f->size == sizeof(uint64_t) ? *(const uint64_t *)p : *(const unsigned *)p;
}

double verdict_row_value(const VerdictRow *row, const VerdictRowField *f)
{
    double v;
    memcpy(&v, (const char *)row + f->offset, sizeof v);
    return v;
}

const char *verdict_mode_name(ClockMode mode)
{
    static const char *const names[] = {
        [CLOCK_COLD] = "cold", [CLOCK_WARM] = "warm", [CLOCK_GRAPH] = "graph"};
    return names[mode];
}

/* ---- Markdown ---- */

static const char *kind_name(char kind)
{
    static const struct {
        char kind;
        const char *name;
    } kinds[] = {{'t', "text"},  {'i', "integer"},        {'f', "float"}, {'B', "bool"},
                 {'T', "texts"}, {'F', "list of floats"}, {'m', "map"},   {'L', "list of maps"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind) return kinds[i].name;
    return "?";
}

/* Where a field is, as words after its kind. */
static void print_place(FILE *out, const VerdictField *f)
{
    static const char *const when[] = {
        [VERDICT_ALWAYS] = "", [VERDICT_TIMED] = ", timed", [VERDICT_MEASURED] = ", measured"};
    const char *place = f->place == VERDICT_DETAIL         ? "detail"
                        : f->place == VERDICT_NOT_RECORDED ? "JSON only"
                        : !f->in_json                      ? "record only"
                        : f->optional                      ? "optional"
                                                           : "always";
    fprintf(out, "%s%s", place, when[f->when]);
}

static void print_field(FILE *out, const VerdictField *f)
{
    fprintf(out, "| `%s` | %s%s%s | ", f->name, kind_name(f->kind), *f->unit ? ", " : "", f->unit);
    print_place(out, f);
    fprintf(out, " | %s |\n", f->meaning);
}

void verdict_schema_print(FILE *out)
{
    fprintf(
        out,
        "# The fields of a verdict\n\n"
        "Generated by `quern-eval --schema`. Do not edit.\n\n"
        "A verdict is a record of an artifact of kind `verdicts`, and one line of "
        "`quern-eval --json`.\n"
        "The line has every field but the *record only* ones. In a record, *detail* fields are in "
        "the map\n"
        "`detail`, and those that are not *always* there are left out when empty. *Timed*: when "
        "the "
        "outcome\n"
        "is ok. *Measured*: on a device with a clock, too.\n\n"
        "The version of the rules (`harness`) is %s.\n\n"
        "| field | kind | where | meaning |\n"
        "|---|---|---|---|\n",
        VERDICT_HARNESS);
    for (int i = 0; i < verdict_n_fields; i++) print_field(out, &verdict_fields[i]);
    fprintf(out, "\n## Telemetry\n\nThe maps `before` and `after`. All values are integers.\n\n"
                 "| field | unit | meaning |\n|---|---|---|\n");
    for (int i = 0; i < verdict_n_telemetry; i++)
        fprintf(out, "| `%s` | %s | %s |\n", verdict_telemetry[i].name, verdict_telemetry[i].unit,
                verdict_telemetry[i].meaning);
    fprintf(out, "\n## Workloads\n\nThe maps of `workloads`. `sizes` is a text, such as \"rows=1 "
                 "cols=4096\"; the "
                 "others are floats.\n\n| field | unit | meaning |\n|---|---|---|\n");
    for (int i = 0; i < verdict_n_row_fields; i++)
        fprintf(out, "| `%s` | %s | %s |\n", verdict_rows[i].name, verdict_rows[i].unit,
                verdict_rows[i].meaning);
    fprintf(out, "\n## Outcomes\n\n| outcome | meaning |\n|---|---|\n");
    for (int i = 0; i < OUTCOME_COUNT; i++)
        fprintf(out, "| `%s` | %s |\n", outcome_name((Outcome)i), outcome_meaning((Outcome)i));
}

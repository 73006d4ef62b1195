/* The schema of a verdict: one table with every field of a record of kind `verdicts`, of the
 * record's map `detail`, and of `quern-eval --json`. The encoder (verdict_record), the decoder
 * (verdict_read), the JSON and docs/verdict.md are made from it. artifacts/schema.c lists the
 * record's fields too, since it is a lower layer; tests/unit/eval/judge/test_verdict.c compares the two
 * lists.
 *
 * The order of the table is the order of the keys in the JSON. A record's keys are sorted. */
#ifndef EVAL_JUDGE_VERDICT_VERDICT_SCHEMA_H
#define EVAL_JUDGE_VERDICT_VERDICT_SCHEMA_H

#include <stdio.h>

#include "eval/judge/verdict/verdict.h"

/* Where a field is in the record. */
typedef enum { VERDICT_RECORD, VERDICT_DETAIL, VERDICT_NOT_RECORDED } VerdictPlace;

/* When a field has a value. Its offset is in Verdict, or for the other two in DeviceTiming. */
typedef enum {
    VERDICT_ALWAYS,
    VERDICT_TIMED,   /* the outcome is ok */
    VERDICT_MEASURED /* the outcome is ok, and the device has a clock: the times are measured */
} VerdictWhen;

/* How a field is kept in the struct. */
typedef enum {
    VERDICT_EXTERN,    /* not in the struct: the submitter adds it, or it is the map itself */
    VERDICT_TASK,      /* not in the struct: an argument of the encoder */
    VERDICT_VERSION,   /* not in the struct: VERDICT_HARNESS */
    VERDICT_CHARS,     /* char[size], NUL-terminated */
    VERDICT_INT,       /* int */
    VERDICT_SIZE,      /* size_t */
    VERDICT_DOUBLE,    /* double */
    VERDICT_FLAG,      /* int, 0 or 1 */
    VERDICT_OUTCOME,   /* Outcome; its name */
    VERDICT_CEILING,   /* int; 1 "flops", 0 "bytes" */
    VERDICT_MODE,      /* ClockMode; "cold", "warm" or "graph" */
    VERDICT_SEED,      /* uint64_t; decimal digits in the record, a number in the JSON */
    VERDICT_TEXTS,     /* texts of VERDICT_CHECK_TEXT bytes, as many as the int at `count` */
    VERDICT_COUNTERS,  /* DeviceCounter[], as many as the int at `count`; a map by name */
    VERDICT_TELEMETRY, /* DeviceTelemetry; a map by verdict_telemetry */
    VERDICT_ROWS, /* VerdictRow[], as many as the int at `count`; a list of maps by verdict_rows */
    VERDICT_SAMPLES /* double[], as many as the int at `count` */
} VerdictStorage;

typedef struct {
    const char *name;
    char kind;     /* in the record, by the letters of artifacts/schema.h */
    char optional; /* '?': left out of the record when empty, and may be absent from it; or 0 */
    VerdictPlace place;
    int in_json;
    VerdictWhen when;
    VerdictStorage storage;
    size_t offset, size, count; /* bytes into the struct, of the value, to the number of items */
    const char *unit;           /* "" for none */
    const char *meaning;        /* one line, for people */
} VerdictField;

/* The fields of a VerdictRow beside `sizes`, all floats. */
typedef struct {
    const char *name;
    size_t offset;
    const char *unit, *meaning;
} VerdictRowField;

extern const VerdictRowField verdict_rows[];
extern const int verdict_n_row_fields;

/* The fields of a DeviceTelemetry, all integers. */
typedef struct {
    const char *name;
    size_t offset, size;
    const char *unit, *meaning;
} VerdictTelemetryField;

extern const VerdictField verdict_fields[];
extern const int verdict_n_fields;
extern const VerdictTelemetryField verdict_telemetry[];
extern const int verdict_n_telemetry;

/* The struct that holds field f: v, or v->timing, which is NULL when nothing was timed. */
const void *verdict_holder(const Verdict *v, const VerdictField *f);
/* 1 when v has a value of field f: it was timed where f->when asks for that. */
int verdict_has(const Verdict *v, const VerdictField *f);
/* The value of telemetry field f. */
uint64_t verdict_telemetry_value(const DeviceTelemetry *t, const VerdictTelemetryField *f);
double verdict_row_value(const VerdictRow *row, const VerdictRowField *f);
/* "cold", "warm" or "graph". */
const char *verdict_mode_name(ClockMode mode);

/* The table as Markdown: docs/verdict.md. */
void verdict_schema_print(FILE *out);

#endif

/* A row is appended with one write and flushed, so that only the last line can be torn. */
#include "tests/bench/gpu/gpubench_rows.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

enum { ROWS_MAX = 1 << 24 };

static int copy_text(const json_t *o, const char *key, const char *where, char *out, size_t size,
                     Error *err)
{
    const char *text = json_need_text(o, key, where, err);
    if (!text) return -1;
    snprintf(out, size, "%s", text);
    return 0;
}

static int read_row(const char *line, size_t len, const char *where, GpuBaselineRow *out,
                    Error *err)
{
    json_t *o = json_read_text(line, len, where, err);
    if (!o) return -1;
    int rc = copy_text(o, "task", where, out->task, sizeof out->task, err) ||
             copy_text(o, "outcome", where, out->outcome, sizeof out->outcome, err) ||
             copy_text(o, "message", where, out->message, sizeof out->message, err) ||
             copy_text(o, "gpu", where, out->gpu, sizeof out->gpu, err) ||
             json_need_number(o, "us", where, &out->us, err) ||
             json_need_number(o, "plain_us", where, &out->plain_us, err) ||
             json_need_number(o, "light_us", where, &out->light_us, err) ||
             json_need_number(o, "seconds", where, &out->seconds, err);
    json_decref(o);
    return rc ? -1 : 0;
}

static void keep(GpuBaselineRows *r, const GpuBaselineRow *row)
{
    r->items = memory_grow(r->items, (size_t)r->n + 1, sizeof *r->items);
    r->items[r->n++] = *row;
}

/* *whole: the bytes of the complete lines. */
static int read_rows(GpuBaselineRows *r, size_t *whole, Error *err)
{
    Buffer text;
    char where[4200];
    buffer_init(&text, ROWS_MAX);
    int rc = file_read(r->path, ROWS_MAX, &text, err), number = 1;
    const char *p = rc ? NULL : text.data, *end;
    for (; !rc && (end = strchr(p, '\n')); p = end + 1, number++) {
        GpuBaselineRow row = {0};
        snprintf(where, sizeof where, "%s, line %d", r->path, number);
        rc = read_row(p, (size_t)(end - p), where, &row, err);
        if (!rc) keep(r, &row);
    }
    if (!rc) *whole = (size_t)(p - text.data);
    buffer_release(&text);
    return rc;
}

int gpubench_rows_open(GpuBaselineRows *r, const char *path, Error *err)
{
    size_t whole = 0;
    *r = (GpuBaselineRows){.path = path};
    if (!path) return 0;
    if (file_exists(path)) {
        if (read_rows(r, &whole, err)) return -1;
        if (truncate(path, (off_t)whole)) return error_errno(err, "cannot shorten %s", path);
    }
    if (!(r->file = fopen(path, "a"))) return error_errno(err, "cannot open %s", path);
    return 0;
}

void gpubench_rows_close(GpuBaselineRows *r)
{
    if (r->file) fclose(r->file);
    free(r->items);
    *r = (GpuBaselineRows){0};
}

const GpuBaselineRow *gpubench_rows_find(const GpuBaselineRows *r, const char *task)
{
    for (int i = r->n - 1; i >= 0; i--)
        if (!strcmp(r->items[i].task, task) && !strcmp(r->items[i].outcome, "ok"))
            return &r->items[i];
    return NULL;
}

int gpubench_rows_add(GpuBaselineRows *r, const GpuBaselineRow *row, Error *err)
{
    keep(r, row);
    if (!r->file) return 0;
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f}", "task", row->task, "outcome",
                  row->outcome, "message", row->message, "gpu", row->gpu, "us", row->us, "plain_us",
                  row->plain_us, "light_us", row->light_us, "seconds", row->seconds);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    if (!text)
        return error_set(err, ERROR_INVALID, "the row of %s cannot be written as JSON", row->task);
    int failed = fprintf(r->file, "%s\n", text) < 0 || fflush(r->file);
    free(text);
    return failed ? error_errno(err, "cannot write %s", r->path) : 0;
}

int gpubench_row_of_verdict(const char *text, size_t len, GpuBaselineRow *out, Error *err)
{
    static const char where[] = "a verdict";
    json_t *o = json_read_text(text, len, where, err);
    if (!o) return -1;
    const char *gpu = json_string_value(json_object_get(o, "device_name"));
    int rc = copy_text(o, "task", where, out->task, sizeof out->task, err) ||
             copy_text(o, "outcome", where, out->outcome, sizeof out->outcome, err) ||
             copy_text(o, "message", where, out->message, sizeof out->message, err);
    snprintf(out->gpu, sizeof out->gpu, "%s", gpu ? gpu : "");
    out->us = json_number_value(json_object_get(o, "baseline_us"));
    out->plain_us = json_number_value(json_object_get(o, "time_us"));
    out->light_us = json_number_value(json_object_get(o, "light_us"));
    json_decref(o);
    return rc ? -1 : 0;
}

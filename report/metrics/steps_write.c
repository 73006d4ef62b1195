/* JSON lines, and TensorBoard's event files: records of a length, its masked CRC-32C, a protocol buffer
 * and the masked CRC-32C of that. An event has a step and one value with its tag. The wall time, which
 * readers want, is the step: nothing here depends on a clock. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/memory.h"
#include "report/metrics/run_numbers.h"

enum { MAX_BYTES = 1 << 30, WIRE_VARINT = 0, WIRE_8 = 1, WIRE_BYTES = 2, WIRE_4 = 5 };

static uint32_t masked(const void *data, size_t n)
{
    uint32_t crc = digest_crc32c(0, data, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_little(Buffer *b, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        buffer_append(b, &(unsigned char){(unsigned char)(v >> 8 * i)}, 1);
}

static void put_varint(Buffer *b, uint64_t v)
{
    for (; v > 127; v >>= 7) buffer_append(b, &(unsigned char){(unsigned char)(v | 128)}, 1);
    buffer_append(b, &(unsigned char){(unsigned char)v}, 1);
}

static void put_key(Buffer *b, int field, int wire)
{
    put_varint(b, (uint64_t)(field << 3 | wire));
}

static void put_bytes(Buffer *b, int field, const void *data, size_t n)
{
    put_key(b, field, WIRE_BYTES);
    put_varint(b, n);
    buffer_append(b, data, n);
}

static void put_record(Buffer *b, const Buffer *event)
{
    size_t at = b->len;
    put_little(b, event->len, 8);
    put_little(b, masked(b->data + at, 8), 4);
    buffer_append(b, event->data, event->len);
    put_little(b, masked(event->data, event->len), 4);
}

/* Event: 1 wall_time (double), 2 step (int64), 3 file_version (text), 5 summary. Summary: 1 value.
 * Value: 1 tag (text), 2 simple_value (float). */
static void begin_event(Buffer *event, double time)
{
    uint64_t bits;
    buffer_clear(event);
    memcpy(&bits, &time, 8);
    put_key(event, 1, WIRE_8);
    put_little(event, bits, 8);
}

static void put_step(Buffer *out, const char *tag, int64_t step, double value)
{
    Buffer event, summary, v;
    float narrow = (float)value;
    uint32_t bits;
    buffer_init(&event, 4096);
    buffer_init(&summary, 4096);
    buffer_init(&v, 4096);
    memcpy(&bits, &narrow, 4);
    put_bytes(&v, 1, tag, strlen(tag));
    put_key(&v, 2, WIRE_4);
    put_little(&v, bits, 4);
    put_bytes(&summary, 1, v.data, v.len);
    begin_event(&event, (double)step);
    put_key(&event, 2, WIRE_VARINT);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 5, summary.data, summary.len);
    put_record(out, &event);
    buffer_release(&event);
    buffer_release(&summary);
    buffer_release(&v);
}

static void begin_file(Buffer *out)
{
    Buffer event;
    buffer_init(&event, 256);
    begin_event(&event, 0);
    put_bytes(&event, 3, "brain.Event:2", 13);
    put_record(out, &event);
    buffer_release(&event);
}

/* The steps of the rounds of a stage follow one another. *base: the steps of the earlier files of the
 * same kind; the values of a round itself ("crl/3/metrics.qa") have the round as step. */
static int64_t step_of(const FileNumbers *f, const StepValue *s, int64_t base)
{
    return strstr(f->path, "/model/") ? base + s->step : f->round ? f->round : s->step;
}

static void put_line(Buffer *out, const FileNumbers *f, const StepValue *s, int64_t step)
{
    json_t *o = json_pack("{s:s, s:i, s:I, s:s}", "stage", f->stage, "round", f->round, "step",
                          (json_int_t)step, "name", s->name);
    json_object_set_new(o, "value", json_real(s->value));
    char *line = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (line) buffer_puts(out, line);
    buffer_puts(out, "\n");
    free(line);
    json_decref(o);
}

static int write_events(const RunFolder *run, const char *stage, const Buffer *b, Error *err)
{
    char *dir = run_folder_path(run, "metrics/%s", stage),
         *path = memory_printf("%s/events.out.tfevents.0000000000.quern", dir);
    int rc = -(file_mkdirs(dir, err) || file_write_atomic(path, b->data, b->len, err));
    free(path);
    free(dir);
    return rc;
}

int steps_write(const RunFolder *run, const RunNumbers *n, Error *err)
{
    Buffer lines, events;
    int rc = 0;
    int64_t base = 0;
    buffer_init(&lines, MAX_BYTES);
    buffer_init(&events, MAX_BYTES);
    for (int i = 0; i < n->n && !rc; i++) {
        const FileNumbers *f = &n->files[i];
        int is_last = i + 1 == n->n || strcmp(f->stage, n->files[i + 1].stage) != 0;
        int64_t last = -1;
        if (!events.len) begin_file(&events), base = 0;
        for (int k = 0; k < f->n_steps; k++) {
            if (!isfinite(f->steps[k].value)) continue;
            int64_t step = step_of(f, &f->steps[k], base);
            if (strstr(f->path, "/model/") && f->steps[k].step > last) last = f->steps[k].step;
            put_line(&lines, f, &f->steps[k], step);
            put_step(&events, f->steps[k].name, step, f->steps[k].value);
        }
        base += last + 1;
        if (!is_last) continue;
        int any = 0;
        for (int k = i; k >= 0 && !strcmp(n->files[k].stage, f->stage); k--)
            any |= n->files[k].n_steps > 0;
        if (any) rc = write_events(run, f->stage, &events, err);
        buffer_clear(&events);
    }
    char *dir = run_folder_path(run, "metrics"), *path = memory_printf("%s/steps.jsonl", dir);
    if (!rc && lines.len)
        rc = -(file_mkdirs(dir, err) || file_write_atomic(path, lines.data, lines.len, err));
    free(path);
    free(dir);
    buffer_release(&lines);
    buffer_release(&events);
    return rc;
}

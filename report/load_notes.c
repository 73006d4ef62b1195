/* What the report says of its inputs and of failures. Each input is noted once. */
#include "report/report.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- provenance ---- */

static void put_text(Buffer *b, const char *label, const View *v, const char *key)
{
    const char *s;
    size_t n;
    if (!view_text(v, key, &s, &n, NULL)) buffer_printf(b, "%s%.*s", label, (int)n, s);
}

static void config_text(const View *header, Buffer *b)
{
    View config;
    if (view_map(header, "config", &config, NULL)) return;
    for (uint32_t i = 0; i < config.map->via.map.size; i++) {
        const msgpack_object_kv *kv = &config.map->via.map.ptr[i];
        if (kv->key.type != MSGPACK_OBJECT_STR || kv->val.type != MSGPACK_OBJECT_STR) continue;
        buffer_printf(b, "%s%.*s=%.*s", b->len ? "  " : "", (int)kv->key.via.str.size,
                      kv->key.via.str.ptr, (int)kv->val.via.str.size, kv->val.via.str.ptr);
    }
}

void notes_input(Report *r, const char *path, const ArtifactReader *a)
{
    for (int i = 0; i < r->n_inputs; i++)
        if (!strcmp(r->inputs[i].path, path)) return;
    Buffer text, config;
    buffer_init(&text, 1 << 16);
    buffer_init(&config, 1 << 16);
    const View *header = artifact_header(a);
    put_text(&text, "", header, "kind");
    put_text(&text, " by ", header, "producer");
    put_text(&text, " ", header, "version");
    buffer_printf(&text, ", %ld records, %s", artifact_count(a), artifact_digest(a));
    config_text(header, &config);
    r->inputs = memory_grow(r->inputs, (size_t)r->n_inputs + 1, sizeof *r->inputs);
    r->inputs[r->n_inputs++] =
        (ReportInput){memory_strdup(path), buffer_detach(&text), buffer_detach(&config)};
    buffer_release(&text);
    buffer_release(&config);
}

int notes_file(Report *r, const char *path, Error *err)
{
    ArtifactReader *a;
    if (artifact_open(path, NULL, &a, err)) return -1;
    notes_input(r, path, a);
    artifact_close(a);
    return 0;
}

/* ---- failures ---- */

/* Makes the key of a message: its text with every number as '#', since samples with the same
 * mistake differ in numbers. */
static char *message_key(Outcome outcome, const char *text)
{
    Buffer b;
    buffer_init(&b, 4096);
    buffer_printf(&b, "%d ", (int)outcome);
    for (const char *p = text; *p && b.len < 300; p++) {
        int digit = isdigit((unsigned char)*p) != 0;
        if (digit && b.data[b.len - 1] == '#') continue;
        buffer_append(&b, digit ? "#" : p, 1);
    }
    char *key = buffer_detach(&b);
    buffer_release(&b);
    return key;
}

/* Counts a message; takes ownership of text, which may be NULL. */
static void note_message(Report *r, Outcome outcome, char *text)
{
    r->failed[outcome]++;
    if (!text) return;
    char *key = message_key(outcome, text);
    int i = 0;
    while (i < r->n_messages && strcmp(r->messages[i].key, key)) i++;
    if (i < r->n_messages) {
        r->messages[i].count++;
        free(key);
        free(text);
    } else if (i < REPORT_MAX_MESSAGES) {
        r->messages = memory_grow(r->messages, (size_t)i + 1, sizeof *r->messages);
        r->messages[r->n_messages++] = (ReportMessage){outcome, text, key, 1};
    } else {
        free(key);
        free(text);
    }
}

void notes_failure(Report *r, Outcome outcome, const View *verdict)
{
    note_message(r, outcome,
                 view_has(verdict, "message") ? view_strdup(verdict, "message", NULL) : NULL);
}

/* Counts a sample whose endpoint failed. Its verdict says only that there was no code. */
void notes_unanswered(Report *r)
{
    note_message(r, OUTCOME_EVALUATOR_ERROR,
                 memory_strdup("no answer came: the request failed for good"));
}

static int by_count(const void *a, const void *b)
{
    const ReportMessage *x = a, *y = b;
    if (x->outcome != y->outcome) return (x->outcome > y->outcome) - (x->outcome < y->outcome);
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->key, y->key);
}

void notes_sort(Report *r)
{
    if (r->n_messages) qsort(r->messages, (size_t)r->n_messages, sizeof *r->messages, by_count);
}

/* All records stay in memory until the artifact is written, at most BATCH_MAX bytes. */
#include "stages/data/batchlog.h"

#include <string.h>

enum { BATCH_MAX = 1 << 30 };

static void put_length(unsigned char out[4], size_t n)
{
    for (int i = 0; i < 4; i++) out[i] = (unsigned char)(n >> (8 * i));
}

/* Takes the record of data at *at and moves *at behind it. Returns 0 at the end, -1 when the
 * lengths do not fit. */
static int next_record(const Buffer *data, size_t *at, const void **record, size_t *len)
{
    if (*at == data->len) return 0;
    if (data->len - *at < 4) return -1;
    const unsigned char *p = (const unsigned char *)data->data + *at;
    size_t n = (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
    if (n > data->len - *at - 4) return -1;
    *record = p + 4;
    *len = n;
    *at += 4 + n;
    return 1;
}

static int replay(void *ctx, const void *payload, size_t len, Error *err)
{
    BatchLog *b = ctx;
    b->n_batches++;
    if (buffer_append(&b->records, payload, len))
        return error_set(err, ERROR_LIMIT, "%s.journal: more than %d bytes", b->target, BATCH_MAX);
    return 0;
}

int batchlog_open(BatchLog *b, const char *target, const ArtifactSpec *spec, BatchLogEach *each,
                  void *ctx, Error *err)
{
    *b = (BatchLog){.target = target, .spec = spec};
    buffer_init(&b->records, BATCH_MAX);
    buffer_init(&b->batch, BATCH_MAX);
    int rc = journal_open(target, spec, replay, b, &b->journal, err), more = 0;
    const void *record;
    size_t len, at = 0;
    while (!rc && (more = next_record(&b->records, &at, &record, &len)) == 1) {
        b->n_records++;
        if (each) rc = each(ctx, record, len, err);
    }
    if (!rc && more < 0)
        rc = error_set(err, ERROR_CORRUPT, "%s.journal: a batch whose record lengths do not add up",
                       target);
    if (!rc) return 0;
    batchlog_keep(b, NULL);
    return -1;
}

int batchlog_add(BatchLog *b, const Record *r, Error *err)
{
    size_t at = b->batch.len;
    unsigned char length[4] = {0};
    if (buffer_append(&b->batch, length, 4) || record_encode(r, &b->batch, err))
        return error_set(err, ERROR_LIMIT, "%s: a batch of more than %d bytes", b->target,
                         BATCH_MAX);
    put_length(length, b->batch.len - at - 4);
    memcpy(b->batch.data + at, length, 4);
    b->n_records++;
    return 0;
}

int batchlog_commit(BatchLog *b, Error *err)
{
    int rc = journal_append(b->journal, b->batch.data, b->batch.len, err);
    if (!rc && buffer_append(&b->records, b->batch.data, b->batch.len))
        rc = error_set(err, ERROR_LIMIT, "%s: more than %d bytes", b->target, BATCH_MAX);
    b->n_batches++;
    buffer_clear(&b->batch);
    return rc;
}

static void release(BatchLog *b)
{
    buffer_release(&b->records);
    buffer_release(&b->batch);
    b->journal = NULL;
}

int batchlog_keep(BatchLog *b, Error *err)
{
    int rc = b->journal ? journal_close(b->journal, err) : 0;
    release(b);
    return rc;
}

int batchlog_finish(BatchLog *b, Error *err)
{
    ArtifactWriter *w;
    const void *record;
    size_t len, at = 0;
    int rc = artifact_create(b->target, b->spec, &w, err), made = !rc;
    while (!rc && next_record(&b->records, &at, &record, &len) == 1)
        rc = artifact_write_encoded(w, record, len, err);
    if (made) rc = artifact_end(w, rc, err);
    if (rc) {
        batchlog_keep(b, NULL);
        return -1;
    }
    return batchlog_discard(b, err);
}

int batchlog_discard(BatchLog *b, Error *err)
{
    int rc = journal_remove(b->journal, err);
    release(b);
    return rc;
}

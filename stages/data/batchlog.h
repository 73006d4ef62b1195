/* A journal of encoded records in batches: one journal payload holds the records of one batch of
 * work, so that a resumed stage starts at a batch's edge. At the end they become the artifact, in
 * order. */
#ifndef STAGES_DATA_BATCHLOG_H
#define STAGES_DATA_BATCHLOG_H

#include "artifacts/journal.h"

typedef struct {
    const char *target;
    const ArtifactSpec *spec;
    Journal *journal;
    Buffer records; /* u32 length, record; all batches so far */
    Buffer batch;   /* the one that is being filled */
    long n_batches, n_records;
} BatchLog;

/* Reopen or start. each (may be NULL) sees every record already there, in order. */
typedef int BatchLogEach(void *ctx, const void *record, size_t len, Error *err);
int batchlog_open(BatchLog *b, const char *target, const ArtifactSpec *spec, BatchLogEach *each,
                  void *ctx, Error *err);
int batchlog_add(BatchLog *b, const Record *r, Error *err); /* to the batch in work */
int batchlog_commit(BatchLog *b, Error *err); /* the batch is done: into the journal */
/* Write the artifact and remove the journal (finish), or keep the journal for later (keep). Both
 * release. */
int batchlog_finish(BatchLog *b, Error *err);
int batchlog_keep(BatchLog *b, Error *err);
/* The caller has written the target itself: remove the journal and release. */
int batchlog_discard(BatchLog *b, Error *err);

#endif

/* A journal of encoded records, in batches. One payload of the journal holds the records of one
 * batch of work, so that a resumed stage starts at the first batch that is not complete. At the end
 * the records become the artifact, in their order. */
#ifndef STAGES_DATA_BATCHLOG_H
#define STAGES_DATA_BATCHLOG_H

#include "artifacts/journal.h"

typedef struct {
    const char *target;
    const ArtifactSpec *spec;
    Journal *journal;
    Buffer records; /* of all committed batches: u32 length (little-endian), record, ... */
    Buffer batch;   /* the same of the current batch */
    long n_batches, n_records;
} BatchLog;

/* Called with one encoded record; -1 ends the replay. */
typedef int BatchLogEach(void *ctx, const void *record, size_t len, Error *err);
/* Opens the journal of the target, or starts one. Calls each, unless it is NULL, for every record
 * that is already there, in order. target and spec must stay valid until the log is released. A
 * damaged journal is ERROR_CORRUPT. */
int batchlog_open(BatchLog *b, const char *target, const ArtifactSpec *spec, BatchLogEach *each,
                  void *ctx, Error *err);
/* Adds a record to the current batch. */
int batchlog_add(BatchLog *b, const Record *r, Error *err);
/* Writes the current batch to the journal. */
int batchlog_commit(BatchLog *b, Error *err);
/* Writes the artifact, removes the journal and releases b. */
int batchlog_finish(BatchLog *b, Error *err);
/* Closes the journal, which stays for the next run, and releases b. */
int batchlog_keep(BatchLog *b, Error *err);
/* Removes the journal and releases b: the caller has written the target itself. */
int batchlog_discard(BatchLog *b, Error *err);

#endif

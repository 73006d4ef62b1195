/* The journal of a long stage, "<target>.journal". A record is its length (u32 LE), the payload, and
 * the payload's CRC-32C (u32 LE). The first payload is the digest of settings and inputs. Opening
 * with another digest starts a new journal and logs it. A torn or damaged tail is cut. An append is
 * one write; fsync happens at most once a second and at close. */
#ifndef ARTIFACTS_JOURNAL_H
#define ARTIFACTS_JOURNAL_H

#include "artifacts/artifact.h"

typedef struct Journal Journal;

/* Called for each payload in the journal, oldest first. Returns -1 to refuse the journal. */
typedef int JournalReplay(void *ctx, const void *payload, size_t len, Error *err);

int journal_open(const char *target, const ArtifactSpec *spec, JournalReplay *replay, void *ctx,
                 Journal **out, Error *err);
int journal_append(Journal *j, const void *payload, size_t len, Error *err);
int journal_close(Journal *j, Error *err);  /* keeps the file, if it has a record */
int journal_remove(Journal *j, Error *err); /* removes the file, after the target is committed */

#endif

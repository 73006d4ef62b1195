/* The journal beside a target that takes long: "<target>.journal". Each record is length (u32 LE),
 * payload, CRC-32C (u32 LE of the payload); the first payload is the digest of configuration and
 * inputs. Opening with another digest starts it over and says so; a torn or damaged tail is cut.
 * Appends are one write each, fsynced at most once a second and at close. */
#ifndef ARTIFACTS_JOURNAL_H
#define ARTIFACTS_JOURNAL_H

#include "artifacts/artifact.h"

typedef struct Journal Journal;

/* Called for each payload already there, oldest first; return -1 to refuse the journal. */
typedef int JournalReplay(void *ctx, const void *payload, size_t len, Error *err);

int journal_open(const char *target, const ArtifactSpec *spec, JournalReplay *replay, void *ctx,
                 Journal **out, Error *err);
int journal_append(Journal *j, const void *payload, size_t len, Error *err);
int journal_close(Journal *j, Error *err);  /* keeps the file: the work goes on later */
int journal_remove(Journal *j, Error *err); /* the target is committed: unlink */

#endif

/* The memory of hacks: every confirmed cheat of a run, each source once for its task. */
#ifndef STAGES_CRL_HACKS_H
#define STAGES_CRL_HACKS_H

#include <stddef.h>
#include <stdint.h>

#include "stages/data/samples.h"

/* ---- how alike two kernels are: the shingles of a source are its runs of SHINGLE tokens. Comments and
 * blanks do not count; numbers are one token, and so are names that are no function's, no keyword's
 * and no built-in's, so that neither renaming nor other sizes hide a copy. ---- */

enum { SHINGLE = 4 };

typedef struct {
    uint64_t *hash; /* sorted, each once */
    size_t n;
} Shingles;

void shingles_make(const char *source, Shingles *out);
void shingles_release(Shingles *s);
/* The share of the shingles of both that are in both (Jaccard); 0 when neither has any. */
double shingles_similarity(const Shingles *a, const Shingles *b);

typedef struct {
    char *id, *task, *source, *cheat, *message;
    char source_digest[DIGEST_HEX];
    Shingles shingles;
} Hack;

typedef struct {
    Hack *items;
    long n;
} Hacks;

typedef struct {
    const Hack *hack;
    double similarity;
} HackMatch;

/* path NULL gives an empty memory. */
int hacks_load(const char *path, Hacks *out, Error *err);
void hacks_release(Hacks *h);
/* Adds the samples whose verdict is `cheat`, whatever their split. Returns how many, or -1. */
long hacks_add(Hacks *h, const SampleSet *s, Error *err);
int hacks_write(const Hacks *h, const char *path, const ArtifactSpec *spec, Error *err);
/* Fills out with the most similar hacks, of any task, the most similar first. Returns how many. */
int hacks_nearest(const Hacks *h, const char *source, HackMatch *out, int max);

#endif

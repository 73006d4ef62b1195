/* The memory of hacks: every confirmed cheat of a run, each source once for its task. */
#ifndef STAGES_CRL_HACKS_H
#define STAGES_CRL_HACKS_H

#include "stages/crl/shingles.h"
#include "stages/data/samples.h"

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

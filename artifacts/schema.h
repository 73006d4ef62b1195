/* The fields of each kind of artifact, as a table: name, type, optional or not. Unknown fields are
 * refused, so that a misspelt name cannot pass.
 *
 * Types: t text, b bytes, i int, f float, B bool, I ints, F floats, T texts, m map, L list of maps;
 * ? marks an optional field.
 *
 * samples   id t  task t  split t  stage t  producer t (generator, openai:MODEL, native, dir:PATH)
 *           group t (the prompt's)  trial i  seed i  finish t (stop, length, error)
 *           text t (the answer)  source t (the candidate, "" if the answer holds none)  prompt t
 *           prompt_ids I?  ids I?  logprobs F? (as sampled, native only)  usage m?
 *           turn i? (from 2 on: an answer to a verdict)  parent t? (the sample that was judged)
 * verdicts  the sample's id t, and the fields of docs/verdict.md
 * dataset   id t  task t  kind t (plain, contrastive, drill, correction)
 *           prompt t  answer t  score f
 * prompts   id t  task t  split t  kind t  text t  exemplars L? ({id t, score f})
 *           group t? (of its answers; else its id)  turn i?  parent t?
 * pool      id t  task t  source t  source_digest t  score f  speedup f  stage t  round i
 *           counters m?  parents T? (digests of the sources that its prompt showed, "baseline")
 * results   task t  split t  level i  degenerate B  device t  predicted B  score f  outcome t
 *           source t  baseline_source t  time_us f  baseline_us f  counters m?
 *           baseline_counters m?
 * hacks     id t  task t  source t  source_digest t  cheat t (its name)  message t
 * reviews   id t  task t  score f  similar L? ({id t, cheat t, similarity f})  judge t ("": none)
 *           word t (cheat, honest, "": none)  said t (the judge's answer)
 *           recheck t (an outcome, "": none)  withheld B
 * metrics   step i  name t  value f
 * manifest  name t  digest t  bytes i */
#ifndef ARTIFACTS_SCHEMA_H
#define ARTIFACTS_SCHEMA_H

#include "artifacts/record.h"

int schema_known(const char *kind);
int schema_version(const char *kind); /* 0 for an unknown kind */
/* Field number i of a kind, its type letter and whether it is optional. NULL past the last. */
const char *schema_field(const char *kind, int i, char *type, int *optional);
/* Checks one record against the table of its kind. */
int schema_check(const char *kind, const View *v, Error *err);

#endif

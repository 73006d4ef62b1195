/* The resolved configuration of a stage, as its artifact's header keeps it: every flag that decides what
 * comes out, those left at their defaults too. */
#ifndef STAGES_CONFIG_H
#define STAGES_CONFIG_H

#include "artifacts/artifact.h"
#include "base/flags.h"

void config_from_flags(ArtifactSpec *s, const Flag *flags);

#endif

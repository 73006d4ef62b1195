/* The resolved configuration of a stage, as its artifact's header keeps it: every flag that decides
 * what comes out, those left at their defaults too. */
#ifndef STAGES_DATA_STAGE_CONFIG_H
#define STAGES_DATA_STAGE_CONFIG_H

#include "artifacts/artifact.h"
#include "base/flags.h"

void config_from_flags(ArtifactSpec *s, const Flag *flags);

/* For Flag.aside: part of the configuration where it is not at its default. So what was made before
 * the flag existed keeps its header, and is still the same work. */
enum { CONFIG_CHANGED = 2 };
typedef struct {
    char *text[64];
} ConfigDefaults;

/* Before flags_parse. */
void config_defaults(ConfigDefaults *d, const Flag *flags);
/* After it: the spec of what the program writes, with its whole configuration. Releases the
 * defaults. */
void config_spec(ArtifactSpec *s, const char *kind, const FlagSpec *program, ConfigDefaults *d);

#endif

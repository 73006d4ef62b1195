/* The resolved configuration of a program in the header of its artifact: the value of every flag
 * that decides the payload, given or default. Flag.aside = 1 leaves a flag out. */
#ifndef STAGES_DATA_STAGE_CONFIG_H
#define STAGES_DATA_STAGE_CONFIG_H

#include "artifacts/artifact.h"
#include "base/flags.h"
#include "tasks/task.h"

/* Adds the flags without .aside to the configuration. */
void config_from_flags(ArtifactSpec *s, const Flag *flags);

/* A value of Flag.aside: the flag is in the configuration only when it differs from its default. An
 * artifact from before the flag existed then still has the header of the same work. */
enum { CONFIG_CHANGED = 2 };
typedef struct {
    char *text[64];
} ConfigDefaults;

/* Keeps the defaults of the flags with CONFIG_CHANGED; called before flags_parse. */
void config_defaults(ConfigDefaults *d, const Flag *flags);
/* Makes the spec of the program's artifact with its configuration; called after flags_parse.
 * Releases the defaults; NULL: no flag has CONFIG_CHANGED. */
void config_spec(ArtifactSpec *s, const char *kind, const FlagSpec *program, ConfigDefaults *d);

/* Rows of a flag table for the tasks of a program. */
#define TASK_FLAGS(only, root)                                                                  \
    FLAG("tasks", FLAG_TEXT, &(only), "names, comma separated; all when left out", .aside = 1), \
        FLAG("task-root", FLAG_TEXT, &(root), "folder of the tasks", .aside = 1)
/* Adds the inputs of an artifact: files, of which NULL is none, then the digest of the tasks that the
 * flags name, which the caller releases. */
int config_inputs(ArtifactSpec *s, const char *const *paths, int n, Error *err);
int config_tasks(ArtifactSpec *s, const char *root, const char *only, TaskSet *out, Error *err);

#endif

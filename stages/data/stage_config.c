/* Values as text, so that equal settings give equal headers. */
#include "stages/data/stage_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"

static char *value_of(const Flag *f)
{
    const char *text = f->kind == FLAG_TEXT ? *(const char **)f->target : NULL;
    if (f->kind == FLAG_BOOL) return memory_printf("%d", *(int *)f->target);
    if (f->kind == FLAG_INT) return memory_printf("%lld", (long long)*(int64_t *)f->target);
    size_t n;
    if (f->kind == FLAG_CHOICE) {
        const char *word = word_chosen(f->choices, *(int *)f->target, &n);
        return memory_strndup(word, n);
    }
    if (f->kind == FLAG_FLOAT) return memory_printf("%.17g", *(double *)f->target);
    return memory_strdup(text ? text : "");
}

void config_from_flags(ArtifactSpec *s, const Flag *flags)
{
    for (const Flag *f = flags; f->name; f++) {
        if (f->aside) continue;
        char *value = value_of(f);
        artifact_spec_config(s, f->name, "%s", value);
        free(value);
    }
}

void config_defaults(ConfigDefaults *d, const Flag *flags)
{
    *d = (ConfigDefaults){0};
    for (size_t i = 0; flags[i].name && i < sizeof d->text / sizeof *d->text; i++)
        if (flags[i].aside == CONFIG_CHANGED) d->text[i] = value_of(&flags[i]);
}

static void add_changes(ArtifactSpec *s, const Flag *flags, ConfigDefaults *d)
{
    for (size_t i = 0; flags[i].name && i < sizeof d->text / sizeof *d->text; i++) {
        if (!d->text[i]) continue;
        char *value = value_of(&flags[i]);
        if (strcmp(value, d->text[i])) artifact_spec_config(s, flags[i].name, "%s", value);
        free(value);
        free(d->text[i]);
    }
    *d = (ConfigDefaults){0};
}

void config_spec(ArtifactSpec *s, const char *kind, const FlagSpec *program, ConfigDefaults *d)
{
    artifact_spec_init(s, kind, program->program);
    config_from_flags(s, program->flags);
    if (d) add_changes(s, program->flags, d);
}

int config_inputs(ArtifactSpec *s, const char *const *paths, int n, Error *err)
{
    for (int i = 0; i < n; i++)
        if (paths[i] && artifact_spec_input(s, paths[i], err)) return -1;
    return 0;
}

int config_tasks(ArtifactSpec *s, const char *root, const char *only, TaskSet *out, Error *err)
{
    if (taskset_load(root, only, out, err)) return -1;
    artifact_spec_input_digest(s, "tasks", out->digest);
    return 0;
}

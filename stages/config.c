#include "stages/config.h"

void config_from_flags(ArtifactSpec *s, const Flag *flags)
{
    for (const Flag *f = flags; f->name; f++) {
        if (f->aside) continue;
        const char *text = f->kind == FLAG_TEXT ? *(const char **)f->target : NULL;
        if (f->kind == FLAG_BOOL) artifact_spec_config(s, f->name, "%d", *(int *)f->target);
        if (f->kind == FLAG_INT) artifact_spec_config(s, f->name, "%lld", (long long)*(int64_t *)f->target);
        if (f->kind == FLAG_FLOAT) artifact_spec_config(s, f->name, "%.17g", *(double *)f->target);
        if (f->kind == FLAG_TEXT) artifact_spec_config(s, f->name, "%s", text ? text : "");
    }
}

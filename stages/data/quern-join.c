/* quern-join: the records of several artifacts of one kind as one artifact, in their order. */
#include <stdlib.h>

#include "artifacts/artifact.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"

static int append(ArtifactWriter *w, const char *path, const char *kind, Error *err)
{
    ArtifactReader *r;
    View v;
    int rc = 0, more = 0;
    if (artifact_open(path, kind, &r, err)) return -1;
    for (long i = 0; !rc && (more = artifact_next(r, &v, err)) == 1; i++) {
        const void *data;
        size_t len;
        rc = -(artifact_raw(r, i, &data, &len) || artifact_write_encoded(w, data, len, err));
    }
    artifact_close(r);
    return -(rc || more < 0);
}

/* The kind of the first input, which the caller frees; the others must have it, too. Its settings
 * become those of the result: what reads samples asks for the limit on their tokens. */
static char *describe(const char *path, ArtifactSpec *spec, Error *err)
{
    ArtifactReader *r;
    View config;
    if (artifact_open(path, NULL, &r, err)) return NULL;
    char *kind = view_strdup(artifact_header(r), "kind", err), *value;
    if (kind && !view_map(artifact_header(r), "config", &config, err) &&
        view_has(&config, "max-new") && (value = view_strdup(&config, "max-new", err))) {
        artifact_spec_config(spec, "max-new", "%s", value);
        free(value);
    }
    artifact_close(r);
    return kind;
}

int main(int argc, char **argv)
{
    const char *output = NULL;
    const Flag flags[] = {
        {"output", FLAG_TEXT, &output, "artifact to write", .required = 1, .aside = 1}, {0}};
    const FlagSpec spec = {"quern-join",
                           "--output FILE FILE...",
                           "Join artifacts of one kind, in their order.",
                           flags,
                           1,
                           ARTIFACT_MAX_INPUTS,
                           0};
    const char **words = memory_array((size_t)argc, sizeof *words);
    int n = flags_parse(&spec, argc, argv, words), rc = 0;
    stop_install();
    Error err;
    ArtifactSpec out;
    ArtifactWriter *w;
    artifact_spec_init(&out, "samples", "quern-join");
    char *kind = describe(words[0], &out, &err);
    if (!kind) log_die(&err);
    out.kind = kind;
    for (int i = 0; i < n; i++)
        if (artifact_spec_input(&out, words[i], &err)) log_die(&err);
    if (artifact_same(&out, output)) return 0;
    if (artifact_create(output, &out, &w, &err)) log_die(&err);
    for (int i = 0; i < n && !rc; i++) rc = append(w, words[i], kind, &err);
    if (artifact_end(w, rc, &err)) log_die(&err);
    artifact_spec_release(&out);
    free(kind);
    free(words);
    return log_close(0);
}

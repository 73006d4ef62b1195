/* The step is in the header of metrics.qa, among the configuration, under a name that no flag
 * has. */
#include "stages/train/checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "model/core/ranks.h"
#include "model/files/model_files.h"
#include "model/trainer.h"

static char step_key[] = "~step"; /* sorts behind every flag */

void metric_add(MetricLog *l, long step, const char *name, double value)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 256;
        l->items = memory_grow(l->items, (size_t)l->cap, sizeof *l->items);
    }
    Metric *m = &l->items[l->n++];
    m->step = step;
    m->value = value;
    snprintf(m->name, sizeof m->name, "%s", name);
}

double metric_last(const MetricLog *l, const char *name)
{
    for (long i = l->n - 1; i >= 0; i--)
        if (!strcmp(l->items[i].name, name)) return l->items[i].value;
    return NAN;
}

int metric_write(const MetricLog *l, const char *path, const ArtifactSpec *spec, Error *err)
{
    ArtifactSpec s = *spec;
    s.kind = "metrics";
    ArtifactWriter *w;
    if (artifact_create(path, &s, &w, err)) return -1;
    int rc = 0;
    for (long i = 0; !rc && i < l->n; i++) {
        Record *r = record_new();
        record_int(r, "step", l->items[i].step);
        record_text(r, "name", l->items[i].name);
        record_float(r, "value", l->items[i].value);
        rc = artifact_put(w, r, err);
    }
    return artifact_end(w, rc, err);
}

void metric_release(MetricLog *l)
{
    free(l->items);
    *l = (MetricLog){0};
}

/* The first rank writes the model before, and renames after, the optimizer's state, which all ranks
 * write together. */
static int begin_save(const char *fresh, const Model *m, Error *err)
{
    return -(file_remove_tree(fresh, err) || file_mkdirs(fresh, err) || model_save(m, fresh, err));
}

static int end_save(const Checkpoint *c, const char *fresh, const TrainingState *state, Error *err)
{
    char old[4096], path[4200], number[24];
    ArtifactSpec s = *c->spec;
    snprintf(old, sizeof old, "%s.old", c->dir);
    if (s.n_config == ARTIFACT_MAX_CONFIG)
        return error_set(err, ERROR_LIMIT, "no room for the step in the checkpoint's header");
    snprintf(number, sizeof number, "%ld", state->step);
    s.config[s.n_config].key = step_key;
    s.config[s.n_config++].value = number;
    snprintf(path, sizeof path, "%s/metrics.qa", fresh);
    if (metric_write(&state->log, path, &s, err) || file_remove_tree(old, err)) return -1;
    if (file_exists(c->dir) && rename(c->dir, old))
        return error_errno(err, "cannot rename %s", c->dir);
    if (rename(fresh, c->dir)) return error_errno(err, "cannot rename %s", fresh);
    return file_sync_dir(c->dir, err) ? -1 : file_remove_tree(old, err);
}

int checkpoint_save(const Checkpoint *c, const TrainingState *s, Error *err)
{
    char fresh[4096], path[4200];
    snprintf(fresh, sizeof fresh, "%s.new", c->dir);
    snprintf(path, sizeof path, "%s/optimizer.safetensors", fresh);
    int first = !ranks_rank();
    if ((first && begin_save(fresh, s->m, err)) || trainer_save(s->t, path, err)) return -1;
    return first ? end_save(c, fresh, s, err) : 0;
}

static int read_metrics(const char *path, const Checkpoint *c, TrainingState *state, Error *err)
{
    ArtifactReader *r;
    if (artifact_open(path, "metrics", &r, err)) return -1;
    View config, v;
    char *text = view_map(artifact_header(r), "config", &config, err)
                     ? NULL
                     : view_strdup(&config, step_key, err);
    ArtifactSpec s = *c->spec;
    int rc = -1, more = 1;
    if (text && s.n_config < ARTIFACT_MAX_CONFIG) {
        s.kind = "metrics";
        s.config[s.n_config].key = step_key;
        s.config[s.n_config++].value = text;
        rc = artifact_matches(r, &s)
                 ? 0
                 : error_set(err, ERROR_INVALID, "%s is of another configuration", path);
    }
    while (!rc && (more = artifact_next(r, &v, err)) == 1) {
        int64_t at;
        double value;
        char *name = view_strdup(&v, "name", err);
        rc = -(!name || view_int(&v, "step", &at, err) || view_float(&v, "value", &value, err));
        if (!rc) metric_add(&state->log, at, name, value);
        free(name);
    }
    if (!rc && more < 0) rc = -1;
    if (!rc) state->step = strtol(text, NULL, 10);
    free(text);
    artifact_close(r);
    return rc;
}

int checkpoint_load(const Checkpoint *c, TrainingState *s, Error *err)
{
    char dir[4096], path[4200];
    Error why;
    snprintf(dir, sizeof dir, "%s", c->dir);
    s->step = 0;
    if (!file_exists(dir))
        snprintf(dir, sizeof dir, "%s.old", c->dir); /* killed between two renames */
    if (!file_exists(dir)) return 0;
    snprintf(path, sizeof path, "%s/metrics.qa", dir);
    if (read_metrics(path, c, s, &why)) {
        log_info("starting over: %s", why.text);
        metric_release(&s->log);
        s->step = 0;
        return 0;
    }
    snprintf(path, sizeof path, "%s/optimizer.safetensors", dir);
    if (!model_restore(s->m, dir, err) && !trainer_load(s->t, path, err)) return 0;
    snprintf(path, sizeof path, "%s.damaged", c->dir);
    if (!ranks_rank() && !file_remove_tree(path, NULL) && !rename(dir, path))
        error_prefix(err, "%s is put aside; the same command starts over", path);
    return -1;
}

void checkpoint_remove(const char *dir)
{
    static const char *const ends[] = {"", ".new", ".old"};
    char path[4200];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", dir, ends[i]);
        file_remove_tree(path, NULL);
    }
}

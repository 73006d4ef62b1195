/* Drafts as JSON files: the fields of task.json, of which tolerance, workloads, constraints, tags and
 * draws may be left out. An axis has "size", and may have "low" and "high". "shapes" is a text of
 * shapes.h. */
#ifndef TASKS_DERIVE_DRAFT_FILE_H
#define TASKS_DERIVE_DRAFT_FILE_H

#include "base/json.h"
#include "tasks/derive/derive.h"

typedef struct {
    Draft draft;
    const char *path; /* the caller's */
    json_t *root;     /* holds the texts */
    DraftAxis *axes;
    DraftTensor *inputs, *outputs;
    DraftShape *shapes;
    const char **texts[3]; /* tags, constraints, lines */
} DraftFile;

int draft_file_read(const char *path, DraftFile *out, Error *err);
void draft_file_release(DraftFile *f);

#endif

/* Designs that are not drawn, by task. A line of the file has a task's name, or "*"
 * for every task, and designs as NAME=VALUE, or FAMILY/NAME=VALUE of one family alone, with blanks between:
 *   gelu vector=4 way=registers matmul_bias_relu/launches=1 */
#ifndef TASKS_DESIGNS_H
#define TASKS_DESIGNS_H

#include <stddef.h>

#include "artifacts/artifact.h"

typedef struct {
    struct {
        char *task, *designs;
    } * lines;
    int n;
} Designs;

/* Reads the file, and adds its digest to the inputs of an artifact (NULL: of none). The caller releases *out,
 * also after an error. */
int designs_read(const char *path, Designs *out, ArtifactSpec *spec, Error *err);
void designs_release(Designs *d);

/* Those of a task, as the file has them; NULL: all designs are drawn. d may be NULL. */
const char *designs_of(const Designs *d, const char *task);
/* Whether such a list has the design of a family. */
int designs_has(const char *list, const char *family, const char *name, const char *value,
                size_t len);

#endif

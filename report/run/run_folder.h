/* The folder of a run: where it is, its settings as they were resolved last, whether it is going on,
 * and the paths of its artifacts. Nothing here reads an artifact. */
#ifndef REPORT_RUN_RUN_FOLDER_H
#define REPORT_RUN_RUN_FOLDER_H

#include "base/error.h"

typedef struct {
    char *name, *value;
} RunSetting;

typedef struct {
    char *dir, *name;
    RunSetting *settings;
    int n_settings;
} RunFolder;

/* run: a folder that holds settings.mk, else the name of a run below `runs`. ERROR_NOT_FOUND when it is
 * neither. The caller releases *out, also after an error. */
int run_folder_open(const char *run, const char *runs, RunFolder *out, Error *err);
void run_folder_release(RunFolder *r);
/* The value of a setting, "" when there is none. */
const char *run_folder_setting(const RunFolder *r, const char *name);
/* Whether a setting has been given a value other than "" and "0". */
int run_folder_has(const RunFolder *r, const char *name);
/* Whether the fleet of the run holds its lock. */
int run_folder_is_live(const RunFolder *r);

/* The path of something in the run; the caller frees it. */
char *run_folder_path(const RunFolder *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Whether it exists. */
int run_folder_holds(const RunFolder *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The rounds of a stage ("selfsup", "crl") that the settings ask for, and the first of them that are
 * finished: those with a pool and, where a model is trained, its manifest. */
int run_folder_rounds(const RunFolder *r, const char *stage);
int run_folder_rounds_done(const RunFolder *r, const char *stage);
/* The pool of the last round that has one, or of collect; NULL when there is none yet. The caller frees
 * it. */
char *run_folder_last_pool(const RunFolder *r);

#endif

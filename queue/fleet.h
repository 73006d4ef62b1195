/* A command with a queue and evaluators around it, taken down with it. */
#ifndef QUEUE_FLEET_H
#define QUEUE_FLEET_H

#include "base/error.h"

enum { FLEET_MAX_WORKERS = 256 };

typedef struct {
    const char
        *dir; /* of the private server's data, and of the lock; NULL with an outside one: no lock */
    const char *version;        /* as queue_open's */
    const char *redis;          /* an outside server, or NULL: start a private one */
    const char *evaluator;      /* path of quern-evald */
    const char *const *devices; /* n_devices; worker i serves device i modulo n_devices */
    int n_devices, workers;
    char *const *command; /* NULL-terminated argv */
    int parent;           /* process whose end ends all, as Ctrl-C would; 0: none */
} FleetOptions;

/* Run it to its end. 0 with the command's status as a shell gives it (128+n for a signal), or -1.
 */
int fleet_run(const FleetOptions *opt, int *status, Error *err);

#endif

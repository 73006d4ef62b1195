/* Run a command with a queue and workers around it, and take all of them down with it. The fleet
 * starts a private Redis server or uses a given one. It starts the worker program once per worker,
 * restarts workers that crash, and frees the leases of workers that have ended. */
#ifndef QUEUE_FLEET_H
#define QUEUE_FLEET_H

#include "base/error.h"

enum { FLEET_MAX_WORKERS = 256 };

typedef struct {
    /* Directory of the private server's data and of the lock. NULL: an outside server, no lock. */
    const char *dir;
    const char *version; /* as queue_open's */
    const char *redis;   /* URL of an outside server; NULL: start a private one */
    const char *worker;  /* path of the worker program: WORKER --device DEVICE --consumer NAME */
    const char *noun;    /* what messages call a worker */
    const char *const *devices; /* n_devices; worker i serves device i modulo n_devices */
    int n_devices, workers;
    /* OpenMP threads of a worker, by device, unless OMP_NUM_THREADS says; NULL, 0: as OpenMP chooses */
    const int *threads;
    char *const *command; /* NULL-terminated argv */
    int forget; /* remove the private server's data when the command succeeds and no job is dead */
    int parent; /* a process whose end stops the command, as Ctrl-C does; 0: none */
} FleetOptions;

/* Run the command to its end. Returns 0 with the command's exit status as a shell gives it (128+n
 * after signal n), or -1.
 *
 * A worker that exits with EXIT_STATUS_USAGE or EXIT_STATUS_SICK is not started again. When no
 * worker is left, the fleet ends with ERROR_CHILD. */
int fleet_run(const FleetOptions *opt, int *status, Error *err);

#endif

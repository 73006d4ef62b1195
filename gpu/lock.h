/* The lock of one GPU among the processes of a machine. Timing holds it alone; all other work of
 * Quern on that GPU (checks, copies, sampling, training) takes the shared side around each short
 * batch of launches, so that no timing is disturbed and everything else runs together. A process
 * that waits to be alone goes before those that come later to share, so timing is never starved;
 * the kernel releases what a process held when it dies.
 *
 * It is a pair of byte locks (F_OFD_SETLK) on quern-gpu-UUID.lock in /tmp, or in $QUERN_LOCK_DIR:
 * the folder must be the same for all users of the GPU, those in other containers included. The
 * file belongs to whoever came first, is open to all (0666), is never removed, and holds the
 * process id of the last who timed. */
#ifndef GPU_LOCK_H
#define GPU_LOCK_H

#include "base/error.h"

typedef struct GpuLock GpuLock;

typedef enum { GPU_FREE, GPU_SHARED, GPU_EXCLUSIVE } GpuHold;

/* No one is kept out yet. A symbolic link or anything but a file in its place is an error. */
int lock_open(const char *uuid, GpuLock **out, Error *err);
void lock_close(GpuLock *l); /* releases too; NULL is none */

/* Wait at most wait_s seconds; after them -1, and the error names the last who timed. Holding
 * either side already is an error: nothing is nested, and a shared side is not raised. */
int lock_exclusive(GpuLock *l, double wait_s, Error *err);
int lock_shared(GpuLock *l, double wait_s, Error *err);
void lock_release(GpuLock *l);       /* of what is held; nothing is no error */
GpuHold lock_held(const GpuLock *l); /* by this handle */
/* Whether another process has it alone or waits to: who shares it for long asks now and then, and
 * lets go. */
int lock_is_contended(const GpuLock *l);

#endif

/* The lock of one GPU among the processes of a machine. Timing holds it exclusively. All other work
 * of Quern on that GPU (checks, copies, sampling, training) takes the shared side around each short
 * batch of launches, so that it disturbs no timing and runs concurrently. A process that waits for
 * the exclusive side goes before processes that ask for the shared side later, so that timing is
 * never starved; behind a long work it lets them in half of the time, in the first twentieth of the time that
 * it may wait. The kernel releases the lock of a process that ends.
 *
 * It is a pair of byte locks (F_OFD_SETLK) on quern-gpu-UUID.lock in /tmp, or in $QUERN_LOCK_DIR.
 * All users of the GPU, also in other containers, must use the same folder. The first process
 * creates the file with mode 0666; it is never removed, and holds the process id of the last that
 * timed. Its time of change is when that began or ended. */
#ifndef GPU_LOCK_H
#define GPU_LOCK_H

#include "base/error.h"

typedef struct GpuLock GpuLock;

typedef enum { GPU_FREE, GPU_SHARED, GPU_EXCLUSIVE } GpuHold;

/* Open the lock without taking it. Anything but a regular file in its place is an error. */
int lock_open(const char *uuid, GpuLock **out, Error *err);
void lock_close(GpuLock *l); /* also releases it; NULL is allowed */

/* Wait at most wait_s seconds for a side; after them -1, with an error that names the last process
 * that timed. It is an error when this handle already holds a side: locks do not nest, and a shared
 * lock cannot become exclusive. */
int lock_exclusive(GpuLock *l, double wait_s, Error *err);
int lock_shared(GpuLock *l, double wait_s, Error *err);
/* Seconds that nobody held the exclusive side before this handle took it last. Infinite: nobody ever did. */
double lock_idle_s(const GpuLock *l);
/* A descriptor that holds the shared side by itself until its last copy is closed, for a process that
 * gives the GPU work before it can ask. Returns -1 without waiting where another process times or waits
 * for that. */
int lock_shared_descriptor(const GpuLock *l);
void lock_release(GpuLock *l);       /* does nothing when no side is held */
GpuHold lock_held(const GpuLock *l); /* the side that this handle holds */
/* Whether another process holds the exclusive side or waits for it. A process that shares the lock
 * for long asks this regularly and releases the lock. */
int lock_is_contended(const GpuLock *l);

#endif

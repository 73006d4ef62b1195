/* The harness's end of the runner process (quern-cudarunner): start, ask, stop, start again. What
 * it says is untrusted, every wait has an end, and a runner that does not answer in time is killed.
 */
#ifndef EVAL_CUDA_PROCESS_RUNNER_PROCESS_H
#define EVAL_CUDA_PROCESS_RUNNER_PROCESS_H

#include <sys/types.h>

#include "eval/cuda/context/protocol.h"

typedef struct {
    int ordinal, trusted; /* trusted: started for baselines, which may call libraries */
    pid_t pid;            /* 0: not running */
    int fd;
    int ready;           /* its context is there and it has the mailbox */
    unsigned generation; /* counts the processes, from 1 */
    uint32_t sequence;
    int mailbox_fd;
    unsigned char *mailbox; /* PROTOCOL_MAILBOX bytes, the same for all generations */
    int status;             /* of the last that ended, as waitpid gives it */
} CudaRunner;

/* Makes the mailbox and starts the first process, without waiting for it. */
int cudarunner_open(CudaRunner *r, int ordinal, int trusted, Error *err);
int cudarunner_start(CudaRunner *r, Error *err); /* another, when none runs */
int cudarunner_wait(CudaRunner *r, Error *err);  /* until it is ready to be set up */
/* Has it ended, without being asked anything? Then it is no longer there. */
void cudarunner_look(CudaRunner *r);
/* Its end begins, and nothing can be asked any more; to be followed by one of those below. */
void cudarunner_kill(CudaRunner *r);
/* Kill it and wait for its end: bounded, for a process may hang in a driver whose GPU does. */
int cudarunner_stop(CudaRunner *r, Error *err);
void cudarunner_close(CudaRunner *r);

typedef enum {
    RUNNER_ANSWERED,
    RUNNER_LATE,  /* no answer within the limit: it was killed */
    RUNNER_DIED,  /* it ended by itself: status says how */
    RUNNER_BROKEN /* err: it cannot be asked, or speaks nonsense; it was killed */
} RunnerReply;

/* One call. fd: a descriptor to hand over, or -1. */
RunnerReply cudarunner_call(CudaRunner *r, CudaCall *call, int fd, double limit_s,
                            CudaAnswer *answer, Error *err);

/* One message with or without a descriptor; also for the runner's own end. receive: bytes, 0 at the
 * end, -1 an error. */
int message_send(int socket, const void *data, size_t size, int fd, Error *err);
ssize_t message_receive(int socket, void *data, size_t size, int *fd);
/* Is there a message, or the end, within so long? Without giving the core away, from which to wake
 * takes longer than many a kernel: while timing, a call is 0.2 to 1 ms. */
enum { MESSAGE_SPIN_US = 1000 };
int message_spin(int socket, double s);

#endif

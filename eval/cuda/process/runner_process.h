/* The harness's side of the runner process (quern-cudarunner): start, call, stop, start again. Its
 * answers are untrusted, every wait has a limit, and a runner that does not answer in time is
 * killed. */
#ifndef EVAL_CUDA_PROCESS_RUNNER_PROCESS_H
#define EVAL_CUDA_PROCESS_RUNNER_PROCESS_H

#include <sys/types.h>

#include "eval/cuda/context/protocol.h"

typedef struct {
    int ordinal;
    const char *role; /* NULL: candidates; "trusted": baselines; "library": with library calls */
    pid_t pid;        /* 0: not running */
    int fd;
    int ready;           /* its context exists */
    unsigned generation; /* number of the process, from 1 */
    uint32_t sequence;
    int mailbox_fd;
    unsigned char *mailbox; /* PROTOCOL_MAILBOX bytes, the same for all generations */
    int status;             /* of the last process that ended, from waitpid */
    pid_t spare;            /* a process that the next start takes, and its socket; 0: none */
    int spare_fd;
    pid_t ending; /* was killed by cudarunner_next and may not have ended yet; 0: none */
    double ending_since;
} CudaRunner;

/* Create the mailbox. role lasts as long as the process; NULL: it runs candidates. */
int cudarunner_open(CudaRunner *r, int ordinal, const char *role, Error *err);
const char *cudarunner_name(const CudaRunner *r); /* in messages */
/* Start a process when none runs, without waiting for it: the spare one, where there is one. */
int cudarunner_start(CudaRunner *r, Error *err);
/* Start the process of a later start, whose context is made meanwhile. It knows neither mailbox nor buffers.
 * hold: a descriptor that it keeps until it has its context, or has ended. */
int cudarunner_spare(CudaRunner *r, int hold, Error *err);
/* Kill the process, which must be idle, and start another without waiting for its end. */
int cudarunner_next(CudaRunner *r, Error *err);
/* Wait for the end of the process that cudarunner_next has killed, at most 20 seconds. Returns at once where
 * there is none. */
int cudarunner_reap(CudaRunner *r, Error *err);
/* Whether that process has ended, or there is none. */
int cudarunner_reaped(CudaRunner *r);
/* Wait until the process is ready for CALL_SETUP. */
int cudarunner_wait(CudaRunner *r, Error *err);
/* Set pid to 0 when the process has ended since the last call. */
void cudarunner_poll(CudaRunner *r);
/* Kill the process without waiting for its end. cudarunner_stop or cudarunner_close must follow. The spare
 * one stays. */
void cudarunner_kill(CudaRunner *r);
void cudarunner_kill_all(CudaRunner *r); /* the spare one, too */
/* Kill the process and wait for its end, at most 20 seconds: it may hang in the driver with its
 * GPU. */
int cudarunner_stop(CudaRunner *r, Error *err);
void cudarunner_close(CudaRunner *r);

typedef enum {
    RUNNER_ANSWERED,
    RUNNER_LATE,  /* no answer within the limit; the process was killed */
    RUNNER_ENDED, /* the process ended by itself, with r->status */
    RUNNER_BROKEN /* err: the call failed or the answer is invalid; the process was killed */
} RunnerReply;

/* One call of at most limit_s seconds. fd: a descriptor to hand over, or -1. */
RunnerReply cudarunner_call(CudaRunner *r, CudaCall *call, int fd, double limit_s,
                            CudaAnswer *answer, Error *err);

/* One message, with or without a descriptor (-1); also for the runner's side. message_receive
 * returns the number of bytes, 0 at the end, or -1. */
int message_send(int socket, const void *data, size_t size, int fd, Error *err);
ssize_t message_receive(int socket, void *data, size_t size, int *fd);
/* Wait at most s seconds for a message or the end of the socket; returns whether one has come. It
 * spins, since waking up takes longer than many kernels: while timing, a call takes 0.2 to 1 ms. */
enum { MESSAGE_SPIN_US = 1000 };
int message_spin(int socket, double s);

#endif

/* The protocol between the device and its runner process, over a socket of messages
 * (SOCK_SEQPACKET): one call, one answer. Cubins and launch records go through the mailbox, memory
 * that both have mapped; the device writes it and the runner reads it. An answer is copied once and
 * checked before it is used, since a candidate may have taken over the runner. */
#ifndef EVAL_CUDA_CONTEXT_PROTOCOL_H
#define EVAL_CUDA_CONTEXT_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "eval/device/device.h"

enum {
    PROTOCOL_MAILBOX = 64 << 20,
    PROTOCOL_NAME = 1024,
    PROTOCOL_MAX_LAUNCHES = 8192,
    PROTOCOL_FD = 3,
    PROTOCOL_HOLD = 4, /* kept until the context exists, where it is there */
    PROTOCOL_MAX_WAIT_NS = 1000000
};

typedef enum {
    CALL_HELLO,          /* the answer comes without a call, once the context exists; opened */
    CALL_SETUP,          /* at, bytes: reserve this range of addresses; descriptor: the mailbox */
    CALL_LOAD_STOPWATCH, /* bytes of the harness's cubin in the mailbox, for flush and wait */
    CALL_MAP,            /* at, bytes: map memory there; descriptor: the memory */
    CALL_UNMAP,          /* at, bytes */
    CALL_LOAD,           /* bytes of cubin in the mailbox; value: the module */
    CALL_UNLOAD,         /* value: the module */
    CALL_KERNEL,         /* value: the module, name; value: the kernel, info */
    CALL_RUN,            /* launches, in `bytes` of records in the mailbox */
    CALL_CLOCK,          /* the same, and mode; clock */
    CALL_COUNTERS,       /* the same; counters */
    CALL_RESET,          /* overwrite what a candidate may have left in the context */
    CALL_KINDS
} CallKind;

typedef struct {
    uint32_t kind, sequence;
    uint64_t at, bytes, value;
    uint32_t launches, mode;
    uint32_t period_ns, phase_ns; /* CALL_CLOCK: when the sequence begins (StallWait) */
    char name[PROTOCOL_NAME];
} CudaCall;

/* Where a launch sequence ended: refused at launch, while running, in the harness's own work, or at a
 * library call whose sizes the library refuses. */
typedef enum { END_OK, END_LAUNCH, END_RUN, END_HARNESS, END_LIBRARY } EndStep;

typedef struct {
    uint32_t step;        /* EndStep */
    int32_t result;       /* the driver's */
    int32_t first, last;  /* one of these launches is at fault */
    int32_t context_lost; /* the context cannot be used again */
    char text[256];       /* what the runner was doing; END_LIBRARY: what the library says */
} LaunchEnd;

typedef struct {
    uint32_t kind, sequence;
    uint64_t value;
    LaunchEnd end;
    union {
        DeviceClock clock;
        KernelInfo kernel;
        struct {
            double driver_s, context_s; /* time to start them */
        } opened;
        struct {
            int32_t n;
            DeviceCounter list[DEVICE_MAX_COUNTERS];
        } counters;
    } u;
} CudaAnswer;

/* Check that this is an answer to the call and that every count and index is inside its bounds.
 * `size`: bytes received. */
int protocol_check(const CudaCall *call, CudaAnswer *answer, size_t size, Error *err);
/* The runner's check of a call. */
int protocol_check_call(const CudaCall *call, size_t size, Error *err);

/* One launch. kernel: the number from the answer to CALL_KERNEL. */
typedef struct {
    uint32_t kernel, library_args, cooperative;
    uint32_t grid[3], block[3], shared, param_bytes;
    char name[64]; /* of a library call, else "" */
    const unsigned char *params;
} LaunchRecord;

/* Append a launch to the records; *used grows. Returns -1 when there is no room. */
int launch_encode(const DeviceLaunch *l, uint32_t kernel, uint32_t param_bytes,
                  unsigned char *records, size_t room, size_t *used);
/* Read the record at *at and advance *at. Returns -1 when the record is damaged. */
int launch_decode(const unsigned char *records, size_t bytes, size_t *at, LaunchRecord *out);

#endif

/* What the device and its runner process say to each other, over a socket of messages
 * (SOCK_SEQPACKET): one call, one answer. What is long goes through the mailbox, memory that both
 * have mapped: cubins and launch records, written by the device and read by the runner. Answers are
 * short, copied once, and checked before anything in them is believed. */
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
    PROTOCOL_MAX_WAIT_NS = 1000000
};

typedef enum {
    CALL_HELLO, /* answered without being asked, when the context is there; opened */
    CALL_SETUP, /* at, bytes: reserve this range of addresses; the mailbox comes as a descriptor */
    CALL_LOAD_STOPWATCH, /* bytes of the harness's cubin in the mailbox: what the clock needs of it */
    CALL_MAP,            /* at, bytes: map there the memory that comes as a descriptor */
    CALL_UNMAP,          /* at, bytes */
    CALL_LOAD,           /* bytes of cubin in the mailbox; value: the module */
    CALL_UNLOAD,         /* value: the module */
    CALL_KERNEL,         /* value: the module, name; value: the kernel, info */
    CALL_RUN,            /* launches, in `bytes` of records in the mailbox */
    CALL_CLOCK,          /* the same, and mode; clock */
    CALL_COUNTERS,       /* the same; counters */
    CALL_KINDS
} CallKind;

typedef struct {
    uint32_t kind, sequence;
    uint64_t at, bytes, value;
    uint32_t launches, mode;
    uint32_t period_ns, phase_ns; /* CALL_CLOCK: when it begins (StallWait) */
    char name[PROTOCOL_NAME];
} CudaCall;

/* Where a launch sequence ended. */
typedef enum { END_OK, END_LAUNCH, END_RUN, END_HARNESS } EndStep;

typedef struct {
    uint32_t
        step; /* EndStep: refused at launch, while running, or in what the harness does around it */
    int32_t result;       /* the driver's */
    int32_t first, last;  /* launches among which the one at fault is */
    int32_t context_lost; /* the context cannot be used again */
    char text[256];       /* what was being done */
} LaunchEnd;

typedef struct {
    uint32_t kind, sequence;
    uint64_t value;
    LaunchEnd end;
    union {
        DeviceClock clock;
        KernelInfo kernel;
        struct {
            double driver_s, context_s; /* what its parts took */
        } opened;
        struct {
            int32_t n;
            DeviceCounter list[DEVICE_MAX_COUNTERS];
        } counters;
    } u;
} CudaAnswer;

/* Is this an answer to the call, with every count and index inside its bounds? `size`: bytes
 * received. */
int protocol_check(const CudaCall *call, CudaAnswer *answer, size_t size, Error *err);
int protocol_check_call(const CudaCall *call, size_t size, Error *err); /* the runner's side */

/* A launch as both sides execute it. kernel: what CALL_KERNEL gave. */
typedef struct {
    uint32_t kernel, library_args;
    uint32_t grid[3], block[3], shared, param_bytes;
    char name[64]; /* of a library call, else "" */
    const unsigned char *params;
} LaunchRecord;

/* Append one to records; -1: no room. Decoding moves *at; -1: torn. */
int launch_encode(const DeviceLaunch *l, uint32_t kernel, uint32_t param_bytes,
                  unsigned char *records, size_t room, size_t *used);
int launch_decode(const unsigned char *records, size_t bytes, size_t *at, LaunchRecord *out);

#endif

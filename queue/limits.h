/* What $QUERN_QUEUE sets: "lease=30,retry=60,jobs=10000,results=604800", all of them or some. */
#ifndef QUEUE_LIMITS_H
#define QUEUE_LIMITS_H

#include "base/error.h"

typedef struct {
    double lease_s;   /* of a job, 30 */
    double retry_s;   /* a lost server is tried again, 60 */
    double jobs;      /* that may wait on one stream, 10000 */
    double results_s; /* results are kept: 7 days, over unix: for ever, which is 0 */
} QueueLimits;

/* The limits for the server at the URL. */
int queue_limits_read(const char *url, QueueLimits *out, Error *err);

#endif

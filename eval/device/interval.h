/* The counter of a prediction from a sample: half of the 95% interval of the time, as a share of it. */
#ifndef EVAL_DEVICE_INTERVAL_H
#define EVAL_DEVICE_INTERVAL_H

#define DEVICE_INTERVAL "sample_interval"

#endif

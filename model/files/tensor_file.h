/* Inside the model module: copy tensors between a device and safetensors files, in pieces. */
#ifndef MODEL_FILES_TENSOR_FILE_H
#define MODEL_FILES_TENSOR_FILE_H

#include "model/core/parameters.h"
#include "model/files/safetensors.h"

/* An array with the layout of a set: Num of the device, or with `wide` float. */
typedef struct {
    const Ops *op;
    const void *from;
    int wide;
} TensorSource;

/* The caller keeps `name` and `from` until the file is written. */
SafetensorsOut tensor_out(const Tensor *t, const char *name, TensorSource *from);
/* Load numbers [first, first + n) of the tensor called `name`, of t's shape, to `to`. */
int tensor_load(const Safetensors *st, const char *name, const Tensor *t, size_t first, size_t n,
                const Ops *op, void *to, int wide, Error *err);

#endif

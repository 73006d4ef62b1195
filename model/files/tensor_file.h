/* Inside the model module: tensors of a device to and from files, in pieces. */
#ifndef MODEL_FILES_TENSOR_FILE_H
#define MODEL_FILES_TENSOR_FILE_H

#include "model/core/parameters.h"
#include "model/files/safetensors.h"

/* An array laid out as a set: Num of the device, or (wide) float. */
typedef struct {
    const Ops *op;
    const void *from;
    int wide;
} TensorSource;

/* `name` and `from` stay the caller's until the file is written. */
SafetensorsOut tensor_out(const Tensor *t, const char *name, TensorSource *from);
/* Numbers [first, first + n) of the tensor called `name`, of t's shape, to `to`. */
int tensor_load(const Safetensors *st, const char *name, const Tensor *t, size_t first, size_t n,
                const Ops *op, void *to, int wide, Error *err);

#endif

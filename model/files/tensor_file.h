/* Inside the model module: copy tensors between a device and safetensors files, in pieces. */
#ifndef MODEL_FILES_TENSOR_FILE_H
#define MODEL_FILES_TENSOR_FILE_H

#include "model/core/parameters.h"
#include "model/files/safetensors.h"

/* Numbers on a device: Num, or with `wide` float. */
typedef struct {
    const Ops *op;
    void *at;
    int wide;
} DeviceArray;

/* Numbers [first, first + n) of a tensor of t's shape, which has this name in a file. */
typedef struct {
    const char *name;
    const Tensor *t;
    size_t first, n;
} TensorSlice;

int tensor_load(const Safetensors *st, const TensorSlice *slice, DeviceArray to, Error *err);

/* Check that the file has all tensors of the set, and load them. */
int set_check(const ParamSet *s, const Safetensors *st, Error *err);
int set_load(const ParamSet *s, const Ops *op, const Safetensors *st, Error *err);
/* Returns the tensors of the set as safetensors_write takes them. The caller frees the array after
 * the file is written. */
SafetensorsOut *set_out(const ParamSet *s, const Ops *op);

#endif

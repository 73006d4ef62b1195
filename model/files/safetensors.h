/* Read safetensors files, which are untrusted input, by mmap, and write them as the reference
 * writer does. model.safetensors.index.json names the files of a sharded set. */
#ifndef MODEL_FILES_SAFETENSORS_H
#define MODEL_FILES_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"

typedef struct {
    char name[256];
    Dtype dtype; /* DTYPES: one that Quern does not read */
    int rank;
    int64_t shape[8];
    const void *data; /* points into the mapping; alignment 1 */
    size_t bytes, elements;
} SafetensorsTensor;

typedef struct Safetensors Safetensors;
int safetensors_open(const char *dir_or_file, Safetensors **out, Error *err);
void safetensors_close(Safetensors *s);
size_t safetensors_count(const Safetensors *s);
const SafetensorsTensor *safetensors_at(const Safetensors *s, size_t i);
const SafetensorsTensor *safetensors_find(const Safetensors *s, const char *name);
/* Returns the tensor of that name if it has this shape (rank, dims) and a floating-point type, else
 * NULL with an error. */
const SafetensorsTensor *safetensors_need(const Safetensors *s, const char *name, int rank,
                                          const int64_t *shape, Error *err);
/* Convert numbers [first, first + n) to fp32. */
void safetensors_floats(const SafetensorsTensor *t, size_t first, size_t n, float *dst);
/* Find a tensor and convert all of it to fp32. */
int safetensors_read_f32(const Safetensors *s, const char *name, int rank, const int64_t *shape,
                         float *dst, Error *err);

/* A tensor to write: fp32 numbers, either all in `data`, or read in pieces. */
typedef struct {
    const char *name;
    int rank;
    int64_t shape[8];
    const float *data; /* or NULL, and then `read`: */
    /* Read numbers [first, first + n). */
    void (*read)(const void *from, size_t first, size_t n, float *to);
    const void *from;
} SafetensorsOut;

/* Write one file atomically, stored as F32, or rounded to BF16 or F16. */
int safetensors_write(const char *path, const SafetensorsOut *tensors, size_t n, Dtype stored,
                      Error *err);
/* Write dir/model.safetensors; or files of at most max_bytes and, last,
 * dir/model.safetensors.index.json. The files of an earlier save of the other kind are removed. */
int safetensors_write_model(const char *dir, const SafetensorsOut *tensors, size_t n, Dtype stored,
                            size_t max_bytes, Error *err);

#endif

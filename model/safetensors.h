/* safetensors files, read as hostile input (mmap) and written as the reference writer does. Sharded
 * sets are read through model.safetensors.index.json. */
#ifndef MODEL_SAFETENSORS_H
#define MODEL_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum { ST_F32, ST_F16, ST_BF16, ST_F64, ST_I64, ST_I32, ST_OTHER } SafetensorsDtype;

typedef struct {
    char name[256];
    SafetensorsDtype dtype;
    int rank;
    int64_t shape[8];
    const void *data;      /* into the mapping; alignment 1 */
    size_t bytes, elements;
} SafetensorsTensor;

typedef struct Safetensors Safetensors;
int safetensors_open(const char *dir_or_file, Safetensors **out, Error *err);
void safetensors_close(Safetensors *s);
size_t safetensors_count(const Safetensors *s);
const SafetensorsTensor *safetensors_at(const Safetensors *s, size_t i);
const SafetensorsTensor *safetensors_find(const Safetensors *s, const char *name);
/* Copy as fp32; -1 when the shape (rank, dims) is not the expected one. */
int safetensors_read_f32(const Safetensors *s, const char *name, int rank, const int64_t *shape, float *dst, Error *err);

/* Written atomically; fp32 data, stored as F32 or rounded to BF16. */
typedef struct {
    const char *name;
    int rank;
    int64_t shape[8];
    const float *data;
} SafetensorsOut;
int safetensors_write(const char *path, const SafetensorsOut *tensors, size_t n, SafetensorsDtype stored, Error *err);

#endif

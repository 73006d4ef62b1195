/* safetensors files, read as hostile input (mmap) and written as the reference writer does. Sharded
 * sets are read through model.safetensors.index.json. */
#ifndef MODEL_FILES_SAFETENSORS_H
#define MODEL_FILES_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum { ST_F32, ST_F16, ST_BF16, ST_F64, ST_I64, ST_I32, ST_OTHER } SafetensorsDtype;

typedef struct {
    char name[256];
    SafetensorsDtype dtype;
    int rank;
    int64_t shape[8];
    const void *data; /* into the mapping; alignment 1 */
    size_t bytes, elements;
} SafetensorsTensor;

typedef struct Safetensors Safetensors;
int safetensors_open(const char *dir_or_file, Safetensors **out, Error *err);
void safetensors_close(Safetensors *s);
size_t safetensors_count(const Safetensors *s);
const SafetensorsTensor *safetensors_at(const Safetensors *s, size_t i);
const SafetensorsTensor *safetensors_find(const Safetensors *s, const char *name);
/* The tensor of that name, if it has the expected shape (rank, dims) and a floating-point dtype. */
const SafetensorsTensor *safetensors_need(const Safetensors *s, const char *name, int rank,
                                          const int64_t *shape, Error *err);
/* Numbers [first, first + n) of it as fp32. */
void safetensors_floats(const SafetensorsTensor *t, size_t first, size_t n, float *dst);
/* All of it as fp32. */
int safetensors_read_f32(const Safetensors *s, const char *name, int rank, const int64_t *shape,
                         float *dst, Error *err);

/* What is written: fp32 numbers, all in `data`, or asked for in pieces. */
typedef struct {
    const char *name;
    int rank;
    int64_t shape[8];
    const float *data; /* or NULL: */
    void (*read)(const void *from, size_t first, size_t n,
                 float *to); /* numbers [first, first + n) */
    const void *from;
} SafetensorsOut;

/* One file, written atomically; stored as F32, or rounded to BF16 or F16. */
int safetensors_write(const char *path, const SafetensorsOut *tensors, size_t n,
                      SafetensorsDtype stored, Error *err);
/* dir/model.safetensors, or files of at most max_bytes and, last, dir/model.safetensors.index.json;
 * what an earlier save of the other kind left is removed. */
int safetensors_write_model(const char *dir, const SafetensorsOut *tensors, size_t n,
                            SafetensorsDtype stored, size_t max_bytes, Error *err);

#endif

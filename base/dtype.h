/* The element types of tensors: of operators, tasks, kernels and weight files. */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

/* Kinds, from the lowest to the highest in PyTorch's promotion. */
typedef enum { KIND_BOOL, KIND_INTEGER, KIND_FLOAT } DtypeKind;

/* X(dtype, name in PyTorch and task.json, type in kernels, name in safetensors, number in an exported
 * program, bytes, kind). Outputs of a task have one of the first four, whose places kernels of the judge
 * know, and inputs all but the last, in which a reference on a device computes. */
#define DTYPE_TABLE(X)                                                            \
    X(DTYPE_F32, "float32", "float", "F32", 7, 4, KIND_FLOAT)                     \
    X(DTYPE_F16, "float16", "__half", "F16", 6, 2, KIND_FLOAT)                    \
    X(DTYPE_BF16, "bfloat16", "__nv_bfloat16", "BF16", 13, 2, KIND_FLOAT)         \
    X(DTYPE_I32, "int32", "int", "I32", 4, 4, KIND_INTEGER)                       \
    X(DTYPE_I64, "int64", "long long", "I64", 5, 8, KIND_INTEGER)                 \
    X(DTYPE_B8, "bool", "bool", "BOOL", 12, 1, KIND_BOOL)                         \
    X(DTYPE_I8, "int8", "signed char", "I8", 2, 1, KIND_INTEGER)                  \
    X(DTYPE_U8, "uint8", "unsigned char", "U8", 1, 1, KIND_INTEGER)               \
    X(DTYPE_I16, "int16", "short", "I16", 3, 2, KIND_INTEGER)                     \
    X(DTYPE_E4M3, "float8_e4m3fn", "__nv_fp8_e4m3", "F8_E4M3", 29, 1, KIND_FLOAT) \
    X(DTYPE_E5M2, "float8_e5m2", "__nv_fp8_e5m2", "F8_E5M2", 30, 1, KIND_FLOAT)   \
    X(DTYPE_F64, "float64", "double", "F64", 8, 8, KIND_FLOAT)

typedef enum {
#define X(dtype, name, ctype, file_name, exported, size, kind) dtype,
    DTYPE_TABLE(X)
#undef X
        DTYPES, /* their number; in place of a type: none */
    DTYPES_OF_OUTPUTS = DTYPE_I64,
    DTYPES_OF_INPUTS = DTYPE_F64
} Dtype;

extern const char *const dtype_names[DTYPES]; /* in PyTorch: "float32" */
const char *dtype_name(Dtype d);
const char *dtype_ctype(Dtype d);     /* "float", "__half": in kernels */
const char *dtype_file_name(Dtype d); /* "F32": in safetensors */
size_t dtype_size(Dtype d);
DtypeKind dtype_kind(Dtype d);
int dtype_is_float(Dtype d);
int dtype_is_float8(Dtype d); /* it has conversions and no arithmetic */
int dtype_is_small(Dtype d);  /* an integer of 8 or 16 bits, whose arithmetic wraps */
/* Least magnitude that rounds to infinity, or to NaN where the type has no infinity; INFINITY: none does. */
double dtype_overflow(Dtype d);

/* The type of a name in PyTorch, [name, name + len); of a C type in kernels; of a name in safetensors;
 * of a number in an exported program. DTYPES: there is none. */
Dtype dtype_named(const char *name, size_t len);
Dtype dtype_of_ctype(const char *ctype);
Dtype dtype_of_file_name(const char *name);
Dtype dtype_exported(int64_t number);

void dtype_to_double(Dtype d, const void *src, double *dst, size_t n);
/* Rounds to nearest even; integers of 8 and 16 bits wrap, others stop at their ends. */
void dtype_from_double(Dtype d, const double *src, void *dst, size_t n);
/* The number that an element of the type holds of x. */
double dtype_rounded(Dtype d, double x);

#endif

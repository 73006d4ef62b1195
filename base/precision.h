/* How eager PyTorch computes products and convolutions of float32 tensors on a GPU, in its own words:
 *
 *   matmul       torch.set_float32_matmul_precision: highest, high or medium. Below highest cuBLAS may round
 *                factors to TF32, which keeps 10 bits of the mantissa. On CUDA medium is the same as high
 *   cudnn_tf32   torch.backends.cudnn.allow_tf32: cuDNN may round the factors of convolutions and recurrent
 *                networks to TF32
 */
#ifndef BASE_PRECISION_H
#define BASE_PRECISION_H

#include "base/error.h"

typedef enum { MATMUL_HIGHEST, MATMUL_HIGH, MATMUL_MEDIUM, MATMUL_PRECISIONS } MatmulPrecision;

typedef struct {
    MatmulPrecision matmul;
    int cudnn_tf32;
} Precision;

extern const Precision precision_default; /* PyTorch's: highest, and cuDNN may use TF32 */
extern const char *const precision_matmul_names[MATMUL_PRECISIONS];

/* The libraries that may round factors of float32 to TF32. */
enum { TF32_CUBLAS = 1, TF32_CUDNN = 2 };
unsigned precision_tf32(const Precision *p);

/* Sets *out to the precision that a word names: default (PyTorch's), highest (no TF32 anywhere), high or
 * medium (TF32 everywhere). -1: the word names none. */
int precision_named(const char *word, Precision *out, Error *err);

/* Reads $PRECISION. Returns 1 and sets *out when the variable names a precision; 0 when the variable is not
 * set, empty or default: each task keeps its own precision; -1 when its text names no precision. */
int precision_of_run(Precision *out, Error *err);

/* ---- the error that a user allows, in the words of the setting TOLERANCE: 2x is so many times the error of
 * eager PyTorch itself against double precision, 1e-3 so much, whatever eager's is ---- */

typedef struct {
    double times;    /* of eager's error; 0: not given so */
    double absolute; /* 0: not given so */
} ErrorBudget;

/* Is a budget given? */
int budget_is_set(const ErrorBudget *b);

/* Reads a word. "" and "default": none is given. -1: the word is no budget. */
int budget_named(const char *word, ErrorBudget *out, Error *err);

/* Reads $TOLERANCE. Returns 1 and sets *out where it names a budget; 0 where it is not set, empty or default:
 * each task keeps its own; -1 where its text names none. */
int budget_of_run(ErrorBudget *out, Error *err);

#endif

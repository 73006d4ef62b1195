/* The numbered cases that decoded instructions carry: operations, comparisons, rounding modes and
 * value types. */
#ifndef EVAL_SIM_MACHINE_VALUES_H
#define EVAL_SIM_MACHINE_VALUES_H

#include <stdint.h>

enum {
    ATOM_ADD,
    ATOM_MIN,
    ATOM_MAX,
    ATOM_AND,
    ATOM_OR,
    ATOM_XOR,
    ATOM_EXCH,
    ATOM_CAS,
    ATOM_INC,
    ATOM_DEC
};
enum {
    FP_RN = 0,
    FP_RM = 1,
    FP_RP = 2,
    FP_RZ = 3,
    FP_FTZ = 4,
    FP_SAT = 8
}; /* the first two bits as in MXCSR */
enum { HALF_FTZ = 1, HALF_SAT = 2, HALF_RELU = 4, HALF_NAN = 8, HALF_XORSIGN = 16 };
enum {
    CMP_EQ,
    CMP_NE,
    CMP_LT,
    CMP_LE,
    CMP_GT,
    CMP_GE,
    CMP_EQU,
    CMP_NEU,
    CMP_LTU,
    CMP_LEU,
    CMP_GTU,
    CMP_GEU,
    CMP_NUM,
    CMP_NAN
};

enum { T_U8, T_S8, T_U16, T_S16, T_U32, T_S32, T_U64, T_S64, T_F16, T_BF16, T_F32, T_F64, T_TF32 };
enum { INT_NONE, INT_NEAREST, INT_ZERO, INT_DOWN, INT_UP };
enum { CVT_RELU = 16, CVT_RNA = 32, CVT_SATFINITE = 64 };

float half_to_float(uint32_t h);
uint32_t half_from_double(double v); /* round to nearest even */
float bf16_to_float(uint32_t h);
uint32_t bf16_from_double(double v);

#endif

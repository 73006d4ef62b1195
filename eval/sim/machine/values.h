/* The enumerations that decoded instructions carry in k0..k3 and in MemOp: operations, comparisons,
 * rounding modes and value types. */
#ifndef EVAL_SIM_MACHINE_VALUES_H
#define EVAL_SIM_MACHINE_VALUES_H

enum {
    T_U8,
    T_S8,
    T_U16,
    T_S16,
    T_U32,
    T_S32,
    T_U64,
    T_S64,
    T_F16,
    T_BF16,
    T_F32,
    T_F64,
    T_TF32,
    T_E4M3,
    T_E5M2
};

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

/* Rounding and flags of fp32 and fp64 arithmetic. The low two bits are those of MXCSR. */
enum {
    FP_RN = 0,
    FP_RM = 1,
    FP_RP = 2,
    FP_RZ = 3,
    FP_ROUNDING = 3, /* mask of the rounding mode */
    FP_FTZ = 4,
    FP_SAT = 8
};
/* Flags of conversions, beside FP_*. */
enum { CVT_RELU = 16, CVT_RNA = 32, CVT_SATFINITE = 64 };
/* Rounding of a float to an integer. */
enum { INT_NONE, INT_NEAREST, INT_ZERO, INT_DOWN, INT_UP };

/* Flags of half-precision arithmetic, and the form of its comparisons. */
enum { HALF_FTZ = 1, HALF_SAT = 2, HALF_RELU = 4, HALF_NAN = 8, HALF_XORSIGN = 16 };
enum { HALF_BF16 = 1, HALF_PACKED = 2 };

/* Flags of add.cc, addc, sub.cc, subc, mad.cc and madc. */
enum { CARRY_IN = 1, CARRY_OUT = 2, CARRY_SUBTRACT = 4, CARRY_HIGH = 8 };
/* Flags of dp4a and dp2a. */
enum { DOT_A_SIGNED = 1, DOT_B_SIGNED = 2 };

/* Comparisons: ordered, or true for NaN (U). */
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
    CMP_NAN,
    CMP_COUNT
};
/* How setp combines its result with a predicate. */
enum { COMBINE_NONE, COMBINE_AND, COMBINE_OR, COMBINE_XOR };
enum { LOGIC_AND, LOGIC_OR, LOGIC_XOR, LOGIC_NOT, LOGIC_COUNT };
enum {
    TESTP_FINITE,
    TESTP_INFINITE,
    TESTP_NUMBER,
    TESTP_NOTANUMBER,
    TESTP_NORMAL,
    TESTP_SUBNORMAL,
    TESTP_COUNT
};
enum { PRMT_INDEX, PRMT_F4E, PRMT_B4E, PRMT_RC8, PRMT_ECL, PRMT_ECR, PRMT_RC16, PRMT_COUNT };

/* Operations between the lanes of a warp. */
enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX, SHFL_COUNT };
enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT, VOTE_COUNT };
enum {
    REDUX_ADD,
    REDUX_MIN_S32,
    REDUX_MAX_S32,
    REDUX_MIN_U32,
    REDUX_MAX_U32,
    REDUX_AND,
    REDUX_OR,
    REDUX_XOR
};

/* Block barriers: bar.sync, bar.arrive, bar.red.{popc,and,or}. */
enum { VIDEO_ADD, VIDEO_SUB, VIDEO_ABSDIFF, VIDEO_MIN, VIDEO_MAX };
enum { BAR_SYNC, BAR_ARRIVE, BAR_POPC, BAR_AND, BAR_OR };
enum {
    MBARRIER_INIT,
    MBARRIER_INVAL,
    MBARRIER_ARRIVE,
    MBARRIER_DROP,
    MBARRIER_EXPECT,   /* expect_tx */
    MBARRIER_COMPLETE, /* complete_tx */
    MBARRIER_ARRIVE_EXPECT,
    MBARRIER_COPIES, /* cp.async.mbarrier.arrive */
    MBARRIER_WAIT,
    MBARRIER_WAIT_PARITY
};

#endif

/* The handlers that the decoder chooses from, by file, with the fields of Inst that each one reads
 * beyond d, a, b, c. The constants are in values.h. A lookup returns NULL for an operation that
 * does not exist. */
#ifndef EVAL_SIM_EXEC_HANDLERS_H
#define EVAL_SIM_EXEC_HANDLERS_H

#include "eval/sim/machine/exec.h"
#include "eval/sim/machine/values.h"

/* ---- exec_control.c: blocks, branches, calls ---- */

Handler h_block;             /* the first instruction of a basic block */
Handler h_bra, h_bra_uni;    /* branch */
Handler h_brx;               /* branch; a: row of indices */
Handler h_call, h_call_drop; /* call; h_call_drop: a runtime function without effect, returns 0 */
Handler h_call_pointer;      /* call; a: row of addresses */
Handler h_ret, h_exit, h_assert, h_nop;
Handler h_trap;    /* k0: of a debugger */
Handler h_unknown; /* text: what it is */
Handler h_fence;   /* k0: SCOPE_*, k1: FENCE_* */

/* ---- exec_barrier.c, exec_mbarrier.c ---- */

/* a: row of the barrier's index, b: of the thread count or ROW_NONE; k0: BAR_*, k1: .aligned, k2: of a
 * cluster;
 * BAR_POPC and later: c the predicate, e the mask that flips it. */
Handler h_bar;
Handler h_bar_result; /* after a bar.red: a as above, d the result; k0: BAR_* */
/* mem: the barrier's address; k0: MBARRIER_*; a: row of the count, token or parity; d: row of the
 * token or ROW_NONE; e: predicate of a wait; k1: .noinc of MBARRIER_COPIES. */
Handler h_mbarrier;
Handler h_bulk_load, h_bulk_store, h_store_async; /* bulk */
Handler h_bulk_group; /* k0: wait or commit; imm: groups that may stay under way */

/* ---- exec_barrier.c, exec_move.c: for modules with clusters of several blocks ---- */

Handler h_cluster_arrive; /* k0: .relaxed */
Handler h_cluster_wait;   /* as h_bar, where the launch has no clusters */
Handler h_cluster_map;    /* d = a for the block of rank b; k1: 64-bit */
Handler h_cluster_rank;   /* d = the rank of the block of a; k1: 64-bit */

/* ---- warp_sync.c, exec_warp.c: operations between lanes; f: row of the member mask ---- */

Handler h_bar_warp;
Handler h_shfl;  /* e: predicate or 0; k0: SHFL_* */
Handler h_vote;  /* a: predicate, flipped by e; d: row or predicate; k0: VOTE_* */
Handler h_match; /* e: predicate or 0; k0: .all, k1: 64-bit */
Handler h_redux; /* k0: REDUX_* */
Handler h_elect; /* e: predicate or 0 */
Handler h_activemask;

/* ---- eval/sim/matrix ---- */

Handler h_mma, h_mma_doubles; /* mma */
/* mem, whose data[4] and on are the registers; k0: matrices, k1: .trans */
Handler h_ldmatrix, h_stmatrix;
Handler h_movmatrix;
Handler h_wmma;                 /* wmma */
Handler h_wmma_sync;            /* waits for all 32 lanes before the accesses of a fragment */
Handler h_wmma_address;         /* part; d: row of the address; k0: bytes, k1: of a store */
Handler h_wmma_pack;            /* d = a | b << k0 */
Handler h_wmma_unpack;          /* d = half k0 of a */
Handler h_wgmma;                /* wgmma */
Handler h_wgmma_group;          /* k0: wait or commit; imm: groups that may stay under way */
Handler h_wgmma_used;           /* before a use of an accumulator: waits for all products */
int mma_per_register(int type); /* elements of a type in a register */
double mma_element(uint32_t v, int type, int j);    /* element j of a register */
uint32_t mma_sum(double v, int type, int saturate); /* the bits of an accumulator's element */

/* ---- exec_int.c ---- */

/* "add", "mul.wide", "shr" ... of 16, 32 or 64 bits. */
Handler *int_handler(const char *name, int bits, int is_signed);

/* ---- exec_bits.c: bit fields, byte permutations, carries ---- */

Handler h_popc32, h_popc64, h_clz32, h_clz64, h_brev32, h_brev64, h_fns;
Handler h_bfind32, h_bfind64; /* k0: signed, k1: .shiftamt */
Handler h_bfe32, h_bfe64;     /* k0: signed */
Handler h_bfi32, h_bfi64;     /* e: row of the length */
Handler h_bmsk;               /* k0: .wrap */
Handler h_szext;              /* k0: .wrap, k1: signed */
Handler h_prmt;               /* k0: PRMT_* */
Handler h_lop3;               /* k0: the truth table */
Handler h_video; /* k0: VIDEO_*, k1: signs of a, b and d, k2: .sat, k3: VIDEO_* with c + 1, or 0 */
Handler h_absdiff4;     /* k0: .add, k1: signs of a and b, k2: the highest byte or 0 */
Handler h_shf;          /* k0: to the right, k1: .wrap */
Handler h_dp4a, h_dp2a; /* k0: DOT_*, k1: .hi */
Handler h_add_carry32, h_add_carry64, h_mad_carry32; /* k0: CARRY_* */

/* ---- exec_move.c: moves, selections, integer comparisons, address spaces ---- */

Handler h_mov32, h_mov64;
Handler h_mov_pred;                            /* f: the mask that flips a */
Handler h_pack32, h_pack64, h_pack64_16;       /* h_pack64_16: e: row of the fourth part */
Handler h_unpack32, h_unpack64, h_unpack64_16; /* from a to d, e, b, c; ROW_NONE: unused */
Handler h_special;          /* k0: PtxSpecial, k1: 64-bit; f: mask of the value */
Handler h_local_address;    /* imm: offset in the frame's local memory; k1: 64-bit */
Handler h_cvta;             /* k0: PtxSpace, k1: from generic addresses */
Handler h_mapa;             /* d = a, where the block's rank b is 0; k1: 64-bit */
Handler h_isspacep;         /* d: predicate; k0: PtxSpace, k1: the block's own shared memory */
Handler h_selp32, h_selp64; /* c: predicate, flipped by f */
Handler h_slct32, h_slct64; /* k0: c is a float */
Handler h_pred_to32;        /* a: predicate; k0: the result is a float */
Handler h_pred_logic;       /* predicates, a flipped by e and b by f; k0: LOGIC_* */
/* p|q = (a op b) combined with c. d: p, e: q; c: predicate, flipped by f; k0: CMP_*; k1: COMBINE_*.
 * The predicate index 0 means "no destination". */
Handler *setp_handler(int bits, int is_signed);

/* ---- exec_float.c: k0: FP_* ---- */

Handler *float_handler(const char *name, int bits, int mode);
Handler h_setp_f32, h_setp_f64;                /* as setp_handler; k2: flush */
Handler h_testp32, h_testp64;                  /* d: predicate; k0: TESTP_* */
int float_compare(int op, double a, double b); /* op: CMP_* */

/* ---- exec_math.c: approximations; k0: FP_FTZ, k1: packed ---- */

Handler *math_handler(const char *name);

/* ---- exec_half.c: f16 and bf16, scalar and packed; k0: HALF_* flags ---- */

Handler *half_handler(const char *name, int is_bf16, int packed);
Handler h_setp_f16; /* as setp_handler; k2: flush, k3: HALF_BF16 and HALF_PACKED */
Handler h_set_f16;  /* f: the value of true; k0: CMP_*, k2: flush, k3: HALF_BF16 and HALF_PACKED */
float half_to_float(uint32_t h);
uint32_t half_from_double(double v); /* to the nearest, ties to even */
float bf16_to_float(uint32_t h);
uint32_t bf16_from_double(double v);

/* ---- exec_cvt.c ---- */

/* k0: to, k1: from (T_*), k2: INT_*, k3: FP_* and CVT_*, e, f: bits of the destination and source
 * registers. */
Handler *cvt_handler(int to, int from, int round_int, int mode, int to_bits, int from_bits);
/* exec_half.c. k0: T_E4M3 or T_E5M2; narrow: k1: T_F32 with b the low half, or T_F16; k3: CVT_*. */
Handler h_fp8_narrow, h_fp8_widen;
uint32_t fp8_widen(uint32_t v, int type); /* to the bits of a half */
Handler h_cvt_pack;                       /* d = to(a) << 16 | to(b); k0: to, k3: as above */

#endif

/* The handlers that the decoder chooses from, by file. A lookup gives NULL for what does not exist.
 */
#ifndef EVAL_SIM_EXEC_HANDLERS_H
#define EVAL_SIM_EXEC_HANDLERS_H

#include "eval/sim/machine/machine.h"
#include "eval/sim/machine/values.h"

/* exec_int.c: "add", "mul.wide", "shr" ... of 16, 32 or 64 bits */
Handler *int_handler(const char *name, int bits, int is_signed);

/* exec_bits.c: moves, selections, comparisons of integers, bit fields */
Handler h_mov32, h_mov64, h_mov_pred, h_pack32, h_pack64, h_pack64_16, h_unpack32, h_unpack64,
    h_unpack64_16, h_special, h_selp32, h_selp64, h_slct32, h_slct64, h_pred_to32, h_popc32,
    h_popc64, h_clz32, h_clz64, h_brev32, h_brev64, h_bfind32, h_bfind64, h_bfe32, h_bfe64, h_bfi32,
    h_bfi64, h_prmt, h_lop3, h_shf, h_fns, h_dp4a, h_dp2a, h_pred_logic, h_isspacep, h_cvta,
    h_add_carry32, h_add_carry64, h_mad_carry32;
Handler *setp_handler(int bits, int is_signed); /* k0: comparison */

/* exec_float.c: k0: rounding and flushing (FpMode), k1: saturate */
Handler *float_handler(const char *name, int bits, int mode);
int float_compare(int op, double a, double b); /* CMP_* */
Handler h_setp_f32, h_setp_f64, h_setp_f16, h_testp32, h_testp64;

/* exec_math.c: approximations */
Handler *math_handler(const char *name);

/* exec_half.c: f16 and bf16, scalar and packed; k0: flags (HalfFlag) */
Handler *half_handler(const char *name, int is_bf16, int packed);
Handler h_set_f16;
int half_compare(const Inst *in, uint32_t a, uint32_t b);
enum { HALF_BF16 = 1, HALF_PACKED = 2 };

/* exec_cvt.c: from and to are value types; k0 to, k1 from, k2 rounding to an integer (RoundInt), k3
 * FP_* flags, e bits of the destination register, f bits of the source's */
Handler *cvt_handler(int to, int from, int round_int, int mode, int to_bits, int from_bits);
Handler h_cvt_pack; /* d = to(a) << 16 | to(b); k0 type, k3 flags */

/* exec_mma.c */
Handler h_mma, h_ldmatrix; /* h_ldmatrix: mem, k0 matrices, k1 transposed */
Handler h_movmatrix;

/* exec_wmma.c */
Handler h_wmma, h_wmma_together, h_wmma_address, h_wmma_pack,
    h_wmma_unpack; /* pack: d = a | b << 16; unpack: d = half k0 of a */
double mma_element(uint32_t v, int type, int j); /* exec_mma.c: element j of a register */
int mma_per_register(int type);

#endif

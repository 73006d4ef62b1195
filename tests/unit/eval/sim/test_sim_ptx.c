/* Single instructions with results worked out by hand from the PTX manual, and the texts that the
 * parser accepts and refuses. */
#include "tests/unit/eval/sim/sim_support.h"

/* Kernels of tests/fixtures/sim/modules.ptx. */
#define MODULE(part) sim_text("sim/modules.ptx", NULL, part)

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"

static Sim sim;

typedef struct {
    const char *body; /* leaves its result in %r0 of lane 5 */
    uint32_t result;
} Case;

static const Case cases[] = {
    /* bit fields */
    {"bfe.u32 %r0, 0x12345678, 8, 12;", 0x456},
    {"bfe.s32 %r0, 0x12345678, 8, 7;", 0xffffffd6}, /* 1010110: its top bit is set */
    {"bfe.s32 %r0, 0x80000000, 30, 8;", 0xfffffffe},
    {"bfe.u32 %r0, -1, 4, 0;", 0},
    {"bfi.b32 %r0, 0xabc, 0x11111111, 8, 8;", 0x1111bc11},
    {"bfi.b64 %rd0, 5, 0, 33, 3;\nshr.u64 %rd0, %rd0, 32;\ncvt.u32.u64 %r0, %rd0;", 10},
    {"bfind.u32 %r0, 0x00800000;", 23},
    {"bfind.shiftamt.u32 %r0, 0x00800000;", 8},
    {"bfind.s32 %r0, -5;", 2},
    {"bfind.u32 %r0, 0;", 0xffffffff},
    {"brev.b32 %r0, 0x80000001;", 0x80000001},
    {"clz.b32 %r0, 0x00010000;", 15},
    {"popc.b64 %r0, 0xff00000000000001;", 9},
    {"prmt.b32 %r0, 0x33221100, 0x77665544, 0x7531;", 0x77553311},
    {"prmt.b32 %r0, 0x33228100, 0x77665544, 0x9990;", 0xffffff00},
    {"prmt.b32.f4e %r0, 0x33221100, 0x77665544, 2;", 0x55443322},
    {"prmt.b32.b4e %r0, 0x33221100, 0x77665544, 2;", 0x77001122},
    {"prmt.b32.rc8 %r0, 0x33221100, 0, 2;", 0x22222222},
    {"prmt.b32.rc16 %r0, 0x33221100, 0, 1;", 0x33223322},
    {"prmt.b32.ecl %r0, 0x33221100, 0, 1;", 0x33221111},
    {"prmt.b32.ecr %r0, 0x33221100, 0, 1;", 0x11111100},
    {"lop3.b32 %r0, 0xf0, 0xcc, 0xaa, 0x96;", 0xf0 ^ 0xcc ^ 0xaa},
    {"lop3.b32 %r0, 0xf0, 0xcc, 0xaa, 0xe8;", (0xf0 & 0xcc) | (0xf0 & 0xaa) | (0xcc & 0xaa)},
    {"lop3.or.b32 %r1|%p0, 0xf0, 0x0f, 0, 0xc0, %p7;\nselp.b32 %r0, 1, 2, %p0;", 2},
    {"lop3.or.b32 _|%p0, 0xf0, 0x10, 0, 0xc0, %p7;\nselp.b32 %r0, 1, 2, %p0;", 1},
    {"lop3.or.b32 %r0|%p0, 0xf0, 0x0f, 0, 0xc0, !%p7;\nselp.b32 %r0, 1, 2, %p0;", 1},
    {"lop3.and.b32 %r0|%p0, 0xf0, 0x10, 0, 0xc0, %p7;\nselp.b32 %r1, 0, 2, %p0;\nadd.u32 %r0, "
     "%r0, %r1;",
     0x12},
    {"vabsdiff4.u32.u32.u32 %r0, 0x01ff8005, 0x02000307, 99;", 0x01ff7d02},
    {"vabsdiff4.u32.u32.u32.add %r0, 0x01ff8005, 0x02000307, 10;", 10 + 1 + 0xff + 0x7d + 2},
    {"vabsdiff4.s32.s32.s32.sat %r0, 0x7f8001ff, 0x80010001, 0;", 0x7f7f0102},
    {"vabsdiff4.u32.s32.s32 %r0, 0x7f8001ff, 0x80010001, 0;", 0xff810102},
    {"vadd.u32.u32.u32 %r0, 0xfffffff0, 0x20;", 0x10},
    {"vadd.u32.u32.u32.sat %r0, 0xfffffff0, 0x20;", 0xffffffff},
    {"vadd.s32.u32.s32 %r0, 0xfffffff0, -1;", 0xffffffef},
    {"vadd.s32.u32.s32.sat %r0, 0xfffffff0, -1;", 0x7fffffff},
    {"vsub.u32.u32.u32.sat %r0, 3, 5;", 0},
    {"vsub.s32.u32.u32.add %r0, 3, 5, 10;", 8},
    {"vsub.s32.s32.s32.sat.min %r0, 0x80000000, 1, 7;", 0x80000000},
    {"vabsdiff.u32.s32.s32 %r0, -3, 5;", 8},
    {"vabsdiff.u32.u32.u32.max %r0, 0x80000000, 1, 0xf0000000;", 0xf0000000},
    {"vmin.s32.s32.s32 %r0, -3, 5;", 0xfffffffd},
    {"vmin.u32.u32.u32 %r0, 0xfffffffd, 5;", 5},
    {"vmax.s32.s32.u32.max %r0, -3, 5, -9;", 5},
    {"vmax.s32.s32.s32.add %r0, -3, -5, 100;", 97},
    /* 8-bit floats */
    {"cvt.rn.satfinite.e4m3x2.f32 %h0, 0f43E00000, 0fC47A0000;\ncvt.u32.u16 %r0, %h0;",
     0x7efe}, /* 448, -1000 */
    {"cvt.rn.satfinite.e4m3x2.f32 %h0, 0f3FE80000, 0f3FF80000;\ncvt.u32.u16 %r0, %h0;",
     0x3e40}, /* 1.8125 and 1.9375: ties go to even, the second carries */
    {"cvt.rn.satfinite.e4m3x2.f32 %h0, 0f3A800000, 0fBAC00000;\ncvt.u32.u16 %r0, %h0;",
     0x0081}, /* 2^-10 is half of the smallest, 1.5 x 2^-10 more */
    {"cvt.rn.satfinite.e4m3x2.f32 %h0, 0f7FC00000, 0f80000000;\ncvt.u32.u16 %r0, %h0;", 0x7f80},
    {"cvt.rn.satfinite.relu.e4m3x2.f32 %h0, 0f3F800000, 0fC0000000;\ncvt.u32.u16 %r0, %h0;",
     0x3800},
    {"cvt.rn.satfinite.e5m2x2.f32 %h0, 0f7F800000, 0f3F900000;\ncvt.u32.u16 %r0, %h0;",
     0x7b3c}, /* infinity; 1.125 is a tie that goes to 1 */
    {"cvt.rn.satfinite.e4m3x2.f16x2 %h0, 0x3c00c000;\ncvt.u32.u16 %r0, %h0;", 0x38c0},
    {"mov.b16 %h0, 0x7e01;\ncvt.rn.f16x2.e4m3x2 %r0, %h0;", 0x5f001800}, /* 448, 2^-9 */
    {"mov.b16 %h0, 0xff38;\ncvt.rn.f16x2.e4m3x2 %r0, %h0;", 0x7fff3c00},
    {"mov.b16 %h0, 0xbc7c;\ncvt.rn.f16x2.e5m2x2 %r0, %h0;", 0xbc007c00},
    {"mov.b16 %h0, 0xbc3c;\ncvt.rn.relu.f16x2.e5m2x2 %r0, %h0;", 0x00003c00},
    /* atomics of a vector */
    {"mov.u64 %rd1, vec;\nmov.u32 %r1, %laneid;\nsetp.ne.u32 %p0, %r1, 5;\n@%p0 bra L;\n"
     "atom.global.v4.f32.add {%f0, %f1, %f2, %f3}, [%rd1], {0f3F800000, 0f40000000, 0f40400000, "
     "0f40800000};\nred.global.v2.f32.add [%rd1+8], {%f0, 0f3F800000};\n"
     "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1];\ncvt.rzi.u32.f32 %r0, %f0;\n"
     "cvt.rzi.u32.f32 %r1, %f3;\nmad.lo.u32 %r0, %r1, 10, %r0;\nL:",
     51},
    /* memory of a block that the system has */
    {"mov.u32 %r1, %reserved_smem_offset_1;\nmov.u32 %r2, 9;\nst.shared.u32 [%r1+508], %r2;\n"
     "ld.shared.u32 %r0, [%r1+508];",
     9},
    {"bmsk.clamp.b32 %r0, 4, 8;", 0xff0},
    {"bmsk.clamp.b32 %r0, 28, 40;", 0xf0000000},
    {"bmsk.clamp.b32 %r0, 32, 1;", 0},
    {"bmsk.wrap.b32 %r0, 36, 33;", 0x10},
    {"szext.clamp.s32 %r0, 0x18f, 8;", 0xffffff8f},
    {"szext.clamp.u32 %r0, 0x18f, 8;", 0x8f},
    {"szext.clamp.s32 %r0, 0x8000018f, 40;", 0x8000018f},
    {"szext.wrap.s32 %r0, 0x18f, 40;", 0xffffff8f},
    /* labels of two scopes */
    {"mov.b32 %r0, 0;\n{ bra L;\nadd.u32 %r0, %r0, 1;\nL: add.u32 %r0, %r0, 2; }\n"
     "{ { bra L; }\nadd.u32 %r0, %r0, 4;\nL: add.u32 %r0, %r0, 8; }",
     10},
    {"mov.u32 %r0, %cluster_ctarank;", 0},
    {"mov.u32 %r0, %cluster_nctarank;", 1},
    {"mov.u32 %r0, %nclusterid.x;", 1},
    {"shf.l.wrap.b32 %r0, 0x80000001, 0x10, 33;", 0x21},
    {"shf.r.clamp.b32 %r0, 0x80000001, 0x10, 40;", 0x10},
    {"shf.l.clamp.b32 %r0, 0x12345678, 7, 32;", 0x12345678},
    {"fns.b32 %r0, 0xf0, 0, 2;", 5},
    {"fns.b32 %r0, 0xf0, 31, -1;", 7},
    {"dp4a.s32.u32 %r0, 0xff010203, 0x01020304, 10;", 10 - 1 + 2 + 6 + 12},
    {"dp2a.lo.s32.s32 %r0, 0xffff0003, 0x04030201, 1;", 1 + 3 - 2},
    {"dp2a.hi.u32.u32 %r0, 0x00020003, 0x04030201, 1;", 1 + 9 + 8},
    {"sad.s32 %r0, -5, 7, 1;", 13},
    {"mul24.lo.s32 %r0, 0x00ffffff, 3;", (uint32_t)-3},
    /* integers of all widths */
    {"mad.hi.u32 %r0, 0x80000000, 6, 1;", 4},
    {"mul.hi.s64 %rd0, -2, 3;\ncvt.u32.u64 %r0, %rd0;", 0xffffffff},
    {"mul.wide.s16 %r0, -3, 5;", (uint32_t)-15},
    {"mov.u16 %h0, 0xfff0;\nadd.u16 %h0, %h0, 0x20;\ncvt.u32.u16 %r0, %h0;", 0x10},
    {"mov.u16 %h0, 0xfff0;\nshr.s16 %h0, %h0, 2;\ncvt.u32.u16 %r0, %h0;", 0xfffc},
    {"mov.u16 %h0, 0x8000;\nabs.s16 %h0, %h0;\ncvt.s32.s16 %r0, %h0;", 0xffff8000},
    {"div.s32 %r0, -7, 2;", (uint32_t)-3},
    {"rem.s32 %r0, -7, 2;", (uint32_t)-1},
    {"div.u32 %r0, 5, 0;", 0xffffffff},
    {"shl.b32 %r0, 1, 32;", 0},
    {"shr.s32 %r0, -8, 40;", 0xffffffff},
    {"cnot.b32 %r0, 0;", 1},
    {"add.cc.u32 %r1, 0xffffffff, 2;\naddc.cc.u32 %r2, 0xffffffff, 0;\naddc.u32 %r0, 7, 0;", 8},
    {"sub.cc.u32 %r1, 0, 1;\nsubc.u32 %r0, 5, 0;", 4},
    {"mad.lo.cc.u32 %r1, 0x10000, 0x10000, 5;\nmadc.hi.u32 %r0, 0x10000, 0x10000, 5;", 6},
    /* conversions */
    {"cvt.rni.s32.f32 %r0, 0f40200000;", 2}, /* 2.5 to even */
    {"cvt.rpi.s32.f32 %r0, 0fC0200000;", (uint32_t)-2},
    {"cvt.rmi.s32.f32 %r0, 0fC0200000;", (uint32_t)-3},
    {"cvt.rzi.u32.f32 %r0, 0fC0200000;", 0}, /* clamps */
    {"cvt.rzi.s32.f32 %r0, 0f7F800000;", 0x7fffffff},
    {"cvt.rzi.s32.f32 %r0, 0f7FC00000;", 0}, /* NaN */
    {"cvt.sat.s8.s32 %h0, 300;\ncvt.s32.s16 %r0, %h0;", 127},
    {"cvt.sat.u8.s32 %h0, -300;\ncvt.u32.u16 %r0, %h0;", 0},
    {"cvt.s8.s32 %r0, 0x1fe;", 0xfffffffe},
    {"cvt.rz.f32.u32 %f0, 0xffffffff;\nmov.b32 %r0, %f0;", 0x4f7fffff},
    {"cvt.rn.f32.u32 %f0, 0xffffffff;\nmov.b32 %r0, %f0;", 0x4f800000},
    {"cvt.rn.f32.s64 %f0, -9007199791611905;\nmov.b32 %r0, %f0;",
     0xda000001}, /* just past a tie: by way of fp64 it would round twice */
    {"cvt.sat.f32.f32 %f0, 0fC0000000;\nmov.b32 %r0, %f0;", 0},
    {"cvt.rn.f16.f32 %h0, 0f33800001;\ncvt.u32.u16 %r0, %h0;", 1}, /* just over 2^-24 */
    {"cvt.rn.f16.f32 %h0, 0f477FF000;\ncvt.u32.u16 %r0, %h0;",
     0x7c00}, /* 65520 rounds to infinity */
    {"cvt.rz.f16.f32 %h0, 0f477FF000;\ncvt.u32.u16 %r0, %h0;", 0x7bff},
    {"cvt.rn.bf16x2.f32 %r0, 0f3F808000, 0f40000000;",
     0x3f804000}, /* the first is a tie, which goes up to even */
    {"cvt.rn.relu.f16x2.f32 %r0, 0fBF800000, 0f3F800000;", 0x00003c00},
    {"cvt.rna.tf32.f32 %r0, 0f3F801000;", 0x3f802000},
    {"cvt.ftz.f32.f32 %f0, 0f00000001;\nmov.b32 %r0, %f0;", 0},
    /* floats */
    {"min.f32 %f0, 0f7FC00000, 0f3F800000;\nmov.b32 %r0, %f0;", 0x3f800000},
    {"min.NaN.f32 %f0, 0f7FC00000, 0f3F800000;\nmov.b32 %r0, %f0;", 0x7fffffff},
    {"max.f32 %f0, 0f80000000, 0f00000000;\nmov.b32 %r0, %f0;", 0},
    {"add.ftz.f32 %f0, 0f00000001, 0f00000001;\nmov.b32 %r0, %f0;", 0},
    {"add.f32 %f0, 0f00000001, 0f00000001;\nmov.b32 %r0, %f0;", 2},
    {"add.rz.f32 %f0, 0f3F800000, 0f337FFFFF;\nmov.b32 %r0, %f0;", 0x3f800000},
    {"add.rp.f32 %f0, 0f3F800000, 0f00000001;\nmov.b32 %r0, %f0;", 0x3f800001},
    {"fma.rn.f32 %f0, 0f3F800001, 0f3F800001, 0fBF800002;\nmov.b32 %r0, %f0;",
     0x28800000}, /* 2^-46 is kept */
    {"mul.sat.f32 %f0, 0f40000000, 0f40000000;\nmov.b32 %r0, %f0;", 0x3f800000},
    {"ex2.approx.f32 %f0, 0f40400000;\nmov.b32 %r0, %f0;", 0x41000000},
    {"lg2.approx.f32 %f0, 0f41000000;\nmov.b32 %r0, %f0;", 0x40400000},
    {"lg2.approx.f32 %f0, 0f00000000;\nmov.b32 %r0, %f0;", 0xff800000},
    {"rsqrt.approx.f32 %f0, 0f40800000;\nmov.b32 %r0, %f0;", 0x3f000000},
    {"rcp.approx.ftz.f32 %f0, 0f7F000000;\nmov.b32 %r0, %f0;", 0},
    {"copysign.f32 %f0, 0fBF800000, 0f40000000;\nmov.b32 %r0, %f0;", 0xc0000000},
    {"div.rn.f32 %f0, 0f3F800000, 0f40400000;\nmov.b32 %r0, %f0;", 0x3eaaaaab},
    {"sqrt.rn.f32 %f0, 0f40000000;\nmov.b32 %r0, %f0;", 0x3fb504f3},
    {"fma.rn.f16x2 %r0, 0x40003c00, 0x40003c00, 0x3c003c00;", 0x45004000}, /* 2*2+1, 1*1+1 */
    {"add.rn.bf16x2 %r0, 0x3f804000, 0x3f803f80;", 0x40004040},
    {"add.f64 %fd0, 0d3FF0000000000000, 0d4000000000000000;\ncvt.rzi.u32.f64 %r0, %fd0;", 3},
    /* comparisons and selections */
    {"setp.lt.and.s32 %p0|%p1, -1, 1, %p7;\nselp.b32 %r0, 1, 2, %p0;", 2},
    {"setp.lt.or.s32 %p0|%p1, -1, 1, !%p7;\nselp.b32 %r0, 1, 2, %p1;", 1},
    {"setp.lo.u32 %p0, -1, 1;\nselp.b32 %r0, 1, 2, %p0;", 2},
    {"setp.ltu.f32 %p0, 0f7FC00000, 0f00000000;\nselp.b32 %r0, 1, 2, %p0;", 1},
    {"setp.ne.f32 %p0, 0f7FC00000, 0f00000000;\nselp.b32 %r0, 1, 2, %p0;", 2},
    {"setp.num.f32 %p0, 0f7FC00000, 0f00000000;\nselp.b32 %r0, 1, 2, %p0;", 2},
    {"set.lt.u32.s32 %r0, -1, 1;", 0xffffffff},
    {"set.ge.f32.s32 %f0, -1, 1;\nmov.b32 %r0, %f0;", 0},
    {"slct.s32.s32 %r0, 11, 22, -1;", 22},
    {"slct.u32.f32 %r0, 11, 22, 0f80000000;", 11},
    {"testp.subnormal.f32 %p0, 0f00000001;\nselp.b32 %r0, 1, 2, %p0;", 1},
    {"not.pred %p0, %p7;\nxor.pred %p0, %p0, %p7;\nselp.b32 %r0, 1, 2, %p0;", 1},
    /* moves, special registers, predicates on instructions */
    {"mov.b64 %rd0, {1, 2};\nmov.b64 {%r1, %r0}, %rd0;", 2},
    {"mov.b32 {%h0, %h1}, 0x12345678;\nmov.b32 %r0, {%h1, %h0};", 0x56781234},
    {"mov.u32 %r0, %laneid;", 5},
    {"mov.u32 %r0, %lanemask_lt;", 31},
    {"mov.u32 %r0, %ntid.x;\nmad.lo.u32 %r0, %r0, 100, %tid.x;", 3205},
    {"mov.u32 %r0, 4;\n@%p7 mov.u32 %r0, 9;\n@!%p7 add.u32 %r0, %r0, 1;", 5},
    {"mov.u32 %r1, %tid.x;\nand.b32 %r1, %r1, 3;\nt: .branchtargets A, B, C, A;\nbrx.idx %r1, "
     "t;\nA: mov.u32 %r0, 1;\nbra E;\nB: mov.u32 %r0, 2;\nbra E;\nC: mov.u32 %r0, 3;\nE:",
     2},
    {"redux.sync.min.s32 %r0, -7, -1;", (uint32_t)-7},
    {"mov.u32 %r1, %laneid;\nand.b32 %r1, %r1, 1;\nmatch.all.sync.b32 %r0|%p0, %r1, -1;", 0},
    {"elect.sync %r0|%p0, -1;", 0},
    /* memory: spaces by generic addresses, bytes and halves, vectors */
    {"mov.u32 %r1, s;\nmov.u32 %r2, 0x8180ff7f;\nst.shared.u32 [s+4], %r2;\nld.shared.s8 %r0, "
     "[%r1+6];",
     0xffffff80},
    {"mov.u32 %r2, 0x8180ff7f;\nst.shared.u32 [s+4], %r2;\nld.shared.v2.u16 {%h0, %h1}, "
     "[s+4];\ncvt.u32.u16 %r0, %h1;",
     0x8180},
    {"mov.u64 %rd1, s;\ncvta.shared.u64 %rd2, %rd1;\nmov.u32 %r1, 77;\nst.u32 [%rd2+16], "
     "%r1;\nld.shared.u32 %r0, [s+16];",
     77},
    {"mov.u64 %rd1, d;\ncvta.local.u64 %rd2, %rd1;\nmov.u64 %rd3, s;\ncvta.shared.u64 %rd3, "
     "%rd3;\nmov.u32 %r1, %laneid;\nst.shared.u32 [s], 3;\nst.local.u32 [d], %r1;\n"
     "setp.gt.u32 %p0, %r1, 3;\nselp.b64 %rd4, %rd2, %rd3, %p0;\nld.u32 %r0, [%rd4];",
     5},
    {"mov.u64 %rd1, s;\ncvta.shared.u64 %rd2, %rd1;\nisspacep.shared %p0, %rd2;\nisspacep.global "
     "%p1, %rd2;\nselp.b32 %r0, 1, 0, %p0;\n@%p1 mov.u32 %r0, 9;",
     1},
    {"ld.const.u32 %r0, [c+4];", 22},
    {"ld.global.u32 %r0, [g+8];", 33},
    {"mov.u64 %rd1, g;\nld.u32 %r0, [%rd1+4];", 32},
    {"ld.global.u64 %rd1, [ptr];\nld.global.u32 %r0, [%rd1];", 32},
    {"mov.u64 %rd1, p0;\nld.param.u32 %r0, [%rd1+8];", 1234},
    {"ld.param.v2.u16 {%h0, %h1}, [p1];\ncvt.u32.u16 %r0, %h0;", 1234},
    {"cp.async.ca.shared.global [s+32], [g], 4;\ncp.async.commit_group;\ncp.async.wait_group "
     "0;\nld.shared.u32 %r0, [s+32];",
     31},
    {"cp.async.cg.shared.global [s+32], [q], 16, 8;\ncp.async.wait_all;\nld.shared.v4.u32 {%r1, "
     "%r2, %r3, %r4}, [s+32];\nmad.lo.u32 %r0, %r2, 1000, %r3;",
     42000},
    /* as an H200: remainders by zero, conversions of NaN, the relu of -0 */
    {"mov.u32 %r1, 0;\nrem.u32 %r0, 7, %r1;", 0xffffffff},
    {"mov.u32 %r1, 0;\nrem.s32 %r0, 7, %r1;", 0xffffffff},
    {"mov.b64 %rd1, 0x7ff8000000000000;\nmov.b64 %fd0, %rd1;\ncvt.rni.s32.f64 %r0, %fd0;",
     0x80000000},
    {"mov.b32 %f0, 0x7fc00000;\ncvt.rni.s32.f32 %r0, %f0;", 0},
    {"mov.b16 %h0, 0x8000;\nmov.b16 %h1, 0x3c00;\nfma.rn.relu.f16 %h2, %h0, %h1, %h0;\ncvt.u32.u16 "
     "%r0, %h2;",
     0},
    {"{ .param .b64 a; .param .b32 r; st.param.b64 [a], 40; call (r), twice, (a); ld.param.b32 "
     "%r0, [r]; }",
     80},
};

static void build(char *text, size_t size, const char *body)
{
    snprintf(text, size, "%s%s\n%s", MODULE("case_begin"), body, MODULE("case_end"));
}

static void test_instructions(void **state)
{
    (void)state;
    char *text = malloc(16384);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t got;
        build(text, 16384, cases[i].body);
        sim_start(&sim, text);
        DevicePtr y = sim_buffer(&sim, "y", NULL, 4);
        if (sim_try(&sim, (Shape){.kernel = "k", .block = {32}}, 2, A(y), A(1234)))
            fail_msg("%s: %s", cases[i].body, sim.fault.message);
        sim_read(&sim, y, &got, 4);
        if (got != cases[i].result)
            fail_msg("%s: 0x%x, 0x%x expected", cases[i].body, got, cases[i].result);
        sim_stop(&sim);
    }
    free(text);
}

/* Warps of a block that spin on each other's flags make progress, and so do blocks that spin on the
 * flag of an earlier block. */
static void test_progress(void **state)
{
    (void)state;
    sim_start(&sim, MODULE("progress"));
    uint32_t zeros[32] = {0};
    DevicePtr x = sim_buffer(&sim, "flags", zeros, sizeof zeros);
    sim_run(&sim, ((Shape){.kernel = "k", .grid = {8}, .block = {64}}), 1, A(x));
    sim_read(&sim, x, zeros, sizeof zeros);
    for (uint32_t i = 0; i < 8; i++) assert_true(zeros[i] == 1 && zeros[16 + i] == i);
    sim_stop(&sim);
}

static void refuse(const char *text, const char *part)
{
    Device *d;
    DeviceModule *m;
    Fault fault;
    Error err;
    assert_int_equal(ops->open("h100", &d, &err), 0);
    DeviceCode code = {.ptx = text, .ptx_len = strlen(text)};
    assert_int_equal(ops->load(d, &code, 0, &m, &fault), 1);
    if (!strstr(fault.message, part)) fail_msg("\"%s\" expected, found: %s", part, fault.message);
    ops->close(d);
}

static void test_refused(void **state)
{
    (void)state;
    refuse("", "PTX without a .version directive");
    refuse(HEAD ".visible .entry k()\n{\n.reg .b32 %r<4>;\n",
           "PTX line 7: expected }, found the end");
    refuse(HEAD ".visible .entry k(\n", "expected .param");
    refuse(HEAD ".global .align 4 .b8 x[99999999999];\n", "a number within limits");
    refuse(HEAD ".visible .entry k()\n{\n.reg .b32 %r<4294967295>;\n}\n",
           "a smaller number of registers");
    refuse(HEAD ".global .u32 x[2] = {1, 2, 3};\n",
           "no more values than the variable has elements");
    refuse(HEAD ".global .u64 x = nowhere;\n", "which is no variable in global memory");
    refuse(HEAD ".const .b8 x[70000];\n", "constant memory of 70000 bytes");
    refuse(".version 9.0\n.target sm_90\n.address_size 32\n", "expected 64-bit addresses");
    refuse(HEAD ".func f()\n{\nret;\n}\n.func f()\n{\nret;\n}\n",
           "each function to be defined once");
    refuse(HEAD "{{{{", "a directive of a module");
}

static void test_parameters(void **state)
{
    (void)state;
    KernelInfo k;
    sim_start(&sim, MODULE("parameters"));
    assert_int_equal(ops->kernel(sim.d, sim.m, "k", &k, &sim.err), 0);
    static const uint32_t offsets[] = {0, 8, 16, 24, 48}, sizes[] = {8, 1, 8, 24, 4};
    static const int pointers[] = {1, 0, -1, 0, 0};
    assert_int_equal(k.n_params, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(k.params[i].offset, offsets[i]);
        assert_int_equal(k.params[i].size, sizes[i]);
        assert_int_equal(k.params[i].is_pointer, pointers[i]);
    }
    assert_int_equal(k.param_bytes, 52);
    assert_int_equal(k.max_threads, 256);
    assert_int_equal(ops->kernel(sim.d, sim.m, "other", &k, &sim.err), -1);
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_parameters),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

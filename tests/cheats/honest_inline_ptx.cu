// Written in PTX: predicates, vector loads, three-operand arithmetic.
// task: diag_matmul
// expect: ok
//@ launch scale<<<dim3(ceil_div(m, 512), n), 128>>>(d, b, c, m)
extern "C" __global__ void scale(const float *d, const float *b, float *c, int m)
{
    int j = blockIdx.x * 512 + threadIdx.x * 4;
    long long at = (long long)blockIdx.y * m + j;
    float f;
    asm("ld.global.nc.f32 %0, [%1];" : "=f"(f) : "l"(d + blockIdx.y));
    if (m % 4 == 0) {
        if (j < m)
            asm volatile("{\n.reg .f32 p, q, r, s;\nld.global.nc.v4.f32 {p, q, r, s}, [%0];\nmul.rn.f32 p, p, %2;\nmul.rn.f32 q, q, %2;\n"
                         "mul.rn.f32 r, r, %2;\nmul.rn.f32 s, s, %2;\nst.global.v4.f32 [%1], {p, q, r, s};\n}"
                         : : "l"(b + at), "l"(c + at), "f"(f) : "memory");
        return;
    }
    for (int k = 0; k < 4; k++)
        asm volatile("{\n.reg .pred in;\n.reg .f32 v;\nsetp.lt.s32 in, %4, %3;\n@in ld.global.f32 v, [%0];\n@in fma.rn.f32 v, v, %2, 0f00000000;\n"
                     "@in st.global.f32 [%1], v;\n}" : : "l"(b + at + k), "l"(c + at + k), "f"(f), "r"(m), "r"(j + k) : "memory");
}

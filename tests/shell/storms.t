#!/usr/bin/env bash
# Endless loops of the instructions that take the simulator longest: each ends by its limit, which counts host
# work, after about the same CPU time. TAP on stdout.
# limit: 600
. "$(dirname "$0")/tap.sh"
export QUERN_LOG=quiet

cpu_of() { # COMMAND...: the CPU seconds that it takes
    local TIMEFORMAT='%U %S'
    { time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}
# CPU seconds of the process, a check that runs into its limit included: usually 0.1 to 0.6. A machine that
# takes longer to count and to touch new pages than that of these numbers, 0.17 s and 0.6 s, is given longer.
counts=$(cpu_of awk 'BEGIN { for (i = 0; i < 4000000; i++) s += i % 7 }')
pages=$(cpu_of perl -e '$x = "x" x 480_000_000')
most=$(awk "BEGIN { m = $counts / 0.3; p = $pages / 1.0; if (p > m) m = p; print 2.5 * (m < 1 ? 1 : m) }")
echo "# $counts s to count, $pages s for new pages: at most $most s a storm"

# storm NAME DECLARATIONS INSTRUCTIONS: in a loop, with the registers v (float), d (double), u, a (address in
# shared memory)
storm() {
    cat >"$tmp/$1.cu" <<END
#include <mma.h>
//@ launch relu<<<64, 1024>>>(x, y, n)
__device__ float4 sums[1024];
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ __align__(16) float s[4096];
    float v = 3.0f, tiny = 1e-20f;
    double d = 1.5;
    unsigned u = threadIdx.x & 15, a = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x * 4]);
    s[threadIdx.x] = 0;
    __syncthreads();
    $2
    for (int i = 0; i < 1 << 30; i++) {
#pragma unroll
        for (int k = 0; k < 32; k++) { $3 }
    }
    if (v == 12345) y[threadIdx.x] = v + d + u;
}
END
    judge "$1" timeout
}
judge() { # NAME OUTCOME: of $tmp/NAME.cu
    local TIMEFORMAT='%U %S' json spent
    {
        time json=$("$BIN/quern-eval" --task relu --device sim:h100 --json "$tmp/$1.cu" 2>"$tmp/err")
    } 2>"$tmp/time"
    spent=$(awk '{ print $1 + $2 }' "$tmp/time")
    [[ $json == *"\"outcome\":\"$2\""* ]] && awk "BEGIN { exit !($spent <= $most) }"
    ok $? "$1: $2 after $spent CPU seconds"
    [[ $json == *"$2"* ]] || echo "# ${json:0:400}"
}
ptx() { # NAME TEXT: one asm statement
    storm "$1" '' \
        "asm volatile(\"$2\" : \"+f\"(v), \"+d\"(d), \"+r\"(u) : \"f\"(tiny), \"r\"(a),
        \"l\"(x + threadIdx.x % 31), \"l\"(sums + (threadIdx.x * 37 & 1023)) : \"memory\");"
}
storm wmma 'nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __half, nvcuda::wmma::row_major> p;
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, __half, nvcuda::wmma::col_major> q;
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c;
    nvcuda::wmma::fill_fragment(p, 1); nvcuda::wmma::fill_fragment(q, 1);
    nvcuda::wmma::fill_fragment(c, 0);' \
    'nvcuda::wmma::mma_sync(c, p, q, c); v += c.x[0];'
storm mma 'float m[4] = {};' \
    'asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
    "{%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
    : "+f"(m[0]), "+f"(m[1]), "+f"(m[2]), "+f"(m[3]) : "r"(u));'
storm mma_f64 'double m[4] = {};' \
    'asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, "
    "{%4,%4,%4,%4,%4,%4,%4,%4}, {%4,%4,%4,%4}, {%0,%1,%2,%3};"
    : "+d"(m[0]), "+d"(m[1]), "+d"(m[2]), "+d"(m[3]) : "d"(d));'
storm generic 'float l[8]; for (int i = 0; i < 8; i++) l[(i + n) & 7] = i;
    const float *p = threadIdx.x % 3 == 0 ? &s[threadIdx.x] : threadIdx.x % 3 == 1 ? &x[threadIdx.x % 31]
        : &l[n & 7];' \
    'v += *(const volatile float *)p;'
storm match 'unsigned long long w = threadIdx.x;' 'u ^= __match_any_sync(0xffffffffu, w); w += u;'
storm scattered '' 'u = u * 1664525u + 1013904223u; v += ((const volatile float *)x)[(u >> 8) % 31];'
storm bytes_in_shared_memory \
    '__shared__ volatile unsigned char c[16384]; for (int k = threadIdx.x; k < 16384; k += 1024) c[k] = 0;
        __syncthreads();' \
    'u = u * 1664525u + 1013904223u; c[(u >> 18 & ~1023) | threadIdx.x] = u; u += c[(u >> 9) & 16383];'
storm bytes_in_local_memory 'char l[4096]; for (int k = 0; k < 4096; k++) l[k] = 0;' \
    'u = u * 1664525u + 1013904223u; l[u >> 20] = u; u += l[(u >> 9) & 4095];'
storm undefined 'float w[8]; if (n < 0) for (int k = 0; k < 8; k++) w[k] = x[k];' \
    'w[k & 7] += w[(k + 3) & 7]; ((volatile float *)s)[(threadIdx.x * 33 + k) & 1023] = w[k & 7];
        w[k & 7] = ((volatile float *)s)[(threadIdx.x * 31 + k) & 1023];'
storm mbarrier \
    '__shared__ unsigned long long b[1024]; unsigned at = (unsigned)__cvta_generic_to_shared(&b[threadIdx.x]);
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));' \
        'asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at) : "memory");'
storm shuffles_from_nobody '' \
    'if (threadIdx.x % 32 < 16)
        asm volatile("{.reg .f32 q;\nshfl.sync.bfly.b32 q, %0, 16, 31, 65535;}" : "+f"(v));'
# Behind what the block uses, in the 128 bytes that the GPU gives it in one.
storm loads_beyond '__shared__ volatile float odd[3]; odd[threadIdx.x % 3] = 0;' \
    'asm volatile("{.reg .f32 q;\nld.shared.f32 q, [%0+16416];}" : : "r"(a & 31) : "memory");'
storm bulk_copies 'asm volatile("fence.proxy.async;" : : : "memory"); __syncthreads();' \
    'if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 900;" : : "l"(y), "r"(a) : "memory");'
ptx stmatrix 'stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%4], {%2,%2,%2,%2};'
ptx vector_atomics 'red.global.add.v4.f32 [%6], {%3,%3,%3,%3};'
ptx cp_async 'cp.async.ca.shared.global [%4], [%5], 4;\ncp.async.wait_all;'
ptx halves 'fma.rn.f16x2 %2, %2, %2, %2;'
ptx fp8 '{.reg .b16 h;\ncvt.rn.satfinite.e4m3x2.f32 h, %0, %0;\ncvt.rn.f16x2.e4m3x2 %2, h;}'
ptx denormal_products 'mul.rn.f32 %0, %3, %3;'
ptx denormal_doubles 'fma.rn.f64 %1, %1, 0d0010000000000001, 0d0000000000000001;'
ptx conversions '{.reg .b16 h;\ncvt.rz.f16.f32 h, %0;\ncvt.f32.f16 %0, h;}'
ptx fns 'fns.b32 %2, %2, 3, 4;'
ptx sine 'sin.approx.f32 %0, %0;'

# Host work outside of the kernels' instructions: new pages of large buffers and places far apart in them,
# library calls, sizes that an operator's cost is computed from, different kernels of op lines.
large() { # NAME LAUNCH BODY: a buffer b of 480 MB
    printf '%s\n' '//@ buffer float b[120000000]' '//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)' \
        "//@ launch k<<<$2>>>(b, n)" 'extern "C" __global__ void relu(const float *x, float *y, int n) {' \
        'int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = fmaxf(x[i], 0.0f); }' \
        'extern "C" __global__ void k(float *b, int n) {' \
        "unsigned u = blockIdx.x * 1024 + threadIdx.x; $3 }" >"$tmp/$1.cu"
    judge "$1" timeout
}
lines() { # NAME OUTCOME HOW_OFTEN OP [LINE...]: an op line repeated after others, @ is its number
    local k
    { printf '//@ op %s\n' "${@:5}"
        for ((k = 1; k <= $3; k++)); do echo "//@ op c$k = ${4//@/$k}"; done
        echo '//@ op y = aten.relu(x)'; } >"$tmp/$1.cu"
    judge "$1" "$2"
}
large far_stores '64, 1024' 'for (;;) { u = u * 1664525u + 1013904223u;
#pragma unroll
for (int k = 0; k < 8; k++) b[((u >> 4) + k * 15000001u) % 120000000] = 0; }'
one='z = aten.slice(x, 0, 0, 1)'
lines products timeout 100 'aten.mm(e, e)' "$one" 'e = aten.expand(z, [2000, 2000])'
lines convolutions timeout 100 'aten.conv2d(e, e, bias=None, stride=[1, 1], padding=[16, 16])' "$one" \
    'e = aten.expand(z, [64, 64, 32, 32])'
lines wide_windows ok 40 'aten.conv1d(v, v, bias=None, stride=[1], padding=[0])' \
    'v = aten.view(x, [1, 1, -1])'
lines different_kernels plan_error 400 'aten.add.Scalar(x, @.25)' 'a = aten.relu(x)'
done_testing

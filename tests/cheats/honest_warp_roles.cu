// Warp 0 loads, the others compute; named barriers pass the buffer between them.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 768), 128>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[96];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int k = 0; k < 8; k++) {
        int first = blockIdx.x * 768 + k * 96;
        if (warp == 0) {
            for (int e = lane; e < 96; e += 32) s[e] = first + e < n ? x[first + e] : 0.0f;
            asm volatile("bar.sync 1, 128;" ::: "memory");
            asm volatile("bar.sync 2, 128;" ::: "memory");
        } else {
            int e = (warp - 1) * 32 + lane;
            asm volatile("bar.sync 1, 128;" ::: "memory");
            if (first + e < n) y[first + e] = fmaxf(s[e], 0.0f);
            asm volatile("bar.sync 2, 128;" ::: "memory");
        }
    }
}

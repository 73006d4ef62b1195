/* Kernels of recurrent cells. */

//@ sums: gate[g][n][warp]: the sums of weights and state
    T sum[G][N] = {};
    if (j0 + warp < H)
#pragma unroll 4
        for (int k = lane; k < H; k += 32) {
            T v[G];
#pragma unroll
            for (int g = 0; g < G; g++)
                v[g] = (T)x@weight@[@offset@LL + (g * H + j0 + warp) * @row@LL + k * @column@LL];
#pragma unroll
            for (int n = 0; n < N; n++) {
                const int b = min(b0 + n, B - 1);
                const T h = t ? (T)@before@ : (T)@first@;
#pragma unroll
                for (int g = 0; g < G; g++) sum[g][n] += v[g] * h;
            }
        }
#pragma unroll
    for (int g = 0; g < G; g++)
#pragma unroll
        for (int n = 0; n < N; n++) {
            for (int d = 16; d; d /= 2)
                sum[g][n] += __shfl_xor_sync(0xffffffffu, sum[g][n], d);
            if (!lane) gate[g][n][warp] = sum[g][n];
        }
    __syncthreads();

//@ gru
    const T reset = 1 / (1 + exp(-x[0] - s[0]));
    const T keep = 1 / (1 + exp(-x[1] - s[1]));
    const T fresh = tanh(x[2] + reset * s[2]);
    const T h = fresh + keep * (last - fresh);

//@ lstm
    c = c / (1 + exp(-x[1] - s[1])) + tanh(x[2] + s[2]) / (1 + exp(-x[0] - s[0]));
    t@c@[b * H + j] = c;
    if (t == @last@) y2[@offset@LL + b * H + j] = (@stored@)c;
    const T h = tanh(c) / (1 + exp(-x[3] - s[3]));

//@ gates
    const int j = j0 + threadIdx.x % @warps@, n = threadIdx.x / @warps@, b = b0 + n;
    if (n >= N || b >= B || j >= H) return;
    T x[G], s[G];
#pragma unroll
    for (int g = 0; g < G; g++) {
        x[g] = t@gates@[((long long)now * B + b) * (G * H) + g * H + j];
        s[g] = gate[g][n][threadIdx.x % @warps@]\

//@ begin
    typedef @type@ T;
    constexpr int G = @g@, N = @n@, B = @b@, H = @h@;
    __shared__ T gate[G][N][@warps@];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int j0 = blockIdx.x * @warps@, b0 = blockIdx.y * N;

/* Kernels of softmax and its logarithm. */

//@ warp: a warp a row
    const index r = blockIdx.x * 4 + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    T x[@each@], most = LOW, sum = 0;
    if (r >= @rows@) return;
#pragma unroll
    for (int k = 0; k < @each@; k++) {
        const index i = k * 32 + lane, f = r * @n@ + i;
        x[k] = LOW;
        if (i < @n@) x[k] = @x@;
        most = x[k] > most ? x[k] : most;
    }
    for (int d = 16; d; d /= 2) {
        const T o = __shfl_xor_sync(0xffffffffu, most, d);
        most = o > most ? o : most;
    }
#pragma unroll
    for (int k = 0; k < @each@; k++) {
        if (k * 32 + lane >= @n@) continue;
        sum += @kept@exp(x[k] - most);
    }
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);

//@ warp_store
#pragma unroll
    for (int k = 0; k < @each@; k++)
        if (k * 32 + lane < @n@)
            y0[r * @n@ + k * 32 + lane] = (@stored@)(@value@);

//@ vectors
    struct __align__(@in_bytes@) in { @in@ v[@vector@]; };
    struct __align__(@out_bytes@) out { @out@ v[@vector@]; };

//@ kept_loads
    const index base = blockIdx.x * (index)N;
    T v[LOADS * V], most = LOW, sum = 0;
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        const int i = k * STEP + threadIdx.x * V;
#pragma unroll
        for (int j = 0; j < V; j++) v[k * V + j] = LOW;
        if (i < N) {

//@ kept_vector
            const in w = *(const in *)(x@x@ + base + i);
#pragma unroll
            for (int j = 0; j < V; j++) v[k * V + j] = (T)@cast@w.v[j];

//@ kept_most
#pragma unroll
    for (int k = 0; k < LOADS * V; k++) most = v[k] > most ? v[k] : most;
    most = op_block_reduce(most, [](T p, T q) { return p > q ? p : q; }, shared);

//@ kept_sum
#pragma unroll
    for (int k = 0; k < LOADS * V; k++) { v[k] = exp(v[k] - most); sum += v[k]; }
    sum = op_block_reduce(sum, [](T p, T q) { return p + q; }, shared);

//@ kept_log_sum
#pragma unroll
    for (int k = 0; k < LOADS * V; k++) sum += exp(v[k] - most);
    sum = op_block_reduce(sum, [](T p, T q) { return p + q; }, shared);

//@ kept_store
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        const int i = k * STEP + threadIdx.x * V;
        out w;
#pragma unroll
        for (int j = 0; j < V; j++) w.v[j] = (@stored@)(@value@);
        if (i < N) *(out *)(y0 + base + i) = w;
    }

//@ block
    __shared__ T shared[32];
    const index base = blockIdx.x * (index)@n@;
    T most = LOW, sum = 0;

//@ along_merge
            __syncthreads();
            own[threadIdx.x] = @name@;
            for (int half = blockDim.x / 2; half; half /= 2) {
                __syncthreads();
                if (threadIdx.x < half) {
                    const T o = own[threadIdx.x + half];
                    T @name@ = own[threadIdx.x];
                    @with@;
                    own[threadIdx.x] = @name@;
                }
            }
            __syncthreads();
            @name@ = own[0];

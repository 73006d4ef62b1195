// Recurrent layers in generated kernels. The blocks of a cluster run all steps of one direction of a layer
// for some rows of the batch. The weights of the state stay in registers, and what these have no room for in
// shared memory.

//@ recurrent
__device__ __forceinline__ float recurrent_sigmoid(float x)
{
    return __fdividef(1.f, 1.f + __expf(-x));
}

// Near zero by its series, where the difference from 1 would lose bits. Both are computed, without a branch.
__device__ __forceinline__ float recurrent_tanh(float x)
{
    const float s = x * x;
    const float series =
        -0.333333333f + s * (0.133333333f + s * (-0.0539682540f + s * 0.0218694885f));
    const float far = fmaf(2.f, recurrent_sigmoid(2.f * x), -1.f);
    float y;
    asm("{\n\t.reg .pred near;\n\tsetp.lt.f32 near, %1, 0f3E800000;\n\t"
        "selp.f32 %0, %2, %3, near;\n\t}"
        : "=f"(y)
        : "f"(fabsf(x)), "f"(fmaf(x * s, series, x)), "f"(far));
    return y;
}

__device__ __forceinline__ void recurrent_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void recurrent_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// A shuffle of floats as such.
__device__ __forceinline__ float recurrent_exchange(float x, int far)
{
    float y;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(y) : "f"(x), "r"(far));
    return y;
}

// The address of a block's own variable in another block of the cluster.
__device__ __forceinline__ unsigned recurrent_place(const float *at, int rank)
{
    unsigned to;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(to)
        : "r"((unsigned)__cvta_generic_to_shared(at)), "r"(rank));
    return to;
}

__device__ __forceinline__ void recurrent_send(unsigned to, float value)
{
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}

// Four neighbouring elements of a row of n; those outside of it are 0.
__device__ __forceinline__ float4 recurrent_four(const float *row, int at, int n, bool inside)
{
    float4 v = {0.f, 0.f, 0.f, 0.f};
    if (!inside || at >= n) return v;
    if (n % 4 == 0) return *(const float4 *)(row + at);
    v.x = row[at];
    if (at + 1 < n) v.y = row[at + 1];
    if (at + 2 < n) v.z = row[at + 2];
    if (at + 3 < n) v.w = row[at + 3];
    return v;
}

// gates: what the inputs add to the gates, of all steps. h and c: the state before the first step.
struct RecurrentCell {
    const float *gates, *weight, *bias, *h, *c;
};

// A line has what belongs to one step of one row of the batch: `across` elements of y. `step` lines lie
// between two steps, and `row` lines between two rows.
struct RecurrentLayer {
    float *y, *h, *c;
    int steps, batch, across;
    long long step, row;
};

enum { CELL_TANH, CELL_RELU, CELL_GRU, CELL_LSTM };

// The sizes of a kernel. A block has BLOCK_UNITS units, and a warp UNITS of them with all of their gates, for
// ROWS rows of the batch at a time. SAME lanes end with the same numbers of a unit and a row. A lane has four
// weights of each CHUNK of a gate's row, PARTS for a unit, and HELD of them in registers.
template <int KIND, int N, int R> struct RecurrentSizes {
    static constexpr int ROWS = R, GATES = KIND == CELL_LSTM ? 4 : KIND == CELL_GRU ? 3 : 1;
    static constexpr bool WIDE = KIND >= CELL_GRU && N > 256;
    static constexpr int WARPS = WIDE ? 16 : 8, THREADS = 32 * WARPS,
                         UNITS = KIND < CELL_GRU && N > 256 ? 8 : 4, BLOCK_UNITS = WARPS * UNITS,
                         BLOCKS = (N + BLOCK_UNITS - 1) / BLOCK_UNITS, CHUNKS = (N + 127) / 128,
                         WIDTH = CHUNKS * 128, PARTS = GATES * CHUNKS, HELD = WIDE ? 6 : PARTS,
                         SAME = 32 / (ROWS * UNITS), OWN_BIAS = KIND == CELL_GRU ? 2 : GATES;
};

// A thread's weights. Those of its own unit come first.
template <typename Z> struct RecurrentWeights {
    float4 held[Z::UNITS][Z::HELD];

    static __device__ __forceinline__ float4 &stored(int u, int part)
    {
        extern __shared__ float4 recurrent_stored[];
        return recurrent_stored[((part - Z::HELD) * Z::UNITS + u) * Z::THREADS + threadIdx.x];
    }

    template <int N> __device__ __forceinline__ void read(const float *from, int first, int mine)
    {
#pragma unroll
        for (int u = 0; u < Z::UNITS; u++)
#pragma unroll
            for (int part = 0; part < Z::PARTS; part++) {
                const int unit = first + (u ^ mine), at = part % Z::CHUNKS * 128;
                const float4 w = recurrent_four(from + (part / Z::CHUNKS * N + unit) * N,
                                                at + threadIdx.x % 32 * 4, N, unit < N);
                if (part < Z::HELD)
                    held[u][part] = w;
                else
                    stored(u, part) = w;
            }
    }

    __device__ __forceinline__ float4 at(int u, int part) const
    {
        return part < Z::HELD ? held[u][part] : stored(u, part);
    }
};

// The states of the rows from `base` on, and zeros in the other half.
template <int N, int THREADS, int ROWS, int WIDTH>
__device__ __forceinline__ void recurrent_begin(const float *h, int base, int batch,
                                                float (&state)[2][ROWS][WIDTH])
{
    for (int i = threadIdx.x; i < 2 * ROWS * WIDTH; i += THREADS) {
        const int k = i % WIDTH, row = base + i / WIDTH;
        const bool is_state = k < N && i < ROWS * WIDTH && row < batch;
        state[0][0][i] = is_state ? h[(long long)row * N + k] : 0.f;
    }
}

// The sums of a lane's own unit and row, into sum[0]. At each exchange a lane keeps the first half of its
// sums.
template <typename Z>
__device__ __forceinline__ void recurrent_sums(const RecurrentWeights<Z> &weights,
                                               const float (*state)[Z::WIDTH], int row,
                                               float (&sum)[Z::ROWS * Z::UNITS][Z::GATES])
{
    constexpr int ROWS = Z::ROWS, UNITS = Z::UNITS, GATES = Z::GATES;
#pragma unroll
    for (int j = 0; j < Z::CHUNKS; j++)
#pragma unroll
        for (int b = 0; b < ROWS; b++) {
            const float4 h = *(const float4 *)&state[b ^ row][j * 128 + threadIdx.x % 32 * 4];
#pragma unroll
            for (int u = 0; u < UNITS; u++)
#pragma unroll
                for (int g = 0; g < GATES; g++) {
                    const float4 w = weights.at(u, g * Z::CHUNKS + j);
                    float &s = sum[u * ROWS + b][g];
                    s = fmaf(w.x, h.x, s), s = fmaf(w.y, h.y, s);
                    s = fmaf(w.z, h.z, s), s = fmaf(w.w, h.w, s);
                }
        }
#pragma unroll
    for (int far = 16; far; far /= 2)
#pragma unroll
        for (int v = 0; v < (far * ROWS * UNITS + 31) / 32; v++)
#pragma unroll
            for (int g = 0; g < GATES; g++) {
                const int give = far * ROWS * UNITS >= 32 ? v + far * ROWS * UNITS / 32 : 0;
                sum[v][g] += recurrent_exchange(sum[give][g], far);
            }
}

// The new h of a unit. x: what the inputs add to the gates; s: what the state adds. own: c of an LSTM, h of a
// GRU.
template <int KIND>
__device__ __forceinline__ float recurrent_unit(const float *x, const float *s, float bias,
                                                float &own)
{
    if constexpr (KIND == CELL_LSTM) {
        const float in = recurrent_sigmoid(x[0] + s[0]) * recurrent_tanh(x[2] + s[2]);
        own = recurrent_sigmoid(x[1] + s[1]) * own + in;
        return recurrent_sigmoid(x[3] + s[3]) * recurrent_tanh(own);
    } else if constexpr (KIND == CELL_GRU) {
        const float now = recurrent_tanh(x[2] + recurrent_sigmoid(x[0] + s[0]) * (s[2] + bias));
        return own = now + recurrent_sigmoid(x[1] + s[1]) * (own - now);
    } else {
        const float sum = x[0] + s[0];
        return KIND == CELL_TANH ? recurrent_tanh(sum) : sum < 0.f ? 0.f : sum;
    }
}

// Sends a unit's h to all blocks of the cluster: each of the SAME lanes to some of them. to: the first one's.
template <int BLOCKS, int SAME>
__device__ __forceinline__ void recurrent_share(const float *at, unsigned to, unsigned next,
                                                int part, float h)
{
    if (part < BLOCKS) recurrent_send(to + next, h);
#pragma unroll
    for (int b = SAME; b < BLOCKS; b += SAME)
        if (b + part < BLOCKS) recurrent_send(recurrent_place(at, b + part) + next, h);
}

// One direction of a layer for group `group` of ROWS * TILES rows. What the units give goes to all blocks of
// the cluster. YIELDS: bits of y, h and c that are written.
template <int KIND, int N, int ROWS, int TILES, bool HAS_BIAS, int YIELDS>
__device__ __forceinline__ void recurrent(const RecurrentCell &cell, const RecurrentLayer &layer,
                                          int group, int direction)
{
    using Z = RecurrentSizes<KIND, N, ROWS>;
    __shared__ __align__(16) float state[2][TILES * ROWS][Z::WIDTH];
    const int rank = blockIdx.x % Z::BLOCKS, part = threadIdx.x % Z::SAME,
              row = threadIdx.x / Z::SAME % ROWS,
              unit = rank * Z::BLOCK_UNITS + threadIdx.x / (Z::SAME * ROWS),
              base = group * ROWS * TILES;
    const bool is_unit = N % Z::BLOCK_UNITS == 0 || unit < N;
    RecurrentWeights<Z> weights;
    weights.template read<N>(cell.weight, (rank * Z::WARPS + threadIdx.x / 32) * Z::UNITS,
                             threadIdx.x % 32 / (Z::SAME * ROWS));
    recurrent_begin<N, Z::THREADS>(cell.h, base, layer.batch, state);
    float bias[Z::GATES], own[TILES], input[TILES][Z::GATES];
    bool has[TILES];
    const float *gates[TILES];
    float *y[TILES];
    unsigned to[TILES];
    const long long step = direction ? -layer.step : layer.step;
#pragma unroll
    for (int g = 0; g < Z::GATES; g++)
        bias[g] = HAS_BIAS && is_unit ? cell.bias[g * N + unit] : 0.f;
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        const long long r = base + i * ROWS + row,
                        line = r * layer.row + (direction ? (layer.steps - 1) * layer.step : 0);
        has[i] = row < layer.batch - (base + i * ROWS) && is_unit;
        own[i] =
            KIND >= CELL_GRU && has[i] ? (KIND == CELL_LSTM ? cell.c : cell.h)[r * N + unit] : 0.f;
        gates[i] = cell.gates + line * (Z::GATES * N) + unit;
        y[i] = layer.y + line * layer.across + direction * N + unit;
        to[i] = recurrent_place(&state[0][i * ROWS + row][unit], part % Z::BLOCKS);
#pragma unroll
        for (int g = 0; g < Z::GATES; g++) input[i][g] = has[i] ? gates[i][g * N] : 0.f;
    }
    recurrent_arrive();
    recurrent_wait();
    for (int t = 0; t < layer.steps; t++) {
        float h[TILES];
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            float x[Z::GATES], sum[ROWS * Z::UNITS][Z::GATES] = {};
            gates[i] += step * (Z::GATES * N);
#pragma unroll
            for (int g = 0; g < Z::GATES; g++) {
                x[g] = g < Z::OWN_BIAS ? input[i][g] + bias[g] : input[i][g];
                if (t + 1 < layer.steps && has[i]) input[i][g] = gates[i][g * N];
            }
            recurrent_sums(weights, &state[t % 2][i * ROWS], row, sum);
            h[i] = recurrent_unit<KIND>(x, sum[0], bias[Z::GATES - 1], own[i]);
            if (is_unit)
                recurrent_share<Z::BLOCKS, Z::SAME>(&state[0][i * ROWS + row][unit], to[i],
                                                    t % 2 ? 0 : sizeof state[0], part, h[i]);
        }
        recurrent_arrive();
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            if ((YIELDS & 1) && has[i] && !part) *y[i] = h[i];
            y[i] += step * layer.across;
            if (t + 1 < layer.steps || !has[i] || part) continue;
            const long long at = (long long)(base + i * ROWS + row) * N + unit;
            if (YIELDS & 2) layer.h[at] = h[i];
            if (YIELDS & 4) layer.c[at] = own[i];
        }
        recurrent_wait();
    }
}

// Recurrent layers in generated kernels. The blocks of a cluster, or of a team of a cooperative launch, run
// all steps of one direction of a layer for some rows of the batch. The weights of the state stay in
// registers, and what these have no room for in shared memory.

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

// The sizes of a kernel. A block has WARPS warps, and a warp UNITS units with all of their gates, for ROWS
// rows of the batch at a time, TILES times. SAME lanes end with the same numbers of a unit and a row. A lane
// has four weights of each CHUNK of a gate's row, PARTS for a unit, and HELD of them in registers.
template <int KIND_, int N_, int ROWS_, int TILES_, int WARPS_, int UNITS_, int HELD_>
struct RecurrentSizes {
    static constexpr int KIND = KIND_, N = N_, ROWS = ROWS_, TILES = TILES_, WARPS = WARPS_,
                         UNITS = UNITS_, HELD = HELD_, ALL = ROWS * TILES, THREADS = 32 * WARPS,
                         GATES = KIND == CELL_LSTM  ? 4
                                 : KIND == CELL_GRU ? 3
                                                    : 1,
                         BLOCK_UNITS = WARPS * UNITS, BLOCKS = (N + BLOCK_UNITS - 1) / BLOCK_UNITS,
                         CHUNKS = (N + 127) / 128, WIDTH = CHUNKS * 128, PARTS = GATES * CHUNKS,
                         SAME = 32 / (ROWS * UNITS), OWN_BIAS = KIND == CELL_GRU ? 2 : GATES;
};

// What a lane has of a group of rows: its unit, and its row of each tile.
struct RecurrentPlace {
    int base, row, unit, part;
    bool is_unit;
};

// A thread's weights. Those of its own unit come first.
template <typename Z> struct RecurrentWeights {
    float4 held[Z::UNITS][Z::HELD];

    static __device__ __forceinline__ float4 &stored(int u, int part)
    {
        extern __shared__ float4 recurrent_stored[];
        return recurrent_stored[((part - Z::HELD) * Z::UNITS + u) * Z::THREADS + threadIdx.x];
    }

    __device__ __forceinline__ void read(const float *from, int first, int mine)
    {
        constexpr int N = Z::N;
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
template <typename Z>
__device__ __forceinline__ void recurrent_begin(const float *h, int base, int batch,
                                                float (&state)[2][Z::ALL][Z::WIDTH])
{
    for (int i = threadIdx.x; i < 2 * Z::ALL * Z::WIDTH; i += Z::THREADS) {
        const int k = i % Z::WIDTH, row = base + i / Z::WIDTH;
        const bool is_state = k < Z::N && i < Z::ALL * Z::WIDTH && row < batch;
        state[0][0][i] = is_state ? h[(long long)row * Z::N + k] : 0.f;
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
    for (int j = 0; j < Z::CHUNKS; j++) {
        float4 h[ROWS];
#pragma unroll
        for (int b = 0; b < ROWS; b++)
            h[b] = *(const float4 *)&state[b ^ row][j * 128 + threadIdx.x % 32 * 4];
#pragma unroll
        for (int u = 0; u < UNITS; u++)
#pragma unroll
            for (int g = 0; g < GATES; g++) {
                const float4 w = weights.at(u, g * Z::CHUNKS + j);
#pragma unroll
                for (int b = 0; b < ROWS; b++) {
                    float &s = sum[u * ROWS + b][g];
                    s = fmaf(w.x, h[b].x, s), s = fmaf(w.y, h[b].y, s);
                    s = fmaf(w.z, h[b].z, s), s = fmaf(w.w, h[b].w, s);
                }
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

// Blocks of a cluster write what their units give into the shared memory of all of them.
template <typename Z> struct RecurrentCluster {
    static constexpr bool ONCE = true;
    unsigned to[Z::TILES];

    __device__ __forceinline__ void begin(const float (&state)[2][Z::ALL][Z::WIDTH],
                                          const RecurrentPlace &own)
    {
#pragma unroll
        for (int i = 0; i < Z::TILES; i++)
            to[i] =
                recurrent_place(&state[0][i * Z::ROWS + own.row][own.unit], own.part % Z::BLOCKS);
        recurrent_arrive();
        recurrent_wait();
    }

    // Each of the SAME lanes sends to some blocks. to: the first one's.
    __device__ __forceinline__ void send(const float (&state)[2][Z::ALL][Z::WIDTH],
                                         const RecurrentPlace &own, int i, int t, float h)
    {
        const unsigned next = t % 2 ? 0 : sizeof state[0];
        if (own.is_unit && own.part < Z::BLOCKS) recurrent_send(to[i] + next, h);
#pragma unroll
        for (int b = Z::SAME; b < Z::BLOCKS; b += Z::SAME)
            if (own.is_unit && b + own.part < Z::BLOCKS)
                recurrent_send(
                    recurrent_place(&state[0][i * Z::ROWS + own.row][own.unit], b + own.part) +
                        next,
                    h);
    }

    __device__ __forceinline__ void arrive()
    {
        recurrent_arrive();
    }

    __device__ __forceinline__ void wait(float (&)[2][Z::ALL][Z::WIDTH], const RecurrentPlace &,
                                         int)
    {
        recurrent_wait();
    }
};

// Blocks of a team write what their units give into words of global memory, each beside the number of its
// step, and read those of all units until they have that number: who has a word knows that it is whole. A
// word is written again two steps later, by a block that has read what all blocks gave since they read it.
template <typename Z> struct RecurrentTeam {
    static constexpr bool ONCE = false;
    float2 *words;
    long long half;  // words of a step
    unsigned number; // of the last step before
    int batch, steps;

    __device__ __forceinline__ void begin(const float (&)[2][Z::ALL][Z::WIDTH],
                                          const RecurrentPlace &)
    {
        __syncthreads();
    }

    __device__ __forceinline__ void send(const float (&)[2][Z::ALL][Z::WIDTH],
                                         const RecurrentPlace &own, int i, int t, float h)
    {
        const int row = own.base + i * Z::ROWS + own.row;
        if (!own.is_unit || own.part || row >= batch || t + 1 == steps) return;
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(words + t % 2 * half +
                                                                 (long long)row * Z::N + own.unit),
                     "l"((unsigned long long)(number + t + 1) << 32 | __float_as_uint(h))
                     : "memory");
    }

    __device__ __forceinline__ void arrive()
    {
    }

    // COUNT neighbouring words.
    template <int COUNT>
    static __device__ __forceinline__ void read(unsigned long long (&v)[COUNT], const float2 *from)
    {
        if constexpr (COUNT == 2)
            asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                         : "=l"(v[0]), "=l"(v[1])
                         : "l"(from)
                         : "memory");
        else
            asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v[0]) : "l"(from) : "memory");
    }

    __device__ __forceinline__ void wait(float (&state)[2][Z::ALL][Z::WIDTH],
                                         const RecurrentPlace &own, int t)
    {
        constexpr int COUNT = Z::N % 2 ? 1 : 2, AT_ONCE = 4;
        const float2 *from = words + t % 2 * half + (long long)own.base * Z::N;
        const int n = t + 1 == steps ? 0 : min(Z::ALL, batch - own.base) * (Z::N / COUNT);
        const unsigned now = number + t + 1;
        for (int all = 0; all < n; all += AT_ONCE * Z::THREADS) {
            const int first = all + threadIdx.x;
            unsigned long long v[AT_ONCE][COUNT];
            bool whole;
            do {
                whole = true;
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++)
                    if (first + j * Z::THREADS < n)
                        read(v[j], from + (first + j * Z::THREADS) * COUNT);
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++)
#pragma unroll
                    for (int e = 0; e < COUNT; e++)
                        whole &= first + j * Z::THREADS >= n || v[j][e] >> 32 == now;
            } while (!__all_sync(0xffffffffu, whole)); /* lanes stay together */
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                const int at = (first + j * Z::THREADS) * COUNT;
                if (at >= n * COUNT) break;
#pragma unroll
                for (int e = 0; e < COUNT; e++)
                    state[(t + 1) % 2][at / Z::N][at % Z::N + e] =
                        __uint_as_float((unsigned)v[j][e]);
            }
        }
        __syncthreads();
    }
};

// What a lane has of a layer: c of an LSTM or h of a GRU, the inputs' part of the next step where few tiles
// leave registers for it, and where that and y lie: of the first tile, the others being `far` lines apart.
template <typename Z> struct RecurrentLane {
    static constexpr bool AHEAD = Z::TILES <= 2;
    float bias[Z::GATES], own[Z::TILES], input[AHEAD ? Z::TILES : 1][Z::GATES];
    bool has[Z::TILES];
    const float *gates;
    float *y;
    long long far;

    // What the inputs add to the gates of tile i.
    __device__ __forceinline__ void read(float (&x)[Z::GATES], int i) const
    {
#pragma unroll
        for (int g = 0; g < Z::GATES; g++)
            x[g] = has[i] ? gates[i * far * (Z::GATES * Z::N) + g * Z::N] : 0.f;
    }

    // The same of the step, before `gates` goes on to the next one, with the biases.
    __device__ __forceinline__ void take(float (&x)[Z::GATES], int i, bool more, long long step)
    {
        if constexpr (!AHEAD) read(x, i);
#pragma unroll
        for (int g = 0; g < Z::GATES; g++) {
            if constexpr (AHEAD) x[g] = input[i][g];
            if (g < Z::OWN_BIAS) x[g] += bias[g];
        }
        if (i + 1 == Z::TILES) gates += step * (Z::GATES * Z::N);
        if (AHEAD && i + 1 == Z::TILES && more)
#pragma unroll
            for (int j = 0; j < Z::TILES; j++) read(input[AHEAD ? j : 0], j);
    }

    template <bool HAS_BIAS>
    __device__ __forceinline__ void begin(const RecurrentCell &cell, const RecurrentLayer &layer,
                                          const RecurrentPlace &at, int direction)
    {
        constexpr int N = Z::N;
        const long long line =
            (at.base + at.row) * layer.row + (direction ? (layer.steps - 1) * layer.step : 0);
        gates = cell.gates + line * (Z::GATES * N) + at.unit;
        y = layer.y + line * layer.across + direction * N + at.unit;
        far = Z::ROWS * layer.row;
#pragma unroll
        for (int g = 0; g < Z::GATES; g++)
            bias[g] = HAS_BIAS && at.is_unit ? cell.bias[g * N + at.unit] : 0.f;
#pragma unroll
        for (int i = 0; i < Z::TILES; i++) {
            const long long r = at.base + i * Z::ROWS + at.row;
            has[i] = r < layer.batch && at.is_unit;
            own[i] = Z::KIND >= CELL_GRU && has[i]
                         ? (Z::KIND == CELL_LSTM ? cell.c : cell.h)[r * N + at.unit]
                         : 0.f;
            if (AHEAD) read(input[AHEAD ? i : 0], i);
        }
    }
};

// All steps of a group of rows. YIELDS: bits of y, h and c that are written.
template <typename Z, bool HAS_BIAS, int YIELDS, typename Way>
__device__ __forceinline__ void recurrent_steps(const RecurrentCell &cell,
                                                const RecurrentLayer &layer, Way way,
                                                const RecurrentWeights<Z> &weights,
                                                const RecurrentPlace &at, int direction)
{
    __shared__ __align__(16) float state[2][Z::ALL][Z::WIDTH];
    recurrent_begin<Z>(cell.h, at.base, layer.batch, state);
    const long long step = direction ? -layer.step : layer.step;
    RecurrentLane<Z> lane;
    lane.template begin<HAS_BIAS>(cell, layer, at, direction);
    way.begin(state, at);
    for (int t = 0; t < layer.steps; t++) {
        float h[Z::TILES];
#pragma unroll
        for (int i = 0; i < Z::TILES; i++) {
            float x[Z::GATES], sum[Z::ROWS * Z::UNITS][Z::GATES] = {};
            lane.take(x, i, t + 1 < layer.steps, step);
            recurrent_sums(weights, &state[t % 2][i * Z::ROWS], at.row, sum);
            h[i] = recurrent_unit<Z::KIND>(x, sum[0], lane.bias[Z::GATES - 1], lane.own[i]);
            way.send(state, at, i, t, h[i]);
        }
        way.arrive();
#pragma unroll
        for (int i = 0; i < Z::TILES; i++) {
            if ((YIELDS & 1) && lane.has[i] && !at.part) lane.y[i * lane.far * layer.across] = h[i];
            if (t + 1 < layer.steps || !lane.has[i] || at.part) continue;
            const long long to = (long long)(at.base + i * Z::ROWS + at.row) * Z::N + at.unit;
            if (YIELDS & 2) layer.h[to] = h[i];
            if (YIELDS & 4) layer.c[to] = lane.own[i];
        }
        lane.y += step * layer.across;
        way.wait(state, at, t);
    }
}

// One direction of a layer. The blocks of a cluster have one group of rows, those of a team every group that
// is as many behind another as there are teams.
template <typename Z, bool HAS_BIAS, int YIELDS, typename Way>
__device__ __forceinline__ void recurrent(const RecurrentCell &cell, const RecurrentLayer &layer,
                                          const Way &way, int direction)
{
    const int rank = blockIdx.x % Z::BLOCKS,
              unit = rank * Z::BLOCK_UNITS + threadIdx.x / (Z::SAME * Z::ROWS);
    RecurrentPlace at = {0, (int)threadIdx.x / Z::SAME % Z::ROWS, unit, (int)threadIdx.x % Z::SAME,
                         Z::N % Z::BLOCK_UNITS == 0 || unit < Z::N};
    RecurrentWeights<Z> weights;
    weights.read(cell.weight, (rank * Z::WARPS + threadIdx.x / 32) * Z::UNITS,
                 threadIdx.x % 32 / (Z::SAME * Z::ROWS));
    int group = blockIdx.x / Z::BLOCKS;
    if constexpr (Way::ONCE) {
        at.base = group * Z::ALL;
        recurrent_steps<Z, HAS_BIAS, YIELDS>(cell, layer, way, weights, at, direction);
    } else {
        for (; group * Z::ALL < layer.batch; group += gridDim.x / Z::BLOCKS) {
            at.base = group * Z::ALL;
            recurrent_steps<Z, HAS_BIAS, YIELDS>(cell, layer, way, weights, at, direction);
        }
    }
}

// No word has a number yet.
__device__ __forceinline__ void recurrent_clear(float2 *words, long long n)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) words[i] = make_float2(0.f, 0.f);
}

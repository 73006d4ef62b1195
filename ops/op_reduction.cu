/* Kernels of reductions. */

//@ batch
    {
      state part[4];
#pragma unroll
      for (int k = 0; k < 4; k++) part[k].start();
      for (@index@ first = blockIdx.y * @along@ + along; first < N; first += 4 * STEP) {
        state::T x[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
          const @index@ i = first + k * STEP;
          x[k] = 0;
          if (i < N) x[k] = \

//@ begin
    typedef struct reduce_@number@ state;
    const int PARTS = @parts@, out = threadIdx.@out@, along = threadIdx.@along@;
    const @index@ o = blockIdx.x * @outputs@LL + out;
    state s;
    (void)PARTS;
    s.start();
    const @index@ N = @inputs@, STEP = @step@;
    if (o < @all_outputs@LL)

//@ merge
    const long long o = blockIdx.x * 4LL + threadIdx.x / 32;
    struct reduce_@number@ s, other;
    s.start();
    if (o < @outputs@LL)
      for (int k = threadIdx.x % 32; k < @splits@; k += 32) {

/* Kernels that sort rows by a bitonic network. */

//@ before
    const auto before = [](T a, int i, T b, int j) {
        if (i >= @n@ || j >= @n@ || (a != a && b != b)) return i < j;
        if (a != a || b != b) return @nan@;
        return a != b ? a @sign@ b : i < j;
    };

//@ shared
    __shared__ T v[@places@];
    __shared__ int index[@places@];
    const long long row = blockIdx.x;
    for (int at = threadIdx.x; at < @places@; at += @threads@) {
        v[at] = at < @n@ ? @x@ : (T)0;
        index[at] = at;
    }
    for (int size = 2; size <= @places@; size *= 2)
        for (int step = size / 2; step; step /= 2) {
            const int i = 2 * threadIdx.x - (threadIdx.x & (step - 1));
            const int j = i + step;
            __syncthreads();
            if (before(v[j], index[j], v[i], index[i]) == ((i & size) == 0)) {
                const T value = v[i];
                const int place = index[i];
                v[i] = v[j], v[j] = value;
                index[i] = index[j], index[j] = place;
            }
        }
    __syncthreads();
    for (int at = threadIdx.x; at < @k@; at += @threads@) {

//@ places
    const long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= @count@) return;
    const long long row = i / @places@, at = i % @places@;
    t@values@[i] = at < @n@ ? @x@ : (T)0;
    t@indices@[i] = at;

//@ exchange
    const long long own = blockIdx.x * 256LL + threadIdx.x;
    int size = 2, step = 1;
    for (int k = 0; k < t; k++) {
        step /= 2;
        if (!step) step = size, size *= 2;
    }
    if (own >= @pairs@) return;
    const long long i = 2 * own - (own & (step - 1)), j = i + step;
    const T a = t@v@[i], b = t@v@[j];
    const int p = t@index@[i], q = t@index@[j];
    if (before(b, q, a, p) == ((i % @places@ & size) == 0)) {
        t@v@[i] = b, t@v@[j] = a;
        t@index@[i] = q, t@index@[j] = p;
    }

//@ take
    const long long own = blockIdx.x * 256LL + threadIdx.x;
    if (own < @count@) {
        const long long row = own / @k@, at = own % @k@;

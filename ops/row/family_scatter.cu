/* What writes at indexed places need. */

//@ replace: *place becomes f(*place, v), in any order.
#ifndef OP_REPLACE
#define OP_REPLACE
template <typename T, typename U, typename F>
__device__ void op_replace_bits(T *place, T v, F f)
{
    U *bits = (U *)place, old = *(volatile U *)bits, seen;
    do {
        T now;
        seen = old;
        memcpy(&now, &seen, sizeof now);
        now = f(now, v);
        U next;
        memcpy(&next, &now, sizeof next);
        old = atomicCAS(bits, seen, next);
    } while (old != seen);
}
template <int BYTES> struct OpBits { typedef unsigned long long U; };
template <> struct OpBits<4> { typedef unsigned U; };
template <> struct OpBits<2> { typedef unsigned short U; };
template <typename T, typename F>
__device__ void op_replace(T *place, T v, F f)
{
    op_replace_bits<T, typename OpBits<sizeof(T)>::U>(place, v, f);
}
#endif

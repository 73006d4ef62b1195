/* Declarations that nvcc provides and NVRTC does not. */
#ifndef QUERN_PRELUDE
#define QUERN_PRELUDE
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = signed short;
using uint16_t = unsigned short;
using int32_t = signed int;
using uint32_t = unsigned int;
using int64_t = signed long long;
using uint64_t = unsigned long long;
using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
using intptr_t = int64_t;
using uintptr_t = uint64_t;
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#endif
#ifndef M_PI
#define M_PI 3.14159265358979323846
#define M_SQRT1_2 0.70710678118654752440
#define M_SQRT2 1.41421356237309504880
#define M_2_SQRTPI 1.12837916709551257390
#define M_LOG2E 1.4426950408889634074
#endif
#ifndef INT_MAX
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#endif
/* Of the C++ library what nvcc takes on a device: names of the C library, and functions of two values that
 * are constexpr there. */
namespace std
{
using ::abs, ::acos, ::acosf, ::acosh, ::asin, ::asinf, ::asinh, ::atan, ::atan2, ::atan2f, ::atanf,
    ::atanh, ::cbrt, ::cbrtf, ::ceil, ::ceilf, ::copysign, ::copysignf, ::cos, ::cosf, ::cosh,
    ::coshf, ::erf, ::erfc, ::erfcf, ::erff, ::exp, ::exp2, ::exp2f, ::expf, ::expm1, ::expm1f,
    ::fabs, ::fabsf, ::fdim, ::floor, ::floorf, ::fma, ::fmaf, ::fmax, ::fmaxf, ::fmin, ::fminf,
    ::fmod, ::fmodf, ::frexp, ::hypot, ::hypotf, ::ilogb, ::int16_t, ::int32_t, ::int64_t, ::int8_t,
    ::intptr_t, ::isfinite, ::isinf, ::isnan, ::ldexp, ::lgamma, ::llrint, ::llround, ::log,
    ::log10, ::log10f, ::log1p, ::log1pf, ::log2, ::log2f, ::logb, ::logf, ::lrint, ::lround,
    ::memcpy, ::memset, ::modf, ::nan, ::nanf, ::nearbyint, ::nextafter, ::pow, ::powf, ::ptrdiff_t,
    ::remainder, ::remquo, ::rint, ::rintf, ::round, ::roundf, ::scalbln, ::scalbn, ::signbit,
    ::sin, ::sinf, ::sinh, ::sinhf, ::size_t, ::sqrt, ::sqrtf, ::tan, ::tanf, ::tanh, ::tanhf,
    ::tgamma, ::trunc, ::truncf, ::uint16_t, ::uint32_t, ::uint64_t, ::uint8_t, ::uintptr_t;
template <class T> __host__ __device__ constexpr const T &min(const T &a, const T &b)
{
    return b < a ? b : a;
}
template <class T> __host__ __device__ constexpr const T &max(const T &a, const T &b)
{
    return a < b ? b : a;
}
template <class T, class Less>
__host__ __device__ constexpr const T &min(const T &a, const T &b, Less less)
{
    return less(b, a) ? b : a;
}
template <class T, class Less>
__host__ __device__ constexpr const T &max(const T &a, const T &b, Less less)
{
    return less(a, b) ? b : a;
}
template <class T>
__host__ __device__ constexpr const T &clamp(const T &v, const T &low, const T &high)
{
    return v < low ? low : high < v ? high : v;
}
template <class T> __host__ __device__ constexpr void swap(T &a, T &b)
{
    T old = a;
    a = b;
    b = old;
}
} // namespace std
#endif

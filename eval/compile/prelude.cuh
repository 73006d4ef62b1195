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
using ::abs;
using ::acos;
using ::acosf;
using ::acosh;
using ::asin;
using ::asinf;
using ::asinh;
using ::atan;
using ::atan2;
using ::atan2f;
using ::atanf;
using ::atanh;
using ::cbrt;
using ::cbrtf;
using ::ceil;
using ::ceilf;
using ::copysign;
using ::copysignf;
using ::cos;
using ::cosf;
using ::cosh;
using ::coshf;
using ::erf;
using ::erfc;
using ::erfcf;
using ::erff;
using ::exp;
using ::exp2;
using ::exp2f;
using ::expf;
using ::expm1;
using ::expm1f;
using ::fabs;
using ::fabsf;
using ::fdim;
using ::floor;
using ::floorf;
using ::fma;
using ::fmaf;
using ::fmax;
using ::fmaxf;
using ::fmin;
using ::fminf;
using ::fmod;
using ::fmodf;
using ::frexp;
using ::hypot;
using ::hypotf;
using ::ilogb;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::ldexp;
using ::lgamma;
using ::llrint;
using ::llround;
using ::log;
using ::log10;
using ::log10f;
using ::log1p;
using ::log1pf;
using ::log2;
using ::log2f;
using ::logb;
using ::logf;
using ::lrint;
using ::lround;
using ::memcpy;
using ::memset;
using ::modf;
using ::nan;
using ::nanf;
using ::nearbyint;
using ::nextafter;
using ::pow;
using ::powf;
using ::ptrdiff_t;
using ::remainder;
using ::remquo;
using ::rint;
using ::rintf;
using ::round;
using ::roundf;
using ::scalbln;
using ::scalbn;
using ::signbit;
using ::sin;
using ::sinf;
using ::sinh;
using ::sinhf;
using ::size_t;
using ::sqrt;
using ::sqrtf;
using ::tan;
using ::tanf;
using ::tanh;
using ::tanhf;
using ::tgamma;
using ::trunc;
using ::truncf;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;
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

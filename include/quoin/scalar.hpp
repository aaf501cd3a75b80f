#pragma once

#include <cmath>
#include <complex>
#include <concepts>
#include <limits>
#include <string>
#include <type_traits>

#include "quoin/error.hpp"

namespace quoin {

/// The types of numbers, in NumPy's names: C64 is std::complex<float>, C128 is std::complex<double>. F64 and C64 have
/// equally many bytes, so bytes do not tell types apart.
enum class ScalarKind { F32, F64, C64, C128 };
/// "f32", "f64", "c64", "c128".
constexpr const char* to_string(ScalarKind kind) {
    constexpr const char* names[] = {"f32", "f64", "c64", "c128"};
    return names[static_cast<int>(kind)];
}
/// Returns the bytes of one number.
constexpr int bytes_of(ScalarKind kind) {
    constexpr int bytes[] = {4, 8, 8, 16};
    return bytes[static_cast<int>(kind)];
}
/// Returns `f32` or `f64`, the entries of a table for these types. Throws InvalidArgument for complex numbers: no table
/// has measurements of them.
template <class Entry>
constexpr Entry entry_for(ScalarKind kind, Entry f32, Entry f64) {
    switch (kind) {
        case ScalarKind::F32: return f32;
        case ScalarKind::F64: return f64;
        case ScalarKind::C64:
        case ScalarKind::C128: break;
    }
    throw InvalidArgument(std::string("the tables of f32 and f64 have no entry for ") + to_string(kind));
}

/// Properties of a scalar: its kind, its real type and the unit roundoff. If entries are within 2^±safe_exponent, sums
/// of squares of up to 2^60 of them neither overflow nor lose bits. `has_halves`: whether three products of f16 make
/// one of this type.
template <class T>
struct Scalar {
    static_assert(std::is_same_v<T, float>, "Quoin computes in float and double");
    /// The type of real parts; here it spares more errors than this one.
    using Real = T;
    static constexpr ScalarKind kind = ScalarKind::F64;
};

/// f32.
template <>
struct Scalar<float> {
    /// The type of real parts.
    using Real = float;
    static constexpr ScalarKind kind = ScalarKind::F32;
    static constexpr double u = std::numeric_limits<float>::epsilon() / 2;
    static constexpr int safe_exponent = 30;
    static constexpr float safe_entry = 0x1p30f;
    static constexpr bool has_halves = true;
};
/// f64.
template <>
struct Scalar<double> {
    /// The type of real parts.
    using Real = double;
    static constexpr ScalarKind kind = ScalarKind::F64;
    static constexpr double u = std::numeric_limits<double>::epsilon() / 2;
    static constexpr int safe_exponent = 400;
    static constexpr double safe_entry = 0x1p400;
    static constexpr bool has_halves = false;
};
/// The limits for safe sums of squares apply to the real and the imaginary part.
template <class R>
struct Scalar<std::complex<R>> : Scalar<R> {
    static constexpr ScalarKind kind = std::is_same_v<R, float> ? ScalarKind::C64 : ScalarKind::C128;
    static constexpr bool has_halves = false;
};

/// The ScalarKind of a T.
template <class T>
inline constexpr ScalarKind scalar_kind = Scalar<T>::kind;

/// The type of the real part of a T.
template <class T>
using Real = typename Scalar<T>::Real;

template <class T>
inline constexpr bool is_complex = !std::is_same_v<T, Real<T>>;

/// Return x̄, Re x, Im x, |x|² and 2^e x, for real and complex x.
constexpr auto conjugate(std::floating_point auto x) { return x; }
constexpr auto real_part(std::floating_point auto x) { return x; }
constexpr auto imaginary_part(std::floating_point auto x) { return decltype(x)(0); }
constexpr auto squared_magnitude(std::floating_point auto x) { return x * x; }
inline auto times_power_of_two(std::floating_point auto x, int e) { return std::scalbn(x, e); }

template <class R>
constexpr std::complex<R> conjugate(std::complex<R> x) {
    return {x.real(), -x.imag()};
}
template <class R>
constexpr R real_part(std::complex<R> x) {
    return x.real();
}
template <class R>
constexpr R imaginary_part(std::complex<R> x) {
    return x.imag();
}
template <class R>
constexpr R squared_magnitude(std::complex<R> x) {
    return x.real() * x.real() + x.imag() * x.imag();
}
template <class R>
std::complex<R> times_power_of_two(std::complex<R> x, int e) {
    return {std::scalbn(x.real(), e), std::scalbn(x.imag(), e)};
}

}  // namespace quoin

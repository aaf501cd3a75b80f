#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

/// LAPACK's Fortran routines as a caller sees them, taken by name from one shared library.
namespace quoin::test::fortran {

#ifdef QUOIN_ILP64
inline constexpr bool ilp64 = true;
#else
inline constexpr bool ilp64 = false;
#endif

enum class Owner { Quoin, System };

template <class T, class Int>
class Routines {
    using In = const Int*;
    using Letter = const char*;
    using Length = std::size_t;

public:
    Routines(void* library, Owner owner) : library_(library), owner_(owner) {}

private:
    void* library_;
    Owner owner_;

    /// In an ILP64 build of Quoin dgeqrf_ has 64-bit integers, and the one with 32 bits is scipy_dgeqrf_.
    template <class F>
    F* find(const std::string& name) const {
        const bool wide = sizeof(Int) == 8;
        const std::string symbol = (ilp64 && !wide && owner_ == Owner::Quoin ? "scipy_" : "") +
                                   std::string(std::is_same_v<T, double> ? "d" : "s") + name +
                                   (wide && !ilp64 ? "_64_" : "_");
        void* address = dlsym(library_, symbol.c_str());
        EXPECT_NE(address, nullptr) << symbol << " is not exported";
        return reinterpret_cast<F*>(address);
    }

    using Geqrf = void(In, In, T*, In, T*, T*, In, Int*);
    using Geqr2 = void(In, In, T*, In, T*, T*, Int*);
    using Orgqr = void(In, In, In, T*, In, const T*, T*, In, Int*);
    using Ormqr = void(Letter, Letter, In, In, In, const T*, In, const T*, T*, In, T*, In, Int*, Length, Length);
    using Geqrt = void(In, In, In, T*, In, T*, In, T*, Int*);
    using Geqrt3 = void(In, In, T*, In, T*, In, Int*);
    using Gemqrt = void(Letter, Letter, In, In, In, In, const T*, In, const T*, In, T*, In, T*, Int*, Length, Length);
    using Tpqrt = void(In, In, In, In, T*, In, T*, In, T*, In, T*, Int*);
    using Tpmqrt = void(Letter, Letter, In, In, In, In, In, const T*, In, const T*, In, T*, In, T*, In, T*, Int*,
                        Length, Length);
    using Latsqr = void(In, In, In, In, T*, In, T*, In, T*, In, Int*);
    using Lamtsqr = void(Letter, Letter, In, In, In, In, In, const T*, In, const T*, In, T*, In, T*, In, Int*, Length,
                         Length);
    using Orgtsqr = void(In, In, In, In, T*, In, const T*, In, T*, In, Int*);
    using OrhrCol = void(In, In, In, T*, In, T*, In, T*, Int*);
    using Geqr = void(In, In, T*, In, T*, In, T*, In, Int*);
    using Gemqr = void(Letter, Letter, In, In, In, const T*, In, const T*, In, T*, In, T*, In, Int*, Length, Length);
    using Gels = void(Letter, In, In, In, T*, In, T*, In, T*, In, Int*, Length);
    using Geqp3 = void(In, In, T*, In, Int*, T*, T*, In, Int*);
    using Geqp3rk = void(In, In, In, In, const T*, const T*, T*, In, Int*, T*, T*, Int*, T*, T*, In, Int*, Int*);
    using Gelsy = void(In, In, In, T*, In, T*, In, Int*, const T*, Int*, T*, In, Int*);
    using Ormrz = void(Letter, Letter, In, In, In, In, const T*, In, const T*, T*, In, T*, In, Int*, Length, Length);
    using Copy = void(In, const T*, In, T*, In);

public:
    Geqrf* geqrf = find<Geqrf>("geqrf");
    Geqr2* geqr2 = find<Geqr2>("geqr2");
    Orgqr* orgqr = find<Orgqr>("orgqr");
    Ormqr* ormqr = find<Ormqr>("ormqr");
    Geqrt* geqrt = find<Geqrt>("geqrt");
    Geqrt3* geqrt3 = find<Geqrt3>("geqrt3");
    Gemqrt* gemqrt = find<Gemqrt>("gemqrt");
    Tpqrt* tpqrt = find<Tpqrt>("tpqrt");
    Tpmqrt* tpmqrt = find<Tpmqrt>("tpmqrt");
    Latsqr* latsqr = find<Latsqr>("latsqr");
    Lamtsqr* lamtsqr = find<Lamtsqr>("lamtsqr");
    Orgtsqr* orgtsqr = find<Orgtsqr>("orgtsqr");
    Orgtsqr* orgtsqr_row = find<Orgtsqr>("orgtsqr_row");
    OrhrCol* orhr_col = find<OrhrCol>("orhr_col");
    Geqr* geqr = find<Geqr>("geqr");
    Gemqr* gemqr = find<Gemqr>("gemqr");
    Gels* gels = find<Gels>("gels");
    Gels* gelst = find<Gels>("gelst");
    Gels* getsls = find<Gels>("getsls");
    Geqp3* geqp3 = find<Geqp3>("geqp3");
    /// LAPACK has it from 3.12 on.
    Geqp3rk* geqp3rk = owner_ == Owner::Quoin ? find<Geqp3rk>("geqp3rk") : nullptr;
    Gelsy* gelsy = find<Gelsy>("gelsy");
    Geqrf* tzrzf = find<Geqrf>("tzrzf");
    Ormrz* ormrz = find<Ormrz>("ormrz");
    Geqrf* gelqf = find<Geqrf>("gelqf");
    Geqr2* gelq2 = find<Geqr2>("gelq2");
    Orgqr* orglq = find<Orgqr>("orglq");
    Ormqr* ormlq = find<Ormqr>("ormlq");
    Copy* copy = find<Copy>("copy");
};

/// The library under test, which this program is linked with in front of its LAPACK.
inline void* quoin_library() { return dlopen(QUOIN_LAPACK_LIBRARY_FILE, RTLD_NOW | RTLD_NOLOAD); }
/// The LAPACK that it passes small calls on to.
inline void* system_library() { return dlopen(QUOIN_SYSTEM_LAPACK_FILE, RTLD_NOW | RTLD_LOCAL); }

/// The last call of xerbla in this thread; this program's xerbla_ and xerbla_64_ return to their caller.
struct Complaint {
    std::string routine;
    long long argument = 0;
    bool operator==(const Complaint&) const = default;
};
Complaint take_complaint();

}  // namespace quoin::test::fortran

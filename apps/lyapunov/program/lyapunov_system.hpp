#pragma once

#include <memory>
#include <optional>
#include <string>

#include "quoin/apps/lyapunov.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "quoin/cuda.hpp"
#endif

namespace CLI {
class App;
}

namespace quoin::cli {

enum class System { Lorenz63, Henon, Lorenz96, KuramotoSivashinsky, MackeyGlass, Fput, Particles };
/// "lorenz63", "henon", "lorenz96", "kuramoto-sivashinsky", "mackey-glass", "fput", "particles".
const char* to_string(System system);
inline constexpr System systems[] = {System::Lorenz63,    System::Henon, System::Lorenz96, System::KuramotoSivashinsky,
                                     System::MackeyGlass, System::Fput,  System::Particles};

/// Times and steps between two QRs that give the leading exponents in seconds or minutes.
LyapunovOptions default_options(System system);

/// The options of `quoin lyapunov` that say which system; those not given are the library's defaults.
class SystemArguments {
public:
    /// Adds SYSTEM and the parameters of every system, each under a heading that names those it is for.
    void add_to(CLI::App& command);
    /// Throws CLI::ValidationError for a parameter that the system does not have.
    void check(const CLI::App& command) const;

    System system() const { return system_; }
    /// On the host, the vectors in T. Throws InvalidArgument.
    template <class T>
    std::unique_ptr<TangentMap<T>> make(Context<Host>& ctx) const;
    /// Returns why this system cannot be evolved on a GPU; empty if it can.
    std::string refusal_of_gpu() const;
#ifdef QUOIN_HAVE_CUDA
    /// Makes the system on a GPU. Throws InvalidArgument, also if there is a refusal.
    template <class T>
    std::unique_ptr<TangentMap<T, Cuda>> make(Context<Cuda>& ctx) const;
#endif

private:
    /// f(the parameters of the system).
    template <class F>
    auto with_parameters(F&& f) const;

    System system_ = System::Lorenz63;
    std::optional<double> sigma_, rho_, beta_, a_, b_, forcing_, length_, energy_, density_, temperature_, kappa_,
        cutoff_, step_, power_, tau_;
    std::optional<Index> size_, modes_;
    std::optional<int> dimensions_;
    Potential potential_ = Particles().potential;
    bool periodic_ = false;
};

}  // namespace quoin::cli

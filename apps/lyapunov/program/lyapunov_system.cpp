#include "lyapunov_system.hpp"

#include <CLI/CLI.hpp>
#include <span>

#include "arguments.hpp"

namespace quoin::cli {

namespace {

const std::string heading = "Parameters of ";

template <class T>
void set(T& target, const std::optional<T>& value) {
    if (value) target = *value;
}

}  // namespace

const char* to_string(System system) {
    constexpr const char* names[] = {"lorenz63",     "henon", "lorenz96", "kuramoto-sivashinsky",
                                     "mackey-glass", "fput",  "particles"};
    return names[static_cast<int>(system)];
}

LyapunovOptions default_options(System system) {
    LyapunovOptions options;
    const auto times = [&](double time, double transient, double alignment, Index steps_per_qr) {
        options.time = time, options.transient = transient, options.alignment = alignment;
        options.steps_per_qr = steps_per_qr;
    };
    switch (system) {
        case System::Lorenz63: times(10000, 50, 50, 10); break;
        case System::Henon: times(1e6, 1000, 1000, 10); break;
        case System::Lorenz96: times(1000, 50, 50, 5); break;
        case System::KuramotoSivashinsky: times(10000, 200, 2000, 5), options.exponents = 12; break;
        case System::MackeyGlass: times(20000, 2000, 2000, 50), options.exponents = 10; break;
        case System::Fput: times(10000, 200, 200, 10); break;
        case System::Particles: times(40, 10, 10, 10); break;
    }
    return options;
}

void SystemArguments::add_to(CLI::App& command) {
    add_choice(command, "SYSTEM", system_, std::span<const System>(systems),
               "System: lorenz63, henon, lorenz96, kuramoto-sivashinsky, mackey-glass, fput or particles");
    const auto add = [&command](const char* name, auto& value, const char* systems, const char* description) {
        return command.add_option(name, value, description)->group(heading + systems);
    };
    add("--sigma", sigma_, "lorenz63", "σ of ẋ = σ(y − x) (10)");
    add("--rho", rho_, "lorenz63", "ρ of ẏ = x(ρ − z) − y (28)");
    add("--beta", beta_, "lorenz63, fput", "β of ż = xy − βz (8/3); of V = Δ²/2 + βΔ⁴/4 (1)");
    add("--a", a_, "henon, mackey-glass", "a of x' = 1 − ax² + y (1.4); of ẋ = ay/(1 + yⁿ) − bx, y = x(t − τ) (0.2)");
    add("--b", b_, "henon, mackey-glass", "b of y' = bx (0.3); of mackey-glass (0.1)");
    add("--power", power_, "mackey-glass", "n of mackey-glass (10)");
    add("--tau", tau_, "mackey-glass", "τ, the delay (17)");
    add("--size", size_, "lorenz96, mackey-glass, fput, particles",
        "Variables (40), intervals of the delay (100), masses (32), particles (108)")
        ->type_name("N");
    add("--forcing", forcing_, "lorenz96", "F of ẋ_i = (x_{i+1} − x_{i−2}) x_{i−1} − x_i + F (8)");
    add("--length", length_, "kuramoto-sivashinsky", "L, the period of u_t = −u_xx − u_xxxx − u u_x (22)");
    add("--modes", modes_, "kuramoto-sivashinsky", "Fourier modes (wavenumbers to 4.5)")->type_name("N");
    add("--energy", energy_, "fput", "Energy of each mass (1)");
    command.add_flag("--periodic", periodic_, "Close the chain to a ring; otherwise it lies between two walls")
        ->group(heading + "fput");
    add("--dimensions", dimensions_, "particles", "Dimensions of space, 2 or 3 (3)")->type_name("D");
    add_choice(command, "--potential", potential_,
               {Potential::LennardJones, Potential::Wca, Potential::Yukawa, Potential::Soft},
               "Potential: lennard-jones, wca (Lennard-Jones to its minimum), yukawa or soft (100(1 − r²)⁴) (wca)")
        ->group(heading + "particles");
    add("--density", density_, "particles", "Density N/Lᵈ (0.6)");
    add("--temperature", temperature_, "particles",
        "Temperature of the first velocities; the particles start on a lattice (1)");
    add("--kappa", kappa_, "particles", "κ of e^{−κr}/r (1)");
    add("--cutoff", cutoff_, "particles",
        "Distance beyond which particles do not interact (lennard-jones 2.5, yukawa 6/κ)");
    add("--step", step_, "lorenz63, lorenz96, kuramoto-sivashinsky, fput, particles",
        "Time of a step (0.01, 0.02, 0.1, 0.05, 0.002)");
}

void SystemArguments::check(const CLI::App& command) const {
    const std::string name = to_string(system_);
    for (const CLI::Option* option : command.get_options()) {
        const std::string& group = option->get_group();
        if (option->count() == 0 || !group.starts_with(heading)) continue;
        const std::string systems = group.substr(heading.size());
        if ((", " + systems + ",").find(" " + name + ",") == std::string::npos) {
            throw CLI::ValidationError(option->get_name(), "is for " + systems + ", and the system is " + name);
        }
    }
}

template <class F>
auto SystemArguments::with_parameters(F&& f) const {
    switch (system_) {
        case System::Lorenz63: {
            Lorenz63 s;
            set(s.sigma, sigma_), set(s.rho, rho_), set(s.beta, beta_), set(s.step, step_);
            return f(s);
        }
        case System::Henon: {
            Henon s;
            set(s.a, a_), set(s.b, b_);
            return f(s);
        }
        case System::Lorenz96: {
            Lorenz96 s;
            set(s.size, size_), set(s.forcing, forcing_), set(s.step, step_);
            return f(s);
        }
        case System::KuramotoSivashinsky: {
            KuramotoSivashinsky s;
            set(s.length, length_), set(s.modes, modes_), set(s.step, step_);
            return f(s);
        }
        case System::MackeyGlass: {
            MackeyGlass s;
            set(s.a, a_), set(s.b, b_), set(s.power, power_), set(s.tau, tau_), set(s.intervals, size_);
            return f(s);
        }
        case System::Fput: {
            FputBeta s;
            set(s.size, size_), set(s.beta, beta_), set(s.energy, energy_), set(s.step, step_);
            s.periodic = periodic_;
            return f(s);
        }
        case System::Particles: {
            Particles s;
            set(s.count, size_), set(s.dimensions, dimensions_), s.potential = potential_, set(s.density, density_);
            set(s.temperature, temperature_), set(s.kappa, kappa_), set(s.cutoff, cutoff_), set(s.step, step_);
            return f(s);
        }
    }
    throw InvalidArgument("no such system");
}

namespace {

template <class Parameters>
constexpr bool has_gpu_code = !std::is_same_v<Parameters, MackeyGlass>;

}  // namespace

template <class T>
std::unique_ptr<TangentMap<T>> SystemArguments::make(Context<Host>&) const {
    auto system = with_parameters([](const auto& s) { return tangent_map(s); });
    if constexpr (std::is_same_v<T, float>) {
        return with_f32_vectors(std::move(system));
    } else {
        return system;
    }
}
template std::unique_ptr<TangentMap<float>> SystemArguments::make(Context<Host>&) const;
template std::unique_ptr<TangentMap<double>> SystemArguments::make(Context<Host>&) const;

std::string SystemArguments::refusal_of_gpu() const {
    const bool can = with_parameters([]<class Parameters>(const Parameters&) { return has_gpu_code<Parameters>; });
    return can ? "" : std::string(to_string(system_)) + " has no code for a GPU; all other systems have";
}

#ifdef QUOIN_HAVE_CUDA
template <class T>
std::unique_ptr<TangentMap<T, Cuda>> SystemArguments::make(Context<Cuda>& ctx) const {
    return with_parameters([&]<class Parameters>(const Parameters& s) -> std::unique_ptr<TangentMap<T, Cuda>> {
        if constexpr (has_gpu_code<Parameters>) {
            return tangent_map<T>(ctx, s);
        } else {
            throw InvalidArgument(refusal_of_gpu());
        }
    });
}
template std::unique_ptr<TangentMap<float, Cuda>> SystemArguments::make(Context<Cuda>&) const;
template std::unique_ptr<TangentMap<double, Cuda>> SystemArguments::make(Context<Cuda>&) const;
#endif

}  // namespace quoin::cli

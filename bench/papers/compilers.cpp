// Figure 5 and Table 1 of Brandes, Arnold, Soddemann and Reith (2012): the same loops of modified Gram-Schmidt by every
// compiler that this machine has.

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gram_schmidt_loops.hpp"
#include "interrupt.hpp"
#include "papers/gram_schmidt.hpp"
#include "papers/gram_schmidt_baselines.hpp"
#include "random_matrix.hpp"
#include "results.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

namespace {

struct Compiler {
    const char *command, *flags;
    bool fortran;
};
constexpr Compiler compilers[] = {{"g++", "-O3", false},        {"g++", "-Ofast", false},  {"clang++", "-O3", false},
                                  {"clang++", "-Ofast", false}, {"gfortran", "-O3", true}, {"gfortran", "-Ofast", true},
                                  {"icpx", "-fast", false},     {"ifx", "-fast", true}};
/// The paper's width, which is near the best at every order.
constexpr Index block_columns = 32;

/// A folder for sources and libraries, which disappears with the object.
class ScratchFolder {
public:
    ScratchFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "quoin-loops-XXXXXX").string();
        if (!mkdtemp(name.data())) throw UnwritableFile(name, "no folder for the compilers");
        path_ = name;
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

template <class T>
using Loops = void (*)(T* q, T* r, long m, long n, long b, int threads);

/// Compiles the loops for T. Returns null if the machine lacks the compiler or its libraries. The library stays loaded,
/// because threads of its OpenMP may still run.
template <class T>
Loops<T> compile(const Compiler& compiler, const std::filesystem::path& folder) {
    static int count = 0;
    const std::string source = (folder / (compiler.fortran ? "loops.f90" : "loops.cc")).string(),
                      library = (folder / fmt::format("loops{}.so", count++)).string();
    std::ofstream(source) << (compiler.fortran ? gram_schmidt_in_fortran : gram_schmidt_in_cpp);
    const std::string command = fmt::format(
        "{} {} -march=native -fopenmp -fPIC -shared {} '{}' -o '{}' > '{}/log' 2>&1", compiler.command, compiler.flags,
        compiler.fortran ? fmt::format("-cpp -DBYTES={}", sizeof(T))
                         : fmt::format("-DREAL={}", sizeof(T) == 4 ? "float" : "double"),
        source, library, folder.string());
    if (std::system(command.c_str()) != 0) return nullptr;
    void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    return loaded ? reinterpret_cast<Loops<T>>(dlsym(loaded, "gram_schmidt")) : nullptr;
}

/// Returns the first line that `command --version` prints.
std::string version_of(const char* command) {
    std::string line;
    if (std::FILE* const pipe = popen(fmt::format("{} --version 2>/dev/null", command).c_str(), "r")) {
        for (int c = std::fgetc(pipe); c != EOF && c != '\n'; c = std::fgetc(pipe)) line += static_cast<char>(c);
        pclose(pipe);
    }
    return line;
}

class CompilersBench {
public:
    explicit CompilersBench(const BenchArguments& arguments)
        : arguments_(arguments), ctx_(make_context(arguments.common)), guard_(ctx_), results_(arguments) {}

    void run() {
        results_.describe(describe_host(ctx_));
        results_.say("Modified Gram-Schmidt by compilers, {}; GFLOP/s = 2mn²/T\n", describe_host(ctx_));
        warn_about_host();
        arguments_.for_each_dtype({ScalarKind::F32}, [&]<class T>(T) {
            for (const Shape shape : arguments_.shapes_or(squares(std::vector<Index>{1024, 2048}))) compare<T>(shape);
        });
    }

private:
    template <class T>
    void compare(Shape shape) {
        const Matrix<T> A = normal_matrix<T>(shape.rows, shape.cols);
        Matrix<T> Q(shape.rows, shape.cols), R(shape.cols, shape.cols);
        for (const Compiler& compiler : compilers) {
            throw_if_interrupted();
            const std::string version = version_of(compiler.command),
                              name = fmt::format("{} {}", compiler.command, compiler.flags);
            const Loops<T> loops = version.empty() ? nullptr : compile<T>(compiler, scratch_.path());
            if (!loops) {
                results_.say("{}: {}\n", name, version.empty() ? "not installed" : "does not compile with OpenMP");
                continue;
            }
            for (const Index b : {shape.cols, std::min(block_columns, shape.cols)})
                for (const int threads : {1, ctx_.threads()})
                    measure<T>(A, Q, name, version, b == shape.cols ? 0 : b, threads,
                               [&] { loops(Q.data(), R.data(), shape.rows, shape.cols, b, threads); });
        }
        // by the BLAS's own threads
        measure<T>(A, Q, "blas2", build_info().blas, 0, 1, [&] { bench::mgs_blas2<T>(Q.view(), R.view()); });
    }

    template <class T, class Work>
    void measure(const Matrix<T>& A, Matrix<T>& Q, const std::string& code, const std::string& version, Index width,
                 int threads, Work&& work) {
        const Shape shape{A.rows(), A.cols()};
        const double seconds = median_of(
            [&] {
                throw_if_interrupted();
                copy_in_parallel(Q.data(), A.data(), sizeof(T) * static_cast<std::size_t>(shape.rows * shape.cols));
                const Stopwatch watch;
                work();
                return watch.seconds();
            },
            arguments_.repeat);
        JsonLine line = case_line(shape, scalar_kind<T>);
        line.add("code", code).add("compiler", version).add("threads", threads).add("panel_width", width);
        line.add("seconds", seconds).add("gflops", gram_schmidt_gflops(shape, seconds));
        results_.add(line.add("orthogonality", orthogonality<T>(ctx_, std::as_const(Q).view())));
    }

    const BenchArguments& arguments_;
    Context<Host> ctx_;
    InterruptGuard guard_;
    Results results_;
    ScratchFolder scratch_;
};

}  // namespace

void bench_gram_schmidt_compilers(const BenchArguments& arguments) { CompilersBench(arguments).run(); }

}  // namespace quoin::cli

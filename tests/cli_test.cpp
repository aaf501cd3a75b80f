// The program `quoin`, run as a user runs it.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>

#include "checks.hpp"
#include "cli_run.hpp"
#include "gallery.hpp"

namespace quoin::test {
namespace {

/// Shapes of thin Q and R on disk, exact zeros below R's diagonal, and the law for both.
template <class T>
void expect_factors(const Matrix<T>& A, const std::string& directory) {
    const Index k = std::min(A.rows(), A.cols());
    const Matrix<T> Q = load<T>(directory + "/Q.npy"), R = load<T>(directory + "/R.npy");
    ASSERT_EQ(Q.rows(), A.rows());
    ASSERT_EQ(Q.cols(), k);
    ASSERT_EQ(R.rows(), k);
    ASSERT_EQ(R.cols(), A.cols());
    EXPECT_LE(orthogonality_error<T>(Q.view(), k), law);
    EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), law);
    EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
}

// ---- Help and the command line --------------------------------------------------------------------------------------

TEST_F(Cli, EveryHelpTeaches) {
    const std::string program = quoin_run("--help").out;
    for (const std::string command :
         {"factor", "lstsq", "svd", "rpca", "lyapunov", "plan", "info", "tune", "bench", "demo"}) {
        EXPECT_NE(program.find("\n  " + command + " "), std::string::npos) << command;
        const Outcome help = quoin_run(command + " --help");
        EXPECT_EQ(help.exit_code, 0);
        EXPECT_EQ(help.err, "");
        for (const std::string& expected :
             {"Example:  quoin " + command + " ", std::string("--threads"), std::string("--json")})
            EXPECT_NE(help.out.find(expected), std::string::npos) << command << " lacks " << expected;
        for (const std::string& line : lines_of(help.out)) EXPECT_LE(line.size(), 140u) << line;
    }
}

TEST_F(Cli, UsageNamesArgumentsAsTheyAreTyped) {
    EXPECT_NE(quoin_run("plan --help").out.find("Usage: quoin plan [OPTIONS] SHAPE...\n"), std::string::npos);
    EXPECT_NE(quoin_run("bench --help").out.find("Usage: quoin bench [OPTIONS] [SHAPE...]"), std::string::npos);
    EXPECT_NE(quoin_run("bench paper storage table1 --help").out.find("Usage: quoin bench paper storage table1"),
              std::string::npos);
}

TEST_F(Cli, HelpOfBenchFitsOnAScreen) {
    std::vector<std::string> commands = {"", "files ", "batches ", "paper ", "rpca "};
    for (const char* paper :
         {"caqr-report", "caqr table1", "caqr table2", "storage table1", "storage products", "gram-schmidt figure2",
          "gram-schmidt figure10", "gram-schmidt", "out-of-core", "out-of-core table3", "out-of-core tensor-cores"})
        commands.push_back("paper " + std::string(paper) + " ");
    for (const std::string& command : commands) {
        const Outcome help = quoin_run("bench " + command + "--help");
        EXPECT_EQ(help.exit_code, 0) << command << help.err;
        EXPECT_LE(lines_of(help.out).size(), 40u) << help.out;
    }
}

/// Returns the options in a command's help, in order, without the common ones of every program.
std::string options_of(const std::string& command) {
    std::string help = quoin_run(command + "--help").out, options;
    help.resize(std::min(help.size(), help.find("\nExample")));
    const std::regex option("\n  (?:-\\w, ?)?--([a-z-]+)");
    for (auto it = std::sregex_iterator(help.begin(), help.end(), option); it != std::sregex_iterator(); ++it)
        if ((*it)[1] != "version" && (*it)[1] != "help") options += (*it)[1].str() + " ";
    return options;
}

TEST_F(Cli, EveryStudyHasTheOptionsThatItHeeds) {
    const std::pair<std::string, std::string> studies[] = {
        {"", "dtype op device against energy trace csv"},
        {"files . ", "dtype device memory gpu-memory"},
        {"paper caqr table1 ", "dtype device against energy trace csv"},
        {"paper storage table1 ", "dtype device against trace csv"},
        {"paper storage products ", "dtype device against trace csv"},
        {"paper gram-schmidt figure2 ", "dtype csv"},
        {"paper gram-schmidt figure10 ", "dtype device csv"},
        {"paper out-of-core tensor-cores ", "csv"}};
    for (const auto& [study, expected] : studies) {
        EXPECT_EQ(options_of("bench " + study), expected + " repeat threads json ") << study;
    }
    const std::pair<std::string, std::string> without_repeat[] = {
        {"paper caqr table2 ", "device trace csv iterations"},
        {"paper gram-schmidt orthogonality ", "dtype csv"},
        {"paper gram-schmidt figure6 ", "dtype csv"},
        {"paper storage figure1 ", "dtype trace csv"},
        {"paper out-of-core table3 ", "dtype gpu-memory routes block trace csv"},
        {"paper out-of-core stages ", "dtype gpu-memory routes block trace csv"}};
    for (const auto& [study, expected] : without_repeat)
        EXPECT_EQ(options_of("bench " + study), expected + " threads json ") << study;
}

TEST_F(Cli, EveryCommandHasTheOptionsThatItHeeds) {
    const std::string common = "threads json ",
                      reading = "delimiter decimal header no-header skip comment columns missing ",
                      factoring = "method panel-width leaf-rows fan-in arithmetic reorthogonalize panel-method ";
    const std::pair<std::string, std::string> commands[] = {
        {"factor",
         "out r-only verify memory second-pass restart gpu-memory gpus pivot rank tol tol-frobenius device trace " +
             common + reading + factoring + "compact-wy keep-s full-t "},
        {"lstsq", "target out rcond refuse-deficient mixed-precision memory device trace " + common +
                      "stats intercept weights ridge " + reading + factoring},
        {"svd", "out rank values-only tol memory device trace " + common + reading + factoring},
        {"plan", "dtype q kernels memory device gpu-memory ranks ranks-per-machine latency bandwidth grid block " +
                     common + factoring + "compact-wy keep-s full-t "},
        {"demo", "out device " + common + reading + factoring},
        {"info", common},
        {"run", "report "},
        {"tune", "thorough show reset device " + common},
        {"rpca",
         "out method noise route lambda mu rho tol iterations max-rank nan-is-missing memory device trace " + common +
             reading +
             "start frames scale color gray dtype window carry masks online forget threshold restart npy ground-truth "
             "synthetic scene-with write-scene "},
        {"lyapunov",
         "exponents time until transient alignment every seed checkpoint checkpoint-every out plot covariant split "
         "window "
         "dtype device " +
             common +
             "sigma rho beta a b power tau size forcing length modes energy periodic dimensions potential density "
             "temperature "
             "kappa cutoff step series delays lag interval theiler neighbours evolve horizon " +
             reading + factoring}};
    for (const auto& [command, expected] : commands) EXPECT_EQ(options_of(command + " "), expected) << command;
}

TEST_F(Cli, CommandsThatAreProgramsOfTheirOwnSayWhereTheyAreMissing) {
    fs::copy_file(fs::read_symlink("/proc/self/exe").parent_path() / "quoin", "quoin");
    for (const std::string name : {"rpca", "lyapunov", "bench"}) {
        const int status = std::system(("./quoin " + name + " --help > ../out 2> ../err").c_str());
        expect_error({WEXITSTATUS(status), contents("../out"), contents("../err")},
                     exit_code_of(ErrorCode::UnreadableFile), {"/quoin-" + name, "`quoin " + name + "`"});
    }
}

TEST_F(Cli, RunPreloadsTheDropIn) {
    const Outcome help = quoin_run("run --help");
    for (const char* part : {"Usage: quoin run [OPTIONS] PROGRAM...\n", "Example:  quoin run python3 script.py"})
        EXPECT_NE(help.out.find(part), std::string::npos) << help.out;
    expect_error(quoin_run("run"), 64, {"PROGRAM"});
    expect_error(quoin_run("run --reports true"), 64, {"did you mean '--report'?"});
    if (!fs::exists(fs::read_symlink("/proc/self/exe").parent_path() / "../lib/libquoin_lapack.so"))
        GTEST_SKIP() << "built without the drop-in";
#ifdef QUOIN_SANITIZED
    GTEST_SKIP() << "no other program has the sanitizer's runtime";
#endif
    // the words, the environment and the ignored signals of the shell are its own
    const std::string show = "echo $LD_PRELOAD ${QUOIN_REPORT-none} ${GOMP_SPINCOUNT-none} $@; kill -XFSZ $$";
    const Outcome shell = Process("/usr/bin/env", {"-u", "GOMP_SPINCOUNT", "-u", "OMP_WAIT_POLICY", "-u", "LD_PRELOAD",
                                                   Process::quoin_path(), "run", "sh", "-c", show, "sh", "--report"})
                              .wait();
    EXPECT_TRUE(std::regex_match(shell.out, std::regex("/\\S*/libquoin_lapack.so none none --report\n"))) << shell.out;
    EXPECT_EQ(shell.exit_code, 128 + SIGXFSZ);
    const std::string report = quoin_run("run --report -- " + Process::quoin_path() + " info").err;
    EXPECT_TRUE(std::regex_match(report, std::regex("quoin: calls of LAPACK in process \\d+: none\n"))) << report;
    expect_error(quoin_run("run no-such-program"), exit_code_of(ErrorCode::UnreadableFile),
                 {"no-such-program", "No such file"});
}

TEST_F(Cli, LoadsFewLibraries) {
    const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "quoin";
    ASSERT_EQ(std::system(fmt::format("ldd {} > ../libraries", program.string()).c_str()), 0);
    const std::vector<std::string> libraries = lines_of(contents("../libraries"));
    EXPECT_LE(libraries.size(), 20u) << contents("../libraries");
}

TEST_F(Cli, PlansNameTheKernels) {
    const Outcome plain = quoin_run("plan 3000x40 --method cholesky-qr2"),
                  named = quoin_run("plan 3000x40 --method cholesky-qr2 --kernels");
    ASSERT_EQ(named.exit_code, 0) << named.err;
    EXPECT_EQ(named.out.find(plain.out), 0u) << "the plan comes first";
    const std::vector<std::string> lines = lines_of(named.out.substr(plain.out.size()));
    ASSERT_EQ(lines.size(), 3u) << named.out;
    EXPECT_EQ(lines[0].find("  AᵀA of 40 columns: "), 0u) << lines[0];
    EXPECT_NE(lines[0].find("(host/tall.cpp)"), std::string::npos) << lines[0];
    const std::string plan = "plan 3000x40 --method cholesky-qr2 --json";
    EXPECT_EQ(quoin_run(plan).out.find("kernels"), std::string::npos);
    const std::string json = quoin_run(plan + " --kernels").out;
    EXPECT_NE(json.find("\"kernels\": [{\"step\": \"AᵀA of 40 columns\", \"kernel\": \""), std::string::npos) << json;
    for (const std::string other : {"--ranks 2", "--memory 1MiB", "--gpu-memory 1GiB"})
        expect_error(quoin_run("plan 3000x40 --kernels " + other), usage_error,
                     {other.substr(0, other.find(' ')), "--kernels"});
}

TEST_F(Cli, PlansForRanks) {
    const Outcome plans = quoin_run("plan 1000000x20 --ranks 5 --latency 1000s --bandwidth 2B/s --threads 1 --json");
    ASSERT_EQ(plans.exit_code, 0) << plans.err;
    const std::vector<std::string> lines = lines_of(plans.out);
    ASSERT_EQ(lines.size(), 3u);
    for (const std::string& line : lines) {
        EXPECT_EQ(json_number(line, "rows_of_a_rank"), 200000);
        EXPECT_EQ(json_value(line, "taken"), json_value(line, "method") == "\"cholesky-qr2\"" ? "true" : "false");
        const double sent = 1000 * json_number(line, "messages") + json_number(line, "bytes_sent") / 2;
        EXPECT_NEAR(json_number(line, "seconds"), sent, 1 + 1e-5 * sent);
        EXPECT_GE(json_number(line, "memory_bytes"), 2 * 8 * 200000 * 20);
    }
    const Outcome table = quoin_run("plan 1000000x20 --ranks 5 --threads 1 --method tsqr");
    EXPECT_EQ(lines_of(table.out).size(), 5u) << table.out;
    EXPECT_NE(lines_of(table.out)[2].find("<- taken"), std::string::npos) << table.out;
    EXPECT_EQ(quoin_run("plan 3000x20 --ranks 3 --ranks-per-machine 3 --threads 1").exit_code, 0);
    expect_error(quoin_run("plan 100x20 --ranks 2 --ranks-per-machine 0"), usage_error, {"--ranks-per-machine"});
    EXPECT_NE(quoin_run("plan 100x20 --ranks 6").err.find("fewer than the 20 columns"), std::string::npos);
    expect_error(quoin_run("plan 100x20 --ranks 0"), usage_error, {"--ranks", "at least 1"});
    expect_error(quoin_run("plan 100x20 --latency 2us"), usage_error, {"--latency", "--ranks"});
    expect_error(quoin_run("plan 100x20 --bandwidth 2GB/s"), usage_error, {"--bandwidth", "--ranks"});
}

TEST_F(Cli, PlansForAGridOfRanks) {
    // a square matrix has no plan for rows over ranks
    const Outcome square = quoin_run("plan 600x600 --ranks 6 --grid 2x3 --block 32 --threads 1 --json");
    ASSERT_EQ(square.exit_code, 0) << square.err;
    ASSERT_EQ(lines_of(square.out).size(), 1u) << square.out;
    EXPECT_EQ(json_value(square.out, "method"), "\"block-cyclic 2x3\"");
    EXPECT_EQ(json_number(square.out, "rows_of_a_rank"), 312);
    const double sent = 2e-6 * json_number(square.out, "messages") + json_number(square.out, "bytes_sent") / 25e9;
    const double computing = json_number(square.out, "flops") / json_number(square.out, "flops_per_second");
    EXPECT_NEAR(json_number(square.out, "seconds"), sent + computing, 1e-4 * (sent + computing));
    const Outcome without_q = quoin_run("plan 600x600 --ranks 6 --grid 2x3 --block 32 --threads 1 --q none --json");
    EXPECT_LT(json_number(without_q.out, "messages"), json_number(square.out, "messages"));
    const Outcome tall = quoin_run("plan 100000x20 --ranks 4 --grid 4x1 --threads 1");
    EXPECT_EQ(lines_of(tall.out).size(), 6u) << tall.out;
    expect_error(quoin_run("plan 600x600 --ranks 6 --grid 2x2"), usage_error, {"--grid", "2 x 2", "6 ranks"});
    expect_error(quoin_run("plan 600x600 --ranks 6 --grid 0x6"), usage_error, {"--grid", "at least 1"});
    expect_error(quoin_run("plan 600x600 --ranks 6 --grid 6"), usage_error, {"--grid", "'6'"});
    expect_error(quoin_run("plan 600x600 --ranks 6 --grid 2x3 --block 0"), usage_error, {"--block", "at least 1"});
    expect_error(quoin_run("plan 600x600 --grid 2x3"), usage_error, {"--grid", "--ranks"});
    expect_error(quoin_run("plan 600x600 --ranks 6 --block 32"), usage_error, {"--block", "--grid"});
}

TEST_F(Cli, PlansForAMatrixBeyondAGpusMemory) {
    EXPECT_NE(quoin_run("plan 100x100 --gpu-memory 1GiB").err.find("--device cuda"), std::string::npos);
    const Outcome plans = quoin_run("plan 131072x131072 --dtype f32 --device cuda --gpu-memory 16GiB --json");
    if (plans.exit_code != 0) {
        EXPECT_NE(plans.err.find("built without CUDA"), std::string::npos) << plans.err;
        return;
    }
    const std::vector<std::string> lines = lines_of(plans.out);
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(json_value(lines[2], "method"), "\"blocking\"");
    // section 3.2 of Zhang and Wu (2021): blocks of 8192 columns
    const std::string by_paper =
        "plan 131072x131072 --dtype f32 --device cuda --gpu-memory 16GiB --panel-width 8192 "
        "--arithmetic fp16";
    const std::vector<std::string> paper = lines_of(quoin_run(by_paper + " --json").out);
    ASSERT_EQ(paper.size(), 2u) << "householder has no fp16";
    EXPECT_NEAR(json_number(paper[0], "paper_bytes_to_gpu"), 670 * 0x1p30, 0x1p29);
    EXPECT_NEAR(json_number(paper[0], "paper_bytes_from_gpu"), 224 * 0x1p30, 0x1p29);
    EXPECT_NEAR(json_number(paper[1], "paper_bytes_to_gpu"), 1182 * 0x1p30, 0x1p29);
    EXPECT_NEAR(json_number(paper[1], "paper_bytes_from_gpu"), 578 * 0x1p30, 0x1p29);
    EXPECT_NE(quoin_run(by_paper).out.find("Zhang and Wu (2021) count"), std::string::npos);
    for (const std::string& line : lines) {
        const double moved = json_number(line, "bytes_to_gpu") + json_number(line, "bytes_from_gpu");
        EXPECT_GT(moved, 2.0 * 131072 * 131072 * 4);
    }
    EXPECT_NE(quoin_run("plan 1000x1000 --device cuda --gpu-memory 1MiB").err.find("at least"), std::string::npos);
    // a tall one passes by blocks of rows, as `factor` does it, where not one column fits
    const std::string tall = "plan 500000000x32 --dtype f32 --device cuda --gpu-memory 4GiB --memory 1GiB ";
    const double bytes = 4.0 * 500000000 * 32;
    for (const bool with_q : {true, false}) {
        const Outcome passes = quoin_run(tall + (with_q ? "--json" : "--json --q none"));
        ASSERT_EQ(passes.exit_code, 0) << passes.err;
        EXPECT_EQ(lines_of(passes.out).size(), 1u) << "the others do not fit";
        EXPECT_EQ(json_value(passes.out, "method"), "\"streaming-tsqr\"");
        const double in = (with_q ? 2 : 1) * bytes, out = (with_q ? bytes : 0) + 4.0 * 32 * 32;
        EXPECT_NEAR(json_number(passes.out, "bytes_to_gpu"), in, 1e-5 * in);
        EXPECT_NEAR(json_number(passes.out, "bytes_from_gpu"), out, 1e-5 * out);
        EXPECT_EQ(json_number(passes.out, "blocks"), std::ceil(500000000 / json_number(passes.out, "block")));
    }
    // in the host's memory there are other ways to pass it, if they have room on the GPU
    EXPECT_EQ(quoin_run(tall).out.find("householder"), std::string::npos);
    const std::string in_memory = "plan 500000000x32 --dtype f32 --device cuda --gpu-memory 4GiB";
    EXPECT_NE(quoin_run(in_memory).out.find("householder: memory_bytes"), std::string::npos);
    // from disk by way of the host's memory, where A and R are twice 64 GiB
    const std::string from_disk = "plan 131072x131072 --dtype f32 --device cuda --gpu-memory 16GiB --json --memory ";
    const Outcome plan = quoin_run(from_disk + "8GiB");
    ASSERT_EQ(plan.exit_code, 0) << plan.err;
    EXPECT_EQ(json_value(plan.out, "method"), "\"left-looking\"");
    EXPECT_EQ(json_value(plan.out, "device"), "\"cuda\"");
    EXPECT_LE(json_number(plan.out, "memory_bytes"), 8.0 * (1 << 30));
    EXPECT_GT(json_number(plan.out, "bytes_read"), 2.0 * 131072 * 131072 * 4);
    EXPECT_EQ(lines_of(quoin_run(from_disk + "200GiB").out).size(), 3u) << "they fit";
    expect_error(quoin_run(from_disk + "100MiB"), exit_code_of(ErrorCode::OutOfMemory), {"--memory"});
}

TEST_F(Cli, Version) {
    const Outcome outcome = quoin_run("--version");
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out, fmt::format("quoin {}\n", version()));
}

TEST_F(Cli, NoCommandPrintsHelp) {
    const Outcome outcome = quoin_run(std::vector<std::string>{});
    EXPECT_EQ(outcome.exit_code, usage_error);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("factor"), std::string::npos);
}

TEST_F(Cli, MalformedCommandLines) {
    save("A.npy", random_normal<double>(5, 3));
    const std::pair<std::string, std::vector<std::string>> cases[] = {
        {"nonsense", {"nonsense"}},
        {"factor", {"A"}},
        {"factor A.npy", {"--out"}},
        {"factor A.npy --out d --frobnicate", {"--frobnicate"}},
        {"factor A.npy --out d --method gauss", {"--method", "gauss", "tsqr"}},
        {"factor A.npy --out d --fan-in oak", {"--fan-in", "oak"}},
        {"factor A.npy --out d --arithmetic f16", {"--arithmetic", "f16", "corrected"}},
        {"factor A.npy --out d --device tpu", {"--device", "tpu", "host, cuda, auto"}},
        {"factor A.npy --out", {"--out needs a value"}},
        {"factor A.npy --out d --out e", {"--out has more values than it takes"}},
        {"factor A.npy --out d --threads 0", {"--threads: '0' is not a number from 1 to 4096"}},
        {"lstsq A.npy A.npy --out x --rcond nan", {"--rcond: 'nan' is not a number from 0 to 1"}},
        {"rpca A.npy --out d --lambda abc", {"--lambda: 'abc' is not a number"}},
        {"factor A.npy --out d --panel-width 3.5", {"--panel-width", "3.5"}},
        {"factor A.npy --out d --leaf-rows=-4", {"--leaf-rows", "negative"}},
        {"factor A.npy --out d --fan-in 99999999999999999999", {"--fan-in", "64 bits"}},
        {"factor A.npy --out d --memory lots", {"--memory", "lots"}},
        {"lstsq A.npy", {"b"}},
        {"plan", {"SHAPE is required"}},
        {"lstsq A.npy b.npy --out x.npy --rcond nan", {"--rcond", "nan"}},
        {"lstsq A.npy b.npy --out x.npy --rcond=-5", {"--rcond"}},
        {"plan 12", {"SHAPE", "12"}},
        {"plan 5x3x2", {"SHAPE: '5x3x2' is not a shape"}},
        {"plan 3x", {"SHAPE: '3x' is not a shape"}},
        {"plan x3", {"SHAPE: 'x3' is not a shape"}},
        {"plan 1e6x192", {"SHAPE: '1e6' is not a whole number in digits: write 1000000"}},
        {"facto A.npy", {"no command 'facto': did you mean 'factor'?"}},
        {"lyapunow lorenz63", {"no command 'lyapunow': did you mean 'lyapunov'?"}},
        {"factor A.npy --out d --verfy", {"factor has no option '--verfy': did you mean '--verify'?"}},
        {"factor A.npy --out d --memroy=1GB", {"factor has no option '--memroy': did you mean '--memory'?"}},
        {"factor A.npy b.npy --out d", {"factor has more arguments than it takes: 'b.npy'"}},
        {"plan 99999999999999999999x2", {"SHAPE", "64 bits"}},
        {"plan 1000000000000000000x1000000000000000000", {"SHAPE", "64 bits"}},
        {"plan 4000000000x4000000000", {"SHAPE", "64 bits"}},
        {"plan 4000000000 4000000000", {"64 bits"}},
        {"plan 50x3 --ranks 2 --latency 2", {"--latency", "2us"}},
        {"plan 50x3 --ranks 2 --bandwidth fast", {"--bandwidth", "25GB/s"}},
        {"plan 50x3 --ranks 2 --device cuda", {"--ranks", "host"}},
        {"plan 5x3 --dtype f16", {"--dtype", "f16", "f32, f64"}},
        {"plan 5x3 --q maybe", {"--q", "maybe"}},
        {"bench 10x10 --op thin-qr,lu", {"--op", "lu"}},
        {"bench 10x10 --against lapack,none", {"--against", "none"}},
        {"bench 10x10 --against cusolver", {"--against", "cusolver", "--device cuda"}},
        {"bench 10x10 --device cuda --op thin-qr,svd", {"--op", "svd", "host"}},
        {"bench 10x10 --device cuda --against blas2", {"--against", "blas2", "geqrf"}},
        {"bench paper", {"needs one of caqr-report, caqr, storage, out-of-core, gram-schmidt"}},
        {"bench paper table3", {"paper", "table3", "caqr-report, caqr, storage"}},
        {"bench paper caqr", {"needs one of figure7, strategies, figure8, figure9, table1, table2"}},
        {"bench paper caqr table3", {"caqr", "table3", "figure7, strategies, figure8"}},
        {"bench paper caqr table2 10x10", {"10x10"}},
        {"bench paper caqr table2 --repeat 2", {"--repeat"}},
        {"bench paper caqr table1 --against cusolver", {"--against", "--device cuda"}},
        {"bench paper caqr-report figure8 --against blas2", {"--against", "blas2"}},
        {"bench paper gram-schmidt orthogonality --device cuda", {"--device"}},
        {"bench paper gram-schmidt figure10 100x200", {"SHAPE", "wide"}},
        {"bench paper out-of-core table4 10x20", {"SHAPE", "wide"}},
        {"bench files", {"DIR"}},
        {"bench batches 10", {"SPEC", "COUNTxROWSxCOLS"}},
        {"bench batches 10x4", {"SPEC", "not a shape"}},
        {"bench batches 0x4x4", {"SPEC", "nothing to time"}},
        {"bench 10x10 --repeat 0", {"--repeat"}},
        {"bench paper caqr table2 --energy", {"--energy"}},
        {"bench paper out-of-core stages --routes householder-native", {"--routes", "one schedule"}},
        {"bench 0x10", {"SHAPE", "0x10"}},
        {"bench 10x-10", {"SHAPE", "negative"}},
    };
    for (const auto& [line, fragments] : cases) {
        SCOPED_TRACE(line);
        const Outcome outcome = quoin_run(line);
        expect_error(outcome, usage_error, {});
        for (const std::string& fragment : fragments)
            EXPECT_NE(outcome.err.find(fragment), std::string::npos) << outcome.err;
    }
    EXPECT_EQ(names_in("."), std::vector<std::string>{"A.npy"});
}

TEST_F(Cli, AnEmptyPathIsNoOutput) {
    save("A.npy", random_normal<double>(5, 3));
    const std::vector<std::string> commands[] = {{"factor", "A.npy"},
                                                 {"lstsq", "A.npy", "A.npy"},
                                                 {"svd", "A.npy"},
                                                 {"rpca", "A.npy"},
                                                 {"lyapunov", "lorenz63"}};
    for (std::vector<std::string> arguments : commands) {
        SCOPED_TRACE(arguments[0]);
        arguments.insert(arguments.end(), {"--out", ""});
        expect_error(quoin_run(arguments), usage_error, {"--out: '' names no file or folder"});
    }
}

TEST_F(Cli, ExitCodesAreThoseThatScriptsKnow) {
    const std::pair<ErrorCode, int> codes[] = {
        {ErrorCode::InvalidArgument, 2}, {ErrorCode::NonFiniteEntry, 3}, {ErrorCode::NumericalBreakdown, 4},
        {ErrorCode::RankDeficient, 5},   {ErrorCode::OutOfMemory, 6},    {ErrorCode::UnreadableFile, 7},
        {ErrorCode::UnwritableFile, 8},  {ErrorCode::DeviceFailure, 9},  {ErrorCode::Interrupted, 130}};
    const std::string help = quoin_run("--help").out;
    for (const auto& [code, number] : codes) {
        EXPECT_EQ(exit_code_of(code), number);
        EXPECT_NE(help.find(fmt::format("{} {}", number, error_info(code).name)), std::string::npos) << number;
    }
    auto A = random_normal<double>(5, 3);
    A(2, 1) = std::numeric_limits<double>::quiet_NaN();
    save("A.npy", A);
    EXPECT_EQ(quoin_run("factor A.npy --out d").exit_code, 3);
    EXPECT_EQ(quoin_run("factor B.npy --out d").exit_code, 7);
}

// ---- plan and info --------------------------------------------------------------------------------------------------

TEST_F(Cli, PlanAsTextAndJson) {
    const Outcome text = quoin_run("plan 1000000x192");
    EXPECT_EQ(text.exit_code, 0) << text.err;
    Context<Host> ctx;
    Options options;
    options.q = QForm::Explicit;
    const Plan plan = plan_qr<double>(ctx, 1000000, 192, options);
    EXPECT_EQ(text.out, to_string(plan) + "\n");
    EXPECT_EQ(quoin_run("plan 1000000 192").out, text.out);

    const Outcome json = quoin_run("plan 1000000x192 --dtype f32 --q none --method tsqr --json");
    EXPECT_EQ(json.exit_code, 0) << json.err;
    ASSERT_EQ(lines_of(json.out).size(), 1u);
    EXPECT_EQ(json_value(json.out, "rows"), "1000000");
    EXPECT_EQ(json_value(json.out, "cols"), "192");
    EXPECT_EQ(json_value(json.out, "dtype"), "\"f32\"");
    EXPECT_EQ(json_value(json.out, "method"), "\"tsqr\"");
    EXPECT_EQ(json_value(json.out, "q"), "\"none\"");
    EXPECT_GT(json_number(json.out, "flops"), 2e6 * 192 * 192 * 0.9);
    std::istringstream keys(
        "rows cols dtype device threads method fallback q pivots panel_width inner_block compact_wy keep_s full_t "
        "arithmetic "
        "reorthogonalization gram_schmidt_panel "
        "leaf_rows domain_leaves fan_in reconstruct_rows tuning workspace_bytes flops bytes_moved tuning_refusal");
    EXPECT_EQ(json_keys(json.out), (std::vector<std::string>{std::istream_iterator<std::string>(keys), {}}));
}

/// The output agrees with the library's plan.
TEST_F(Cli, PlanPrintsTheLibrarysPlan) {
    const Context<Host> ctx(2);
    const std::pair<std::string, Options> cases[] = {
        {"", {.q = QForm::Explicit}},
        {" --method caqr --panel-width 24 --leaf-rows 100 --fan-in 3",
         {.method = CAQR{24, {100, 3}}, .q = QForm::Explicit}},
        {" --q reflectors --compact-wy full --keep-s", {.q = FullT{.keep_s = true}}},
        {" --method cgs --reorthogonalize always --panel-method cholesky-qr2",
         {.method = ClassicalGramSchmidt{0, Reorthogonalization::Always, GramSchmidtPanel::CholeskyQR2},
          .q = QForm::Explicit}}};
    for (const auto& [arguments, options] : cases) {
        SCOPED_TRACE(arguments);
        const Plan plan = plan_qr<float>(ctx, 90000, 60, options);
        const FullT full_t = plan.q.full_t.value_or(FullT{});
        const auto quoted = [](const char* name) { return fmt::format("\"{}\"", name); };
        const std::string out = quoin_run("plan 90000x60 --dtype f32 --threads 2 --json" + arguments).out;
        EXPECT_EQ(json_value(out, "fallback"),
                  plan.fallback() != Method::Auto ? quoted(to_string(plan.fallback())) : "null");
        const std::pair<const char*, std::string> names[] = {
            {"device", "\"host\""},
            {"threads", "2"},
            {"method", quoted(to_string(plan.method))},
            {"q", quoted(to_string(plan.q))},
            {"pivots", "\"none\""},
            {"compact_wy", plan.q.full_t ? "\"full\"" : "\"panels\""},
            {"keep_s", full_t.keep_s ? "true" : "false"},
            {"full_t", quoted(to_string(full_t.route))},
            {"arithmetic", quoted(to_string(plan.arithmetic))},
            {"reorthogonalization", quoted(to_string(plan.gram_schmidt().reorthogonalization))},
            {"gram_schmidt_panel", quoted(to_string(plan.gram_schmidt().panel))},
            {"tuning", quoted("built-in")},
            {"tuning_refusal", "null"}};
        for (const auto& [key, value] : names) EXPECT_EQ(json_value(out, key), value) << key;
        const std::pair<const char*, Index> sizes[] = {{"rows", 90000},
                                                       {"cols", 60},
                                                       {"panel_width", plan.panel_width},
                                                       {"inner_block", plan.inner_block},
                                                       {"leaf_rows", plan.tree().leaf_rows},
                                                       {"domain_leaves", plan.tree().domain_leaves},
                                                       {"fan_in", plan.tree().fan_in},
                                                       {"reconstruct_rows", plan.householder().reconstruct_rows}};
        for (const auto& [key, value] : sizes) EXPECT_EQ(json_number(out, key), static_cast<double>(value)) << key;
        const std::pair<const char*, double> costs[] = {
            {"workspace_bytes", plan.workspace_bytes}, {"flops", plan.flops}, {"bytes_moved", plan.bytes_moved}};
        for (const auto& [key, value] : costs) EXPECT_NEAR(json_number(out, key), value, 1e-5 * value) << key;
    }
}

TEST_F(Cli, PlanOfAFilePrintsTheLibrarysPlan) {
    const Context<Host> ctx(2);
    const FileOptions options{.memory = 40 << 20};
    const FilePlan tall = plan_file_qr<double>(ctx, 200000, 40, options);
    const std::string out = quoin_run("plan 200000x40 --memory 40MiB --threads 2 --json").out;
    EXPECT_EQ(json_value(out, "method"), "\"streaming-tsqr\"");
    EXPECT_EQ(json_value(out, "stored"), tall.stored ? "true" : "false");
    const double transfer = 1e-9 * (tall.bytes_read + tall.bytes_written);
    const std::pair<const char*, double> values[] = {{"rows", 200000},
                                                     {"cols", 40},
                                                     {"threads", 2},
                                                     {"blocks", static_cast<double>(tall.blocks)},
                                                     {"block", static_cast<double>(tall.block)},
                                                     {"memory_bytes", tall.memory_bytes},
                                                     {"disk_bytes", tall.disk_bytes},
                                                     {"bytes_read", tall.bytes_read},
                                                     {"bytes_written", tall.bytes_written},
                                                     {"flops", tall.flops}};
    for (const auto& [key, value] : values) EXPECT_NEAR(json_number(out, key), value, 1e-5 * value) << key;
    EXPECT_GE(json_number(out, "seconds_at_1_gb_a_second"), (1 - 1e-5) * transfer);

    // whichever takes longer, the disk or 60% of the measured rate, which is rounded
    const FilePlan square = plan_file_qr<double>(ctx, 3000, 3000, options);
    const std::string text = quoin_run("plan 3000x3000 --memory 40MiB --threads 2").out;
    EXPECT_NE(text.find(to_string(square)), std::string::npos) << text;
    std::smatch about;
    const std::regex speed("about (\\S+) s at 1 GB/s of disk and 60% of this machine's (\\S+) GFLOP/s");
    ASSERT_TRUE(std::regex_search(text, about, speed)) << text;
    const double seconds = std::stod(about[1]), rate = std::stod(about[2]),
                 disk = 1e-9 * (square.bytes_read + square.bytes_written), arithmetic = 1e-9 * square.flops / 0.6;
    EXPECT_LE(rate, 20000) << "nothing was measured";
    EXPECT_GE(seconds, 0.99 * std::max(disk, arithmetic / (rate + 0.5))) << text;
    EXPECT_LE(seconds, 1.01 * std::max(disk, arithmetic / std::max(rate - 0.5, 1e-3))) << text;
}

TEST_F(Cli, PlanRefusesOptionsOutsideTheirDomain) {
    EXPECT_EQ(quoin_run("plan 10 20 30").exit_code, usage_error);
    expect_error(quoin_run("plan 1000x50 --method tsqr --leaf-rows 10"), exit_code_of(ErrorCode::InvalidArgument),
                 {"leaf_rows"});
    expect_error(quoin_run("plan 1000x50 --panel-width 50 --method tsqr"), exit_code_of(ErrorCode::InvalidArgument),
                 {"panel_width", "householder, caqr, mgs, cgs", "tsqr"});
    expect_error(quoin_run("plan 1000x50 --method tsqr --fan-in 1"), exit_code_of(ErrorCode::InvalidArgument),
                 {"fan_in"});
}

TEST_F(Cli, Info) {
    const Outcome text = quoin_run("info");
    EXPECT_EQ(text.exit_code, 0) << text.err;
    for (const std::string expected :
         {"CPU", "cores", "threads", "caches", "memory", "kernels", "BLAS", "tuning", "GPU"})
        EXPECT_NE(text.out.find("\n" + expected), std::string::npos) << text.out;
    EXPECT_NE(text.out.find(build_info().blas), std::string::npos);
    EXPECT_NE(text.out.find(build_info().blas_warning), std::string::npos);

    const Outcome json = quoin_run("info --json --threads 2");
    EXPECT_EQ(lines_of(json.out).size(), 1u);
    const std::string warning = build_info().blas_warning;
    EXPECT_EQ(json_value(json.out, "blas_warning"), warning.empty() ? "null" : '"' + warning + '"');
    EXPECT_EQ(json_value(json.out, "threads"), "2");
    EXPECT_EQ(json_value(json.out, "kernels"), fmt::format("\"{}\"", build_info().kernels));
    EXPECT_GT(json_number(json.out, "cores"), 0);
    EXPECT_GT(json_number(json.out, "memory_bytes"), json_number(json.out, "memory_available_bytes"));
    EXPECT_GE(json_number(json.out, "gpus"), 0);
}

// ---- tune -----------------------------------------------------------------------------------------------------------

/// A table in which updates by panels are slow is named by plan, info and --show; one of another CPU is refused by all
/// three in a sentence, and `--reset` removes it.
TEST_F(Cli, TuneShowsAndRemovesTheTable) {
    setenv("QUOIN_TUNING", "table.json", 1);
    TuningTable table = built_in_tuning(Context<Host>(2));
    for (std::size_t i = 24; i < 30; ++i) table.f64.at(i) *= 50;  // panel and update
    table.cases = {{3000, 500, ScalarKind::F64, QForm::Any, {1, 4, 1, 1}}};
    save_tuning(table, "table.json");
    const std::string id = fmt::format("{:08x}", table.id);
    for (const std::string line : {"plan 3000x500 --q any", "plan 3000x500 --q any --json", "info", "info --json",
                                   "tune --show", "tune --show --json"}) {
        const Outcome outcome = quoin_run(line);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_NE(outcome.out.find(id), std::string::npos) << outcome.out;
    }
    EXPECT_NEAR(json_number(quoin_run("tune --show --json").out, "ratio"), 4, 1e-12);
    EXPECT_NE(quoin_run("tune --show").out.find("update.flop x 50.00"), std::string::npos);

    table.device = "Z80";
    save_tuning(table, "table.json");
    for (const std::string line :
         {"plan 3000x500", "plan 3000x500 --json", "info", "info --json", "tune --show", "tune --show --json"}) {
        const Outcome outcome = quoin_run(line);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_NE(outcome.out.find("table.json: was measured on Z80"), std::string::npos) << outcome.out;
    }
    EXPECT_EQ(quoin_run("factor missing.npy --out o").err.find("Z80"), std::string::npos);

    EXPECT_EQ(quoin_run("tune --reset").out, "removed table.json\n");
    EXPECT_FALSE(fs::exists("table.json"));
    EXPECT_EQ(quoin_run("tune --reset --json").out, "{\"path\": \"table.json\", \"removed\": false}\n");
    EXPECT_EQ(quoin_run("tune --show --reset").exit_code, usage_error);
    setenv("QUOIN_TUNING", "off", 1);
}

TEST_F(Cli, AnInterruptedTuneKeepsWhatItMeasured) {
    setenv("QUOIN_TUNING", "folder/table.json", 1);
    Process process({"tune"});
    process.wait_until_caught(SIGINT);
    process.wait_until_used(1);
    process.send(SIGINT);
    const Outcome stopped = process.wait();
    EXPECT_EQ(stopped.exit_code, 128 + SIGINT);
    EXPECT_NE(stopped.err.find("before the interruption"), std::string::npos) << stopped.err;
    const Outcome shown = quoin_run("tune --show --json");
    EXPECT_GT(json_number(shown.out, "cases"), 0) << shown.out;
    EXPECT_EQ(json_value(shown.out, "refusal"), "null") << shown.out;
    setenv("QUOIN_TUNING", "off", 1);
}

// ---- factor ---------------------------------------------------------------------------------------------------------

template <class T>
class CliTyped : public Cli {};
TYPED_TEST_SUITE(CliTyped, Scalars);

TYPED_TEST(CliTyped, FactorsEveryShape) {
    std::vector<std::pair<Index, Index>> shapes = {{1000, 37}, {7, 50}, {4, 0}};
    if (sizeof(TypeParam) == 8) shapes.insert(shapes.end(), {{1, 1}, {100, 100}, {0, 4}});
    for (const auto& [m, n] : shapes) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const auto A = random_normal<TypeParam>(m, n);
        save("A.npy", A);
        const Outcome outcome = quoin_run("factor A.npy --out factors --json --verify");
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_EQ(names_in("factors"), (std::vector<std::string>{"Q.npy", "R.npy"}));
        expect_factors(A, "factors");

        ASSERT_EQ(lines_of(outcome.out).size(), 1u);
        EXPECT_EQ(json_keys(outcome.out), (std::vector<std::string>{"rows", "cols", "dtype", "method", "seconds",
                                                                    "gflops", "device", "residual", "orthogonality"}));
        EXPECT_EQ(json_value(outcome.out, "device"), "\"host\"");
        EXPECT_EQ(json_value(outcome.out, "rows"), std::to_string(m));
        EXPECT_EQ(json_value(outcome.out, "cols"), std::to_string(n));
        EXPECT_EQ(json_value(outcome.out, "dtype"), sizeof(TypeParam) == 4 ? "\"f32\"" : "\"f64\"");
        const double bound = law * std::max<double>(1, static_cast<double>(std::min(m, n))) * unit_roundoff<TypeParam>;
        EXPECT_LE(json_number(outcome.out, "residual"), bound);
        EXPECT_LE(json_number(outcome.out, "orthogonality"), bound);
        fs::remove_all("factors");
    }
}

TYPED_TEST(CliTyped, EveryMethodByName) {
    const auto A = random_normal<TypeParam>(600, 20);
    save("A.npy", A);
    // far enough from dependent for Gram-Schmidt without reorthogonalization; types take turns
    const std::vector<std::string> methods =
        sizeof(TypeParam) == 4 ? std::vector<std::string>{"tsqr", "randomized-cholesky-qr", "cgs"}
                               : std::vector<std::string>{"householder", "caqr", "cholesky-qr2", "mgs"};
    for (const std::string& method : methods) {
        SCOPED_TRACE(method);
        const Outcome outcome = quoin_run("factor A.npy --out factors --json --method " + method);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_EQ(json_value(outcome.out, "method"), "\"" + method + "\"");
        EXPECT_EQ(json_keys(outcome.out),
                  (std::vector<std::string>{"rows", "cols", "dtype", "method", "seconds", "gflops", "device"}));
        expect_factors(A, "factors");
    }
}

TYPED_TEST(CliTyped, ROnlyWritesRAlone) {
    const auto A = random_normal<TypeParam>(500, 20);
    save("A.npy", A);
    ASSERT_EQ(quoin_run("factor A.npy --out qr").exit_code, 0);
    for (const std::string flags : {"", " --verify"}) {
        ASSERT_EQ(quoin_run("factor A.npy --r-only --out r" + flags).exit_code, 0);
        EXPECT_EQ(names_in("r"), std::vector<std::string>{"R.npy"});
        const auto R = load<TypeParam>("r/R.npy"), expected = load<TypeParam>("qr/R.npy");
        for (Index j = 0; j < 20; ++j)
            for (Index i = 0; i <= j; ++i)
                EXPECT_NEAR(std::abs(R(i, j)), std::abs(expected(i, j)), 1000 * unit_roundoff<TypeParam> * 20);
    }
}

/// Q = I − V T Vᵀ = I − V Sᵀ, and A = QR.
TYPED_TEST(CliTyped, WritesVAndOneTInThePlaceOfQ) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{90, 41}, {20, 33}, {4, 0}}) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index k = std::min(m, n);
        const auto A = random_normal<T>(m, n);
        save("A.npy", A);
        const Outcome outcome =
            quoin_run("factor A.npy --out f --compact-wy full --keep-s --panel-width 8 --verify --json");
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_EQ(names_in("f"), (std::vector<std::string>{"R.npy", "S.npy", "T.npy", "V.npy"}));
        const auto R = load<T>("f/R.npy"), S = load<T>("f/S.npy"), Tf = load<T>("f/T.npy"), V = load<T>("f/V.npy");
        for (const Matrix<T>* Y : {&V, &S}) {
            ASSERT_TRUE(Y->rows() == m && Y->cols() == k);
        }
        ASSERT_TRUE(Tf.rows() == k && Tf.cols() == k);
        // the thin Q by T and by S
        Matrix<T> by_t(m, k), by_s(m, k);
        for (Index j = 0; j < k; ++j)
            for (Index i = 0; i < m; ++i) {
                double t = i == j, s = i == j;
                for (Index l = 0; l < k; ++l) {
                    s -= double(V(i, l)) * S(j, l);
                    for (Index q = l; q < k; ++q) t -= double(V(i, l)) * Tf(l, q) * V(j, q);
                }
                by_t(i, j) = static_cast<T>(t);
                by_s(i, j) = static_cast<T>(s);
            }
        for (const Matrix<T>* Q : {&by_t, &by_s}) {
            EXPECT_LE(residual_error<T>(A.view(), Q->view(), R.view()), law);
        }
        const double bound = law * double(std::max<Index>(1, k)) * unit_roundoff<T>;
        EXPECT_LE(json_number(outcome.out, "residual"), bound);
        EXPECT_LE(json_number(outcome.out, "orthogonality"), bound);
        fs::remove_all("f");
    }
    ASSERT_EQ(quoin_run("factor A.npy --out g --compact-wy full").exit_code, 0);
    EXPECT_EQ(names_in("g"), (std::vector<std::string>{"R.npy", "T.npy", "V.npy"}));
}

/// A(:, P) = QR, and with a limit Q and R of as many columns and rows as the rank.
TYPED_TEST(CliTyped, PivotsMoveLargeColumnsToTheFront) {
    using T = TypeParam;
    const Index m = 80, n = 30, rank = 5;
    const auto left = random_normal<T>(m, rank, 1), right = random_normal<T>(rank, n, 2);
    const Matrix<T> A = product<T>(left.view(), right.view());
    save("A.npy", A);
    for (const std::string options : {"--pivot", "--pivot=greedy --tol 1e-4", "--pivot=randomized --rank 5",
                                      "--pivot=strong --rank 5 --r-only", "--pivot --rank 5 --compact-wy full"}) {
        SCOPED_TRACE(options);
        const Outcome outcome = quoin_run("factor A.npy --out f --verify --json " + options);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_EQ(json_number(outcome.out, "rank"), rank);
        EXPECT_LE(json_number(outcome.out, "residual"), law * n * unit_roundoff<T>);
        EXPECT_LE(json_number(outcome.out, "orthogonality"), law * n * unit_roundoff<T>);
        const auto R = load<T>("f/R.npy"), P = load<T>("f/P.npy");
        ASSERT_EQ(P.rows() * P.cols(), n);
        EXPECT_EQ(R.rows(), options == "--pivot" ? n : rank);
        Matrix<T> AP(m, n);
        for (Index j = 0; j < n; ++j) std::copy_n(A.view().at(0, Index(P.data()[j])), m, AP.view().at(0, j));
        if (fs::exists("f/Q.npy")) {
            EXPECT_LE(residual_error<T>(AP.view(), load<T>("f/Q.npy").view(), R.view()), law);
        }
        fs::remove_all("f");
    }
    EXPECT_EQ(json_number(quoin_run("factor A.npy --out f --pivot --rank 2 --json").out, "rank"), 2);
    fs::remove_all("f");
    const int invalid = exit_code_of(ErrorCode::InvalidArgument);
    expect_error(quoin_run("factor A.npy --out f --rank 2"), usage_error, {"--rank", "--pivot"});
    expect_error(quoin_run("factor A.npy --out f --pivot --rank 0"), usage_error, {"0"});
    expect_error(quoin_run("factor A.npy --out f --pivot --rank 31"), invalid, {"rank asked for", "30"});
    expect_error(quoin_run("factor A.npy --out f --pivot --tol nan"), invalid, {"tolerance", "nan"});
    expect_error(quoin_run("factor A.npy --out f --pivot=least"), usage_error, {"--pivot", "least", "strong"});
    expect_error(quoin_run("factor A.npy --out f --pivot --method tsqr"), invalid, {"pivoting", "tsqr"});
    expect_error(quoin_run("factor A.npy --out f --pivot --memory 8KB"), exit_code_of(ErrorCode::OutOfMemory),
                 {"A.npy"});
    EXPECT_FALSE(fs::exists("f"));
}

TEST_F(Cli, FullTRefusesWhatExcludesIt) {
    save("A.npy", random_normal<double>(30, 10));
    expect_error(quoin_run("factor A.npy --out f --compact-wy full --r-only"), 64, {"--r-only", "--compact-wy"});
    expect_error(quoin_run("factor A.npy --out f --keep-s"), exit_code_of(ErrorCode::InvalidArgument), {"--keep-s"});
    expect_error(quoin_run("plan 30x10 --q explicit --compact-wy full"), exit_code_of(ErrorCode::InvalidArgument),
                 {"--compact-wy full", "--q"});
    EXPECT_FALSE(fs::exists("f"));
}

TEST_F(Cli, BenchOfTheFullT) {
    const Outcome outcome = quoin_run("bench 90x60 60x60 --op geqrt3,geqrt --repeat 1 --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::vector<std::string> lines = lines_of(outcome.out);
    ASSERT_EQ(lines.size(), 4u);
    for (const std::string& line : lines) {
        EXPECT_GT(json_number(line, "ratio"), 0) << line;
        EXPECT_LE(json_number(line, "residual"), 2000 * unit_roundoff<double>) << line;
    }
    const Outcome table = quoin_run("bench paper storage table1 90x60 --repeat 1 --json");
    ASSERT_EQ(table.exit_code, 0) << table.err;
    std::vector<std::string> codes;
    for (const std::string& line : lines_of(table.out)) {
        codes.push_back(json_value(line, "code"));
        EXPECT_GT(json_number(line, "seconds"), 0) << line;
    }
    EXPECT_EQ(codes, (std::vector<std::string>{"\"recurrence\"", "\"recurrence-s\"", "\"joined\"", "\"without-t\"",
                                               "\"geqrf\"", "\"geqrt3\""}));
}

TEST_F(Cli, BenchOfRanks) {
    const Outcome run =
        quoin_run("bench ranks 3000x20 --dtype f32,f64 --op thin-qr,r-only --ranks 1,3 --repeat 1 --json --csv r.csv");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto lines = lines_of(run.out);
    ASSERT_EQ(lines.size(), 8u) << run.out;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        EXPECT_EQ(json_number(lines[i], "ranks"), i % 2 == 0 ? 1 : 3) << lines[i];
        EXPECT_GT(json_number(lines[i], "seconds"), 0) << lines[i];
        const bool thin = json_value(lines[i], "op") == "\"thin-qr\"";
        const double flops = (2.0 * 3000 * 400 - 2.0 * 8000 / 3) * (thin ? 2 : 1);
        EXPECT_NEAR(1e9 * json_number(lines[i], "gflops") * json_number(lines[i], "seconds") / flops, 1, 1e-3)
            << lines[i];
        if (!thin) continue;
        const double unit = 20 * (json_value(lines[i], "dtype") == "\"f32\"" ? 6e-8 : 1.2e-16);
        EXPECT_LE(json_number(lines[i], "orthogonality"), law * unit) << lines[i];
        EXPECT_LE(json_number(lines[i], "residual"), law * unit) << lines[i];
    }
    EXPECT_EQ(lines_of(contents("r.csv")).size(), 2 + lines.size());
    EXPECT_GT(json_number(lines[0], "planned_seconds"), 0);
    const Outcome cyclic = quoin_run("bench ranks 200x150 --grid 1x2 --block 32 --repeat 1 --json --trace t.json");
    ASSERT_EQ(cyclic.exit_code, 0) << cyclic.err;
    EXPECT_EQ(json_value(cyclic.out, "method"), "\"block-cyclic 1x2\"");
    for (const char* name : {"rank 1", "panel", "broadcast", "update", "wait"})
        EXPECT_NE(contents("t.json").find(fmt::format("\"{}\"", name)), std::string::npos) << name;
    expect_error(quoin_run("bench ranks 300x2 --op svd"), usage_error, {"--op", "svd"});
    for (const std::string nothing : {"300x0", "0x2"})
        expect_error(quoin_run("bench ranks " + nothing), usage_error, {nothing, "nothing to time"});
    EXPECT_EQ(quoin_run("bench ranks 300x1 --ranks 1 --repeat 1 --json").exit_code, 0);
}

TEST_F(Cli, BenchOfRegret) {
    const Outcome run =
        quoin_run("bench regret 300x20 30x40 --shapes 3 --seed 5 --dtype f64 --repeat 1 --json --csv r.csv");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto lines = lines_of(run.out);
    ASSERT_EQ(lines.size(), 12u) << run.out;  // four operations each
    for (const std::string& line : lines) {
        const double behind = json_number(line, "seconds") / json_number(line, "best_seconds") - 1;
        EXPECT_GE(behind, 0) << line;
        EXPECT_NEAR(json_number(line, "behind"), behind, 1e-4 * (1 + behind)) << line;
        if (json_value(line, "op") == "\"factor\"") {
            EXPECT_EQ(json_value(line, "reference_seconds"), "null") << line;
        } else {
            EXPECT_GT(json_number(line, "reference_seconds"), 0) << line;
        }
        if (behind == 0) {
            EXPECT_EQ(json_value(line, "method"), json_value(line, "best")) << line;
        }
    }
    EXPECT_EQ(json_number(lines[0], "rows"), 300);
    EXPECT_EQ(json_number(lines[4], "cols"), 40);
    // the same seed, the same shape
    const Outcome again =
        quoin_run("bench regret 300x20 30x40 --shapes 3 --seed 5 --dtype f64 --repeat 1 --json --against none");
    EXPECT_EQ(json_value(lines_of(again.out).at(8), "rows"), json_value(lines[8], "rows"));
    EXPECT_EQ(json_value(lines_of(again.out).at(8), "reference_seconds"), "null");
    EXPECT_EQ(lines_of(contents("r.csv")).size(), 2 + lines.size());
    const Outcome text = quoin_run("bench regret 300x20 --dtype f32 --repeat 1");
    EXPECT_NE(text.out.find("4 cases: auto is within 10% of the best in"), std::string::npos) << text.out;
}

TEST_F(Cli, BenchOfBatches) {
    const Outcome table =
        quoin_run("bench batches 20x16x8 3x70x66 --dtype f64 --repeat 1 --json --threads 2 --csv b.csv");
    ASSERT_EQ(table.exit_code, 0) << table.err;
    std::vector<std::string> timed, measured;
    for (const std::string& line : lines_of(table.out)) {
        if (json_value(line, "seconds") != "null") {
            timed.push_back(json_value(line, "op"));
            EXPECT_GT(json_number(line, "ratio"), 0) << line;
            // 2mn² − 2n³/3 flops for R, as many again for Q
            const bool small = json_number(line, "count") == 20;
            const double m = small ? 16 : 70, n = small ? 8 : 66,
                         flops = (2 * m * n * n - 2 * n * n * n / 3) * (small ? 20 : 3) *
                                 (timed.back() == "\"thin-qr\"" ? 2 : 1);
            EXPECT_NEAR(1e9 * json_number(line, "gflops") * json_number(line, "seconds") / flops, 1, 1e-3) << line;
            continue;
        }
        measured.push_back(json_value(line, "matrices"));
        EXPECT_LE(json_number(line, "orthogonality_ku"), law) << line;
        EXPECT_LE(json_number(line, "residual_ku"), law) << line;
    }
    EXPECT_EQ(timed, (std::vector<std::string>{"\"factor\"", "\"geqrf\"", "\"thin-qr\"", "\"factor\"", "\"geqrf\"",
                                               "\"thin-qr\""}));
    EXPECT_EQ(measured.size(), 2 * 9u);
    EXPECT_TRUE(fs::exists("b.csv"));
    const Outcome times = quoin_run("bench batches 5x4x4 --dtype f32 --repeat 1 --json --against none --no-accuracy");
    EXPECT_EQ(lines_of(times.out).size(), 3) << times.out << times.err;
}

TEST_F(Cli, BenchOfGramSchmidt) {
    const Outcome table =
        quoin_run("bench paper gram-schmidt figure10 60x40 --dtype f64 --repeat 1 --json --threads 2");
    ASSERT_EQ(table.exit_code, 0) << table.err;
    std::vector<std::string> codes;
    for (const std::string& line : lines_of(table.out)) {
        EXPECT_GT(json_number(line, "seconds"), 0) << line;
        if (json_value(line, "orthogonality") == "null") continue;
        codes.push_back(json_value(line, "code"));
        EXPECT_LE(json_number(line, "residual"), 1000 * unit_roundoff<double>) << line;
        EXPECT_LE(json_number(line, "orthogonality"), 1e5 * unit_roundoff<double>) << line;
    }
    EXPECT_EQ(codes,
              (std::vector<std::string>{"\"mgs-elementwise\"", "\"mgs-blas2\"", "\"mgs-unblocked\"", "\"mgs-blocked\"",
                                        "\"mgs\"", "\"mgs-always\"", "\"cgs\"", "\"cgs-always\"", "\"geqrf-orgqr\""}));
    // as text: the head once, and the same rows under it
    const std::vector<std::string> text =
        lines_of(quoin_run("bench paper gram-schmidt figure4 60x40 --dtype f64 --repeat 1 --threads 2").out);
    const auto with = [&](const char* word) {
        return std::count_if(text.begin(), text.end(),
                             [&](const std::string& line) { return line.find(word) != std::string::npos; });
    };
    EXPECT_EQ(with("panel_width"), 1);
    EXPECT_EQ(with(" f64 "), 3 * 2) << "widths 16 and 32 of three codes";
    const Outcome laws = quoin_run("bench paper gram-schmidt orthogonality --dtype f32 --csv laws.csv --json");
    ASSERT_EQ(laws.exit_code, 0) << laws.err;
    EXPECT_EQ(lines_of(laws.out).size(), 6u * 7);
    EXPECT_EQ(lines_of(contents("laws.csv")).size(), 2 + 6u * 7);
}

/// The rates of a CPU by the standard count, and by the paper's for V, R and T of a square matrix, 5n³/3.
TEST_F(Cli, BenchOfPapersOnTheHost) {
    const Outcome rates = quoin_run("bench paper caqr table1 700x30 --repeat 1 --json --csv rates.csv");
    ASSERT_EQ(rates.exit_code, 0) << rates.err;
    std::vector<std::string> ops;
    for (const std::string& line : lines_of(rates.out)) {
        ops.push_back(json_value(line, "op"));
        EXPECT_NEAR(1e9 * json_number(line, "gflops") * json_number(line, "seconds"), 2.0 * 700 * 900 - 2.0 * 27000 / 3,
                    2000)
            << line;
        EXPECT_EQ(json_value(line, "reference"), "\"lapack\"");
        EXPECT_LE(json_number(line, "orthogonality"), 100 * 30 * unit_roundoff<float>) << line;
    }
    EXPECT_EQ(ops, (std::vector<std::string>{"\"geqrf\"", "\"factor\""}));
    EXPECT_EQ(lines_of(contents("rates.csv")).size(), 4u);
    const Outcome both = quoin_run("bench paper caqr-report figure8 700x30 --repeat 1 --json");
    ASSERT_EQ(lines_of(both.out).size(), 2u) << both.err;
    EXPECT_EQ(json_value(lines_of(both.out)[1], "method"), "\"caqr\"");

    const Outcome storage = quoin_run("bench paper storage table1 60x60 --repeat 1 --json");
    for (const std::string& line : lines_of(storage.out)) {
        const double seconds = json_number(line, "seconds");
        EXPECT_NEAR(1e9 * json_number(line, "paper_gflops") * seconds / (5.0 / 3 * 216000), 1, 1e-3) << line;
        EXPECT_NEAR(1e9 * json_number(line, "gflops") * seconds / (4.0 / 3 * 216000), 1, 1e-3) << line;
    }
    const Outcome threads = quoin_run("bench paper gram-schmidt figure2 60x40 --repeat 1 --threads 2 --json");
    EXPECT_EQ(lines_of(threads.out).size(), 3u * 2) << threads.err;
}

/// Every compiler that is here gives the same Q as the law of modified Gram-Schmidt allows, unblocked and blocked.
TEST_F(Cli, BenchOfCompilers) {
    const Outcome outcome = quoin_run("bench paper gram-schmidt table1 130x70 --repeat 1 --threads 2 --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    int blocked = 0;
    for (const std::string& line : lines_of(outcome.out)) {
        EXPECT_LE(json_number(line, "orthogonality"), 1e4 * unit_roundoff<float>) << line;
        EXPECT_GT(json_number(line, "gflops"), 0) << line;
        blocked += json_number(line, "panel_width") == 32;
    }
    EXPECT_GE(lines_of(outcome.out).size(), 1u);
    EXPECT_EQ(blocked, 2 * static_cast<int>(lines_of(outcome.out).size() / 4));
}

TEST_F(Cli, EntriesOfPapersAreListed) {
    const Outcome list = quoin_run("bench paper --list");
    EXPECT_EQ(list.exit_code, 0) << list.err;
    for (const std::string expected : {"caqr: Anderson", "figure15", "host ", "GPU "})
        EXPECT_NE(list.out.find(expected), std::string::npos) << expected;
    for (const std::string& line : lines_of(list.out)) EXPECT_LE(line.size(), 140u) << line;
    const std::vector<std::string> entries = lines_of(quoin_run("bench paper caqr --list --json").out);
    ASSERT_EQ(entries.size(), 6u);
    EXPECT_EQ(json_value(entries[4], "entry"), "\"table1\"");
    // one run has two views
    EXPECT_EQ(json_value(entries[5], "run"), "\"caqr-report table1\"");
}

TEST_F(Cli, GramSchmidtNamesOrCompletesADependentColumn) {
    Matrix<double> A = random_normal<double>(300, 10);
    std::copy_n(A.view().at(0, 2), 300, A.view().at(0, 7));
    save("A.npy", A);
    expect_error(quoin_run("factor A.npy --out a --method mgs"), exit_code_of(ErrorCode::NumericalBreakdown),
                 {"column 7"});
    const Outcome outcome =
        quoin_run("factor A.npy --out b --method cgs --reorthogonalize selective --panel-method cholesky-qr2");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("1 column depends on others"), std::string::npos) << outcome.out;
    expect_factors(A, "b");
    expect_error(quoin_run("factor A.npy --out c --method tsqr --reorthogonalize always"),
                 exit_code_of(ErrorCode::InvalidArgument), {"reorthogonalization"});
}

TEST_F(Cli, TraceWritesATimeline) {
    save("A.npy", random_normal<double>(300, 200));
    save("b.npy", random_normal<double>(300, 1));
    const std::pair<std::string, std::vector<std::string>> commands[] = {
        {"factor A.npy --out f --compact-wy full --full-t recurrence --panel-width 64", {"panel", "update, T, S", "S"}},
        {"lstsq A.npy b.npy --out x.npy", {"solve"}},
        {"svd A.npy --out s", {"SVD of R, vectors"}},
        {"rpca A.npy --out p --iterations 3", {"singular vectors", "L, Y and S"}},
        {"bench 60x50 --repeat 1 --against none", {"form Q"}},
        {"bench paper storage table1 60x20 --repeat 1", {"panel"}}};
    for (const auto& [command, names] : commands) {
        SCOPED_TRACE(command);
        const Outcome outcome = quoin_run(command + " --trace trace.json");
        ASSERT_TRUE(fs::exists("trace.json")) << outcome.err;
        const std::string text = contents("trace.json");
        EXPECT_NE(text.find("\"traceEvents\""), std::string::npos);
        for (const std::string& name : names) EXPECT_NE(text.find("\"name\": \"" + name), std::string::npos) << name;
        fs::remove("trace.json");
    }
    expect_error(quoin_run("factor A.npy --out g --trace missing/trace.json"), exit_code_of(ErrorCode::UnwritableFile),
                 {"missing/trace.json"});
    EXPECT_FALSE(fs::exists("g")) << "refused before anything is computed";
}

/// Where there are two GPUs; elsewhere a sentence says what is missing.
TEST_F(Cli, GpusShareTheRows) {
    Matrix<double> A = random_normal<double>(5001, 20);
    save("A.npy", A);
    const Outcome run = quoin_run("factor A.npy --out f --gpus 2 --json --verify");
    for (const std::string other :
         {"--memory 1GiB", "--gpu-memory 1GiB", "--restart", "--trace t.json", "--compact-wy full"})
        expect_error(quoin_run("factor A.npy --out g --gpus 2 " + other), usage_error, {"--gpus", "excludes"});
    expect_error(quoin_run("factor A.npy --out g --gpus 4096"), exit_code_of(ErrorCode::DeviceFailure), {"--gpus"});
    EXPECT_FALSE(fs::exists("g"));
    if (run.exit_code != 0) return expect_error(run, exit_code_of(ErrorCode::DeviceFailure), {"--gpus"});
    EXPECT_EQ(json_number(run.out, "ranks"), 2);
    EXPECT_LE(json_number(run.out, "orthogonality"), 2 * law * 20 * unit_roundoff<double>);
    expect_factors(A, "f");
    ASSERT_EQ(quoin_run("factor A.npy --out r --gpus 2 --method tsqr --r-only").exit_code, 0);
    EXPECT_EQ(names_in("r"), std::vector<std::string>{"R.npy"});
    A(4000, 3) = std::numeric_limits<double>::infinity();
    save("B.npy", A);
    expect_error(quoin_run("factor B.npy --out b --gpus 2"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"B.npy", "row 4000", "column 3"});
    EXPECT_FALSE(fs::exists("b"));
}

/// Where there is a counter, joules; where there is none, a sentence that says so, and the same rows.
/// Where there is a counter, joules; where there is none, a sentence that says so, and the same rows.
TEST_F(Cli, BenchMeasuresEnergyOrSaysWhyNot) {
    const Outcome outcome = quoin_run("bench paper storage figure2 60x20 --repeat 1 --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const bool measured = outcome.err.find("no joules: ") == std::string::npos;
    EXPECT_EQ(outcome.err.find("the energy of the CPU is not measured: ") == std::string::npos, measured)
        << outcome.err;
    for (const std::string& line : lines_of(outcome.out)) {
        const std::string joules = json_value(line, "joules");
        EXPECT_EQ(joules == "null", !measured) << line;
        EXPECT_TRUE(!measured || std::stod(joules) > 0) << line;
    }
}

TEST_F(Cli, TextOutputNamesWhatWasDone) {
    save("A.npy", random_normal<double>(300, 10));
    const Outcome outcome = quoin_run("factor A.npy --out a/b/c --verify --method tsqr");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    for (const std::string expected :
         {"300 x 10 f64", "tsqr", "GFLOP/s", "‖A − QR‖/‖A‖", "‖I − QᵀQ‖", "a/b/c/R.npy", "a/b/c/Q.npy"})
        EXPECT_NE(outcome.out.find(expected), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.err, "");  // no progress bar where stderr is no terminal
}

TEST_F(Cli, ReadsCsvAndMatrixMarket) {
    std::ofstream("A.csv") << "1,2\n3,4\n5,6\n";
    std::ofstream("A.mtx") << "%%MatrixMarket matrix array real general\n3 2\n1\n3\n5\n2\n4\n6\n";
    Matrix<double> A(3, 2);
    for (Index i = 0; i < 3; ++i)
        for (Index j = 0; j < 2; ++j) A(i, j) = static_cast<double>(2 * i + j + 1);
    for (const std::string name : {"A.csv", "A.mtx"}) {
        ASSERT_EQ(quoin_run("factor " + name + " --out " + name + ".d").exit_code, 0);
        expect_factors(A, name + ".d");
    }
}

TEST_F(Cli, ReadsAFileWhereStandardInputIsClosed) {
    save("A.npy", random_normal<double>(50, 4));
    const std::string program = (fs::read_symlink("/proc/self/exe").parent_path() / "quoin").string();
    EXPECT_EQ(std::system((program + " factor A.npy --out d <&- >../out").c_str()), 0) << "A.npy has descriptor 0";
    expect_factors(load<double>("A.npy"), "d");
}

TEST_F(Cli, ThreadsDoNotChangeBits) {
    save("A.npy", random_normal<double>(6000, 24));
    for (const std::string threads : {"1", "2", "3"})
        ASSERT_EQ(quoin_run("factor A.npy --out t" + threads + " --threads " + threads).exit_code, 0);
    for (const std::string name : {"Q.npy", "R.npy"}) {
        EXPECT_EQ(contents("t1/" + name), contents("t2/" + name));
        EXPECT_EQ(contents("t1/" + name), contents("t3/" + name));
    }
}

TEST_F(Cli, ReadsPipesArchivesAndTextAsItIsTold) {
    const auto expect_matrix = [](const std::string& input, const std::string& remark,
                                  const std::string& in = "/dev/null") {
        SCOPED_TRACE(input);
        const Outcome outcome = quoin_run("factor " + input + " --out d --json", in);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_EQ(outcome.err.find(remark) == std::string::npos, false) << outcome.err;
        EXPECT_EQ(lines_of(outcome.err).size(), remark.empty() ? 0u : 1u) << outcome.err;
        Matrix<double> A(3, 2);
        for (Index i = 0; i < 3; ++i)
            for (Index j = 0; j < 2; ++j) A(i, j) = static_cast<double>(2 * i + j + 1);
        expect_factors(A, "d");
    };
    std::ofstream("A.csv") << "1,2\n3,4\n5,6\n";
    expect_matrix("-", "", "A.csv");
    std::ofstream("pandas.csv") << ",0,1\na,1,2\nb,3,4\nc,5,6\n";
    expect_matrix("pandas.csv", "pandas.csv: line 1 is taken for a header: ',0,1'; the first column has no name");
    std::ofstream("years.csv") << "1990|1991\n1|2\n3|4\n5|6\n";
    expect_matrix("years.csv --delimiter | --header", "");
    std::ofstream("names.csv") << "# by\n# hand\nx,y\n1,2\n3,4\n5,6\n";
    expect_matrix("names.csv", "quoin: names.csv: line 3 is taken for a header: 'x,y'");
    std::ofstream("r.txt") << "\"V1\" \"V2\"\n\"1\" 1 2\n\"2\" 3 4\n\"3\" 5 6\n";
    expect_matrix("r.txt", "line 1 is taken for a header: '\"V1\" \"V2\"'; the first column has no name in the header");
    std::ofstream("fortran.txt") << "  1.0D+00  2.0D+00\n  3.0Q+00  4.D0\n  5.0E+00  6.0\n";
    expect_matrix("fortran.txt", "");
    std::ofstream("german.csv") << "Messung;1\n% x\n9;2,0;1,0\n9;4,0;3,0\n9;6,0;5,0\n";
    expect_matrix("german.csv --decimal , --skip 1 --comment % --columns 3,2 --no-header", "");
    expect_matrix("german.csv --decimal=, --skip=2 --columns=3,2-2", "");
    std::ofstream("sentinel.csv") << "1,-9\n***,4\n";
    expect_error(quoin_run("factor sentinel.csv --out e --missing ***,-9"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"sentinel.csv", "row 1", "column 0"});
    for (const auto& [option, text] : {std::pair{"--delimiter", "ab"},
                                       {"--decimal", "x"},
                                       {"--skip", "-1"},
                                       {"--comment", "1"},
                                       {"--columns", "0"},
                                       {"--columns", "3-2"},
                                       {"--columns", "a"},
                                       {"--columns", "-"}}) {
        SCOPED_TRACE(fmt::format("{} {}", option, text));
        expect_error(quoin_run(fmt::format("factor A.csv --out e {} {}", option, text)), usage_error, {option});
    }
    expect_error(quoin_run("factor A.csv --out e --header --no-header"), usage_error, {"--no-header", "contradicts"});
    std::ofstream("year.csv") << "2001,2002\n1,2\n3,4\n5,6\n";
    expect_error(quoin_run("factor year.csv --out e"), exit_code_of(ErrorCode::UnreadableFile),
                 {"year.csv", "line 1, '2001,2002'", "--header", "--no-header"});
    expect_error(quoin_run("factor - --out e"), exit_code_of(ErrorCode::UnreadableFile), {"standard input", "empty"});
    expect_error(quoin_run("lstsq - - --out x.npy"), usage_error, {"b", "standard input"});
    std::ofstream("A.csv.gz", std::ios::binary) << std::string(
        "\x1f\x8b\x08\0\0\0\0\0\0\3\x33\xd4\x31\xe2\x32\xd6\x31\xe1\x32\xd5\x31\xe3\2\0\x9f\xec\x98\xc8\x0c\0\0\0", 32);
    expect_matrix("A.csv.gz", "");
    expect_error(quoin_run("factor A.csv.gz --out e --memory 8B"), exit_code_of(ErrorCode::OutOfMemory),
                 {"A.csv.gz", "8 bytes"});
    EXPECT_FALSE(fs::exists("e"));
}

// ---- What is there already ------------------------------------------------------------------------------------------

TEST_F(Cli, NoOutputReplacesAnInput) {
    const auto A = random_normal<double>(2000, 3);
    for (const char* name : {"Q.npy", "s.npy", "L.npy"}) save(name, A);
    fs::create_symlink("Q.npy", "link.npy");
    fs::create_hard_link("Q.npy", "hard.npy");
    fs::create_directory("below");
    const std::string before = contents("Q.npy");
    const auto names = names_in(".");
    const int code = exit_code_of(ErrorCode::UnwritableFile);
    expect_error(quoin_run("factor Q.npy --out ."), code, {"Q.npy", "input"});
    expect_error(quoin_run("factor below/../link.npy --out below/.."), code, {"Q.npy", "input"});
    expect_error(quoin_run("factor hard.npy --out . --memory 20KiB"), code, {"Q.npy", "input"});
    expect_error(quoin_run("factor - --out .", "Q.npy"), code, {"Q.npy", "input"});
    expect_error(quoin_run("svd s.npy --out . --values-only"), code, {"s.npy", "input"});
    expect_error(quoin_run("rpca L.npy --out ."), code, {"L.npy", "input"});
    expect_error(quoin_run("lstsq Q.npy s.npy --out hard.npy"), code, {"hard.npy", "input"});
    expect_error(quoin_run("lstsq s.npy link.npy --out Q.npy"), code, {"Q.npy", "input"});
    EXPECT_EQ(names_in("."), names);
    EXPECT_EQ(contents("Q.npy"), before);
    // an input that this run does not write may lie there
    EXPECT_EQ(quoin_run("factor Q.npy --out . --r-only").exit_code, 0);
    EXPECT_EQ(contents("Q.npy"), before);
}

TEST_F(Cli, OutputsOfOtherOptionsAreNotLeftBeside) {
    save("A.npy", random_normal<double>(2000, 7));
    save("B.npy", random_normal<double>(9, 2));
    const int code = exit_code_of(ErrorCode::UnwritableFile);
    ASSERT_EQ(quoin_run("factor A.npy --out d").exit_code, 0);
    const std::string R = contents("d/R.npy");
    expect_error(quoin_run("factor B.npy --out d --r-only"), code, {"d/Q.npy", "earlier run"});
    expect_error(quoin_run("factor A.npy --out d --r-only --memory 40KiB"), code, {"d/Q.npy", "earlier run"});
    expect_error(quoin_run("factor B.npy --out d --compact-wy full"), code, {"d/Q.npy", "earlier run"});
    EXPECT_EQ(names_in("d"), (std::vector<std::string>{"Q.npy", "R.npy"}));
    EXPECT_EQ(contents("d/R.npy"), R);
    EXPECT_EQ(quoin_run("factor B.npy --out d").exit_code, 0) << "the same outputs take their places";
    ASSERT_EQ(quoin_run("svd A.npy --out e").exit_code, 0);
    expect_error(quoin_run("svd A.npy --out e --values-only"), code, {"e/U.npy", "earlier run"});
    std::ofstream("e/report.json") << "{}";
    expect_error(quoin_run("rpca A.npy --out e"), code, {"e/report.json", "earlier run"});
}

// ---- factor, larger than the memory cap -----------------------------------------------------------------------------

// A, R, and R on its way to the file; with T and S in one m×n array, V and S on their ways
TEST_F(Cli, FactorStaysInMemoryWhereItFits) {
    save("A.npy", random_normal<double>(500, 500));
    for (const auto& [options, matrices] : {std::pair<std::string, double>{"", 3.5},
                                            {"--r-only", 2.5},
                                            {"--verify", 4.5},
                                            {"--compact-wy full --keep-s", 5.5}}) {
        const auto memory = std::to_string(static_cast<Index>(matrices * 500 * 500 * 8)) + "B ";
        const Outcome outcome = quoin_run("factor A.npy --out d --restart --json --memory " + memory + options);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_NE(json_value(outcome.out, "method"), "\"left-looking\"") << options;
        std::filesystem::remove_all("d");
    }
}

TYPED_TEST(CliTyped, StreamsWhatDoesNotFit) {
    const auto A = random_normal<TypeParam>(6001, 24);
    save("A.npy", A);
    const Outcome outcome = quoin_run("factor A.npy --out factors --json --verify --memory 300KiB");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(json_value(outcome.out, "method"), "\"streaming-tsqr\"");
    expect_factors(A, "factors");

    // --verify prints the errors of the files on disk.
    Context<Host> ctx;
    const auto Q = load<TypeParam>("factors/Q.npy"), R = load<TypeParam>("factors/R.npy");
    EXPECT_NEAR(json_number(outcome.out, "orthogonality"), orthogonality<TypeParam>(ctx, Q.view()),
                24 * unit_roundoff<double> + 1e-3 * orthogonality<TypeParam>(ctx, Q.view()));
    EXPECT_NEAR(json_number(outcome.out, "residual"), residual<TypeParam>(ctx, A.view(), Q.view(), R.view()),
                1e-2 * residual<TypeParam>(ctx, A.view(), Q.view(), R.view()));

    ASSERT_EQ(quoin_run("factor A.npy --out r --r-only --memory 300KiB").exit_code, 0);
    EXPECT_EQ(names_in("r"), std::vector<std::string>{"R.npy"});
    const auto R_only = load<TypeParam>("r/R.npy");
    for (Index j = 0; j < 24; ++j)
        for (Index i = 0; i <= j; ++i)
            EXPECT_NEAR(std::abs(R_only(i, j)), std::abs(R(i, j)), 1e4 * unit_roundoff<TypeParam> * 24);
}

TEST_F(Cli, StreamsRankDeficientMatrices) {
    auto A = random_normal<double>(5000, 16);
    for (Index i = 0; i < 5000; ++i) {
        A(i, 3) = 0;
        A(i, 9) = A(i, 2);
        A(i, 15) = 1e-12 * A(i, 15) + A(i, 0);
    }
    save("A.npy", A);
    const Outcome outcome = quoin_run("factor A.npy --out factors --json --memory 300KiB");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(json_value(outcome.out, "method"), "\"streaming-tsqr\"");
    expect_factors(A, "factors");
}

/// 2 MB are 1.907 MiB.
TEST_F(Cli, ACapIsToldAsItWasGiven) {
    save("A.npy", random_normal<double>(20000, 20));
    const Outcome outcome = quoin_run("factor A.npy --out d --memory 2MB");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find(", within 2 MB\n"), std::string::npos) << outcome.out;
    // a rate has at least one digit that is not 0
    EXPECT_TRUE(std::regex_search(outcome.out, std::regex(" read at [1-9][0-9.]* [KMG]?B/s"))) << outcome.out;
}

TEST_F(Cli, TooSmallACapNamesTheSmallestThatWorks) {
    save("A.npy", random_normal<double>(1500, 12));
    for (const std::string flags : {"", " --verify", " --r-only", " --method householder"}) {
        SCOPED_TRACE(flags);
        const Outcome refused = quoin_run("factor A.npy --out factors --memory 1KiB" + flags);
        expect_error(refused, exit_code_of(ErrorCode::OutOfMemory), {"A.npy", "1500 x 12", "--memory"});
        EXPECT_FALSE(fs::exists("factors"));

        std::smatch smallest;
        ASSERT_TRUE(std::regex_search(refused.err, smallest, std::regex("--memory (\\d+)(KiB|MiB)"))) << refused.err;
        const std::string cap = smallest[1].str() + smallest[2].str();
        const std::string below = std::to_string(std::stol(smallest[1]) * 95 / 100) + smallest[2].str();
        EXPECT_EQ(quoin_run("factor A.npy --out factors --memory " + cap + flags).exit_code, 0);
        EXPECT_EQ(quoin_run("factor A.npy --out more --memory " + below + flags).exit_code,
                  exit_code_of(ErrorCode::OutOfMemory));
        fs::remove_all("factors");
    }
}

// ---- Bad input: one sentence, an exit code, nothing left ------------------------------------------------------------

TEST_F(Cli, NonFiniteEntriesAreNamed) {
    auto A = random_normal<double>(5000, 10);
    A(4321, 7) = std::numeric_limits<double>::quiet_NaN();
    save("A.npy", A);
    for (const std::string flags : {"", " --r-only", " --memory 120KiB", " --r-only --memory 120KiB"}) {
        SCOPED_TRACE(flags);
        expect_error(quoin_run("factor A.npy --out factors" + flags), exit_code_of(ErrorCode::NonFiniteEntry),
                     {"A.npy", "row 4321", "column 7"});
        EXPECT_FALSE(fs::exists("factors"));
    }
    expect_error(quoin_run("svd A.npy --out d"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"A.npy", "row 4321", "column 7"});
    expect_error(quoin_run("demo A.npy --json"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"A.npy", "row 4321", "column 7"});
    EXPECT_EQ(names_in("."), std::vector<std::string>{"A.npy"});
}

TEST_F(Cli, UnreadableFiles) {
    const int code = exit_code_of(ErrorCode::UnreadableFile);
    expect_error(quoin_run("factor missing.npy --out d"), code, {"missing.npy"});
    fs::create_directory("folder");
    expect_error(quoin_run("factor folder --out d"), code, {"folder"});
    save("A.npy", random_normal<double>(50, 4));
    const std::string whole = contents("A.npy");
    std::ofstream("short.npy", std::ios::binary) << whole.substr(0, whole.size() - 1);
    for (const std::string command : {"factor short.npy --out d", "svd short.npy --out d", "demo short.npy",
                                      "lstsq short.npy A.npy --out x.npy", "lstsq A.npy short.npy --out x.npy"}) {
        SCOPED_TRACE(command);
        expect_error(quoin_run(command), code, {"short.npy"});
    }
    std::ofstream("words.csv") << "1,2\n3,four\n";
    expect_error(quoin_run("factor words.csv --out d"), code, {"words.csv"});
    EXPECT_EQ(names_in("."), (std::vector<std::string>{"A.npy", "folder", "short.npy", "words.csv"}));
}

TEST_F(Cli, UnwritableOutputsAreFoundBeforeTheComputation) {
    auto A = random_normal<double>(50, 4);
    A(0, 0) = std::numeric_limits<double>::infinity();  // the computation itself would fail with another code
    save("A.npy", A);
    std::ofstream("file") << "text";
    fs::create_directories("taken/R.npy");
    fs::create_directories("taken/s.npy");
    const int code = exit_code_of(ErrorCode::UnwritableFile);
    for (const std::string out : {"file", "file/below", "/proc/nowhere", "taken"}) {
        SCOPED_TRACE(out);
        expect_error(quoin_run("factor A.npy --out " + out), code, {out});
    }
    expect_error(quoin_run("factor A.npy --r-only --memory 6KiB --out taken"), code, {"taken"});
    expect_error(quoin_run("svd A.npy --values-only --out taken"), code, {"taken"});
    save("b.npy", random_normal<double>(50, 1));
    for (const std::string out : {"nowhere/x.npy", "file/x.npy", "taken"})
        expect_error(quoin_run("lstsq A.npy b.npy --out " + out), code, {out});
    EXPECT_EQ(contents("file"), "text");
    EXPECT_EQ(names_in("taken"), (std::vector<std::string>{"R.npy", "s.npy"}));
    EXPECT_EQ(names_in("."), (std::vector<std::string>{"A.npy", "b.npy", "file", "taken"}));
}

TEST_F(Cli, FullDiskIsFoundBeforeTheComputation) {
    auto A = random_normal<double>(4000, 50);
    A(0, 0) = std::numeric_limits<double>::infinity();  // the computation itself would fail with another code
    save("A.npy", A);
    // a limit on the size of files stands for a full disk: R fits, Q does not
    struct rlimit before {};
    getrlimit(RLIMIT_FSIZE, &before);
    const struct rlimit small = {200000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const Outcome outcome = quoin_run("factor A.npy --out factors");
    setrlimit(RLIMIT_FSIZE, &before);
    expect_error(outcome, exit_code_of(ErrorCode::UnwritableFile), {"Q.npy"});
    EXPECT_FALSE(fs::exists("factors"));
}

TEST_F(Cli, FailureLeavesEarlierOutputsAlone) {
    save("A.npy", random_normal<double>(50, 4));
    ASSERT_EQ(quoin_run("factor A.npy --out factors").exit_code, 0);
    const std::string Q = contents("factors/Q.npy"), R = contents("factors/R.npy");
    auto bad = random_normal<double>(50, 4);
    bad(49, 3) = std::numeric_limits<double>::quiet_NaN();
    save("bad.npy", bad);
    EXPECT_NE(quoin_run("factor bad.npy --out factors").exit_code, 0);
    EXPECT_EQ(names_in("factors"), (std::vector<std::string>{"Q.npy", "R.npy"}));
    EXPECT_EQ(contents("factors/Q.npy"), Q);
    EXPECT_EQ(contents("factors/R.npy"), R);
}

TEST_F(Cli, BreakdownOfAMethodAskedForByName) {
    auto A = random_normal<double>(500, 6);
    for (Index i = 0; i < 500; ++i) A(i, 5) = A(i, 4);
    save("A.npy", A);
    expect_error(quoin_run("factor A.npy --out d --method cholesky-qr2"), exit_code_of(ErrorCode::NumericalBreakdown),
                 {});
    EXPECT_FALSE(fs::exists("d"));
    ASSERT_EQ(quoin_run("factor A.npy --out d").exit_code, 0);
    expect_factors(A, "d");
}

TEST_F(Cli, ResultsThatCannotBePrintedAreAnError) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);  // nobody reads
    signal(SIGPIPE, SIG_IGN);
    const Outcome outcome = Process({"info"}, ends[1]).wait();
    signal(SIGPIPE, SIG_DFL);
    close(ends[1]);
    EXPECT_EQ(outcome.exit_code, exit_code_of(ErrorCode::UnwritableFile));
    EXPECT_NE(outcome.err.find("standard output"), std::string::npos) << outcome.err;
}

TEST_F(Cli, EveryCommandNoticesAFullDevice) {
    const auto A = random_normal<double>(60, 4);
    save("A.npy", A);
    save("b.npy", random_normal<double>(60, 1));
    for (const char* line :
         {"factor A.npy --out o --json", "factor A.npy --out o", "lstsq A.npy b.npy --out x.npy --json",
          "svd A.npy --out o2 --json", "plan 60x4 --json", "info --json", "--version", "--help", "factor --help",
          "--describe", "rpca A.npy --out o3 --json", "lyapunov lorenz63 --time 5 --json",
          "bench 60x4 --repeat 1 --json"}) {
        SCOPED_TRACE(line);
        std::istringstream words(line);
        const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
        ASSERT_GE(full, 0);
        const Outcome outcome = Process({std::istream_iterator<std::string>(words), {}}, full).wait();
        close(full);
        EXPECT_EQ(outcome.exit_code, exit_code_of(ErrorCode::UnwritableFile));
        EXPECT_NE(outcome.err.find("quoin: standard output: "), std::string::npos) << outcome.err;
    }
}

#ifndef QUOIN_SANITIZED
/// OpenBLAS tries for ever to get a buffer that the limit does not leave it, as it is loaded.
TEST_F(Cli, LimitsOfMemoryAndThreadsAreNoHangAndNoCrash) {
    save("A.npy", random_normal<double>(60, 4));
    const auto within = [](const std::string& limit, const std::string& line) {
        return Process("/bin/sh", {"-c", limit + " exec timeout 60 " + Process::quoin_path() + " " + line}).wait();
    };
    const Outcome of_version = within("ulimit -v 200000;", "--version");
    EXPECT_EQ(of_version.exit_code, 0);
    EXPECT_EQ(of_version.out, fmt::format("quoin {}\n", version()));
    expect_error(within("ulimit -v 200000;", "factor A.npy --out o"), exit_code_of(ErrorCode::OutOfMemory),
                 {"ulimit -v"});
    EXPECT_EQ(within("OMP_NUM_THREADS=100000", "factor A.npy --out o").exit_code, 0);
}
#endif

/// Man pages and completion are made from this text.
TEST_F(Cli, DescribesItsCommandsAndOptions) {
    const std::string text = quoin_run("--describe").out;
    for (const char* part :
         {R"("name": "factor", "description": ")", R"("names": "--dtype", "positional": false, "value": "TYPE")",
          R"("choices": "auto householder tsqr caqr cholesky-qr2 randomized-cholesky-qr mgs cgs")",
          R"("choices": "host cuda auto")", R"("names": "FILE", "positional": true)", R"("many": true)",
          R"("required": true)", R"("group": "Reading CSV)"})
        EXPECT_NE(text.find(part), std::string::npos) << part;
    EXPECT_EQ(text.find("--describe"), std::string::npos) << "it is not for users";
}

TEST_F(Cli, InterruptLeavesNothing) {
    save("A.npy", random_normal<double>(100000, 40));
    for (const int signal : {SIGINT, SIGTERM}) {
        Process process({"factor", "A.npy", "--out", "new/factors"});
        const auto start = std::chrono::steady_clock::now();
        const auto begun = [] { return fs::exists("new/factors") && !names_in("new/factors").empty(); };
        while (!begun() && std::chrono::steady_clock::now() - start < std::chrono::seconds(20))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        process.send(signal);
        const Outcome outcome = process.wait();
        EXPECT_EQ(outcome.exit_code, 128 + signal) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_NE(outcome.err.find("interrupted"), std::string::npos);
        EXPECT_FALSE(fs::exists("new"));
    }
}

// ---- lstsq ----------------------------------------------------------------------------------------------------------

/// b = A x + noise orthogonal to nothing in particular; returns x.
template <class T>
Matrix<T> save_system(Index m, Index n, Index p) {
    const auto A = random_normal<T>(m, n, 1), X = random_normal<T>(n, p, 2);
    Matrix<T> B(m, p);
    for (Index j = 0; j < p; ++j)
        for (Index i = 0; i < m; ++i) {
            double sum = 0;
            for (Index l = 0; l < n; ++l) sum += static_cast<double>(A(i, l)) * X(l, j);
            B(i, j) = static_cast<T>(sum);
        }
    save("A.npy", A);
    save("b.npy", B);
    return random_normal<T>(n, p, 2);
}

TEST_F(Cli, LeastSquaresInMixedPrecisionSaysWhatItDid) {
    save_system<double>(3000, 12, 3);
    const std::string command = "lstsq A.npy b.npy --out x.npy --mixed-precision";
    Outcome outcome = quoin_run(command + " --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_GT(std::stoi(json_value(outcome.out, "refinement_steps")), 0) << outcome.out;
    EXPECT_EQ(json_value(outcome.out, "fell_back"), "\"\"");
    EXPECT_NE(quoin_run(command).out.find("of refinement to f64"), std::string::npos);
    const int refused = exit_code_of(ErrorCode::InvalidArgument);
    expect_error(quoin_run(command + " --memory 120KiB"), refused, {"--mixed-precision", "streamed"});
    save("A.npy", filled<double>(3000, 2, 1));
    outcome = quoin_run(command + " --json");
    EXPECT_NE(json_value(outcome.out, "fell_back").find("condition"), std::string::npos) << outcome.out;
    EXPECT_NE(quoin_run(command).out.find("precision      f64 after 0 steps"), std::string::npos);
    save_system<float>(30, 2, 1);
    expect_error(quoin_run(command), refused, {"mixed_precision", "f32"});
}

TYPED_TEST(CliTyped, LeastSquaresFindsTheSolution) {
    for (const std::string memory : {"", " --memory 120KiB"}) {
        SCOPED_TRACE(memory);
        const auto X = save_system<TypeParam>(3000, 12, 3);
        const Outcome outcome = quoin_run("lstsq A.npy b.npy --out x.npy --json" + memory);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_EQ(json_value(outcome.out, "method") == "\"streaming-tsqr\"", !memory.empty()) << outcome.out;
        EXPECT_EQ(json_keys(outcome.out),
                  (std::vector<std::string>{"rows", "cols", "right_hand_sides", "dtype", "method", "seconds", "gflops",
                                            "device", "condition", "rank", "dependent", "residual_norms"}));
        const auto solution = load<TypeParam>("x.npy");
        ASSERT_EQ(solution.rows(), 12);
        ASSERT_EQ(solution.cols(), 3);
        for (Index j = 0; j < 3; ++j)
            for (Index i = 0; i < 12; ++i) EXPECT_NEAR(solution(i, j), X(i, j), 2000 * unit_roundoff<TypeParam>);
    }
}

TEST_F(Cli, OneRightHandSideGivesOneDimension) {
    save_system<double>(100, 5, 1);
    ASSERT_EQ(quoin_run("lstsq A.npy b.npy --out x.npy").exit_code, 0);
    EXPECT_NE(contents("x.npy").find("(5,)"), std::string::npos);
}

TEST_F(Cli, TheSolutionAsText) {
    const auto X = save_system<double>(40, 5, 2);
    ASSERT_EQ(quoin_run("lstsq A.npy b.npy --out x.npy").exit_code, 0);
    for (const std::string name : {"x.txt", "x.csv"}) {
        ASSERT_EQ(quoin_run("lstsq A.npy b.npy --out " + name).exit_code, 0);
        EXPECT_EQ(lines_of(contents(name)).size(), 5u);
        const auto text = load<double>(name), binary = load<double>("x.npy");
        EXPECT_TRUE(same_bits<double>(text.view(), binary.view()));
    }
}

TEST_F(Cli, LstsqDoesNotTakeDecimalCommasForTwoRightHandSides) {
    std::ofstream("A.csv") << "1;1,0\n1;2,0\n1;3,5\n";
    std::ofstream("b.csv") << "1,5\n2,5\n4,0\n";
    expect_error(quoin_run("factor A.csv --out d"), exit_code_of(ErrorCode::UnreadableFile),
                 {"A.csv", "line 1, field 2: '1,0'", "--decimal ,"});
    ASSERT_EQ(quoin_run("lstsq A.csv b.csv --out x.npy --decimal ,").exit_code, 0);
    const auto x = load<double>("x.npy");
    ASSERT_EQ(x.rows(), 2);
    ASSERT_EQ(x.cols(), 1);
    EXPECT_NEAR(x(0, 0), 0.5, 1e-14);
    EXPECT_NEAR(x(1, 0), 1, 1e-14);
    ASSERT_EQ(quoin_run("lstsq A.csv b.csv --out x.npy --decimal , --columns 2").exit_code, 0);  // of A
    EXPECT_NEAR(load<double>("x.npy")(0, 0), (1.5 + 5 + 14) / (1 + 4 + 12.25), 1e-14);
    std::ofstream("A.csv") << "1,1\n1,2\n1,3\n";
    expect_error(quoin_run("lstsq A.csv b.csv --out y.npy"), exit_code_of(ErrorCode::UnreadableFile),
                 {"b.csv", "line 1, '1,5'", "--decimal ,", "--delimiter ,"});
    EXPECT_FALSE(fs::exists("y.npy"));
    ASSERT_EQ(quoin_run("lstsq A.csv b.csv --out y.npy --delimiter ,").exit_code, 0);
    EXPECT_EQ(load<double>("y.npy").cols(), 2);
}

/// Columns 1 and 1 ± 0.1 have σ₂/σ₁ of about 0.05.
TEST_F(Cli, RcondIsHeededWithAndWithoutMemory) {
    Matrix<double> A(4000, 2), b(4000, 1);
    for (Index i = 0; i < 4000; ++i) {
        A(i, 0) = 1;
        A(i, 1) = i % 2 == 0 ? 1.1 : 0.9;
        b(i, 0) = 1;
    }
    save("A.npy", A);
    save("b.npy", b);
    for (const std::string memory : {"", " --memory 20KiB"}) {
        SCOPED_TRACE(memory);
        const Outcome solved = quoin_run("lstsq A.npy b.npy --out x.npy --json --rcond 0.01" + memory);
        ASSERT_EQ(solved.exit_code, 0) << solved.err;
        EXPECT_EQ(json_value(solved.out, "method") == "\"streaming-tsqr\"", !memory.empty()) << solved.out;
        EXPECT_EQ(json_value(solved.out, "rank"), "2");
        const Outcome truncated = quoin_run("lstsq A.npy b.npy --out x.npy --json --rcond 0.5" + memory);
        ASSERT_EQ(truncated.exit_code, 0) << truncated.err;
        EXPECT_EQ(json_value(truncated.out, "rank"), "1");
        expect_error(quoin_run("lstsq A.npy b.npy --out y.npy --refuse-deficient --rcond 0.5" + memory),
                     exit_code_of(ErrorCode::RankDeficient), {"nearly linearly dependent"});
    }
}

/// Equal columns have equal coefficients in the solution of least norm.
TEST_F(Cli, LeastSquaresOfDeficientRank) {
    save_system<double>(2000, 6, 1);
    auto A = load<double>("A.npy");
    for (Index i = 0; i < 2000; ++i) A(i, 5) = A(i, 1);
    save("deficient.npy", A);
    for (const std::string memory : {"", " --memory 40KiB"}) {
        SCOPED_TRACE(memory);
        const Outcome told = quoin_run("lstsq deficient.npy b.npy --out x.npy" + memory);
        ASSERT_EQ(told.exit_code, 0) << told.err;
        EXPECT_NE(told.out.find("rank           5 of 6\n"), std::string::npos) << told.out;
        EXPECT_NE(told.out.find("dependent      columns "), std::string::npos) << told.out;
        const auto x = load<double>("x.npy");
        EXPECT_NEAR(x(1, 0), x(5, 0), 1e-13);
        const Outcome outcome = quoin_run("lstsq deficient.npy b.npy --out x.npy --json" + memory);
        EXPECT_TRUE(json_value(outcome.out, "dependent") == "[5]" || json_value(outcome.out, "dependent") == "[1]")
            << outcome.out;
    }
    Matrix<double> twice(1, 3), three(1, 1);
    std::fill_n(twice.data(), 3, 1.0);
    three(0, 0) = 3;
    save("wide.npy", twice);
    save("three.npy", three);
    const Outcome wide = quoin_run("lstsq wide.npy three.npy --out x.npy");
    EXPECT_NE(wide.out.find("rank           1 of 1\n"), std::string::npos) << wide.out;
    EXPECT_EQ(wide.out.find("dependent"), std::string::npos) << wide.out;
}

/// Data and values of tests/regression_test.cpp, to the digits that are printed.
TEST_F(Cli, TheRankAndWhatDecidesIt) {
    std::ofstream("A.csv") << "a,b,c,d\n1,2,3,1\n2,1,3,1\n5,5,10,1\n4,1,5,1\n7,3,10,1\n";
    const Outcome values = quoin_run("svd A.csv --values-only");
    ASSERT_EQ(values.exit_code, 0) << values.err;
    EXPECT_NE(values.out.find("rank           3 of 4: σ_3 = 1.017e+00 is above 1.1e-15 σ₁ = 2.149e-14, σ_4 = "),
              std::string::npos)
        << values.out;
    const Outcome coarse = quoin_run("svd A.csv --values-only --tol 0.1 --json");
    EXPECT_EQ(json_value(coarse.out, "rank"), "2");
    EXPECT_EQ(json_value(coarse.out, "tolerance"), "0.1");
    EXPECT_TRUE(names_in(".") == std::vector<std::string>{"A.csv"}) << "nothing is written without --out";
    expect_error(quoin_run("svd A.csv"), usage_error, {"--out"});
    const Outcome pivoted = quoin_run("factor A.csv --pivot --out d");
    EXPECT_NE(pivoted.out.find("rank           3 of 4: |r_jj| falls from 1.559e+01 to "), std::string::npos)
        << pivoted.out;
    EXPECT_NE(pivoted.out.find("dependent      columns 0 (a) "), std::string::npos) << pivoted.out;
    save("zero.npy", filled<double>(5, 3, 0));
    EXPECT_NE(quoin_run("svd zero.npy --values-only").out.find("rank           0 of 3: σ_1 = 0.000e+00 is not"),
              std::string::npos);
    save("empty.npy", Matrix<double>(0, 3));
    EXPECT_NE(quoin_run("svd empty.npy --values-only").out.find("rank           0 of 0"), std::string::npos);
    EXPECT_EQ(quoin_run("factor empty.npy --pivot --out e").exit_code, 0);
    // few columns leave little of a matrix of low rank and noise
    const Outcome limited = quoin_run("factor A.csv --pivot --tol-frobenius 0.5 --out f --json");
    EXPECT_EQ(json_value(limited.out, "rank"), "1");
}

TEST_F(Cli, StatisticsOfARegression) {
    std::ofstream("A.csv") << "height,width\n1.2,0.5\n-0.7,1.1\n3.1,-0.4\n0.4,2.3\n2.2,0\n-1.5,1.7\n0.9,-1.2\n1.8,0.8\n"
                              "-0.3,2.9\n2.7,-0.6\n0.1,1.3\n-2,0.2\n";
    std::ofstream("b.csv") << "price\n3.9\n1.2\n6.8\n4.4\n5.1\n0.3\n1\n5.6\n4.9\n5.9\n2.7\n-2.1\n";
    std::ofstream("w.csv") << "1\n2\n0.5\n1\n3\n1\n0\n2\n1\n0.25\n1\n4\n";
    const Outcome table = quoin_run("lstsq A.csv b.csv --stats --intercept");
    ASSERT_EQ(table.exit_code, 0) << table.err;
    EXPECT_EQ(lines_of(table.out), (std::vector<std::string>{
                                       "price:",
                                       "coefficient      estimate    std. error    t value   Pr(>|t|)",
                                       "(intercept)       1.11679      0.152823     7.3077   4.53e-05",
                                       "height            1.91634     0.0785566    24.3944   1.57e-09",
                                       "width             1.29761      0.105104     12.346   6.04e-07",
                                       "residual standard error 0.363651 on 9 degrees of freedom",
                                       "R² 0.985102, adjusted R² 0.981791",
                                       "F 297.556 on 2 and 9 degrees of freedom, p value 6.01e-09",
                                   }));

    const Outcome weighted = quoin_run("lstsq A.csv b.csv --intercept --weights w.csv --json --out x.csv");
    ASSERT_EQ(weighted.exit_code, 0) << weighted.err;
    EXPECT_EQ(json_value(weighted.out, "observations"), "11");
    EXPECT_EQ(json_value(weighted.out, "right_hand_side"), "\"price\"");
    const std::string width = weighted.out.substr(weighted.out.find("{\"name\": \"width\""));
    EXPECT_EQ(json_number(width, "estimate"), load<double>("x.csv")(2, 0)) << "the digits of a double";
    EXPECT_NEAR(json_number(width, "estimate"), 1.23697920460668, 1e-14);
    EXPECT_NEAR(json_number(width, "standard_error"), 0.103808, 5e-7);
    EXPECT_NEAR(json_number(width, "t_value"), 11.916, 5e-4);
    EXPECT_NEAR(json_number(width, "p_value"), 2.26174e-06, 5e-12);
    EXPECT_NEAR(json_number(weighted.out, "f_value"), 600.673, 5e-4);

    // columns without names, by blocks of rows, and a ridge
    save("A.npy", random_normal<float>(20000, 6));
    save("b.npy", random_normal<float>(20000, 2, 5));
    const Outcome whole = quoin_run("lstsq A.npy b.npy --stats"),
                  blocks = quoin_run("lstsq A.npy b.npy --stats --memory 200KiB");
    ASSERT_EQ(blocks.exit_code, 0) << blocks.err;
    EXPECT_NE(whole.out.find("right-hand side 1:\n"), std::string::npos) << whole.out;
    EXPECT_NE(whole.out.find("\nx6 "), std::string::npos) << whole.out;
    EXPECT_EQ(lines_of(whole.out)[8].substr(0, 30), lines_of(blocks.out)[8].substr(0, 30));
    EXPECT_NE(quoin_run("lstsq A.npy b.npy --ridge 10").out.find("ridge 10: "), std::string::npos);
}

/// b is a column of A's file: the same answers as from two files, to the bit.
TEST_F(Cli, LstsqTakesATargetColumn) {
    std::ofstream("t.csv") << "height,price,width\n1.2,3.9,0.5\n-0.7,1.2,1.1\n3.1,6.8,-0.4\n0.4,4.4,2.3\n2.2,5.1,0\n";
    std::ofstream("A.csv") << "height,width\n1.2,0.5\n-0.7,1.1\n3.1,-0.4\n0.4,2.3\n2.2,0\n";
    std::ofstream("b.csv") << "price\n3.9\n1.2\n6.8\n4.4\n5.1\n";
    ASSERT_EQ(quoin_run("lstsq A.csv b.csv --out x.npy").exit_code, 0);
    const Outcome table = quoin_run("lstsq A.csv b.csv --stats --intercept");
    for (const std::string target : {"price", "2"}) {
        ASSERT_EQ(quoin_run("lstsq t.csv --out y.npy --target " + target).exit_code, 0);
        EXPECT_TRUE(same_bits<double>(load<double>("y.npy").view(), load<double>("x.npy").view()));
        const Outcome outcome = quoin_run("lstsq t.csv --stats --intercept --target " + target);
        EXPECT_EQ(outcome.out, table.out) << outcome.err;
    }

    // an .npy file, whole and by blocks of rows
    const Matrix<double> Ab = random_normal<double>(20000, 6);
    save("Ab.npy", Ab);
    Matrix<double> A(20000, 5), b(20000, 1);
    for (Index i = 0; i < 20000; ++i)
        for (Index j = 0; j < 6; ++j) (j == 2 ? b(i, 0) : A(i, j - (j > 2))) = Ab(i, j);
    save("A.npy", A);
    save("b.npy", b);
    for (const std::string memory : {"", " --memory 200KiB"}) {
        ASSERT_EQ(quoin_run("lstsq A.npy b.npy --out x.npy" + memory).exit_code, 0);
        ASSERT_EQ(quoin_run("lstsq Ab.npy --target 3 --out y.npy" + memory).exit_code, 0);
        EXPECT_TRUE(same_bits<double>(load<double>("y.npy").view(), load<double>("x.npy").view())) << memory;
    }

    std::ofstream("nan.csv") << "a,b,c\n1,2,3\n2,1,NA\n5,5,10\n4,1,5\n";
    expect_error(quoin_run("lstsq nan.csv --header --target b --out z.npy"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"nan.csv", "row 1, column 2 "});
    expect_error(quoin_run("lstsq nan.csv --header --target c --stats"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"nan.csv", "row 1, column 2 "});
    for (const std::string target : {"size", "0", "4", "2x"})
        expect_error(quoin_run("lstsq t.csv --header --out z.npy --target " + target),
                     exit_code_of(ErrorCode::InvalidArgument), {"t.csv", target, "height, price, width"});
    expect_error(quoin_run("lstsq t.csv b.csv --target 1 --out z.npy"), usage_error, {"--target"});
}

TEST_F(Cli, StatisticsNameWhatIsWrong) {
    std::ofstream("A.csv") << "a,b,c\n1,2,3\n2,1,3\n5,5,10\n4,1,5\n";
    std::ofstream("b.csv") << "1\n2\n3\n5\n";
    std::ofstream("w.csv") << "1\n-2\n1\n1\n";
    std::ofstream("nan.csv") << "1\n2\nNA\n5\n";
    std::ofstream("with_nan.csv") << "1,2\n2,3\n3,4\n5,NA\n";
    EXPECT_NE(quoin_run("lstsq A.csv b.csv --stats").out.find("earlier columns: c\n"), std::string::npos);
    EXPECT_NE(quoin_run("lstsq A.csv b.csv --out x.csv").out.find("dependent      columns 2 (c)"), std::string::npos);
    const auto expect_in = [](const Outcome& outcome, ErrorCode code, const std::string& part) {
        EXPECT_EQ(outcome.exit_code, exit_code_of(code));
        EXPECT_EQ(outcome.out, "");
        EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    };
    expect_in(quoin_run("lstsq A.csv b.csv --stats --refuse-deficient"), ErrorCode::RankDeficient, "column c depends");
    expect_in(quoin_run("lstsq A.csv b.csv --weights w.csv"), ErrorCode::InvalidArgument,
              "w.csv: the weight in row 1 is -2");
    expect_in(quoin_run("lstsq A.csv b.csv --weights A.csv"), ErrorCode::InvalidArgument, "A.csv: is 4 x 3");
    expect_in(quoin_run("lstsq A.csv nan.csv --intercept"), ErrorCode::NonFiniteEntry, "nan.csv");
    const Outcome nan = quoin_run("lstsq with_nan.csv b.csv --intercept");
    expect_in(nan, ErrorCode::NonFiniteEntry, "with_nan.csv");
    expect_in(nan, ErrorCode::NonFiniteEntry, "row 3, column 1 ");
    expect_error(quoin_run("lstsq A.csv b.csv --stats --rcond 0.1"), usage_error, {"--rcond", "--stats"});
    expect_error(quoin_run("lstsq A.csv b.csv --stats --method mgs"), usage_error, {"--method", "streaming-tsqr"});
    expect_error(quoin_run("lstsq A.csv b.csv"), usage_error, {"--out"});
}

TEST_F(Cli, UnderdeterminedSystemsAreSolved) {
    save_system<double>(5, 9, 1);
    ASSERT_EQ(quoin_run("lstsq A.npy b.npy --out x.npy").exit_code, 0);
    const auto A = load<double>("A.npy"), b = load<double>("b.npy"), x = load<double>("x.npy");
    for (Index i = 0; i < 5; ++i) {
        double sum = 0;
        for (Index j = 0; j < 9; ++j) sum += A(i, j) * x(j, 0);
        EXPECT_NEAR(sum, b(i, 0), 1e-12);
    }
}

TEST_F(Cli, LeastSquaresRefusesWhatItCannotSolve) {
    save_system<double>(2000, 6, 1);
    auto A = load<double>("A.npy");
    for (Index i = 0; i < 2000; ++i) A(i, 5) = 2 * A(i, 1);
    save("deficient.npy", A);
    for (const std::string memory : {"", " --memory 40KiB"}) {
        expect_error(quoin_run("lstsq deficient.npy b.npy --out x.npy --refuse-deficient" + memory),
                     exit_code_of(ErrorCode::RankDeficient), {"columns 1 and 5 of the 2000x6 matrix"});
        save("short.npy", random_normal<double>(1999, 1));
        expect_error(quoin_run("lstsq A.npy short.npy --out x.npy" + memory), exit_code_of(ErrorCode::InvalidArgument),
                     {"short.npy", "1999", "2000"});
        auto b = load<double>("b.npy");
        b(1234, 0) = std::numeric_limits<double>::infinity();
        save("bad.npy", b);
        expect_error(quoin_run("lstsq A.npy bad.npy --out x.npy" + memory), exit_code_of(ErrorCode::NonFiniteEntry),
                     {"bad.npy", "row 1234", "column 0"});
        auto bad_A = load<double>("A.npy");
        bad_A(777, 2) = std::numeric_limits<double>::quiet_NaN();
        save("bad_A.npy", bad_A);
        expect_error(quoin_run("lstsq bad_A.npy b.npy --out x.npy" + memory), exit_code_of(ErrorCode::NonFiniteEntry),
                     {"bad_A.npy", "row 777", "column 2"});
    }
    EXPECT_FALSE(fs::exists("x.npy"));
}

// ---- svd ------------------------------------------------------------------------------------------------------------

TYPED_TEST(CliTyped, SvdOfEitherShape) {
    Context<Host> ctx;
    std::vector<std::pair<Index, Index>> shapes = {{1000, 12}, {9, 40}, {20, 21}};
    if (sizeof(TypeParam) == 8) shapes.emplace_back(1, 1);
    for (const auto& [m, n] : shapes) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index k = std::min(m, n);
        const auto A = random_normal<TypeParam>(m, n);
        save("A.npy", A);
        ASSERT_EQ(quoin_run("svd A.npy --out d").exit_code, 0);
        EXPECT_EQ(names_in("d"), (std::vector<std::string>{"U.npy", "Vt.npy", "s.npy"}));
        const auto U = load<TypeParam>("d/U.npy"), s = load<TypeParam>("d/s.npy");
        auto S_Vt = load<TypeParam>("d/Vt.npy");
        for (Index j = 0; j < n; ++j)
            for (Index i = 0; i < k; ++i) S_Vt(i, j) *= s(i, 0);
        const double bound = 2 * law * std::max<double>(1, static_cast<double>(k)) * unit_roundoff<TypeParam>;
        EXPECT_LE(orthogonality<TypeParam>(ctx, U.view()), bound);
        double error = 0, norm = 0;
        for (Index j = 0; j < n; ++j)
            for (Index i = 0; i < m; ++i) {
                double sum = 0;
                for (Index l = 0; l < k; ++l) sum += static_cast<double>(U(i, l)) * S_Vt(l, j);
                error += (A(i, j) - sum) * (A(i, j) - sum);
                norm += static_cast<double>(A(i, j)) * A(i, j);
            }
        EXPECT_LE(std::sqrt(error / norm), bound);

        ASSERT_EQ(quoin_run("svd A.npy --values-only --out v").exit_code, 0);
        EXPECT_EQ(names_in("v"), std::vector<std::string>{"s.npy"});
        const auto values = load<TypeParam>("v/s.npy");
        for (Index i = 0; i < k; ++i) EXPECT_NEAR(values(i, 0), s(i, 0), bound * s(0, 0));
        fs::remove_all("d");
        fs::remove_all("v");
    }
}

// A of rank 3 and noise δ: s_i <= σ_i, and U diag(s) Vᵀ leaves about δ
TEST_F(Cli, SvdOfTheLargestValues) {
    Context<Host> ctx;
    const Index m = 80, n = 50, r = 3;
    const double delta = 1e-6;
    std::vector<double> values(n, delta);
    for (Index i = 0; i < r; ++i) values[i] = static_cast<double>(r - i);
    const auto A = with_singular_values<double>(m, n, values);
    save("A.npy", A);
    const Outcome outcome = quoin_run("svd A.npy --rank 3 --out d");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("the 3 largest of 50"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("rank           at least 3 of 50"), std::string::npos) << outcome.out;
    const auto U = load<double>("d/U.npy"), s = load<double>("d/s.npy"), Vt = load<double>("d/Vt.npy");
    ASSERT_EQ(U.cols(), r);
    ASSERT_EQ(s.rows(), r);
    ASSERT_EQ(Vt.rows(), r);
    EXPECT_LE(orthogonality<double>(ctx, U.view()), law * r * unit_roundoff<double>);
    const double rounding = law * static_cast<double>(n) * unit_roundoff<double>;
    for (Index i = 0; i < r; ++i) {
        EXPECT_LE(s(i, 0), values[i] + rounding);
        EXPECT_GE(s(i, 0), values[i] - n * delta * delta - rounding);
    }
    double squares = 0;
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            double e = A(i, j);
            for (Index l = 0; l < r; ++l) e -= U(i, l) * s(l, 0) * Vt(l, j);
            squares += e * e;
        }
    }
    // the columns that were taken miss at most all of the noise, and as much again of what they stand for
    EXPECT_LE(std::sqrt(squares), 2 * std::sqrt(static_cast<double>(n)) * delta);
    expect_error(quoin_run("svd A.npy --rank 51 --out e"), exit_code_of(ErrorCode::InvalidArgument),
                 {"from 1 to min(m, n) = 50"});
}

// Golub and Van Loan: Householder 2mn² − 2n³/3, Q the same, Qᵀb and the solve 4mn − n², R-SVD 6mn² + 20n³ or 2mn² + 2n³
TEST_F(Cli, RatesAreThoseOfTheStandardCounts) {
    save("A.npy", random_normal<double>(300, 40));
    save("b.npy", random_normal<double>(300, 1));
    const double m = 300, n = 40, r = 2 * m * n * n - 2 * n * n * n / 3;
    const std::pair<std::string, double> commands[] = {
        {"factor A.npy --out f --r-only --json", r},
        {"factor A.npy --out g --json", 2 * r},
        {"lstsq A.npy b.npy --out x.npy --json", r + 4 * m * n - n * n},
        {"svd A.npy --out u --json", 6 * m * n * n + 20 * n * n * n},
        {"svd A.npy --out v --values-only --json", 2 * m * n * n + 2 * n * n * n},
    };
    for (const auto& [line, flops] : commands) {
        const Outcome outcome = quoin_run(line);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        const double gflop = json_number(outcome.out, "gflops") * json_number(outcome.out, "seconds");
        EXPECT_NEAR(gflop, 1e-9 * flops, 1e-13 * flops) << line;
        // three digits of each
        const std::string method = json_value(outcome.out, "method");
        const std::string text = quoin_run(line.substr(0, line.rfind(" --json"))).out;
        std::smatch time;
        EXPECT_NE(text.find("method         " + method.substr(1, method.size() - 2)), std::string::npos) << text;
        ASSERT_TRUE(std::regex_search(text, time, std::regex("time +(\\S+) s, (\\S+) GFLOP/s"))) << text;
        EXPECT_NEAR(std::stod(time[1]) * std::stod(time[2]), 1e-9 * flops, 1.1e-2 * 1e-9 * flops) << text;
    }
}

TEST_F(Cli, SingularValuesOfAStreamedMatrix) {
    save("A.npy", random_normal<double>(8000, 10));
    ASSERT_EQ(quoin_run("svd A.npy --values-only --out whole").exit_code, 0);
    const Outcome outcome = quoin_run("svd A.npy --values-only --out streamed --memory 120KiB --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(json_value(outcome.out, "method"), "\"streaming-tsqr\"");
    const auto whole = load<double>("whole/s.npy"), streamed = load<double>("streamed/s.npy");
    for (Index i = 0; i < 10; ++i) EXPECT_NEAR(streamed(i, 0), whole(i, 0), 100 * unit_roundoff<double> * whole(0, 0));
    expect_error(quoin_run("svd A.npy --out d --memory 120KiB"), exit_code_of(ErrorCode::OutOfMemory), {"A.npy"});
}

// ---- GPUs -----------------------------------------------------------------------------------------------------------

/// On a GPU where the program finds one; skipped by name elsewhere.
class CliOnGpu : public Cli {
protected:
    void SetUp() override {
        Cli::SetUp();
        const Outcome info = quoin_run("info --json");
        if (json_value(info.out, "gpu0_usable") != "true") GTEST_SKIP() << "no usable GPU";
    }
};

TEST_F(Cli, WithoutAGpuEveryCommandSaysSo) {
    if (json_value(quoin_run("info --json").out, "gpu0_usable") == "true") GTEST_SKIP() << "there is a GPU";
    save("A.npy", random_normal<double>(50, 4));
    save("b.npy", random_normal<double>(50, 1));
    for (const std::string command : {"factor A.npy --out d", "lstsq A.npy b.npy --out x.npy", "svd A.npy --out d",
                                      "rpca A.npy --out d", "plan 50x4"}) {
        SCOPED_TRACE(command);
        expect_error(quoin_run(command + " --device cuda"), exit_code_of(ErrorCode::DeviceFailure),
                     {"--device cuda", "GPU", "--device host"});
    }
    EXPECT_EQ(names_in("."), (std::vector<std::string>{"A.npy", "b.npy"}));

    const Outcome text = quoin_run("factor A.npy --out d --device auto");
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_NE(text.out.find("device         host ("), std::string::npos) << text.out;
    EXPECT_EQ(json_value(quoin_run("svd A.npy --out e --device auto --json").out, "device"), "\"host\"");
    const std::string spectrum = quoin_run("lyapunov lorenz96 --size 8 --time 5 --transient 1 --device auto").out;
    EXPECT_NE(spectrum.find("device         host ("), std::string::npos) << spectrum;
    EXPECT_EQ(quoin_run("info").out.find("sm_"), std::string::npos);
}

TEST_F(CliOnGpu, Factors) {
    const std::pair<Index, Index> shapes[] = {{1, 1}, {5, 3}, {30011, 37}, {100, 100}, {7, 50}, {0, 4}, {4, 0}};
    for (const auto& [m, n] : shapes) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const auto A = random_normal<float>(m, n);
        save("A.npy", A);
        const Outcome outcome = quoin_run("factor A.npy --out factors --json --verify --device cuda");
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        expect_factors(A, "factors");
        EXPECT_EQ(json_keys(outcome.out),
                  (std::vector<std::string>{"rows", "cols", "dtype", "method", "seconds", "gflops", "device",
                                            "start_up_seconds", "transfer_in_seconds", "transfer_out_seconds",
                                            "residual", "orthogonality"}));
        EXPECT_EQ(json_value(outcome.out, "device"), "\"cuda\"");
        EXPECT_GE(json_number(outcome.out, "transfer_in_seconds"), 0);
        EXPECT_LE(json_number(outcome.out, "residual"), law * std::max<double>(1, n) * unit_roundoff<float>);
    }
    // rows of an .npy in C order, on either device
    NpyRowWriter<double> writer("C.npy", 40000, 60);
    const auto C = random_normal<double>(40000, 60);
    writer.write_rows(0, C.view());
    writer.commit();
    const Outcome text = quoin_run("factor C.npy --out c --device auto");
    ASSERT_EQ(text.exit_code, 0) << text.err;
    expect_factors(C, "c");
    for (const std::string expected : {"device ", "start-up ", "transfers "})
        EXPECT_NE(text.out.find(expected), std::string::npos) << text.out;
    ASSERT_EQ(quoin_run("factor C.npy --out r --device cuda --r-only").exit_code, 0);
    EXPECT_EQ(names_in("r"), std::vector<std::string>{"R.npy"});
}

TEST_F(CliOnGpu, LeastSquaresSvdAndPlan) {
    const auto X = save_system<double>(10000, 12, 3);
    const Outcome outcome = quoin_run("lstsq A.npy b.npy --out x.npy --json --device cuda");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(json_value(outcome.out, "device"), "\"cuda\"");
    const auto solution = load<double>("x.npy");
    for (Index j = 0; j < 3; ++j)
        for (Index i = 0; i < 12; ++i) EXPECT_NEAR(solution(i, j), X(i, j), 2000 * unit_roundoff<double>);

    ASSERT_EQ(quoin_run("svd A.npy --out on_gpu --device cuda").exit_code, 0);
    EXPECT_EQ(names_in("on_gpu"), (std::vector<std::string>{"U.npy", "Vt.npy", "s.npy"}));
    ASSERT_EQ(quoin_run("svd A.npy --out on_host").exit_code, 0);
    const auto s = load<double>("on_gpu/s.npy"), expected = load<double>("on_host/s.npy");
    for (Index i = 0; i < 12; ++i) EXPECT_NEAR(s(i, 0), expected(i, 0), 500 * unit_roundoff<double> * expected(0, 0));

    const Outcome plan = quoin_run("plan 1000000x192 --device cuda --json");
    EXPECT_EQ(json_value(plan.out, "device"), "\"cuda\"");
    EXPECT_EQ(json_value(plan.out, "threads"), "null");
}

TEST_F(CliOnGpu, ErrorsAreThoseOfTheHost) {
    auto A = random_normal<double>(5000, 10);
    A(4321, 7) = std::numeric_limits<double>::quiet_NaN();
    save("A.npy", A);
    expect_error(quoin_run("factor A.npy --out factors --device cuda"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"A.npy", "row 4321", "column 7"});
    save("b.npy", A);
    save("good.npy", random_normal<double>(5000, 10));
    expect_error(quoin_run("lstsq good.npy b.npy --out x.npy --device cuda"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"b.npy", "row 4321", "column 7"});
    // a shape that no GPU's memory holds, by a file that takes no space
    const std::string path = "huge.npy";
    std::string header = contents("good.npy").substr(0, 128);
    const std::size_t at = header.find("(5000, 10)");
    ASSERT_NE(at, std::string::npos);
    const std::string shape = "(500000000, 128)";  // 512 GB
    header.replace(at, shape.size(), shape + ", }");
    header.resize(128, ' ');
    header.back() = '\n';
    std::ofstream(path, std::ios::binary) << header;
    fs::resize_file(path, header.size() + std::uintmax_t{8} * 500'000'000 * 128);
    expect_error(quoin_run("factor huge.npy --out d --device cuda --method caqr"), usage_error,
                 {"--method", "caqr", "whole matrix", "householder"});
    EXPECT_FALSE(fs::exists("d"));
}

TEST_F(CliOnGpu, StreamsWhatIsLargerThanMemory) {
    const auto A = random_normal<float>(60001, 50);
    NpyRowWriter<float> writer("A.npy", A.rows(), A.cols());
    writer.write_rows(0, A.view());
    writer.commit();
    const Outcome outcome = quoin_run("factor A.npy --out d --device cuda --memory 8MiB --verify --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    expect_factors(A, "d");
    EXPECT_EQ(json_value(outcome.out, "method"), "\"streaming-tsqr\"");
    for (const char* key : {"residual", "orthogonality"})
        EXPECT_LE(json_number(outcome.out, key), 2 * law * 50 * unit_roundoff<float>) << key;
    double seconds = 0;
    for (const char* key :
         {"reading_seconds", "to_gpu_seconds", "gpu_seconds", "from_gpu_seconds", "writing_seconds"}) {
        EXPECT_GE(json_number(outcome.out, key), 0) << key;
        if (key != std::string("gpu_seconds")) seconds += json_number(outcome.out, key);
    }
    EXPECT_LE(seconds, json_number(outcome.out, "seconds"));

    const Outcome text = quoin_run("factor A.npy --out r --r-only --device cuda --memory 8MiB");
    for (const std::string expected : {"streaming-tsqr", "streamed ", "reading ", "computing "})
        EXPECT_NE(text.out.find(expected), std::string::npos) << text.out;
    EXPECT_EQ(names_in("r"), std::vector<std::string>{"R.npy"});
    EXPECT_LE(gram_error<float>(A.view(), load<float>("r/R.npy").view()), 4 * law);
    expect_error(quoin_run("factor A.npy --out e --device cuda --memory 1MiB"), exit_code_of(ErrorCode::OutOfMemory),
                 {"A.npy", "--memory"});

    const auto X = save_system<double>(100000, 12, 3);
    const Outcome solved = quoin_run("lstsq A.npy b.npy --out x.npy --json --device cuda --memory 4MiB");
    ASSERT_EQ(solved.exit_code, 0) << solved.err;
    EXPECT_EQ(json_value(solved.out, "method"), "\"streaming-tsqr\"");
    const auto solution = load<double>("x.npy");
    for (Index j = 0; j < 3; ++j)
        for (Index i = 0; i < 12; ++i) EXPECT_NEAR(solution(i, j), X(i, j), 2000 * unit_roundoff<double>);

    auto bad = random_normal<double>(50000, 10);
    bad(43210, 7) = std::numeric_limits<double>::infinity();
    save("bad.npy", bad);
    expect_error(quoin_run("factor bad.npy --out e --device cuda --memory 2MiB"),
                 exit_code_of(ErrorCode::NonFiniteEntry), {"bad.npy", "row 43210", "column 7"});
    EXPECT_FALSE(fs::exists("e"));
}

TEST_F(CliOnGpu, InterruptLeavesNothing) {
    save("A.npy", random_normal<double>(2000000, 40));
    Process process({"factor", "A.npy", "--out", "new/factors", "--device", "cuda"});
    const auto start = std::chrono::steady_clock::now();
    const auto begun = [] { return fs::exists("new/factors") && !names_in("new/factors").empty(); };
    while (!begun() && std::chrono::steady_clock::now() - start < std::chrono::seconds(20))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process.send(SIGINT);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, 128 + SIGINT) << outcome.err;
    EXPECT_NE(outcome.err.find("interrupted"), std::string::npos);
    EXPECT_FALSE(fs::exists("new"));
}

// ---- bench and demo -------------------------------------------------------------------------------------------------

/// The standard counts, from Golub and Van Loan, Matrix Computations, 5.2 and 8.6.
double standard_flops(const std::string& op, double m, double n) {
    const double qr = 2 * n * n * (m - n / 3);
    if (op == "thin-qr") return 2 * qr;
    if (op == "lstsq") return qr + 4 * m * n - n * n;
    if (op == "svd") return 6 * m * n * n + 20 * n * n * n;
    return qr;
}

TEST_F(Cli, BenchPrintsOneJsonLineACase) {
    const Outcome outcome = quoin_run(
        "bench 2000x64 60x60 --dtype f32,f64 --op thin-qr,r-only,geqrf,factor,lstsq,svd --repeat 1 --json --csv "
        "bench.csv");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::vector<std::string> lines = lines_of(outcome.out), rows = lines_of(contents("bench.csv"));
    ASSERT_EQ(lines.size(), 2u * 2 * 6);
    ASSERT_EQ(rows.size(), 2 + lines.size());
    EXPECT_EQ(rows[0].rfind("# quoin " + std::string(version()) + "; ", 0), 0u) << rows[0];
    EXPECT_NE(rows[0].find("DGEMM"), std::string::npos) << rows[0];
    const std::string keys =
        "rows,cols,dtype,op,method,seconds,gflops,limit_fraction,reference,reference_seconds,reference_gflops,ratio,"
        "required_ratio,orthogonality,residual";
    EXPECT_EQ(rows[1], keys);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string& line = lines[i];
        SCOPED_TRACE(line);
        std::string joined, values;
        for (const std::string& key : json_keys(line)) {
            joined += (joined.empty() ? "" : ",") + key;
            std::string value = json_value(line, key);
            std::erase(value, '"');
            values += (values.empty() ? "" : ",") + (value == "null" ? "" : value);
        }
        EXPECT_EQ(joined, keys);
        EXPECT_EQ(rows[2 + i], values);
        EXPECT_EQ(json_value(line, "reference"), "\"lapack\"");
        EXPECT_GT(json_number(line, "seconds"), 0);
        EXPECT_NEAR(json_number(line, "ratio"), json_number(line, "reference_seconds") / json_number(line, "seconds"),
                    1e-4 * json_number(line, "ratio"));
        EXPECT_GT(json_number(line, "limit_fraction"), 0);
        std::string op = json_value(line, "op");
        std::erase(op, '"');
        const double m = json_number(line, "rows"), n = json_number(line, "cols");
        if (op != "lstsq" && op != "svd") {
            const QForm q = op == "thin-qr"  ? QForm::Explicit
                            : op == "r-only" ? QForm::None
                            : op == "geqrf"  ? QForm::Reflectors
                                             : QForm::Any;
            const auto method_of = [&]<class T>(T) {
                return plan_qr<T>(Context<Host>(), Index(m), Index(n), {.q = q}).method;
            };
            const Method method = json_value(line, "dtype") == "\"f32\"" ? method_of(1.0f) : method_of(1.0);
            EXPECT_EQ(json_value(line, "method"), fmt::format("\"{}\"", to_string(method)));
        }
        const double flops = standard_flops(op, m, n);
        EXPECT_NEAR(json_number(line, "gflops"), 1e-9 * flops / json_number(line, "seconds"),
                    1e-4 * json_number(line, "gflops"));
        EXPECT_NEAR(json_number(line, "reference_gflops"), 1e-9 * flops / json_number(line, "reference_seconds"),
                    1e-4 * json_number(line, "reference_gflops"));
        for (const char* rate : {"gflops", "reference_gflops"})
            EXPECT_LE(json_number(line, rate), 2000) << "so small a matrix: nothing was computed";
        if (op != "thin-qr" && op != "geqrf" && op != "factor") continue;
        const double u = json_value(line, "dtype") == "\"f32\"" ? unit_roundoff<float> : unit_roundoff<double>;
        EXPECT_LE(json_number(line, "orthogonality"), 10 * n * u);
        EXPECT_LE(json_number(line, "residual"), 10 * n * u);
        EXPECT_GT(json_number(line, "residual"), 0);
    }
}

TEST_F(Cli, BenchAsTableAndWithoutReference) {
    // with room for the three digits of a rate in the table
    const Outcome table = quoin_run("bench 20000x50 --repeat 1 --against none --method tsqr --energy");
    ASSERT_EQ(table.exit_code, 0) << table.err;
    for (const std::string expected : {"DGEMM", "copy", "shape", "GFLOP/s", "ratio", "GFLOP/J"})
        EXPECT_NE(table.out.find(expected), std::string::npos) << table.out;
    std::smatch row;
    ASSERT_TRUE(std::regex_search(table.out, row,
                                  std::regex("20000x50 +f64 +thin-qr +tsqr +([0-9.e-]+) +([0-9.]+) +\\d+% +− +− +− ")))
        << table.out;
    EXPECT_NEAR(std::stod(row[2]), 1e-9 * standard_flops("thin-qr", 20000, 50) / std::stod(row[1]),
                0.051 + 1e-3 * std::stod(row[2]));
    expect_error(quoin_run("bench 10x10 --csv missing/bench.csv"), exit_code_of(ErrorCode::UnwritableFile),
                 {"missing/bench.csv"});
}

/// Q and R against memory, and R alone against reading, of rows and of columns; rates are bytes of A in the time beside
/// them.
TEST_F(Cli, BenchOfFiles) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = quoin_run("bench files . 30000x40 300x200 --memory 2MiB --repeat 1 --json --threads 2");
    const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(names_in(".").empty()) << "its files are gone";
    const std::vector<std::string> lines = lines_of(outcome.out);
    ASSERT_EQ(lines.size(), 2 + 2u);
    const Context<Host> ctx(2);
    for (const auto& [line, m, n] : {std::tuple{lines[0], 30000, 40}, {lines[1], 300, 200}}) {
        SCOPED_TRACE(line);
        const double A = 8.0 * m * n;
        const FilePlan plan = plan_file_qr<double>(ctx, m, n, {.memory = 2 << 20});
        EXPECT_EQ(json_number(line, "rows"), m);
        EXPECT_EQ(json_number(line, "cols"), n);
        EXPECT_EQ(json_value(line, "dtype"), "\"f64\"");
        EXPECT_EQ(json_number(line, "memory"), 2 << 20);
        EXPECT_EQ(json_number(line, "blocks"), static_cast<double>(plan.blocks));
        EXPECT_NEAR(json_number(line, "bytes_read"), plan.bytes_read, 1e-5 * plan.bytes_read);
        EXPECT_NEAR(json_number(line, "bytes_written"), plan.bytes_written, 512);
        EXPECT_GT(plan.bytes_read, A);
        const double parts = json_number(line, "in_memory_seconds") + json_number(line, "read_seconds") +
                             json_number(line, "write_seconds");
        EXPECT_NEAR(json_number(line, "ratio") * parts, json_number(line, "seconds"), 1e-4 * parts);
        for (const char* key : {"seconds", "in_memory_seconds", "read_seconds", "deep_read_seconds", "write_seconds"})
            EXPECT_GT(json_number(line, key), 0) << key;
    }
    for (const auto& [line, order] : {std::pair{lines[2], "\"C\""}, {lines[3], "\"F\""}}) {
        SCOPED_TRACE(line);
        EXPECT_EQ(json_number(line, "rows"), 30000);
        EXPECT_EQ(json_number(line, "cols"), 40);
        EXPECT_EQ(json_value(line, "order"), order);
        const double rate = json_number(line, "bytes_a_second");
        EXPECT_NEAR(json_number(line, "ratio"), rate / json_number(line, "read_bytes_a_second"),
                    1e-4 * json_number(line, "ratio"));
        EXPECT_NEAR(json_number(line, "deep_ratio"), rate / json_number(line, "deep_read_bytes_a_second"),
                    1e-4 * json_number(line, "deep_ratio"));
        EXPECT_GT(rate, 8.0 * 30000 * 40 / whole);
    }
    const Outcome text = quoin_run("bench files . 3000x40 --memory 400KiB --repeat 2 --threads 2");
    ASSERT_EQ(text.exit_code, 0) << text.err;
    for (const std::string expected :
         {"3000 x 40 f64, Q and R within 400 KiB: ", "in memory ",
          "3000 x 40, C order, R alone: ", "3000 x 40, F order, R alone: ", "(medians of 2)"})
        EXPECT_NE(text.out.find(expected), std::string::npos) << text.out;
    EXPECT_EQ(text.out.find("nan"), std::string::npos) << text.out;
}

TEST_F(Cli, BenchOnTheGpuOrOneSentence) {
    const Outcome outcome = quoin_run("bench 2000x20 --device cuda --op thin-qr,geqrf,r-only,factor --json");
    if (outcome.exit_code != 0) {
        expect_error(outcome, exit_code_of(ErrorCode::DeviceFailure), {"--device cuda: "});
        for (const std::string study : {"paper caqr table1 --device cuda", "paper out-of-core tensor-cores",
                                        "paper storage table1 --device cuda"})
            expect_error(quoin_run("bench " + study), exit_code_of(ErrorCode::DeviceFailure), {"CUDA"});
        return;
    }
    const std::vector<std::string> lines = lines_of(outcome.out);
    ASSERT_EQ(lines.size(), 4u);
    for (const std::string& line : lines) {
        EXPECT_EQ(json_value(line, "reference"), "\"cusolver\"");
        if (json_value(line, "op") == "\"r-only\"") continue;
        EXPECT_LE(json_number(line, "orthogonality"), 10 * 20 * unit_roundoff<double>);
        EXPECT_LE(json_number(line, "residual"), 10 * 20 * unit_roundoff<double>);
    }
}

TEST_F(Cli, BenchSkipsWhatDoesNotFit) {
    const Outcome outcome = quoin_run("bench 1000000000x1000 --json");
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("skipped 1000000000x1000 f64: thin-qr needs"), std::string::npos) << outcome.err;
}

TEST_F(Cli, DemoOfAFile) {
    save("A.npy", random_normal<float>(5000, 20));
    const Outcome text = quoin_run("demo A.npy");
    ASSERT_EQ(text.exit_code, 0) << text.err;
    for (const std::string expected : {"5000x20", "f32", "LAPACK", "ratio", "‖A − QR‖/‖A‖", "‖I − QᵀQ‖", "A.npy"})
        EXPECT_NE(text.out.find(expected), std::string::npos) << text.out;
    const Outcome json = quoin_run("demo A.npy --json");
    ASSERT_EQ(lines_of(json.out).size(), 1u);
    EXPECT_EQ(json_keys(json.out),
              (std::vector<std::string>{"rows", "cols", "dtype", "method", "seconds", "gflops", "device",
                                        "reference_seconds", "ratio", "residual", "orthogonality"}));
    EXPECT_EQ(json_number(json.out, "rows"), 5000);
    EXPECT_EQ(json_number(json.out, "cols"), 20);
    EXPECT_EQ(json_value(json.out, "dtype"), "\"f32\"");
    const double seconds = json_number(json.out, "seconds"), gflops = json_number(json.out, "gflops"),
                 ratio = json_number(json.out, "ratio");
    EXPECT_NEAR(gflops * seconds, 1e-9 * standard_flops("thin-qr", 5000, 20), 1e-5 * gflops * seconds);
    EXPECT_NEAR(ratio * seconds, json_number(json.out, "reference_seconds"), 1e-5 * ratio * seconds);
    EXPECT_LE(json_number(json.out, "orthogonality"), 200 * unit_roundoff<float>);
    EXPECT_LE(json_number(json.out, "residual"), 200 * unit_roundoff<float>);
}

TEST_F(Cli, DemoOnTheGpuOrOneSentence) {
    save("A.npy", random_normal<float>(5000, 20));
    const Outcome outcome = quoin_run("demo A.npy --json --device cuda");
    if (outcome.exit_code != 0) {
        expect_error(outcome, exit_code_of(ErrorCode::DeviceFailure), {"--device cuda: ", "GPU", "--device host"});
        EXPECT_EQ(json_value(quoin_run("demo A.npy --json --device auto").out, "device"), "\"host\"");
        return;
    }
    EXPECT_EQ(json_value(outcome.out, "device"), "\"cuda\"");
    EXPECT_GT(json_number(outcome.out, "reference_seconds"), 0);
    EXPECT_LE(json_number(outcome.out, "orthogonality"), 200 * unit_roundoff<float>);
    EXPECT_LE(json_number(outcome.out, "residual"), 200 * unit_roundoff<float>);
    const Outcome text = quoin_run("demo A.npy --device cuda");
    for (const std::string expected : {"5000x20", "f32", "cuSOLVER", "ratio", "A.npy"})
        EXPECT_NE(text.out.find(expected), std::string::npos) << text.out;
}

}  // namespace
}  // namespace quoin::test

// The factorization from file to file against the same in memory, and R alone against a sequential read of the file.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>

#include "byte_size.hpp"
#include "interrupt.hpp"
#include "io/bulk_file.hpp"
#include "io/npy_blocks.hpp"
#include "output_files.hpp"
#include "quoin/file_qr.hpp"
#include "quoin/io.hpp"
#include "random_matrix.hpp"
#include "results.hpp"
#include "row_blocks.hpp"
#include "stopwatch.hpp"
#include "studies.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "quoin/cuda.hpp"
#include "quoin/out_of_core.hpp"
#endif

namespace quoin::cli {

namespace {

constexpr Index transfer = Index{8} << 20;

/// Seconds to read a file past the page cache by some readers at a time, each of a piece into its own part of `memory`.
double read_seconds(const std::string& path, int readers, Index piece, char* memory) {
    io::ByteCounters counters;
    const io::BulkFile file(path, io::BulkFile::Access::Read, counters);
    const Index size = file.size();
    const Stopwatch watch;
    std::atomic<Index> next{0};
    const auto read = [&](int reader) {
        for (Index i; (i = piece * next++) < size;) {
            throw_if_interrupted();
            file.read_pages(i, memory + reader * piece, std::min(piece, size - i));
        }
    };
    std::vector<std::future<void>> others;
    for (int r = 1; r < readers; ++r) others.push_back(std::async(std::launch::async, read, r));
    read(0);
    for (auto& other : others) other.get();
    return watch.seconds();
}

/// Front to back into pages of 4 KiB, as `dd iflag=direct bs=8M` does.
double dd_seconds(const std::string& path) {
    io::PageMemory memory(transfer, io::PageMemory::Pages::Small);
    return read_seconds(path, 1, transfer, memory.data());
}

/// Eight pieces at a time into large pages: what the disk gives at best.
double deep_seconds(const std::string& path) {
    constexpr int readers = 8;
    io::PageMemory memory(readers * io::PageMemory::large_page, io::PageMemory::Pages::Large);
    return read_seconds(path, readers, io::PageMemory::large_page, memory.data());
}

/// Seconds to write as many bytes to a new file and to the disk, as `dd oflag=direct bs=8M conv=fsync`.
double write_seconds(const std::string& path, double bytes) {
    io::ByteCounters counters;
    const Matrix<double> memory = normal_matrix<double>(transfer / Index{sizeof(double)}, 1, 2);
    double seconds = 0;
    {
        const io::BulkFile file(path, io::BulkFile::Access::Write, counters);
        const Stopwatch watch;
        for (Index i = 0; static_cast<double>(i) < bytes; i += transfer) {
            throw_if_interrupted();
            file.write(i, memory.data(), transfer);
        }
        file.flush();
        seconds = watch.seconds();
    }
    std::filesystem::remove(path);
    return seconds;
}

template <class T>
void write_random(const std::string& path, Shape shape, bool fortran_order) {
    io::ByteCounters counters;
    const io::NpyBlockWriter<T> writer(path, fortran_order, shape.rows, shape.cols, counters);
    const Index along = fortran_order ? shape.cols : shape.rows, across = fortran_order ? shape.rows : shape.cols;
    const Index step = std::max<Index>(1, (Index{64} << 20) / (across * Index{sizeof(T)}));
    for (Index i = 0; i < along; i += step) {
        throw_if_interrupted();
        const Index h = std::min(step, along - i);
        const Matrix<T> block = normal_matrix<T>(fortran_order ? across : h, fortran_order ? h : across, i + 1);
        fortran_order ? writer.write_cols(i, block.view()) : writer.write_rows(i, block.view());
    }
    writer.flush();
}

/// A folder for the files of one shape, which goes with them.
class Scratch {
public:
    explicit Scratch(const std::string& folder) : path_(folder + "/quoin-bench") {
        std::filesystem::create_directories(path_);
    }
    ~Scratch() {
        std::error_code error;
        std::filesystem::remove_all(path_, error);
    }
    std::string file(const char* name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

template <class T, class D>
FileReport factor_files(Context<D>& ctx, const Scratch& scratch, const FileOptions& options, FilePlan& plan) {
    FileQR<T, D> f(ctx, scratch.file("A.npy"), scratch.path(), options);
    f.run(ctx);
    plan = f.plan();
    f.commit();
    return f.report();
}

/// Seconds for Q and R of A in the host's memory.
template <class T>
double in_memory_seconds(Context<Host>& ctx, Matrix<T> A, const FileOptions&) {
    Options options;
    options.q = QForm::Explicit;
    const Plan plan = plan_qr<T>(ctx, A.rows(), A.cols(), options);
    return qr<T, Host>(ctx, std::move(A), plan).report().seconds;
}
#ifdef QUOIN_HAVE_CUDA
/// Measures the way by a GPU, within its cap.
template <class T>
double in_memory_seconds(Context<Cuda>& ctx, Matrix<T> A, const FileOptions& options) {
    OutOfCoreOptions beyond;
    beyond.memory_bytes = options.device_memory;
    const Index k = std::min(A.rows(), A.cols());
    Matrix<T> R(k, A.cols());
    std::fill_n(R.data(), R.rows() * R.cols(), T(0));
    // CUDA loads its libraries and kernels at their first use
    const Index few = std::min<Index>(2048, k);
    Matrix<T> small = normal_matrix<T>(few, few, 3), R_small(few, few);
    qr_out_of_core<T, Cuda>(ctx, small.view(), R_small.view(), beyond);
    return qr_out_of_core<T, Cuda>(ctx, A.view(), R.view(), beyond).seconds;
}
#endif

template <class T, class D>
void against_memory(Context<D>& ctx, const BenchArguments& arguments, Results& results, Shape shape,
                    const FileOptions& options) {
    const Scratch scratch(arguments.folder);
    // in the order that the route prefers
    const bool by_columns = !std::is_same_v<D, Host> || shape.rows <= shape.cols;
    write_random<T>(scratch.file("A.npy"), shape, by_columns);
    const double reading = dd_seconds(scratch.file("A.npy")), deep = deep_seconds(scratch.file("A.npy"));
    const double bytes = sizeof(T) * static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
    const double writing = write_seconds(scratch.file("w"), bytes);
    Context<Host> host = make_context(arguments.common);
    const double in_memory =
        in_memory_seconds<T>(ctx, read_matrix<T>(host, MatrixFile(scratch.file("A.npy"))), options);
    FilePlan plan;
    const FileReport report = factor_files<T, D>(ctx, scratch, options, plan);
    const double ratio = report.seconds / (in_memory + reading + writing);
    const bool on_gpu = plan.device_memory_bytes > 0;
    JsonLine line = case_line(shape, scalar_kind<T>);
    line.add("memory", static_cast<Index>(options.memory)).add("blocks", plan.blocks);
    line.add("seconds", report.seconds).add("in_memory_seconds", in_memory).add("read_seconds", reading);
    line.add("deep_read_seconds", deep).add("write_seconds", writing).add("ratio", ratio);
    line.add("bytes_read", report.bytes_read).add("bytes_written", report.bytes_written);
    if (on_gpu) {
        line.add("gpu_memory_bytes", report.device_memory_bytes).add("bytes_to_gpu", report.bytes_to_device);
        line.add("bytes_from_gpu", report.bytes_from_device);
    }
    results.record(line);
    results.say(
        "{} x {} {}, Q and R within {}{}: {:.2f} s ({} blocks, {} read at {:.2f} GB/s, {} written at {:.2f} GB/s)\n",
        shape.rows, shape.cols, to_string(scalar_kind<T>), format_byte_size(options.memory),
        on_gpu ? fmt::format(", and {} of the GPU's memory", format_byte_size(report.device_memory_bytes)) : "",
        report.seconds, plan.blocks, format_byte_size(report.bytes_read),
        1e-9 * report.bytes_read / report.read_seconds, format_byte_size(report.bytes_written),
        1e-9 * report.bytes_written / report.write_seconds);
    results.say(
        "  in memory {:.2f} s, the file read in {:.2f} s as dd does ({:.2f} GB/s; at best {:.2f}) and written in "
        "{:.2f} s "
        "({:.2f} GB/s): {:.2f} of their sum\n",
        in_memory, reading, 1e-9 * bytes / reading, 1e-9 * bytes / deep, writing, 1e-9 * bytes / writing, ratio);
}

template <class T>
void against_reading(Context<Host>& ctx, const BenchArguments& arguments, Results& results, Shape shape,
                     bool fortran_order, const FileOptions& options) {
    const Scratch scratch(arguments.folder);
    write_random<T>(scratch.file("A.npy"), shape, fortran_order);
    const double bytes = sizeof(T) * static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
    FilePlan plan;
    std::vector<double> reading, deep, factoring, of_rate, of_deep;
    for (int run = 0; run < (arguments.repeat > 0 ? arguments.repeat : 5); ++run) {
        reading.push_back(dd_seconds(scratch.file("A.npy")));
        deep.push_back(deep_seconds(scratch.file("A.npy")));
        factoring.push_back(factor_files<T, Host>(ctx, scratch, options, plan).seconds);
        of_rate.push_back(reading.back() / factoring.back());
        of_deep.push_back(deep.back() / factoring.back());
    }
    const double rate = bytes / median(factoring), read_rate = bytes / median(reading),
                 deep_rate = bytes / median(deep);
    JsonLine line;
    line.add("rows", shape.rows).add("cols", shape.cols).add("order", fortran_order ? "F" : "C");
    line.add("bytes_a_second", rate).add("read_bytes_a_second", read_rate).add("ratio", median(of_rate));
    results.record(line.add("deep_read_bytes_a_second", deep_rate).add("deep_ratio", median(of_deep)));
    results.say("{} x {}, {} order, R alone: {:.2f} GB/s (medians of {})\n", shape.rows, shape.cols,
                fortran_order ? "F" : "C", 1e-9 * rate, of_rate.size());
    results.say(
        "  of dd's sequential read, {:.2f} GB/s, {:.0f}%; of eight at a time into large pages, {:.2f} GB/s, {:.0f}%\n",
        1e-9 * read_rate, 100 * median(of_rate), 1e-9 * deep_rate, 100 * median(of_deep));
}

}  // namespace

void bench_files(const BenchArguments& arguments) {
    require_writable(arguments.folder + "/quoin-bench");
    Results results(arguments);
    FileOptions options;
    const auto cap = [&](Index otherwise) {
        options.memory = static_cast<double>(arguments.memory > 0 ? arguments.memory : otherwise);
    };
    if (arguments.on_device()) {
#ifdef QUOIN_HAVE_CUDA
        cap(Index{2} << 30);
        options.device_memory = static_cast<double>(arguments.gpu_memory);
        Context<Cuda> ctx = device_context();
        const InterruptGuard guard(ctx);
        arguments.for_each_dtype({ScalarKind::F32}, [&]<class T>(T) {
            for (const Shape shape : arguments.shapes_or({{30000, 30000}}))
                against_memory<T, Cuda>(ctx, arguments, results, shape, options);
        });
#endif
        return;
    }
    cap(Index{512} << 20);
    Context<Host> ctx = make_context(arguments.common);
    const InterruptGuard guard(ctx);
    arguments.for_each_dtype({ScalarKind::F64}, [&]<class T>(T) {
        for (const Shape shape : arguments.shapes_or({{200000, 2000}}))
            against_memory<T, Host>(ctx, arguments, results, shape, options);
    });
    options.want_q = false;
    for (const Shape shape : arguments.shapes_or({{50000000, 8}, {6250000, 64}}))
        for (const bool fortran_order : {false, true})
            if (shape.cols <= 64) against_reading<double>(ctx, arguments, results, shape, fortran_order, options);
}

}  // namespace quoin::cli

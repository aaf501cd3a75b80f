#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "byte_size.hpp"
#include "json_line.hpp"
#include "memory_cap.hpp"
#include "on_device.hpp"
#include "output_files.hpp"
#include "pursuit_report.hpp"
#include "rpca.hpp"
#include "run_state.hpp"
#include "stopwatch.hpp"
#include "video/convergence_plot.hpp"
#include "video/mask_score.hpp"
#include "video/motion_mask.hpp"
#include "video/noise_level.hpp"
#include "video_frames.hpp"
#include "video_outputs.hpp"
#include "window_journal.hpp"

namespace quoin::cli {

namespace {

/// Frames of a window where nothing else is said: the papers' matrix, and one iteration in a few milliseconds.
constexpr Index usual_window = 100;
/// Fewest frames of a window that tell the noise of a pixel, where a window before could.
constexpr Index fewest_for_noise = 20;
/// Standard deviation of the least noise that a pursuit takes into account: two thirds of a grey level.
constexpr double least_noise = 1.0 / 384;
/// The fewest frames of a window that memory alone decides on.
constexpr Index least_window = 10;

/// Frames a window: as asked, or as many as memory holds, in windows of equal size.
Index window_frames(const RpcaArguments& arguments, const VideoFrames& frames, double bytes_per_column, double cap) {
    if (arguments.window < 0 || arguments.window == 1)
        throw InvalidArgument("--window must be at least 2, or 0: Quoin chooses");
    if (arguments.carry < 0) throw InvalidArgument("--carry must not be negative");
    const Index in_memory = static_cast<Index>(std::min(cap / bytes_per_column, 1e9)) - arguments.carry;
    const Index expected = frames.expected();
    const Index wanted = arguments.window > 0 ? arguments.window : usual_window;
    const Index least = arguments.window > 0 ? wanted : std::min(least_window, std::max<Index>(expected, 2));
    if (in_memory < least) {
        refuse_memory_cap(
            frames.name(), cap, bytes_per_column * static_cast<double>(least + arguments.carry),
            fmt::format("for a window of {} frames of {}x{}", least, frames.format().width, frames.format().height));
    }
    const Index most = std::min(wanted, in_memory);
    if (arguments.window > 0 || expected <= 0) return most;
    const Index windows = (expected + most - 1) / most;
    return std::max<Index>(2, (expected + windows - 1) / windows);
}

/// What the windows may take of the memory that the context computes in.
double window_memory(Context<Host>&, const RpcaArguments& arguments) { return memory_cap(arguments.memory); }
#ifdef QUOIN_HAVE_CUDA
/// 6/8: beside `matrices_held` of the window lie the next X and S and workspace.
double window_memory(Context<Cuda>& ctx, const RpcaArguments& arguments) {
    return std::min(memory_cap(arguments.memory), 0.75 * static_cast<double>(device_memory(ctx).free));
}
#endif

/// Where the host writes the columns of a window: in the window itself, or in `storage`, and `send` brings them there.
template <class T>
MatrixView<T> written_by_host(MatrixView<T> M, Matrix<T>&) {
    return M;
}
template <class T>
void send(Context<Host>&, MatrixView<const T>, MatrixView<T>) {}
#ifdef QUOIN_HAVE_CUDA
template <class T>
MatrixView<T> written_by_host(MatrixView<T, Cuda> M, Matrix<T>& storage) {
    if (storage.rows() != M.rows || storage.cols() < M.cols) storage = Matrix<T>(M.rows, M.cols);
    return storage.view().col_block({0, M.cols});
}
template <class T>
void send(Context<Cuda>& ctx, MatrixView<const T> A, MatrixView<T, Cuda> M) {
    copy_to_device<T>(ctx, A, M);
}
#endif

/// The median of each row of M.
template <class T>
std::vector<T> row_medians(MatrixView<const T> M) {
    std::vector<T> medians(static_cast<std::size_t>(M.rows));
#pragma omp parallel
    {
        std::vector<T> row(static_cast<std::size_t>(M.cols));
#pragma omp for schedule(static)
        for (Index i = 0; i < M.rows; ++i) {
            for (Index j = 0; j < M.cols; ++j) row[static_cast<std::size_t>(j)] = M(i, j);
            std::nth_element(row.begin(), row.begin() + M.cols / 2, row.end());
            medians[static_cast<std::size_t>(i)] = row[static_cast<std::size_t>(M.cols / 2)];
        }
    }
    return medians;
}

JsonLine json_of(const video::MaskScore& score) {
    JsonLine json;
    json.add("precision", score.precision()).add("recall", score.recall()).add("f", score.f());
    return json;
}

template <class T, class D>
class Separation {
public:
    Separation(Context<D>& ctx, DeviceInUse& device, const RpcaArguments& arguments)
        : ctx_(ctx),
          device_(device),
          arguments_(arguments),
          frames_(arguments),
          format_(frames_.format()),
          pixels_(format_.width * format_.height),
          window_(window_frames(arguments, frames_, matrices_held * sizeof(T) * static_cast<double>(format_.bytes()),
                                window_memory(ctx, arguments))),
          windows_(format_.bytes(), arguments.carry),
          directory_(arguments.out, input_files(arguments)) {
        if (!(arguments.threshold >= 0)) {
            throw InvalidArgument(fmt::format("--threshold must not be negative, and is {}", arguments.threshold));
        }
    }

    void run() {
        const std::string plot = directory_.file("convergence.svg"), report = directory_.file("report.json");
        if (arguments_.npy) {
            L_path_ = directory_.file("L.npy");
            S_path_ = directory_.file("S.npy");
        }
        journal_.emplace(arguments_);
        outputs_.emplace(directory_, journal_->folder(), format_, frames_.rate());
        directory_.refuse_leftovers(every_rpca_output);
        if (journal_->windows() > 0) go_on();
        load_kernels<T>(ctx_, format_.bytes(), window_, device_,
                        [&](MatrixView<const T, D> small) { load_pursuit<T, D>(ctx_, small, arguments_); });
        try {
            try {
                while (next_window()) {
                }
            } catch (const Interrupted&) {
                if (written_ == 0) throw;
            }
            line_.reset();
            finish(plot, report);
        } catch (const Error&) {
            line_.reset();
            if (journal_->windows() > 0) {
                directory_.keep();
                fmt::print(stderr, "quoin: {}: the same command goes on from there\n", journal_->in_words());
            }
            throw;
        }
        if (arguments_.common.json) {
            json().print();
        } else {
            print();
        }
        throw_if_interrupted();
    }

private:
    /// After the windows of the journal.
    void go_on() {
        fmt::print(stderr, "quoin: going on: {} (--restart separates from the start)\n", journal_->in_words());
        StateReader state(journal_->state_path(journal_->windows()));
        keep(state);
        Matrix<T> background;
        state(background);
        windows_.set_background(to_device(ctx_, std::move(background)));
        line_.emplace(arguments_.tolerance_taken(), arguments_.growth());
        std::vector<std::uint8_t> pixels(static_cast<std::size_t>(format_.bytes())), labels;
        while (frames_.position() < written_ && frames_.next(pixels, labels)) throw_if_interrupted();
        first_frame_ = written_;
    }

    /// All that the windows to come and the report depend on, but the background.
    template <class State>
    void keep(State& state) {
        state(window_);
        state(arguments_.method);
        state(arguments_.noise);
        state(noise_);
        state(steps_);
        report_.keep(state);
        state(score_);
        state(median_score_);
        state(written_);
        state(read_seconds_);
        state(write_seconds_);
        outputs_->keep(state);
    }

    void save() {
        StateWriter state(journal_->state_path(journal_->windows() + 1));
        keep(state);
        state(on_host(ctx_, windows_.background()));
        state.commit();
        journal_->append(written_);
    }

    void finish(const std::string& plot, const std::string& report) {
        const Stopwatch writing;
        outputs_->finish();
        if (arguments_.npy) {
            join_columns(L_path_);
            join_columns(S_path_);
        }
        write_text(plot, video::convergence_svg(steps_, arguments_.tolerance_taken()));
        write_seconds_ += writing.seconds();
        write_text(report, json().text() + "\n");
        if (!interrupted()) journal_->remove();
        directory_.keep();
    }

    /// The columns of L or S of window k, 0, 1, …
    std::string columns_path(const std::string& path, Index k) const {
        return fmt::format("{}/{}-{:05}.npy", journal_->folder(), path == L_path_ ? "L" : "S", k + 1);
    }
    void join_columns(const std::string& path) {
        NpyColumnWriter<T> file(path, format_.bytes());
        for (Index k = 0; k < journal_->windows(); ++k) file.append(MatrixFile(columns_path(path, k)).read<T>().view());
        file.commit();
    }

    /// Reads, separates and writes one window; false at the end of the input.
    bool next_window() {
        const Index first = frames_.position();
        const Stopwatch reading;
        const MatrixView<T, D> columns = windows_.columns(ctx_, window_);
        MatrixView<T> M = written_by_host<T>(columns, M_);
        std::vector<std::vector<std::uint8_t>> labels;
        std::vector<std::uint8_t> pixels(static_cast<std::size_t>(format_.bytes()));
        Index count = 0;
        for (; count < window_; ++count) {
            throw_if_interrupted();
            if (!frames_.next(pixels, labels.emplace_back())) break;
            for (Index i = 0; i < M.rows; ++i)
                M(i, count) = static_cast<T>(pixels[static_cast<std::size_t>(i)]) / T(255);
            const Range column{count, count + 1};
            const Stopwatch sending;
            send<T>(ctx_, M.col_block(column), columns.col_block(column));
            transfer_in_seconds_ += sending.seconds();
        }
        read_seconds_ += reading.seconds();
        if (first + count < 2) {
            throw InvalidArgument(fmt::format("{}: robust PCA needs at least 2 frames, and there {}", frames_.name(),
                                              first + count == 1 ? "is 1" : "are none"));
        }
        if (count == 0) return false;
        if (count < window_) {
            windows_.columns(ctx_, count);
            M = M.col_block({0, count});
        }

        if (first == 0) choose_method(MatrixView<const T>(M));
        auto options = arguments_.options<T, D>();
        const Index expected = frames_.expected();
        const double left =
            expected > 0 ? std::ceil(static_cast<double>(expected - first - count) / static_cast<double>(window_)) : 0;
        const std::string label =
            expected > window_ ? fmt::format("frames {}-{} of {}  ", first, first + count, expected) : "";
        options.on_step = [&](const RobustPcaStep& step) {
            line_->draw(step, label, std::max(0.0, left));
            steps_.push_back(step);
            return true;
        };
        auto window = windows_.pursue(ctx_, options);
        window.parts.Y = {};
        report_.add(format_.bytes(), count + window.carried, window.parts.last, window.parts.end, window.parts.lambda);

        const std::vector<T> medians = frames_.has_labels() ? row_medians<T>(M) : std::vector<T>();
        const Stopwatch fetching;
        Matrix<T> L, S;
        const MatrixView<const T> L_host = on_host<T>(ctx_, window.L(), L), S_host = on_host<T>(ctx_, window.S(), S);
        transfer_out_seconds_ += fetching.seconds();
        const Stopwatch writing;
        write(M, L_host, S_host, medians, labels);
        write_seconds_ += writing.seconds();
        save();
        return count == window_;
    }

    /// By the first window: where it has noise, the pursuit is stable.
    void choose_method(MatrixView<const T> M) {
        const double noise = noise_between_columns(M);
        if (!arguments_.method) arguments_.method = noise > least_noise ? Pursuit::Stable : Pursuit::InexactAlm;
        if (arguments_.noise == 0) arguments_.noise = std::max(noise, least_noise);
        line_.emplace(arguments_.tolerance_taken(), arguments_.growth());
    }

    /// Scores the mask of a frame, and beside it that of the temporal median.
    void score(const T* m, const std::vector<T>& medians, std::span<const std::uint8_t> mask,
               std::span<const std::uint8_t> labels) {
        std::vector<T> difference(medians.size());
        std::vector<std::uint8_t> median_mask(mask.size());
        std::transform(medians.begin(), medians.end(), m, difference.begin(), std::minus<T>());
        video::set_raw_mask<T>(format_, difference, arguments_.threshold, median_mask);
        score_.add(mask, labels);
        median_score_.add(median_mask, labels);
    }

    void write(MatrixView<const T> M, MatrixView<const T> L, MatrixView<const T> S, const std::vector<T>& medians,
               const std::vector<std::vector<std::uint8_t>>& labels) {
        SeparatedFrame frame(format_);
        const bool motion = arguments_.masks == Masks::Motion;
        if (motion && (noise_.empty() || M.cols >= fewest_for_noise)) noise_ = video::noise_levels<T>(format_, M, L);
        const auto column = [&](MatrixView<const T> A, Index j) {
            return std::span<const T>(A.at(0, j), static_cast<std::size_t>(A.rows));
        };
        for (Index j = 0; j < M.cols; ++j) {
            throw_if_interrupted();
            frame.set<T>(column(M, j), column(L, j), column(S, j));
            if (motion) {
                video::set_motion_mask<T>(format_, column(M, j), column(L, j), noise_, arguments_.threshold,
                                          frame.mask.pixels);
            } else {
                video::set_raw_mask<T>(format_, column(S, j), arguments_.threshold, frame.mask.pixels);
            }
            const std::vector<std::uint8_t>& truth = labels[static_cast<std::size_t>(j)];
            if (!truth.empty()) score(M.at(0, j), medians, frame.mask.pixels, truth);
            outputs_->add(frame);
        }
        outputs_->end_part();
        if (arguments_.npy) {
            write_npy<T>(columns_path(L_path_, journal_->windows()), L);
            write_npy<T>(columns_path(S_path_, journal_->windows()), S);
        }
        written_ += M.cols;
    }

    JsonLine json() const {
        JsonLine json;
        json.add("input", frames_.name()).add("frames", written_);
        if (first_frame_ > 0) json.add("first_frame", first_frame_);
        if (interrupted()) json.add("interrupted", true);
        json.add("width", format_.width).add("height", format_.height).add("channels", format_.channels);
        json.add("dtype", to_string(arguments_.dtype))
            .add("window", window_)
            .add("method", to_string(*arguments_.method));
        if (arguments_.method == Pursuit::Stable) json.add("noise", arguments_.noise);
        if (const std::string damage = frames_.damage(); !damage.empty()) json.add("damage", damage);
        report_.add_to(json);
        add_device(json, device_, transfer_in_seconds_, transfer_out_seconds_);
        json.add("masks", to_string(arguments_.masks)).add("threshold", arguments_.threshold);
        json.add("phases",
                 JsonLine().add("read", read_seconds_).add("pursuit", report_.seconds()).add("write", write_seconds_));
        if (score_.frames > 0) {
            json.add("scored_frames", score_.frames).add("precision", score_.precision());
            json.add("recall", score_.recall()).add("f", score_.f()).add("temporal_median", json_of(median_score_));
        }
        return json;
    }

    void print() const {
        fmt::print("{}: {} frames of {}x{}, {}, {}{}\n", frames_.name(), written_, format_.width, format_.height,
                   format_.channels == 3 ? "colour" : "grey", to_string(arguments_.dtype),
                   interrupted() ? ", before the interrupt" : "");
        if (interrupted()) fmt::print("journal        {}: the same command goes on\n", journal_->folder());
        if (const std::string damage = frames_.damage(); !damage.empty()) fmt::print("warning        {}\n", damage);
        print_device(arguments_.common, device_, transfer_in_seconds_, transfer_out_seconds_);
        if (arguments_.method == Pursuit::Stable)
            fmt::print("method         stable, for noise of {:.1f} grey levels (--method alm puts it into L and S)\n",
                       255 * arguments_.noise);
        report_.print(arguments_.tolerance_taken());
        fmt::print("seconds        {:.2f} reading, {:.2f} pursuit, {:.2f} writing\n", read_seconds_, report_.seconds(),
                   write_seconds_);
        if (score_.frames > 0) {
            const auto line = [](const char* name, const video::MaskScore& score) {
                fmt::print("{:<14} precision {:.4f}, recall {:.4f}, F {:.4f}\n", name, score.precision(),
                           score.recall(), score.f());
            };
            line("masks", score_);
            line("median", median_score_);
        }
        fmt::print("wrote          {}: films, comparison.png, convergence.svg, report.json{}\n", arguments_.out,
                   arguments_.npy ? ", L.npy, S.npy" : "");
    }

    Context<D>& ctx_;
    DeviceInUse& device_;
    RpcaArguments arguments_;
    VideoFrames frames_;
    video::FrameFormat format_;
    Index pixels_, window_;
    RobustPcaWindows<T, D> windows_;
    Matrix<T> M_;  // the window's columns, where the host cannot write them in their place
    OutputDirectory directory_;
    std::optional<WindowJournal> journal_;
    std::optional<VideoOutputs> outputs_;
    std::string L_path_, S_path_;
    std::optional<PursuitLine> line_;
    std::vector<float> noise_;
    std::vector<RobustPcaStep> steps_;
    PursuitReport report_;
    video::MaskScore score_, median_score_;
    Index written_ = 0;
    Index first_frame_ = 0;  ///< of this run, which went on from a journal
    double read_seconds_ = 0, write_seconds_ = 0, transfer_in_seconds_ = 0, transfer_out_seconds_ = 0;
};

}  // namespace

void run_rpca_frames(const RpcaArguments& arguments) {
    // what does not fit is pursued in smaller windows
    const auto no_bytes = [](const auto&) { return 0.0; };
    with_dtype(arguments.dtype, [&]<class T>(T) {
        on_device(arguments.common, arguments.input, no_bytes, [&]<class D>(Context<D>& ctx, DeviceInUse& device) {
            Separation<T, D>(ctx, device, arguments).run();
        });
    });
}

}  // namespace quoin::cli

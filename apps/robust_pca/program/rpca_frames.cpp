#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "decision_log.hpp"
#include "frame_windows.hpp"
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

/// Default frames of a window. The papers' matrix has this width, and one iteration takes a few milliseconds.
constexpr Index usual_window = 100;
/// Fewest frames of a window that finds the noise of a pixel again, after an earlier window has found it.
constexpr Index fewest_for_noise = 20;
/// Standard deviation of the least noise that a pursuit takes into account: two thirds of a grey level.
constexpr double min_noise = 1.0 / 384;
/// Fewest frames of a window whose size memory alone decides.
constexpr Index min_window = 10;

/// Returns how many frames of the background so far a window starts with.
Index carried_by(const RpcaArguments& arguments, Index window) {
    return arguments.carry.value_or(std::min(window, usual_window));
}

/// Returns the frames of a window: --window, or a number that memory holds and that makes windows of equal size.
Index window_frames(const RpcaArguments& arguments, const VideoFrames& frames, double bytes_of_own,
                    double bytes_of_carried, double cap) {
    if (arguments.window < 0 || arguments.window == 1)
        throw InvalidArgument("--window must be at least 2, or 0: Quoin chooses");
    if (arguments.carry && *arguments.carry < 0) throw InvalidArgument("--carry must not be negative");
    const double entries = static_cast<double>(frames.format().bytes());
    const Index expected = frames.expected();
    const Index wanted = arguments.window > 0 ? arguments.window : usual_window;
    // a single window carries nothing
    const bool single = expected > 0 && expected <= wanted;
    const auto bytes_of = [&](Index window, bool of_one) {
        const auto carried = of_one ? 0 : static_cast<double>(carried_by(arguments, window));
        return entries * (bytes_of_own * static_cast<double>(window) + bytes_of_carried * carried);
    };
    if (single && bytes_of(expected, true) <= cap) return arguments.window > 0 ? wanted : std::max<Index>(2, expected);
    const Index least = arguments.window > 0 ? wanted : std::min(min_window, std::max<Index>(expected, 2));
    if (bytes_of(least, false) > cap) {
        refuse_memory_cap(
            frames.name(), cap, bytes_of(least, false),
            fmt::format("for a window of {} frames of {}x{}", least, frames.format().width, frames.format().height));
    }
    Index most = wanted;
    while (bytes_of(most, false) > cap) --most;
    if (arguments.window > 0 || expected <= 0) return most;
    const Index windows = (expected + most - 1) / most;
    return std::max<Index>(2, (expected + windows - 1) / windows);
}

/// Returns how much of the memory of the context's device the windows may take.
double window_memory(Context<Host>&, const RpcaArguments& arguments) { return memory_cap(arguments.memory); }
#ifdef QUOIN_HAVE_CUDA
/// Returns at most 6/8 of the free memory. The rest is for the next X and S and workspace, in addition to six matrices
/// as large as the window.
double window_memory(Context<Cuda>& ctx, const RpcaArguments& arguments) {
    return std::min(memory_cap(arguments.memory), 0.75 * static_cast<double>(device_memory(ctx).free));
}
#endif

/// Returns the median of each row of M.
std::vector<std::uint8_t> row_medians(MatrixView<const std::uint8_t> M) {
    std::vector<std::uint8_t> medians(static_cast<std::size_t>(M.rows));
#pragma omp parallel
    {
        std::vector<std::uint8_t> row(static_cast<std::size_t>(M.cols));
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
          window_(window_frames(arguments, frames_, FrameWindows<T, D>::bytes_of_own,
                                FrameWindows<T, D>::bytes_of_carried, window_memory(ctx, arguments))),
          windows_(format_.bytes(), carried_by(arguments, window_)),
          directory_(arguments.out, input_files(arguments)),
          decisions_(arguments, format_) {
        if (!(arguments.threshold >= 0)) {
            throw InvalidArgument(fmt::format("--threshold must not be negative, and is {}", arguments.threshold));
        }
    }

    void run() {
        const std::string report = directory_.file("report.json");
        convergence_path_ = directory_.file("convergence.svg");
        decisions_path_ = directory_.file("decisions.svg");
        if (arguments_.npy) {
            L_path_ = directory_.file("L.npy");
            S_path_ = directory_.file("S.npy");
        }
        journal_.emplace(arguments_);
        outputs_.emplace(directory_, journal_->folder(), format_, frames_.rate(), frames_.time_unit(),
                         frames_.pixel_aspect());
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
            finish(report);
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
        windows_ = FrameWindows<T, D>(format_.bytes(), carried_by(arguments_, window_));
        windows_.load(ctx_, state);
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
        state(found_noise_);
        state(was_chosen_);
        state(noise_);
        state(steps_);
        report_.keep(state);
        decisions_.keep(state);
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
        windows_.save(ctx_, state);
        state.commit();
        journal_->append(written_);
    }

    void finish(const std::string& report) {
        const Stopwatch writing;
        outputs_->finish();
        if (arguments_.npy) {
            join_columns(L_path_);
            join_columns(S_path_);
        }
        write_text(convergence_path_, video::convergence_svg(steps_, arguments_.tolerance_taken()));
        write_text(decisions_path_, decisions_.svg(method_in_words()));
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
        MatrixView<std::uint8_t> M = windows_.columns(ctx_, window_);
        std::vector<std::vector<std::uint8_t>> labels;
        std::vector<video::FrameTime> times;
        Index count = 0;
        for (; count < window_; ++count) {
            throw_if_interrupted();
            const std::span<std::uint8_t> pixels(M.at(0, count), static_cast<std::size_t>(M.rows));
            if (!frames_.next(pixels, labels.emplace_back())) break;
            times.push_back(frames_.time());
        }
        read_seconds_ += reading.seconds();
        if (first + count < 2) {
            throw InvalidArgument(fmt::format("{}: robust PCA needs at least 2 frames, and there {}", frames_.name(),
                                              first + count == 1 ? "is 1" : "are none"));
        }
        if (count == 0) return false;
        if (count < window_) M = windows_.columns(ctx_, count);

        if (first == 0) choose_method(M);
        auto options = arguments_.options<T, Host>();
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
        const auto window = windows_.pursue(ctx_, options);
        report_.add(format_.bytes(), count + window.carried, window.last, window.end, window.lambda, window.route);

        decisions_.begin_window(window.last.iteration);
        const Stopwatch writing;
        write(M, window.last.rank, frames_.has_labels() ? row_medians(M) : std::vector<std::uint8_t>(), labels);
        for (const video::FrameTime time : times) outputs_->add_time(time);
        write_seconds_ += writing.seconds();
        save();
        return count == window_;
    }

    /// Chooses the method by the first window. If it has noise, the pursuit is stable.
    void choose_method(MatrixView<const std::uint8_t> M) {
        const double noise = noise_between_columns(M) / 255;
        found_noise_ = noise;
        was_chosen_ = !arguments_.method;
        if (!arguments_.method) arguments_.method = noise > min_noise ? Pursuit::Stable : Pursuit::InexactAlm;
        if (arguments_.noise == 0) arguments_.noise = std::max(noise, min_noise);
        line_.emplace(arguments_.tolerance_taken(), arguments_.growth());
    }

    /// Scores the mask of a frame, and for comparison the mask of the temporal median.
    void score(std::span<const std::uint8_t> pixels, const std::vector<std::uint8_t>& medians,
               std::span<const std::uint8_t> mask, std::span<const std::uint8_t> labels) {
        std::vector<std::uint8_t> median_mask(mask.size());
        const auto width = static_cast<std::size_t>(format_.width),
                   row = width * static_cast<std::size_t>(format_.channels);
        std::vector<T> difference(row);
        for (std::size_t y = 0; y < mask.size() / width; ++y) {
            for (std::size_t i = 0; i < row; ++i)
                difference[i] = value_of(medians[y * row + i]) - value_of(pixels[y * row + i]);
            video::set_raw_mask<T>(format_, difference, arguments_.threshold,
                                   std::span(median_mask).subspan(y * width, width));
        }
        score_.add(mask, labels);
        median_score_.add(median_mask, labels);
    }

    std::string method_in_words() const {
        if (!was_chosen_) return fmt::format("method {}, as asked for", to_string(*arguments_.method));
        return arguments_.method == Pursuit::Stable
                   ? fmt::format("method stable (L + S + noise): {:.2f} grey levels of noise were found",
                                 255 * found_noise_)
                   : fmt::format("method alm (L + S): {:.2f} grey levels of noise were found, less than {:.2f}",
                                 255 * found_noise_, 255 * min_noise);
    }

    static std::span<const std::uint8_t> column_of(MatrixView<const std::uint8_t> M, Index j) {
        return {M.at(0, j), static_cast<std::size_t>(M.rows)};
    }
    static T value_of(std::uint8_t level) { return static_cast<T>(level) / T(255); }

    void set_noise(MatrixView<const std::uint8_t> M) {
        noise_ = video::noise_levels<T>(format_, M.cols, [&](Range rows, MatrixView<T> R) {
            windows_.low_rank_rows(ctx_, rows, R);
            for (Index j = 0; j < R.cols; ++j) {
                for (Index i = 0; i < R.rows; ++i) R(i, j) = value_of(M(rows.begin + i, j)) - R(i, j);
            }
        });
    }

    /// f(j) for each column, which leaves it in `column`: it goes to the window's part of the .npy file, if there is
    /// one.
    template <class F>
    void for_columns(Index count, const std::string& npy, const std::vector<T>& column, F f) {
        std::optional<NpyColumnWriter<T>> file;
        if (!npy.empty()) file.emplace(columns_path(npy, journal_->windows()), format_.bytes());
        for (Index j = 0; j < count; ++j) {
            throw_if_interrupted();
            f(j);
            if (file) file->append(MatrixView<const T>(column.data(), format_.bytes(), 1));
        }
        if (file) file->commit();
    }

    void write(MatrixView<const std::uint8_t> M, Index rank, const std::vector<std::uint8_t>& medians,
               const std::vector<std::vector<std::uint8_t>>& labels) {
        SeparatedFrame frame(format_);
        // one column of T and one large encoder at a time, and first what S is for
        std::vector<T> column(static_cast<std::size_t>(M.rows));
        std::vector<SeparatedFrame> compared(static_cast<std::size_t>(M.cols));
        const auto at = [&](Index j) -> SeparatedFrame& { return compared[static_cast<std::size_t>(j)]; };
        const auto add_mask = [&](Index j) {
            const std::vector<std::uint8_t>& truth = labels[static_cast<std::size_t>(j)];
            if (!truth.empty()) score(column_of(M, j), medians, frame.mask.pixels, truth);
            outputs_->add_mask(frame.mask);
            decisions_.add_mask(frame.mask.pixels);
            at(j).mask = for_comparison(frame.mask);
        };
        for_columns(M.cols, S_path_, column, [&](Index j) {
            windows_.sparse(ctx_, j, column);
            set_levels<T>(column, frame.foreground);
            outputs_->add_foreground(frame.foreground);
            at(j).foreground = for_comparison(frame.foreground);
        });
        outputs_->end_foreground();
        if (arguments_.masks == Masks::Raw) {
            for_columns(M.cols, "", column, [&](Index j) {
                windows_.sparse(ctx_, j, column);
                video::set_raw_mask<T>(format_, column, arguments_.threshold, frame.mask.pixels);
                add_mask(j);
            });
            outputs_->end_mask();
        }
        windows_.release_sparse();
        for_columns(M.cols, L_path_, column, [&](Index j) {
            windows_.low_rank(ctx_, j, column);
            set_levels<T>(column, frame.background);
            outputs_->add_background(frame.background);
            decisions_.add_background<T>(column);
            at(j).background = for_comparison(frame.background);
        });
        outputs_->end_background();
        if (arguments_.masks == Masks::Motion) {
            if (noise_.empty() || M.cols >= fewest_for_noise) set_noise(M);
            for_columns(M.cols, "", column, [&](Index j) {
                windows_.low_rank(ctx_, j, column);
                const std::span<const std::uint8_t> pixels = column_of(M, j);
                std::transform(pixels.begin(), pixels.end(), column.begin(), column.begin(),
                               [](std::uint8_t m, T l) { return value_of(m) - l; });
                video::set_motion_mask<T>(format_, column, noise_, arguments_.threshold, frame.mask.pixels);
                add_mask(j);
            });
            outputs_->end_mask();
        }
        for_columns(M.cols, "", column, [&](Index j) {
            const std::span<const std::uint8_t> pixels = column_of(M, j);
            std::copy(pixels.begin(), pixels.end(), frame.input.pixels.begin());
            at(j).input = for_comparison(frame.input);
            outputs_->compare(std::exchange(at(j), {}));
        });
        outputs_->end_part();
        decisions_.settle(rank, noise_);
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
        add_device(json, device_, windows_.seconds_in(), windows_.seconds_out());
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
        print_device(arguments_.common, device_, windows_.seconds_in(), windows_.seconds_out());
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
        fmt::print("wrote          {}: films, comparison.png, convergence.svg, decisions.svg, report.json{}\n",
                   arguments_.out, arguments_.npy ? ", L.npy, S.npy" : "");
    }

    Context<D>& ctx_;
    DeviceInUse& device_;
    RpcaArguments arguments_;
    VideoFrames frames_;
    video::FrameFormat format_;
    Index pixels_, window_;
    FrameWindows<T, D> windows_;
    OutputDirectory directory_;
    std::optional<WindowJournal> journal_;
    std::optional<VideoOutputs> outputs_;
    std::string L_path_, S_path_, convergence_path_, decisions_path_;
    std::optional<PursuitLine> line_;
    std::vector<float> noise_;
    DecisionLog decisions_;
    double found_noise_ = 0;   ///< in the first window
    bool was_chosen_ = false;  ///< the method, by it
    std::vector<RobustPcaStep> steps_;
    PursuitReport report_;
    video::MaskScore score_, median_score_;
    Index written_ = 0;
    Index first_frame_ = 0;  ///< of this run, which went on from a journal
    double read_seconds_ = 0, write_seconds_ = 0;
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

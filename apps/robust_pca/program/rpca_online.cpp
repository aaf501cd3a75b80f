// `quoin rpca --online`: frames are separated as they come.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <optional>
#include <vector>

#include "decision_log.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "on_device.hpp"
#include "output_files.hpp"
#include "quoin/online_robust_pca.hpp"
#include "rpca.hpp"
#include "stopwatch.hpp"
#include "video/mask_score.hpp"
#include "video/motion_mask.hpp"
#include "video/stream_writer.hpp"
#include "video/window_sum.hpp"
#include "video_frames.hpp"
#include "video_outputs.hpp"
#include "window_journal.hpp"

namespace quoin::cli {

namespace {

OnlineRobustPcaOptions online_options(const RpcaArguments& arguments) {
    OnlineRobustPcaOptions options;
    if (arguments.max_rank > 0) options.max_rank = arguments.max_rank;
    options.forget = arguments.forget;
    options.threshold = arguments.threshold;
    return options;
}

/// Of a part of the films, which is what a kill can take: between two key frames of the encoder.
constexpr Index part_frames = 250;

/// Frames that the background is learned from.
const Index learning_frames = OnlineRobustPcaOptions().start;

template <class T>
class OnlineSeparation {
public:
    OnlineSeparation(Context<Host>& ctx, const RpcaArguments& arguments)
        : ctx_(ctx),
          arguments_(arguments),
          frames_(arguments),
          format_(frames_.format()),
          pca_(format_.bytes(), online_options(arguments)),
          frame_(format_),
          decisions_(arguments, format_) {
        if (!(arguments.threshold > 0)) {
            throw InvalidArgument(fmt::format("--threshold must be positive, and is {}", arguments.threshold));
        }
    }

    void run() {
        if (arguments_.out == "-") {
            stream_.emplace(STDOUT_FILENO, comparison(frame_).format, frames_.rate());
        } else {
            directory_.emplace(arguments_.out,
                               arguments_.synthetic ? std::vector<std::string>() : std::vector{arguments_.input});
            journal_.emplace(arguments_);
            if (journal_->windows() > 0) {
                throw InvalidArgument(fmt::format(
                    "{} of a run that was ended early, and what came after them is gone: move the films, or restart "
                    "(--restart) to delete them",
                    journal_->in_words()));
            }
            films_.emplace(*directory_, journal_->folder(), format_, frames_.rate());
            report_path_ = directory_->file("report.json");
            decisions_path_ = directory_->file("decisions.svg");
            directory_->refuse_leftovers(every_rpca_output);
        }
        const Stopwatch watch;
        const auto n = static_cast<std::size_t>(format_.bytes());
        std::vector<std::uint8_t> pixels(n), labels;
        std::vector<T> m(n), l(n), s(n);
        try {
            // a signal ends the input: what there is becomes films
            while (!interrupted() && frames_.next(pixels, labels)) {
                const Stopwatch since_it_came;
                for (std::size_t i = 0; i < n; ++i) m[i] = static_cast<T>(pixels[i]) / T(255);
                try {
                    pca_.next(ctx_, m, l, s);
                } catch (const Interrupted&) {
                    break;
                }
                write(pixels, m, l, s, labels);
                note_latency(since_it_came.seconds());
            }
            seconds_ = watch.seconds();
            if (frames_written_ == 0) throw_if_interrupted();
            if (frames_written_ == 0) throw InvalidArgument(fmt::format("{}: there are no frames", frames_.name()));
            if (films_) finish();
        } catch (const Error&) {
            if (journal_ && journal_->windows() > 0) {
                directory_->keep();
                fmt::print(stderr, "quoin: {}\n", journal_->in_words());
            }
            throw;
        }
        if (arguments_.common.json && films_) {
            json().print();
        } else {
            print(films_ ? stdout : stderr);
        }
    }

private:
    void end_part() {
        films_->end_part();
        journal_->append(frames_written_);
    }

    void finish() {
        if (frames_written_ % part_frames != 0) end_part();
        films_->finish();
        write_text(decisions_path_,
                   decisions_.svg(
                       fmt::format("online: a frame loses {:g} of its weight with each later one", arguments_.forget)));
        write_text(report_path_, json().text() + "\n");
        journal_->remove();
        directory_->keep();
    }

    /// Leaves m − l in m.
    void write(const std::vector<std::uint8_t>& pixels, std::span<T> m, std::span<const T> l, std::span<const T> s,
               const std::vector<std::uint8_t>& labels) {
        frame_.input.pixels = pixels;
        set_levels<T>(l, frame_.background);
        set_levels<T>(s, frame_.foreground);
        std::vector<float> noise;
        if (arguments_.masks == Masks::Motion) {
            std::vector<float> squares(pca_.noise().begin(), pca_.noise().end());
            for (float& value : squares) value *= value;
            noise = video::window_means<float>(format_, 2, squares);
            for (float& value : noise) value = std::sqrt(value);
            std::transform(m.begin(), m.end(), l.begin(), m.begin(), std::minus<T>());
            video::set_motion_mask<T>(format_, m, noise, arguments_.threshold, frame_.mask.pixels);
        } else {
            video::set_raw_mask<T>(format_, s, arguments_.threshold, frame_.mask.pixels);
        }
        if (!labels.empty()) score_.add(frame_.mask.pixels, labels);
        if (stream_) stream_->write(comparison(frame_).pixels);
        if (films_) {
            films_->add(frame_);
            decisions_.add_background<T>(l);
            decisions_.add_mask(frame_.mask.pixels);
            decisions_.settle(pca_.rank(), noise);
        }
        ++frames_written_;
        if (films_ && frames_written_ % part_frames == 0) end_part();
    }

    /// Of a frame that has left before the next one is read. Those that the background is learned from count apart.
    void note_latency(double seconds) {
        if (frames_written_ <= learning_frames) {
            learning_longest_ = std::max(learning_longest_, seconds);
            cpu_before_ = std::clock();
            return;
        }
        ++timed_frames_;
        latency_sum_ += seconds;
        latency_longest_ = std::max(latency_longest_, seconds);
        cpu_after_ = std::clock();
    }
    double mean_latency() const { return latency_sum_ / static_cast<double>(timed_frames_); }
    double cpu_a_frame() const {
        return static_cast<double>(cpu_after_ - cpu_before_) / CLOCKS_PER_SEC / static_cast<double>(timed_frames_);
    }

    JsonLine json() const {
        JsonLine json;
        json.add("input", frames_.name()).add("frames", frames_written_);
        json.add("width", format_.width).add("height", format_.height).add("channels", format_.channels);
        json.add("dtype", to_string(arguments_.dtype)).add("online", true).add("forget", arguments_.forget);
        if (const std::string damage = frames_.damage(); !damage.empty()) json.add("damage", damage);
        json.add("rank", pca_.rank()).add("seconds", seconds_);
        JsonLine latency;
        latency.add("longest_of_first", learning_longest_);
        if (timed_frames_ > 0)
            latency.add("mean", mean_latency()).add("longest", latency_longest_).add("cpu", cpu_a_frame());
        json.add("latency", latency);
        json.add("masks", to_string(arguments_.masks)).add("threshold", arguments_.threshold);
        if (score_.frames > 0) {
            json.add("scored_frames", score_.frames).add("precision", score_.precision());
            json.add("recall", score_.recall()).add("f", score_.f());
        }
        return json;
    }

    void print(std::FILE* to) const {
        fmt::print(to, "{}: {} frames of {}x{}, {}, {}, online\n", frames_.name(), frames_written_, format_.width,
                   format_.height, format_.channels == 3 ? "colour" : "grey", to_string(arguments_.dtype));
        if (const std::string damage = frames_.damage(); !damage.empty()) fmt::print(to, "warning        {}\n", damage);
        fmt::print(to, "L              rank {}\n", pca_.rank());
        fmt::print(to, "seconds        {:.2f}, {:.1f} frames/s\n", seconds_,
                   static_cast<double>(frames_written_) / seconds_);
        if (timed_frames_ > 0)
            fmt::print(to,
                       "latency        {:.1f} ms, at most {:.1f} ms = {:.2f} frames at {:g}/s; the first {}: at most "
                       "{:.1f} ms\n"
                       "CPU            {:.1f} ms a frame\n",
                       1e3 * mean_latency(), 1e3 * latency_longest_, latency_longest_ * frames_.rate(), frames_.rate(),
                       learning_frames, 1e3 * learning_longest_, 1e3 * cpu_a_frame());
        if (score_.frames > 0) {
            fmt::print(to, "masks          precision {:.4f}, recall {:.4f}, F {:.4f}\n", score_.precision(),
                       score_.recall(), score_.f());
        }
        if (films_)
            fmt::print(to, "wrote          {}: films, comparison.png, decisions.svg, report.json\n", arguments_.out);
    }

    Context<Host>& ctx_;
    const RpcaArguments& arguments_;
    VideoFrames frames_;
    video::FrameFormat format_;
    OnlineRobustPca<T> pca_;
    SeparatedFrame frame_;
    DecisionLog decisions_;
    std::optional<video::StreamWriter> stream_;
    std::optional<OutputDirectory> directory_;
    std::optional<WindowJournal> journal_;
    std::optional<VideoOutputs> films_;
    std::string report_path_, decisions_path_;
    video::MaskScore score_;
    Index frames_written_ = 0;  ///< not the one that an interrupt kept from its separation
    double seconds_ = 0;
    Index timed_frames_ = 0;
    double latency_sum_ = 0, latency_longest_ = 0, learning_longest_ = 0;  ///< from decoded to written
    std::clock_t cpu_before_ = 0, cpu_after_ = 0;
};

}  // namespace

void run_rpca_online(const RpcaArguments& arguments) {
    with_dtype(arguments.dtype, [&]<class T>(T) {
        Context<Host> ctx(static_cast<int>(arguments.common.threads));
        const InterruptGuard guard(ctx);
        OnlineSeparation<T>(ctx, arguments).run();
        throw_if_interrupted();
    });
}

}  // namespace quoin::cli

// `quoin rpca --online`: frames are separated as they come.

#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "beside.hpp"
#include "decision_log.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "on_device.hpp"
#include "output_files.hpp"
#include "quoin/apps/online_robust_pca.hpp"
#include "rpca.hpp"
#include "stopwatch.hpp"
#include "video/mask_score.hpp"
#include "video/motion_mask.hpp"
#include "video/noise_level.hpp"
#include "video/stream_writer.hpp"
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

/// Frames of a part of the films, from one key frame of the encoder to the next. A kill can lose one part.
constexpr Index part_frames = 250;

/// Number of frames that the separation learns the background from.
const Index learning_frames = OnlineRobustPcaOptions().start;

/// Returns x in host memory: x itself, or a copy in `storage`.
template <class X>
std::span<const X> on_host(Context<Host>&, std::span<const X> x, std::vector<X>&) {
    return x;
}
#ifdef QUOIN_HAVE_CUDA
template <class X>
std::span<const X> on_host(Context<Cuda>& ctx, MatrixView<const X, Cuda> x, std::vector<X>& storage) {
    storage.resize(static_cast<std::size_t>(x.rows));
    copy_to_host<X>(ctx, x, {storage.data(), x.rows, 1});
    return storage;
}
#endif

/// A frame from when it is read until it is written.
template <class T>
struct OnlineFrame {
    explicit OnlineFrame(video::FrameFormat format) : pictures(format) {}

    SeparatedFrame pictures;
    std::vector<std::uint8_t> labels;
    video::FrameTime time;
    std::span<const T> residual, low_rank, sparse;  // as far as they are asked for
    std::span<const float> noise;
    std::vector<T> residual_storage, low_rank_storage, sparse_storage;
    std::vector<float> noise_storage;
    Index rank = 0;
    Stopwatch since_it_came;
};

template <class T, class D>
class OnlineSeparation {
public:
    OnlineSeparation(Context<D>& ctx, DeviceInUse& device, const RpcaArguments& arguments)
        : ctx_(ctx),
          device_(device),
          arguments_(arguments),
          frames_(arguments),
          format_(frames_.format()),
          pca_(format_.bytes(), online_options(arguments)),
          frame_{OnlineFrame<T>(format_), OnlineFrame<T>(format_), OnlineFrame<T>(format_)},
          decisions_(arguments, format_) {
        if (!(arguments.threshold > 0)) {
            throw InvalidArgument(fmt::format("--threshold must be positive, and is {}", arguments.threshold));
        }
    }

    void run() {
        if (beside_gpu) load_steps();
        if (arguments_.out == "-") {
            stream_.emplace(STDOUT_FILENO, comparison(frame_[0].pictures).format, frames_.time_unit(),
                            frames_.pixel_aspect());
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
            films_.emplace(*directory_, journal_->folder(), format_, frames_.rate(), frames_.time_unit(),
                           frames_.pixel_aspect());
            report_path_ = directory_->file("report.json");
            decisions_path_ = directory_->file("decisions.svg");
            directory_->refuse_leftovers(every_rpca_output);
        }
        const Stopwatch watch;
        try {
            if (beside_gpu) {
                run_beside_gpu();
            } else {
                // a signal ends the input: what there is becomes films
                while (!interrupted() && read(frame_[0]) && separate(frame_[0])) write(frame_[0]);
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
    static constexpr bool beside_gpu = !std::is_same_v<D, Host>;

    /// Runs all steps of a stream on few pixels, because CUDA loads kernels at their first use, which takes longer than
    /// a frame may.
    void load_steps() {
        const Stopwatch loading;
        Trace* const trace = ctx_.trace();
        ctx_.attach(nullptr);
        constexpr Index columns = 256;  // U is made orthonormal again at the last one
        OnlineRobustPca<T, D> pca(std::min<Index>(format_.bytes(), 1 << 16), {.start = 4});
        std::vector<std::uint8_t> m(static_cast<std::size_t>(pca.rows())), l(m.size()), s(m.size());
        for (Index t = 0; t < columns; ++t) {
            for (std::size_t i = 0; i < m.size(); ++i) m[i] = static_cast<std::uint8_t>(i % 97 + i * i % 41 * (t % 3));
            pca.next_frame(ctx_, m, l, s);
        }
        ctx_.attach(trace);
        device_.start_up_seconds += loading.seconds();
    }

    /// Runs four stages at once. While frame t + 1 is read, frame t is separated, frame t − 1 is compared and frame t −
    /// 2 is sent.
    void run_beside_gpu() {
        const int cores = omp_get_max_threads();
        sending_.emplace(1);
        Beside reading(1), writing(std::max(1, cores / 2));
        omp_set_num_threads(std::max(1, cores / 4));  // for copies to and from the GPU
        bool more = false;
        const auto start_reading = [&](Index t) {
            reading.start([this, &more, &frame = frame_[t % 3]] { more = read(frame); });
        };
        start_reading(0);
        for (Index t = 0; !interrupted(); ++t) {
            reading.finish();
            if (!more) break;
            start_reading(t + 1);  // over frame t − 2, which has been written
            OnlineFrame<T>& frame = frame_[t % 3];
            if (!separate(frame)) break;
            writing.start([this, &frame] { write(frame); });
        }
        writing.finish();
        sending_->finish();
    }

    /// Whether there was a frame.
    bool read(OnlineFrame<T>& frame) {
        if (!frames_.next(frame.pictures.input.pixels, frame.labels)) return false;
        frame.time = frames_.time();
        frame.since_it_came = Stopwatch();
        return true;
    }

    /// Whether no signal kept it from that.
    bool separate(OnlineFrame<T>& frame) {
        SeparatedFrame& pictures = frame.pictures;
        try {
            pca_.next_frame(ctx_, pictures.input.pixels, pictures.background.pixels, pictures.foreground.pixels);
        } catch (const Interrupted&) {
            return false;
        }
        if (arguments_.masks == Masks::Motion) {
            frame.residual = on_host(ctx_, pca_.residual(), frame.residual_storage);
            frame.noise = on_host(ctx_, pca_.noise(), frame.noise_storage);
        } else {
            frame.sparse = on_host(ctx_, pca_.frame_sparse(), frame.sparse_storage);
        }
        if (films_) frame.low_rank = on_host(ctx_, pca_.frame_low_rank(), frame.low_rank_storage);
        frame.rank = pca_.rank();
        return true;
    }

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

    void write(OnlineFrame<T>& frame) {
        SeparatedFrame& pictures = frame.pictures;
        if (arguments_.masks == Masks::Motion) {
            smoothed_noise_.resize(frame.noise.size());
            video::smooth_noise(format_, frame.noise, smoothed_noise_);
            video::set_motion_mask<T>(format_, frame.residual, smoothed_noise_, arguments_.threshold,
                                      pictures.mask.pixels);
        } else {
            video::set_raw_mask<T>(format_, frame.sparse, arguments_.threshold, pictures.mask.pixels);
        }
        if (!frame.labels.empty()) score_.add(pictures.mask.pixels, frame.labels);
        if (stream_) return send(frame);
        films_->add(pictures, frame.time);
        decisions_.add_background<T>(frame.low_rank);
        decisions_.add_mask(pictures.mask.pixels);
        decisions_.settle(frame.rank, smoothed_noise_);
        if (++frames_written_ % part_frames == 0) end_part();
        note_latency(frame.since_it_came.seconds());
    }

    /// Beside a GPU one comparison is sent while the next one is made.
    void send(const OnlineFrame<T>& frame) {
        std::swap(made_, sent_);
        *made_ = comparison(frame.pictures, std::move(*made_));
        const auto leave = [this, sheet = made_, time = frame.time, since_it_came = frame.since_it_came] {
            stream_->write(sheet->pixels, time);
            ++frames_written_;
            note_latency(since_it_came.seconds());
        };
        if (sending_) {
            sending_->start(leave);
        } else {
            leave();
        }
    }

    /// Notes the latency of a frame that has left. The first `learning_frames` frames count separately.
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
        add_device(json, device_, 0, 0);
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
        if (arguments_.common.device != Device::Host) fmt::print(to, "device         {}\n", device_.description);
        if (beside_gpu) fmt::print(to, "start-up       {:.3g} s\n", device_.start_up_seconds);
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

    Context<D>& ctx_;
    DeviceInUse& device_;
    const RpcaArguments& arguments_;
    VideoFrames frames_;
    video::FrameFormat format_;
    OnlineRobustPca<T, D> pca_;
    OnlineFrame<T> frame_[3];            // read, separated and written at once
    std::vector<float> smoothed_noise_;  // of the frame that is written, where the masks take it
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
    video::Image sheets_[2], *made_ = &sheets_[0], *sent_ = &sheets_[1];
    std::optional<Beside> sending_;  // the last member: it uses the others
};

}  // namespace

void run_rpca_online(const RpcaArguments& arguments) {
    with_dtype(arguments.dtype, [&]<class T>(T) {
        // the size of a stream's frames is not known yet
        const auto no_bytes = [](const auto&) { return 0.0; };
        on_device(arguments.common, arguments.input, no_bytes, [&]<class D>(Context<D>& ctx, DeviceInUse& device) {
            OnlineSeparation<T, D>(ctx, device, arguments).run();
        });
        throw_if_interrupted();
    });
}

}  // namespace quoin::cli

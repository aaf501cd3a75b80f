#include "video_frames.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "interrupt.hpp"
#include "output_files.hpp"
#include "quoin/error.hpp"
#include "video/street_scene.hpp"
#include "video/synthetic_scene.hpp"
#include "video/video_writer.hpp"

namespace quoin::cli {

namespace fs = std::filesystem;

namespace {

video::SceneTroubles troubles_of(const std::vector<std::string>& names) {
    const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    return {has("noise"), has("leaves"), has("light"), has("standing")};
}

}  // namespace

VideoFrames::VideoFrames(const RpcaArguments& arguments) : name_(arguments.input), start_(arguments.start) {
    const Index channels = arguments.color ? 3 : 1;
    if (!arguments.synthetic) {
        if (!arguments.write_scene.empty()) throw InvalidArgument("--write-scene goes with --synthetic");
        if (!arguments.scene_troubles.empty()) throw InvalidArgument("--scene-with goes with --synthetic");
        try {
            reader_.emplace(arguments.input, video::FrameSelection{.start = arguments.start,
                                                                   .frames = arguments.frames,
                                                                   .width = arguments.width,
                                                                   .height = arguments.height,
                                                                   .color = arguments.color,
                                                                   .color_if_any = !arguments.grey,
                                                                   .stopped = interrupted});
        } catch (const Error&) {
            throw_if_interrupted();  // a stream that was ended before its first frame
            throw;
        }
        if (!arguments.ground_truth.empty()) truth_.emplace(arguments.ground_truth, format(), arguments.start);
        return;
    }
    if (!arguments.ground_truth.empty())
        throw InvalidArgument("--synthetic has its own masks: leave --ground-truth out");
    if (arguments.start < 0) throw InvalidArgument("--start must not be negative");
    if (arguments.frames < -1) throw InvalidArgument("--frames must be positive, or -1 for all");
    name_ = arguments.street ? "street scene" : "synthetic scene";
    frames_ = arguments.frames < 0 ? 100 : arguments.frames;
    const bool scaled = arguments.width > 0;
    const video::FrameFormat format{scaled ? arguments.width : 384, scaled ? arguments.height : 288, channels};
    if (arguments.street)
        scene_ = std::make_unique<video::StreetScene>(format);
    else
        scene_ = std::make_unique<video::SyntheticScene>(format, troubles_of(arguments.scene_troubles));
    if (arguments.write_scene.empty()) return;
    scene_folder_ = arguments.write_scene;
    for (const char* part : {"input", "groundtruth"}) {
        std::error_code error;
        fs::create_directories(fs::path(scene_folder_) / part, error);
        if (error) throw UnwritableFile((fs::path(scene_folder_) / part).string(), error.message());
    }
    write_text((fs::path(scene_folder_) / "temporalROI.txt").string(), fmt::format("1 {}\n", frames_));
}

bool VideoFrames::next(std::span<std::uint8_t> pixels, std::vector<std::uint8_t>& labels) {
    labels.resize(static_cast<std::size_t>(format().width * format().height));
    if (!scene_) {
        if (!reader_->next(pixels)) return false;
        if (!truth_ || !truth_->next(labels)) labels.clear();
    } else {
        if (position_ == frames_) return false;
        scene_->frame(start_ + position_, pixels, labels);
        if (!scene_folder_.empty()) {
            const auto path = [&](const char* pattern) {
                return (fs::path(scene_folder_) / fmt::format(fmt::runtime(pattern), position_ + 1)).string();
            };
            video::write_png(path("input/in{:06}.png"), format(), pixels);
            video::write_png(path("groundtruth/gt{:06}.png"), {format().width, format().height, 1}, labels);
        }
    }
    ++position_;
    return true;
}

}  // namespace quoin::cli

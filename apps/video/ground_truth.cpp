#include "video/ground_truth.hpp"

#include <filesystem>
#include <fstream>
#include <limits>

#include "quoin/error.hpp"

namespace quoin::video {
namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t not_scored = 85;

/// The file ROI.bmp, ROI.png, ... of a folder, or nothing.
std::string region_file(const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().stem() == "ROI") return entry.path().string();
    }
    return {};
}

}  // namespace

GroundTruth::GroundTruth(const std::string& folder, FrameFormat size, Index start)
    : frame_(start), last_(std::numeric_limits<Index>::max()) {
    FrameSelection selection{.start = start, .width = size.width, .height = size.height, .nearest = true};
    std::error_code error;
    const fs::path root(folder), images = root / "groundtruth";
    if (!fs::is_directory(root, error)) throw UnreadableFile(folder, "is not a folder of masks");
    if (!fs::is_directory(images, error)) {
        labels_.emplace(folder, selection);
        return;
    }
    labels_.emplace(images.string(), selection);
    if (const std::string file = region_file(root); !file.empty()) {
        selection.start = 0;
        region_.resize(static_cast<std::size_t>(labels_->format().bytes()));
        FrameReader(file, selection).next(region_);
    }
    if (const fs::path file = root / "temporalROI.txt"; fs::exists(file, error)) {
        std::ifstream range(file);
        if (!(range >> first_ >> last_) || first_ < 1 || last_ < first_) {
            throw UnreadableFile(file.string(), "must hold the first and the last frame to score, counted from 1");
        }
        --first_;
    }
}

bool GroundTruth::next(std::span<std::uint8_t> labels) {
    if (!labels_->next(labels)) return false;
    const bool scored = frame_ >= first_ && frame_ < last_;
    ++frame_;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (!scored || (!region_.empty() && region_[i] == 0)) labels[i] = not_scored;
    }
    return true;
}

}  // namespace quoin::video

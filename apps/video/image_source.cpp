#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "quoin/error.hpp"
#include "video/exif.hpp"
#include "video/input_file.hpp"
#include "video/picture_source.hpp"

namespace quoin::video {
namespace {

/// Replaces what the decoder says, which knows the orientation of some formats only.
void orient(AVFrame& picture, int exif) {
    constexpr int matrices[][4] = {{1, 0, 0, 1}, {-1, 0, 0, 1}, {-1, 0, 0, -1}, {1, 0, 0, -1},
                                   {0, 1, 1, 0}, {0, 1, -1, 0}, {0, -1, -1, 0}, {0, -1, 1, 0}};
    const auto& [a, b, c, d] = matrices[exif - 1];
    av::set_orientation(picture, a, b, c, d);
}

av::Picture decode_image(const std::string& path) {
    const InputFile input(path, /*single_image=*/true);
    const av::Codec decoder = input.open_decoder(*input.demuxer().streams[0]);
    const av::Packet packet = av::own<av::Packet>(av_packet_alloc());
    av::Picture picture = av::own<av::Picture>(av_frame_alloc());
    int error = av_read_frame(&input.demuxer(), packet.get());
    if (error >= 0) error = avcodec_send_packet(decoder.get(), packet.get());
    if (error >= 0) error = avcodec_send_packet(decoder.get(), nullptr);
    if (error >= 0) error = avcodec_receive_frame(decoder.get(), picture.get());
    if (error == AVERROR(ENOMEM)) av::out_of_memory();
    if (error < 0) throw UnreadableFile(path, fmt::format("the image could not be decoded: {}", av::reason(error)));
    orient(*picture, exif_orientation(input.content()));
    return picture;
}

class ImageSource : public PictureSource {
public:
    explicit ImageSource(std::vector<std::string> paths)
        : paths_(std::move(paths)), at_once_(std::clamp(std::thread::hardware_concurrency(), 1u, 16u)) {}

    av::Picture next() override {
        while (ahead_.size() < at_once_ && begun_ < paths_.size()) {
            ahead_.push_back(std::async(std::launch::async, decode_image, paths_[begun_++]));
        }
        if (ahead_.empty()) return nullptr;
        std::future<av::Picture> first = std::move(ahead_.front());
        ahead_.pop_front();
        av::Picture picture = first.get();
        picture->pts = handed_out_++;
        av::duration_of(*picture) = 1;
        return picture;
    }

    const std::string& path() const override { return paths_[begun_ - ahead_.size() - 1]; }
    Index count() const override { return static_cast<Index>(paths_.size()); }
    double rate() const override { return 25; }
    Ratio time_unit() const override { return {1, 25}; }
    const std::string& damage() const override { return none_; }

private:
    std::vector<std::string> paths_;
    std::size_t at_once_, begun_ = 0;
    Index handed_out_ = 0;
    std::deque<std::future<av::Picture>> ahead_;
    std::string none_;
};

}  // namespace

std::unique_ptr<PictureSource> open_images(std::vector<std::string> paths) {
    return std::make_unique<ImageSource>(std::move(paths));
}

}  // namespace quoin::video

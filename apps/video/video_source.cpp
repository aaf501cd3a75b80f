#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "quoin/error.hpp"
#include "video/input_file.hpp"
#include "video/picture_source.hpp"

namespace quoin::video {
namespace {

class VideoSource : public PictureSource {
public:
    VideoSource(const std::string& path, bool (*stopped)()) : input_(path, /*single_image=*/false, stopped) {
        AVFormatContext& demuxer = input_.demuxer();
        const int error = avformat_find_stream_info(&demuxer, nullptr);
        const int best = error < 0 ? error : av_find_best_stream(&demuxer, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
        // the cover of a piece of music is no video
        if (best < 0 || (demuxer.streams[best]->disposition & AV_DISPOSITION_ATTACHED_PIC)) {
            throw UnreadableFile(path, "holds no video");
        }
        for (unsigned i = 0; i < demuxer.nb_streams; ++i) {
            if (static_cast<int>(i) != best) demuxer.streams[i]->discard = AVDISCARD_ALL;
        }
        stream_ = demuxer.streams[best];
        count_ = count_frames();
        decoder_ = input_.open_decoder(*stream_);
        packet_ = av::own<av::Packet>(av_packet_alloc());
        const AVRational base = stream_->time_base;
        unit_ = base.den <= finest_unit ? Ratio{base.num, base.den} : Ratio{1, finest_unit};
        step_ = std::max<std::int64_t>(1, av_rescale_q(1, av_inv_q(av_d2q(rate(), finest_unit)), av::rational(unit_)));
    }

    av::Picture next() override {
        av::Picture picture = av::own<av::Picture>(av_frame_alloc());
        while (!ended_) {
            const int error = avcodec_receive_frame(decoder_.get(), picture.get());
            if (error == AVERROR(EAGAIN)) {
                feed();
            } else if (error == AVERROR_EOF) {
                end(reason_);
            } else if (error == AVERROR(ENOMEM)) {
                av::out_of_memory();
            } else if (error < 0) {
                refuse(av::reason(error));
            } else if (picture->decode_error_flags != 0 || (picture->flags & AV_FRAME_FLAG_CORRUPT)) {
                refuse("a frame is not whole");
            } else if (packets_ended_ && skips_frames(*picture)) {
                end(reason_.empty() ? "frames before the end are missing" : reason_);
            } else {
                note_time(*picture);
                set_time(*picture);
                picture->sample_aspect_ratio = av_guess_sample_aspect_ratio(&input_.demuxer(), stream_, picture.get());
                orient(*picture);
                ++decoded_;
                return picture;
            }
        }
        return nullptr;
    }

    const std::string& path() const override { return input_.path(); }
    Index count() const override { return count_; }
    double rate() const override {
        const AVRational rate = av_guess_frame_rate(&input_.demuxer(), stream_, nullptr);
        return rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 25;
    }
    Ratio time_unit() const override { return unit_; }
    const std::string& damage() const override { return damage_; }

private:
    /// Gives the decoder the next packet, or the end of them.
    void feed() {
        AVFormatContext& demuxer = input_.demuxer();
        av::take_message();
        int error = av_read_frame(&demuxer, packet_.get());
        if (error >= 0 && packet_->stream_index != stream_->index) {
            av_packet_unref(packet_.get());
            return;
        }
        if (error == AVERROR(ENOMEM)) av::out_of_memory();
        const bool cut = error >= 0 && (packet_->flags & AV_PKT_FLAG_CORRUPT) && avio_feof(demuxer.pb);
        if (cut || (error == AVERROR_EOF && index_exceeds_file())) {
            reason_ = "the file ends inside a frame";
        } else if (error == AVERROR_EOF) {
            reason_ = av::take_message();  // a demuxer that misses something at the end reports it, and no more
        } else if (error < 0) {
            reason_ = av::reason(error);
        }
        if (input_.stopped()) {
            error = AVERROR_EOF;
            reason_.clear();
        }
        if (cut) error = AVERROR_EOF;
        packets_ended_ = error < 0;
        error = avcodec_send_packet(decoder_.get(), error < 0 ? nullptr : packet_.get());
        av_packet_unref(packet_.get());
        if (error == AVERROR(ENOMEM)) av::out_of_memory();
        if (error < 0 && error != AVERROR_EOF) refuse(av::reason(error));
    }

    /// Returns the number of frames by the header, or −1 if the index has fewer, because some AVI files count frames
    /// that they leave out.
    Index count_frames() const {
        Index whole = 0;
        const int entries = avformat_index_get_entries_count(stream_);
        for (int k = 0; k < entries; ++k) whole += avformat_index_get_entry(stream_, k)->size > 0;
        return stream_->nb_frames > 0 && whole >= stream_->nb_frames ? stream_->nb_frames : -1;
    }

    /// Whether the container's index names a frame that the file is too short for.
    bool index_exceeds_file() const {
        const AVIndexEntry* last = avformat_index_get_entry(stream_, avformat_index_get_entries_count(stream_) - 1);
        return last != nullptr && last->pos + last->size > input_.bytes();
    }

    /// Whether a picture follows frames that the decoder has never seen. This happens if packets end early, because the
    /// missing frames are stored after frames that the decoder still holds. The picture's time is then later than the
    /// last frame's by more than the longest step so far. If the container shows no damage, this counts only in streams
    /// that reorder frames at a constant rate.
    bool skips_frames(const AVFrame& picture) const {
        if (decoded_ == 0) return false;
        if (picture.best_effort_timestamp == AV_NOPTS_VALUE) return !reason_.empty();
        const bool reorders_steadily =
            decoder_->has_b_frames > 0 && decoded_ > 1 && shortest_step_ >= longest_step_ - 1;
        return step_to(picture) > longest_step_ && (!reason_.empty() || reorders_steadily);
    }
    void note_time(const AVFrame& picture) {
        if (decoded_ > 0) {
            shortest_step_ = std::min(shortest_step_, step_to(picture));
            longest_step_ = std::max(longest_step_, step_to(picture));
        }
        time_ = picture.best_effort_timestamp;
    }
    /// Gives the picture its time in `unit_`, after the one before: one without a time comes a usual step later, and
    /// one whose time goes back, as where a stream starts anew, shifts all that follow.
    void set_time(AVFrame& picture) {
        const std::int64_t next = shown_ + step_, stamp = picture.best_effort_timestamp;
        std::int64_t time = next;
        if (stamp != AV_NOPTS_VALUE) {
            const std::int64_t at = av_rescale_q(stamp, stream_->time_base, av::rational(unit_));
            if (decoded_ > 0 && at + shift_ <= shown_) shift_ = next - at;
            time = at + shift_;
        }
        std::int64_t& duration = av::duration_of(picture);
        duration = av_rescale_q(duration, stream_->time_base, av::rational(unit_));
        if (duration <= 0) duration = step_;
        picture.pts = shown_ = time;
    }
    /// The stream's display matrix becomes the picture's.
    void orient(AVFrame& picture) const {
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
        const AVCodecParameters& parameters = *stream_->codecpar;
        const AVPacketSideData* const found = av_packet_side_data_get(
            parameters.coded_side_data, parameters.nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
        const std::uint8_t* const matrix = found && found->size >= matrix_bytes ? found->data : nullptr;
#else
        const std::uint8_t* const matrix = av_stream_get_side_data(stream_, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
#endif
        if (matrix == nullptr || av_frame_get_side_data(&picture, AV_FRAME_DATA_DISPLAYMATRIX) != nullptr) return;
        AVFrameSideData* const side = av_frame_new_side_data(&picture, AV_FRAME_DATA_DISPLAYMATRIX, matrix_bytes);
        if (side == nullptr) av::out_of_memory();
        std::memcpy(side->data, matrix, matrix_bytes);
    }
    /// From the last frame to this one; 0: not known.
    std::int64_t step_to(const AVFrame& picture) const {
        const std::int64_t time = picture.best_effort_timestamp;
        return time == AV_NOPTS_VALUE || time_ == AV_NOPTS_VALUE ? 0 : av_sat_sub64(time, time_);
    }

    /// Something did not decode: the end, or, before the first frame, to be skipped.
    void refuse(const std::string& reason) {
        if (decoded_ > 0) {
            end(reason);
        } else {
            skipped_ = reason;
        }
    }

    void end(const std::string& reason) {
        ended_ = true;
        if (decoded_ == 0) {
            const std::string& why = reason.empty() ? skipped_ : reason;
            throw UnreadableFile(path(), fmt::format("no frame could be decoded{}{}", why.empty() ? "" : ": ", why));
        }
        if (!reason.empty()) damage_ = fmt::format("decoding failed after {} frames: {}", decoded_, reason);
    }

    static constexpr std::size_t matrix_bytes = 9 * sizeof(std::int32_t);
    static constexpr int finest_unit = 1'000'000;  // of a second: .mp4 has the steps between frames in 32 bits

    InputFile input_;
    AVStream* stream_;
    Ratio unit_;
    std::int64_t step_ = 1;               // usual, from one picture to the next
    std::int64_t shown_ = 0, shift_ = 0;  // when the last picture is shown, and how much later than it says
    av::Codec decoder_;
    av::Packet packet_;
    Index count_ = -1, decoded_ = 0;
    std::int64_t time_ = AV_NOPTS_VALUE;  // of the last frame, in the stream's unit
    std::int64_t shortest_step_ = INT64_MAX, longest_step_ = 0;
    bool packets_ended_ = false;
    bool ended_ = false;
    std::string skipped_;  // the last reason before the first frame
    std::string reason_;   // why packets ended early
    std::string damage_;
};

}  // namespace

std::unique_ptr<PictureSource> open_video(const std::string& path, bool (*stopped)()) {
    return std::make_unique<VideoSource>(path, stopped);
}

}  // namespace quoin::video

#include <fmt/format.h>

#include <algorithm>

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

    /// The frames of the header, where the index has not fewer: some AVI count those that they leave out.
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

    /// Where packets end early, some of the frames that the decoder still holds follow frames that it has never seen:
    /// those that are stored behind them. Their time is then more than the longest step so far after the last frame's.
    /// Where the container shows no damage, that counts in streams that reorder frames at a constant rate.
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

    InputFile input_;
    AVStream* stream_;
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

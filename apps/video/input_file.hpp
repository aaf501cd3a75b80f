#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "io/mapped_file.hpp"
#include "video/av.hpp"

namespace quoin::video {

/// An input opened by one of FFmpeg's demuxers. A file is read through a mapping, and FFmpeg uses only the extension of
/// its name. A stream is read as it comes, and decoded with little delay. It ends early once `stopped` returns true,
/// which is called while waiting for the stream.
class InputFile {
public:
    /// Demuxes by content or, with `single_image`, as one image whose packet is the whole file.
    ///
    /// Throws UnreadableFile if MappedFile refuses the file, or no demuxer knows it.
    explicit InputFile(const std::string& path, bool single_image = false, bool (*stopped)() = nullptr);
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    const std::string& path() const { return path_; }
    /// Bytes of the file; for a stream the largest Index.
    Index bytes() const {
        return file_ ? static_cast<Index>(file_->bytes().size()) : std::numeric_limits<Index>::max();
    }
    /// The bytes of the file.
    std::string_view content() const { return file_->bytes(); }
    AVFormatContext& demuxer() const { return *demuxer_; }
    bool stopped() const { return stopped_ != nullptr && stopped_(); }
    /// Opens a decoder of one of the input's streams. It marks every picture that it could not decode whole. For an
    /// image it has one thread. Throws UnreadableFile if this FFmpeg has no such decoder.
    av::Codec open_decoder(const AVStream& stream) const;

private:
    static int read(void* self, std::uint8_t* to, int bytes);
    static int read_standard_input(void* self, std::uint8_t* to, int bytes);
    static std::int64_t seek(void* self, std::int64_t offset, int whence);

    std::string path_;
    bool single_image_;
    bool (*stopped_)();
    std::optional<io::MappedFile> file_;
    std::size_t position_ = 0;
    av::Io io_;
    av::Demuxer demuxer_;
};

}  // namespace quoin::video

// Frames of videos and images, read: exact where nothing is lost, and every way in which an input can be broken.

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/pixdesc.h>
}

#include <array>
#include <cctype>
#include <map>

#include "video/av.hpp"
#include "video/exif.hpp"
#include "video/image_list.hpp"
#include "video/stream_name.hpp"
#include "video_files.hpp"

namespace quoin::test {
namespace {

/// A picture with structure that moves, and noise.
Pixels drifting_noise(const FrameFormat& format, unsigned k) {
    Pixels pixels = waves(format, k);
    const Pixels grain = noise(format, k);
    for (std::size_t p = 0; p < pixels.size(); ++p)
        pixels[p] = static_cast<std::uint8_t>(pixels[p] * 3 / 4 + grain[p] / 4);
    return pixels;
}

/// Writes the pictures of `draw` through one of FFmpeg's encoders, into the container of the path's extension.
void compose_video(const std::string& path, const char* codec_name, AVPixelFormat pixel_format, int width, int height,
                   int frames, const std::function<void(AVFrame&, int)>& draw,
                   AVColorRange range = AVCOL_RANGE_UNSPECIFIED, AVColorSpace space = AVCOL_SPC_UNSPECIFIED,
                   int step = 1, const std::function<void(AVStream&)>& prepare = nullptr) {
    av::silence();
    const auto ok = [&](int status) { ASSERT_GE(status, 0) << path << ": " << av::reason(status); };
    const AVCodec* codec = avcodec_find_encoder_by_name(codec_name);
    ASSERT_NE(codec, nullptr) << codec_name;
    const av::Codec encoder = av::own<av::Codec>(avcodec_alloc_context3(codec));
    encoder->width = width;
    encoder->height = height;
    encoder->pix_fmt = pixel_format;
    encoder->time_base = {1, 25};
    encoder->framerate = {25, 1};
    encoder->color_range = range;
    encoder->colorspace = space;
    encoder->gop_size = 5;
    encoder->bit_rate = 4'000'000;
    encoder->strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL;
    AVFormatContext* context = nullptr;
    ok(avformat_alloc_output_context2(&context, nullptr, nullptr, path.c_str()));
    const av::Muxer muxer(context);
    if (muxer->oformat->flags & AVFMT_GLOBALHEADER) encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    ok(avcodec_open2(encoder.get(), codec, nullptr));
    AVStream* stream = avformat_new_stream(muxer.get(), nullptr);
    stream->time_base = encoder->time_base;
    stream->avg_frame_rate = encoder->framerate;
    ok(avcodec_parameters_from_context(stream->codecpar, encoder.get()));
    if (prepare) prepare(*stream);
    ok(avio_open(&muxer->pb, path.c_str(), AVIO_FLAG_WRITE));
    AVDictionary* options = nullptr;
    av_dict_set(&options, "movflags", "+faststart", 0);  // of .mov; a cut one has its index then
    ok(avformat_write_header(muxer.get(), &options));
    av_dict_free(&options);
    const av::Packet packet = av::own<av::Packet>(av_packet_alloc());
    for (int k = 0; k <= frames; ++k) {
        av::Picture picture;
        if (k < frames) {
            picture = av::make_picture(pixel_format, width, height);
            picture->color_range = range;
            picture->colorspace = space;
            picture->pts = Index{step} * k;
            draw(*picture, k);
        }
        ok(avcodec_send_frame(encoder.get(), picture.get()));
        while (avcodec_receive_packet(encoder.get(), packet.get()) == 0) {
            if (packet->duration == 0) packet->duration = 1;
            av_packet_rescale_ts(packet.get(), encoder->time_base, stream->time_base);
            ok(av_interleaved_write_frame(muxer.get(), packet.get()));
        }
    }
    ok(av_write_trailer(muxer.get()));
    ok(avio_closep(&muxer->pb));
}

void overwrite_with_noise(std::string& bytes, std::size_t begin, std::size_t size) {
    ASSERT_LE(begin + size, bytes.size());
    const Pixels junk = noise({static_cast<Index>(size), 1, 1}, 10);
    std::copy(junk.begin(), junk.end(), bytes.begin() + static_cast<std::ptrdiff_t>(begin));
}

/// Planes of one value each.
std::function<void(AVFrame&, int)> flat(std::array<int, 3> yuv) {
    return [yuv](AVFrame& picture, int) {
        const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(picture.format));
        for (int c = 0; c < 3; ++c) {
            const int rows = c == 0 ? picture.height : AV_CEIL_RSHIFT(picture.height, descriptor->log2_chroma_h);
            std::memset(picture.data[c], yuv[c], static_cast<std::size_t>(rows) * picture.linesize[c]);
        }
    };
}

/// Waves as luma, no colour.
void draw_waves(AVFrame& picture, int k) {
    flat({0, 128, 128})(picture, k);
    const FrameFormat format{picture.width, picture.height, 1};
    av::copy_to_picture(format, waves(format, static_cast<unsigned>(k)), picture);
}

/// Where the packets of a file lie in it, in the order of the file.
std::vector<std::size_t> packet_positions(const std::string& path) {
    AVFormatContext* context = nullptr;
    EXPECT_EQ(avformat_open_input(&context, path.c_str(), nullptr, nullptr), 0);
    const av::Demuxer demuxer(context);
    const av::Packet packet = av::own<av::Packet>(av_packet_alloc());
    std::vector<std::size_t> positions;
    while (av_read_frame(demuxer.get(), packet.get()) == 0) {
        positions.push_back(static_cast<std::size_t>(packet->pos));
        av_packet_unref(packet.get());
    }
    return positions;
}

class VideoInputTest : public VideoTest {
protected:
    /// A grey image of one pixel.
    void write_pixel(const std::string& name, std::uint8_t value) const {
        write_png(path(name), {1, 1, 1}, Pixels{value});
    }
    /// The pixels of images of one pixel, in the order that they are read in.
    Pixels pixels_of(const std::string& input) const {
        Pixels pixels;
        for (const Pixels& frame : read_all(path(input))) pixels.push_back(frame.at(0));
        return pixels;
    }
};

void expect_unreadable_frames(const std::string& path, const std::string& why, FrameSelection selection = {}) {
    expect_refusal<UnreadableFile>(path, why, [&] { read_all(path, selection); });
}

TEST_F(VideoInputTest, LosslessGreyVideoComesBackBitForBit) {
    constexpr FrameFormat format{33, 17, 1};
    compose_video(path("grey.mkv"), "ffv1", AV_PIX_FMT_GRAY8, 33, 17, 9, [&](AVFrame& picture, int k) {
        av::copy_to_picture(format, noise(format, static_cast<unsigned>(k)), picture);
    });
    const Frames frames = read_all(path("grey.mkv"));
    ASSERT_EQ(frames.size(), 9u);
    for (unsigned k = 0; k < 9; ++k) EXPECT_EQ(frames[k], noise(format, k)) << k;
}

/// The picture that a viewer shows: its top row is the stored row or column that `top` names, its left column what
/// `left` names.
Pixels turned(const FrameFormat& stored, const Pixels& pixels, char top, char left) {
    const bool rows = top == 't' || top == 'b';  // the top is a row
    const Index width = rows ? stored.width : stored.height, height = rows ? stored.height : stored.width;
    Pixels result;
    for (Index y = 0; y < height; ++y) {
        for (Index x = 0; x < width; ++x) {
            const Index down = top == 't' || top == 'l' ? y : height - 1 - y,
                        right = left == 't' || left == 'l' ? x : width - 1 - x;
            result.push_back(
                pixels[static_cast<std::size_t>(rows ? down * stored.width + right : right * stored.width + down)]);
        }
    }
    return result;
}

/// The stored side that is visually at the top and at the left by values 1 to 8 of EXIF's orientation: top, bottom,
/// left or right.
constexpr const char* exif_sides[] = {"tl", "tr", "br", "bl", "lt", "lb", "rb", "rt"};

std::string exif_data(int orientation, bool little_endian) {
    const auto value = static_cast<char>(orientation);
    const std::string little("II*\0\x08\0\0\0\x02\0\x00\x01\x04\0\x01\0\0\0\x28\0\0\0\x12\x01\x03\0\x01\0\0\0", 30),
        big("MM\0*\0\0\0\x08\0\x02\x01\x00\0\x04\0\0\0\x01\0\0\0\x28\x01\x12\0\x03\0\0\0\x01", 30);
    return little_endian ? little + std::string{value, 0, 0, 0, 0, 0, 0, 0}
                         : big + std::string{0, value, 0, 0, 0, 0, 0, 0};
}

TEST_F(VideoInputTest, ImagesAreTurnedUprightByExif) {
    constexpr FrameFormat format{31, 17, 1};
    const auto bytes_of = [](std::size_t n, int bytes) {
        std::string text;
        for (int k = bytes - 1; k >= 0; --k) text += static_cast<char>(n >> (8 * k) & 255);
        return text;
    };
    write_png(path("plain.png"), format, noise(format, 1));
    compose_video(path("plain.jpg"), "mjpeg", AV_PIX_FMT_YUV420P, 32, 16, 1, draw_waves, AVCOL_RANGE_JPEG);
    const Pixels of_jpeg = read_all(path("plain.jpg")).at(0);
    for (int orientation = 1; orientation <= 8; ++orientation) {
        SCOPED_TRACE(orientation);
        const char *sides = exif_sides[orientation - 1], top = sides[0], left = sides[1];
        const std::string exif = exif_data(orientation, orientation % 2 == 0);
        std::string png = file_bytes("plain.png"), jpeg = file_bytes("plain.jpg");
        png.insert(33, bytes_of(exif.size(), 4) + "eXIf" + exif + "crc.");  // after the header
        const Pixels expected = turned(format, noise(format, 1), top, left);
        FrameReader reader(write_file("a.png", png));
        EXPECT_EQ(reader.format(), orientation > 4 ? (FrameFormat{17, 31, 1}) : format);
        EXPECT_EQ(read_all(reader), Frames{expected});
        jpeg.insert(2, "\xff\xe1" + bytes_of(8 + exif.size(), 2) + std::string("Exif\0\0", 6) + exif);
        EXPECT_EQ(read_all(write_file("a.jpg", jpeg)), Frames{turned({32, 16, 1}, of_jpeg, top, left)});
        for (const std::string& whole : {png, jpeg}) {
            for (std::size_t n = 0; n < 100; ++n) {
                const int found = exif_orientation(whole.substr(0, n));
                EXPECT_TRUE(found == 1 || found == orientation) << "of " << n << " bytes: " << found;
            }
            EXPECT_EQ(exif_orientation(whole), orientation);
        }
    }
}

TEST_F(VideoInputTest, VideosAreTurnedUprightByTheirDisplayMatrix) {
    constexpr FrameFormat format{33, 17, 1};
    // the stored x axis goes along (a, b) and the y axis along (c, d), y downwards: a phone held upright has (0, 1),
    // (−1, 0)
    const std::pair<std::array<int, 4>, const char*> cases[] = {{{1, 0, 0, 1}, "tl"},   {{0, 1, -1, 0}, "lb"},
                                                                {{-1, 0, 0, -1}, "br"}, {{0, -1, 1, 0}, "rt"},
                                                                {{-1, 0, 0, 1}, "tr"},  {{0, 1, 1, 0}, "lt"}};
    for (const auto& [abcd, sides] : cases) {
        SCOPED_TRACE(sides);
        const auto add_matrix = [&, abcd = abcd](AVStream& stream) {
            const std::array<std::int32_t, 9> matrix{
                abcd[0] * 65536, abcd[1] * 65536, 0, abcd[2] * 65536, abcd[3] * 65536, 0, 0, 0, 1 << 30};
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
            std::uint8_t* const to =
                av_packet_side_data_new(&stream.codecpar->coded_side_data, &stream.codecpar->nb_coded_side_data,
                                        AV_PKT_DATA_DISPLAYMATRIX, sizeof matrix, 0)
                    ->data;
#else
            std::uint8_t* const to = av_stream_new_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, sizeof matrix);
#endif
            std::memcpy(to, matrix.data(), sizeof matrix);
            stream.sample_aspect_ratio = stream.codecpar->sample_aspect_ratio = {4, 3};
        };
        compose_video(
            path("a.mov"), "png", AV_PIX_FMT_GRAY8, 33, 17, 2,
            [&](AVFrame& picture, int k) {
                av::copy_to_picture(format, noise(format, static_cast<unsigned>(k)), picture);
            },
            AVCOL_RANGE_UNSPECIFIED, AVCOL_SPC_UNSPECIFIED, 1, add_matrix);
        FrameReader reader(path("a.mov"));
        const bool transposed = sides[0] == 'l' || sides[0] == 'r';
        EXPECT_EQ(reader.format(), transposed ? (FrameFormat{17, 33, 1}) : format);
        EXPECT_EQ(reader.pixel_aspect(), transposed ? (Ratio{3, 4}) : (Ratio{4, 3}));
        EXPECT_EQ(read_all(reader), (Frames{turned(format, noise(format, 0), sides[0], sides[1]),
                                            turned(format, noise(format, 1), sides[0], sides[1])}));
        // half as wide and as high: the pixels keep their shape; half as wide alone: they are twice as wide
        if (!transposed) {
            EXPECT_EQ(FrameReader(path("a.mov"), {.width = 16}).pixel_aspect(), (Ratio{4, 3}));
            EXPECT_EQ(FrameReader(path("a.mov"), {.width = 11, .height = 17}).pixel_aspect(), (Ratio{4, 1}));
        }
    }
}

TEST_F(VideoInputTest, TimesAreThoseOfTheStream) {
    const std::vector<Index> stamps{3, 4, 5, 15, 16, 61, 62};
    const auto draw = [&](AVFrame& picture, int k) {
        draw_waves(picture, k);
        picture.pts = stamps[static_cast<std::size_t>(k)];
    };
    for (const char* name : {"a.mkv", "a.mov"}) {
        compose_video(path(name), "mpeg4", AV_PIX_FMT_YUV420P, 64, 48, 7, draw);
        for (const Index start : {0, 2}) {
            FrameReader reader(path(name), {.start = start});
            const Ratio unit = reader.time_unit();
            const std::vector<std::int64_t> times = read_times(reader);
            ASSERT_EQ(times.size(), stamps.size() - static_cast<std::size_t>(start));
            for (std::size_t k = 0; k < times.size(); ++k) {
                const auto first = static_cast<std::size_t>(start);
                EXPECT_EQ(25 * times[k] * unit.num, (stamps[first + k] - stamps[first]) * unit.den) << name << " " << k;
            }
        }
    }
    write_png(path("0.png"), {4, 4, 1}, Pixels(16));
    write_png(path("1.png"), {4, 4, 1}, Pixels(16));
    FrameReader images(path("%d.png"));
    EXPECT_EQ(read_times(images), (std::vector<std::int64_t>{0, 1}));
    EXPECT_EQ(images.time_unit(), (Ratio{1, 25}));
    EXPECT_EQ(images.pixel_aspect(), Ratio());
}

TEST_F(VideoInputTest, GreyIsLumaOfFullRange) {
    const auto every_luma = [](AVFrame& picture, int) {
        flat({0, 128, 128})(picture, 0);
        for (int i = 0; i < picture.height; ++i) {
            for (int j = 0; j < 256; ++j) picture.data[0][i * picture.linesize[0] + j] = static_cast<std::uint8_t>(j);
        }
    };
    for (const AVPixelFormat format : {AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUV444P}) {
        for (const AVColorRange range : {AVCOL_RANGE_UNSPECIFIED, AVCOL_RANGE_MPEG, AVCOL_RANGE_JPEG}) {
            compose_video(path("luma.mkv"), "ffv1", format, 256, 4, 1, every_luma, range);
            const Pixels frame = read_all(path("luma.mkv")).at(0);
            for (int y = 0; y < 256; ++y) {
                const double stretched = std::clamp((y - 16) * 255. / 219, 0., 255.);
                EXPECT_EQ(frame[3 * 256 + y], range == AVCOL_RANGE_JPEG ? y : std::lround(stretched))
                    << y << " " << range;
            }
        }
    }
}

TEST_F(VideoInputTest, GreyOfColorWeighsTheChannelsAndKeepsGrey) {
    constexpr FrameFormat format{256, 2, 3};
    Pixels grey(static_cast<std::size_t>(format.bytes()));
    for (std::size_t p = 0; p < grey.size(); ++p) grey[p] = static_cast<std::uint8_t>(p / 3 % 256);
    write_png(path("grey.png"), format, grey);
    const Pixels frame = read_all(path("grey.png")).at(0);
    for (std::size_t p = 0; p < frame.size(); ++p) EXPECT_EQ(frame[p], p % 256);
    // BT.601's weights, by FFmpeg's 15-bit arithmetic
    write_png(path("primaries.png"), {3, 1, 3}, Pixels{255, 0, 0, 0, 255, 0, 0, 0, 255});
    const Pixels luma = read_all(path("primaries.png")).at(0);
    EXPECT_NEAR(luma[0], 0.299 * 255, 1);
    EXPECT_NEAR(luma[1], 0.587 * 255, 1);
    EXPECT_NEAR(luma[2], 0.114 * 255, 1);
}

TEST_F(VideoInputTest, DeeperPicturesAreRoundedToWithinOne) {
    compose_video(path("deep.mkv"), "ffv1", AV_PIX_FMT_GRAY16LE, 256, 8, 1, [](AVFrame& picture, int) {
        for (int i = 0; i < 8; ++i) {
            for (int j = 0; j < 256; ++j) {
                const int value = 257 * j + 16 * (i - 4);
                reinterpret_cast<std::uint16_t*>(picture.data[0] + i * picture.linesize[0])[j] =
                    static_cast<std::uint16_t>(std::clamp(value, 0, 65535));
            }
        }
    });
    const Pixels frame = read_all(path("deep.mkv")).at(0);
    for (std::size_t p = 0; p < frame.size(); ++p) EXPECT_NEAR(frame[p], static_cast<double>(p % 256), 1);
}

TEST_F(VideoInputTest, ColorFollowsTheMatrixOfTheStream) {
    // R = Y + 2(1 − Kr) Cr, B = Y + 2(1 − Kb) Cb, G from Y = Kr R + Kg G + Kb B; ranges 219 and 224
    const std::array<int, 3> yuv{110, 90, 170};
    const auto expected = [&](double Kr, double Kb) {
        const double Y = (yuv[0] - 16) / 219., Cb = (yuv[1] - 128) / 224., Cr = (yuv[2] - 128) / 224.;
        const double R = Y + 2 * (1 - Kr) * Cr, B = Y + 2 * (1 - Kb) * Cb, G = (Y - Kr * R - Kb * B) / (1 - Kr - Kb);
        return std::array{255 * R, 255 * G, 255 * B};
    };
    const auto bt601 = expected(0.299, 0.114), bt709 = expected(0.2126, 0.0722);
    const auto check = [&](AVColorSpace space, int height, const std::array<double, 3>& rgb) {
        SCOPED_TRACE(fmt::format("space {} height {}", static_cast<int>(space), height));
        compose_video(path("flat.mkv"), "ffv1", AV_PIX_FMT_YUV420P, 32, height, 1, flat(yuv), AVCOL_RANGE_MPEG, space);
        const Pixels frame = read_all(path("flat.mkv"), {.color = true}).at(0);
        for (std::size_t p = 0; p < frame.size(); ++p) ASSERT_NEAR(frame[p], rgb[p % 3], 1) << p;
    };
    check(AVCOL_SPC_BT709, 576, bt709);
    check(AVCOL_SPC_SMPTE170M, 720, bt601);
    check(AVCOL_SPC_UNSPECIFIED, 576, bt601);
    check(AVCOL_SPC_UNSPECIFIED, 720, bt709);
}

TEST_F(VideoInputTest, NaturalOrder) {
    const std::vector<std::string> sorted{"",
                                          "a",
                                          "a1",
                                          "a01",
                                          "a2",
                                          "a10",
                                          "a10b2",
                                          "a10b10",
                                          "a99999999999999999999998",
                                          "a99999999999999999999999",
                                          "b",
                                          "b1/c2",
                                          "b1/c10"};
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        for (std::size_t j = 0; j < sorted.size(); ++j) {
            const bool tied = (sorted[i] == "a1" && sorted[j] == "a01") || (sorted[i] == "a01" && sorted[j] == "a1");
            if (!tied) {
                EXPECT_EQ(natural_less(sorted[i], sorted[j]), i < j) << sorted[i] << " " << sorted[j];
            }
        }
    }
    EXPECT_NE(natural_less("a1", "a01"), natural_less("a01", "a1"));
    EXPECT_TRUE(natural_less("img2.png", "img10.png"));
}

TEST_F(VideoInputTest, DirectoryIsReadInNaturalOrderWithoutItsOtherFiles) {
    fs::create_directory(path("d"));
    write_pixel("d/img10.png", 10);
    write_pixel("d/img2.png", 2);
    write_pixel("d/img1.PNG", 1);
    write_file("d/notes.txt", "no image");
    write_file("d/.hidden.png", "no image");
    fs::create_directory(path("d/folder.png"));
    EXPECT_EQ(pixels_of("d"), (Pixels{1, 2, 10}));
    EXPECT_EQ(pixels_of("d/"), (Pixels{1, 2, 10}));
    FrameReader reader(path("d"));
    EXPECT_EQ(reader.frames_expected(), 3);
    EXPECT_EQ(reader.rate(), 25);
}

TEST_F(VideoInputTest, EveryKindOfImageIsRead) {
    constexpr FrameFormat format{24, 16, 1};
    const std::map<std::string, const char*> lossless{
        {"png", "png"}, {"bmp", "bmp"}, {"tif", "tiff"}, {"tiff", "tiff"}, {"pgm", "pgm"}};
    for (const auto& [extension, codec] : lossless) {
        compose_video(path("a." + extension), codec, AV_PIX_FMT_GRAY8, 24, 16, 1,
                      [&](AVFrame& picture, int) { av::copy_to_picture(format, noise(format, 3), picture); });
        EXPECT_EQ(read_all(path("a." + extension)), Frames{noise(format, 3)}) << extension;
        // as whatever it is named
        fs::rename(path("a." + extension), path("b.webp"));
        EXPECT_EQ(read_all(path("b.webp")), Frames{noise(format, 3)}) << extension;
    }
    for (const char* extension : {"jpg", "jpeg"}) {
        compose_video(path(std::string("a.") + extension), "mjpeg", AV_PIX_FMT_YUV420P, 24, 16, 1, draw_waves,
                      AVCOL_RANGE_JPEG);
        EXPECT_GT(psnr(read_all(path(std::string("a.") + extension)).at(0), waves(format, 0)), 30) << extension;
    }
    compose_video(path("a.ppm"), "ppm", AV_PIX_FMT_RGB24, 24, 16, 1, [&](AVFrame& picture, int) {
        av::copy_to_picture({24, 16, 3}, noise({24, 16, 3}, 4), picture);
    });
    EXPECT_EQ(read_all(path("a.ppm"), {.color = true}), Frames{noise({24, 16, 3}, 4)});
}

TEST_F(VideoInputTest, Patterns) {
    for (const int k : {0, 3, 7, 10, 12, 100}) {
        write_pixel(fmt::format("in{:03}.png", k), static_cast<std::uint8_t>(k));
        write_pixel(fmt::format("x{}.png", k), static_cast<std::uint8_t>(k + 1));
    }
    write_pixel("in0012.png", 200);  // no printf writes this
    write_pixel("in1234.png", 201);
    write_pixel("x007.png", 202);
    write_pixel("x.png", 203);
    write_pixel("xa.png", 204);
    write_pixel("50%1.png", 205);
    EXPECT_EQ(pixels_of("in%03d.png"), (Pixels{0, 3, 7, 10, 12, 100, 201}));
    EXPECT_EQ(pixels_of("x%d.png"), (Pixels{1, 4, 8, 11, 13, 101}));
    EXPECT_EQ(pixels_of("50%%%d.png"), (Pixels{205}));
    EXPECT_EQ(pixels_of("in*0.png"), (Pixels{0, 10, 100}));
    EXPECT_EQ(pixels_of("x?.png"), (Pixels{1, 4, 8, 204}));
    EXPECT_EQ(pixels_of("x[37].png"), (Pixels{4, 8}));
    // a file is itself, whatever its name
    write_pixel("x[3].png", 77);
    write_pixel("in%03d.png", 78);
    EXPECT_EQ(pixels_of("x[3].png"), (Pixels{77}));
    EXPECT_EQ(pixels_of("in%03d.png"), (Pixels{78}));
}

TEST_F(VideoInputTest, RelativePaths) {
    write_pixel("a1.png", 5);
    const fs::path before = fs::current_path();
    fs::current_path(directory_);
    for (const char* input : {"a1.png", "a%d.png", "a*", "."}) {
        EXPECT_EQ(read_all(input), Frames{Pixels{5}}) << input;
    }
    VideoWriter writer("a.mp4", {16, 16, 1}, 25);
    fs::current_path(before);
    writer.write(Pixels(256, 9));
    writer.finish();
    EXPECT_EQ(names(), (std::set<std::string>{"a.mp4", "a1.png"}));
}

TEST_F(VideoInputTest, SelectionOfFrames) {
    constexpr FrameFormat format{32, 24, 1};
    const std::string video = write_video("a.mp4", format, 20);
    for (int k = 0; k < 20; ++k)
        write_png(path(fmt::format("{}.png", k)), format, waves(format, static_cast<unsigned>(k)));
    for (const std::string& input : {video, path("%d.png")}) {
        const Frames all = read_all(input);
        ASSERT_EQ(all.size(), 20u);
        const auto select = [&](Index start, Index frames, Index expected) {
            SCOPED_TRACE(fmt::format("{} {} {}", input, start, frames));
            FrameReader reader(input, {.start = start, .frames = frames});
            EXPECT_EQ(reader.frames_expected(), expected);
            EXPECT_EQ(reader.position(), 0);
            EXPECT_EQ(read_all(reader), std::vector(all.begin() + start, all.begin() + start + expected));
        };
        select(0, 7, 7);
        select(5, -1, 15);
        select(13, 4, 4);
        select(13, 100, 7);
        select(19, 1, 1);
        for (const Index start : {20, 1000}) {
            EXPECT_THROW(FrameReader(input, {.start = start}), InvalidArgument);
        }
    }
}

TEST_F(VideoInputTest, SelectionOutOfRange) {
    write_pixel("a.png", 1);
    for (const FrameSelection& selection : {FrameSelection{.start = -1},
                                            {.frames = 0},
                                            {.frames = -2},
                                            {.width = -1},
                                            {.height = -5},
                                            {.width = Index{1} << 40},
                                            {.width = 1 << 20, .height = 1 << 20}}) {
        EXPECT_THROW(FrameReader(path("a.png"), selection), InvalidArgument);
    }
    FrameReader reader(path("a.png"));
    Pixels two(2);
    EXPECT_THROW(reader.next(two), InvalidArgument);
    EXPECT_THROW(reader.next({}), InvalidArgument);
}

TEST_F(VideoInputTest, ShrinkingAveragesOverAreas) {
    constexpr FrameFormat format{40, 24, 1};
    const Pixels pixels = noise(format, 5);
    write_png(path("a.png"), format, pixels);
    const Pixels half = read_all(path("a.png"), {.width = 20, .height = 12}).at(0);
    for (Index i = 0; i < 12; ++i) {
        for (Index j = 0; j < 20; ++j) {
            const auto at = [&](Index y, Index x) { return pixels[(2 * i + y) * 40 + 2 * j + x]; };
            EXPECT_NEAR(half[i * 20 + j], (at(0, 0) + at(0, 1) + at(1, 0) + at(1, 1)) / 4., 1) << i << " " << j;
        }
    }
}

TEST_F(VideoInputTest, OneGivenSizeKeepsTheProportions) {
    write_png(path("a.png"), {40, 24, 1}, noise({40, 24, 1}, 6));
    const auto format = [&](Index width, Index height) {
        return FrameReader(path("a.png"), {.width = width, .height = height}).format();
    };
    EXPECT_EQ(format(0, 0), (FrameFormat{40, 24, 1}));
    EXPECT_EQ(format(20, 0), (FrameFormat{20, 12, 1}));
    EXPECT_EQ(format(0, 8), (FrameFormat{13, 8, 1}));
    EXPECT_EQ(format(13, 0), (FrameFormat{13, 8, 1}));
    EXPECT_EQ(format(1, 0), (FrameFormat{1, 1, 1}));
    EXPECT_EQ(format(7, 100), (FrameFormat{7, 100, 1}));
}

TEST_F(VideoInputTest, NearestKeepsLabels) {
    constexpr FrameFormat format{30, 20, 1};
    Pixels labels = noise(format, 7);
    for (std::uint8_t& label : labels) label = label < 128 ? 0 : label < 200 ? 85 : 255;
    write_png(path("labels.png"), format, labels);
    for (const auto& [width, height] : {std::pair<Index, Index>{10, 7}, {15, 10}, {61, 43}}) {
        const FrameSelection selection{.width = width, .height = height, .nearest = true};
        const Pixels scaled = read_all(path("labels.png"), selection).at(0);
        for (const std::uint8_t label : scaled) {
            EXPECT_TRUE(label == 0 || label == 85 || label == 255) << int{label};
        }
    }
    const Pixels twice = read_all(path("labels.png"), {.width = 60, .height = 40, .nearest = true}).at(0);
    for (Index i = 0; i < 40; ++i) {
        for (Index j = 0; j < 60; ++j) EXPECT_EQ(twice[i * 60 + j], labels[i / 2 * 30 + j / 2]) << i << " " << j;
    }
}

TEST_F(VideoInputTest, GreyAsColorHasEqualChannels) {
    constexpr FrameFormat format{19, 7, 1};
    const Pixels grey = noise(format, 8);
    write_png(path("grey.png"), format, grey);
    const Pixels color = read_all(path("grey.png"), {.color = true}).at(0);
    for (std::size_t p = 0; p < color.size(); ++p) EXPECT_EQ(color[p], grey[p / 3]);
}

TEST_F(VideoInputTest, FramesExpectedIsTheContainersWord) {
    const auto expected = [&](const std::string& name) { return FrameReader(path(name)).frames_expected(); };
    for (const char* name : {"a.avi", "a.mov", "a.mkv", "a.ts"}) {
        compose_video(path(name), "mpeg2video", AV_PIX_FMT_YUV420P, 64, 48, 12, draw_waves);
        EXPECT_EQ(read_all(path(name)).size(), 12u) << name;
    }
    EXPECT_EQ(expected("a.avi"), 12);
    EXPECT_EQ(expected("a.mov"), 12);
    EXPECT_EQ(expected("a.mkv"), -1);
    EXPECT_EQ(expected("a.ts"), -1);
    EXPECT_EQ(FrameReader(path("a.mkv"), {.frames = 5}).frames_expected(), -1);
    // whose header counts the empty frames between its frames
    compose_video(path("gaps.avi"), "mjpeg", AV_PIX_FMT_YUV420P, 64, 48, 12, draw_waves, AVCOL_RANGE_JPEG,
                  AVCOL_SPC_UNSPECIFIED, 2);
    EXPECT_EQ(read_all(path("gaps.avi")).size(), 12u);
    EXPECT_EQ(expected("gaps.avi"), -1);
}

TEST_F(VideoInputTest, NoInput) {
    expect_unreadable_frames(path("no.mp4"), "No such file or directory");
    expect_unreadable_frames(path("no.png"), "No such file or directory");
    expect_unreadable_frames(path("no/in%d.png"), "No such file or directory");
    expect_unreadable_frames("", "No such file or directory");
    expect_unreadable_frames(path("no*.png"), "no file matches");
    expect_unreadable_frames(path("no%04d.png"), "no file matches");
    fs::create_directory(path("empty"));
    write_file("empty/notes.txt", "no image");
    expect_unreadable_frames(path("empty"), "holds no image");
    expect_unreadable_frames(write_file("empty.avi", ""), "is empty");
    expect_unreadable_frames("/dev/null", "is not a regular file");
    // a camera is a stream; without libavdevice the error has the way by a pipe
    EXPECT_TRUE(video::names_stream("/dev/video0"));
    EXPECT_FALSE(video::names_stream(path("video0")));
    expect_unreadable_frames("/dev/video-none", "/dev/video-none");
}

TEST_F(VideoInputTest, NoPermission) {
    const std::string video = write_video("a.mp4", {16, 16, 1}, 2);
    fs::create_directory(path("d"));
    write_pixel("d/a.png", 1);
    fs::permissions(video, fs::perms::none);
    fs::permissions(path("d"), fs::perms::none);
    const OrdinaryUser user;
    expect_unreadable_frames(video, "Permission denied");
    expect_unreadable_frames(path("d"), "Permission denied");
    expect_unreadable_frames(path("d/in%d.png"), "Permission denied");
}

TEST_F(VideoInputTest, NeitherVideoNorImage) {
    const Pixels bytes = noise({20'000, 1, 1}, 9);
    const std::string garbage(bytes.begin(), bytes.end());
    for (const char* name : {"garbage", "garbage.mp4", "garbage.avi"}) {
        expect_unreadable_frames(write_file(name, garbage), "cannot be read as a video or an image");
    }
    for (const char* extension : {"png", "jpg", "bmp", "tiff", "webp", "pgm"}) {
        expect_unreadable_frames(write_file(std::string("garbage.") + extension, garbage), "could not be decoded");
    }
    expect_unreadable_frames(write_file("text.csv", "1, 2, 3\n4, 5, 6\n"), "cannot be read as a video or an image");
    // sound alone: half a second of silence
    std::string wave("RIFF\x64\x1f\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\x40\x1f\0\0",
                     44);
    expect_unreadable_frames(write_file("sound.wav", wave + std::string(8000, '\x80')), "holds no video");
}

TEST_F(VideoInputTest, PlaylistOpensNoOtherFile) {
    compose_video(path("a.ts"), "mpeg2video", AV_PIX_FMT_YUV420P, 64, 48, 10, draw_waves);
    write_file("a.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:0.4,\n" + path("a.ts") + "\n#EXT-X-ENDLIST\n");
    expect_unreadable_frames(path("a.m3u8"), "");
}

TEST_F(VideoInputTest, VideoWithoutAWholeFrame) {
    write_video("a.mp4", {64, 48, 1}, 5);
    std::string bytes = file_bytes("a.mp4");
    const std::size_t data = bytes.find("mdat") + 4;
    overwrite_with_noise(bytes, data, bytes.size() - data);
    expect_unreadable_frames(write_file("junk.mp4", bytes), "no frame could be decoded");
    // the index is not whole
    expect_unreadable_frames(write_file("head.mp4", file_bytes("a.mp4").substr(0, 300)), "");
}

TEST_F(VideoInputTest, ImagesThatDoNotDecodeAreNamed) {
    constexpr FrameFormat format{64, 48, 1};
    fs::create_directory(path("d"));
    for (int k = 0; k < 30; ++k)
        write_png(path(fmt::format("d/{}.png", k)), format, noise(format, static_cast<unsigned>(k)));
    const std::string whole = file_bytes("d/17.png");
    for (const std::string& broken :
         {whole.substr(0, whole.size() / 2), whole.substr(0, 30), std::string("png"), std::string()}) {
        write_file("d/17.png", broken);
        FrameReader reader(path("d"));
        Pixels frame(static_cast<std::size_t>(format.bytes()));
        for (int k = 0; k < 17; ++k) EXPECT_TRUE(reader.next(frame));
        expect_refusal<UnreadableFile>(path("d/17.png"), broken.empty() ? "is empty" : "the image could not be decoded",
                                       [&] { reader.next(frame); });
    }
    compose_video(path("a.jpg"), "mjpeg", AV_PIX_FMT_YUV420P, 64, 48, 1, draw_waves, AVCOL_RANGE_JPEG);
    const std::string jpeg = file_bytes("a.jpg");
    expect_unreadable_frames(write_file("cut.jpg", jpeg.substr(0, jpeg.size() * 2 / 3)),
                             "the image could not be decoded");
}

TEST_F(VideoInputTest, SizeThatChangesBetweenImages) {
    fs::create_directory(path("d"));
    for (int k = 0; k < 5; ++k) write_png(path(fmt::format("d/{}.png", k)), {8, 6, 1}, Pixels(48));
    write_png(path("d/3.png"), {8, 7, 1}, Pixels(56));
    expect_refusal<UnreadableFile>(path("d/3.png"), "frame 3 is 8 x 7, and those before it are 8 x 6",
                                   [&] { read_all(path("d")); });
    expect_refusal<UnreadableFile>(path("d/3.png"), "frame 3 is 8 x 7", [&] { read_all(path("d"), {.start = 1}); });
    EXPECT_EQ(read_all(path("d"), {.frames = 3}).size(), 3u);
    EXPECT_EQ(read_all(path("d"), {.start = 4}).size(), 1u);
}

TEST_F(VideoInputTest, SizeThatChangesWithinAVideo) {
    for (const auto& [extension, codec] : {std::pair{"mjpeg", "mjpeg"}, {"ts", "mpeg2video"}}) {
        const auto name = [extension = std::string(extension)](const char* stem) { return stem + ("." + extension); };
        compose_video(path(name("a")), codec, AV_PIX_FMT_YUV420P, 64, 48, 10, draw_waves, AVCOL_RANGE_JPEG);
        compose_video(path(name("b")), codec, AV_PIX_FMT_YUV420P, 96, 64, 10, draw_waves, AVCOL_RANGE_JPEG);
        write_file(name("both"), file_bytes(name("a")) + file_bytes(name("b")));
        // at the change a decoder may drop the frame that it holds
        const bool exact = codec == std::string("mjpeg");
        expect_unreadable_frames(path(name("both")),
                                 std::string(exact ? "frame 10" : "") + " is 96 x 64, and those before it are 64 x 48");
        EXPECT_EQ(read_all(path(name("both")), {.frames = exact ? 10 : 9}).size(), exact ? 10u : 9u);
    }
}

TEST_F(VideoInputTest, TruncatedVideoGivesItsWholeFrames) {
    write_video("a.mp4", {128, 96, 1}, 60, 25, drifting_noise);
    std::vector<std::string> inputs{"a.mp4"};
    const auto compose = [&](const char* name, const char* codec, AVColorRange range = AVCOL_RANGE_UNSPECIFIED) {
        if (avcodec_find_encoder_by_name(codec) == nullptr) return;
        compose_video(path(name), codec, AV_PIX_FMT_YUV420P, 128, 96, 60, draw_waves, range);
        inputs.push_back(name);
    };
    compose("b.avi", "mjpeg", AVCOL_RANGE_JPEG);
    compose("c.mkv", "ffv1");
    compose("d.avi", "mpeg4");
    compose("e.ts", "mpeg2video");
    compose("f.ts", "mpeg4");
    compose("g.ts", "libx264");
    compose("h.mov", "mjpeg", AVCOL_RANGE_JPEG);
    for (const std::string& name : inputs) {
        const Frames whole = read_all(path(name));
        ASSERT_EQ(whole.size(), 60u) << name;
        const std::string bytes = file_bytes(name);
        std::vector<std::size_t> cuts;
        for (const std::size_t percent : {55, 70, 91}) cuts.push_back(bytes.size() * percent / 100);
        if (name == "a.mp4" || name == "h.mov") cuts.push_back(packet_positions(path(name)).at(40));
        for (const std::size_t cut : cuts) {
            SCOPED_TRACE(fmt::format("{} at {} of {}", name, cut, bytes.size()));
            write_file("cut-" + name, bytes.substr(0, cut));
            for (int again = 0; again < 3; ++again) {
                FrameReader reader(path("cut-" + name));
                const Frames frames = read_all(reader);
                EXPECT_LT(frames.size(), 60u);
                EXPECT_GT(frames.size(), 10u);
                EXPECT_TRUE(std::equal(frames.begin(), frames.end(), whole.begin()));
                // a transport stream that is cut between two frames is whole
                if (!name.ends_with(".ts") || !reader.damage().empty()) {
                    const std::string start = fmt::format("decoding failed after {} frames: ", frames.size());
                    EXPECT_TRUE(reader.damage().starts_with(start) && reader.damage().size() > start.size())
                        << reader.damage();
                }
                const Index expected = reader.frames_expected();
                EXPECT_TRUE(expected == 60 || expected == -1) << expected;
            }
            // ends before the damage: nothing to say
            FrameReader reader(path("cut-" + name), {.frames = 5});
            EXPECT_EQ(read_all(reader).size(), 5u);
            EXPECT_EQ(reader.damage(), "");
        }
    }
}

TEST_F(VideoInputTest, DamageInTheMiddleEndsTheVideoThere) {
    write_video("a.mp4", {128, 96, 1}, 60, 25, drifting_noise);
    const Frames whole = read_all(path("a.mp4"));
    std::string bytes = file_bytes("a.mp4");
    const std::size_t data = bytes.find("mdat"), middle = data + (bytes.size() - data) / 2;
    overwrite_with_noise(bytes, middle, 4000);
    FrameReader reader(write_file("junk.mp4", bytes));
    const Frames frames = read_all(reader);
    EXPECT_GT(frames.size(), 5u);
    EXPECT_LT(frames.size(), 60u);
    EXPECT_TRUE(std::equal(frames.begin(), frames.end(), whole.begin()));
    EXPECT_TRUE(reader.damage().starts_with(fmt::format("decoding failed after {} frames: ", frames.size())))
        << reader.damage();
    try {
        FrameReader(path("junk.mp4"), {.start = 59});
        ADD_FAILURE() << "nothing was thrown";
    } catch (const InvalidArgument& error) {
        EXPECT_NE(std::string(error.what()).find(reader.damage()), std::string::npos) << error.what();
    }
}

TEST_F(VideoInputTest, FFmpegsMessagesAreKeptOffStderr) {
    write_video("a.mp4", {128, 96, 1}, 30, 25, drifting_noise);
    std::string bytes = file_bytes("a.mp4");
    overwrite_with_noise(bytes, bytes.size() / 2, bytes.size() / 4);
    write_file("junk.mp4", bytes);
    write_file("junk.png", bytes);
    testing::internal::CaptureStderr();
    FrameReader reader(path("junk.mp4"));
    read_all(reader);
    EXPECT_NE(reader.damage(), "");
    EXPECT_THROW(FrameReader(path("junk.png")), UnreadableFile);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(VideoInputTest, RecordingThatStartsBetweenKeyFrames) {
    compose_video(path("a.ts"), "mpeg2video", AV_PIX_FMT_YUV420P, 128, 96, 30, draw_waves);
    const std::string bytes = file_bytes("a.ts");
    const Frames whole = read_all(path("a.ts"));
    const std::size_t packet = 188;
    FrameReader reader(write_file("late.ts", bytes.substr(bytes.size() / 3 / packet * packet)));
    const Frames frames = read_all(reader);
    EXPECT_EQ(reader.damage(), "");
    ASSERT_GT(frames.size(), 10u);
    ASSERT_LT(frames.size(), 30u);
    EXPECT_TRUE(std::equal(frames.rbegin(), frames.rend(), whole.rbegin()));
}

}  // namespace
}  // namespace quoin::test

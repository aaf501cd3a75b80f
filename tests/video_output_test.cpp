// Videos and PNG files, written: what comes back, and that they appear complete or not at all.

#include <array>

#include "video_files.hpp"

namespace quoin::test {
namespace {

using VideoOutputTest = VideoTest;

TEST_F(VideoOutputTest, PngComesBackBitForBit) {
    constexpr FrameFormat formats[] = {{1, 1, 1}, {5, 3, 1}, {5, 3, 3}, {640, 1, 1}, {1, 333, 3}, {257, 129, 3}};
    for (const FrameFormat& format : formats) {
        const Pixels pixels = noise(format, 1);
        write_png(path("a.png"), format, pixels);
        FrameReader reader(path("a.png"), {.color = format.channels == 3});
        EXPECT_EQ(reader.format(), format);
        EXPECT_EQ(reader.frames_expected(), 1);
        EXPECT_EQ(reader.rate(), 25);
        EXPECT_EQ(read_all(reader), Frames{pixels});
        EXPECT_EQ(names(), std::set<std::string>{"a.png"});
    }
}

TEST_F(VideoOutputTest, Mp4ComesBackWithinItsQuantiser) {
    // At constant rate factor 18 quantisers stay at or below 24, where a step is 10: an orthonormal transform's
    // coefficients, and so the pixels in the mean, are off by at most that; 255/219 for the range. MPEG-4's step of 4
    // is below.
    const double bound = 20 * std::log10(255 / (10 * 255. / 219));
    for (const FrameFormat& format : {FrameFormat{96, 64, 1}, FrameFormat{96, 64, 3}, FrameFormat{33, 17, 1}}) {
        SCOPED_TRACE(fmt::format("{} x {} x {}", format.width, format.height, format.channels));
        write_video("a.mp4", format, 30, 30000. / 1001);
        EXPECT_EQ(names(), std::set<std::string>{"a.mp4"});
        FrameReader reader(path("a.mp4"), {.color = format.channels == 3});
        EXPECT_NEAR(reader.rate(), 30000. / 1001, 1e-9);
        EXPECT_EQ(reader.frames_expected(), 30);
        const FrameFormat even{format.width + format.width % 2, format.height + format.height % 2, format.channels};
        EXPECT_EQ(reader.format(), even);
        const Frames frames = read_all(reader);
        EXPECT_EQ(reader.damage(), "");
        ASSERT_EQ(frames.size(), 30u);
        for (unsigned k = 0; k < 30; ++k) {
            Pixels cropped;
            for (Index i = 0; i < format.height; ++i) {
                const auto row = frames[k].begin() + i * even.width * even.channels;
                cropped.insert(cropped.end(), row, row + format.width * format.channels);
            }
            EXPECT_GT(psnr(cropped, waves(format, k)), bound) << k;
        }
        const std::string bytes = file_bytes("a.mp4");
        EXPECT_LT(bytes.find("moov"), bytes.find("mdat"));
    }
}

TEST_F(VideoOutputTest, Mp4KeepsRangeAndColor) {
    const auto come_back = [&](const Pixels& color, Index channels, double within) {
        const FrameFormat format{32, 32, channels};
        Pixels frame(static_cast<std::size_t>(format.bytes()));
        for (std::size_t p = 0; p < frame.size(); ++p) frame[p] = color[p % color.size()];
        VideoWriter writer(path("flat.mp4"), format, 25);
        writer.write(frame);
        writer.finish();
        for (const Pixels& back : read_all(path("flat.mp4"), {.color = channels == 3})) {
            for (std::size_t p = 0; p < back.size(); ++p) ASSERT_NEAR(back[p], frame[p], within) << p;
        }
    };
    // A flat block has one coefficient, off by half a step of 10 over a block of 4 x 4: 1.25, and by 1/2 as it is
    // rounded.
    for (int grey = 0; grey < 256; grey += 15) come_back({static_cast<std::uint8_t>(grey)}, 1, 1.75 * 255 / 219 + 0.5);
    // Blue is 2(1 − 0.0722)·255/224 times a chroma that is off by as much.
    for (const Pixels& color : {Pixels{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {20, 120, 220}, {255, 255, 255}}) {
        come_back(color, 3, 1.75 * (255 / 219. + 1.86 * 255 / 224) + 0.5);
    }
}

TEST_F(VideoOutputTest, OddSizesAreMadeEvenByRepetitionAndNotByScaling) {
    constexpr FrameFormat format{33, 17, 1};
    Pixels frame(static_cast<std::size_t>(format.bytes()), 40);
    for (Index i = 0; i < format.height; ++i) frame[i * format.width + 32] = 210;  // the last column
    for (Index j = 0; j < format.width; ++j) frame[16 * format.width + j] = 210;   // the last row
    VideoWriter writer(path("odd.mp4"), format, 25);
    writer.write(frame);
    writer.finish();
    const Pixels back = read_all(path("odd.mp4")).at(0);
    for (Index i = 0; i < 18; ++i) {
        for (Index j = 0; j < 34; ++j)
            EXPECT_NEAR(back[i * 34 + j], i >= 16 || j >= 32 ? 210 : 40, 25) << i << " " << j;
    }
    for (const FrameFormat& tiny : {FrameFormat{1, 1, 3}, FrameFormat{1, 50, 1}, FrameFormat{51, 1, 3}}) {
        write_video("tiny.mp4", tiny, 3);
        EXPECT_EQ(read_all(path("tiny.mp4")).size(), 3u);
    }
}

TEST_F(VideoOutputTest, JoinedFilmHasItsTimesAndPixelShape) {
    // 12 frames, the encoder's order of which is another one, in units of 1/30 s
    FilmShape shape{{1, 30}, {}, {16, 11}};
    std::vector<std::int64_t> begins;
    for (const Index begin : {0, 1, 2, 3, 30, 31, 90, 91, 92, 93, 200, 201}) {
        shape.times.push_back({begin, 1});
        begins.push_back(begin);
    }
    FrameReader reader(write_film("a.mp4", {64, 48, 1}, shape));
    EXPECT_EQ(reader.pixel_aspect(), (Ratio{16, 11}));
    EXPECT_EQ(reader.frames_expected(), 12);
    const Ratio unit = reader.time_unit();
    ASSERT_EQ(unit.num, 1);
    ASSERT_EQ(unit.den % 30, 0);
    for (std::int64_t& begin : begins) begin *= unit.den / 30;
    EXPECT_EQ(read_times(reader), begins);
    const Frames frames = read_all(path("a.mp4"));
    for (unsigned k = 0; k < 12; ++k) EXPECT_GT(psnr(frames[k], waves({64, 48, 1}, k < 5 ? k : k - 5)), 25) << k;

    const std::vector<std::string> parts{write_video("part.mp4", {64, 48, 1}, 3)};
    for (const std::size_t times : {0u, 2u, 4u}) {
        shape.times.resize(times);
        EXPECT_THROW(join_videos(parts, path("b.mp4"), 25, shape), InvalidArgument) << times;
    }
    EXPECT_FALSE(fs::exists(path("b.mp4")));
}

TEST_F(VideoOutputTest, UnfinishedVideoLeavesNothing) {
    write_file("a.mp4", "before");
    {
        VideoWriter writer(path("a.mp4"), {32, 32, 1}, 25);
        VideoWriter moved = std::move(writer);
        for (unsigned k = 0; k < 50; ++k) moved.write(noise({32, 32, 1}, k));
        EXPECT_EQ(names().size(), 2u);
    }
    EXPECT_EQ(names(), std::set<std::string>{"a.mp4"});
    EXPECT_EQ(file_bytes("a.mp4"), "before");
    write_video("a.mp4", {32, 32, 1}, 3);
    EXPECT_EQ(read_all(path("a.mp4")).size(), 3u);
    EXPECT_EQ(names(), std::set<std::string>{"a.mp4"});
}

TEST_F(VideoOutputTest, WriterChecksItsArguments) {
    const double no_rates[] = {0, -1, nan, inf, 1e-12};
    for (const double rate : no_rates)
        EXPECT_THROW(VideoWriter(path("a.mp4"), {16, 16, 1}, rate), InvalidArgument) << rate;
    for (const FrameFormat& format : {FrameFormat{0, 16, 1},
                                      {16, 0, 1},
                                      {-2, 16, 1},
                                      {16, 16, 2},
                                      {16, 16, 4},
                                      {Index{1} << 33, 2, 1},
                                      {1 << 20, 1 << 20, 1}}) {
        EXPECT_THROW(VideoWriter(path("a.mp4"), format, 25), InvalidArgument);
        EXPECT_THROW(write_png(path("a.png"), format, Pixels(16)), InvalidArgument);
    }
    EXPECT_THROW(VideoWriter(path("a.mp4"), {16'385, 2, 1}, 25), InvalidArgument);
    EXPECT_THROW(write_png(path("a.png"), {4, 4, 1}, Pixels(15)), InvalidArgument);
    EXPECT_THROW(VideoWriter(path("a.mp4"), {16, 16, 1}, 25).finish(), InvalidArgument);
    EXPECT_EQ(names(), std::set<std::string>{});
    VideoWriter writer(path("a.mp4"), {16, 16, 1}, 25);
    EXPECT_THROW(writer.write(Pixels(255)), InvalidArgument);
    EXPECT_THROW(writer.write({}), InvalidArgument);
    writer.write(Pixels(256));
    writer.finish();
    EXPECT_THROW(writer.write(Pixels(256)), InvalidArgument);
    EXPECT_THROW(writer.finish(), InvalidArgument);
    EXPECT_EQ(names(), std::set<std::string>{"a.mp4"});
}

TEST_F(VideoOutputTest, UnwritablePaths) {
    const auto expect_unwritable = [&](const std::string& target, const std::string& why) {
        expect_refusal<UnwritableFile>(target, why, [&] { VideoWriter(target, {16, 16, 1}, 25); });
        expect_refusal<UnwritableFile>(target, why, [&] { write_png(target, {1, 1, 1}, Pixels{1}); });
    };
    expect_unwritable(path("no/such/a"), "No such file or directory");
    expect_unwritable(directory_.string(), "names a directory");
    fs::permissions(directory_,
                    fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
    const OrdinaryUser user;
    expect_unwritable(path("a"), "Permission denied");
}

TEST_F(VideoOutputTest, FullDiskLeavesNothing) {
    const FrameFormat format{256, 256, 3};
    write_file("a.mp4", "before");
    {
        const FileSizeLimit limit(20'000);
        expect_refusal<UnwritableFile>(path("a.png"), "File too large",
                                       [&] { write_png(path("a.png"), format, noise(format, 1)); });
        VideoWriter writer(path("a.mp4"), format, 25);
        expect_refusal<UnwritableFile>(path("a.mp4"), "File too large", [&] {
            for (unsigned k = 0; k < 200; ++k) writer.write(noise(format, k));
        });
        EXPECT_EQ(names(), std::set<std::string>{"a.mp4"});
        EXPECT_THROW(writer.write(noise(format, 0)), InvalidArgument);
        EXPECT_THROW(writer.finish(), InvalidArgument);
        // H.264 comes out at the end
        VideoWriter brief(path("a.mp4"), format, 25);
        expect_refusal<UnwritableFile>(path("a.mp4"), "File too large", [&] {
            brief.write(noise(format, 0));
            brief.finish();
        });
    }
    EXPECT_EQ(file_bytes("a.mp4"), "before");
    EXPECT_EQ(names(), std::set<std::string>{"a.mp4"});
}

}  // namespace
}  // namespace quoin::test

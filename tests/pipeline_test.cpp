// The order of what streams, by vector clocks: a device that computes nothing and knows what is after what.

#include "algorithms/out_of_core/pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "file_qr/run.hpp"
#include "host/device.hpp"

namespace quoin {

struct Recorder;

using VectorClock = std::array<Index, 3>;  // of each stream, how many of its operations are before

template <>
class Context<Recorder> {
public:
    explicit Context(int stream, std::vector<Context>* moves = nullptr) : stream_(stream), moves_(moves) {}
    /// The moment of a new operation.
    VectorClock enqueue() {
        ++clock_[stream_];
        return clock_;
    }
    void follow(const VectorClock& other) {
        for (int s = 0; s < 3; ++s) clock_[s] = std::max(clock_[s], other[s]);
    }
    const VectorClock& clock() const { return clock_; }
    std::vector<Context>& moves() { return *moves_; }
    void wait() const {}

private:
    int stream_;
    std::vector<Context>* moves_;
    VectorClock clock_{};
};

template <>
class Event<Recorder> {
public:
    void record(Context<Recorder>& ctx) { clock_ = ctx.clock(); }
    void precede(Context<Recorder>& ctx) const { ctx.follow(clock_); }

private:
    VectorClock clock_{};
};

template <>
void throw_if_stopped(Context<Recorder>&) {}
template <>
void wait_for(Context<Recorder>& ctx, Context<Recorder>& other) {
    ctx.follow(other.clock());
}
template <>
void finish_copies(Context<Recorder>&) {}
template <>
Context<Recorder>& copy_in_stream(Context<Recorder>& ctx) {
    return ctx.moves()[0];
}
template <>
Context<Recorder>& copy_out_stream(Context<Recorder>& ctx) {
    return ctx.moves()[1];
}

namespace test {
namespace {

constexpr int compute_stream = 0, in_stream = 1, out_stream = 2;

/// Steps of one run.
struct Moments {
    std::vector<VectorClock> come, compute, stage, leave;
};

class PipelineTest : public testing::Test {
protected:
    void run(Index steps, Pipeline<Recorder>::Places places, Moments& of, First first = First::Come) {
        pipeline_.run(
            steps, [&](Index) { of.come.push_back(pipeline_.in.enqueue()); },
            [&](Index) { of.compute.push_back(ctx_.enqueue()); }, [&](Index) { of.stage.push_back(ctx_.enqueue()); },
            [&](Index) { of.leave.push_back(pipeline_.out.enqueue()); }, places, first);
    }

    std::vector<Context<Recorder>> moves_{Context<Recorder>(in_stream), Context<Recorder>(out_stream)};
    Context<Recorder> ctx_{compute_stream, &moves_};
    Pipeline<Recorder> pipeline_{ctx_};
};

TEST_F(PipelineTest, NothingIsTouchedWhileItMovesAndMovesOverlapTheComputation) {
    for (const Index steps : {0, 1, 2, 3, 9}) {
        for (const Index in : {0, 2}) {
            for (const auto& [out, first] :
                 {std::pair<Index, First>{1, First::Come}, {2, First::Come}, {1, First::Compute}}) {
                SCOPED_TRACE(testing::Message() << steps << " steps, places: " << in << " in, " << out << " out");
                Moments of;
                run(steps, {in, out}, of, first);
                ASSERT_EQ(static_cast<Index>(of.leave.size()), steps);
                const auto came = [&](Index i, const VectorClock& when) {
                    return of.come[i][in_stream] <= when[in_stream];
                };
                const auto staged = [&](Index i, const VectorClock& when) {
                    return of.stage[i][compute_stream] <= when[compute_stream];
                };
                const auto left = [&](Index i, const VectorClock& when) {
                    return of.leave[i][out_stream] <= when[out_stream];
                };
                for (Index i = 0; i < steps; ++i) {
                    EXPECT_EQ(came(i, of.compute[i]), in > 0) << "step " << i;
                    EXPECT_TRUE(staged(i, of.leave[i])) << "step " << i;
                    // the place of step i − 2 is taken once it was staged, while step i − 1 computes
                    EXPECT_TRUE(i < 2 || in == 0 || staged(i - 2, of.come[i])) << "step " << i;
                    EXPECT_FALSE(i >= 1 && of.compute[i - 1][compute_stream] <= of.come[i][compute_stream])
                        << "step " << i;
                    // what goes out has left its place, and goes on while later steps compute
                    EXPECT_TRUE(i < out || left(i - out, of.stage[i])) << "step " << i;
                    EXPECT_FALSE(i >= 1 && left(i - 1, of.compute[i])) << "step " << i;
                    EXPECT_FALSE(i >= 1 && out == 2 && left(i - 1, of.stage[i])) << "step " << i;
                }
                pipeline_.finish();
                pipeline_.turn();
            }
        }
    }
}

TEST_F(PipelineTest, OneFollowsTheOtherIfNotAsynchronous) {
    for (const First first : {First::Come, First::Compute}) {
        for (const bool asynchronous : {true, false}) {
            std::vector<std::pair<int, VectorClock>> done;  // stream and moment, in the order of the calls
            pipeline_.asynchronous = asynchronous;
            pipeline_.run(
                4, [&](Index) { done.emplace_back(in_stream, pipeline_.in.enqueue()); },
                [&](Index) { done.emplace_back(compute_stream, ctx_.enqueue()); }, [](Index) {},
                [&](Index) { done.emplace_back(out_stream, pipeline_.out.enqueue()); }, {2, 1}, first);
            Index overlaps = 0;
            for (std::size_t i = 1; i < done.size(); ++i) {
                const int before = done[i - 1].first;
                overlaps += done[i].second[before] < done[i - 1].second[before];
            }
            EXPECT_EQ(overlaps > 0, asynchronous) << overlaps;
        }
    }
}

TEST_F(PipelineTest, ATurnFindsWhatWasMovedOutAndUsed) {
    for (int runs = 0; runs < 3; ++runs) {
        Moments of;
        run(4, {2, 1}, of);
        pipeline_.turn();
        const VectorClock next = pipeline_.in.enqueue();
        EXPECT_LE(of.leave.back()[out_stream], next[out_stream]);
        EXPECT_LE(of.stage.back()[compute_stream], next[compute_stream]);
    }
    Moments of;
    run(2, {2, 1}, of);
    pipeline_.finish();
    EXPECT_LE(of.leave.back()[out_stream], ctx_.clock()[out_stream]);
}

/// The caller computes while the thread reads the next step, and finds what it threw.
TEST(PipelineOfFiles, ReadsBesideTheComputationAndThrowsAtItsStep) {
    for (const Index bad : {-1, 0, 2}) {
        Context<Host> ctx(1);
        Context<Disk> disk;
        std::array<Index, 2> places{};
        std::atomic<Index> begun{0};
        Index computed = 0;
        const auto run = [&] {
            Pipeline<Host, Disk>(ctx, disk).run(
                5,
                [&](Index i) {
                    disk.start([&, i] {
                        begun = i + 1;
                        if (i == bad) throw UnreadableFile("A", "is bad");
                        places[i % 2] = 10 * i;
                    });
                },
                [&](Index i) {
                    while (begun < std::min<Index>(i + 2, 5)) std::this_thread::yield();
                    EXPECT_EQ(places[i % 2], 10 * i);
                    ++computed;
                });
        };
        if (bad < 0) {
            run();
            EXPECT_EQ(computed, 5);
        } else {
            EXPECT_THROW(run(), UnreadableFile);
            EXPECT_EQ(computed, bad);
        }
        EXPECT_FALSE(disk.is_busy());
    }
}

/// Nothing is read into memory that is gone.
TEST(PipelineOfFiles, WaitsForTheThreadWhateverEndsIt) {
    Context<Host> ctx(1);
    Context<Disk> disk;
    std::atomic<bool> read{false};
    const auto come = [&](Index i) {
        disk.start([&, i] {
            if (i == 0) return;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            read = true;
        });
    };
    const auto interrupted = [&] { Pipeline<Host, Disk>(ctx, disk).run(2, come, [](Index) { throw Interrupted(); }); };
    EXPECT_THROW(interrupted(), Interrupted);
    EXPECT_TRUE(read);
    disk.start([] { throw UnwritableFile("R", "is full"); });
    EXPECT_THROW(disk.start([] {}), UnwritableFile);
}

}  // namespace
}  // namespace test
}  // namespace quoin

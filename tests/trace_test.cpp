// Timelines: what is recorded, in which order, and what is written.

#include "quoin/rank_trace.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <thread>
#include <variant>

#include "checks.hpp"
#include "gallery.hpp"
#include "quoin/distributed.hpp"
#include "quoin/least_squares.hpp"
#include "quoin/svd.hpp"

namespace quoin::test {
namespace {

/// A parsed JSON text; throws std::runtime_error where it is none (RFC 8259, without surrogate pairs).
class Json {
public:
    static Json parse(const std::string& text) {
        const char *p = text.data(), *end = p + text.size();
        Json value = read(p, end);
        skip(p, end);
        if (p != end) fail("text behind the value");
        return value;
    }
    const std::vector<Json>& array() const { return std::get<std::vector<Json>>(value_); }
    bool has(const std::string& key) const { return std::get<Object>(value_).count(key) > 0; }
    const Json& operator[](const std::string& key) const { return std::get<Object>(value_).at(key); }
    double number() const { return std::get<double>(value_); }
    const std::string& text() const { return std::get<std::string>(value_); }

private:
    using Object = std::map<std::string, Json>;
    [[noreturn]] static void fail(const std::string& why) { throw std::runtime_error("not JSON: " + why); }
    static void skip(const char*& p, const char* end) {
        while (p != end && std::isspace(static_cast<unsigned char>(*p))) ++p;
    }
    static char next(const char*& p, const char* end) {
        skip(p, end);
        return p == end ? '\0' : *p;
    }
    static void expect(const char*& p, const char* end, char c) {
        if (next(p, end) != c) fail(std::string("no ") + c);
        ++p;
    }
    static std::string read_string(const char*& p, const char* end) {
        expect(p, end, '"');
        std::string text;
        for (; p != end && *p != '"'; ++p) {
            if (static_cast<unsigned char>(*p) < 0x20) fail("a control character");
            if (*p != '\\') {
                text += *p;
                continue;
            }
            if (++p == end) break;
            switch (*p) {
                case '"':
                case '\\':
                case '/': text += *p; break;
                case 'n': text += '\n'; break;
                case 't': text += '\t'; break;
                case 'u': {
                    const int code = std::stoi(std::string(p + 1, p + 5), nullptr, 16);
                    if (code > 0x7f) fail("not ASCII");
                    text += static_cast<char>(code);
                    p += 4;
                    break;
                }
                default: fail("an escape");
            }
        }
        expect(p, end, '"');
        return text;
    }
    static Json read(const char*& p, const char* end) {
        Json value;
        const char first = next(p, end);
        if (first == '{') {
            Object object;
            char separator = *p++;
            if (next(p, end) == '}') separator = *p++;
            while (separator != '}') {
                const std::string key = read_string(p, end);
                expect(p, end, ':');
                if (!object.emplace(key, read(p, end)).second) fail("a key twice");
                separator = next(p, end);
                if (separator != ',' && separator != '}') fail("no , or }");
                ++p;
            }
            value.value_ = std::move(object);
        } else if (first == '[') {
            std::vector<Json> array;
            char separator = *p++;
            if (next(p, end) == ']') separator = *p++;
            while (separator != ']') {
                array.push_back(read(p, end));
                separator = next(p, end);
                if (separator != ',' && separator != ']') fail("no , or ]");
                ++p;
            }
            value.value_ = std::move(array);
        } else if (first == '"') {
            value.value_ = read_string(p, end);
        } else {
            std::size_t length = 0;
            value.value_ = std::stod(std::string(p, end), &length);
            p += length;
        }
        return value;
    }
    std::variant<double, std::string, std::vector<Json>, Object> value_;
};

/// The complete events of a written trace.
std::vector<Json> events(const std::string& text) {
    std::vector<Json> complete;
    const Json trace = Json::parse(text);
    for (const Json& event : trace["traceEvents"].array()) {
        if (event["ph"].text() == "X") complete.push_back(event);
    }
    return complete;
}

/// Expects that spans begin in order, end after they begin, and on one row lie apart or within each other.
void expect_well_formed(const std::vector<Trace::Span>& spans) {
    std::map<Trace::Row, std::vector<double>> open;  // the ends of what is around, outermost first
    double last = 0;
    for (const Trace::Span& span : spans) {
        EXPECT_GE(span.times.begin, last) << span.name;
        EXPECT_GE(span.times.end, span.times.begin) << span.name;
        last = span.times.begin;
        auto& around = open[span.row];
        while (!around.empty() && around.back() <= span.times.begin) around.pop_back();
        if (!around.empty()) {
            EXPECT_LE(span.times.end, around.back()) << span.name;
        }
        around.push_back(span.times.end);
    }
}

Index count(const std::vector<Trace::Span>& spans, const std::string& name) {
    return std::count_if(spans.begin(), spans.end(), [&](const auto& span) { return span.name == name; });
}

TEST(TraceTest, AnEmptyTraceIsATraceWithoutEvents) {
    const Trace trace;
    EXPECT_TRUE(trace.spans().empty());
    EXPECT_TRUE(events(trace.json()).empty());
}

TEST(TraceTest, NamesAreEscaped) {
    Trace trace;
    const std::string name = "a \"name\" \\ with\n\t\x01 all of it";
    trace.add({name, Trace::Row::ToHost, 7, {1, 2}});
    const Json event = events(trace.json()).at(0);
    EXPECT_EQ(event["name"].text(), name);
    EXPECT_EQ(event["args"]["step"].number(), 7);
}

TEST(TraceTest, EventsHaveTheirTimesInOrderAndARowEach) {
    Trace trace;
    trace.add({"inner", Trace::Row::Device, 1, {20.25, 30}});
    trace.add({"late", Trace::Row::Host, -1, {100, 101}});
    trace.add({"outer", Trace::Row::Device, -1, {20.25, 60.5}});
    trace.add({"asked", Trace::Row::ToDevice, 0, {}}, [] { return Trace::Times{5, 1e7 + 0.125}; });
    const auto spans = trace.spans();
    expect_well_formed(spans);
    const auto written = events(trace.json());
    const std::vector<std::string> names = {"asked", "outer", "inner", "late"};
    ASSERT_EQ(written.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(written[i]["name"].text(), names[i]);
        EXPECT_NEAR(written[i]["ts"].number(), spans[i].times.begin, 1e-3);
        EXPECT_NEAR(written[i]["dur"].number(), spans[i].times.end - spans[i].times.begin, 1e-3);
        EXPECT_EQ(written[i].has("args"), spans[i].step >= 0);
    }
    EXPECT_EQ(written[1]["tid"].number(), written[2]["tid"].number());
    EXPECT_NE(written[0]["tid"].number(), written[1]["tid"].number());
    std::map<double, std::string> rows;
    const Json all = Json::parse(trace.json());
    for (const Json& event : all["traceEvents"].array()) {
        if (event["name"].text() == "thread_name") rows[event["tid"].number()] = event["args"]["name"].text();
    }
    EXPECT_EQ(rows[written[0]["tid"].number()], to_string(Trace::Row::ToDevice));
    EXPECT_EQ(rows[written[1]["tid"].number()], to_string(Trace::Row::Device));
    EXPECT_EQ(rows.size(), 3u);
}

TEST(TraceTest, AFileAppearsCompleteOrNotAtAll) {
    const auto directory = std::filesystem::temp_directory_path() / "quoin_trace_test";
    std::filesystem::create_directories(directory);
    Trace trace;
    trace.add({"panel", Trace::Row::Host, 0, {1, 2}});
    const std::string path = (directory / "trace.json").string();
    trace.write(path);
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    EXPECT_EQ(text.str(), trace.json());
    EXPECT_THROW(trace.write((directory / "missing" / "trace.json").string()), UnwritableFile);
    std::filesystem::remove_all(directory);
}

TEST(TraceTest, SeveralThreadsRecord) {
    Trace trace;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 100; ++i) trace.add({"span", Trace::Row::Host, i, {trace.now(), trace.now()}});
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(trace.spans().size(), 400u);
}

/// Rank r begins its trace 0.3 r seconds after rank 0; what follows a common message is at one time in the file
/// nevertheless.
TEST(TraceTest, RanksAreProcessesOnOneClock) {
    const std::string path = testing::TempDir() + "quoin_ranks.json";
    const int ranks = 3;
    run_ranks(ranks, [&](Communicator& comm) {
        Context<Host> ctx(1);
        const Matrix<double> A = random_normal<double>(200, 10, 1 + comm.rank());
        std::this_thread::sleep_for(std::chrono::milliseconds(300 * comm.rank()));
        Trace trace;
        ctx.attach(&trace);
        Options options;
        options.method = Method::TSQR;
        qr(ctx, comm, A.view(), options);
        trace.add({"after", Trace::Row::Host, -1, {trace.now(), trace.now()}});
        ctx.attach(nullptr);
        write_trace(path, trace, comm);
    });
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    std::map<double, std::set<std::string>> names;
    std::vector<double> after;
    for (const Json& event : events(text.str())) {
        names[event["pid"].number()].insert(event["name"].text());
        if (event["name"].text() == "after") after.push_back(event["ts"].number());
    }
    ASSERT_EQ(after.size(), 3u);
    EXPECT_LT(*std::max_element(after.begin(), after.end()) - *std::min_element(after.begin(), after.end()), 150e3);
    ASSERT_EQ(names.size(), 3u);
    for (const auto& [pid, of_rank] : names)
        for (const char* name : {"panel", "wait", "broadcast"}) EXPECT_TRUE(of_rank.contains(name)) << pid << name;
    EXPECT_TRUE(names[1].contains("merge") && names[3].contains("send"));
    EXPECT_NE(text.str().find("\"rank 2\""), std::string::npos);
    std::filesystem::remove(path);
}

TEST(TraceTest, AFactorizationRecordsItsStepsWhileATraceIsAttached) {
    Context<Host> ctx{2};
    const Matrix<double> A = random_normal<double>(300, 200);
    Options options;
    options.method = Method::BlockedHouseholder;
    options.method.set_panel_width(50);
    options.q = FullT{.route = FullTRoute::Recurrence};
    Trace trace;
    EXPECT_EQ(ctx.trace(), nullptr);
    qr(ctx, A.view(), options);
    EXPECT_TRUE(trace.spans().empty());
    ctx.attach(&trace);
    EXPECT_EQ(ctx.trace(), &trace);
    const double begin = trace.now();
    qr(ctx, A.view(), options);
    const double end = trace.now();
    ctx.attach(nullptr);
    qr(ctx, A.view(), options);

    const auto spans = trace.spans();
    expect_well_formed(spans);
    EXPECT_EQ(count(spans, "S"), 4);
    EXPECT_EQ(count(spans, "panel"), 1);  // the others are factored inside the updates
    EXPECT_EQ(count(spans, "update, T, S and next panel"), 3);
    EXPECT_EQ(count(spans, "T and S"), 1);
    for (const auto& span : spans) {
        EXPECT_EQ(span.row, Trace::Row::Host);
        EXPECT_GE(span.times.begin, begin);
        EXPECT_LE(span.times.end, end);
    }
    EXPECT_EQ(events(trace.json()).size(), spans.size());
}

TEST(TraceTest, OtherRunsRecordTheirPhases) {
    Context<Host> ctx{2};
    const Matrix<double> A = random_normal<double>(900, 20), b = random_normal<double>(900, 1);
    Trace trace;
    ctx.attach(&trace);
    svd<double, Host>(ctx, A.view(), true);
    least_squares<double, Host>(ctx, A.view(), b.view());
    qr(ctx, A.view(), {.method = Method::CholeskyQR2});
    Options tree;
    tree.method = Method::CAQR;
    tree.method.set_panel_width(8);
    qr(ctx, A.view(), tree).form_q(ctx);
    ctx.attach(nullptr);
    const auto spans = trace.spans();
    expect_well_formed(spans);
    for (const char* name : {"Gram passes", "SVD of R, vectors", "solve", "panel", "update", "form Q"}) {
        EXPECT_GE(count(spans, name), 1) << name;
    }
}

/// The schedule of panels on the host, with copies in the memory of the host in the place of those to a GPU.
template <class T>
class HostPanelTest : public testing::Test {
protected:
    Context<Host> ctx{2};
    QR<T> factor(MatrixView<const T> A, Options options, bool by_tsqr = false) {
        Plan plan = plan_qr<T>(ctx, A.rows, A.cols, options);
        HouseholderPlan& chosen = std::get<HouseholderPlan>(plan.choices);
        chosen.panels_on_host = true;
        if (by_tsqr) chosen.reconstruct_rows = 1;
        return qr<T, Host>(ctx, copy<T>(A), plan);
    }
};
TYPED_TEST_SUITE(HostPanelTest, Scalars);

TYPED_TEST(HostPanelTest, TheLawOverTheGallery) {
    using T = TypeParam;
    for (enum Gallery matrix_class : gallery())
        for (bool full : {false, true}) {
            SCOPED_TRACE(to_string(matrix_class));
            const Matrix<T> A = generate<T>(matrix_class, 150, 90);
            Options options;
            options.method = Method::BlockedHouseholder;
            if (full) options.q = FullT{.keep_s = true};
            options.method.set_panel_width(32);
            for (const bool by_tsqr : {false, true})
                expect_law<T>(this->ctx, A.view(), this->factor(A.view(), options, by_tsqr));
        }
}

TYPED_TEST(HostPanelTest, TheLawOverOddShapes) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{0, 3}, {3, 0}, {1, 1}, {5, 9}, {70, 70}, {129, 31}, {300, 260}})
        for (Index nb : {1, 31, 64, 200})
            for (FullTRoute route : {FullTRoute::Recurrence, FullTRoute::Joined}) {
                SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + " " + std::to_string(nb));
                const Matrix<T> A = random_normal<T>(m, n);
                Options options;
                options.method = Method::BlockedHouseholder;
                options.q = FullT{.route = route};
                options.method.set_panel_width(nb);
                for (const bool by_tsqr : {false, true})
                    expect_law<T>(this->ctx, A.view(), this->factor(A.view(), options, by_tsqr));
            }
}

TYPED_TEST(HostPanelTest, TsqrHasAnotherRounding) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(500, 40);
    const Options options{.method = BlockedHouseholder{20}};
    const Matrix<T> by_householder = this->factor(A.view(), options).r(this->ctx),
                    by_tsqr = this->factor(A.view(), options, true).r(this->ctx);
    EXPECT_FALSE(same_bits<T>(by_householder.view(), by_tsqr.view()));
}

TYPED_TEST(HostPanelTest, APanelLeavesIsFactoredAndComesBackInOrder) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(200, 120);
    Options options;
    options.method = Method::BlockedHouseholder;
    options.method.set_panel_width(40);
    Trace trace;
    this->ctx.attach(&trace);
    this->factor(A.view(), options);
    this->ctx.attach(nullptr);
    std::map<std::pair<Trace::Row, Index>, Trace::Times> of;
    std::vector<Trace::Times> updates[3];
    for (const auto& span : trace.spans()) {
        if (span.name == "copy out" || span.name == "copy in") of[{span.row, span.step}] = span.times;
        if (span.name == "panel" && !of.count({span.row, span.step})) of[{span.row, span.step}] = span.times;
        if (span.name == "update" && span.step >= 0) updates[span.step].push_back(span.times);
    }
    for (Index k = 0; k < 3; ++k) {
        const auto out = of.at({Trace::Row::ToHost, k}), panel = of.at({Trace::Row::Host, k}),
                   in = of.at({Trace::Row::ToDevice, k});
        EXPECT_LE(out.end, panel.begin);
        EXPECT_LE(panel.end, in.begin);
        if (k == 2) continue;
        // the columns of the next panel are updated after this one, and before it leaves
        ASSERT_FALSE(updates[k].empty());
        EXPECT_LE(in.end, updates[k].front().begin);
        EXPECT_LE(updates[k].front().end, of.at({Trace::Row::ToHost, k + 1}).begin);
    }
}

}  // namespace
}  // namespace quoin::test

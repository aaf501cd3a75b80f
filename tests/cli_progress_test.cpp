// Progress that programs draw on a terminal while they work: the bar of blocks of rows, and the line of robust PCA.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "robust_pca/program/pursuit_report.hpp"
#include "row_blocks.hpp"

namespace quoin::cli {
namespace {

/// Returns what `work` writes to stderr, if that is a terminal.
template <class Work>
std::string on_terminal(Work work) {
    const int master = posix_openpt(O_RDWR | O_NOCTTY), before = dup(STDERR_FILENO);
    EXPECT_EQ(grantpt(master) + unlockpt(master), 0);
    const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    EXPECT_GE(terminal, 0);
    dup2(terminal, STDERR_FILENO);
    work();
    dup2(before, STDERR_FILENO);
    close(before);
    // the kernel passes a terminal's bytes on in its own time: read up to a byte that `work` does not write
    EXPECT_EQ(write(terminal, "", 1), 1);
    std::string text;
    char byte = 0;
    while (read(master, &byte, 1) == 1 && byte != '\0') text += byte;
    close(terminal);
    close(master);
    return text;
}

TEST(Progress, IsTheShareOfTheRowsThatAreDone) {
    std::vector<Index> begins;
    // 11 rows by 2; after a second two blocks or more are done, and never all
    const std::string text = on_terminal([&] {
        for_each_block("turning", {11, 2}, [&](Range rows) {
            begins.push_back(rows.begin);
            std::this_thread::sleep_for(std::chrono::milliseconds(250));
        });
    });
    EXPECT_EQ(begins, (std::vector<Index>{0, 2, 4, 6, 8, 10}));
    int drawn = 0;
    const std::regex bar("turning \\[(#*)-*\\] +(\\d+)%  \\d+ s left");
    for (auto it = std::sregex_iterator(text.begin(), text.end(), bar); it != std::sregex_iterator(); ++it, ++drawn) {
        const double percent = std::stod((*it)[2]), rows = std::round(percent * 11 / 100);
        EXPECT_TRUE(rows >= 2 && rows <= 10 && static_cast<Index>(rows) % 2 == 0) << text;
        EXPECT_NEAR(percent, 100 * rows / 11, 0.51);
        EXPECT_EQ((*it)[1].length(), static_cast<Index>(30 * rows / 11));
    }
    EXPECT_GT(drawn, 0) << text;
    EXPECT_TRUE(text.ends_with("\r\x1b[K")) << "the line is left empty: " << text;
    EXPECT_EQ(on_terminal([] { for_each_block("short", {3, 1}, [](Range) {}); }), "");
}

/// The residual falls by ρ with each iteration: from 1e-3 to 1e-7 by 10 are 4 of them, at 2 iterations a second. A
/// window that follows takes as long as this one, which is 4 + 4.
TEST(PursuitLineOnATerminal, SaysWhenItEnds) {
    RobustPcaStep step;
    step.iteration = 4;
    step.seconds = 2;
    step.residual = 1e-3;
    step.rank = 7;
    const auto drawn = [&](double rho, double windows_left, double seconds) {
        return on_terminal([&] {
            RobustPcaStep at = step;
            at.seconds = seconds;
            PursuitLine line(1e-7, rho);
            line.draw(at, "window 2 ", windows_left);
        });
    };
    const std::string shown = "\r\x1b[Kwindow 2 iteration 4  residual 1.0e-03  rank 7  2.0 it/s", cleared = "\r\x1b[K";
    EXPECT_EQ(drawn(10, 0, 2), shown + "  2 s left" + cleared);
    EXPECT_EQ(drawn(10, 3, 2), shown + "  14 s left" + cleared);
    EXPECT_EQ(drawn(1, 0, 2), shown + cleared) << "nobody knows";
    EXPECT_EQ(drawn(10, 0, 0.5), "") << "the first second is silent";
}

}  // namespace
}  // namespace quoin::cli

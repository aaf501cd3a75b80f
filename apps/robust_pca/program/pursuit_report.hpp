#pragma once

#include <string>
#include <vector>

#include "json_line.hpp"
#include "quoin/apps/robust_pca.hpp"

namespace quoin::cli {

/// The outcome of a pursuit, or of one pursuit for each window of columns.
class PursuitReport {
public:
    /// Adds the rows and columns of a window, the last step of its pursuit, and the route that the pursuit took.
    void add(Index rows, Index cols, const RobustPcaStep& last, PursuitEnd end, double lambda, ThresholdRoute route);

    double seconds() const { return total().seconds; }
    /// Adds end, iterations, seconds, iterations_per_second, rank, nonzeros, residual, objective, lambda and route. If
    /// there are several windows: the sum of iterations, seconds, nonzeros and objectives, the largest of the rest, and
    /// all windows.
    void add_to(JsonLine& json) const;
    /// Prints the outcome as text.
    void print(double tolerance) const;

    /// (run_state.hpp)
    template <class State>
    void keep(State& state) {
        state(windows_);
        state(lambda_);
        state(route_);
    }

private:
    struct Window {
        Index rows, cols;
        RobustPcaStep last;
        PursuitEnd end;
    };
    RobustPcaStep total() const;
    PursuitEnd end() const;
    std::vector<Window> windows_;
    double lambda_ = 0;
    ThresholdRoute route_ = ThresholdRoute::Auto;
};

/// One line on stderr, rewritten after each iteration, if stderr is a terminal and a pursuit outlasts a second.
class PursuitLine {
public:
    /// `rho`: growth of μ. Once the residual falls, each iteration divides it by `rho`. 1: μ is constant, and the end
    /// cannot be predicted.
    PursuitLine(double tolerance, double rho) : tolerance_(tolerance), rho_(rho) {}
    ~PursuitLine();
    PursuitLine(const PursuitLine&) = delete;
    PursuitLine& operator=(const PursuitLine&) = delete;

    /// `label` stands before the line; `windows_left` is the number of windows after this one, if known, otherwise 0.
    void draw(const RobustPcaStep& step, const std::string& label = "", double windows_left = 0);

private:
    double tolerance_, rho_;
    bool drawn_ = false;
};

}  // namespace quoin::cli

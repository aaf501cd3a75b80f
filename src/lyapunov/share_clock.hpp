#pragma once

#include <chrono>

namespace quoin {

/// The share of the state's own motion in the time of a step, measured where the clock is told to look.
class ShareClock {
public:
    /// f(), counted as the state's own motion.
    template <class F>
    void own(F&& f) {
        add(own_, f);
    }
    /// f(), counted as the tangent vectors'.
    template <class F>
    void tangent(F&& f) {
        add(tangent_, f);
    }
    double own_share() const { return own_ > 0 ? own_ / (own_ + tangent_) : 0; }

private:
    template <class F>
    static void add(double& sum, F&& f) {
        const auto start = std::chrono::steady_clock::now();
        f();
        sum += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    double own_ = 0, tangent_ = 0;
};

}  // namespace quoin

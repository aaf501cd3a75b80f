#pragma once

#include <omp.h>

#include <exception>
#include <functional>
#include <semaphore>
#include <thread>
#include <utility>

namespace quoin::cli {

/// A thread that does one piece of work at a time on `cores` cores, while the thread that created it goes on.
class Beside {
public:
    explicit Beside(int cores)
        : thread_([this, cores] {
              omp_set_num_threads(cores);
              for (given_.acquire(); work_; given_.acquire()) {
                  try {
                      work_();
                  } catch (...) {
                      failure_ = std::current_exception();
                  }
                  done_.release();
              }
          }) {}
    Beside(const Beside&) = delete;
    ~Beside() {
        if (busy_) done_.acquire();
        work_ = nullptr;
        given_.release();
        thread_.join();
    }

    /// Starts `work` after the previous work has finished.
    void start(std::function<void()> work) {
        finish();
        work_ = std::move(work);
        busy_ = true;
        given_.release();
    }
    /// Waits for the work, and rethrows its exception.
    void finish() {
        if (!std::exchange(busy_, false)) return;
        done_.acquire();
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

private:
    std::function<void()> work_;
    std::exception_ptr failure_;
    bool busy_ = false;
    std::binary_semaphore given_{0}, done_{0};
    std::thread thread_;  // the last member: it uses the others
};

}  // namespace quoin::cli

#include "interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "quoin/error.hpp"
#include "quoin/io.hpp"

namespace quoin::cli {

namespace {

std::atomic<const InterruptGuard::Target*> to_stop{nullptr};
std::atomic<int> received_signal{0};
static_assert(std::atomic<const InterruptGuard::Target*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
    if (received_signal.exchange(signal) != 0) {
        remove_unfinished_files();
        _exit(128 + signal);
    }
    if (const InterruptGuard::Target* target = to_stop.load()) target->request_stop(target->context);
}

void set_handlers(void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard(Target target) : target_(target) {
    to_stop = &target_;
    set_handlers(on_signal);
}

InterruptGuard::~InterruptGuard() {
    set_handlers(SIG_DFL);
    to_stop = nullptr;
}

bool interrupted() { return received_signal != 0; }

void throw_if_interrupted() {
    if (interrupted()) throw Interrupted();
}

int interrupted_exit_code() { return 128 + received_signal; }

}  // namespace quoin::cli

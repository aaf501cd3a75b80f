// NVML as far as cli/energy_meter.cpp calls it: one GPU at 0000:01:00.0 whose counter grows by 250 J a call; one at
// 0000:02:00.0 that has none. It aborts where it is shut down without having been started, or used after.

#include <cstdlib>

static int users = 0;

extern "C" {

int nvmlInit_v2() { return ++users, 0; }
int nvmlShutdown() { return --users < 0 ? std::abort(), 1 : 0; }
const char* nvmlErrorString(int status) { return status == 3 ? "Not Supported" : "Not Found"; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
    static int with = 0, without = 0;
    if (users == 0) std::abort();
    const char which = address[6];
    if (which != '1' && which != '2') return 6;
    *device = which == '1' ? &with : &without;
    with = 1;
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
    if (users == 0) std::abort();
    static unsigned long long counter = 5000000000000ULL;  // beyond 32 bits
    if (*static_cast<int*>(device) == 0) return 3;
    *millijoules = counter += 250000;
    return 0;
}
}

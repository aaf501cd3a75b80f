#pragma once

/// Every type and device that algorithms are compiled for.
#define QUOIN_FOR_EACH_TYPE(INSTANTIATE) \
    INSTANTIATE(float, Host)             \
    INSTANTIATE(double, Host)

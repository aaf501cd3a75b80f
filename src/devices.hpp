#pragma once

// Every type and device that the algorithms are compiled for. Only this file names Cuda to them; a few of them name
// Host, for the host's part of their work.

#include "host/batch.hpp"
#include "host/device.hpp"
#include "host/tuning.hpp"

#define QUOIN_FOR_EACH_HOST_TYPE(INSTANTIATE) \
    INSTANTIATE(QUOIN_F32, Host)              \
    INSTANTIATE(QUOIN_F64, Host)

#ifdef QUOIN_HAVE_CUDA
#include "cuda/runtime/device.hpp"
#include "cuda/small/batch.hpp"
#include "cuda/tuning.hpp"

#define QUOIN_FOR_EACH_DEVICE(INSTANTIATE) INSTANTIATE(Host) INSTANTIATE(Cuda)
#define QUOIN_FOR_EACH_TYPE(INSTANTIATE)  \
    QUOIN_FOR_EACH_HOST_TYPE(INSTANTIATE) \
    INSTANTIATE(float, Cuda)              \
    INSTANTIATE(double, Cuda)
#else
#define QUOIN_FOR_EACH_DEVICE(INSTANTIATE) INSTANTIATE(Host)
#define QUOIN_FOR_EACH_TYPE QUOIN_FOR_EACH_HOST_TYPE
#endif

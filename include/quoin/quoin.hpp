#pragma once

/// All of libquoin: A = QR as fast as the hardware allows, with a proven error bound. The applications have headers of
/// their own in quoin/apps/, and libraries of their own.

#include "quoin/batch.hpp"
#include "quoin/block_cyclic.hpp"
#include "quoin/communicator.hpp"
#include "quoin/context.hpp"
#include "quoin/distributed.hpp"
#include "quoin/error.hpp"
#include "quoin/file_qr.hpp"
#include "quoin/gram_schmidt.hpp"
#include "quoin/io.hpp"
#include "quoin/least_squares.hpp"
#include "quoin/low_rank.hpp"
#include "quoin/matrix.hpp"
#include "quoin/options.hpp"
#include "quoin/out_of_core.hpp"
#include "quoin/plan_fields.hpp"
#include "quoin/qr.hpp"
#include "quoin/route.hpp"
#include "quoin/rows.hpp"
#include "quoin/scalar.hpp"
#include "quoin/streaming.hpp"
#include "quoin/svd.hpp"
#include "quoin/trace.hpp"
#include "quoin/update.hpp"
#include "quoin/version.hpp"

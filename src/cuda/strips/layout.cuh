#pragma once

// A strip of a matrix in the registers of a cluster of blocks, or of one block, and the shared memory of a block.
//
// The image of a strip is tiles of 8 rows, each with its `Width` columns one after the other. Warp w of the W of all
// blocks holds tiles w, w + W, …; lane 4g + q has of a tile C(2q + e, 8h + g), e < 2, h < Width/8. The tensor cores
// take that as operand B of VᵀC, in f32 of two tiles at once, and as accumulator of Cᵀ − UᵀVᵀ: C never moves.

#include "cuda/arch/levels.cuh"
#include "cuda/arch/sm70_barriers.cuh"
#include "cuda/arch/sm70_messages.cuh"
#include "cuda/arch/sm70_registers.cuh"
#include "cuda/arch/sm90_cluster.cuh"
#include "cuda/elements/batch_entries.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "cuda/strips/products.cuh"

namespace quoin::cuda::strips {

/// Place of entry (i, j) of a Width×Width matrix in shared memory: rows start in different banks.
template <int Width>
__host__ __device__ constexpr int square_place(int i, int j) {
    constexpr int mask = Width == 32 ? 3 : 1, shift = Width == 32 ? 0 : 1;
    return i * Width + (j ^ (((i >> shift) & mask) << 3));
}

/// `cluster` blocks of `warps` warps, each with R tiles of 8 rows and `panels` panels of `Width` columns.
template <class T, int Width_, int R_, int warps_, int cluster_ = 1, int panels_ = 1>
struct Strip {
    using Scalar = T;
    static constexpr int Width = Width_, R = R_, warps = warps_, threads = 32 * warps, cluster = cluster_,
                         panels = panels_, columns = Width * panels;
    static constexpr int all_warps = warps * cluster, rows = 8 * R * all_warps, H = Width / 8, M = H / 2,
                         tile = 8 * Width;
    /// Tiles whose copies arrive together.
    static constexpr int chunk = R % 4 == 0 ? 4 : R % 2 == 0 ? 2 : R, chunks = R / chunk;
    /// Tiles whose products go to one sum of the tensor cores.
    static constexpr int summed = R < 8 ? R : 8;
    static_assert(R % chunk == 0 && R % summed == 0 && summed % chunk == 0 && (Width == 16 || Width == 32));
    /// Tiles whose products are one block of instructions, and sums that they go to in turn, the same for any number of
    /// panels: what follows one another must not depend on it.
    static constexpr int group = columns >= 32 ? 2 : chunk, sums = std::is_same_v<T, double> && Width == 16 ? 2 : 1;
    /// Whether reflectors may be made from Gram matrices (reflectors_by_gram.cuh). For wide strips that takes longer
    /// than column by column.
    static constexpr bool by_gram = Width == 16;
    /// Warps that make T.
    static constexpr int t_warps = Width / 4;

    T c[R][H * panels][2];  ///< in registers: what takes a strip is inlined
};

/// Warps of reflectors_by_gram.cuh that share the rows of R; an equal number shares the rows of C₁ and Λ⁻¹.
inline constexpr int chain_warps = 4;

template <class S>
struct StripShared {
    using T = typename S::Scalar;
    static constexpr int Width = S::Width, square = Width * Width, exchanged = 2 * square;
    using Tile = ReflectorTile<T, Width>;
    /// So that 16-byte reads of eight columns touch all banks.
    static constexpr int dots_stride = S::warps + 4;

    alignas(16) T V[S::R * S::warps * S::tile];  ///< tiles as ReflectorTile has them
    /// VᵀC of each warp's rows, then W in the first. In a panel: L or a product on the way to T; VᵀV; R.
    alignas(16) T part[S::warps][S::panels * square];
    alignas(16) T t[square];
    UpdateOperands<T, Width, S::columns> u;  ///< −Uᵀ
    /// What a step of reflectors_by_gram.cuh takes: row j of G; row j − 1 of R but for its signs, √G(j − 1, j − 1), and
    /// row and column j − 1 of C₁ and column j − 1 of Λ⁻¹.
    struct alignas(16) Step {
        T gram[Width], r[Width], top_row[Width], top_column[Width], inverse[Width], norm;
    };
    union {
        alignas(16) T dots[2][Width][dots_stride];  ///< of a column: each warp's part
        struct {
            Step step[2];
            T sums[chain_warps][Width];  ///< of |Λ⁻¹|, over the rows of a warp
        } chain;
    };
    T row[2][Width], tau[Width];
    int exponent[S::columns];
    Index ticket;
    int ready_v, ready_t;
};

/// Receives what the other blocks of the cluster send. It follows StripShared in shared memory. Double-buffered.
template <class S>
struct ClusterInbox {
    using T = typename S::Scalar;
    alignas(16) T from[2][S::cluster][StripShared<S>::exchanged];
    Mailbox mailbox[2];
};
/// Messages in global memory of a cluster on a GPU that has none: in each of two buffers, each block's `box_senders`
/// first and second halves of 16 bytes.
template <class S>
inline constexpr int box_senders = StripShared<S>::exchanged / vector_size<typename S::Scalar>;
template <class S>
inline constexpr int boxed_messages = S::cluster > 1 ? 2 * S::cluster * 2 * box_senders<S> : 0;
/// Bytes of shared memory of a block.
template <class S>
constexpr std::size_t shared_bytes_of(bool has_clusters) {
    return sizeof(StripShared<S>) + (has_clusters && S::cluster > 1 ? sizeof(ClusterInbox<S>) : 0);
}

/// The number of this block in its cluster.
template <class S>
__device__ __forceinline__ int cluster_rank() {
    return blockIdx.x % S::cluster;
}

/// Where a thread is in its strip.
template <class S>
struct StripThread {
    int number = kept(threadIdx.x), lane = number % 32, warp = number / 32, g = lane / 4, q = lane % 4,
        rank = cluster_rank<S>();

    __device__ int tile(int r) const { return r * S::all_warps + rank * S::warps + warp; }
    /// Where tile(r) is in the block's shared memory.
    __device__ int place(int r) const { return r * S::warps + warp; }
    /// Whether this block has the tile.
    __device__ bool has(int tile) const { return tile / S::warps % S::cluster == rank; }
    /// Row of c[r][·][e].
    __device__ int row(int r, int e) const { return 8 * tile(r) + 2 * q + e; }
    __device__ int col(int h) const { return 8 * h + g; }
};

/// Rows 2q and 2q + 1 of a column of C, or two neighbours of W.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
    T at[2];
};

/// The first `rows` rows of a column of a matrix, rows i and i + 1 at once, i even: in one access where they lie side
/// by side.
template <class T>
class PairedRows {
public:
    using Entry = std::remove_const_t<T>;

    __device__ PairedRows(T* column, Index stride, int rows)
        : column_(column),
          stride_(stride),
          rows_(rows),
          side_by_side_(stride == 1 && reinterpret_cast<std::uintptr_t>(column) % sizeof(Pair<Entry>) == 0) {}
    __device__ __forceinline__ Pair<Entry> load(int i) const {
        if (side_by_side_ && i + 1 < rows_) return *reinterpret_cast<const Pair<Entry>*>(column_ + i);
        return {{i < rows_ ? column_[i * stride_] : Entry(0), i + 1 < rows_ ? column_[(i + 1) * stride_] : Entry(0)}};
    }
    __device__ __forceinline__ void store(int i, const Pair<Entry>& x) const {
        if (side_by_side_ && i + 1 < rows_) {
            *reinterpret_cast<Pair<Entry>*>(column_ + i) = x;
        } else {
            if (i < rows_) column_[i * stride_] = x.at[0];
            if (i + 1 < rows_) column_[(i + 1) * stride_] = x.at[1];
        }
    }

private:
    T* column_;
    Index stride_;
    int rows_;
    bool side_by_side_;
};

/// x of the lanes with this g, over their four q.
template <class T, class Join>
__device__ T over_rows(T x, Join join) {
    x = join(x, __shfl_xor_sync(~0u, x, 1));
    return join(x, __shfl_xor_sync(~0u, x, 2));
}

/// x 2^e as scalbn gives it, for any number of x.
template <class T>
struct PowerOfTwo {
    __device__ __forceinline__ explicit PowerOfTwo(int e) : first(of(e / 2)), second(of(e - e / 2)) {}
    __device__ __forceinline__ T operator*(T x) const { return x * first * second; }

private:
    __device__ __forceinline__ static T of(int e) {
        if constexpr (std::is_same_v<T, double>) {
            return __longlong_as_double(Index(e + 1023) << 52);
        } else {
            return __int_as_float((e + 127) << 23);
        }
    }
    T first, second;
};

/// work(r, n), both constants, for the slots r, …, r + n − 1 of each group of a chunk, a constant, that has rows of a V
/// from tile `first` on.
template <class S, class Chunk, class Work>
__device__ __forceinline__ void for_active_groups(Chunk, int first, Work work) {
    const StripThread<S> me;
    unrolled<(S::chunk + S::group - 1) / S::group>([&](auto x) {
        constexpr int start = x * S::group, n = S::chunk - start < S::group ? S::chunk - start : S::group,
                      r = Chunk() * S::chunk + start;
        if (me.tile(r + n - 1) >= first) work(std::integral_constant<int, r>(), std::integral_constant<int, n>());
    });
}

/// Waits for the warps that make T.
template <class S>
__device__ __forceinline__ void wait_for_t_warps() {
    wait_for_warps<2, S::t_warps>();
}

/// Joins the parts of the warps, first eight by eight. So a sum has the same bits whether a cluster has 16 warps in one
/// block or in two.
template <int warps, class T, class Join>
__device__ __forceinline__ T join_warps(const T* dots, Join join) {
    if constexpr (warps > 8) {
        return join(join_warps<warps / 2>(dots, join), join_warps<warps / 2>(dots + warps / 2, join));
    } else {
        constexpr int W = 16 / int(sizeof(T));
        static_assert(warps == 8);
        struct alignas(16) Some {
            T x[W];
        };
        T d[8];
#pragma unroll
        for (int w = 0; w < 8; w += W) {
            const Some some = *reinterpret_cast<const Some*>(dots + w);
#pragma unroll
            for (int x = 0; x < W; ++x) d[w + x] = some.x[x];
        }
        return join(join(join(d[0], d[4]), join(d[2], d[6])), join(join(d[1], d[5]), join(d[3], d[7])));
    }
}
template <int warps, class T>
__device__ __forceinline__ T sum_of_warps(const T* dots) {
    return join_warps<warps>(dots, Plus());
}

/// The blocks of a cluster, which exchange what each has of a sum. Every exchange is called by all threads of all
/// blocks.
template <class S>
class Cluster {
public:
    using T = typename S::Scalar;

    /// `boxes`: zeros, boxed_messages<S> for each cluster of the grid, where the GPU has no clusters. All blocks run
    /// when it returns. So a block that waits for another one never keeps it from its place on the device, and a
    /// cluster whose blocks are not all there has no ticket.
    __device__ Cluster(StripShared<S>& s, Message* boxes)
        : s_(s), boxes_(boxes + blockIdx.x / S::cluster * Index(boxed_messages<S>)) {
        if constexpr (S::cluster > 1 && compiled_for_clusters) {
            if (threadIdx.x == 0) {
                for (auto& mailbox : inbox().mailbox) mailbox.open();
            }
            wait_for_cluster();
        } else {
            exchange<1>({}, Plus());
        }
    }
    /// Returns the next ticket, which the first block takes. Starts and ends with a barrier of the block.
    __device__ __forceinline__ Index next_ticket(unsigned long long* next) {
        constexpr int N = 2, digits = 24;  // two numbers, each exact in f32
        Vector<T> mine = {};
        __syncthreads();
        if (threadIdx.x == 0 && cluster_rank<S>() == 0) {
            const unsigned long long ticket = atomicAdd(next, 1ull);
#pragma unroll
            for (int x = 0; x < N; ++x) mine.at[x] = static_cast<T>(ticket >> x * digits & ((1 << digits) - 1));
        }
        mine = exchange<1>(mine, Plus());
        if (threadIdx.x == 0) {
            Index ticket = 0;
#pragma unroll
            for (int x = 0; x < N; ++x) ticket += static_cast<Index>(mine.at[x]) << x * digits;
            s_.ticket = ticket;
        }
        __syncthreads();
        return s_.ticket;
    }
    /// Exchanges 16 bytes of each of the first `senders` threads, and combines the values of all blocks pairwise in
    /// rank order.
    template <int senders, class Join>
    __device__ __forceinline__ Vector<T> exchange(const Vector<T>& mine, Join join) {
        constexpr int N = vector_size<T>;
        static_assert(S::cluster == 1 || (senders <= S::threads && senders * N <= StripShared<S>::exchanged));
        Vector<T> result = mine;
        if constexpr (S::cluster > 1) {
            if (threadIdx.x < senders) {
                Vector<T> of[S::cluster];
                if constexpr (compiled_for_clusters) {
                    send_to_inboxes<senders>(mine, of);
                } else {
                    leave_in_boxes(mine, of);
                }
#pragma unroll
                for (int apart = 1; apart < S::cluster; apart *= 2) {
#pragma unroll
                    for (int peer = 0; peer < S::cluster; peer += 2 * apart) {
#pragma unroll
                        for (int x = 0; x < N; ++x) of[peer].at[x] = join(of[peer].at[x], of[peer + apart].at[x]);
                    }
                }
                result = of[0];
            }
            ++round_;
        }
        return result;
    }
    /// Reduces dots[column] over the warps of all blocks. If `given`, also broadcasts its Width numbers from the block
    /// that has them. Starts and ends with a barrier of the block.
    template <class Join, int stride>
    __device__ __forceinline__ void join_dots(T (*dots)[stride], Join join, T* given = nullptr,
                                              bool has_given = false) {
        __syncthreads();
        if constexpr (S::cluster > 1) {
            constexpr int N = vector_size<T>, senders = 2 * S::Width / N;
            const int column = N * threadIdx.x, of_given = column - S::Width;
            const bool of_dots = of_given < 0, exists = !of_dots && of_given < S::Width && given;
            Vector<T> mine = {};
#pragma unroll
            for (int x = 0; x < N; ++x) {
                if (of_dots) {
                    mine.at[x] = join_warps<S::warps>(dots[column + x], join);
                } else if (exists && has_given) {
                    mine.at[x] = given[of_given + x];
                }
            }
            const Vector<T> result = exchange<senders>(mine, join);
#pragma unroll
            for (int x = 0; x < N; ++x) {
                if (of_dots) {
                    for (int w = 0; w < S::warps; ++w) dots[column + x][w] = w == 0 ? result.at[x] : T(0);
                } else if (exists) {
                    given[of_given + x] = result.at[x];
                }
            }
            __syncthreads();
        }
    }

private:
    __device__ __forceinline__ ClusterInbox<S>& inbox() { return *reinterpret_cast<ClusterInbox<S>*>(&s_ + 1); }
    /// of := what the blocks have sent to this one.
    template <int senders>
    __device__ __forceinline__ void send_to_inboxes(const Vector<T>& mine, Vector<T> (&of)[S::cluster]) {
        auto& mailbox = inbox().mailbox[round_ % 2];
        auto& from = inbox().from[round_ % 2];
        const int at = vector_size<T> * threadIdx.x;
        if (threadIdx.x == 0) mailbox.expect(S::cluster * senders * 16);
#pragma unroll
        for (int peer = 0; peer < S::cluster; ++peer) mailbox.send(peer, from[cluster_rank<S>()] + at, mine);
        mailbox.receive(round_ / 2);
#pragma unroll
        for (int peer = 0; peer < S::cluster; ++peer) of[peer] = *reinterpret_cast<const Vector<T>*>(from[peer] + at);
    }
    /// Leaves messages in global memory instead.
    __device__ __forceinline__ void leave_in_boxes(const Vector<T>& mine, Vector<T> (&of)[S::cluster]) {
        using Half = unsigned long long;
        constexpr int together = 2;  // blocks whose messages are loaded at once
        Message* const boxes = boxes_ + round_ % 2 * (boxed_messages<S> / 2) + threadIdx.x;
        const unsigned label = round_ + 1;
#pragma unroll
        for (int half = 0; half < 2; ++half)
            store_message(boxes + (2 * cluster_rank<S>() + half) * box_senders<S>,
                          {reinterpret_cast<const Half*>(&mine)[half], 0, label});
#pragma unroll
        for (int peer = 0; peer < S::cluster; peer += together) {
            Message received[2 * together];
            load_messages(received, boxes + 2 * peer * box_senders<S>, box_senders<S>, label);
#pragma unroll
            for (int x = 0; x < 2 * together; ++x)
                reinterpret_cast<Half*>(&of[peer + x / 2])[x % 2] = received[x].payload;
        }
    }

    StripShared<S>& s_;
    Message* const boxes_;
    int round_ = 0;
};

/// s.part[0] := the sum of all parts of all blocks, Width² numbers for each of `panels` panels. If `with_t`, also
/// broadcasts s.t from the block that has it.
template <int panels, bool with_t = false, class S>
__device__ __forceinline__ void sum_parts(StripShared<S>& s, Cluster<S>& cluster, bool has_t = false) {
    using T = typename S::Scalar;
    // a thread sends 16 bytes; where nothing is sent and there is much, fewer numbers each keep more threads busy
    constexpr int all = panels * StripShared<S>::square,
                  N = S::cluster > 1 || panels == 1 ? vector_size<T> : std::clamp(all / S::threads, 1, vector_size<T>),
                  count = all / N, rounds = (count + S::threads - 1) / S::threads;
    struct alignas(N * sizeof(T)) Some {
        T at[N];
    };
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
        const int at = round * S::threads + threadIdx.x;
        Some sum = {};
        if (at < count) {
            // eight by eight, as join_warps
            constexpr int together = 8;
#pragma unroll
            for (int first = 0; first < S::warps; first += together) {
                Some some = reinterpret_cast<const Some*>(s.part[first])[at];
#pragma unroll
                for (int w = first + 1; w < first + together; ++w) {
                    const auto other = reinterpret_cast<const Some*>(s.part[w])[at];
#pragma unroll
                    for (int x = 0; x < N; ++x) some.at[x] += other.at[x];
                }
#pragma unroll
                for (int x = 0; x < N; ++x) sum.at[x] = first == 0 ? some.at[x] : sum.at[x] + some.at[x];
            }
        }
        if constexpr (S::cluster > 1) {
            static_assert(!with_t || panels == 1);
            auto* const t = reinterpret_cast<Vector<T>*>(s.t) + at - count;
            const bool of_t = with_t && at >= count && at < 2 * count;
            Vector<T> of_all = of_t && has_t ? *t : Vector<T>{};
#pragma unroll
            for (int x = 0; x < N; ++x) of_all.at[x] = at < count ? sum.at[x] : of_all.at[x];
            constexpr int senders = with_t ? 2 * count : count;
            of_all = cluster.template exchange<senders>(of_all, Plus());
#pragma unroll
            for (int x = 0; x < N; ++x) sum.at[x] = of_all.at[x];
            if (of_t) *t = of_all;
        }
        if (at < count) reinterpret_cast<Some*>(s.part[0])[at] = sum;
    }
}
/// The sums over the four q of `part`, which each lane has for its H columns, to dots[column].
template <class S, class T, int stride>
__device__ __forceinline__ void sum_and_store_dots(T (&part)[S::H], T (*dots)[stride], const StripThread<S>& me) {
    if constexpr (S::H == 4) {
        const bool high = me.q & 2, odd = me.q & 1;
        T pair[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const T kept = high ? part[i + 2] : part[i], given = high ? part[i] : part[i + 2];
            pair[i] = kept + __shfl_xor_sync(~0u, given, 2);
        }
        const T kept = odd ? pair[1] : pair[0], given = odd ? pair[0] : pair[1];
        dots[me.col(me.q)][me.warp] = kept + __shfl_xor_sync(~0u, given, 1);
    } else {
#pragma unroll
        for (int h = 0; h < S::H; ++h) {
            const T sum = over_rows(part[h], Plus());
            if (me.q == h) dots[me.col(h)][me.warp] = sum;
        }
    }
}

/// C := C + V U, or V U / lift if `replaces`, for the first `panels` panels of C, of V and Uᵀ in shared memory.
/// next(chunk) when this warp has done with a chunk of V.
template <bool replaces, int panels, class S, class Next>
__device__ __forceinline__ void add_product(S& C, const StripShared<S>& s, int first, Next next) {
    using T = typename S::Scalar;
    using Tile = typename StripShared<S>::Tile;
    constexpr int M = S::M * panels, depths = S::Width / Tile::depth;
    constexpr T factor = 1 / (replaces ? Tile::scale * Tile::lift : Tile::scale);
    constexpr bool sums_in_place = Tile::rounds_to_nearest;
    static_assert(!sums_in_place || factor == 1);
    const StripThread<S> me;
    Operand<T, 4> a[M];
    const auto load_operands = [&](int kk) {
#pragma unroll
        for (int mi = 0; mi < M; ++mi) a[mi] = s.u.get(kk, mi, me.lane);
    };
    if (depths == 1) load_operands(0);
    unrolled<S::chunks>([&](auto chunk) {
#pragma unroll
        for (int kk = 0; kk < depths; ++kk) {
            if (depths > 1) load_operands(kk);
            for_active_groups<S>(chunk, first, [&](auto start, auto n) {
                Operand<T, 2> b[n];
#pragma unroll
                for (int x = 0; x < n; ++x) b[x] = Tile::right(s.V + me.place(start + x) * S::tile, kk, me.lane);
#pragma unroll
                for (int mi = 0; mi < M; ++mi) {
                    T acc[n][4] = {};
#pragma unroll
                    for (int x = 0; sums_in_place && !(replaces && kk == 0) && x < n * 4; ++x) {
                        acc[x / 4][x % 4] = C.c[start + x / 4][2 * mi + x % 4 / 2][x % 2];
                    }
#pragma unroll
                    for (int pass = 0; pass < passes<T>; ++pass) {
#pragma unroll
                        for (int x = 0; x < n; ++x) multiply_add(acc[x], left_of(pass, a[mi]), right_of(pass, b[x]));
                    }
#pragma unroll
                    for (int x = 0; x < n; ++x) {
#pragma unroll
                        for (int of = 0; of < 4; ++of) {
                            T& c = C.c[start + x][2 * mi + of / 2][of % 2];
                            c = sums_in_place ? acc[x][of] : fma(acc[x][of], factor, replaces && kk == 0 ? T(0) : c);
                        }
                    }
                }
            });
        }
        __syncwarp();
        next(chunk);
    });
}

}  // namespace quoin::cuda::strips

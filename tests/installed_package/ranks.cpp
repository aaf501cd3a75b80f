// R of a matrix whose rows are on the ranks of MPI; one rank without mpiexec.

#include <cmath>

#include <quoin/distributed.hpp>
#include <quoin/mpi.hpp>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    double norm = 0;
    {
        quoin::MpiCommunicator comm(MPI_COMM_WORLD);
        quoin::Context<quoin::Host> ctx;
        quoin::Matrix<double> A(9, 1);
        for (quoin::Index i = 0; i < 9; ++i) A(i, 0) = 1;
        norm = std::abs(quoin::qr(ctx, comm, A.view()).r(ctx)(0, 0)) / std::sqrt(9.0 * comm.size());
    }
    MPI_Finalize();
    return std::abs(norm - 1) < 1e-14 ? 0 : 1;
}

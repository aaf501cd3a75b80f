"""QR factorization as fast as the hardware allows, to an accuracy it proves.

    qr                   Q and R of A = QR, as numpy.linalg.qr; also with column pivoting, and of stacks and lists
    factor               A = QR with Q kept implicitly: products with Q, blocks of Q, least squares, a report
    from_raw             the same from the reflectors that qr(mode="raw") of Quoin, NumPy or SciPy returns
    lq, rq, ql           the factorizations from the other sides
    qr_insert            Q and R after rows or columns are inserted, as scipy.linalg.qr_insert
    qr_delete            Q and R after rows or columns are deleted
    qr_update            Q and R after a matrix of low rank is added
    lstsq                least squares of any shape and rank, as numpy.linalg.lstsq
    constrained_lstsq    least squares with equality constraints
    regression           least squares with weights, intercept or ridge, and its statistics, as R's summary(lm())
    svd                  singular values and vectors, all or the largest ones, as numpy.linalg.svd
    matrix_rank, pinv    the rank and the pseudoinverse, as numpy.linalg's
    orth, null_space     orthonormal bases of the range and of the null space, as scipy.linalg's
    interpolative, cur   low-rank decompositions from columns and rows of A
    StreamingR           R and least squares of rows that come block by block
    StreamingQR          the same, and then Q block by block
    GramSchmidt          an orthonormal basis that grows by columns, as in Krylov methods
    robust_pca           M = L + S, a matrix of low rank and a sparse one
    RobustPCA            the same as an estimator of scikit-learn
    OnlineRobustPCA      the same for samples that come one after the other
    lyapunov             Lyapunov exponents of a flow or a map
    covariant_lyapunov   covariant Lyapunov vectors
    lyapunov_series      Lyapunov exponents of a measured series
    plan, plan_route     the method for a shape, and its way through memory, without computing
    info                 version, kernels, BLAS, threads and GPUs

Modules with the functions for other libraries: quoin.torch, quoin.jax, quoin.dask, quoin.distributed (MPI and NCCL),
quoin.sklearn (estimators). quoin.lapack runs an unchanged program: python -m quoin.lapack script.py

>>> import numpy as np, quoin
>>> A = np.random.default_rng(0).standard_normal((1000, 20))
>>> Q, R = quoin.qr(A)
>>> Q.shape, R.shape, bool(np.allclose(Q @ R, A))
((1000, 20), (20, 20), True)
"""

import pathlib
import sysconfig
from typing import TYPE_CHECKING

if sysconfig.get_config_var("Py_GIL_DISABLED") and pathlib.Path(__file__).with_name("_core.abi3.so").exists():
    raise ImportError(
        "this quoin-qr is for a Python with the GIL, and this Python is free-threaded, which has no stable ABI: "
        "use python3.14, say, in the place of python3.14t"
    )

from . import _libraries  # before the extension module, which uses the libraries that it loads

try:
    from . import _core
except ImportError as error:
    if error.name != __name__:  # the module is there, and a library that it needs is not
        raise
    raise ImportError(
        f"quoin's compiled module _core is not beside {__file__}: install the distribution quoin-qr (in a checkout: "
        "pip install .). PyPI's distribution quoin is another project of the same import name: uninstall it first"
    ) from None

if not _core.in_main_interpreter():  # calls that take the GIL would wait there forever
    raise ImportError(
        "quoin works in Python's main interpreter, not in a sub-interpreter: call it from a thread or from another process "
        "(under mod_wsgi with WSGIApplicationGroup %{GLOBAL})"
    )

from ._errors import (
    CommunicationFailure,
    DeviceFailure,
    Error,
    InvalidArgument,
    NonFiniteEntry,
    NotFitted,
    NumericalBreakdown,
    OutOfMemory,
    RankDeficient,
)
from ._factorization import BatchedFactorization, Factorization
from ._functions import factor, from_raw, info, lstsq, plan, plan_route, qr, svd
from ._gram_schmidt import GramSchmidt
from ._low_rank import cur, interpolative
from ._lq import lq, ql, rq
from ._rank import matrix_rank, null_space, orth, pinv
from ._regression import constrained_lstsq, regression
from ._results import (
    CURResult,
    InterpolativeResult,
    LQResult,
    LstsqResult,
    PivotedQRResult,
    Plan,
    QLResult,
    QRResult,
    RawQRResult,
    Refinement,
    RegressionResult,
    Report,
    Route,
    RQResult,
    SVDResult,
)
from ._streaming import StreamingQR, StreamingR
from ._updates import qr_delete, qr_insert, qr_update

if TYPE_CHECKING:
    from .apps._lyapunov import CovariantResult, Estimate, LyapunovResult, SeriesResult, covariant_lyapunov, lyapunov, lyapunov_series
    from .apps._online_robust_pca import OnlineRobustPCA
    from .apps._robust_pca import RobustPCA, RobustPCAResult, RobustPCAStep, robust_pca
else:

    def __getattr__(name):
        """Imports the applications when one of their names is first used."""
        if name not in __all__:
            raise AttributeError(f"module 'quoin' has no attribute {name!r}")
        from . import apps

        globals().update((known, vars(apps)[known]) for known in __all__ if known not in globals())
        return globals()[name]

    def __dir__():
        return sorted({*globals(), *__all__})


__version__: str = _core.info()["version"]

__all__ = [
    "BatchedFactorization",
    "CURResult",
    "CommunicationFailure",
    "CovariantResult",
    "DeviceFailure",
    "Error",
    "Estimate",
    "Factorization",
    "GramSchmidt",
    "InterpolativeResult",
    "InvalidArgument",
    "LQResult",
    "LstsqResult",
    "LyapunovResult",
    "NonFiniteEntry",
    "NotFitted",
    "NumericalBreakdown",
    "OnlineRobustPCA",
    "OutOfMemory",
    "PivotedQRResult",
    "Plan",
    "QLResult",
    "QRResult",
    "RQResult",
    "RankDeficient",
    "RawQRResult",
    "Refinement",
    "RegressionResult",
    "Report",
    "RobustPCA",
    "RobustPCAResult",
    "RobustPCAStep",
    "Route",
    "SVDResult",
    "SeriesResult",
    "StreamingQR",
    "StreamingR",
    "constrained_lstsq",
    "covariant_lyapunov",
    "cur",
    "factor",
    "from_raw",
    "info",
    "interpolative",
    "lq",
    "lstsq",
    "lyapunov",
    "lyapunov_series",
    "matrix_rank",
    "null_space",
    "orth",
    "pinv",
    "plan",
    "plan_route",
    "ql",
    "qr",
    "qr_delete",
    "qr_insert",
    "qr_update",
    "regression",
    "robust_pca",
    "rq",
    "svd",
]

# tracebacks, reprs and pickles then give the names that users import
for _name in globals().keys() & set(__all__):
    globals()[_name].__module__ = "quoin"

"""The applications: robust PCA and Lyapunov spectra. Their users take the names from `quoin` itself."""

from ._lyapunov import CovariantResult, Estimate, LyapunovResult, SeriesResult, covariant_lyapunov, lyapunov, lyapunov_series
from ._online_robust_pca import OnlineRobustPCA
from ._robust_pca import RobustPCA, RobustPCAResult, RobustPCAStep, robust_pca

for _thing in list(globals().values()):
    if getattr(_thing, "__module__", "").startswith("quoin.apps."):
        _thing.__module__ = "quoin"

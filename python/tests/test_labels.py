"""Results keep the labels of pandas' and xarray's objects. Their numbers do not depend on labels."""

import subprocess
import sys

import numpy as np
import pytest

import quoin


@pytest.fixture
def table(rng):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(rng.standard_normal((30, 4)), index=[f"day {i}" for i in range(30)], columns=list("wxyz"))


@pytest.fixture
def field(rng):
    xarray = pytest.importorskip("xarray")
    coords = {"time": np.arange(30) * 2.0, "place": list("wxyz"), "hour": ("time", np.arange(30) % 24), "north": ("place", range(4))}
    return xarray.DataArray(rng.standard_normal((30, 4)), coords, ["time", "place"])


def test_qr_of_a_table(table):
    pandas = sys.modules["pandas"]
    expected = quoin.qr(table.to_numpy())
    Q, R = quoin.qr(table)
    assert Q.index.equals(table.index) and list(Q.columns) == [0, 1, 2, 3]
    assert R.columns.equals(table.columns) and list(R.index) == [0, 1, 2, 3]
    assert np.array_equal(Q, expected.Q) and np.array_equal(R, expected.R)
    pandas.testing.assert_frame_equal(Q @ R, table)
    assert quoin.qr(table, "r").columns.equals(R.columns)
    Q, R = quoin.qr(table, "complete")
    assert Q.shape == (30, 30) and Q.index.equals(table.index) and R.columns.equals(table.columns)
    Q, R, P = quoin.qr(table, pivoting=True)
    assert list(R.columns) == [table.columns[i] for i in P] != list(table.columns)
    pandas.testing.assert_frame_equal(Q @ R, table.iloc[:, P])
    assert quoin.qr(table, "r", pivoting=True)[0].columns.equals(R.columns)
    assert type(quoin.qr(table, "raw").h) is np.ndarray


def test_lstsq_of_tables(table):
    y = table @ [1.0, -2.0, 3.0, 0.5]
    x = quoin.lstsq(table, y).x
    assert x.index.equals(table.columns) and np.allclose(x, [1, -2, 3, 0.5])
    both = y.to_frame("one").assign(two=-y)
    solution = quoin.lstsq(table, both)
    assert solution.x.index.equals(table.columns) and list(solution.x.columns) == ["one", "two"]
    assert list(solution.residual_norms.index) == ["one", "two"] and solution.rank == 4
    assert np.allclose(solution.x["two"], -x)
    assert quoin.lstsq(table, y.to_numpy()).x.equals(x)
    assert list(quoin.lstsq(table.to_numpy(), both).x.columns) == ["one", "two"]
    with pytest.raises(quoin.InvalidArgument, match="labelled differently"):
        quoin.lstsq(table, y[::-1])
    with pytest.raises(quoin.InvalidArgument, match="rows"):
        quoin.lstsq(table, y[:20])


def test_svd_of_a_table(table):
    U, S, Vh = quoin.svd(table)
    assert U.index.equals(table.index) and Vh.columns.equals(table.columns)
    sys.modules["pandas"].testing.assert_frame_equal((U * S) @ Vh, table)
    assert quoin.svd(table, "vh")[1].columns.equals(table.columns)
    assert np.array_equal(quoin.svd(table, False), quoin.svd(table.to_numpy(), False))
    assert quoin.svd(table, rank=2).Vh.shape == (2, 4)


def test_tables_of_several_types(table):
    pandas = sys.modules["pandas"]
    mixed = table.assign(w=range(30), x=table["x"] > 0).astype({"y": "Float64", "z": np.float32})
    assert mixed.to_numpy().dtype == object
    assert np.array_equal(quoin.qr(mixed, "r"), quoin.qr(mixed.astype(float).to_numpy(), "r"))
    assert quoin.qr(table.astype(np.float32)).R.dtypes.eq(np.float32).all()
    with pytest.raises(TypeError, match="column 'x' is of type"):
        quoin.qr(table.assign(x="text"))
    missing = mixed.copy()
    missing.loc["day 3", "y"] = pandas.NA
    with pytest.raises(quoin.NonFiniteEntry) as error:
        quoin.qr(missing)
    assert (error.value.row, error.value.col) == (3, 2)
    for rows, columns in ((0, 4), (30, 0), (2, 4)):
        part = table.iloc[:rows, :columns]
        Q, R = quoin.qr(part)
        assert Q.index.equals(part.index) and R.columns.equals(part.columns)
    twice = table.set_axis([["a", "a", "b", "b"], [1, 2, 1, 1]], axis=1)  # labels of two levels, one of them twice
    assert quoin.qr(twice).R.columns.equals(twice.columns)


def test_fields(field):
    xarray = sys.modules["xarray"]
    Q, R = quoin.qr(field)
    assert (Q.dims, R.dims) == (("time", "k"), ("k", "place"))
    assert set(Q.coords) == {"time", "hour"} and set(R.coords) == {"place", "north"}
    xarray.testing.assert_allclose(Q @ R, field)
    Q, R, P = quoin.qr(field, pivoting=True)
    xarray.testing.assert_allclose(Q @ R, field[:, P])
    U, S, Vh = quoin.svd(field)
    xarray.testing.assert_allclose((U * S) @ Vh, field)
    assert quoin.qr(field.rename(place="k")).R.dims == ("k_", "k")

    weights = xarray.DataArray([1.0, -2.0, 3.0, 0.5], {"place": field.place}, ["place"])
    solution = quoin.lstsq(field, field @ weights)
    xarray.testing.assert_allclose(solution.x, weights.assign_coords(north=field.north))
    assert quoin.lstsq(field, several(field)).x.dims == ("place", "case")
    for wrong in (field @ weights.rename(place="time")[:0], (field @ weights).rename(time="t")):
        with pytest.raises(quoin.InvalidArgument, match="labelled differently|rows"):
            quoin.lstsq(field, wrong)
    with pytest.raises(quoin.InvalidArgument, match="labelled differently"):
        quoin.lstsq(field, (field @ weights).assign_coords(time=np.arange(30)))
    with pytest.raises(quoin.InvalidArgument, match="'place' twice"):
        quoin.lstsq(field, field)


def several(field):
    return field.sum("place") * sys.modules["xarray"].DataArray([1.0, 2.0], dims="case")


def test_stacks_of_fields(field):
    xarray = sys.modules["xarray"]
    stack = xarray.concat([field, 2 * field, -field], "member").assign_coords(member=[7, 8, 9])
    Q, R = quoin.qr(stack)
    assert Q.dims == ("member", "time", "k") and list(R.member) == [7, 8, 9]
    xarray.testing.assert_allclose(xarray.dot(Q, R, dim="k"), stack)
    solution = quoin.lstsq(stack, field.sum("place"))
    assert solution.x.dims == ("member", "place") and solution.residual_norms.dims == ("member",)
    assert quoin.lstsq(stack.data, several(field)).x.dims == ("k", "k_", "case")
    assert quoin.svd(stack).S.dims == ("member", "k") and quoin.svd(stack, False).dims == ("member", "k")


def test_tables_and_fields_do_not_mix(table, field):
    with pytest.raises(TypeError, match="different packages"):
        quoin.lstsq(table, field[:, 0])


def test_neither_package_is_imported():
    program = "import sys, quoin; quoin.qr([[1.0], [2.0]]); sys.exit(bool({'pandas', 'xarray'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0

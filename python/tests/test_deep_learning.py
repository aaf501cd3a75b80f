"""Deep learning with Quoin, beside quoin.torch's own tests: the example of SOAP, and the benchmark."""

import doctest
import importlib.util
import pathlib
import subprocess
import sys

import pytest

import quoin

torch = pytest.importorskip("torch")
pytest.importorskip("quoin.torch")
python = pathlib.Path(__file__).parents[1]


def program(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def soap():
    return program(python / "examples" / "soap.py")


SMALL = "--width 16 --layers 1 --heads 2 --batch 8 --context 16 --steps 40 --frequency 4 --lr 0.01".split()


def test_soap_trains_alike_with_torchs_qr_and_with_quoins(soap, tmp_path, capsys):
    runs = soap.main([*SMALL, "--csv", str(tmp_path / "curves.csv")])
    assert capsys.readouterr().out.count("| quoin |") == 1
    rows = (tmp_path / "curves.csv").read_text().splitlines()
    assert len(rows) == 2 + 4 * 40 and rows[2].startswith("torch,1,1,4.8")
    for seed in (1, 2):
        (losses, _, of_qr), (others, _, _) = runs["quoin", seed], runs["torch", seed]
        assert losses[-1] < losses[0] - 0.5
        assert soap.difference(losses, others) < 0.02 < 0.05 < soap.difference(runs["torch", 1][0], runs["torch", 2][0])
        assert [step for step, duration in enumerate(of_qr, 1) if duration > 0] == list(range(4, 41, 4))


def test_the_curve_depends_on_the_bases(soap, monkeypatch):
    options = soap.parsed(SMALL)
    losses = soap.train("quoin", 1, options)[0]
    monkeypatch.setitem(soap.ORTHONORMALIZE, "quoin", lambda S: torch.eye(S.shape[-1]).expand_as(S))  # Adam
    assert soap.difference(losses, soap.train("quoin", 1, options)[0]) > 0.1


def test_factors_of_one_size_are_one_batch(soap):
    shapes = [(8, 4), (4, 4), (8, 4), (4, 8)]
    weights = [torch.nn.Parameter(torch.randn(shape, dtype=torch.float64)) for shape in shapes]
    batches = []

    def orthonormalize(S):
        batches.append(tuple(S.shape))
        return torch.linalg.qr(S).Q

    optimizer = soap.SOAP(weights, orthonormalize, frequency=1, betas=(0.9, 0.8))
    P = {}
    for step in range(3):
        for number, W in enumerate(weights):
            W.grad = torch.randn_like(W)
            for side, factor in enumerate((W.grad @ W.grad.mT, W.grad.mT @ W.grad)):
                P[number, side] = 0.8 * P.get((number, side), 0) + 0.2 * factor
        before = [W.detach().clone() for W in weights]
        optimizer.step()
        assert all(torch.equal(W, V) == (step == 0) for W, V in zip(weights, before))
    assert sorted(batches) == 2 * [(3, 8, 8)] + 2 * [(5, 4, 4)]
    # the factors of the weights of a shape, in the order of the weights
    for shape in set(shapes):
        for side, stack in enumerate(optimizer.of(optimizer.P, shape)):
            numbers = [number for number, other in enumerate(shapes) if other == shape]
            assert torch.allclose(stack, torch.stack([P[number, side] for number in numbers]))


@pytest.fixture(scope="module")
def compare():
    return program(python / "benchmarks" / "compare_torch.py")


def test_the_benchmark_runs(compare, capsys, tmp_path):
    rows = compare.main(["--divide", "64", "--repeat", "2", "--csv", str(tmp_path / "rows.csv")])
    assert len(rows) == 4 * 4 + 2 * 4 + 4 * 3 + 2 * sum(map(len, compare.OVERRIDDEN.values()))
    for operation, matrices, who, median, least, departure, _ in rows:
        assert 0 < float(least) <= float(median)
        if "Newton" in who:
            assert 0.1 < float(departure)  # orthonormal only roughly
        elif departure:
            assert float(departure) < 1e-4, (matrices, who)
    out = capsys.readouterr().out
    assert "| 24 × 16×16 |" in out and "| 256×32 |" in out
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == len(rows) + 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("shape", [(40, 3, 3), (5, 40, 40), (3, 600, 300), (2, 1024, 1024), (1, 4000, 64)], ids=str)
@pytest.mark.parametrize("function", ["qr", "orthonormalize"])
def test_a_stack_waits_for_nothing_and_fits_into_a_graph(compare, shape, function):
    A = torch.randn(shape, device="cuda")
    call = compare.each(getattr(quoin.torch, function))
    for _ in range(3):
        call([A])
    assert compare.waits(call, [A]) == 0
    # the profiler sees Quoin's calls. A check of the input alone calls nothing: the kernel tells the host
    assert compare.waits(lambda stacks: quoin.svd(stacks[0][0]), [A]) >= 1
    replay = compare.captured(call, [A])
    for _ in range(2):
        A.copy_(torch.randn_like(A))
        for mine, expected in zip(replay([A]), call([A])):
            assert compare.departure(mine) < 1e-3
            assert all(map(torch.equal, *((x,) if torch.is_tensor(x) else x for x in (mine, expected))))


@pytest.mark.parametrize("name", ["examples/soap.py", "benchmarks/compare_torch.py"])
def test_help(name):
    shown = subprocess.run([sys.executable, python / name, "--help"], check=True, capture_output=True, text=True).stdout
    assert f"python python/{name}" in shown


def test_guide():
    result = doctest.testfile(str(python.parent / "docs" / "deep_learning.md"), module_relative=False)
    assert result.attempted > 10 and result.failed == 0

"""Trains a small transformer with SOAP, whose QR is computed by torch.linalg.qr and then by Quoin.

SOAP (Vyas et al. 2024) is Adam in the eigenbases of Shampoo's preconditioner. Every --frequency steps it refreshes the
bases by one power iteration and a QR factorization of every factor. torch.linalg.qr takes the factors one by one; Quoin
takes all factors of one size as a batch. The program prints whether the loss curves are the same, and what QR costs of
a step.

    python python/examples/soap.py                                             a minute on a CPU
    python python/examples/soap.py --device cuda --width 1024 --layers 4 --heads 16 --batch 32 --context 256 --bf16
    python python/examples/soap.py --csv curves.csv                            the loss and the times of every step

The model predicts the next character of the source text of Python's standard library; nothing is downloaded. A seed
fixes the weights and the batches, which are the same for both. The bases' signs differ, and SOAP's updates do not
depend on them.
"""

import argparse
import csv
import itertools
import math
import pathlib
import statistics
import sys
import sysconfig
import time

import torch
import torch.nn.functional as F

import quoin
import quoin.torch

ORTHONORMALIZE = {
    "torch": lambda S: torch.linalg.qr(S).Q,
    "quoin": quoin.torch.orthonormalize,
}


def eigenvectors(P):
    """By falling eigenvalue; P is scaled, since squares of small gradients underflow."""
    return torch.linalg.eigh(P / P.abs().amax(dim=(-2, -1), keepdim=True).clamp(min=1e-30)).eigenvectors.flip(-1)


class SOAP:
    """For each weight W (m × n) with gradient G, algorithm 3 of Vyas et al. (2024):

    G' = Qₗᵀ G Qᵣ,    M := β₁ M + (1 − β₁) G,    V := β₂ V + (1 − β₂) G'∘G'
    W := W − η Qₗ (Qₗᵀ M Qᵣ / (√V + ε)) Qᵣᵀ
    L := β₂ L + (1 − β₂) G Gᵀ,    R := β₂ R + (1 − β₂) GᵀG
    every `frequency` steps    Qₗ := orthonormalize(L Qₗ),    Qᵣ := orthonormalize(R Qᵣ)

    Weights of one shape are a stack, and so are the factors L and R of one size, whichever weights they belong to. The
    first step only makes the bases, by eigenvectors. An example: it has one group of parameters and no state_dict.
    """

    def __init__(self, weights, orthonormalize, lr=3e-3, betas=(0.95, 0.95), eps=1e-8, frequency=10, warmup=20, now=time.perf_counter):
        self.orthonormalize, self.lr, self.betas, self.eps = orthonormalize, lr, betas, eps
        self.frequency, self.warmup, self.now = frequency, warmup, now
        self.steps, self.refreshes = 0, []  # the moments before and after each QR
        self.weights = {}
        for W in weights:
            self.weights.setdefault(tuple(W.shape), []).append(W)
        self.P, self.Q, self.factors = {}, {}, {}  # by size; the slices of them that a shape has
        for size in {size for shape in self.weights for size in shape}:
            owners = [(shape, side) for shape in self.weights for side in (0, 1) if shape[side] == size]
            ends = list(itertools.accumulate(len(self.weights[shape]) for shape, _ in owners))
            self.factors |= {owner: slice(end - len(self.weights[owner[0]]), end) for owner, end in zip(owners, ends)}
            self.P[size] = W.new_zeros(ends[-1], size, size)
        self.M = {shape: W.new_zeros(len(stack), *shape) for shape, stack in self.weights.items()}
        self.V = {shape: torch.zeros_like(M) for shape, M in self.M.items()}

    def of(self, factors, shape):
        """Views of the left and of the right factors of the weights of a shape."""
        return (factors[size][self.factors[shape, side]] for side, size in enumerate(shape))

    @torch.no_grad()
    def step(self):
        self.steps += 1
        beta1, beta2 = self.betas
        for shape, weights in self.weights.items():
            G = torch.stack([W.grad for W in weights])
            L, R = self.of(self.P, shape)
            L.lerp_(G @ G.mT, 1 - beta2)
            R.lerp_(G.mT @ G, 1 - beta2)
            if self.Q:
                self.update(shape, weights, G)
        if not self.Q:
            self.Q = {size: eigenvectors(P) for size, P in self.P.items()}
        elif self.steps % self.frequency == 0:
            S = {size: P @ self.Q[size] for size, P in self.P.items()}
            start = self.now()
            self.Q = {size: self.orthonormalize(S) for size, S in S.items()}
            self.refreshes.append((start, self.now()))

    def update(self, shape, weights, G):
        (beta1, beta2), M, V, t = self.betas, self.M[shape], self.V[shape], self.steps - 1
        QL, QR = self.of(self.Q, shape)
        M.lerp_(G, 1 - beta1)
        V.lerp_((QL.mT @ G @ QR).square(), 1 - beta2)
        N = (QL.mT @ M @ QR) / (V.sqrt() + self.eps)
        lr = self.lr * min(1, t / self.warmup) * math.sqrt(1 - beta2**t) / (1 - beta1**t)
        torch._foreach_add_(weights, list((QL @ N @ QR.mT).unbind()), alpha=-lr)


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = (torch.nn.LayerNorm(width, bias=False) for _ in range(2))
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = torch.nn.Linear(width, 4 * width, bias=False), torch.nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        y = self.before_attention(x)
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.before_mlp(x))))


class Transformer(torch.nn.Module):
    def __init__(self, characters, width, layers, heads, context):
        super().__init__()
        self.characters, self.places = torch.nn.Embedding(characters, width), torch.nn.Embedding(context, width)
        self.blocks = torch.nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = torch.nn.LayerNorm(width, bias=False), torch.nn.Linear(width, characters, bias=False)
        for W in self.parameters():
            if W.dim() == 2:
                torch.nn.init.normal_(W, std=0.02)

    def forward(self, text):
        x = self.characters(text) + self.places.weight[: text.shape[-1]]
        return self.head(self.norm(self.blocks(x)))


CHARACTERS = 128


def source_text(length=2_000_000):
    """The first characters of Python's standard library, as numbers below 128."""
    text = bytearray()
    for file in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text += bytes(byte for byte in file.read_bytes() if byte < CHARACTERS)
        if len(text) > length:
            break
    return torch.tensor(text[:length], dtype=torch.uint8)


def clock(device):
    """Returns a function that takes a moment of the GPU's current stream, without a wait, or of the host, and one for
    the milliseconds between."""
    if device != "cuda":
        return time.perf_counter, lambda start, end: 1e3 * (end - start)

    def now():
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    return now, lambda start, end: start.elapsed_time(end)


def train(qr, seed, options, dtype=torch.float32):
    """Returns the losses, the milliseconds of each step, and the milliseconds of QR in each step."""
    torch.manual_seed(seed)
    model = Transformer(CHARACTERS, options.width, options.layers, options.heads, options.context).to(options.device, dtype)
    text, batches = source_text().to(options.device), torch.Generator().manual_seed(seed)
    now, milliseconds = clock(options.device)
    soap = SOAP([W for W in model.parameters() if W.dim() == 2], ORTHONORMALIZE[qr], options.lr, frequency=options.frequency, now=now)
    adam = torch.optim.Adam([W for W in model.parameters() if W.dim() == 1], options.lr, soap.betas)
    window = torch.arange(options.context + 1, device=options.device)
    losses, moments = [], [now()]
    for _ in range(options.steps):
        starts = torch.randint(len(text) - len(window), (options.batch, 1), generator=batches).to(options.device)
        lines = text[starts + window].long()
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=options.bf16):
            loss = F.cross_entropy(model(lines[:, :-1]).flatten(0, 1), lines[:, 1:].flatten())
        loss.backward()
        soap.step()
        adam.step()
        model.zero_grad()
        losses.append(loss.detach())
        moments.append(now())
    losses = torch.stack(losses).tolist()  # waits for the GPU
    refreshes = dict(zip(range(options.frequency, options.steps + 1, options.frequency), soap.refreshes))
    return (
        losses,
        list(itertools.starmap(milliseconds, itertools.pairwise(moments))),
        [milliseconds(*refreshes[step]) if step in refreshes else 0.0 for step in range(1, options.steps + 1)],
    )


def difference(losses, others, window=10):
    """The largest one of the two curves' means over `window` steps."""
    gaps = [a - b for a, b in zip(losses, others)]
    return max(abs(sum(gaps[i : i + window])) / window for i in range(len(gaps) - window + 1))


def report(runs, options):
    """A table in Markdown of `runs`, by QR and seed; and how far the curves are apart."""
    print(f"| QR by | loss at the end, {len(options.seeds)} seeds | step | step with QR | QR | QR's share |")
    print("|---|---|---|---|---|---|")
    for qr in options.qr:
        ends = [statistics.mean(runs[qr, seed][0][-10:]) for seed in options.seeds]
        # the first steps have the eigenvectors, and take memory
        times = [pair for seed in options.seeds for pair in list(zip(*runs[qr, seed][1:]))[options.frequency :]]
        plain, whole = ([step for step, of_qr in times if (of_qr > 0) == refresh] for refresh in (False, True))
        refresh = [of_qr for _, of_qr in times if of_qr > 0]
        share = sum(refresh) / sum(step for step, _ in times)
        print(f"| {qr} | {' '.join(f'{end:.4f}' for end in ends)} | {statistics.median(plain):.2f} ms "
              f"| {statistics.median(whole):.2f} ms | {statistics.median(refresh):.2f} ms | {share:.1%} |")
    pairs = itertools.combinations
    of_qr = [difference(runs[a, seed][0], runs[b, seed][0]) for a, b in pairs(options.qr, 2) for seed in options.seeds]
    of_seed = [difference(runs[qr, a][0], runs[qr, b][0]) for a, b in pairs(options.seeds, 2) for qr in options.qr]
    if of_qr:
        print(f"\nLargest difference of two curves, means of 10 steps: {max(of_qr):.4f} of two QRs with the same seed"
              + (f", {max(of_seed):.4f} of two seeds with the same QR" if of_seed else ""))


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--qr", default="torch,quoin", help="who computes QR, a run each: torch,quoin")
    parser.add_argument("--seeds", default="1,2", help="a run each; the difference of two seeds is the noise to compare with: 1,2")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--frequency", type=int, default=10, help="steps between two refreshes of the bases: 10, as in the paper")
    parser.add_argument("--width", type=int, default=128, help="n: a layer has ten factors n × n, of q, k, v, o and its MLP, and two 4n × 4n")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--bf16", action="store_true", help="the model under autocast; the optimizer is in float32 in any case")
    parser.add_argument("--csv", help="file for qr, seed, step, loss, milliseconds of the step, milliseconds of QR in it")
    options = parser.parse_args(arguments)
    options.qr, options.seeds = options.qr.split(","), [int(seed) for seed in options.seeds.split(",")]
    if unknown := set(options.qr) - set(ORTHONORMALIZE):
        parser.error(f"--qr is of {', '.join(ORTHONORMALIZE)}, not {', '.join(unknown)}")
    if options.steps <= 2 * options.frequency + 10:
        parser.error("--steps must be more than 2 · --frequency + 10: the first --frequency steps are not timed")
    return options


def main(arguments=None):
    options = parsed(arguments)
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    about = (f"{where}; PyTorch {torch.__version__}, Quoin {quoin.__version__}; width {options.width}, {options.layers} layers, "
             f"{options.batch} × {options.context} characters a step{', bf16' if options.bf16 else ''}; QR every {options.frequency} steps")
    print(about, "\n")
    runs = {(qr, seed): train(qr, seed, options) for seed in options.seeds for qr in options.qr}
    report(runs, options)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            print(f"# {about}", file=file)
            rows = csv.writer(file)
            rows.writerow(["qr", "seed", "step", "loss", "step_ms", "qr_ms"])
            for (qr, seed), run in runs.items():
                rows.writerows([qr, seed, step, *map("{:.6g}".format, row)] for step, row in enumerate(zip(*run), 1))
    return runs


if __name__ == "__main__":
    sys.exit(not main())

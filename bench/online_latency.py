#!/usr/bin/env python3
"""Delay of a program that separates a stream: frames go into its standard input at a rate, and the time of each is
taken when it has come out of its standard output.

    bench/online_latency.py [--rate 30] [--frames 300] [--size 640x480] [-- build/bin/quoin-rpca - --out -]
    bench/online_latency.py --rate 60 --size 1920x1080 --learn 40 -- build/bin/quoin-rpca - --out - --device cuda

The frames are a still scene with noise and a square that moves, as Y4M in grey. Frame k is due k/rate seconds after the
program was started, whether or not the program is ready for it. With --learn N the first N frames are given at once,
and the clock starts once they have come out: a GPU takes seconds to start. Prints the delay of the first 40 frames and
of the others, in milliseconds and frames, and CPU time a frame.
"""

import argparse
import contextlib
import fcntl
import random
import resource
import statistics
import subprocess
import sys
import threading
import time


def scene(width, height, count=30, variants=16):
    """Some frames, which repeat. Each of their rows is one of some with other noise."""
    random.seed(1)
    texture = [[bytes(int(120 + (x * 5 + y * 3) % 90 + random.gauss(0, 3)) & 255 for x in range(width))
                for _ in range(variants)] for y in range(30)]
    frames = []
    for k in range(count):
        frame = bytearray(b"".join(random.choice(texture[y % 30]) for y in range(height)))
        side = height // 4
        left = k * (width - side) // count
        for y in range(side, 2 * side):
            frame[y * width + left:y * width + left + side] = b"\xe6" * side
        frames.append(bytes(frame))
    return frames


def widen(pipe):
    """A pipe of 1 MiB where the system has them: frames pass in fewer pieces."""
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)


def main():
    own, command = sys.argv[1:], ["quoin-rpca", "-", "--out", "-"]
    if "--" in own:
        own, command = own[:own.index("--")], own[own.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=30)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--size", default="640x480")
    parser.add_argument("--learn", type=int, default=0, metavar="N")
    arguments = parser.parse_args(own)
    width, height = map(int, arguments.size.split("x"))
    frames, count = scene(width, height), arguments.frames
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    widen(process.stdin)
    widen(process.stdout)
    start, total, arrivals = time.time(), 0, []

    def feed():
        nonlocal start
        process.stdin.write(f"YUV4MPEG2 W{width} H{height} F{arguments.rate}:1 Ip A1:1 Cmono\n".encode())
        for k in range(count):
            if 0 < k == arguments.learn:
                while not arrivals or time.time() - arrivals[-1][0] < 3:
                    time.sleep(0.01)
                start = time.time() - k / arguments.rate
            if k >= arguments.learn:
                time.sleep(max(0, start + k / arguments.rate - time.time()))
            process.stdin.write(b"FRAME\n" + frames[k % len(frames)])
        process.stdin.close()

    threading.Thread(target=feed, daemon=True).start()
    while part := process.stdout.read(1 << 20):
        total += len(part)
        arrivals.append((time.time(), total))
    if process.wait() != 0:
        sys.exit("the program failed")
    # all frames have one size, in addition to the headers of the stream and of each frame
    delays, next_arrival = [], 0
    for k in range(count):
        while arrivals[next_arrival][1] < 0.999 * total * (k + 1) / count:
            next_arrival += 1
        delays.append(arrivals[next_arrival][0] - start - k / arguments.rate)
    for name, part in (("first 40", delays[:40]), ("others", delays[max(40, arguments.learn):])):
        if not part or (name == "first 40" and arguments.learn):
            continue
        for what, value in (("median", statistics.median(part)), ("longest", max(part))):
            print(f"{name:10}{what:8}{1e3 * value:8.1f} ms{arguments.rate * value:8.2f} frames")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"CPU {1e3 * (used.ru_utime + used.ru_stime) / count:.1f} ms a frame")


main()

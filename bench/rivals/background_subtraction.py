#!/usr/bin/env python3
"""Masks of moving objects by `quoin rpca` and by OpenCV's methods, on frames whose masks are known.

    quoin rpca --synthetic --scene-with noise,leaves --color --out parts --write-scene scene
    quoin bench rpca scene --against opencv [-- --window 50 ...]

`quoin bench` holds this script and gives it to python3.

The folder has ChangeDetection.net's layout: input/ and groundtruth/ with an image for each frame, whose labels 0 and 50
are background, 255 is foreground and others are not scored; where they are there, ROI.* (not scored where it is black)
and temporalROI.txt (the first and last frame that are scored, counted from 1). Prints precision, recall, F and seconds
of CPU for each frame of

    quoin    `quoin rpca` with the options after --, and the same with --masks raw
    mog2     MOG2 (Zivkovic 2004), shadows taken for background; also with a 5×5 median
    knn      KNN (Zivkovic and van der Heijden 2006), the same
    median   more than 15 levels from the temporal median of the whole sequence; also with a 5×5 median

OpenCV's methods see each frame once and learn while they look. They get the frames before the first one that is scored,
too.
--json prints one JSON line a method. Needs opencv-python-headless and numpy.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

try:
    import cv2
    import numpy as np
except ImportError as error:
    sys.exit(f"quoin: {error}: the comparison with OpenCV needs opencv-python and numpy (pip install opencv-python-headless)")

LEVELS = 15  # of the temporal median: the threshold 0.06 of `quoin rpca`
IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm", ".tif", ".tiff", ".webp"}


class Score:
    """Pixels of all frames, counted as in ChangeDetection.net (Goyette et al. 2012)."""

    def __init__(self):
        self.positive = self.negative = self.missed = 0

    def add(self, found, labels):
        self.positive += np.count_nonzero(found & (labels == 255))
        self.missed += np.count_nonzero(~found & (labels == 255))
        self.negative += np.count_nonzero(found & ((labels == 0) | (labels == 50)))

    def row(self):
        def ratio(a, b):
            return a / b if b else None

        positive, negative, missed = self.positive, self.negative, self.missed
        return {"precision": ratio(positive, positive + negative), "recall": ratio(positive, positive + missed),
                "f": ratio(2 * positive, 2 * positive + negative + missed)}


def images(folder):
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGES)


class Sequence:
    """The frames of a folder in ChangeDetection.net's layout, and their labels: 85 where nothing is scored."""

    def __init__(self, folder):
        for part in ("input", "groundtruth"):
            if not (folder / part).is_dir():
                sys.exit(f"quoin: {folder}: has no folder {part}/, which ChangeDetection.net's layout has")
        self.frames, self.labels = (images(folder / part) for part in ("input", "groundtruth"))
        if not self.frames or len(self.frames) != len(self.labels):
            sys.exit(f"quoin: {folder}: as many images as labels are needed in input/ and groundtruth/, and there are "
                     f"{len(self.frames)} and {len(self.labels)}")
        self.first, self.last = 1, len(self.frames)
        if (range_file := folder / "temporalROI.txt").exists():
            self.first, self.last = map(int, range_file.read_text().split()[:2])
        regions = [path for path in sorted(folder.glob("ROI.*")) if path.suffix.lower() in IMAGES]
        self.region = cv2.imread(str(regions[0]), cv2.IMREAD_GRAYSCALE) > 0 if regions else None

    def frame(self, j):
        frame = cv2.imread(str(self.frames[j]), cv2.IMREAD_COLOR)
        grey = np.array_equal(frame[..., 0], frame[..., 1]) and np.array_equal(frame[..., 0], frame[..., 2])
        return np.ascontiguousarray(frame[..., 0]) if grey else frame

    def label(self, j):
        label = cv2.imread(str(self.labels[j]), cv2.IMREAD_GRAYSCALE)
        if not self.first <= j + 1 <= self.last:
            label[:] = 85
        elif self.region is not None:
            label[~self.region] = 85
        return label


def median_filtered(mask):
    return cv2.medianBlur(mask.astype(np.uint8), 5) > 0


def opencv_rows(sequence):
    """The rows of MOG2, KNN and the temporal median, raw and with a 5×5 median."""
    count = len(sequence.frames)
    middle = np.median(np.stack([sequence.frame(j) for j in range(count)]), axis=0).astype(np.int16)

    def far_from_median(frame):
        difference = np.abs(frame - middle) > LEVELS
        return difference if difference.ndim == 2 else difference.any(axis=2)

    mog2, knn = cv2.createBackgroundSubtractorMOG2(), cv2.createBackgroundSubtractorKNN()
    methods = {"mog2": lambda frame: mog2.apply(frame) == 255,  # 127 is a shadow
               "knn": lambda frame: knn.apply(frame) == 255, "median": far_from_median}
    for name, mask_of in methods.items():
        raw, filtered, seconds = Score(), Score(), [0.0, 0.0]
        for j in range(count):
            frame, label = sequence.frame(j), sequence.label(j)
            start = time.process_time()
            mask = mask_of(frame)
            middle_time = time.process_time()
            smooth = median_filtered(mask)
            seconds[0] += middle_time - start
            seconds[1] += time.process_time() - start
            raw.add(mask, label)
            filtered.add(smooth, label)
        yield {"method": name, **raw.row(), "cpu_seconds_per_frame": seconds[0] / count}
        yield {"method": f"{name} + 5x5 median", **filtered.row(), "cpu_seconds_per_frame": seconds[1] / count}


def quoin_rows(rpca, folder, options, count):
    """The rows of `quoin rpca`, which reads, separates, scores and writes films."""
    for name, more in (("quoin", []), ("quoin, raw masks", ["--masks", "raw"])):
        with tempfile.TemporaryDirectory() as out:
            command = [rpca, str(folder / "input"), "--ground-truth", str(folder), "--out", out, "--json", *options, *more]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run = subprocess.run(command, capture_output=True, text=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if run.returncode != 0:
            sys.exit(run.stderr or f"{rpca} failed")
        report = json.loads(run.stdout)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        yield {"method": name, **{key: report[key] for key in ("precision", "recall", "f")},
               "cpu_seconds_per_frame": used / count}


def main():
    own, options = sys.argv[1:], []
    if "--" in own:
        own, options = own[:own.index("--")], own[own.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rpca", default="quoin-rpca", help="the program (default: that of PATH)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(own)
    sequence = Sequence(arguments.folder)
    count = len(sequence.frames)
    if not arguments.json:
        print(f"{arguments.folder}: {count} frames, {sequence.first} to {sequence.last} scored; OpenCV {cv2.__version__}\n")
        print(f"{'':20}{'precision':>10}{'recall':>10}{'F':>10}{'CPU s/frame':>14}")
    for rows in (quoin_rows(os.fspath(arguments.rpca), arguments.folder, options, count), opencv_rows(sequence)):
        for row in rows:
            if arguments.json:
                print(json.dumps({**row, "frames": count, "opencv": cv2.__version__}), flush=True)
            else:
                numbers = "".join(f"{'-' if row[key] is None else format(row[key], '.4f'):>10}"
                                  for key in ("precision", "recall", "f"))
                print(f"{row['method']:20}{numbers}{row['cpu_seconds_per_frame']:14.4f}", flush=True)


main()

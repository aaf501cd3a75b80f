#!/usr/bin/env python3
"""Masks of moving objects by OpenCV's MOG2 and KNN, scored as `quoin rpca` scores its own.

    quoin rpca --synthetic --out parts --write-scene scene
    python3 bench/background_subtraction.py scene

reads scene/input/*.png and scene/groundtruth/*.png (ChangeDetection.net's labels: 0 and 50 background, 255 foreground,
others not scored) and prints one JSON line a method. Needs opencv-python-headless and numpy. Both methods learn while they
look: the first frames count as well.
"""

import json
import pathlib
import sys

import cv2
import numpy as np


def score(masks, labels):
    positive = negative = missed = 0
    for mask, truth in zip(masks, labels, strict=True):
        found = mask == 255  # 127 is what OpenCV takes for a shadow
        positive += np.count_nonzero(found & (truth == 255))
        missed += np.count_nonzero(~found & (truth == 255))
        negative += np.count_nonzero(found & ((truth == 0) | (truth == 50)))
    ratio = lambda a, b: a / b if b else None
    return {"precision": ratio(positive, positive + negative), "recall": ratio(positive, positive + missed),
            "f": ratio(2 * positive, 2 * positive + negative + missed)}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    scene = pathlib.Path(sys.argv[1])
    names = [sorted((scene / part).glob("*.png")) for part in ("input", "groundtruth")]
    if not names[0] or len(names[0]) != len(names[1]):
        sys.exit(f"{scene}: as many images as labels are needed in input/ and groundtruth/")
    frames, labels = ([cv2.imread(str(name), cv2.IMREAD_GRAYSCALE) for name in part] for part in names)
    for name, subtractor in (("mog2", cv2.createBackgroundSubtractorMOG2()),
                             ("knn", cv2.createBackgroundSubtractorKNN())):
        masks = [subtractor.apply(frame) for frame in frames]
        print(json.dumps({"method": name, "opencv": cv2.__version__, "frames": len(frames), **score(masks, labels)}))


main()

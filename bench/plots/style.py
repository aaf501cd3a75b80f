"""Style of all pictures: colours, sizes of letters, ticks, labels and files."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

# Okabe and Ito's colours, which the colour-blind tell apart.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#777777")

plt.rcParams.update({
    "font.size": 10, "axes.titlesize": 11, "axes.titlelocation": "left", "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "grid.color": "#DDDDDD", "grid.linewidth": 0.6,
    "axes.axisbelow": True, "svg.fonttype": "none", "svg.hashsalt": "quoin", "savefig.bbox": "tight", "savefig.dpi": 120,
})


def thousands(value):
    """192, 8192, 10 000, 1 000 000: digits in threes from 10 000 on."""
    return f"{int(value):,}".replace(",", "\u2009") if value >= 10000 else f"{int(value)}"


def save(figure, path, endings=(".svg", ".png")):
    for ending in endings:
        figure.savefig(path + ending, metadata={"Date": None} if ending == ".svg" else None)
        print(path + ending)
    plt.close(figure)


def label_ends(axes, ends, gap=0.048):
    """Labels at the right ends of lines, `ends` a list of (y, text, colour), at least `gap` of the height apart."""
    low, high = axes.transAxes.transform([(0, 0), (0, 1)])[:, 1]
    places = sorted(((axes.transData.transform((1, y))[1] - low) / (high - low), text, colour)
                    for y, text, colour in ends)
    at = [place[0] for place in places]
    for _ in range(100):  # neighbours that are too close move apart, each by half
        for i in range(len(at) - 1):
            overlap = max(0, gap - (at[i + 1] - at[i]))
            at[i], at[i + 1] = at[i] - overlap / 2, at[i + 1] + overlap / 2
    for y, (_, text, colour) in zip(at, places):
        axes.text(1.02, y, text, color=colour, transform=axes.transAxes, va="center", fontsize=9)


def plain_log_ticks(axis, values):
    axis.set_major_locator(FixedLocator(values))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))

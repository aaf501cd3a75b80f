#!/usr/bin/env python3
"""Draws the pictures of docs/algorithms.md beside this file: python3 docs/pictures/make_trees.py"""

from pathlib import Path

INK, PAPER, A, R, V, V_NODE, C, C_NEW, Q = (
    "#333333", "#ffffff", "#e9e9e9", "#7fa7d6", "#e6cf9c", "#cf8a4a", "#f4f4f4", "#bcd9b4", "#86bd86")


class Picture:
    """An SVG under construction; y grows downwards."""

    def __init__(self, width, height):
        self.width, self.height, self.parts = width, height, []

    def polygon(self, points, fill, stroke=INK, width=1.0):
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<polygon points="{path}" fill="{fill}" stroke="{stroke}" stroke-width="{width:g}" '
                          'stroke-linejoin="round"/>')

    def rectangle(self, x, y, w, h, fill, stroke=INK, width=1.0):
        self.polygon([(x, y), (x + w, y), (x + w, y + h), (x, y + h)], fill, stroke, width)

    def line(self, *points, width=1.4, dash="", arrow=False):
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        head = ' marker-end="url(#arrow)"' if arrow else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="{width:g}"'
                          f'{dash}{head}/>')

    def dot(self, x, y, fill=INK, radius=4.0):
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{INK}"/>')

    def text(self, x, y, words, size=13, anchor="middle", style=""):
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        style = f' font-style="{style}"' if style else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"{style}>{words}</text>')

    def legend(self, x, y, entries):
        for fill, words in entries:
            self.rectangle(x, y - 10, 13, 13, fill)
            self.text(x + 19, y + 1, words, 12, "start")
            x += 36 + 6.4 * len(words)

    def save(self, name):
        body = "\n".join(self.parts)
        (Path(__file__).parent / name).write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" font-family="Helvetica, Arial, sans-serif" fill="{INK}">\n'
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>\n'
            f'<rect width="{self.width}" height="{self.height}" fill="{PAPER}"/>\n{body}\n</svg>\n', encoding="utf-8")


def upper_triangle(picture, x, y, w, fill):
    picture.polygon([(x, y), (x + w, y), (x + w, y + w)], fill)


def factored_leaf(picture, x, y, w, h, triangle=R):
    """V below the diagonal, `triangle` on and above it."""
    picture.polygon([(x, y), (x + w, y + w), (x + w, y + h), (x, y + h)], V)
    upper_triangle(picture, x, y, w, triangle)


def merges(domains, fan_in):
    """(head, members) of every node, level by level."""
    levels, stride = [], 1
    while stride < domains:
        span = stride * fan_in
        levels.append([(head, list(range(head + stride, min(domains, head + span), stride)))
                       for head in range(0, domains, span)])
        stride = span
    return levels


def trees():
    """One leaf, and trees over eight leaves; the last leaf of (e) is ragged."""
    top, height, width = 58, 240, 46
    # heights of the leaves of each domain
    kinds = [("one leaf", "LAPACK's panel", [[8]], 2), ("flat tree", "one domain", [[1] * 8], 2),
             ("binary tree", "fan-in 2", [[1]] * 8, 2), ("quad tree", "fan-in 4", [[1]] * 8, 4),
             ("domains under a tree", "flat below, fan-in 2 above", [[1.1, 1.1]] * 3 + [[1.1, 0.3]], 2)]
    picture = Picture(1020, 345)
    x = 24
    for number, (title, subtitle, domains, fan_in) in enumerate(kinds):
        unit = height / sum(map(sum, domains))
        levels = merges(len(domains), fan_in)
        flat = max(map(len, domains)) > 1
        room = width + 34 + (26 if flat else 0) + 40 * len(levels)
        picture.text(x + room / 2, 22, f"({'abcde'[number]}) {title}", 14)
        picture.text(x + room / 2, 40, subtitle, 12, style="italic")
        heads, right, y = [], x + width + (38 if flat else 12), top
        for leaves in domains:
            middles = []
            for leaf in leaves:
                picture.rectangle(x, y, width, leaf * unit, A)
                middles.append(y + min(leaf, 1.1) * unit / 2)
                picture.line((x + width, middles[-1]), (x + width + 12, middles[-1]))
                y += leaf * unit
            picture.rectangle(x, y - sum(leaves) * unit, width, sum(leaves) * unit, "none", width=2.2)
            picture.line((x + width + 12, middles[-1]), (x + width + 12, middles[0]), (right, middles[0]))
            for middle in middles[1:]:
                picture.dot(x + width + 12, middle)
            heads.append(middles[0])
        for nodes in levels:
            right += 40
            for head, members in nodes:
                for domain in [head] + members:
                    picture.line((right - 40, heads[domain]), (right, heads[domain]))
                for member in members:
                    picture.line((right, heads[member]), (right, heads[head]))
                    picture.dot(right, heads[member])
        picture.line((right, heads[0]), (right + 20, heads[0]), arrow=True)
        picture.text(right + 30, heads[0] + 5, "R", 14, "start")
        x += room + 50
    picture.dot(300, 327)
    picture.text(312, 331, "one absorption: [R; B] = H [R'; 0], B a leaf of the domain or a member's R", 13, "start")
    picture.save("trees.svg")


def tsqr_stages():
    """Figure 2 of Anderson et al. 2011, with what lies where in memory."""
    w, h, gap, top = 46, 68, 84, 46
    picture = Picture(800, 382)
    titles = ["(a) four leaves", "(b) factor_leaves", "(c) factor_nodes, level 0", "(d) factor_nodes, level 1"]
    for stage, title in enumerate(titles):
        x = 64 + stage * (w + gap + 56)
        picture.text(x + w / 2, 26, title, 13)
        for leaf in range(4):
            y = top + leaf * h
            if stage == 0:
                picture.rectangle(x, y, w, h, A)
                picture.text(x + w / 2, y + h / 2 + 5, f"A{'₀₁₂₃'[leaf]}")
                continue
            absorbed = (stage >= 2 and leaf % 2 == 1) or (stage == 3 and leaf == 2)
            factored_leaf(picture, x, y, w, h, V_NODE if absorbed else R)
        if stage == 2:
            for head in (0, 2):
                y = top + head * h + 14
                picture.line((x + w + 3, y + h), (x + w + 18, y + h), (x + w + 18, y), (x + w + 5, y), arrow=True)
        if stage == 3:
            picture.line((x + w + 3, top + 2 * h + 14), (x + w + 18, top + 2 * h + 14), (x + w + 18, top + 14),
                         (x + w + 5, top + 14), arrow=True)
    picture.legend(120, 360, [(V, "V of a leaf"), (R, "R, or a partial R"),
                              (V_NODE, "V of a node, in place of the member's R")])
    picture.save("tsqr_stages.svg")


def caqr():
    """Figure 3 of Anderson et al. 2011: horizontal update, tree update, and the grid of the next panel."""
    w, h, count, columns, top = 30, 48, 4, 4, 62
    picture = Picture(1000, 330)
    titles = [("(a) panel", "factor_leaves, factor_nodes"), ("(b) horizontal update", "apply_leaves"),
              ("(c) tree update", "apply_nodes, level 0"), ("(d) tree update", "apply_nodes, level 1"),
              ("(e) next panel", "the grid starts w rows lower")]
    for stage, (title, subtitle) in enumerate(titles):
        x, total = 34 + stage * 195, columns * w
        picture.text(x + total / 2, 24, title, 13)
        picture.text(x + total / 2, 42, subtitle, 11.5, style="italic")
        for block in range(count):
            y = top + block * h
            factored_leaf(picture, x, y, w, h, V_NODE if block > 0 else R)
            if stage < 4:
                for column in range(1, columns):
                    picture.rectangle(x + column * w, y, w, h, C_NEW if stage == 1 else C)
        if stage in (2, 3):
            pairs = [(0, 1), (2, 3)] if stage == 2 else [(0, 2)]
            for head, member in pairs:
                for block in (head, member):
                    for column in range(1, columns):
                        picture.rectangle(x + column * w, top + block * h, w, w, C_NEW)
                xs = x + total + 4
                picture.line((xs, top + member * h + w / 2), (xs + 12, top + member * h + w / 2),
                             (xs + 12, top + head * h + w / 2), (xs + 2, top + head * h + w / 2), arrow=True)
        if stage == 4:
            picture.rectangle(x + w, top, total - w, w, R)
            y, bottom = top + w, top + count * h
            while y < bottom:
                end = y + h if bottom - (y + h) >= w else bottom
                for column in range(2, columns):
                    picture.rectangle(x + column * w, y, w, end - y, C)
                picture.rectangle(x + w, y, w, end - y, A, width=2.2)
                y = end
            picture.line((x + total + 6, top), (x + total + 6, top + w), width=1.2)
            picture.text(x + total + 14, top + w / 2 + 5, "w", 13, "start", "italic")
        picture.rectangle(x, top, total, count * h, "none", width=1.6)
    picture.legend(120, 300, [(V, "V of a leaf"), (V_NODE, "V of a node"), (R, "R"), (C_NEW, "updated now"),
                              (A, "the next panel's leaves, the last one ragged")])
    picture.save("caqr.svg")


def forming_q():
    """The top-down pass: E upper triangular throughout, in the place of R and of V of the nodes."""
    w, h, top = 46, 68, 46
    picture = Picture(800, 382)
    titles = ["(a) set_root", "(b) form_nodes, level 1", "(c) form_nodes, level 0", "(d) form_leaves"]
    has_e = [{0}, {0, 2}, {0, 1, 2, 3}, set()]
    for stage, title in enumerate(titles):
        x = 64 + stage * 186
        picture.text(x + w / 2, 26, title, 13)
        for leaf in range(4):
            y = top + leaf * h
            if stage == 3:
                picture.rectangle(x, y, w, h, Q)
                picture.text(x + w / 2, y + h / 2 + 5, f"Q{'₀₁₂₃'[leaf]}")
                continue
            factored_leaf(picture, x, y, w, h, C_NEW if leaf in has_e[stage] else V_NODE)
            if leaf in has_e[stage]:
                picture.text(x + 0.68 * w, y + 0.42 * w, "I" if stage == 0 else f"E{'₀₁₂₃'[leaf]}", 12)
        pairs = [[], [(0, 2)], [(0, 1), (2, 3)], []][stage]
        for head, member in pairs:
            picture.line((x + w + 5, top + head * h + 14), (x + w + 18, top + head * h + 14),
                         (x + w + 18, top + member * h + 14), (x + w + 5, top + member * h + 14), arrow=True)
    picture.legend(90, 360, [(V, "V of a leaf"), (V_NODE, "V of a node, not yet used"), (C_NEW, "E, upper triangular"),
                             (Q, "rows of the thin Q")])
    picture.save("forming_q.svg")


def reflectors():
    """The three shapes of V."""
    k, ib, top = 84, 28, 62
    picture = Picture(760, 300)
    blocks = [("leaf", "unit lower trapezoid (geqrt)"), ("leaf under a triangle", "I over a rectangle (tpqrt)"),
              ("triangle under a triangle", "I over a triangle (tpqrt)")]
    for number, (title, subtitle) in enumerate(blocks):
        x = 70 + number * 250
        picture.text(x + k / 2, 24, title, 13)
        picture.text(x + k / 2, 42, subtitle, 12, style="italic")
        if number == 0:
            picture.polygon([(x, top), (x + k, top + k), (x + k, top + 190), (x, top + 190)], V)
            picture.line((x, top), (x + k, top + k), width=2.4)
            picture.text(x + k / 2 + 12, top + k / 2 - 4, "1", 12)
            picture.text(x + k / 2 - 14, top + k / 2 + 24, "L")
            picture.text(x + k / 2, top + 140, "V")
            continue
        picture.rectangle(x, top, k, k, PAPER, width=0.8)
        picture.line((x, top), (x + k, top + k), width=2.4)
        picture.text(x + k / 2 + 12, top + k / 2 - 4, "1", 12)
        picture.text(x + k + 8, top + k / 2 + 4, "not stored", 12, "start", "italic")
        below = top + k + 6
        if number == 1:
            picture.rectangle(x, below, k, 100, V)
            picture.text(x + k / 2, below + 54, "V")
        else:
            # the rows that each inner block sweeps
            for block in range(k // ib):
                picture.rectangle(x + block * ib, below, ib, (block + 1) * ib, PAPER, width=0.8)
            upper_triangle(picture, x, below, k, V_NODE)
            picture.text(x + 0.68 * k, below + 0.4 * k, "V")
            picture.line((x, below + k + 12), (x + ib, below + k + 12), width=1.2)
            picture.text(x + ib / 2, below + k + 27, "ib", 12, style="italic")
    picture.save("reflectors.svg")


if __name__ == "__main__":
    for draw in (trees, tsqr_stages, caqr, forming_q, reflectors):
        draw()

"""Fails for turns of phrase in comments and docstrings that have to be read twice, and for comment lines over 120
columns.

A comment starts with a verb or with the name of what it describes, names its parameters and says one thing a sentence.

    words_test.py [ROOT]
"""

import io
import pathlib
import re
import sys
import tokenize

FIRST = re.compile(r"(Of|The same|What|Those|That)\b")  # a comment's first words
ANYWHERE = re.compile(r"\bso (many|much) (?!(more|less|that|as)\b)|\b(that of|those of|behind)\b|\bthe others'(?!\w)")
ALIGNED = re.compile(r"\S {3,}\S|[│┌├└┬┴┼┤┐┘─]")  # a picture or a table
COLUMNS = 120


def comments_of_python(text):
    """Yields line, text and whether it starts a comment, for comments and docstrings."""
    last, statement = -1, True  # whether a statement starts with the next token
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            yield line, token.string.lstrip("# "), line != last + 1 or not token.line.lstrip().startswith("#")
            last = line
        elif token.type == tokenize.STRING and statement:
            for offset, row in enumerate(token.string.lstrip("rR").strip('"').split("\n")):
                yield line + offset, row.strip(), offset == 0
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            statement = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def comments_of_cpp(text):
    """Yields the same for comments that start with //, outside of string literals."""
    last = -1
    for line, row in enumerate(text.split("\n"), 1):
        code = re.sub(r'"(\\.|[^"\\])*"', lambda match: "x" * len(match[0]), row)
        at = code.find("//")
        if at >= 0:
            yield line, row[at:].lstrip("/!< "), line != last + 1 or bool(code[:at].strip())
            last = line


def main(root):
    wrong = 0
    for folder in ("src", "include", "cli", "python", "bench", "bindings", "apps", "examples", "tests"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".c", ".h", ".cpp", ".hpp", ".cu", ".cuh", ".py") or not path.is_file():
                continue
            text = path.read_text()
            rows = text.split("\n")
            for line, comment, first in comments_of_python(text) if path.suffix == ".py" else comments_of_cpp(text):
                match = first and FIRST.match(comment) or ANYWHERE.search(comment)
                message = f"'{match[0].strip()}'" if match else f"{len(rows[line - 1])} columns"
                if match or len(rows[line - 1]) > COLUMNS and not ALIGNED.search(comment):
                    wrong += 1
                    print(f"{path.relative_to(root)}:{line}: {message}: {comment}")
    print(f"{wrong} lines of comments to rewrite")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1]))

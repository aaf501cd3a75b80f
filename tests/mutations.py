"""The small mistakes that tests/mutants.py tries: of a line of C++ or Python, what a careless programmer may have
written."""

import re
from collections import namedtuple

# Comments, text, preprocessor lines and what is thrown are not mutated.
CPP_TEXT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:\\\n|[^\n])*"""
    r"""|(?<=\bthrow )[^;]*|\bstatic_assert\b[^;]*|\btemplate <[^\n]*>\n""", re.S | re.M)
PYTHON_TEXT = re.compile(
    r'''""".*?"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*|(?<=\braise )[^\n]*|^ *(?:@|from |import |assert )[^\n]*''',
    re.S | re.M)
CUDA_ONLY = re.compile(r"^#ifdef QUOIN_HAVE_CUDA\n.*?^#(?:else|endif)", re.S | re.M)

# How fast, how soon a request to stop is noticed, and the order of a GPU's streams, which the host does not have.
UNSEEN = re.compile(r"\breserve\(|prefetch|\bthrow_if_(?:stopped|interrupted)\(|"
                    r"\b(?:wait_for|finish_copies|load_kernels)\(|\.(?:record|precede)\(|pipeline_\.turn\(")

# Zero defaults of the fields of src/'s structs, which are set before they are read. Those of options are in include/.
ZERO_FIELD = re.compile(r" +[\w:<>, ]+ \w+ = (?:0|false);")

Mutant = namedtuple("Mutant", "path line before after")

PAIRS = "< <=  > >=  == !=  + -  * /  += -=  *= /=  && ||  and or  true false  True False  min max".split("  ")
SWAPS = {"%": "/", "//": "*", "is": "is not", "is not": "is"}
SWAPS |= dict(pair.split() for pair in PAIRS) | dict(pair.split()[::-1] for pair in PAIRS)


def numbers(code, _):
    if not code.isdigit():
        return ["0.9"] if code == "0.5" else [repr(0.7 * float(code)), repr(2 * float(code))]
    n = int(code)
    return ["1"] if n == 0 else ["0", "2"] if n == 1 else [str(n + 1), str(n - 1), str(2 * n)]


def negated_condition(code, text):
    depth = 0
    for end, c in enumerate(code, 1):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return [f"(!{text[:end]}){text[end:]}"]
    return []


def instead(new):
    """`new` in the place of a whole statement, indented as it was."""
    return lambda code, _: [" " * (len(code) - len(code.lstrip())) + new] if code.count("(") == code.count(")") else []


# A pattern of code, and what a careless programmer may write for it: a function of the code and of the text it stands
# for.
RULES = [
    (r"(?<= )(?:<=?|>=?|==|!=|[-+*/]=?|//|%|&&|\|\||and|or|is not|is)(?= )|\b(?:true|false|True|False)\b|\b(?:min|max)(?=[<(])",
     lambda code, _: [SWAPS[code]]),
    (r" [-+] 1\b(?!\.)|!(?=[\w(])|\bnot (?!in\b)", lambda *_: [""]),
    (r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?\b(?!\.)", numbers),
    # the order of what is compared does not matter
    (r"(?<!\bmin)(?<!\bmax)(?<!\bmin<Index>)(?<!\bmax<Index>)\(\w+, \w+\)", lambda code, _: ["({1}, {0})".format(*code[1:-1].split(", "))])]
CPP_RULES = RULES + [
    (r"(?<=\bif )\(.*", negated_condition),
    (r"\breturn (?!\"\";|0;|false;|nullptr;)[^;{][^;]*;", instead("return {};")),
    (r"^ *(?:break|continue);$", instead(";")),
    # a throw, a call or an assignment; declarations begin with two names
    (r"^ *(?:(?:\+\+|--)?[A-Za-z_][\w:.]*(?:->|\.|\[|\(|<\w+>\(| [-+*/|&%]?= |\+\+|--)|throw )[^\n]*;$", instead(";"))]
PYTHON_RULES = RULES + [
    (r"(?<=\bif )[^\n:]+(?=:$)", lambda _, text: [f"not ({text})"]),
    (r"\breturn [^\n]+$", instead("return None")),
    (r"^ *(?:break|continue)$", instead("pass")),
    (r"^ *[a-z_][\w.]*(?:\[[^\n]*\] [-+*/]?= |\(| [-+*/]?= )[^\n]*[^,\n]$", instead("pass"))]


def mutants_of(path, text):
    """Every mistake of a file, in the order of its lines."""
    python = path.endswith(".py")
    blank = lambda match: re.sub(r"[^\n]", '"', match[0])
    masked = (PYTHON_TEXT if python else CPP_TEXT).sub(blank, CUDA_ONLY.sub(blank, text))
    previous = ""
    for number, (line, code) in enumerate(zip(text.split("\n"), masked.split("\n")), 1):
        # else the line goes on from the one before, and is no statement by itself
        begins = python or previous[-1:] in ("", '"', ";", "{", "}", ":") or re.match(r" *(if|for|else)\b.*[)e]$", previous)
        unseen = UNSEEN.search(line) or path.startswith("src/") and path.endswith(".hpp") and ZERO_FIELD.match(line)
        for rule, changes in [] if unseen else PYTHON_RULES if python else CPP_RULES:
            for match in re.finditer(rule, code) if begins or rule[0] != "^" else []:
                for new in changes(match[0], line[match.start():match.end()]):
                    mutated = line[:match.start()] + new + line[match.end():]
                    if mutated != line:
                        yield Mutant(path, number, line, mutated)
        previous = code.strip() or previous

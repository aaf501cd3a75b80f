"""Write pages for Doxygen: the Markdown of the repository, and the Python package's reference from its docstrings.

`./run docs` calls this and then Doxygen, which knows neither GitHub's anchors of headings nor NumPy's docstrings.
"""

import argparse
import ast
import pathlib
import re

root = pathlib.Path(__file__).resolve().parent.parent
pages = [root / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")] + sorted(
    page for folder in ("docs", "docs/apps") for page in (root / folder).glob("*.md")
)


def anchor(page, heading):
    """GitHub's anchor of a heading, made unique among all pages."""
    slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
    return f"{page.stem}-{slug}"


def link(page, match):
    picture, text, target = match.groups()
    if "://" in target:
        return match[0]
    path, _, heading = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if picture:
        return f"![{text}]({file.name})"  # Doxygen finds it in IMAGE_PATH
    if file not in pages:
        return f"`{text.strip('`')}`"  # of the repository
    return f"[{text}](#{file.stem}-{heading})" if heading else f"[{text}](#page-{file.stem})"


def markdown(page):
    lines, code = [], False
    for line in page.read_text(encoding="utf-8").split("\n"):
        code ^= line.startswith("```")
        heading = re.match(r"(#+) (.*)", line)
        if heading and not code:
            name = f"page-{page.stem}" if len(heading[1]) == 1 else anchor(page, heading[2])
            line = f"{line} {{#{name}}}"
        lines.append(line)
    # links may span lines
    text = re.split(r"(^```.*?^```)", "\n".join(lines), flags=re.DOTALL | re.MULTILINE)
    text[::2] = [re.sub(r"(!?)\[([^\[\]]*)\]\(([^()]*)\)", lambda match: link(page, match), part) for part in text[::2]]
    return "".join(text)


# ---- Python ----------------------------------------------------------------------------------------------------------


def signature(function):
    function = ast.parse(ast.unparse(function)).body[0]
    function.body, function.decorator_list = [ast.Expr(ast.Constant(...))], []
    text = ast.unparse(function).rpartition(":")[0].removeprefix("def ")
    return text.replace("(self, ", "(").replace("(self)", "()")


def docstring(node):
    """NumPy's sections as headings, their entries as lists, examples as code."""
    lines, section = [], None
    text = (ast.get_docstring(node) or "").split("\n")
    for number, line in enumerate(text):
        below = text[number + 1] if number + 1 < len(text) else ""
        if below and set(below) == {"-"} and len(below) == len(line):
            section = line
            lines += [f"**{section}**", ""]
        elif line and set(line) == {"-"}:
            continue
        elif section in ("Parameters", "Returns", "Raises", "Attributes") and line and line[0] != " ":
            name, colon, kind = line.partition(" : ")
            lines.append(f"- **{name}**" + (f" : {kind}" if colon else "") + "  ")
        elif section == "Examples":
            lines.append("    " + line)
        else:
            lines.append(line[2:] if line.startswith("    ") and section else line)
    return ["", *lines, ""]


def described(node, owner="", level="####"):
    name = f"{owner}{node.name}"
    properties = any(ast.unparse(decorator) in ("property", "cached_property") for decorator in node.decorator_list)
    heading = f"{level} {name} {{#python-{name.replace('.', '-')}}}"
    code = [] if properties else ["```python", owner + signature(node), "```"]
    return [heading, *code, *docstring(node)]


def python_module(files, title, prefix=""):
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    defined = {node.name: node for tree in trees for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    (names,) = (
        ast.literal_eval(node.value)
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )

    def members(node):
        """(name, member) of methods, properties and fields, those of private bases included."""
        for base in node.bases:
            if ast.unparse(base) in defined and ast.unparse(base) not in names:
                yield from members(defined[ast.unparse(base)])
        for member in node.body:
            yield getattr(member, "name", getattr(getattr(member, "target", None), "id", "_")), member

    lines = []
    for what, kind in (("Functions", ast.FunctionDef), ("Classes", ast.ClassDef)):
        nodes = {name: defined[name] for name in names if isinstance(defined[name], kind)}
        if not nodes:
            continue
        lines += [f"## {what}{title} {{#python-{prefix.replace('.', '-')}{what.lower()}}}", ""]
        for name, node in nodes.items():
            if kind is ast.FunctionDef:
                lines += described(node, prefix, "###")
                continue
            bases = ", ".join(ast.unparse(base) for base in node.bases if not ast.unparse(base).startswith(("_", "Pickled")))
            lines += [f"### {prefix}{name} {{#python-{prefix.replace('.', '-')}{name}}}", "", f"class of {bases}" if bases else ""]
            init = dict(members(node)).get("__init__")
            if init and "core: Any" not in ast.unparse(init.args):
                lines += ["```python", signature(init).replace("__init__", name), "```"]
            lines += docstring(node)
            for member_name, member in members(node):
                if member_name.startswith("_"):
                    continue
                if isinstance(member, ast.AnnAssign):
                    lines.append(f"- `{ast.unparse(member)}`")
                elif isinstance(member, ast.FunctionDef):
                    lines += described(member, f"{prefix}{name}.")
    return lines


def python_reference():
    package = root / "python" / "quoin"
    public = sorted(package.glob("[!_]*.py"))
    lines = ["# Python reference {#page-python-reference}", ""]
    lines += ["The package `quoin`; [the guide](#page-python) shows how to use it.", ""]
    lines += python_module(sorted({*package.glob("*.py"), *package.glob("apps/*.py")} - set(public)), "")
    for file in public:
        lines += python_module([file], f" of quoin.{file.stem}", f"{file.stem}.")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python3 docs/pages.py build/pages",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=pathlib.Path, help="where the pages go; it is made if it does not exist")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages:
        (folder / page.name).write_text(markdown(page), encoding="utf-8")
    (folder / "python_reference.md").write_text(python_reference(), encoding="utf-8")


if __name__ == "__main__":
    main()

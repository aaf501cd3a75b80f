"""Fails where the site of `./run docs` lacks a page of docs/, a public header or a public name of the Python package.

Fails where a link of a Markdown page leads nowhere, too.
"""

import ast
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]).resolve()
docs, package = root / "docs", root / "python" / "quoin"
pages = {page: page.read_text("utf-8") for kind in ("md", "rst", "ipynb") for page in docs.rglob(f"*.{kind}")}
indices = {page: text for page, text in pages.items() if page == docs / "index.md" or docs / "site" in page.parents}


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text):
    """GitHub's anchors of the headings."""
    headings = re.findall(r"^#+ (.*)", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def missing_pages():
    listed = {docs / "index"}
    for index, text in indices.items():
        entries = re.findall(r"^ *(?:\w+ <)?([\w./]+)>?$", text, re.MULTILINE)
        listed.update((index.parent / entry).resolve() for entry in entries)
    for page in pages:
        if page.with_suffix("") not in listed:
            yield f"{page.relative_to(root)} is in no table of contents"


def missing_names():
    headers = (header.relative_to(root / "include") for header in (root / "include" / "quoin").rglob("*.hpp"))
    modules = (f"quoin.{module.stem}" for module in package.glob("[!_]*.py"))
    exported = re.search(r"__all__ = (\[.*?\])", (package / "__init__.py").read_text("utf-8"), re.DOTALL)[1]
    of_site = {word.strip("`") for text in indices.values() for word in text.split()}
    for name in {*map(str, headers), *modules, *ast.literal_eval(exported)} - of_site:
        yield f"docs/site does not have {name}"


def broken_links():
    for page in (*pages, *root.glob("*.md"), *(root / "src").rglob("*.md"), *(root / "bench").rglob("*.md")):
        for target in re.findall(r"\[[^\[\]]*\]\(([^()\s]*)\)", without_code(page.read_text("utf-8"))):
            path, _, heading = target.partition("#")
            file = page.parent / path if path else page
            exists = "://" in target or file.exists() and (not heading or heading in anchors(file.read_text("utf-8")))
            if not exists:
                yield f"{page.relative_to(root)}: {target} does not exist"


found = sorted({*missing_pages(), *missing_names(), *broken_links()})
print("\n".join(found) or "all pages are in the site, and all links resolve")
sys.exit(bool(found))

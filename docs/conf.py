"""Sphinx's configuration of the site that `./run docs` writes."""

import os
import pathlib
import re
import subprocess
import sys
from xml.etree import ElementTree

from docutils import nodes
from sphinx import addnodes
from sphinx.ext.autodoc.mock import _MockObject, mock
from sphinx.util.docutils import SphinxDirective

root = pathlib.Path(__file__).resolve().parent.parent
xml = root / "build" / "doxygen"

project = "Quoin"
release = re.search(r"project\(quoin VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text("utf-8"))[1]
extensions = ["breathe", "myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["pictures", "apps/pictures"]
highlight_language = "none"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # notebooks have their outputs; tests/notebooks_test.py runs them

html_theme = "pydata_sphinx_theme"
html_title = f"Quoin {release}"
html_static_path = ["site/static"]
html_css_files = ["quoin.css"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}

# ---- C++: what Doxygen reads in the headers --------------------------------------------------------------------------

breathe_projects = {"quoin": xml / "xml"}
breathe_default_project = "quoin"
breathe_show_include = False
suppress_warnings = ["duplicate_declaration.cpp"]  # a namespace, of each header
doxygen = f"""
INPUT = include/quoin include/quoin/apps
OUTPUT_DIRECTORY = {xml}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
STRIP_FROM_PATH = include
EXCLUDE_SYMBOLS = *::detail *::Impl *::impl *::impl_
PREDEFINED = QUOIN_HAVE_CUDA
BUILTIN_STL_SUPPORT = YES
JAVADOC_AUTOBRIEF = YES
AUTOLINK_SUPPORT = NO
EXTRACT_ALL = YES
QUIET = YES
WARN_AS_ERROR = FAIL_ON_WARNINGS
"""
xml.mkdir(parents=True, exist_ok=True)
subprocess.run(["doxygen", "-"], input=doxygen, text=True, cwd=root, check=True)


def drop_private(tree):
    for parent in list(tree.iter()):
        for child in list(parent):
            private = child.get("prot") == "private" or child.get("kind", "").startswith("private")
            if private and child.tag != "compounddef":
                parent.remove(child)


def share_descriptions(tree):
    """Copies the comment above a member to the next overloads, and one as "Return m and n." to members on the next lines."""
    for section in tree.iter("sectiondef"):
        text, name, plural, next_line = [], None, False, 0
        for member in section.iter("memberdef"):
            own = [member.find("briefdescription"), member.find("detaileddescription")]
            words = "".join("".join(part.itertext()) for part in own).split()
            line, end = (int(member.find("location").get(key) or 0) for key in ("line", "bodyend"))
            if words:
                text, name = own, member.findtext("name")
                plural = re.fullmatch("Append|Return|Send|Set|View|Write", words[0])
            elif member.findtext("name") == name or (plural and line == next_line):
                for part, source in zip(own, text):
                    part.extend(source)
            next_line = max(line, end) + 1


for file in (xml / "xml").glob("*.xml"):
    tree = ElementTree.parse(file)
    drop_private(tree)
    share_descriptions(tree)
    tree.write(file, encoding="utf-8")

# ---- Python: the docstrings of the package, without its compiled module and other libraries --------------------------

sys.path.insert(0, str(root / "python"))
autodoc_mock_imports = ["quoin._core", "dask", "jax", "mpi4py", "sklearn", "torch"]
autodoc_default_options = {"members": True, "inherited-members": "tuple,Exception", "member-order": "bysource"}
autodoc_typehints = "none"
numpydoc_show_class_members = False
_MockObject.__bool__ = lambda self: True
_MockObject.__or__ = _MockObject.__ror__ = lambda self, other: self  # in annotations
with mock(autodoc_mock_imports):
    import torch.autograd.function

    torch.autograd.function._SingleLevelFunction = object  # `type` makes classes of it
    from quoin import dask, distributed, jax, sklearn, torch  # noqa: F401
del _MockObject.__new__  # its signature would be shown for classes with a base of scikit-learn


def escape_underscores(app, what, name, thing, options, lines):
    """Keeps scikit-learn's names, as `mean_`, from being references of reStructuredText."""
    lines[:] = [line if ">>>" in line else re.sub(r"(\w)_(?![\w`*])", r"\1\\_", line) for line in lines]


# ---- Links -----------------------------------------------------------------------------------------------------------

# Files and folders of the repository that have a page; copies of other files are linked.
pages = {
    "bench/results": "site/results",
    "bench/results/README": "site/results",
    "include/quoin": "site/cpp/index",
    "src/cuda/README": "site/cuda",
}
for page in (root / "docs" / "site" / "cpp").glob("*.rst"):
    for header in re.findall(r"quoin/\S+hpp", page.read_text("utf-8")):
        pages[f"include/{header}"] = f"site/cpp/{page.stem}"


def point_to_pages(app, doctree):
    for node in list(doctree.findall(nodes.Element)):
        if node.get("reftype") != "myst":
            continue
        file = os.path.relpath(pathlib.Path(node.source).parent / node["reftarget"], root)
        if file in pages:
            link = addnodes.pending_xref("", *node.children, refdomain="doc", reftarget=pages[file], reftargetid=None)
        elif not node["refdomain"] and (root / file).is_file():
            link = addnodes.download_reference("", *node.children, reftarget=f"/../{file}")
        else:
            continue
        link.attributes |= {"refdoc": app.env.docname, "refexplicit": True, "reftype": "myst"}
        node.replace_self(link)


def unwrap_namespaces(app, doctree):
    """Takes the declaration of a namespace away, which Breathe repeats for each header."""
    for node in list(doctree.findall(addnodes.desc)):
        if node[0].astext().startswith("namespace "):
            here = node.parent.index(node)
            node.parent[here : here + 1] = node[-1].children


class Each(SphinxDirective):
    """A section for each of the files that are named. Its text is the directive's, with the file for {0}."""

    required_arguments, has_content, final_argument_whitespace = 1, True, True

    def run(self):
        text = "\n".join(self.content)
        files = map(pathlib.PurePath, self.arguments[0].split())
        sections = (f"{file}\n{'-' * 80}\n\n{text.format(file)}\n\n" for file in files)
        return self.parse_text_to_nodes("".join(sections), allow_section_headings=True)


def setup(app):
    app.add_directive("each", Each)
    app.connect("autodoc-process-docstring", escape_underscores, priority=900)
    app.connect("doctree-read", point_to_pages, priority=100)
    app.connect("doctree-read", unwrap_namespaces, priority=100)

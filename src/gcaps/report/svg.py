"""From a matplotlib drawing to an SVG inside a page: in the page's colours, and the same bytes each time."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from xml.etree import ElementTree

import matplotlib.style
from matplotlib.figure import Figure

INK, MUTED, LINE, SURFACE = "#1b1f24", "#59626d", "#d3d9df", "#fefefe"
BLUE, ORANGE, GREEN, PURPLE, ON_BLUE = "#0068a9", "#b95000", "#007a59", "#994c7f", "#fdfdfd"

VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    LINE: "line",
    SURFACE: "surface",
    BLUE: "blue",
    ORANGE: "orange",
    GREEN: "green",
    PURPLE: "purple",
    ON_BLUE: "on-blue",
}
"""The CSS variable that stands for each colour, so that one drawing serves light and dark pages and paper.

The hues are Okabe and Ito's, which colour-blind readers can tell apart, darkened for contrast on white.
"""

_STYLE: dict[str, object] = {
    "svg.fonttype": "none",  # text stays text: small, searchable, in the page's typeface
    "svg.hashsalt": "gcaps",  # ids that do not change from run to run
    "text.parse_math": False,  # a class may well be called $x$
    "font.size": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 11.5,
    "ytick.labelsize": 11.5,
    "legend.fontsize": 11.5,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "axes.edgecolor": LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


def render(name: str, label: str, size: tuple[float, float], draw: Callable[[Figure], None]) -> str:
    """Draw a figure and give it back as an SVG element to be put into a page.

    Args:
        name: prefix of all ids inside, different for each figure of a page.
        label: what a reader who cannot see the figure is told.
        size: width and height in CSS pixels at which the text has its natural size.
        draw: draws into an empty figure.
    """
    with matplotlib.style.context(_STYLE, after_reset=True), warnings.catch_warnings():
        # a name in a script that matplotlib's typeface lacks is only measured here; the reader's browser draws it
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        figure = Figure(figsize=(size[0] / 72, size[1] / 72), layout="constrained")
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inline(ElementTree.fromstring(buffer.getvalue()), name, label)


def _inline(root: ElementTree.Element, name: str, label: str) -> str:
    """Strip what belongs to a file of its own, keep only ids that are used, and put variables in place of colours."""
    for element in list(root.iter()):
        for child in list(element):
            # matplotlib's style rule would hold for the whole page
            if _local(child.tag) in ("metadata", "style"):
                element.remove(child)
        element.tag = _local(element.tag)
        attributes = {_local(key): value for key, value in element.attrib.items()}
        element.attrib.clear()
        element.attrib.update(attributes)
        if element.tag != "text":
            element.text = None
        element.tail = None
    used = {hit for element in root.iter() for hit in re.findall(r"#([\w.-]+)", _references(element))}
    for element in root.iter():
        if element.get("id") in used:
            element.set("id", f"{name}-{element.get('id')}")
        else:
            element.attrib.pop("id", None)
        for key in ("href", "clip-path"):
            if key in element.attrib:
                element.set(key, element.attrib[key].replace("#", f"#{name}-"))
        if "style" in element.attrib:
            element.set("style", _themed(element.attrib["style"]))
        if "d" in element.attrib:
            element.set("d", _short(element.attrib["d"]))
    box = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-label": label})
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _references(element: ElementTree.Element) -> str:
    return f"{element.get('href', '')} {element.get('clip-path', '')}"


def _themed(style: str) -> str:
    style = re.sub(r"font-family:[^;]*;? ?", "", style)
    return re.sub(r"#[0-9a-f]{6}", lambda hit: f"var(--{VARIABLES[hit[0]]})" if hit[0] in VARIABLES else hit[0], style)


def _short(path: str) -> str:
    """The same path with coordinates to a hundredth of a pixel."""
    return re.sub(r"-?\d+\.\d+", lambda hit: f"{float(hit[0]):.2f}", " ".join(path.split()))

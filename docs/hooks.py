"""What MkDocs does differently for this book.

- Headings get the anchors that GitHub gives them, so that one link works in both places.
- Links to files outside of the book become plain text: it is read without the sources. `cargo xtask test book`
  checks that those files exist.
- A block of code in a list is an error: GitHub shows it, and MkDocs does not.
- The page of the commands gets their help, as the tests of the program have recorded it.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.exceptions import PluginError

LINK = re.compile(r"\[([^\[\]]+)\]\(([^()\s]+)\)")
FENCE = re.compile(r"^\s*(```|~~~)")
COMMANDS = "reference/commands.md"
HELP = "crates/mcp-vary-cli/tests/commands/snapshots"


def slug(text, _separator):
    """The anchor of a heading, as GitHub makes it."""
    text = re.sub(r"<[^>]*>", "", text).strip().lower()
    kept = (char for char in text if char.isalnum() or char in " -_")
    return "".join(kept).replace(" ", "-")


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slug
    return config


def on_page_markdown(markdown, page, config, files, **_):
    folder = posixpath.dirname(page.file.src_uri)
    in_book = {file.src_uri for file in files if not file.inclusion.is_excluded()}
    if page.file.src_uri == COMMANDS:
        markdown += commands(Path(config["config_file_path"]).parent)
    inside_code = False
    lines = []
    for line in markdown.split("\n"):
        if FENCE.match(line):
            if line[0] == " ":
                raise PluginError(f"{page.file.src_uri}: MkDocs shows no indented block of code; end the list before it")
            inside_code = not inside_code
        lines.append(line if inside_code else LINK.sub(lambda link: within(in_book, folder, link), line))
    return "\n".join(lines)


def within(in_book, folder, link):
    """The link, or its text if it leads to a file outside of the book."""
    text, target = link.groups()
    if re.match(r"[a-z]+:|#|/", target):
        return link.group(0)
    path = posixpath.normpath(posixpath.join(folder, target.split("#")[0]))
    return link.group(0) if path in in_book else text


def commands(root):
    """A section for each command: what `vary help COMMAND` prints."""
    sections = []
    for snapshot in sorted((root / HELP).glob("commands__help__help*.snap")):
        words = snapshot.stem.removeprefix("commands__help__help").replace("_", " ")
        help_text = snapshot.read_text(encoding="utf-8").split("---\n", 2)[2].strip("\n")
        sections.append(f"\n## `vary{words}`\n\n```text\n{help_text}\n```\n")
    if not sections:
        raise PluginError(f"no help of a command in {HELP}")
    return "".join(sections)

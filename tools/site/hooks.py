"""Hooks of MkDocs: the pages of the reference that programs and the contract write, mathematics, and links.

`make docs` builds the site, with `.bin/dpareto` for the reference of commands.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parents[2]
WORKER = "assets/frame-worker.js"
SHIM = "https://unpkg.com/iframe-worker/shim"  # what the theme loads
REPOSITORY = "https://github.com/dpareto/dpareto/blob/main/"


def on_config(config: Any) -> Any:
    """Puts a page of each Python module into the navigation."""
    reference = next(part["Reference"] for part in config.nav if "Reference" in part)
    reference.append({"Python": [{name: f"reference/python/{name}.md"} for name in modules()]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the generated pages."""
    contract = json.loads((ROOT / "gen/openapi/dpareto.swagger.json").read_text())
    pages = {
        "reference/commands.md": commands(),
        "reference/rpc.md": methods(contract),
        "reference/study-file.md": study_file(contract),
    }
    for module in modules():
        pages[f"reference/python/{module}.md"] = f"# {module}\n\n::: {module}\n"
    for path, text in pages.items():
        # Search prefers pages that people wrote.
        content = f"---\nsearch:\n  boost: 0.2\n---\n\n{text}"
        files.append(File.generated(config, path, content=content))
    files.append(File.generated(config, WORKER, content=(ROOT / "tools/site/frame-worker.js").read_text()))
    return files


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Loads the worker of pages that are opened as files from the site, not from another host."""
    return output.replace(SHIM, get_relative_url(WORKER, page.url))


def on_post_template(output_content: str, **_: Any) -> str:
    """Does the same for the page of errors, whose links begin at the root."""
    return output_content.replace(SHIM, f"/{WORKER}")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leads links to files outside docs/ to the repository."""
    folder = Path(page.file.src_uri).parent

    def repository(match: re.Match[str]) -> str:
        target = os.path.normpath(Path("docs", folder, match[1]))
        return match[0] if target.startswith("docs/") else f"]({REPOSITORY}{target}{match[2] or ''})"

    return re.sub(r"\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)", repository, markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Renders mathematics as MathML, which browsers show without scripts."""

    def render(match: re.Match[str]) -> str:
        tex = html.unescape(match[2]).strip()
        display = "block" if tex.startswith("\\[") else "inline"
        return convert(tex[2:-2], display=display)

    return re.sub(r'<(span|div) class="arithmatex">(.*?)</\1>', render, content, flags=re.DOTALL)


def modules() -> list[str]:
    """Returns the modules of the Python package with a list of public names."""
    source = ROOT / "clients/python/src"
    found = []
    for path in sorted(source.glob("dpfront/**/*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        if not re.search(r"\._|\.v1", name) and re.search(r"^__all__ = ", path.read_text(), re.M):
            found.append(name)
    return found


def run(*arguments: str) -> str:
    """Returns what the program prints."""
    command = [str(ROOT / ".bin/dpareto"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def subcommands(path: list[str]) -> list[str]:
    """Returns the names of the commands below one, as completion knows them."""
    lines = run("__complete", *path, "").splitlines()
    names = [line.split("\t")[0] for line in lines if "\t" in line]
    usage = run(*path, "--help")
    return [n for n in names if n not in ("help", "completion") and re.search(rf"^  {n} ", usage, re.M)]


def commands() -> str:
    """Returns the help of all commands as a page."""
    parts = ["# Commands", "What `dpareto COMMAND --help` prints, for every command."]

    def add(path: list[str]) -> None:
        if path:
            parts.append("#" * min(len(path) + 1, 4) + " dpareto " + " ".join(path))
        parts.append("```text\n" + run(*path, "--help").rstrip() + "\n```")
        for name in subcommands(path):
            add([*path, name])

    add([])
    return "\n\n".join(parts)


def name_of(reference: str) -> str:
    """Returns the name of a message."""
    return reference.rsplit("/", 1)[1].removeprefix("v1")


def type_of(schema: dict[str, Any]) -> str:
    """Returns the type of a field, with a link to its message."""
    if "$ref" in schema:
        name = name_of(schema["$ref"])
        return f"[{name}](#{name.lower()})" if "v1" in schema["$ref"] else f"`{name}`"
    if schema.get("type") == "array":
        return "list of " + type_of({k: v for k, v in schema["items"].items() if k != "type" or "$ref" not in schema["items"]})
    if "additionalProperties" in schema:
        return "map to " + type_of(schema["additionalProperties"])
    return f"`{schema.get('format') or schema.get('type', 'any')}`"


def paragraph(text: str) -> str:
    """Returns a comment of the contract as Markdown: enum values one a line, lines of text joined."""
    return re.sub(r"(?<!\n)\n(?![\n -])", " ", html.escape(text, quote=False))


def message(name: str, schema: dict[str, Any]) -> str:
    """Returns the section of a message or an enum."""
    parts = [f"### {name}", paragraph(schema.get("description") or schema.get("title", ""))]
    for field, of in schema.get("properties", {}).items():
        text = paragraph(of.get("description") or of.get("title", "")).replace("\n", "\n    ")
        parts.append(f"`{field}`: {type_of(of)}\n:   {text or ' '}")
    return "\n\n".join(parts)


def reached(definitions: dict[str, Any], start: list[str]) -> list[str]:
    """Returns the definitions that some definitions refer to, themselves included, in order."""
    found: list[str] = []
    queue = list(start)
    while queue:
        name = queue.pop(0)
        if name in found or not name.startswith("v1"):
            continue
        found.append(name)
        queue += [r.rsplit("/", 1)[1] for r in re.findall(r'"\$ref": "([^"]+)"', json.dumps(definitions[name]))]
    return found


def study_file(contract: dict[str, Any]) -> str:
    """Returns the fields of a study file as a page."""
    definitions = contract["definitions"]
    names = reached(definitions, ["v1StudySpec"])
    intro = (
        "# Study files\n\nA study file has the fields `id`, `display_name`, `description`, `labels` and `spec`, in "
        "YAML or JSON. The fields of `spec` are those of StudySpec. The comments are those of the contract."
    )
    return "\n\n".join([intro, *(message(n.removeprefix("v1"), definitions[n]) for n in names)])


def methods(contract: dict[str, Any]) -> str:
    """Returns all methods and their messages as a page."""
    definitions = contract["definitions"]
    parts = ["# Methods", "Every method of the contract, for gRPC and, with its path, as JSON over HTTP."]
    seen: list[str] = []
    for tag in contract["tags"]:
        parts += [f"## {tag['name']}", paragraph(tag.get("description", ""))]
        for path, verbs in contract["paths"].items():
            for verb, of in verbs.items():
                if tag["name"] not in of["tags"] or re.search(r"\d$", of["operationId"]):
                    continue
                text = paragraph("\n\n".join(filter(None, (of.get("summary"), of.get("description")))))
                parts += [f"### {of['operationId']}", f"`{verb.upper()} {path}`", text]
                seen += re.findall(r"definitions/(v1\w+)", json.dumps(of))
    parts.append("## Messages")
    names = reached(definitions, sorted(set(seen)))
    parts += [message(n.removeprefix("v1"), definitions[n]) for n in sorted(names)]
    return "\n\n".join(parts)

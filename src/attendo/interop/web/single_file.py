"""The page and its models as one HTML file, which opens from the disk without a web server.

Browsers load no other file for a page that is opened from the disk. The script, the style and the
icon are therefore inlined, and every other file is an element whose attribute `data-path` is its
path and whose text is its content in base64 (`frontend/src/site/files.ts` reads them).
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCRIPT = re.compile(r'<script type="module"[^>]* src="\./([^"]+)"></script>')
STYLE = re.compile(r'<link rel="stylesheet"[^>]* href="\./([^"]+)">')
ICON = re.compile(r'(<link rel="icon"[^>]* href=")\./([^"]+)"')
INSTALLATION = re.compile(r'<link rel="(?:manifest|apple-touch-icon)"[^>]*>')
WORKER = "assets/translator.worker-*.js"


def write_single_file(folder: Path, path: Path) -> None:
    """Write the page of a folder and everything that it loads into one file."""
    html = (folder / "index.html").read_text("utf-8")
    html = INSTALLATION.sub("", html)
    html = ICON.sub(lambda match: f'{match[1]}{_data_uri(folder / match[2])}"', html)
    html = STYLE.sub(lambda match: f"<style>{(folder / match[1]).read_text('utf-8')}</style>", html)
    html = SCRIPT.sub(lambda match: _inline_script(folder / match[1]), html)
    before, end, after = html.rpartition("</body>")
    with path.open("w", encoding="utf-8") as file:
        file.write(before)
        file.writelines(_embed_files(folder))
        file.write(end + after)


def _inline_script(path: Path) -> str:
    code = path.read_text("utf-8").replace("</script", r"<\/script")
    return f'<script type="module">{code}</script>'


def _data_uri(path: Path) -> str:
    return f"data:image/svg+xml;base64,{b64encode(path.read_bytes()).decode()}"


def _embed_files(folder: Path) -> Iterator[str]:
    """Yield an element for each file that the page loads when it is opened."""
    yield _embed("worker.js", next(folder.glob(WORKER)))
    patterns = ("*.json", "models/*/*", "webgpu/*")
    for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
        yield _embed(path.relative_to(folder).as_posix(), path)


def _embed(name: str, path: Path) -> str:
    data = b64encode(path.read_bytes()).decode()
    return f'<script type="application/octet-stream" data-path="{name}">{data}</script>\n'

"""Export to a web page: static files that translate in the browser.

The page is a folder for any web server, or one HTML file that also opens from the disk. It
(`frontend/src/site`) runs the graphs of `attendo export --to onnx` by a runtime of its own,
with tokenizer and search in TypeScript (`frontend/packages/attendo-web`). `models.json` lists the
models. Nothing is loaded from elsewhere, and nothing that a visitor types is sent. The service
worker (`frontend/site-service-worker.js`) keeps the page for use without a network.
"""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.bundle import load_bundle
from attendo.core.errors import AttendoError, ConfigError, InputError, suggest
from attendo.core.files import new_directory
from attendo.core.message import join_messages, message
from attendo.core.version import __version__
from attendo.inspection.model_info import read_model_info
from attendo.interop.onnx.export import unsupported_reasons
from attendo.interop.onnx.export import write as write_onnx
from attendo.interop.onnx.quantize import quantize, store_float16
from attendo.interop.onnx.webgpu import compute_positions_in_float32
from attendo.interop.web.single_file import write_single_file
from attendo.text.foreign_tokenizer import ForeignTokenizer
from attendo.translator import Translator
from attendo.translator.backends.onnx.session import INFO_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.bundle import Bundle

    Drawing = Callable[[Translator, str | None], dict[str, Any] | None]

PRECISIONS = ("int8", "float16", "float32")
INDEX_FILE, PAGE_FILE = "models.json", "index.html"
WORKER_FILE, MANIFEST_FILE = "service-worker.js", "manifest.webmanifest"
DRAWING_FILE = "machine.json"
WEBGPU_FOLDER = "webgpu"
WEBGPU_FILES = {"script": f"{WEBGPU_FOLDER}/ort.mjs", "wasm": f"{WEBGPU_FOLDER}/ort.wasm.gz"}
"""ONNX Runtime for the graphics processor: the page loads it only if that may be faster."""


class WebExport(NamedTuple):
    """The written folder, or the file."""

    path: Path
    names: list[str]
    num_bytes: int


def export_web(
    models: Sequence[str | Path],
    out: str | Path,
    *,
    precision: str = "int8",
    examples: Sequence[str] = (),
    draw: Drawing | None = None,
    webgpu: bool = False,
) -> WebExport:
    """Write a web page that translates with one or several models, chosen by name on the page.

    Args:
        models: model folders, or run folders.
        out: a new folder, or a new file whose name ends with .html.
        precision: of the weights: int8, float16 or float32.
        examples: texts to begin with; the first one is translated when the page is opened.
        draw: returns the drawing of the whole machine with the numbers of a sentence, which the
            page shows on request (`attendo.lessons.machine_values.page_drawing`).
        webgpu: add ONNX Runtime for the graphics processor, which large models in float16 or
            float32 use.

    """
    path = Path(out)
    if precision not in PRECISIONS:
        raise ConfigError(
            message("no precision '{precision}'", precision=precision),
            hint=suggest(precision, PRECISIONS),
        )
    if webgpu and precision == "int8":
        raise ConfigError(
            message("WebGPU does not multiply 8-bit integers"), hint="add --quantization float16"
        )
    is_single_file = path.suffix == ".html"
    if path.exists():
        hint = "choose a new file" if is_single_file else "choose a new folder"
        raise InputError(message("{path} exists", path=path), hint=hint)
    bundles = [load_bundle(model) for model in models]
    for model, bundle in zip(models, bundles, strict=True):
        _check_supported(model, bundle)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_single_file:
            with TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as name:
                names = _write_folder(bundles, Path(name), precision, examples, draw, webgpu=webgpu)
                partial = Path(name) / path.name
                write_single_file(Path(name), partial)
                partial.replace(path)
        else:
            with new_directory(path) as partial:
                names = _write_folder(bundles, partial, precision, examples, draw, webgpu=webgpu)
    except OSError as error:
        reason = message(
            "{path} could not be written: {detail}", path=path, detail=error.strerror or error
        )
        raise AttendoError(reason, hint="check the path and the free disk space") from error
    written = [path] if is_single_file else path.rglob("*")
    return WebExport(path, names, sum(one.stat().st_size for one in written if one.is_file()))


def _write_folder(
    bundles: Sequence[Bundle],
    folder: Path,
    precision: str,
    examples: Sequence[str],
    draw: Drawing | None,
    *,
    webgpu: bool,
) -> list[str]:
    """Write the page and the models; return the names of the models."""
    page = files("attendo.interop.web") / "static"
    if not (page / PAGE_FILE).is_file():
        raise AttendoError("the web page has not been built", hint="run make web")
    with as_file(page) as path:
        left_out = None if webgpu else shutil.ignore_patterns(WEBGPU_FOLDER)
        shutil.copytree(path, folder, dirs_exist_ok=True, ignore=left_out)
    own = [one for one in folder.rglob("*") if one.is_file() and one.parent.name != WEBGPU_FOLDER]
    loaded_first = sorted(one.relative_to(folder).as_posix() for one in own)
    entries: list[dict[str, Any]] = []
    for bundle in bundles:
        entry = _write_model(bundle, folder, precision, examples, entries, webgpu=webgpu)
        entries.append({**entry, "drawing": _write_drawing(bundle, folder, entry, draw)})
    names = [entry["name"] for entry in entries]
    version = _hash_files(folder)
    index = {"attendo": __version__, "version": version, "webgpu": WEBGPU_FILES if webgpu else None}
    _write_json(folder / INDEX_FILE, {**index, "models": entries})
    manifest = json.loads((folder / MANIFEST_FILE).read_text("utf-8"))
    _write_json(folder / MANIFEST_FILE, {**manifest, "name": f"{', '.join(names)} · Attendo"})
    kept = ["./", INDEX_FILE, *(name for name in loaded_first if name != WORKER_FILE)]
    constants = f"const VERSION = {json.dumps(version)};\nconst FILES = {json.dumps(kept)};\n"
    worker = folder / WORKER_FILE
    worker.write_text(constants + worker.read_text("utf-8"), encoding="utf-8")
    return names


def _hash_files(folder: Path) -> str:
    """Return 16 digits that change when any file does."""
    digest = sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _check_supported(model: str | Path, bundle: Bundle) -> None:
    reasons = list(unsupported_reasons(bundle))
    if isinstance(bundle.tokenizer, ForeignTokenizer):
        reasons.append(message("an imported vocabulary is not supported in the browser"))
    if bundle.tokenizer.tgt_kind == "label":
        reasons.append(message("the browser shows translations: a classifier is not supported"))
    if reasons:
        listing = join_messages("\n  - ", ["", *reasons])
        raise ConfigError(
            message("{path} cannot be exported to a web page{listing}", path=model, listing=listing)
        )


def _write_model(
    bundle: Bundle,
    folder: Path,
    precision: str,
    examples: Sequence[str],
    others: Sequence[dict[str, Any]],
    *,
    webgpu: bool,
) -> dict[str, Any]:
    """Write one model, and return its entry in the list of models."""
    about = bundle.about
    languages = [about.get("src_lang"), about.get("tgt_lang")]
    name = str(about.get("name") or "-".join(filter(None, languages)) or "model")
    if name in (other["name"] for other in others):
        name = f"{name} ({len(others) + 1})"
    model_folder = Path("models") / str(len(others) + 1)
    target = folder / model_folder
    target.mkdir(parents=True)
    is_quantized = precision == "int8"
    write_onnx(bundle, target, has_attention=True, shares_projection=not is_quantized)
    if is_quantized:
        quantize(target)
    elif precision == "float16":
        store_float16(target)
    if webgpu:
        compute_positions_in_float32(target)
    sizes = read_model_info(Translator(bundle.model, bundle.tokenizer, about=about))
    info = json.loads((target / INFO_FILE).read_text("utf-8"))
    del info["about"]  # not for the public, and large
    section = {"name": name, **sizes, "src_lang": languages[0], "tgt_lang": languages[1]}
    _write_json(target / INFO_FILE, {**info, "precision": precision, "model": section})
    return {
        "name": name,
        "folder": model_folder.as_posix(),
        "src_lang": languages[0],
        "tgt_lang": languages[1],
        "files": {path.name: path.stat().st_size for path in sorted(target.iterdir())},
        "examples": list(examples),
        "about": _describe(bundle, sizes, precision),
        "num_parameters": sizes["num_parameters"],
        "precision": precision,
    }


def _write_drawing(
    bundle: Bundle, folder: Path, entry: dict[str, Any], draw: Drawing | None
) -> str | None:
    """Write the drawing of a model, and return its path; None if there is none."""
    if draw is None:
        return None
    about = {**bundle.about, "name": entry["name"]}
    text = next(iter(entry["examples"]), None)
    drawing = draw(Translator(bundle.model, bundle.tokenizer, about=about), text)
    if drawing is None:
        return None
    path = f"{entry['folder']}/{DRAWING_FILE}"
    _write_json(folder / path, drawing)
    return path


def _describe(bundle: Bundle, sizes: dict[str, Any], precision: str) -> dict[str, str]:
    """Return what the page tells about a model, by heading."""
    training, dev = bundle.about.get("training") or {}, bundle.about.get("dev") or {}
    described = {
        "parameters": f"{sizes['num_parameters']:,}",
        "layers": f"{sizes['num_layers']} + {sizes['num_decoder_layers']}",
        "heads": str(sizes["num_heads"]),
        "vocabulary": f"{bundle.tokenizer.tgt_vocab_size:,}",
        "precision": precision,
    }
    if training.get("num_examples"):
        described["pairs"] = f"{training['num_examples']:,}"
    if isinstance(dev.get("bleu"), float):
        described["bleu"] = f"{dev['bleu']:.1f}"
    return described


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")

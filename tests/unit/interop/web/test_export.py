from __future__ import annotations

import json
import re
from base64 import b64decode

import pytest

from attendo.bundle import build_model, save_bundle
from attendo.core import shipped_models
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.interop.export import export
from attendo.interop.web import export as interop
from attendo.interop.web.export import export_web

PAGE = (
    '<head><script type="module" crossorigin src="./assets/site.js"></script></head><body></body>'
)
SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A built page, which tests of Python alone may lack."""
    package = tmp_path / "package"
    for name in ("assets", "webgpu"):
        (package / "static" / name).mkdir(parents=True)
    contents = {
        "index.html": PAGE,
        "assets/site.js": "start('</script>')",
        "assets/translator.worker-1.js": "work()",
        "webgpu/ort.mjs": "compute()",
        "webgpu/ort.wasm.gz": "runtime",
        "service-worker.js": "serve()",
        "manifest.webmanifest": "{}",
    }
    for name, content in contents.items():
        (package / "static" / name).write_text(content, encoding="utf-8")
    monkeypatch.setattr(interop, "files", lambda _package: package)
    return package / "static"


@pytest.fixture
def make_model(toy, tmp_path):
    def make(folder: str, kind: str = "transformer", **about):
        sizes = SIZES if kind == "transformer" else {"d_model": 16, "num_layers": 1}
        model = build_model(kind, sizes, toy.prepared.tokenizer)
        save_bundle(tmp_path / folder, model, toy.prepared.tokenizer, about=about)
        return tmp_path / folder

    return make


def test_a_page_lists_its_models_with_their_files(page, make_model, tmp_path):
    models = [make_model("one", src_lang="ko", tgt_lang="en"), make_model("two", name="mine")]
    written = export_web(models, tmp_path / "out", examples=["ka to"])
    index = json.loads((tmp_path / "out/models.json").read_text("utf-8"))
    assert written.names == [model["name"] for model in index["models"]] == ["ko-en", "mine"]
    for model in index["models"]:
        folder = tmp_path / "out" / model["folder"]
        assert model["files"] == {one.name: one.stat().st_size for one in folder.iterdir()}
        assert model["examples"] == ["ka to"]
        info = json.loads((folder / "onnx.json").read_text("utf-8"))
        assert info["model"]["num_heads"] == SIZES["num_heads"]
        outputs = info["graphs"]["decoder.onnx"]["outputs"]
        assert {"attention/cross_0", "attention/decoder_self_0"} <= set(outputs)
    sizes = [one.stat().st_size for one in (tmp_path / "out").rglob("*") if one.is_file()]
    assert written.num_bytes == sum(sizes)


def test_the_drawing_is_a_file_that_the_page_loads_on_request(page, make_model, tmp_path):
    asked = []

    def draw(translator, text):
        asked.append((translator.about["name"], text))
        return {"values": len(asked)} if len(asked) == 1 else None

    models = [make_model("one", src_lang="ko", tgt_lang="en"), make_model("two", name="mine")]
    export_web(models, tmp_path / "out", examples=["ka to"], draw=draw)
    first, second = json.loads((tmp_path / "out/models.json").read_text("utf-8"))["models"]
    assert asked == [("ko-en", "ka to"), ("mine", "ka to")]
    assert first["drawing"] == "models/1/machine.json"
    assert first["drawing"].rpartition("/")[2] not in first["files"]
    assert json.loads((tmp_path / "out" / first["drawing"]).read_text("utf-8")) == {"values": 1}
    assert second["drawing"] is None
    assert not (tmp_path / "out/models/2/machine.json").exists()
    html = export_web(models[:1], tmp_path / "page.html", draw=lambda *_: {}).path.read_text(
        "utf-8"
    )
    assert 'data-path="models/1/machine.json"' in html


def test_models_of_the_same_languages_have_different_names(page, make_model, tmp_path):
    models = [make_model(name, src_lang="ko", tgt_lang="en") for name in ("one", "two")]
    assert export_web(models, tmp_path / "out").names == ["ko-en", "ko-en (2)"]


def test_a_change_of_any_file_is_another_version(page, make_model, tmp_path):
    model, versions = make_model("model"), []
    for number, precision in enumerate(("int8", "int8", "float16")):
        folder = tmp_path / str(number)
        export_web([model], folder, precision=precision)
        versions.append(json.loads((folder / "models.json").read_text("utf-8"))["version"])
        worker = (folder / "service-worker.js").read_text("utf-8")
        assert f'VERSION = "{versions[-1]}"' in worker
        kept = json.loads(worker.partition("FILES = ")[2].partition(";\n")[0])
        assert {"./", "index.html", "models.json", "assets/site.js"} <= set(kept)
        assert all((folder / name).exists() for name in kept)
        assert not any(name.startswith("models/") for name in kept)
    assert versions[0] == versions[1] != versions[2]


def test_a_single_file_contains_every_file(page, make_model, tmp_path):
    model = make_model("model", src_lang="ko", tgt_lang="en")
    export_web([model], tmp_path / "out")
    written = export_web([model], tmp_path / "page.html")
    html = written.path.read_text("utf-8")
    assert r"start('<\/script>')" in html
    assert " src=" not in html
    found = re.findall(r'data-path="([^"]+)">([^<]+)</script>', html)
    embedded = {name: b64decode(data) for name, data in found}
    assert embedded.pop("worker.js") == b"work()"
    expected = {
        path.relative_to(tmp_path / "out").as_posix(): path.read_bytes()
        for pattern in ("models/1/*", "models.json")
        for path in (tmp_path / "out").glob(pattern)
    }
    assert embedded == expected
    assert written.num_bytes == written.path.stat().st_size
    assert {one.name for one in tmp_path.iterdir()} >= {"page.html", "out"}
    assert not [*tmp_path.glob(".page*")]


def test_weights_are_8_bits_by_default(page, make_model, tmp_path):
    import onnx

    model, kinds = make_model("model"), {}
    for precision in interop.PRECISIONS:
        export_web([model], tmp_path / precision, precision=precision)
        path = tmp_path / precision / "models/1/encoder.onnx"
        graph = onnx.load(path).graph
        matrices = [one for one in graph.initializer if len(one.dims) == 2]
        kinds[precision] = {one.data_type for one in matrices}
        onnx.checker.check_model(path, full_check=True)
    assert onnx.TensorProto.INT8 in kinds["int8"]
    assert kinds["float16"] == {onnx.TensorProto.FLOAT16}
    assert kinds["float32"] == {onnx.TensorProto.FLOAT}


def test_webgpu_is_added_on_request_and_never_loaded_at_first(page, make_model, tmp_path):
    import onnx

    model = make_model("model")
    for name, webgpu in (("without", False), ("with", True)):
        export_web([model], tmp_path / name, precision="float16", webgpu=webgpu)
        index = json.loads((tmp_path / name / "models.json").read_text("utf-8"))
        assert (tmp_path / name / "webgpu").is_dir() == webgpu == bool(index["webgpu"])
        assert index["models"][0]["num_parameters"] > 0
        assert "webgpu/" not in (tmp_path / name / "service-worker.js").read_text("utf-8")
        graph = onnx.load(tmp_path / name / "models/1/decoder.onnx").graph
        types = {one.data_type for one in graph.initializer}
        assert (onnx.TensorProto.DOUBLE in types) != webgpu
    assert all((tmp_path / "with" / file).is_file() for file in index["webgpu"].values())
    html = export_web([model], tmp_path / "a.html", precision="float16", webgpu=True).path
    assert 'data-path="webgpu/ort.wasm.gz"' in html.read_text("utf-8")


def test_shipped_models_are_found_by_name_and_may_be_stored_in_8_bits(
    page, toy, tmp_path, monkeypatch
):
    monkeypatch.setattr(shipped_models, "ROOTS", (tmp_path / "models",))
    for name in shipped_models.SHIPPED_NAMES:
        model = build_model("transformer", SIZES, toy.prepared.tokenizer)
        src_lang, tgt_lang = name.split("-")
        about = {"src_lang": src_lang, "tgt_lang": tgt_lang}
        save_bundle(tmp_path / "float32" / name, model, toy.prepared.tokenizer, about=about)
        export(
            tmp_path / "float32" / name,
            to="attendo",
            out=tmp_path / "models" / name,
            quantization="int8",
        )
    written = export_web(shipped_models.SHIPPED_NAMES, tmp_path / "out")
    assert written.names == ["ko-en", "en-ko"]


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"precision": "int4"}, ConfigError, "no precision 'int4'"),
        ({"out": "."}, InputError, "exists"),
        ({"webgpu": True}, ConfigError, "does not multiply 8-bit integers"),
        ({"kind": "rnn-attention"}, ConfigError, "cannot be exported to a web page"),
    ],
)
def test_bad_requests_write_nothing(page, make_model, tmp_path, change, error, reason):
    model = make_model("model", change.get("kind", "transformer"))
    out = tmp_path / change.get("out", "out")
    options = {"precision": "int8", "webgpu": False} | change
    with pytest.raises(error, match=reason):
        export_web([model], out, precision=options["precision"], webgpu=options["webgpu"])
    assert not (tmp_path / "out").exists()


def test_a_page_that_was_not_built_is_reported(page, make_model, tmp_path):
    (page / "index.html").unlink()
    with pytest.raises(AttendoError, match="has not been built"):
        export_web([make_model("model")], tmp_path / "out")

"""The folder of `attendo export --to transformers-js`, run by transformers.js in Node.js."""

from __future__ import annotations

import json
import subprocess

import pytest
import torch

from attendo.bundle import build_model, load_bundle, save_bundle
from attendo.data.tokenizer_training import train_tokenizer
from attendo.interop.export import export
from attendo.interop.onnx.transformers_js import DECODER, ENCODER, unsupported_reasons
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.tokenizer import TokenizerConfig
from attendo.translator import Translator
from attendo.translator.backends.onnx.session import open_session

pytest.importorskip("onnxruntime")
SIZES = {"d_model": 32, "d_ff": 64, "num_heads": 4, "num_layers": 2, "num_decoder_layers": 1}
NOISE = [
    "Cafe\u0301 \u3000au\u200b lait, 50 %",
    "漢字와 😀 이모지",
    "\u3164x\uf8fey▁z",
]


@pytest.fixture(scope="module")
def translate(repository, tmp_path_factory):
    """Return a function that translates lines by transformers.js."""
    node = str(repository / "frontend/with_node.sh")
    if not (repository / "frontend/node_modules/@huggingface/transformers").exists():
        pytest.skip("transformers.js is not installed: make web")
    folder = tmp_path_factory.mktemp("script")
    script = repository / f"frontend/node_modules/.transformers-js-{folder.parent.name}.mjs"
    externals = ("--external:@huggingface/transformers", "--external:onnxruntime-web")
    options = ("--bundle", "--platform=node", "--format=esm", *externals, f"--outfile={script}")
    command = [node, "npx", "esbuild", "tests/transformers-js.ts", *options]
    subprocess.run(command, check=True, capture_output=True)

    def run(model, dtype, lines):
        given, answer = folder / "lines.json", folder / "answer.json"
        given.write_text(json.dumps(lines), encoding="utf-8")
        subprocess.run([node, "node", script, model, dtype, given, answer], check=True)
        return json.loads(answer.read_text("utf-8"))

    yield run
    script.unlink()


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def model(request, tmp_path_factory):
    """Return a model with random weights, far enough apart that no scores tie."""
    folder = tmp_path_factory.mktemp(request.param)
    pairs = list(synthesize_pairs(300))
    for lang in ("ko", "en"):
        lines = "".join(f"{getattr(pair, lang)}\n" for pair in pairs)
        (folder / lang).write_text(lines, encoding="utf-8")
    has_bytes = request.param == "bpe"
    config = TokenizerConfig(kind=request.param, vocab_size=800, byte_fallback=has_bytes)
    tokenizer = train_tokenizer(folder / "ko", folder / "en", config, num_pairs=300, seed=1)
    torch.manual_seed(1)
    network = build_model("transformer", SIZES, tokenizer).eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(1.5)
    save_bundle(folder / "model", network, tokenizer)
    return folder / "model"


def test_transformers_js_has_the_same_ids_and_translations(translate, model, tmp_path):
    lines = [pair.ko for pair in synthesize_pairs(20, seed=2)]
    report = export(model, to="transformers-js", out=tmp_path / "out")
    assert report.parity.is_faithful
    translator = Translator.load(model)
    results = translate(tmp_path / "out", "fp32", [*lines, *NOISE])
    ids = translator.tokenizer.encode_src([*lines, *NOISE])
    assert [one["ids"] for one in results] == ids
    own = translator.translate(lines, beam_size=1, split="never", copy_spans="never")
    for expected, found in zip(own, results, strict=False):  # without the noise
        if expected.is_finished:
            assert found["text"] == expected
        else:  # transformers.js has another limit
            assert found["text"].startswith(expected[:-1])
    for name in (ENCODER, DECODER):
        assert open_session(tmp_path / "out/onnx" / f"{name}_quantized.onnx").get_inputs()


@pytest.mark.parametrize("model", ["unigram"], indirect=True)
def test_byte_fallback_of_unigram_pieces_is_refused(model):
    bundle = load_bundle(model)
    config = TokenizerConfig(kind="unigram", vocab_size=800, byte_fallback=True)
    files = (model.parent / "ko", model.parent / "en")
    tokenizer = train_tokenizer(*files, config, num_pairs=300, seed=1)
    reasons = unsupported_reasons(bundle._replace(tokenizer=tokenizer))
    assert reasons == ["transformers.js has no byte fallback for unigram pieces"]

"""The TypeScript package against Python: the same ids, segments, translations and records."""

from __future__ import annotations

import json
import random
import subprocess

import pytest
import sentencepiece
import torch

from attendo.bundle import Bundle, build_model
from attendo.data.config import DataConfig
from attendo.data.pipeline import prepare_data
from attendo.inspection.ablation import ablate_all_heads
from attendo.inspection.array_codec import decode_u16
from attendo.inspection.capture import capture
from attendo.inspection.record import KINDS as KINDS_OF_HEADS
from attendo.interop.onnx.export import write
from attendo.interop.onnx.quantize import quantize, store_float16
from attendo.interop.onnx.webgpu import compute_positions_in_float32
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.normalize import normalize
from attendo.text.sentences import split_into_segments
from attendo.translator import Translator

pytest.importorskip("onnxruntime")
ALPHABET = " .!?…。！，、；：()」』”\"'—–-,;:aAbB1 2z한국漢字ㄱé\u0301😀\u200d\u3000\n\u3164\xad"
LIMITS = (1, 7, 30, 1_000_000)
KINDS = ("bpe", "unigram", "char", "word")
NORMALIZATIONS = ("identity", "nmt_nfkc_cf")


@pytest.fixture(scope="module")
def compare(repository, tmp_path_factory):
    """Return a function that sends a request to the package, run by Node.js."""
    node = str(repository / "frontend/with_node.sh")
    if not (repository / "frontend/node_modules/.ready").exists():
        pytest.skip("the front end is not installed: make web")
    folder = tmp_path_factory.mktemp("package")
    # Next to the packages that it imports, which stay outside the bundle.
    script = repository / f"frontend/node_modules/.attendo-compare-{folder.parent.name}.mjs"
    options = ("--bundle", "--platform=node", "--format=esm", "--external:onnxruntime-web")
    entry = "packages/attendo-web/compare.ts"
    bundled = [node, "npx", "esbuild", entry, *options, f"--outfile={script}"]
    subprocess.run(bundled, check=True, capture_output=True)

    def run(**request):
        given, answer = folder / "request.json", folder / "answer.json"
        empty = {"tokenizers": [], "segments": {"texts": [], "limits": []}, "model": None}
        request = {**empty, "sentences": [], "beamSizes": [], **request}
        given.write_text(json.dumps(request), encoding="utf-8")
        subprocess.run([node, "node", str(script), str(given), str(answer)], check=True)
        return json.loads(answer.read_text("utf-8"))

    yield run
    script.unlink()


@pytest.fixture(scope="module")
def texts():
    """Return sentences in Korean and English, and noise."""
    generator = random.Random(1)  # noqa: S311 - not for cryptography
    lines = [text for pair in synthesize_pairs(600) for text in pair[:2]]
    joined = [" ".join(generator.sample(lines, 3)) for _ in range(100)]
    noise = ["".join(generator.choices(ALPHABET, k=generator.randint(1, 40))) for _ in range(300)]
    return [*lines, *joined, *noise, "", " ", "<s></s>", "▁x▁ <unk>", "ﬁ ① ㈱ Å 日本語"]


def test_tokenizers_return_the_same_ids_and_texts(compare, texts, tmp_path):
    models = []
    for kind in KINDS:
        for normalization in NORMALIZATIONS:
            prefix = str(tmp_path / f"{kind}-{normalization}")
            has_bytes = kind in ("bpe", "unigram") and normalization == "identity"
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts[:1000]),
                model_prefix=prefix,
                model_type=kind,
                vocab_size=600,
                hard_vocab_limit=False,
                character_coverage=0.98,
                normalization_rule_name=normalization,
                byte_fallback=has_bytes,
                remove_extra_whitespaces=has_bytes,
                user_defined_symbols=["<tag>", "학생"] if has_bytes else [],
                minloglevel=2,
            )
            models.append(f"{prefix}.model")
    answer = compare(tokenizers=[{"model": model, "texts": texts} for model in models])
    for model, found in zip(models, answer["tokenizers"], strict=True):
        processor = sentencepiece.SentencePieceProcessor(model_file=model)
        ids = processor.encode(texts)
        assert found["ids"] == ids, model
        assert found["texts"] == processor.decode(ids), model


def test_texts_are_normalized_and_split_alike(compare, texts):
    answer = compare(segments={"texts": texts, "limits": list(LIMITS)})
    assert answer["normalized"] == [normalize(text) for text in texts]
    for text, segmented in zip(texts, answer["segments"], strict=True):
        for limit, found in zip(LIMITS, segmented, strict=True):
            expected = split_into_segments(
                text, fits=lambda part, limit=limit: len(part) <= limit, by_sentence=limit % 2 == 0
            )
            assert tuple(found["segments"]) == expected.segments
            assert tuple(found["separators"]) == expected.separators


HEAD = ("kind", "layer", "head", "text")


def sort_heads(ablation):
    """Return the heads in the order of Python's list."""
    return sorted(
        ablation["heads"], key=lambda one: (KINDS_OF_HEADS.index(one["kind"]), one["layer"])
    )


SIZES = {"d_model": 32, "d_ff": 64, "num_heads": 4, "num_layers": 2}
REWRITES = {
    "int8": quantize,
    "float16": store_float16,
    "float32 positions": compute_positions_in_float32,
}
VARIANTS = {
    "gelu": {"norm": "pre", "activation": "gelu", "positions": "learned", "max_length": 200},
    "swish": {"activation": "swish", "positions": "concatenated", "tie_embeddings": "none"},
    "halves": {"position_layout": "halves", "attention_width": 6, "bias": False},
    "fairseq": {"position_layout": "fairseq", "d_model": 30, "num_heads": 3, "scale": False},
    "odd": {"position_layout": "tensor2tensor", "d_model": 33, "num_heads": 3, "d_ff": 45},
    "odd, interleaved": {"d_model": 15, "num_heads": 3, "d_k": 3, "d_v": 5},
    "own decoder": {"num_decoder_layers": 1, "num_decoder_heads": 2, "decoder_d_ff": 24},
    "no positions": {"positions": "none", "residual": False, "output_bias": True},
}
"""Together they have every operator of the graphs."""


@pytest.fixture(scope="module")
def make_translator(tmp_path_factory):
    """Make translators with random weights, far enough apart that no scores tie."""
    folder = tmp_path_factory.mktemp("corpus")
    for lang, index in (("ko", 0), ("en", 1)):
        lines = [f"{pair[index]}\n" for pair in synthesize_pairs(300)]
        (folder / f"train.{lang}").write_text("".join(lines), encoding="utf-8")
    corpus = {"src": folder / "train.ko", "tgt": folder / "train.en"}
    data = DataConfig(corpora=(corpus,), tokenizer={"kind": "bpe", "vocab_size": 800})
    tokenizer = prepare_data(data, folder / "cache").tokenizer

    def make(**options):
        model = build_model("transformer", {**SIZES, **options}, tokenizer).eval()
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1.5)
        return Translator(model, tokenizer, about={"src_lang": "ko", "tgt_lang": "en"})

    return make


@pytest.fixture(scope="module")
def translator(make_translator):
    return make_translator()


def export(translator, folder, precision="float32"):
    """Write the graphs with attention, as a web page has them."""
    folder.mkdir()
    bundle = Bundle(translator.model, translator.tokenizer, translator.about)
    write(bundle, folder, has_attention=True, shares_projection=precision != "int8")
    if precision != "float32":
        REWRITES[precision](folder)
    return str(folder)


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_every_kind_of_model_translates_as_in_python(compare, make_translator, tmp_path, options):
    translator = make_translator(**options)
    sentences = [pair[0] for pair in synthesize_pairs(5, seed=4)]
    answer = compare(
        model=export(translator, tmp_path / "model"), sentences=sentences, beamSizes=[1, 3]
    )
    for beam_size, results in zip((1, 3), answer["searches"], strict=True):
        expected = translator.translate(
            sentences, beam_size=beam_size, split="never", copy_spans="never"
        )
        for own, found in zip(expected, results, strict=True):
            best = found["hypotheses"][0]
            assert best["ids"] == own.ids
            assert best["score"] == pytest.approx(own.score, abs=1e-4)
    weights = capture(translator, sentences[0], beam_size=4).to_dict()["attention"]
    for kind, encoded in weights.items():
        found = decode_u16(answer["record"]["attention"][kind])
        assert found == pytest.approx(decode_u16(encoded), abs=1e-4)


@pytest.mark.parametrize("precision", REWRITES)
def test_rewritten_graphs_give_the_numbers_of_onnx_runtime(
    compare, make_translator, tmp_path, precision
):
    # Ours quantizes each row by itself, ONNX Runtime the whole batch: nearly the same.
    translator = make_translator(d_ff=70)
    model = export(translator, tmp_path / "model", precision)
    sentences = [pair[0] for pair in synthesize_pairs(4, seed=5)]
    tolerance = 0.1 if precision == "int8" else 1e-4
    scores = [
        [
            one["hypotheses"][0]["tokenLogProbs"][0]
            for one in compare(
                model=model,
                sentences=sentences,
                beamSizes=[1],
                usesOnnxRuntime=is_other,
                inspects=False,
            )["searches"][0]
        ]
        for is_other in (False, True)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=tolerance)


def test_translations_and_records_are_those_of_python(compare, translator, tmp_path):
    sentences = [pair[0] for pair in synthesize_pairs(6, seed=2)]
    folder = export(translator, tmp_path / "model")
    beam_sizes = [1, 4]
    answer = compare(model=folder, sentences=sentences, beamSizes=beam_sizes)
    for beam_size, results in zip(beam_sizes, answer["searches"], strict=True):
        expected = translator.translate(
            sentences, beam_size=beam_size, n_best=beam_size, split="never", copy_spans="never"
        )
        for own, found in zip(expected, results, strict=True):
            ids = [one.ids for one in (own, *own.alternatives)]
            assert [one["ids"] for one in found["hypotheses"]] == ids
            assert found["hypotheses"][0]["score"] == pytest.approx(own.score, abs=1e-4)
    captured = capture(translator, sentences[0], beam_size=4)
    ablation = ablate_all_heads(translator, captured)
    assert answer["ablation"]["log_prob"] == pytest.approx(ablation["log_prob"], abs=1e-4)
    for ours, theirs in zip(ablation["heads"], sort_heads(answer["ablation"]), strict=True):
        assert theirs["change"] == pytest.approx(ours["change"], rel=1e-4, abs=1e-4)
        assert [theirs[name] for name in HEAD] == [ours[name] for name in HEAD]
    first, again, alone = answer["samples"]
    assert first == again
    assert first[-1:] == alone  # whatever else is in the batch
    assert first != [one["hypotheses"][0]["ids"] for one in answer["searches"][0]]
    record = captured.to_dict()
    found = answer["record"]
    assert (found["src"], found["tgt"]) == (record["src"], record["tgt"])
    for ours, theirs in zip(record["steps"], found["steps"], strict=True):
        assert theirs["probability"] == pytest.approx(ours["probability"], abs=1e-4)
    for ours, theirs in zip(record["beam"]["steps"], found["beam"]["steps"], strict=True):
        for own, other in zip(ours["candidates"], theirs["candidates"], strict=True):
            names = ("id", "parent", "slot", "outcome", "why", "token")
            assert [other[name] for name in names] == [own[name] for name in names]
    for kind, encoded in record["attention"].items():
        weights = decode_u16(found["attention"][kind])
        assert weights == pytest.approx(decode_u16(encoded), abs=1e-4)

"""Translate with ONNX Runtime, NumPy and SentencePiece, without PyTorch or Attendo.

The folder comes from `attendo export MODEL --to onnx`; its onnx.json has the names, ids and limits.
The decoder has a key-value cache: each step feeds one token per hypothesis and passes the returned
keys and values to the next step. Beam search is that of the paper (section 6.1) and returns the
same translations as Attendo. Each text must be one sentence: longer texts are not split.

Run: python examples/onnx_translate.py FOLDER "나는 학생이다." [--beam-size 4]
Without texts it reads standard input, one text per line.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
from sentencepiece import SentencePieceProcessor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]
    State = dict[str, Array]

BATCH_SIZE = 32


class Tokenizer:
    """Text to ids and back, as described in onnx.json."""

    def __init__(self, folder: Path, info: dict[str, Any]) -> None:
        self.info = info["tokenizer"]
        self.unk_id, self.end_id = info["unk_id"], info["end_id"]
        files = [str(folder / self.info[side]) for side in ("src", "tgt")]
        self.src, self.tgt = (SentencePieceProcessor(model_file=file) for file in files)
        self.pieces = None  # only an imported model has ids other than those of SentencePiece
        if self.info["pieces"]:
            self.pieces = json.loads((folder / self.info["pieces"]).read_text(encoding="utf-8"))
            self.src_ids = {piece: number for number, piece in enumerate(self.pieces["src"])}
            for symbol in self.pieces["src"][: self.end_id + 1]:  # special symbols are not text
                del self.src_ids[symbol]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a source text with the end symbol; no ids for an empty text."""
        clean = self.normalize(text)
        for plain, escaped in self.info["escapes"].items():
            clean = clean.replace(plain, escaped)
        if not clean:
            return []
        if not self.pieces:
            return [*self.src.encode(clean), self.end_id]
        code = re.match(">>.+?<<", clean)  # the target language of a multilingual model
        pieces = [code[0] if code else self.info["code"]]
        pieces += self.src.encode(clean[code.end() if code else 0 :], out_type=str)
        ids = [self.src_ids.get(piece, self.unk_id) for piece in pieces if piece]
        return [*ids, self.end_id]

    def decode(self, ids: list[int]) -> str:
        """Return the text of target ids."""
        if self.pieces:  # SentencePiece keeps the space symbol in pieces that it does not know
            decoded = self.tgt.decode([self.pieces["tgt"][number] for number in ids])
            return self.normalize(decoded.replace("\u2581", " "))
        text: str = self.tgt.decode(ids)
        for plain, escaped in reversed(self.info["escapes"].items()):
            text = text.replace(escaped, plain)
        return self.normalize(text)

    def normalize(self, text: str) -> str:
        """Normalize a text to NFC, single spaces and visible characters."""
        text = re.sub(self.info["remove"], "", text)
        for blank in self.info["blanks"]:
            text = text.replace(blank, " ")
        return " ".join(unicodedata.normalize("NFC", text).split())


class Model:
    """The two graphs: the encoder runs once, the decoder once per token."""

    def __init__(self, folder: Path, info: dict[str, Any]) -> None:
        self.encoder, self.decoder = (
            ort.InferenceSession(folder / name, providers=["CPUExecutionProvider"])
            for name in ("encoder.onnx", "decoder.onnx")
        )
        self.info = info
        self.suppressed_ids = [info[name] for name in ("pad_id", "start_id", "unk_id")]

    def start(self, sources: list[list[int]]) -> State:
        """Encode the sources; the state has the projected memory and an empty cache."""
        longest = max(map(len, sources))
        padded = [[*row, *[self.info["pad_id"]] * (longest - len(row))] for row in sources]
        src_ids = np.array(padded, dtype=np.int64)  # (B, S)
        names = [output.name for output in self.encoder.get_outputs()]
        state = dict(zip(names, self.encoder.run(names, {"src_ids": src_ids}), strict=True))
        for value in self.decoder.get_inputs():
            if value.name.startswith("past_"):
                _, heads, _, size = value.shape
                state[value.name] = np.zeros((len(sources), heads, 0, size), dtype=np.float32)
        return state

    def step(self, ids: Array, state: State) -> tuple[Array, State]:
        """Feed one token per row, ids (N,); return the next log-probabilities (N, V)."""
        names = [output.name for output in self.decoder.get_outputs()]
        values = self.decoder.run(names, {"ids": ids[:, None], **state})
        outputs = dict(zip(names, values, strict=True))
        logits = outputs.pop("logits")[:, 0]
        logits -= logits.max(-1, keepdims=True)
        log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        log_probs[:, self.suppressed_ids] = -np.inf
        return log_probs, state | {f"past_{name}": value for name, value in outputs.items()}

    def max_lengths(self, sources: list[list[int]]) -> Array:
        """Return the maximum number of tokens of each translation, from the source length."""
        max_extra_tokens = self.info["decoding"]["max_extra"]  # vocabulary: ok, key of onnx.json
        max_lengths = np.array([len(row) + max_extra_tokens for row in sources])
        max_positions = self.info["max_positions"]  # None unless positions are learned
        return max_lengths if max_positions is None else max_lengths.clip(max=max_positions)


def reorder(state: State, rows: Array) -> State:
    """Return the state with row `rows[i]` as its row i, to copy and drop hypotheses."""
    return {name: values[rows] for name, values in state.items()}


def greedy_search(model: Model, sources: list[list[int]]) -> list[list[int]]:
    """Choose the most probable token at every step."""
    output_ids: list[list[int]] = [[] for _ in sources]
    max_lengths, state = model.max_lengths(sources), model.start(sources)
    rows = np.arange(len(sources))  # unfinished sentences
    last = np.full(len(sources), model.info["start_id"])
    while len(rows):
        log_probs, state = model.step(last, state)
        last = log_probs.argmax(-1)
        is_active = last != model.info["end_id"]
        for row, token in zip(rows[is_active], last[is_active], strict=True):
            output_ids[row].append(int(token))
        is_active &= np.array([len(output_ids[row]) for row in rows]) < max_lengths[rows]
        rows, last = rows[is_active], last[is_active]
        state = reorder(state, np.flatnonzero(is_active))
    return output_ids


def beam_search(model: Model, sources: list[list[int]], beam_size: int) -> list[list[int]]:
    """Keep the best hypotheses of each sentence until no one can beat the finished ones."""
    end_id, alpha = model.info["end_id"], model.info["decoding"]["alpha"]
    max_lengths = model.max_lengths(sources)
    sentences = np.arange(len(sources))  # unfinished sentences, one beam each
    best: list[tuple[float, list[int]]] = [(-np.inf, []) for _ in sources]
    state = reorder(model.start(sources), np.repeat(sentences, beam_size))
    output_ids = np.full((len(sentences), beam_size, 1), model.info["start_id"])  # (B, K, 1 + t)
    totals = np.full((len(sentences), beam_size), -np.inf, dtype=np.float32)
    totals[:, 0] = 0.0  # at first there is one hypothesis: the empty one
    for length in range(1, int(max_lengths.max()) + 1):
        log_probs, state = model.step(output_ids[:, :, -1].reshape(-1), state)
        sums = totals[:, :, None] + log_probs.reshape(*totals.shape, -1)  # (B, K, V)
        parents, tokens, totals = top_k(sums, 2 * beam_size)
        is_end = tokens == end_id
        for index, rank in np.argwhere(is_end[:, :beam_size]):
            score = totals[index, rank] / length_penalty(length, alpha)
            if score > best[sentences[index]][0]:
                best[sentences[index]] = (
                    score,
                    output_ids[index, parents[index, rank], 1:].tolist(),
                )
        order = is_end.argsort(1, kind="stable")[:, :beam_size]  # the best unfinished ones
        parents, tokens, totals = (
            np.take_along_axis(values, order, 1) for values in (parents, tokens, totals)
        )
        output_ids = np.take_along_axis(output_ids, parents[:, :, None], axis=1)
        output_ids = np.concatenate([output_ids, tokens[:, :, None]], axis=2)
        limits = max_lengths[sentences]
        bounds = totals.max(1) / length_penalty(limits, alpha)
        is_active = np.array([best[sentence][0] for sentence in sentences]) < bounds
        for index in np.flatnonzero(is_active & (limits == length)):
            if best[sentences[index]][0] == -np.inf:  # truncated: no hypothesis has ended
                best[sentences[index]] = (
                    0.0,
                    output_ids[index, totals[index].argmax(), 1:].tolist(),
                )
        kept = np.flatnonzero(is_active & (limits > length))
        if not len(kept):
            break
        state = reorder(state, (kept[:, None] * beam_size + parents[kept]).reshape(-1))
        sentences, output_ids, totals = sentences[kept], output_ids[kept], totals[kept]
    return [ids for _, ids in best]


def length_penalty(length: Any, alpha: float) -> Any:
    """Return the divisor of a log-probability of `length` tokens (Wu et al. 2016)."""
    return ((5 + length) / 6) ** alpha


def top_k(sums: Array, count: int) -> tuple[Array, Array, Array]:
    """Return parents, tokens and values of the best entries of (B, K, V), each (B, count)."""
    flat = sums.reshape(len(sums), -1)
    indices = np.argpartition(-flat, count, axis=1)[:, :count]
    values = np.take_along_axis(flat, indices, 1)
    order = (-values).argsort(1, kind="stable")
    indices = np.take_along_axis(indices, order, 1)
    parents, tokens = np.divmod(indices, sums.shape[-1])
    return parents, tokens, np.take_along_axis(values, order, 1)


def search(model: Model, sources: list[list[int]], beam_size: int) -> list[list[int]]:
    """Return the ids of a translation of each source."""
    return (
        greedy_search(model, sources) if beam_size == 1 else beam_search(model, sources, beam_size)
    )


def translate(folder: Path, texts: Sequence[str], beam_size: int) -> Iterator[str]:
    """Translate each text, in order; an empty text stays empty."""
    info = json.loads((folder / "onnx.json").read_text(encoding="utf-8"))
    tokenizer, model = Tokenizer(folder, info), Model(folder, info)
    for first in range(0, len(texts), BATCH_SIZE):
        rows = [tokenizer.encode(text) for text in texts[first : first + BATCH_SIZE]]
        sources = [row for row in rows if row]
        outputs = iter(search(model, sources, beam_size) if sources else [])
        yield from (tokenizer.decode(next(outputs)) if row else "" for row in rows)


def main() -> None:
    """Parse the command line and translate."""
    parser = argparse.ArgumentParser(description="Translate with ONNX Runtime.")
    parser.add_argument("folder", type=Path, help="a folder written by attendo export --to onnx")
    parser.add_argument("texts", nargs="*", help="one sentence each (default: read standard input)")
    parser.add_argument("--beam-size", type=int, default=4, help="1 is greedy search")
    options = parser.parse_args()
    texts = options.texts or [line.rstrip("\n") for line in sys.stdin]
    for text in translate(options.folder, texts, options.beam_size):
        print(text)


if __name__ == "__main__":
    main()

"""Translate by ONNX Runtime alone: neither PyTorch nor Attendo, only NumPy and SentencePiece.

The folder comes from `attendo export MODEL --to onnx`; its onnx.json tells the names, ids and
limits. The decoder keeps a key-value cache: each step feeds one token a hypothesis and hands the
keys and values that come out back in. Beam search is the paper's (section 6.1) and finds the same
words as Attendo's own. One sentence a text: cutting longer ones up is left to Attendo.

Run: python examples/onnx_translate.py FOLDER "나는 학생이다." [--beam-size 4]
Without a text it reads standard input, one a line.
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

BATCH = 32


class Tokenizer:
    """Text to ids and back, as onnx.json tells it."""

    def __init__(self, folder: Path, info: dict[str, Any]) -> None:
        self.info = info["tokenizer"]
        self.unk_id, self.end_id = info["unk_id"], info["end_id"]
        files = [str(folder / self.info[side]) for side in ("src", "tgt")]
        self.src, self.tgt = (SentencePieceProcessor(model_file=file) for file in files)
        self.pieces = None  # an imported model gives them ids that are not SentencePiece's
        if self.info["pieces"]:
            self.pieces = json.loads((folder / self.info["pieces"]).read_text(encoding="utf-8"))
            self.src_ids = {piece: number for number, piece in enumerate(self.pieces["src"])}
            for symbol in self.pieces["src"][: self.end_id + 1]:  # they stand for no text
                del self.src_ids[symbol]

    def encode(self, text: str) -> list[int]:
        """Give the ids of a source text, the end symbol last; none of an empty one."""
        clean = self.normalise(text)
        for plain, escaped in self.info["escapes"].items():
            clean = clean.replace(plain, escaped)
        if not clean:
            return []
        if not self.pieces:
            return [*self.src.encode(clean), self.end_id]
        code = re.match(">>.+?<<", clean)  # of a model of many languages
        said = [code[0] if code else self.info["code"]]
        said += self.src.encode(clean[code.end() if code else 0 :], out_type=str)
        ids = [self.src_ids.get(piece, self.unk_id) for piece in said if piece]
        return [*ids, self.end_id]

    def decode(self, ids: list[int]) -> str:
        """Give the text of target ids."""
        if self.pieces:  # a space of the source's pieces is left as it is written
            said = self.tgt.decode([self.pieces["tgt"][number] for number in ids])
            return self.normalise(said.replace("\u2581", " "))
        text: str = self.tgt.decode(ids)
        for plain, escaped in reversed(self.info["escapes"].items()):
            text = text.replace(escaped, plain)
        return self.normalise(text)

    def normalise(self, text: str) -> str:
        """Bring a text to NFC, single spaces and visible characters."""
        text = re.sub(self.info["remove"], "", text)
        for blank in self.info["blanks"]:
            text = text.replace(blank, " ")
        return " ".join(unicodedata.normalize("NFC", text).split())


class Model:
    """The two graphs: the encoder reads once, the decoder says a token a step."""

    def __init__(self, folder: Path, info: dict[str, Any]) -> None:
        self.encoder, self.decoder = (
            ort.InferenceSession(folder / name, providers=["CPUExecutionProvider"])
            for name in ("encoder.onnx", "decoder.onnx")
        )
        self.info = info
        self.never = [info[name] for name in ("pad_id", "start_id", "unk_id")]

    def start(self, sources: list[list[int]]) -> State:
        """Read the sources; the state holds the projected memory and an empty past."""
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
        """Feed one token a row, ids (N,); give the next log-probabilities (N, V)."""
        names = [output.name for output in self.decoder.get_outputs()]
        found = self.decoder.run(names, {"ids": ids[:, None], **state})
        fresh = dict(zip(names, found, strict=True))
        logits = fresh.pop("logits")[:, 0]
        logits -= logits.max(-1, keepdims=True)
        log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        log_probs[:, self.never] = -np.inf
        return log_probs, state | {f"past_{name}": values for name, values in fresh.items()}

    def limits(self, sources: list[list[int]]) -> Array:
        """Give the most tokens of each translation: so many more than the source has."""
        limits = np.array([len(row) + self.info["decoding"]["max_extra_tokens"] for row in sources])
        most = self.info["max_positions"]  # only learned positions have a last one
        return limits if most is None else limits.clip(max=most)


def reorder(state: State, rows: Array) -> State:
    """Row i of the new state is row `rows[i]` of the old: beams are copied and dropped so."""
    return {name: values[rows] for name, values in state.items()}


def greedy(model: Model, sources: list[list[int]]) -> list[list[int]]:
    """Take the likeliest token at every step."""
    said: list[list[int]] = [[] for _ in sources]
    limits, state = model.limits(sources), model.start(sources)
    rows = np.arange(len(sources))  # those that still go on
    last = np.full(len(sources), model.info["start_id"])
    while len(rows):
        log_probs, state = model.step(last, state)
        last = log_probs.argmax(-1)
        goes_on = last != model.info["end_id"]
        for row, token in zip(rows[goes_on], last[goes_on], strict=True):
            said[row].append(int(token))
        goes_on &= np.array([len(said[row]) for row in rows]) < limits[rows]
        rows, last = rows[goes_on], last[goes_on]
        state = reorder(state, np.flatnonzero(goes_on))
    return said


def beam(model: Model, sources: list[list[int]], beam_size: int) -> list[list[int]]:
    """Keep the best hypotheses of each sentence until what is finished cannot be beaten."""
    end_id, alpha = model.info["end_id"], model.info["decoding"]["alpha"]
    limits, lanes = model.limits(sources), np.arange(len(sources))  # a lane: one sentence's beam
    best: list[tuple[float, list[int]]] = [(-np.inf, []) for _ in sources]
    state = reorder(model.start(sources), np.repeat(lanes, beam_size))
    said = np.full((len(lanes), beam_size, 1), model.info["start_id"])  # (L, K, 1 + t)
    totals = np.full((len(lanes), beam_size), -np.inf, dtype=np.float32)
    totals[:, 0] = 0.0  # at first there is one hypothesis: nothing said yet
    for length in range(1, int(limits.max()) + 1):
        log_probs, state = model.step(said[:, :, -1].reshape(-1), state)
        sums = totals[:, :, None] + log_probs.reshape(*totals.shape, -1)  # (L, K, V)
        parents, tokens, totals = find_best(sums, 2 * beam_size)
        is_end = tokens == end_id
        for place, rank in np.argwhere(is_end[:, :beam_size]):
            score = totals[place, rank] / penalty(length, alpha)
            if score > best[lanes[place]][0]:
                best[lanes[place]] = (score, said[place, parents[place, rank], 1:].tolist())
        order = is_end.argsort(1, kind="stable")[:, :beam_size]  # the best that have not ended
        parents, tokens, totals = (
            np.take_along_axis(values, order, 1) for values in (parents, tokens, totals)
        )
        said = np.take_along_axis(said, parents[:, :, None], axis=1)
        said = np.concatenate([said, tokens[:, :, None]], axis=2)
        bounds = totals.max(1) / penalty(limits[lanes], alpha)
        goes_on = np.array([best[lane][0] for lane in lanes]) < bounds
        for place in np.flatnonzero(goes_on & (limits[lanes] == length)):
            if best[lanes[place]][0] == -np.inf:  # cut: nothing has ended
                best[lanes[place]] = (0.0, said[place, totals[place].argmax(), 1:].tolist())
        stay = np.flatnonzero(goes_on & (limits[lanes] > length))
        if not len(stay):
            break
        state = reorder(state, (stay[:, None] * beam_size + parents[stay]).reshape(-1))
        lanes, said, totals = lanes[stay], said[stay], totals[stay]
    return [ids for _, ids in best]


def penalty(length: Any, alpha: float) -> Any:
    """Give what a log-probability of `length` tokens is divided by (Wu et al. 2016)."""
    return ((5 + length) / 6) ** alpha


def find_best(sums: Array, count: int) -> tuple[Array, Array, Array]:
    """Give the best of (L, K, V), best first: their slots, tokens and values, (L, count) each."""
    flat = sums.reshape(len(sums), -1)
    places = np.argpartition(-flat, count, axis=1)[:, :count]
    values = np.take_along_axis(flat, places, 1)
    order = (-values).argsort(1, kind="stable")
    places = np.take_along_axis(places, order, 1)
    parents, tokens = np.divmod(places, sums.shape[-1])
    return parents, tokens, np.take_along_axis(values, order, 1)


def search(model: Model, sources: list[list[int]], beam_size: int) -> list[list[int]]:
    """Find a translation of each source, as ids."""
    return greedy(model, sources) if beam_size == 1 else beam(model, sources, beam_size)


def translate(folder: Path, texts: Sequence[str], beam_size: int) -> Iterator[str]:
    """Translate each text, in order; an empty one stays empty."""
    info = json.loads((folder / "onnx.json").read_text(encoding="utf-8"))
    tokenizer, model = Tokenizer(folder, info), Model(folder, info)
    for first in range(0, len(texts), BATCH):
        rows = [tokenizer.encode(text) for text in texts[first : first + BATCH]]
        sources = [row for row in rows if row]
        found = iter(search(model, sources, beam_size) if sources else [])
        yield from (tokenizer.decode(next(found)) if row else "" for row in rows)


def main() -> None:
    """Read the command line, and translate."""
    parser = argparse.ArgumentParser(description="Translate by ONNX Runtime.")
    parser.add_argument("folder", type=Path, help="what attendo export --to onnx wrote")
    parser.add_argument("texts", nargs="*", help="one sentence each; standard input without any")
    parser.add_argument("--beam-size", type=int, default=4, help="1 is greedy search")
    options = parser.parse_args()
    texts = options.texts or [line.rstrip("\n") for line in sys.stdin]
    for text in translate(options.folder, texts, options.beam_size):
        print(text)


if __name__ == "__main__":
    main()

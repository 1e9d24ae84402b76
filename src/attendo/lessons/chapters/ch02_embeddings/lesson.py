"""Lesson 2: words become ids, one-hot vectors, and rows of a table of embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812 - the usual PyTorch name

from attendo.inspection.embeddings import nearest_neighbors
from attendo.lessons.blocks import Block, Formula, Matrix, Note, Paragraph, Product, Table
from attendo.lessons.chapters.ch02_embeddings.learned_table import (
    NUM_SENTENCES,
    NUM_STEPS,
    SPECIAL,
    TABLE_SIZE,
    length_chart,
    make_embedding,
    mean_length,
    train_table,
)
from attendo.lessons.inputs import Choice, Number, Text
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.piece_labels import label_pieces
from attendo.lessons.prose import Prose
from attendo.model.embeddings import ScaledEmbedding
from attendo.model.positional_encoding import sinusoidal
from attendo.text.tokenizer import UNK_ID

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.translator import Translator

prose = Prose("attendo.lessons.chapters.ch02_embeddings")

VOCABULARY = [
    *SPECIAL,
    *("this", "is", "my", "car"),
    *("i", "am", "a", "student", "teacher"),
    *("나는", "너는", "학생", "선생님", "이다"),
]
SENTENCE = "This is my car"
D_MODEL = 4
MAX_SHOWN = 8
"""The number of dimensions that are shown at most."""
PROBES = ("monday", "happy", "three", "doctor", "dog", "he", "went")


def encode_words(sentence: str) -> list[int]:
    """Return the id of each word; words outside the vocabulary become <unk>.

    >>> encode_words("This is my bicycle"), encode_words("나는 학생 이다")
    ([4, 5, 6, 1], [13, 15, 17])
    """
    indices = {word: index for index, word in enumerate(VOCABULARY)}
    return [indices.get(word.lower(), UNK_ID) for word in sentence.split()]


def build_blocks(sentence: str, d_model: int, word: str) -> list[Block]:
    """Return how a word is numbered, looked up, scaled and compared."""
    ids = encode_words(sentence)
    return [
        *_ids_section(sentence, ids),
        *_lookup_section(ids, make_embedding(d_model, len(VOCABULARY))),
        *_scale_section(d_model),
        *_neighbors_section(word),
    ]


def _ids_section(sentence: str, ids: list[int]) -> list[Block]:
    return [
        Paragraph(prose("ids", size=len(VOCABULARY))),
        Table(
            [prose("word"), "id", prose("vocabulary-entry")],
            [
                [word, number, VOCABULARY[number]]
                for word, number in zip(sentence.split(), ids, strict=True)
            ],
        ),
        Paragraph(prose("one-hot")),
        Matrix(
            "one-hot",
            F.one_hot(torch.tensor(ids), len(VOCABULARY)).tolist(),
            rows=[str(number) for number in ids],
            columns=[str(index) for index in range(len(VOCABULARY))],
        ),
    ]


def _lookup_section(ids: list[int], embedding: ScaledEmbedding) -> list[Block]:
    table = embedding.weight
    one_hot = F.one_hot(torch.tensor(ids), len(table))
    product = one_hot.float() @ table
    d_model = table.size(1)
    shown = min(d_model, MAX_SHOWN)
    labels = [str(number) for number in ids]
    return [
        Paragraph(
            prose("embedding-lookup")
            if shown == d_model
            else prose("embedding-lookup-cut", num_shown=shown, d_model=d_model)
        ),
        Matrix("E", table[:, :shown].tolist(), rows=[str(index) for index in range(len(table))]),
        Matrix(
            "one-hot · E",
            product[:, :shown].tolist(),
            rows=labels,
            product=Product(one_hot.tolist(), table[:, :shown].tolist()),
        ),
        Paragraph(prose("scale", root=embedding.scale)),
        Matrix("E[id] · √d_model", embedding(torch.tensor(ids))[:, :shown].tolist(), rows=labels),
    ]


def _scale_section(d_model: int) -> list[Block]:
    embedding = make_embedding(d_model, 256)
    plain, scaled = mean_length(embedding.weight), mean_length(embedding(torch.arange(256)))
    position = mean_length(sinusoidal(20, d_model))
    return [
        Paragraph(
            prose("why-scale", d_model=d_model, plain=plain, position=position, scaled=scaled)
        ),
        length_chart(),
    ]


def _neighbors_section(word: str) -> list[Block]:
    table = train_table()
    rows: list[list[Any]] = []
    for (old, far), (new, near) in zip(
        table.neighbors(word, trained=False), table.neighbors(word), strict=True
    ):
        rows.append([old, far, new, near])
    return [
        Paragraph(
            prose(
                "neighbors",
                num_steps=NUM_STEPS,
                num_sentences=NUM_SENTENCES,
                num_words=len(table.names),
                size=TABLE_SIZE,
                word=word,
            )
        ),
        Formula("cos(a, b) = a · b / (|a| · |b|)"),
        Table([prose("before-training"), "cos", prose("after-training"), "cos"], rows),
        Note(prose("unsupervised")),
    ]


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return ids, lengths and neighbors of the learner's own words."""
    embedding = getattr(translator.model, "src_embedding", None)
    if embedding is None:
        return [Note(prose("own-ensemble"))]
    ids = translator.tokenizer.encode_src([text])[0]
    table: Tensor = embedding.weight.detach().float().cpu()
    scale = float(getattr(embedding, "scale", 1.0))
    neighbors = nearest_neighbors(table, ids, count=3)
    pieces = translator.tokenizer.src_pieces
    rows: list[list[Any]] = [
        [
            *label_pieces(pieces([number])),
            number,
            float(table[number].norm()) * scale,
            ", ".join(f"{pieces([other])[0]} {cosine:.2f}" for other, cosine in near),
        ]
        for number, near in zip(ids, neighbors, strict=True)
    ]
    size, d_model = table.shape
    return [
        Paragraph(prose("own-embeddings", text=text, size=size, d_model=d_model, scale=scale)),
        Table([prose("token"), "id", prose("length"), prose("nearest")], rows, digits=2),
    ]


def _dot_of_one_hots() -> float:
    one, other = F.one_hot(torch.tensor([11, 12]), len(VOCABULARY)).float()
    return float(one @ other)


def _scale_of_256() -> float:
    return ScaledEmbedding(1, 256).scale


def _product_of_one_hot() -> str:
    size = len(VOCABULARY)  # a square table, so that a column has the size of a row
    table = make_embedding(size, size).weight
    picked = F.one_hot(torch.tensor(6), len(table)).float() @ table
    known = {"row": table[6], "column": table[:, 6], "sum": table.sum(dim=0)}
    return next(name for name, vector in known.items() if torch.equal(vector, picked))


LESSON = Lesson(
    number=2,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.4",
    code=(
        CodeReference("attendo.model.embeddings", "ScaledEmbedding"),
        CodeReference("attendo.inspection.embeddings", "nearest_neighbors"),
    ),
    inputs=(
        Text(name="sentence", label=prose("input-sentence"), default=SENTENCE, most=60),
        Number(name="d_model", label=prose("input-d-model"), default=D_MODEL, low=2, high=512),
        Choice(
            name="word",
            label=prose("input-word"),
            default=PROBES[0],
            choices=tuple((word, word) for word in PROBES),
        ),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _dot_of_one_hots,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
        ),
        Question(
            prose("question-2"),
            _product_of_one_hot,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            choices=(
                ("row", prose("choice-row")),
                ("column", prose("choice-column")),
                ("sum", prose("choice-sum")),
            ),
        ),
        Question(
            prose("question-3"),
            _scale_of_256,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
        ),
    ),
    own_model_blocks=own_model_blocks,
)

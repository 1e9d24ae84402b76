"""Lesson 16: subwords; byte-pair merges by hand, unigram, unknown pieces, vocabulary size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.blocks import (
    Block,
    Formula,
    Frame,
    Note,
    Paragraph,
    Steps,
    Table,
)
from attendo.lessons.chapters.ch16_subwords.measurements import (
    D_MODEL,
    NUM_NEW_PAIRS,
    NUM_PAIRS,
    SMALL,
    cost_chart,
    count_vocabulary,
    encode_unknown,
    measure_costs,
    pieces_of,
    rank_splits,
    train,
)
from attendo.lessons.chapters.ch16_subwords.merges import (
    Merge,
    apply_merges,
    count_pairs,
    count_words,
    learn_merges,
    split_characters,
    split_word,
)
from attendo.lessons.inputs import Number, Text
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.text.tokenizer import SPACE_SYMBOL, UNK_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Row = list[Label | float | int | None]

prose = Prose("attendo.lessons.chapters.ch16_subwords")

CORPUS = (
    "low low low low low lower lower newest newest newest newest newest newest widest widest widest"
)
NEW_WORD = "lowest"
MERGES = 6
KOREAN_CORPUS = (
    "학교가 학교를 학교에서 공원이 공원을 공원에서 친구가 친구를 누나에게 동생이 동생을 동생에게 "
    "갔습니다 왔습니다 먹었습니다"
)
KOREAN_MERGES, KOREAN_WORD = 13, "친구에게"
UNKNOWN_TEXT = "나는 🐙을 봤다."
UNSPLIT = " "
MAX_ROWS = 12
NUM_CANDIDATES = 4


def build_blocks(corpus: str, merges: int, new_word: str) -> list[Block]:
    """Return why words are split, the merges of BPE, unigram, unknown pieces, and the costs."""
    learned = learn_merges(corpus, merges)
    return [
        *_why_section(),
        *_merge_section(corpus, learned),
        *_new_word_section(corpus, learned, new_word),
        *_korean_section(),
        *_unigram_section(),
        *_unknown_section(),
        *_size_section(),
    ]


def _why_section() -> list[Block]:
    counted = (
        (prose("korean"), count_vocabulary(0)),
        (prose("english"), count_vocabulary(1)),
    )
    rows: list[Row] = [
        [language, one.num_words, one.num_other, one.num_new] for language, one in counted
    ]
    return [
        Paragraph(prose("why")),
        Paragraph(prose("why-measured")),
        Table(
            [
                "",
                prose("distinct-words", count=NUM_PAIRS),
                prose("all-words", count=NUM_NEW_PAIRS),
                prose("new-words"),
            ],
            rows,
        ),
        Paragraph(prose("why-not-characters")),
    ]


def _merge_section(corpus: str, merges: Sequence[Merge]) -> list[Block]:
    num_tokens = sum(len(word) + 1 for word in corpus.split())
    return [
        Paragraph(prose("bpe", symbol=SPACE_SYMBOL)),
        merge_steps(corpus, merges),
        Paragraph(
            prose("merge-table", count=len(merges), start=num_tokens, end=merges[-1].num_tokens)
        ),
        Table(
            [prose("merge"), prose("pair"), prose("times"), prose("new-piece"), prose("length")],
            [
                [index, f"{one.left} + {one.right}", one.frequency, one.piece, one.num_tokens]
                for index, one in enumerate(merges, 1)
            ],
        ),
        Note(prose("ties")),
    ]


def merge_steps(corpus: str, merges: Sequence[Merge]) -> Steps:
    """Return every word of the corpus after each merge."""
    counts = count_words(corpus)
    frames = []
    for merge in merges:
        words = counts.most_common(MAX_ROWS)
        rows: list[Row] = [[word, count, UNSPLIT.join(merge.splits[word])] for word, count in words]
        second = merge.runner_up
        following = (
            prose("runner-up", pair=f"{second[0]} + {second[1]}", count=second[2])
            if second
            else prose("no-runner-up")
        )
        frames.append(
            Frame(
                prose(
                    "merge-number",
                    pair=f"{merge.left} + {merge.right}",
                    piece=merge.piece,
                    count=merge.frequency,
                ),
                [
                    Table([prose("word"), prose("times"), prose("pieces")], rows),
                    Paragraph(following),
                ],
            )
        )
    return Steps(prose("merges-of-corpus"), frames)


def _new_word_section(corpus: str, merges: Sequence[Merge], new_word: str) -> list[Block]:
    characters = {SPACE_SYMBOL, *"".join(corpus.split())}
    words = new_word.split()
    rows: list[Row] = []
    for word in words:
        rows.append(["", UNSPLIT.join(split_characters(word))])
        rows += [
            [f"{merge.left} + {merge.right}", UNSPLIT.join(split)]
            for merge, split in apply_merges(word, merges)
        ]
    split = [piece for word in words for piece in split_word(word, merges)]
    ids = UNSPLIT.join(piece if set(piece) <= characters else "<unk>" for piece in split)
    is_known = all(word in corpus.split() for word in words)
    return [
        Paragraph(
            prose("known-word", word=new_word) if is_known else prose("new-word", word=new_word)
        ),
        Table([prose("merge"), prose("pieces")], rows),
        Paragraph(prose("result", word=new_word, pieces=ids, count=len(split))),
    ]


def _korean_section() -> list[Block]:
    merges = learn_merges(KOREAN_CORPUS, KOREAN_MERGES)
    words = list(count_words(KOREAN_CORPUS))
    rows: list[Row] = [[word, UNSPLIT.join(merges[-1].splits[word])] for word in words]
    return [
        Paragraph(prose("korean-words", count=len(words), merges=len(merges))),
        Table([prose("word"), prose("pieces")], rows),
        Paragraph(
            prose(
                "korean-result",
                word=KOREAN_WORD,
                pieces=UNSPLIT.join(split_word(KOREAN_WORD, merges)),
            )
        ),
    ]


def _unigram_section() -> list[Block]:
    bpe, unigram = train("bpe", SMALL), train("unigram", SMALL)
    sentence = _example_sentences()
    rows: list[Row] = []
    for text in sentence:
        rows += [
            [name, len(pieces), UNSPLIT.join(pieces)]
            for name, pieces in (
                ("BPE", pieces_of(bpe, text)),
                ("unigram", pieces_of(unigram, text)),
            )
        ]
    word = "함께"
    candidates = rank_splits(word, NUM_CANDIDATES)
    ranked: list[Row] = [[UNSPLIT.join(one.pieces), one.log_prob] for one in candidates]
    return [
        Paragraph(prose("unigram")),
        Formula("P(x₁ … xₙ) = p(x₁) · p(x₂) · … · p(xₙ)"),
        Table([prose("split"), "log P"], ranked, digits=2),
        Paragraph(prose("unigram-and-bpe", size=SMALL, pairs=NUM_PAIRS)),
        Table([prose("method"), prose("tokens"), prose("pieces")], rows),
    ]


def _example_sentences() -> tuple[str, str]:
    """Return a sentence of the corpus in both languages."""
    return "나는 친구와 함께 학교에 갔다.", "I went to school with my friend."


def _unknown_section() -> list[Block]:
    plain, with_bytes = (
        encode_unknown(UNKNOWN_TEXT, byte_fallback=is_on) for is_on in (False, True)
    )
    rows: list[Row] = [
        [label, UNSPLIT.join(one.pieces), one.decoded]
        for label, one in (
            (prose("without-bytes"), plain),
            (prose("with-bytes"), with_bytes),
        )
    ]
    return [
        Paragraph(prose("unknown", unk_id=UNK_ID)),
        Table(["", prose("pieces"), prose("decoded")], rows),
        Note(prose("restored")),
    ]


def _size_section() -> list[Block]:
    rows: list[Row] = [
        [one.label, one.vocab_size, one.num_ko, one.num_en, one.num_unknown]
        for one in measure_costs()
    ]
    tables = [one.num_parameters for one in measure_costs() if one.label.startswith("bpe")]
    words = measure_costs()[-1]
    return [
        Paragraph(prose("size-and-length", count=NUM_NEW_PAIRS)),
        cost_chart(),
        Table(
            [
                prose("method"),
                prose("vocabulary-size"),
                prose("tokens-of", language=prose("korean")),
                prose("tokens-of", language=prose("english")),
                prose("unknown-pieces"),
            ],
            rows,
            digits=1,
        ),
        Paragraph(
            prose(
                "size-choice",
                unknown=words.num_unknown,
                d_model=D_MODEL,
                small=tables[0],
                large=tables[-1],
            )
        ),
    ]


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return how the learner's tokenizer splits their sentence, word by word."""
    tokenizer = translator.tokenizer
    ids = tokenizer.encode_src([text])[0]
    pieces = tokenizer.src_pieces(ids)
    words = text.split()
    rows: list[Row] = [
        [piece, number, prose("is-unknown") if number == UNK_ID else ""]
        for piece, number in zip(pieces, ids, strict=True)
    ]
    by_word: list[Row] = [
        [word, UNSPLIT.join(tokenizer.src_pieces(tokenizer.encode_src([word])[0][:-1]))]
        for word in dict.fromkeys(words)
    ]
    return [
        Paragraph(
            prose(
                "own-tokenizer",
                kind=str(tokenizer.kind),
                size=tokenizer.src_vocab_size,
                text=text,
                words=len(words),
                tokens=len(ids) - 1,
                mean=(len(ids) - 1) / len(words),
            )
        ),
        Table([prose("word"), prose("pieces")], by_word),
        Table([prose("piece"), "id", ""], rows),
    ]


def _count_of_first_pair() -> float:
    counts = count_words(CORPUS)
    splits = {word: split_characters(word) for word in counts}
    return count_pairs(splits, counts)["e", "s"]


def _effect_of_larger_vocabulary() -> str:
    costs = [one for one in measure_costs() if one.label.startswith("bpe")]
    small, large = costs[0].num_ko, costs[-1].num_ko
    return "shorter" if large < small else "longer" if large > small else "same"


def _pieces_of_emoji() -> float:
    pieces = encode_unknown("🐙", byte_fallback=True).pieces
    return float(sum(piece.startswith("<0x") for piece in pieces))


LESSON = Lesson(
    number=16,
    title=prose("title"),
    summary=prose("summary"),
    paper="5.1",
    code=(
        CodeReference("attendo.text.tokenizer", "Tokenizer"),
        CodeReference("attendo.data.tokenizer_training", "train_tokenizer"),
    ),
    inputs=(
        Text(name="corpus", label=prose("input-corpus"), default=CORPUS),
        Number(name="merges", label=prose("input-merges"), default=MERGES, low=1, high=20),
        Text(name="new_word", label=prose("input-new-word"), default=NEW_WORD, most=30),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            _count_of_first_pair,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
        ),
        Question(
            prose("question-2"),
            _effect_of_larger_vocabulary,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            choices=(
                ("longer", prose("choice-longer")),
                ("same", prose("choice-same")),
                ("shorter", prose("choice-shorter")),
            ),
        ),
        Question(
            prose("question-3"),
            _pieces_of_emoji,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
        ),
    ),
    own_model_blocks=own_model_blocks,
)

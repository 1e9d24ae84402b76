from __future__ import annotations

import io
import logging
import re

import pytest
from rich.console import Console

from attendo.core.message import join_messages, message
from attendo.tasks.report import cleaning_table_lines
from attendo.training import progress
from attendo.training.progress import NullReporter, ProgressReporter


@pytest.fixture
def plain() -> Console:
    return Console(file=io.StringIO(), width=200)


def lines(console: Console) -> list[str]:
    return console.file.getvalue().splitlines()


def test_a_plain_line_now_and_then(plain, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with ProgressReporter(plain) as bar:
        for step in range(1, 31):
            now[0] += 1.0
            bar.step(step, 30, {"loss": f"{step}.0", "tok/s": "9"})
    assert lines(plain) == [
        "training 1/30  loss 1.0  tok/s 9",
        "training 12/30  loss 12.0  tok/s 9  0:00:18 left",
        "training 23/30  loss 23.0  tok/s 9  0:00:07 left",
        "training 30/30  loss 30.0  tok/s 9",
    ]


def test_stages_follow_each_other(plain):
    with ProgressReporter(plain) as bar:
        bar.stage("clean", 0, None)
        bar.stage("clean", 5, None)
        bar.stage("tokenize", 1, 1003)
        bar.stage("tokenize", 1003, 1003)
        assert len(bar.progress.tasks) == 1
    assert lines(plain) == ["cleaning ...", "tokenizing 1/1,003", "tokenizing 1,003/1,003"]


def test_messages_are_printed_unchanged(plain):
    with ProgressReporter(plain) as bar:
        bar.message("dev [bold]loss[/] 1.0 [x]")
    assert lines(plain) == ["dev [bold]loss[/] 1.0 [x]"]


ROWS = [
    {"what": "read", "num_pairs": 1003, "example": ""},
    {"what": "duplicate", "num_pairs": 3, "example": "가 | a"},
    {"what": "shares a side with dev", "num_pairs": 1, "example": "kept | read"},
]


def test_korean_from_the_first_stage_to_the_last_line(plain):
    with ProgressReporter(plain, lang="ko") as bar:
        bar.stage("clean", 5, None)
        bar.stage("fetching x.gz", 1, 1)
        bar.step(30, 30, {"loss": "1.5", "tok/s": "9", "lr": "1e-3"})
        template = "data: {num_train} pairs to train on, {num_dev} for dev"
        bar.message(message(template, num_train="1,000", num_dev=20))
        for line in cleaning_table_lines({"corpora": [{"rows": ROWS}]}):
            bar.message(line)
        template = "vocabulary: {src} and {tgt} ({kind})"
        bar.message(message(template, src="8,000", tgt="9,000", kind="bpe"))
        scores = {"loss": 1.5, "perplexity": 4.482, "accuracy": 0.7, "bleu": 12.0}
        template = "{name} {value:.3f}"
        columns = [message(template, name=message(key), value=scores[key]) for key in scores]
        detail = join_messages("  ", columns)
        bar.message(message("step {step}: dev {detail}", step=30, detail=detail))
        bar.message("nobody knows this [x]")
    assert lines(plain) == [
        "말뭉치를 정리하는 중 5",
        "fetching x.gz 1/1",
        "학습 30/30  손실 1.5  초당 토큰 9  학습률 1e-3",
        "데이터: 학습에 1,000쌍, 개발 집합(dev)에 20쌍",
        "      1,003  읽음",
        "          3  되풀이됨                    가 | a",
        "          1  개발 집합과 한쪽이 같음     kept | read",
        "어휘: 원문 8,000개, 번역문 9,000개 (bpe)",
        "30스텝, 개발 집합: 손실 1.500  퍼플렉서티 4.482  정확도 0.700  BLEU 12.000",
        "nobody knows this [x]",
    ]


def test_every_stage_has_a_korean_name(plain):
    with ProgressReporter(plain, lang="ko") as bar:
        for name in progress.STAGE_LABELS:
            bar.stage(name, 1, 1)
    assert not [line for line in lines(plain) if re.search("[a-z]{4}", line)]


def test_a_terminal_gets_a_bar():
    console = Console(file=io.StringIO(), width=160, force_terminal=True)
    with ProgressReporter(console) as bar:
        bar.step(3, 30, {"loss": "1.5"})
        bar.step(4, 30, {"loss": "1.5"})
        bar.message("a line")
    shown = console.file.getvalue()
    for part in ("training", "4/30", "loss 1.5", "a line", "left"):
        assert part in shown


def test_the_null_reporter_shows_nothing_and_logs_messages(capsys, caplog):
    quiet = NullReporter()
    quiet.stage("a", 1, 2)
    quiet.step(1, 2, {})
    with caplog.at_level(logging.INFO, logger="attendo"):
        quiet.message("worth a line")
    assert caplog.messages == ["worth a line"]
    assert capsys.readouterr() == ("", "")

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from attendo.bench.config import TrainingBenchConfig
from attendo.bench.workload import make_workloads, single_process
from attendo.core.errors import InputError
from attendo.tasks.text_task import make_plan
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID
from attendo.training.config import TrainConfig


def test_equal_lengths_fill_every_batch_without_padding(work, config):
    assert len(work.batches) >= 6
    for rows in work.batches:
        batch = work.plan.read(rows)
        assert batch.src_ids.shape == (6, 7)
        assert batch.labels.shape == (6, 5)
        assert (batch.src_ids[:, -1] == END_ID).all()
        assert (batch.labels[:, -1] == END_ID).all()
        assert (batch.tgt_ids[:, 0] == START_ID).all()
        words = batch.src_ids[:, :-1]
        assert ((words > END_ID) & (words < config.actual_vocab_size)).all()
    assert work.count_tokens(work.batches[:2]) == 2 * 6 * 5


def test_the_same_seed_samples_the_same(config, tmp_path):
    ids = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        work = make_workloads(config, config.build_model(), tmp_path / name, num_batches=3).theirs
        ids.append(work.plan.read(work.batches[0]).src_ids)
    assert ids[0].equal(ids[1])


@pytest.fixture
def real(texts, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "cache"))
    return TrainingBenchConfig(size="tiny", corpus=texts, batch_tokens=120, vocab_size=5000)


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_corpus_keeps_its_lengths(real, tmp_path, side):
    work = getattr(make_workloads(real, real.build_model(), tmp_path, num_batches=5), side)
    lengths = work.plan.tgt_lengths
    assert len(set(lengths.tolist())) > 3
    for rows in work.batches:
        batch = work.plan.read(rows)
        assert work.count_tokens([rows]) == int(batch.labels.ne(PAD_ID).sum()) <= 120
    some = work.read_sample(3)
    found = some.labels.ne(PAD_ID).sum(1)
    own = lengths[work.batches[0]]
    assert (int(found.min()), int(found.max())) == (own.min(), own.max())
    assert len(some.labels) == 3


def test_both_sides_have_the_same_sentences(real, tmp_path):
    """Ours as `attendo train` plans them; the peers' within the budget, padding counted."""
    work = make_workloads(real, real.build_model(), tmp_path, num_batches=5)
    ours, theirs = (sorted(np.concatenate(one.batches)) for one in (work.ours, work.theirs))
    assert ours == theirs
    for rows in work.theirs.batches:
        assert work.theirs.plan.read(rows).labels.numel() <= 120
    plan = make_plan(
        TrainConfig(batch_tokens=120),
        SimpleNamespace(train=list(zip(work.ours.plan.corpora, [1.0], strict=True))),
        real.build_model(),
        single_process(torch.device("cpu")),
    )
    assert type(work.ours.plan) is type(plan)
    assert all(
        a.tolist() == b.tolist() for a, b in zip(work.ours.batches, plan.epoch(0), strict=True)
    )


def test_a_corpus_that_is_too_small(real, tmp_path):
    with pytest.raises(InputError, match=r"batches of 120 tokens, 9999 are needed") as caught:
        make_workloads(real, real.build_model(), tmp_path, num_batches=9999)
    assert "--steps" in str(caught.value)


def test_a_vocabulary_that_is_too_small(real, tmp_path):
    with pytest.raises(InputError, match="vocabulary of") as caught:
        make_workloads(real.replace(vocab_size=20), real.build_model(), tmp_path, num_batches=2)
    assert "--vocab" in str(caught.value)


def test_a_corpus_that_is_not_there(tmp_path):
    config = TrainingBenchConfig(size="tiny", corpus=(tmp_path / "no.en", tmp_path / "no.de"))
    with pytest.raises(InputError, match=r"no\.en"):
        make_workloads(config, config.build_model(), tmp_path, num_batches=2)

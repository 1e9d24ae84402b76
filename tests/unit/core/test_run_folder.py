from __future__ import annotations

import json

import pytest

from attendo.core.errors import AttendoError, InputError
from attendo.core.run_folder import ModelFolder, RunFolder, migrate_settings
from attendo.tasks.config import RunConfig
from attendo.training.config import TrainConfig

OLD_CONFIG = {
    "data": {"corpora": [{"src": "a.ko", "tgt": "a.en"}], "subword_samples": 8},
    "series": None,
    "model": {"kind": "transformer", "preset": "tiny", "init_from": None, "d_model": 64},
    "train": {
        "max_steps": 12,
        "accumulate": 2,
        "consistency": 1.0,
        "rate_scale": 0.7,
        "peak_rate": 0.001,
        "pack": False,
        "graph": False,
        "shard": True,
    },
}
"""As runs stored it before training settings were renamed."""


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def test_an_empty_folder_has_nothing(folder):
    assert not folder.exists()
    assert not folder.is_finished()
    assert not folder.model.exists()
    assert (folder.read_events(), folder.read_report(), folder.read_data()) == ([], {}, {})
    assert (folder.checkpoint_steps(), folder.newest_checkpoint()) == ([], None)
    with pytest.raises(InputError, match="cannot read"):
        folder.read_config()


def test_a_stored_config_with_old_names_still_loads(folder):
    folder.path.mkdir()
    folder.config_path.write_text(json.dumps(OLD_CONFIG))
    train = RunConfig(**folder.read_config()).train
    assert train == TrainConfig(
        max_steps=12,
        accumulation_steps=2,
        rdrop_weight=1.0,
        lr_scale=0.7,
        peak_lr=0.001,
        sequence_packing=False,
        cuda_graph=False,
        fsdp=True,
    )


def test_the_config_of_an_old_report_is_migrated_too(folder):
    folder.path.mkdir()
    folder.report_path.write_text(json.dumps({"dev": {"bleu": 30.0}, "config": OLD_CONFIG}))
    report = folder.read_report()
    assert report["config"]["train"]["rdrop_weight"] == 1.0
    assert report["dev"] == {"bleu": 30.0}


def test_current_settings_do_not_change():
    settings = RunConfig(data=OLD_CONFIG["data"]).model_dump(mode="json")
    assert migrate_settings(settings) == settings
    assert migrate_settings({"train": 3, "data": [], "graph": 1}) == {
        "train": 3,
        "data": [],
        "graph": 1,
    }


def test_the_newest_checkpoint_is_that_of_the_highest_step(folder):
    for name in ("step_9", "step_10", "step_x", "broken_step_11", ".step_12.partial"):
        (folder.checkpoints_dir / name).mkdir(parents=True)
    assert folder.checkpoint_steps() == [9, 10]
    assert folder.newest_checkpoint() == folder.checkpoints_dir / "step_10"


def test_events_end_at_a_line_that_a_crash_has_cut(folder):
    folder.path.mkdir()
    folder.log_path.write_text('{"step": 1}\n{"step": 2}\n{"ste')
    assert folder.read_events() == [{"step": 1}, {"step": 2}]


def test_a_model_is_found_by_its_own_folder_and_by_its_run(folder):
    model = folder.model
    model.path.mkdir(parents=True)
    model.index_path.write_text('{"kind": "transformer"}')
    assert ModelFolder.find(folder.path) == ModelFolder.find(model.path) == model
    assert model.read_index() == {"kind": "transformer"}
    assert ModelFolder.find(folder.path / "nowhere").path == folder.path / "nowhere"


def test_a_second_process_cannot_lock_the_folder(folder):
    folder.path.mkdir()
    with folder.lock(), pytest.raises(AttendoError, match="another process"), folder.lock():
        pass

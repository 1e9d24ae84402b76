"""The files of `examples/cluster`: schemas, shell syntax, and commands that exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from attendo.cli.main import build_app

FOLDER = Path(__file__).parents[2] / "examples" / "cluster"
SKYPILOT_FILES = ("skypilot_translate.yaml", "skypilot_train.yaml")
SKYPILOT_KEYS = {"name", "num_nodes", "resources", "workdir", "envs", "setup", "run"}
COMMAND = re.compile(r"attendo (train|translate|serve) ([^|;#\n]*)")
TORCHRUN_OPTIONS = {
    "--nnodes", "--nproc-per-node", "--max-restarts", "--rdzv-backend", "--rdzv-id",
    "--rdzv-endpoint",
}  # fmt: skip


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


needs_schemas = pytest.mark.skipif(
    find_spec("kubernetes_validate") is None, reason="needs the 100 MB of kubernetes-validate"
)


def validate(document: dict[str, Any]) -> None:
    import kubernetes_validate

    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def as_pod(template: dict[str, Any]) -> dict[str, Any]:
    """Return a pod of a template, for kinds whose own schema Kubernetes does not have."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": template["spec"]}


@needs_schemas
def test_the_server_is_valid_and_its_parts_belong_together():
    found = documents("kubernetes_serve.yaml")
    for document in found:
        validate(document)
    deployment, service, budget, scaler = found
    pod = deployment["spec"]["template"]
    for selector in (deployment["spec"]["selector"]["matchLabels"], service["spec"]["selector"],
                     budget["spec"]["selector"]["matchLabels"]):  # fmt: skip
        assert selector.items() <= pod["metadata"]["labels"].items()
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    (container,) = pod["spec"]["containers"]
    options = dict(one.split("=") for one in container["args"] if "=" in one)
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["spec"]["terminationGracePeriodSeconds"] > int(options["grace"]) + pause
    volumes = {one["name"] for one in pod["spec"]["volumes"]}
    assert {one["name"] for one in container["volumeMounts"]} == volumes


def test_the_autoscaler_reads_a_metric_of_the_server():
    from attendo.serving.metrics import Metrics

    scaler = documents("kubernetes_serve.yaml")[-1]
    name = scaler["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert name in {one.name for one in Metrics().registry.collect()}


@needs_schemas
def test_the_training_and_the_ray_job_have_valid_jobs_and_pods():
    (job_set,) = documents("kubernetes_train.yaml")
    assert (job_set["apiVersion"], job_set["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    (job,) = job_set["spec"]["replicatedJobs"]
    assert set(job) == {"name", "replicas", "template"}
    template = job["template"]
    validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, **template})
    arguments = template["spec"]["template"]["spec"]["containers"][0]["args"]
    host = f"{job_set['metadata']['name']}-{job['name']}-0-0.{job_set['metadata']['name']}:"
    assert any(host in one for one in arguments)
    assert f"--nnodes={template['spec']['parallelism']}" in arguments
    (ray_job,) = documents("kuberay_translate.yaml")
    cluster = ray_job["spec"]["rayClusterSpec"]
    workers = cluster["workerGroupSpecs"]
    for group in (cluster["headGroupSpec"], *workers):
        validate(as_pod(group["template"]))
    limits = workers[0]["template"]["spec"]["containers"][0]["resources"]["limits"]
    count = workers[0]["maxReplicas"] * int(limits["nvidia.com/gpu"])
    assert f"--workers {count}" in ray_job["spec"]["entrypoint"]


@pytest.mark.parametrize("name", SKYPILOT_FILES)
def test_the_skypilot_task_has_known_keys(name):
    (task,) = documents(name)
    assert set(task) <= SKYPILOT_KEYS
    assert set(task["envs"]) == set(re.findall(r'"\$([A-Z]+)"', task["run"]))


def scripts() -> dict[str, str]:
    texts = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.sh")}
    for name in SKYPILOT_FILES:
        (task,) = documents(name)
        texts |= {f"{name} {key}": task[key] for key in ("setup", "run")}
    return texts


@pytest.mark.parametrize("name", sorted(scripts()))
def test_the_shell_understands_the_scripts(name, tmp_path):
    path = tmp_path / "script.sh"
    path.write_text(scripts()[name])
    checks = [["bash", "-n", str(path)]]
    if shutil.which("shellcheck"):
        checks.append(["shellcheck", "--shell=bash", str(path)])
    for words in checks:
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def commands() -> list[list[str]]:
    """Return every command of attendo in the files."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir())}
    found = [
        [verb, *shlex.split(words.rstrip("&"), posix=True)]
        for text in texts.values()
        for verb, words in COMMAND.findall(text)
    ]
    for name in ("kubernetes_serve.yaml", "kubernetes_train.yaml"):
        for document in documents(name):
            text = str(document)
            if "args" in text:
                words = re.search(r"'args': \[(.*?)\]", text)
                assert words is not None
                listed = [one.strip(" '") for one in words[1].split(",")]
                found.append(listed[listed.index("attendo") + 1 :])
    return found


def test_the_commands_have_the_options_that_the_files_use():
    found = commands()
    assert len(found) >= 7
    for verb, *words in found:
        command = typer.main.get_command(build_app(verb)).commands[verb]
        known = {option for one in command.params for option in one.opts}
        used = {word.split("=")[0] for word in words if word.startswith("-")}
        assert used <= known, (verb, used - known)


def test_torchrun_has_the_options_that_the_files_use():
    from torch.distributed.run import get_args_parser

    known = {option for one in get_args_parser()._actions for option in one.option_strings}
    assert known >= TORCHRUN_OPTIONS
    for name in ("slurm_train.sh", "kubernetes_train.yaml"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert set(re.findall(r"--(?:nnodes|nproc-per-node|max-restarts|rdzv-\w+)", text)) == (
            TORCHRUN_OPTIONS
        )

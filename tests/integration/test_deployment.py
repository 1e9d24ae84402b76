"""The unit file and the container file of the guide: what they say, and a run in such a sandbox."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest

from attendo.bundle import build_model, save_bundle
from attendo.data.tokenizer_training import train_tokenizer
from attendo.serving.config import ServeConfig
from attendo.serving.transport.uvicorn_server import EXIT_SECONDS, HANDSHAKE_SECONDS
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.tokenizer import TokenizerConfig

GUIDE = Path(__file__).parents[2] / "docs/guides/serve.md"
USER_ID = 64_321
PATIENCE = 600.0
MOUNTED = "/tmp/mounted"  # noqa: S108 - in the sandbox
SANDBOX = """
mount --make-rprivate / && mount --bind / "$ROOT" && mount -o remount,bind,ro "$ROOT"
mount --rbind /dev "$ROOT/dev" && mount --bind /proc "$ROOT/proc"
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/tmp"
for folder in $WRITABLE; do
    mount -t tmpfs -o mode=0755,uid=$USER_ID tmpfs "$ROOT$folder"
done
for folder in $CODE; do  # a clone or an environment in the /tmp that the sandbox does not see
    mkdir -p "$ROOT$folder" && mount --bind "$folder" "$ROOT$folder"
done
mkdir -p "$ROOT/tmp/mounted" && mount --bind "$MODEL" "$ROOT/tmp/mounted"
exec chroot "$ROOT" setpriv --reuid $USER_ID --regid $USER_ID --clear-groups --no-new-privs "$@"
"""
"""A read-only root, an empty /tmp, another user: as both files ask for."""


def read_block(language: str) -> str:
    """Return the only code block of a language."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    return block


@pytest.fixture
def unit() -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string(read_block("ini"))
    return parser


@pytest.fixture
def instructions() -> dict[str, str]:
    """The last instruction of each kind in the container file."""
    lines = (line.partition(" ") for line in read_block("dockerfile").splitlines())
    return {name: value for name, _, value in lines}


def test_the_unit_waits_for_the_end_and_has_files_and_a_cache(unit):
    service, config = unit["Service"], ServeConfig(models=["x"])
    assert int(service["TimeoutStopSec"]) > config.grace + HANDSHAKE_SECONDS + EXIT_SECONDS
    assert int(service["LimitNOFILE"]) >= config.max_connections
    assert service["CacheDirectory"] == "attendo"
    assert "kill -HUP" in service["ExecReload"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path):
    text = read_block("ini").replace("/opt/attendo/bin/attendo", sys.executable)
    path = tmp_path / "attendo.service"
    path.write_text(text)
    words = ["systemd-analyze", "verify", "--man=no", str(path)]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "attendo.service" not in found.stderr, found.stderr


def test_the_container_file_names_commands_that_exist(instructions):
    assert json.loads(instructions["CMD"])[:2] == ["attendo", "serve"]
    check = json.loads(instructions["HEALTHCHECK"].partition("CMD ")[2])
    assert check[:2] == ["python", "-c"]
    compile(check[2], "HEALTHCHECK", "exec")
    assert "ATTENDO_CACHE=/tmp" in instructions["ENV"]
    assert instructions["USER"] != "root"


def can_sandbox() -> bool:
    tools = all(map(shutil.which, ("unshare", "setpriv", "chroot", "mount")))
    if not tools or os.geteuid() != 0:
        return False
    words = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.fixture
def model_folder(tmp_path) -> Path:
    paths = [tmp_path / name for name in ("ko", "en")]
    for path in paths:
        lines = [getattr(pair, path.name) for pair in synthesize_pairs(300, seed=1)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = train_tokenizer(*paths, TokenizerConfig(vocab_size=700), num_pairs=300, seed=1)
    sizes: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
    model = build_model("transformer", sizes, tokenizer)
    save_bundle(tmp_path / "m/ko-en", model, tokenizer, about={"src_lang": "ko", "tgt_lang": "en"})
    return tmp_path / "m"


@pytest.mark.slow
@pytest.mark.skipif(not can_sandbox(), reason="needs root and mount namespaces")
@pytest.mark.parametrize("kind", ["unit", "container"])
def test_the_server_runs_in_the_sandbox(kind, unit, instructions, model_folder, tmp_path):
    if kind == "unit":
        words = shlex.split(unit["Service"]["ExecStart"])
        environment, writable = unit["Service"]["Environment"], "/var/cache"
    else:
        words = json.loads(instructions["CMD"])
        environment, writable = instructions["ENV"], ""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [word for word in words[3:] if word not in ("--port", "8765")]
    command = [sys.executable, "-m", "attendo", "serve", f"{MOUNTED}/ko-en", *options]
    (tmp_path / "root").mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", str(Path(__file__).parents[2] / "src")),
        "OMP_NUM_THREADS": "1",
        **dict([environment.split("=", 1)]),
    }
    outer = {**env, "ROOT": str(tmp_path / "root"), "MODEL": str(model_folder)}
    outer |= {"WRITABLE": writable, "USER_ID": str(USER_ID)}
    code = {str(Path(__file__).parents[2]), sys.prefix}
    outer["CODE"] = " ".join(sorted(one for one in code if one.startswith("/tmp/")))  # noqa: S108
    log_file = (tmp_path / "log").open("w")
    process = subprocess.Popen(
        ["unshare", "-m", "sh", "-ec", SANDBOX, "sh", *command, "--port", str(port)],
        env=outer,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=log_file,
        text=True,
    )
    try:
        line = process.stdout.readline()
        log = (tmp_path / "log").read_text()
        assert str(port) in line, log
        check = json.loads(instructions["HEALTHCHECK"].partition("CMD ")[2])
        subprocess.run(
            [sys.executable, "-c", check[2].replace("8765", str(port))], check=True, env=env
        )
        body = json.dumps({"text": "나는 학생이다."}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/translate", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            assert answer.status == 200
        log = (tmp_path / "log").read_text()
        assert "engine 'ctranslate2'" in log, log
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait(PATIENCE)
        process.stdout.close()
        log_file.close()

"""Training on two machines under elastic torchrun: one dies and comes back.

The machines are network namespaces of this host, each with an address of its own. They share the
file system, as machines with a network drive do.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

import pytest
import torch

pytestmark = pytest.mark.slow

ADDRESSES = ("10.123.7.1", "10.123.7.2")
PORT = 29_511
PATIENCE_SECONDS = 600.0
NUM_STEPS = 120
TOLERANCE = 1e-4
"""Of losses and weights, where one machine trained alone for some steps."""


def run_ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@dataclass
class Machine:
    """A network namespace with an address."""

    name: str
    address: str
    interface: str

    def start(self, arguments: list[str], environment: dict[str, str]) -> Agent:
        """Start a command in it."""
        variables = {
            **os.environ,
            **environment,
            "GLOO_SOCKET_IFNAME": self.interface,
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.name, sys.executable, *arguments],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return Agent(self, process)

    def kill_all(self) -> None:
        """End every process in it at once, as a power failure does."""
        listing = ["ip", "netns", "pids", self.name]
        found = subprocess.run(listing, check=False, capture_output=True, text=True).stdout
        for number in found.split():
            try:
                os.kill(int(number), signal.SIGKILL)
            except ProcessLookupError:
                continue


@dataclass
class Agent:
    """torchrun on a machine."""

    machine: Machine
    process: subprocess.Popen[str]
    output: tuple[str, str] = field(default=("", ""))

    def end(self) -> None:
        """Wait for its end, which must be a success."""
        self.output = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert self.process.returncode == 0, "\n".join(self.output)


@pytest.fixture(scope="module")
def machines():
    """Two machines that are connected with each other."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need root and iproute2")
    made = [
        Machine(f"attendo-{os.getpid()}-{number}", address, f"att{os.getpid() % 100_000}{letter}")
        for number, (address, letter) in enumerate(zip(ADDRESSES, "ab", strict=True))
    ]
    one, two = made
    try:
        run_ip("netns", "add", one.name)
        run_ip("netns", "add", two.name)
        run_ip("link", "add", one.interface, "type", "veth", "peer", "name", two.interface)
        for machine in made:
            run_ip("link", "set", machine.interface, "netns", machine.name)
            inside = ("-n", machine.name)
            run_ip(*inside, "addr", "add", f"{machine.address}/24", "dev", machine.interface)
            run_ip(*inside, "link", "set", machine.interface, "up")
            run_ip(*inside, "link", "set", "lo", "up")
    except subprocess.CalledProcessError as error:
        remove(made)
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
    yield made
    remove(made)


def remove(machines: list[Machine]) -> None:
    for machine in machines:
        machine.kill_all()
        subprocess.run(["ip", "netns", "del", machine.name], check=False, capture_output=True)


@pytest.fixture
def start(machines, training, tmp_path):
    """Start the training on a machine: `start(machine, nodes, name)`."""
    command = training.having(f"train.max_steps={NUM_STEPS}")

    def call(machine: Machine, nodes: str, name: str, *settings: str) -> Agent:
        launcher = [
            *("-m", "torch.distributed.run", "--nnodes", nodes, "--nproc-per-node", "1"),
            *("--max-restarts", "5", "--rdzv-backend", "c10d", "--rdzv-id", name),
            *("--rdzv-endpoint", f"{ADDRESSES[0]}:{PORT}", "--local-addr", machine.address),
            *("--rdzv-conf", "last_call_timeout=2,keep_alive_interval=1,"
              f"is_host={int(machine is machines[0])}"),
        ]  # fmt: skip
        words = command.having(*settings)._arguments(tmp_path / name, ["--device", "cpu"])
        return machine.start([*launcher, "-m", "attendo", *words], command._environment)

    yield call
    for machine in machines:
        machine.kill_all()


def wait_for_step(folder, step: int, agents: list[Agent]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while folder.newest_step < step:
        for agent in agents:
            if agent.process.poll() is not None:
                output = "\n".join(agent.process.communicate())
                pytest.fail(f"{agent.machine.name} has ended:\n{output}")
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    "settings", [(), ("train.fsdp=true", "train.sequence_packing=false")], ids=["ddp", "fsdp"]
)
def test_a_machine_that_dies_and_comes_back_changes_no_bit(
    machines, start, open_run, tmp_path, settings
):
    first, second = machines
    undisturbed = [start(machine, "2", "undisturbed", *settings) for machine in machines]
    for agent in undisturbed:
        agent.end()
    agents = [start(machine, "2", "disturbed", *settings) for machine in machines]
    folder = open_run(tmp_path / "disturbed")
    wait_for_step(folder, 30, agents)
    second.kill_all()
    agents[1].process.communicate()
    assert folder.newest_step < NUM_STEPS
    agents[1] = start(second, "2", "disturbed", *settings)
    for agent in agents:
        agent.end()
    output = "".join(text for agent in agents for text in agent.output)
    assert "resuming from step" in output
    assert folder.outcome == open_run(tmp_path / "undisturbed").outcome
    assert first.address != second.address


def test_one_machine_goes_on_alone(machines, start, open_run, tmp_path):
    calm = ("model.dropout=0",)
    alone = [start(machine, "2", "both", *calm) for machine in machines]
    for agent in alone:
        agent.end()
    agents = [start(machine, "1:2", "one", *calm) for machine in machines]
    folder = open_run(tmp_path / "one")
    wait_for_step(folder, 30, agents)
    machines[1].kill_all()
    agents[1].process.communicate()
    assert folder.newest_step < NUM_STEPS
    agents[0].end()
    other = open_run(tmp_path / "both")
    assert folder.newest_step == other.newest_step == NUM_STEPS
    steps, ours = zip(*folder.losses, strict=True)
    assert steps == tuple(range(1, NUM_STEPS + 1))
    assert ours == pytest.approx([loss for _, loss in other.losses], rel=10 * TOLERANCE)
    for name, tensor in folder.weights.items():
        if not name.endswith("key.bias"):
            torch.testing.assert_close(tensor, other.weights[name], rtol=0, atol=10 * TOLERANCE)

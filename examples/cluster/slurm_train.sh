#!/bin/bash
# Trains on the machines of a Slurm allocation with torchrun. A machine that dies is waited for; the run
# goes on from its last checkpoint. Submit the script again after the time limit.
#
#   sbatch slurm_train.sh run.toml /shared/runs/mine
#SBATCH --job-name=attendo-train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --exclusive
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@120
set -euo pipefail

config=$1 out=$2
head_host=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# A new store at every restart (docs/guides/scale.md).
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
srun --kill-on-bad-exit=0 torchrun --nnodes="$SLURM_NNODES" --nproc-per-node=8 --max-restarts=5 \
    --rdzv-backend=c10d --rdzv-id="$SLURM_JOB_ID" --rdzv-endpoint="$head_host:29500" \
    -m attendo train "$config" --out "$out"

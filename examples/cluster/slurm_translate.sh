#!/bin/bash
# Translates files on the machines of a Slurm allocation: one Ray node per machine, then the command.
# Submit it again after the time limit: what is written is kept.
#
#   sbatch slurm_translate.sh runs/ko-en '/shared/mono/*.ko.gz' /shared/out
#SBATCH --job-name=attendo-translate
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --exclusive
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@120
set -euo pipefail

model=$1 input=$2 output=$3
port=6379
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head_address=$(srun --nodes=1 --ntasks=1 --nodelist="${hosts[0]}" hostname --ip-address | awk '{print $1}')
export RAY_USAGE_STATS_ENABLED=0

# `--block` keeps the Slurm steps alive; they end with the job.
srun --nodes=1 --ntasks=1 --nodelist="${hosts[0]}" --overlap \
    ray start --head --node-ip-address="$head_address" --port="$port" --include-dashboard=false --block &
if ((${#hosts[@]} > 1)); then
    others=$(IFS=,; echo "${hosts[*]:1}")
    srun --nodes="$((${#hosts[@]} - 1))" --ntasks="$((${#hosts[@]} - 1))" --nodelist="$others" --overlap \
        bash -c "until ray start --address=$head_address:$port --block; do sleep 2; done" &
fi
until ray status --address="$head_address:$port" > /dev/null 2>&1; do sleep 2; done

resume=()
[[ -e "$output/_job.json" ]] && resume=(--resume)
attendo translate "$model" --input "$input" --output "$output" --cluster "$head_address:$port" "${resume[@]}"

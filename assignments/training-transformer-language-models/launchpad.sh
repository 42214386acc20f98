#!/bin/bash
# The overfitting experiment as a job: `sbatch launchpad.sh` from this folder, then `squeue -u $USER`.
#
# What to run can be changed without editing this file:   MODEL=roberta-base EPOCHS=30 sbatch launchpad.sh
# and so can the resources:                                sbatch --partition=a100 --gres=gpu:2 launchpad.sh
#
# sbatch reads the lines below before anything runs, and refuses a line for GPUs on a cluster without any. So there is
# none: a job that was given no GPU asks `sinfo`, and where there are GPUs it submits this script again with --gres=gpu:1.
#SBATCH --job-name=classification
#SBATCH --output=slurm-%j.out
#SBATCH --time=1:00:00
#SBATCH --nodes=1
#SBATCH --ntasks=1
##SBATCH --cpus-per-task=4
##SBATCH --mem=16G
##SBATCH --account=NAME

set -euo pipefail
if [ $# -gt 0 ]; then
  echo "error: $1: settings are given before sbatch, such as MODEL=roberta-base EPOCHS=30 sbatch launchpad.sh" >&2
  exit 2
fi
cd "${SLURM_SUBMIT_DIR:-$(dirname "$0")}"
if [ ! -f classification.py ]; then
  echo "error: there is no classification.py in $PWD: submit this from the folder of that file." >&2
  exit 2
fi

# The job's own partition if it has GPUs, else the first that has; nothing without GPUs.
partition_with_gpus() {
  sinfo --noheader --format="%R %G" | awk -v own="${SLURM_JOB_PARTITION:-}" '
    $2 ~ /(^|,)gpu/ { if (first == "" || $1 == own) first = $1 }
    END { print first }'
}

in_a_job_without_gpu() {
  [ -n "${SLURM_JOB_ID:-}" ] && [ -z "${SLURM_JOB_GPUS:-}${SLURM_GPUS_ON_NODE:-}${SUBMITTED_AGAIN:-}" ]
}

if in_a_job_without_gpu && [ "${DEVICE:-cuda}" != cpu ]; then
  partition=$(partition_with_gpus)
  if [ -n "$partition" ]; then
    if job=$(SUBMITTED_AGAIN=yes sbatch --parsable --gres=gpu:1 --partition="$partition" "$0"); then
      echo "this cluster has GPUs: submitted again as job $job with --gres=gpu:1 in the partition $partition."
      exit 0
    fi
    echo "note: sbatch refused --gres=gpu:1 in the partition $partition: this job continues without a GPU." >&2
  fi
fi

echo "job ${SLURM_JOB_ID:-none} on ${SLURMD_NODENAME:-this machine}, $(date)"
${PYTHON:-python} classification.py \
  --experiment "${EXPERIMENT:-overfit}" \
  --small_subset "${SMALL_SUBSET:-True}" \
  --device "${DEVICE:-cuda}" \
  --model "${MODEL:-distilbert-base-uncased}" \
  --batch_size "${BATCH_SIZE:-64}" \
  --lr "${LR:-1e-4}" \
  --num_epochs "${EPOCHS:-20}" \
  ${OUTPUT:+--output "$OUTPUT"}

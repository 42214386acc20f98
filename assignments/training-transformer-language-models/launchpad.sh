#!/bin/bash
# The overfitting experiment as a job: `sbatch launchpad.sh` from this folder, then `squeue --me`.
#
# What to run can be changed without editing this file:  MODEL=roberta-base EPOCHS=30 sbatch launchpad.sh
# and so can the resources:                               sbatch --partition=a100 --gres=gpu:1 launchpad.sh
#SBATCH --job-name=classification
#SBATCH --output=slurm-%j.out
#SBATCH --time=1:00:00
#SBATCH --nodes=1
#SBATCH --ntasks=1
##SBATCH --partition=a100
##SBATCH --gres=gpu:1
##SBATCH --cpus-per-task=4
##SBATCH --mem=16G
##SBATCH --account=NAME

set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-$(dirname "$0")}"
if [ ! -f classification.py ]; then
  echo "error: there is no classification.py in $PWD: submit this from the folder of that file." >&2
  exit 2
fi

echo "job ${SLURM_JOB_ID:-none} on $(hostname), $(date)"
${PYTHON:-python} classification.py \
  --experiment "${EXPERIMENT:-overfit}" \
  --small_subset "${SMALL_SUBSET:-True}" \
  --device "${DEVICE:-auto}" \
  --model "${MODEL:-distilbert-base-uncased}" \
  --batch_size "${BATCH_SIZE:-64}" \
  --lr "${LR:-1e-4}" \
  --num_epochs "${EPOCHS:-20}"

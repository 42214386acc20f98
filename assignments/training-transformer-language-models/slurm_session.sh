#!/bin/bash
# What the document asks to see of Slurm, each command with its output: the queue, the nodes, the job of launchpad.sh.
#
#   MODEL=minilm OUTPUT=runs/overfit-slurm ./slurm_session.sh > results/slurm.txt
set -euo pipefail
cd "$(dirname "$0")"
if ! sinfo > /dev/null 2>&1; then
  echo "error: there is no Slurm here: run this on a cluster's login node (tools/slurm_loopback.sh starts one)." >&2
  exit 2
fi
export USER=${USER:-$(id -un)}

run() {
  echo "> $1"
  eval "$1"
  echo
}

run 'squeue'
run 'sinfo -o "%50N %10c %20m %30G "'
submitted=$(sbatch launchpad.sh)
job=${submitted##* }
printf '> sbatch launchpad.sh\n%s\n\n' "$submitted"
for _ in $(seq 100); do  # until it has a node
  [ "$(squeue --noheader --job "$job" --format %t 2> /dev/null)" = PD ] || break
  sleep 0.2
done
run 'squeue -u $USER'
while [ -n "$(squeue --noheader --job "$job" 2> /dev/null)" ]; do sleep 1; done
run "head -n 3 slurm-$job.out"
run "tail -n 4 slurm-$job.out"
run 'squeue'

#!/bin/bash
# Everything that report.md measures, at sizes for a machine with two free cores: about an hour in all, each part
# about a quarter of an hour at most. Stopped, the same command continues; what is finished is not run again. At the end results/,
# figures/ and the measured parts of report.md are renewed.
#
#   export ATTNLAB_DATA=path/to/data ATTNLAB_MODELS=path/to/models       # models: bert-tiny, tinybert-4l-312d, flan-t5-small
#   ./experiments.sh
#   ./experiments.sh t5 slurm                                            # some of them
set -euo pipefail
cd "$(dirname "$0")"
PYTHON=${PYTHON:-python}
LOOPBACK=../../tools/slurm_loopback.sh  # beside a copy of this folder alone there is none: run that on a cluster
PARTS="overfit slurm full_training parameter_tuning cross_model t5"
mkdir -p results runs

study() {  # NAME OPTIONS...
  local name=$1
  shift
  "$PYTHON" classification.py "$@" --device cuda --output "runs/$name"
}

overfit() {
  study overfit --experiment overfit --small_subset True --model minilm --batch_size 64 --lr 1e-4 --num_epochs 20
}

slurm() {  # questions 4 and 5; a cluster that is here is used, else one on loopback is started
  [ ! -f runs/overfit-slurm/results.json ] || return 0
  if ! sinfo > /dev/null 2>&1 && [ -x "$LOOPBACK" ]; then
    cluster=$(mktemp -d)
    "$LOOPBACK" start "$cluster" > /dev/null
    trap '"$LOOPBACK" stop "$cluster" && rm -r "$cluster"' EXIT
    export SLURM_CONF=$cluster/slurm.conf
  fi
  PYTHON=$PYTHON MODEL=minilm OUTPUT=runs/overfit-slurm ./slurm_session.sh > runs/slurm.txt
  mv runs/slurm.txt results/slurm.txt
}

full_training() {
  study full_training --experiment full_training --model bert-tiny --lr 5e-4
}

parameter_tuning() {
  study parameter_tuning --experiment parameter_tuning --model bert-tiny --examples 800 --eval_examples 500
}

cross_model() {  # three models that are here, and the document's six, which the hub has
  study cross_model --experiment cross_model --lr 1e-4,5e-4 --num_epochs 5 --batch_size 16 --examples 400 \
    --eval_examples 400 \
    --model bert-tiny,tinybert-4l-312d,minilm,distilbert-base-uncased,bert-base-uncased,bert-large-uncased,bert-large-cased,roberta-base,roberta-large
}

t5() {
  study t5 --experiment t5 --lr 1e-4,5e-4 --num_epochs 5 --batch_size 8 --examples 200 \
    --eval_examples 200 --max_length 96 --model flan-t5-small,t5-small,t5-base,t5-large
}

for part in "${@:-$PARTS}"; do
  for name in $part; do
    [[ " $PARTS " == *" $name "* ]] || { echo "error: there is no part $name: choose from $PARTS." >&2; exit 2; }
    "$name"
  done
done
"$PYTHON" collect.py

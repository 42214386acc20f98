#!/bin/bash
# Everything that report.md measures, at sizes for a machine with two free cores: about an hour in all, each part
# about a quarter of an hour at most. Stopped, the same command continues; what is finished is not run again. At the end results/,
# figures/ and the measured parts of report.md are renewed.
#
#   export ATTNLAB_DATA=path/to/data ATTNLAB_MODELS=path/to/models       # models: bert-tiny, tinybert-4l-312d
#   ./experiments.sh
#   ./experiments.sh question_3 efficient                                # some of them
set -euo pipefail
cd "$(dirname "$0")"
PYTHON=${PYTHON:-python}
PARTS="question_1 question_2 question_3 question_3_lower question_4 efficient efficient_ten"

basics() {  # NAME OPTIONS...
  local name=$1
  shift
  "$PYTHON" finetuning.py "$@" --output "runs/$name"
}

types() {  # NAME OPTIONS...
  local name=$1
  shift
  "$PYTHON" efficient_finetuning.py "$@" --output "runs/$name"
}

question_1() {
  basics question-1 --question 1 --model minilm
}

question_2() {
  basics question-2 --question 2 --model bert-tiny --lr 5e-4 --num_epochs 12 --eval_examples 1000
}

question_3() {
  basics question-3 --question 3 --model bert-tiny --eval_examples 1000
}

question_3_lower() {  # rates that are usual for such a model
  basics question-3-lower --question 3 --model bert-tiny --eval_examples 1000 --pairs 5e-5/9,1e-4/9
}

question_4() {  # two models that are here, and the document's two, which the hub has
  basics question-4 --question 4 --model tinybert-4l-312d,minilm,bert-base-cased,roberta-base \
    --pairs 1e-4/5,5e-4/5 --batch_size 16 --examples 400 --eval_examples 400
}

efficient() {
  types efficient --model bert-tiny --examples 800 --eval_examples 500
}

efficient_ten() {  # the document's accuracies are tenths: ten instances
  types efficient-ten --model minilm --small_subset True --eval_examples 100
}

for part in "${@:-$PARTS}"; do
  for name in $part; do
    [[ " $PARTS " == *" $name "* ]] || { echo "error: there is no part $name: choose from $PARTS." >&2; exit 2; }
    "$name"
  done
done
"$PYTHON" collect.py

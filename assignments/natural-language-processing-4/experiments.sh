#!/usr/bin/env bash
# All experiments of Problems 2 and 3, by the two scripts. Each run leaves RUNS/NAME/results.json; a finished run is not
# repeated and a stopped one is resumed, so the same command can be given again at any time. Then: python collect.py
#
#   ./experiments.sh              Problems 2 and 3
#   ./experiments.sh problem2     6 runs: learning rate, epochs, length
#   ./experiments.sh problem3     all labels and 50, with and without masked words
#   ./experiments.sh seeds        two more seeds with all labels
set -euo pipefail
cd "$(dirname "$0")"  # paths below are relative to this folder

DATA=${DATA:-${ATTNLAB_DATA:-data}/yelp}                 # train.csv, valid.csv, test.csv
UNLABELED=${UNLABELED:-$DATA/unlabeled.txt}             # in place of unlabeled_train_50000.txt
MODEL=${MODEL:-tinybert-4l-312d}                        # in place of TinyBERT_General_4L_312D: its shape, other weights
RUNS=${RUNS:-runs}
PYTHON=${PYTHON:-python}

options() {  # shared by all runs
  echo --model_type bert --task_name yelp --do_train --do_eval --evaluate_during_training --per_gpu_train_batch_size 32
}

alone() {  # NAME OPTIONS...
  local name=$1; shift
  echo "== $name" >&2
  "$PYTHON" classifier.py $(options) --model_name_or_path "$MODEL" --data_dir "$DATA" --output_dir "$RUNS/$name" "$@"
}

joint() {  # NAME OPTIONS...
  local name=$1; shift
  echo "== $name" >&2
  "$PYTHON" classifier_mlm.py $(options) --model_name_or_path "$MODEL" --data_dir "$DATA" --output_dir "$RUNS/$name" \
    --train_data_file "$UNLABELED" --block_size 128 --line_by_line "$@"
}

# One option at a time differs from the middle: 1e-4, 2 epochs, 128 pieces.
MIDDLE="--learning_rate 1e-4 --num_train_epochs 2 --max_seq_length 128 --logging_steps 50"
FEW="--train_examples 50 --learning_rate 1e-4 --num_train_epochs 20 --max_seq_length 128 --logging_steps 10"

problem2() {
  alone lr-1e-4 $MIDDLE
  alone lr-3e-5 $MIDDLE --learning_rate 3e-5
  alone lr-3e-4 $MIDDLE --learning_rate 3e-4
  alone epochs-4 $MIDDLE --num_train_epochs 4
  alone length-64 $MIDDLE --max_seq_length 64
  alone length-256 $MIDDLE --max_seq_length 256
}

problem3() {
  alone lr-1e-4 $MIDDLE  # all labels without masked words: the run of Problem 2
  joint all-joint-42 $MIDDLE --mlm_alpha 0.3
  for seed in 42 43 44; do
    alone "50-alone-$seed" $FEW --seed "$seed"
    joint "50-joint-$seed" $FEW --seed "$seed" --mlm_alpha 0.3
    joint "50-strong-$seed" $FEW --seed "$seed" --mlm_alpha 1.0
  done
}

seeds() {
  for seed in 43 44; do
    alone "all-alone-$seed" $MIDDLE --seed "$seed"
    joint "all-joint-$seed" $MIDDLE --seed "$seed" --mlm_alpha 0.3
  done
}

case "${1:-all}" in
  all) problem2; problem3 ;;
  problem2 | problem3 | seeds) "$1" ;;
  *) echo "error: unknown part '$1': give problem2, problem3, seeds or nothing." >&2; exit 2 ;;
esac

#!/bin/sh
# Every measurement of report.md, then its figures and tables: results/*.json, figures/*.png, report.md.
#
#   ATTNLAB_DATA=path/to/data sh experiments.sh
#
# The data are sst2/ and shakespeare/. The comments are minutes on 2 CPU cores, all together about an hour and three quarters.
# Every command can be run alone, in this order.
set -eu
cd "$(dirname "$0")"
export ATTNLAB_OUT=.

python A2S1.py
TOKENS=words python A2S2.py                                                          # 11
TOKENS=characters python A2S2.py                                                     # 8
for seed in 0 1 2; do
  TRAIN_SENTENCES=500 EXPERIMENTS=AdamW SEEDS=$seed python A2S3.py                   # 7 each
done
TRAIN_SENTENCES=500 EXPERIMENTS=SGD python A2S3.py                                   # 7
TRAIN_SENTENCES=500 EXPERIMENTS=SGD-1000x python A2S3.py                             # 7
TRAIN_SENTENCES=500 EXPERIMENTS=Adagrad python A2S3.py                               # 7
TRAIN_SENTENCES=500 NUM_EPOCHS=3 EXPERIMENTS=search python A2S3.py                   # 8
for seed in 0 1 2; do
  EXPERIMENTS=final SEEDS=$seed python A2S3.py                                       # 12 each
done
python -m write_up

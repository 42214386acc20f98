#!/bin/sh
# ./collect_submission.sh [NAME]: put the code, the models and the predictions into assignment_NAME.zip, and list them.
set -eu
name=${1:-yourname}
case $name in
  */* | '') echo "error: '$name' cannot be part of a file's name: give your name without a slash." >&2; exit 2 ;;
esac
files="
vanilla.model.params vanilla.nopretrain.dev.predictions vanilla.nopretrain.test.predictions
vanilla.finetune.params vanilla.pretrain.dev.predictions vanilla.pretrain.test.predictions
synthesizer.finetune.params synthesizer.pretrain.dev.predictions synthesizer.pretrain.test.predictions
"
missing=
for file in src/run.py $files; do
  [ -s "$file" ] || missing="$missing${missing:+, }$file"
done
if [ -n "$missing" ]; then
  echo "error: nothing was collected: these files are missing or empty: $missing." >&2
  exit 2
fi
python3 - "assignment_$name.zip" src/*.py $files <<'PYTHON'
import os, sys, zipfile

archive, *files = sys.argv[1:]
try:
    with zipfile.ZipFile(f"{archive}.tmp", "w", zipfile.ZIP_DEFLATED) as file:
        for name in files:
            file.write(name)
    os.replace(f"{archive}.tmp", archive)
    for entry in zipfile.ZipFile(archive).infolist():
        print(f"{entry.file_size:>10,}  {entry.filename}")
finally:
    if os.path.exists(f"{archive}.tmp"):
        os.remove(f"{archive}.tmp")
PYTHON
echo "assignment_$name.zip"

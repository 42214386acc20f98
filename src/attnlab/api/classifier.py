"""`attnlab.Classifier`: what `attnlab classify` and `attnlab predict` do, as an estimator of scikit-learn."""

from __future__ import annotations

import os
import shutil
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from attnlab.api.classifier_html import results_html
from attnlab.api.classifier_inputs import Handed, InputError, hand_over, is_file, to_examples, to_labels, word_classes
from attnlab.api.classifier_settings import classify_config, parameters_of
from attnlab.base import console
from attnlab.base.console import Verbosity
from attnlab.base.errors import UserError
from attnlab.base.interrupts import Interrupted
from attnlab.base.randomness import random_untouched
from attnlab.config.classify import ClassifyConfig
from attnlab.config.recipe import Key
from attnlab.data.tasks.labelled import LabelledText
from attnlab.jobs.classify.job import ClassifyJob
from attnlab.jobs.job import RunOptions
from attnlab.jobs.registry import saved_config
from attnlab.models.pretrained.tuned import TunedClassifier, load_trained
from attnlab.runs import is_run, read_record
from attnlab.runs.folder import INPUTS, called_from_python, new_folder

KIND = ClassifyJob.kind
DEV_SHARE = 0.1
FITTING = threading.Lock()  # the generators of random numbers and the console are those of the process


class Classifier(ClassifierMixin, BaseEstimator):
    """A pretrained encoder tuned to classify texts, with the interface of scikit-learn.

    >>> clf = lab.Classifier("minilm", tune="lora").fit(texts, labels)      # doctest: +SKIP
    >>> clf.predict(["Dull."])                                              # doctest: +SKIP

    Every fit trains in a run folder of its own: `attnlab predict`, `export`, `resume` and `runs` work with it. The
    estimator holds the path, not the weights.

    model          a short name ('attnlab models list'), a folder, or a name on the hub;
                   or tfidf, embeddings, majority: models without a network to train
    tune           tuning method: full, head, lora, ...
    epochs, steps  how long to train; give one of them (default: by method, model and number of texts)
    lr             peak learning rate, or 'auto' (default: the usual one of method and model; tune="head" needs none)
    batch_size     texts per batch, 'auto' or 'largest' (default: by model and number of texts)
    max_tokens     longer texts are cut (default: what leaves 95% of the texts whole, up to the model's limit)
    dev_share      of texts handed over, the share held out as dev, on which the best weights are chosen
    random_state   the seed; None: another one for every fit, recorded in the run
    device         auto, cpu, cuda, cuda:1, mps
    run            folder of the run, new or empty (default: a new one in `runs` for every fit)
    runs           where new run folders are created
    verbose        print progress as the command does; otherwise the lab prints nothing
    settings       every other setting of a recipe by its dotted name: {"tuning.rank": 4}

    After `fit`: `classes_`, `run_` (the folder), `results_` (its scores), `n_iter_` (steps).
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = "minilm",
        *,
        tune: str = "full",
        epochs: int | None = None,
        steps: int | None = None,
        lr: float | str | None = None,
        batch_size: int | str | None = None,
        max_tokens: int | None = None,
        dev_share: float = DEV_SHARE,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        run: str | os.PathLike[str] | None = None,
        runs: str | os.PathLike[str] = "runs",
        verbose: bool = True,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.model = model
        self.tune = tune
        self.epochs = epochs
        self.steps = steps
        self.lr = lr
        self.batch_size = batch_size
        self.max_tokens = max_tokens
        self.dev_share = dev_share
        self.random_state = random_state
        self.device = device
        self.run = run
        self.runs = runs
        self.verbose = verbose
        self.settings = settings

    @classmethod
    def from_run(cls, run: str | os.PathLike[str]) -> Classifier:
        """The fitted classifier of a finished run, such as one that `attnlab classify` trained.

        Labels that are all whole numbers, or all true and false, are such; other labels are texts.
        """
        path, config = Path(run), saved_config(Path(run))
        if not isinstance(config, ClassifyConfig):
            raise UserError(f"{run} is a {read_record(path)['kind']} run: it contains no classifier.")
        return cls(**parameters_of(config))._set_fitted(path)

    def fit(self, X: object, y: object = None, validation: object = None, **unsupported: object) -> Classifier:
        """Tune the model to texts X and labels y, or to a labelled file, task or hub data set X without y.

        `validation`, a pair (X, y), is dev; otherwise rows are held out. For a file it is the path of another file.
        """
        for name in unsupported:
            hint = ": to balance classes use settings={'data.class_weights': True}" if name == "sample_weight" else ""
            raise TypeError(f"Classifier.fit does not support {name}{hint}.")
        level = console.verbosity() if self.verbose else Verbosity.SILENT
        with FITTING, console.at_verbosity(level), random_untouched(), _python_interrupts():
            seed = _seed(self.random_state)
            trained = self._fit_file(X, y, validation, seed) if is_file(X) else self._fit(X, y, validation, seed)
        if trained.results_["collapsed"] and not self.verbose:
            warnings.warn(read_record(trained.run_)["collapsed"], ConvergenceWarning, stacklevel=2)
        return trained

    def _fit(self, X: object, y: object, validation: object, seed: int) -> Classifier:
        config = classify_config(self.get_params(deep=False), seed, handed=True)
        handed = hand_over(X, y, validation, self.dev_share, config.data.split_seed)
        path = self._train(config, "X, y", handed)
        return self._set_fitted(path, handed.classes, handed.words)

    def _fit_file(self, X: Any, y: object, validation: Any, seed: int) -> Classifier:
        if y is not None:
            raise InputError(f"X is {os.fspath(X)!r}, which has its own labels: leave out y, or give a list of texts.")
        if self.dev_share != DEV_SHARE:
            raise InputError(
                "dev_share is for texts handed over: the splits of a file are those of 'attnlab classify'."
            )
        files: dict[Key, object] = {("data", "task"): os.fspath(X)}
        if validation is not None:
            if not is_file(validation):
                raise InputError("validation: X is a file, so give the path of a file too.")
            files["data", "dev"] = os.fspath(validation)
        config = classify_config(self.get_params(deep=False), seed, files)
        return self._set_fitted(self._train(config, repr(os.fspath(X))))

    def _train(self, config: ClassifyConfig, data: str, handed: Handed | None = None) -> Path:
        """Train in a folder of this fit alone; it is removed again if the run does not begin."""
        path = self._new_folder()
        notes: tuple[str, ...] = ()
        if handed is not None:
            config.data = config.data.model_copy(update=handed.write(path))
            if "label_errors" not in config.watch.model_fields_set:
                config.watch.label_errors = False  # a search fits many times
            console.warn(handed.note)
            notes = (handed.note,)
        command = f"lab.{' '.join(repr(self).split())}.fit({data})"
        try:
            with called_from_python(command):
                ClassifyJob(config).run(RunOptions(path, changes=notes))
        finally:
            if not is_run(path):
                if handed is not None:
                    shutil.rmtree(path / INPUTS)
                if not any(path.iterdir()):
                    path.rmdir()
        console.say(f"run: {path}\nreport: {path / 'report.html'}")
        return path

    def _new_folder(self) -> Path:
        if self.run is None:
            return new_folder(Path(self.runs), KIND)
        path = Path(self.run)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"run: the folder {path} cannot be created: {error.strerror}.") from None
        if any(path.iterdir()):
            raise InputError(
                f"run: {path} is not empty: choose another folder, or leave out run, so that every fit gets a new one."
            )
        return path

    def _set_fitted(
        self, run: Path, classes: np.ndarray | None = None, words: tuple[str, ...] | None = None
    ) -> Classifier:
        record = read_record(run)
        if "results" not in record:
            raise UserError(f"{run} is not finished: finish it with 'attnlab resume {run}'.")
        if classes is None or words is None:
            names = record["data"]["classes"]
            classes = word_classes(names)
            order = np.argsort(classes)
            classes, words = classes[order], tuple(names[place] for place in order)
        self.classes_, self._words = classes, words
        self.run_ = run.absolute()
        self.results_: dict[str, Any] = record["results"]
        self.n_iter_: int = record["training"]["step"]
        LOADED.pop(self, None)
        return self

    def predict(self, X: object) -> np.ndarray:
        """The class of each text, (N,)."""
        chosen = self.predict_proba(X).argmax(1)
        return self.classes_[chosen]

    def predict_proba(self, X: object) -> np.ndarray:
        """The probability of each class, (N, K), in the order of `classes_`; X may be a file."""
        trained = self._loaded()
        return self._probabilities(trained, self._examples(X, trained))

    def score(self, X: object, y: object = None, sample_weight: object = None) -> float:
        """The accuracy on texts X with labels y, or on a labelled file X."""
        if not is_file(X):
            return float(super().score(X, to_labels(y), sample_weight))
        if y is not None or sample_weight is not None:
            raise InputError(f"X is {X!r:.80}, a file with its own labels: leave out y and sample_weight.")
        trained = self._loaded()
        examples = self._examples(X, trained)
        if any(example.label < 0 for example in examples):
            raise InputError(f"{X} has no labels: there is nothing to score.")
        right = [trained.classes[example.label] for example in examples]
        predicted = self._probabilities(trained, examples).argmax(1)
        return float(np.mean([self._words[place] == word for place, word in zip(predicted, right, strict=True)]))

    def _examples(self, X: Any, trained: TunedClassifier) -> list[LabelledText]:
        if is_file(X):
            path = Path(X)
            if isinstance(X, str) and not path.is_file():
                raise InputError(f"X is {X!r:.40}, which is not a file: give a file, or a list of texts, [{X!r:.40}].")
            return trained.read(path).examples
        examples = to_examples(X)
        if (examples[0].pair is not None) != trained.paired:
            reads, got = ("pairs of", "single") if trained.paired else ("single", "pairs of")
            raise InputError(f"the classifier reads {reads} texts, got {got} texts in X.")
        return examples

    def _probabilities(self, trained: TunedClassifier, examples: list[LabelledText]) -> np.ndarray:
        encoded = trained.encode(examples, "X, ")
        if encoded.cut and self.verbose:
            console.warn(
                f"the classifier reads {trained.longest} tokens: {encoded.cut:,} of {len(examples):,} were cut."
            )
        shares = trained.logits(encoded).double().softmax(-1).numpy()  # (N, K)
        return shares[:, [trained.classes.index(word) for word in self._words]]

    def _loaded(self) -> TunedClassifier:
        """The model of the run, loaded at its first use: the estimator itself stays small."""
        check_is_fitted(self)
        if not is_run(self.run_):
            raise UserError(
                f"the run folder of this classifier, {self.run_}, is gone: put it back, set run_ to its new place, "
                "or fit again."
            )
        if self not in LOADED or LOADED[self].run != self.run_:
            with random_untouched():
                LOADED[self] = load_trained(self.run_, self.device)
        return LOADED[self]

    def __fspath__(self) -> str:
        """A fitted classifier is taken wherever the folder of a run is: `lab.inspect(clf, "Dull.")`."""
        check_is_fitted(self)
        return str(self.run_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def _repr_html_inner(self) -> str:
        return self._with_results(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return bundle | {kind: self._with_results(page) for kind, page in bundle.items() if kind == "text/html"}

    def _with_results(self, page: str) -> str:
        return page + results_html(self.run_) if hasattr(self, "run_") else page


LOADED: WeakKeyDictionary[Classifier, TunedClassifier] = WeakKeyDictionary()
"""The models in use; not an attribute, so that pickles and copies of an estimator are without weights."""


def _seed(random_state: int | np.random.RandomState | None) -> int:
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    generator = np.random.RandomState() if random_state is None else check_random_state(random_state)
    return int(generator.randint(2**31 - 1))


@contextmanager
def _python_interrupts() -> Iterator[None]:
    """Ctrl-C is a KeyboardInterrupt in Python: a search over many fits must end, not count a failed fit."""
    try:
        yield
    except Interrupted as stop:
        raise KeyboardInterrupt(str(stop)) from None

"""What may be asked of the program from Python. Nothing of it imports torch but for a module, which is
recorded first.

A model is a shipped name, a path (a description, a step file, ONNX, Keras, a folder with a config.json),
a recorded step, or a module (a function that runs a whole step) with example inputs. Every other option
of the program's command is a keyword with the option's name: `context_length=8192`,
`lora={"r": 16, "targets": "all-linear"}`, `checkpoint=True`; `stowage help check` lists them. All raise
StowageError for what the program refuses, with its message and its hint.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, overload

from stowage.answers.difference import Difference
from stowage.answers.from_json import read
from stowage.answers.largest_batch import Batch
from stowage.answers.memory import Check, ServingCheck
from stowage.answers.placement import PlanAnswer, Proposal, PytorchProposal
from stowage.answers.question import Question, asked_of, is_named, named_words, option_words, words_of
from stowage.answers.table import Table
from stowage.command_line.program import answer_of, cards_by_capability, text_of_answer
from stowage.errors import StowageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stowage.answers.question import Option


def check(model: Any, inputs: Any = None, **options: Option) -> Any:
    """Whether one step fits one card, and what it takes.

        stowage.check("resnet50", gpu="t4", batch=64).device_bytes
        stowage.check(model, images, optimizer="adamw", gpu="rtx4090", precision="amp-bf16").fits

    model, inputs   as above; inputs are a module's example inputs: values do not count
    options         of `stowage check`, by name; gpu or gpu_memory says the card

    Returns a Check, all of it in bytes; a ServingCheck where `context_length` asks about serving.
    """
    refuse_several(options)
    return read_check(answered(asked_of("check", model, inputs, options)))


def read_check(answer: dict[str, Any]) -> Any:
    return read(ServingCheck if "serving" in answer else Check, answer)


def batch(model: Any, inputs: Any = None, **options: Option) -> Batch:
    """The largest batch of one card, and the one to use, 0 where not even one sample fits:

        stowage.batch("resnet50", gpu="t4").recommended

    As `check`; the options are those of `stowage batch`."""
    refuse_several(options)
    return read(Batch, answered(asked_of("batch", model, inputs, options)))


@overload
def plan(model: Any, inputs: Any = None, *, for_: Literal["pytorch"], output: Any = None,
         **options: Option) -> PlanAnswer[PytorchProposal]: ...
@overload
def plan(model: Any, inputs: Any = None, *, for_: None = None, output: Any = None,
         **options: Option) -> PlanAnswer[Proposal]: ...


def plan(model: Any, inputs: Any = None, *, for_: str | None = None, output: Any = None,
         **options: Option) -> PlanAnswer[Any]:
    """What to keep on the host so that the step fits.

        stowage.plan(model, images, gpu="rtx3060", batch=256, for_="pytorch", output="plan.json").best

    for_     "pytorch": a plan that `stowage.apply` carries out; by default one for Stowage's executor
    output   a path: the chosen plan's file is written there
    options  of `stowage plan`, by name. As `check` else

    Returns a PlanAnswer; nothing is written where nothing fits.
    """
    refuse_several(options)
    where: dict[str, Option] = {"for": for_, "output": None if output is None else os.fspath(output)}
    answer = answered(asked_of("plan", model, inputs, {**options, **where}))
    if for_ == "pytorch":
        return read(PlanAnswer[PytorchProposal], answer)
    return read(PlanAnswer[Proposal], answer)


def table(models: Any, gpus: str | Sequence[str] = "all", inputs: Any = None, *,
          of: Literal["check", "batch"] = "check", **options: Option) -> Table:
    """What fits where, and how large a batch: one row for each model and card.

        print(stowage.table(["resnet50", "vgg16"], ["t4", "rtx3090"], batch=32))

    models   a model, or a list of names and paths; a module is recorded for each compute capability
    gpus     names of cards, or "all"
    of       "check": whether `batch` samples fit; "batch": the batch to use
    """
    named = [models] if is_named(models) else list(models) if isinstance(models, (list, tuple)) else None
    cards = [gpus] if isinstance(gpus, str) else list(gpus)
    if "gpu" in options:
        raise StowageError("a table's cards are its second argument",
                           'stowage.table(models, ["t4", "rtx3090"])')
    if named is None:
        return joined([asked_of(of, models, inputs, {**options, "gpu": names}, capability)
                       for capability, names in cards_by_capability(cards)])
    if not named or not all(is_named(each) for each in named):
        raise StowageError("a list of models is one of names and paths",
                           "a table has one module: stowage.table(model, gpus, images)")
    words = [word for each in named for word in named_words(each)]
    return joined([Question([of, *words, *words_of({**options, "gpu": cards})])])


def joined(questions: Sequence[Question]) -> Table:
    """One table of the answers to several questions."""
    answers = [answered(question) for question in questions]
    texts = [text_of_answer(question.words, question.text) for question in questions]
    fits = any(answer["verdict"] == "fits" for answer in answers)  # several are of one model
    whole = {"verdict": "fits" if fits else "does_not_fit",
             "rows": [row for answer in answers for row in rows_of(answer)],
             "notes": [note for answer in answers for note in answer["notes"]],
             "text": "\n".join(texts)}
    return read(Table, whole)


def rows_of(answer: dict[str, Any]) -> list[Any]:
    """The rows of a table; one card's answer is a row too."""
    if "rows" in answer:
        rows: list[Any] = answer["rows"]
        return rows
    kept = ("verdict", "device", "headroom_bytes", "largest", "recommended", "keeps_margin", "all_tried",
            "unlimited")
    return [{**{name: answer[name] for name in kept if name in answer},
             "model": answer["settings"]["model"], "fits": answer["verdict"] == "fits",
             "available_bytes": answer["device"]["available_bytes"],
             "needed_bytes": answer["device_bytes"],
             "needed_at_batch": answer.get("recommended", answer["settings"]["batch"])}]


def diff(before: Any, after: Any = None, *, change: dict[str, Any] | None = None,
         **options: Option) -> Difference:
    """What a change adds to what a step takes, by class and by layer.

        stowage.diff("resnet50", "resnet101", gpu="t4", batch=32).added_bytes
        stowage.diff("gpt2", change={"precision": "amp-bf16"}, gpu="rtx3090", batch=8).added_bytes

    before, after   names, paths, or (one of both) a recorded step; after: before where it is left out
    change          options of `check` that the second step has instead; None leaves one out
    options         of both, as of `check`
    """
    refuse_several(options)
    steps = [each for each in (before, after) if not is_named(each) and each is not None]
    if len(steps) > 1:
        raise StowageError("one of two steps is read from a file", "RecordedStep.save writes one")
    for step in steps:
        if not hasattr(step, "document"):
            raise StowageError(f"{type(step).__name__} is no name, path or recorded step",
                               "stowage.record(model, images) records a module")
    changed = {name: "" if value is None or value is False else
               "true" if value is True else ",".join(option_words(name, value)[1:])
               for name, value in (change or {}).items()}
    words = [word for each in (before, after) if each is not None
             for word in (named_words(each) if is_named(each) else ["-"])]
    text = ""
    for step in steps:
        from stowage.document.write import checked_text

        text = checked_text(step.document, "the step")
    return read(Difference, answered(Question(
        ["diff", *words, *words_of({**options, "change": dict(changed) or None})], text)))


def assert_fits(model: Any, inputs: Any = None, **options: Option) -> Any:
    """For a test: `check`, which fails with the program's own text where the step does not fit.

        def test_fits() -> None:
            stowage.assert_fits(Net(), torch.empty(64, 3, 224, 224), gpu="rtx3060", optimizer="adamw")

    Returns what `check` returns. Raises AssertionError with the table of what takes the room.
    """
    refuse_several(options)
    question = asked_of("check", model, inputs, options)
    answer = answered(question)
    if answer["verdict"] != "fits":
        raise AssertionError(text_of_answer(question.words, question.text))
    return read_check(answer)


def answered(question: Question) -> dict[str, Any]:
    return answer_of(question.words, question.text)


def refuse_several(options: dict[str, Option]) -> None:
    """Several cards make a table."""
    card = options.get("gpu")
    if isinstance(card, (list, tuple)) or (isinstance(card, str) and ("," in card or card == "all")):
        raise StowageError("several cards make a table", "stowage.table(models, gpus)")
    if "format" in options:
        raise StowageError("format= is what this package asks for itself")

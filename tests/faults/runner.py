"""Run requests in forked processes of a warm one: a crash or a hang costs one fork, not an import of everything.

``python -m tests.faults.runner FOLDER`` reads JSON lists of requests from its standard input and writes one outcome a
line. A request is ``{"do": ACTION, ...}``; outcomes are accepted, refused (an error of gcaps, one line), traceback,
foreign (another exception of a public function), hang and crash.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import queue
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

TIMEOUT = 20.0
"""Seconds after which an input counts as a hang: of processor time, or of waiting for something."""
PATIENCE = 300.0
"""Seconds after which it is one in any case; until then, a process that wants to compute may wait for a processor."""
ADDRESS_SPACE = 12 << 30
"""Limit on the virtual memory of a worker; what is resident is measured."""
Request = dict[str, Any]
Outcome = dict[str, Any]


def classify(call: Callable[[], Any]) -> tuple[str, str]:
    """Call and return what came of it, and a line about it."""
    from gcaps.errors import GcapsError

    said = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            warnings.simplefilter("ignore")
            call()
    except GcapsError as error:
        if "\n" in str(error).strip() and len(str(error)) > 4000:
            return "foreign", f"a message of {len(str(error)):,} characters"
        return "refused", f"{type(error).__name__}: {error}"
    except SystemExit as stop:
        text = said.getvalue()
        last = text.strip().splitlines()[-1:] or [""]
        if "Traceback (most recent call last)" in text or stop.code == 70:
            at = re.findall(r"^\w[\w.]*(?:Error|Exception|Warning)\b.*$", text, re.M)
            where = re.findall(r'File "[^"]*/gcaps/([^"]+)", line (\d+)', text)
            return "traceback", f"{at[-1:]} {where[-1:]}"
        return ("accepted" if stop.code in (0, None) else "refused"), last[0]
    except BaseException as error:
        import traceback

        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/gcaps/" in f.filename]
        where = f"{frames[-1].filename.rpartition('/gcaps/')[2]}:{frames[-1].lineno}" if frames else ""
        return "foreign", f"{type(error).__name__}: {error} ({where})"[:400]
    if "Traceback (most recent call last)" in said.getvalue():
        return "traceback", said.getvalue()[-300:]
    return "accepted", said.getvalue().strip()[-200:]


def read_any(path: str) -> Any:
    """Open a path as what its name says, and use all of it."""
    import gcaps
    from gcaps.config import CONFIGS
    from gcaps.config.spaces import search_space
    from gcaps.evaluation import Comparison
    from gcaps.evaluation.experiments import read_experiment, read_grid
    from gcaps.evaluation.outcome import Outcome as CellOutcome
    from gcaps.evaluation.plan import Plan
    from gcaps.evaluation.splits import read_splits

    name = Path(path).name
    if name.endswith(".body") or name.startswith("upload"):
        return answered(name, Path(path).read_bytes())
    if name == "study":
        return study_of(Path(path))
    if name.startswith(("settings.toml", "best.toml")):
        return CONFIGS["deepsets"].from_toml(path)
    if name.startswith("space.toml"):
        return search_space("deepsets", path)
    if name.endswith(".model"):
        return used(gcaps.load_model(path))
    if name.startswith("splits"):
        return read_splits(path, 16)
    if name.startswith(("grid", "run.toml")):
        return read_grid(path)
    if name.startswith("experiment"):
        return read_experiment(path).rows()
    if name.startswith("record"):
        return Comparison.read(path)
    if name == "run":
        plan = Plan.read(path)
        for cell in Path(path).glob("cells/*/*/*.json"):
            CellOutcome.read(cell)
        return plan, Comparison.read(path)
    graphs = gcaps.load(path)
    return graphs.degrees.sum(), graphs.fingerprint(), len(graphs[[0]]), graphs[: len(graphs)].num_edges


def used(model: Any) -> Any:
    """Use a model in every way: predictions, their uncertainty, vectors and an explanation."""
    from gcaps.estimators.vectors import GraphVectors
    from gcaps.explain.contributions import explain
    from gcaps.predictions import doubt_of

    graphs = _probe()
    scores = model.scores(graphs)
    doubt = None if model.uncertainty_ is None else doubt_of(model, graphs, scores, 0.9)
    return scores, doubt, GraphVectors(model)(graphs), explain(model, graphs.subset([0]))


def study_of(folder: Path) -> Any:
    """Read a search as ``gcaps report`` does, and as the same command that continues it."""
    from gcaps.evaluation.tuning_run import tune
    from gcaps.evaluation.tuning_study import TuningStudy, settings_toml, trials_csv
    from gcaps.report.tuning import tuning_page

    study = TuningStudy.read(folder)
    shown = trials_csv(study), settings_toml(study), tuning_page(study)
    settings = {"epochs": 2}
    return shown, tune(_probe(), "deepsets", folder, trials=3, folds=2, config=settings, pruner="none")


def answered(name: str, body: bytes) -> bytes:
    """Return the answer of a server to a request.

    Raises:
        RefusedError: it is an error of the client.
        RuntimeError: it is one of the server.
    """
    from gcaps.serve.handler import Job
    from gcaps.serve.limits import RefusedError

    kind = "predict_file" if name.startswith("upload") else name.split(".")[0].replace("smiles", "predict")
    handler = _HANDLERS["molecules" if name.startswith(("smiles", "upload.csv")) else "network"]
    reply = handler.handle([Job(kind, {"name": name} if kind == "predict_file" else {}, body)])[0]
    if reply.status >= 500:
        raise RuntimeError(f"status {reply.status}")
    if reply.status != 200:
        error = json.loads(reply.body)["error"]
        raise RefusedError(reply.status, error["code"], error["message"])
    return bytes(reply.body)


_HANDLERS: dict[str, Any] = {}
_PROBE: list[Any] = []


def _probe() -> Any:
    return _PROBE[0]


def act(request: Request, folder: Path) -> Iterator[Outcome]:
    """Do a request in this process; yield an outcome for each of its inputs."""
    if request["do"] == "mutants":
        yield from _mutants(request, folder)
        return
    began = processor_seconds()
    if request["do"] == "read":
        kind, text = classify(lambda: read_any(request["path"]))
    elif request["do"] == "verb":
        from gcaps.cli.app import main

        kind, text = classify(lambda: main(request["arguments"]))
    else:
        kind, text = classify(lambda: _fit(request))
    left = leftovers(request.get("out"), kind)
    yield {"kind": kind, "text": text, "seconds": processor_seconds() - began, "partial": left}


def _fit(request: Request) -> None:
    """Fit a method with settings, and predict."""
    from gcaps.estimators.registry import make_estimator

    graphs = _probe()
    estimator = make_estimator(request["method"], request["settings"], request.get("seed", 0))
    estimator.fit(graphs).predict(graphs)


def leftovers(out: str | None, kind: str) -> list[str]:
    """Return what a verb that refused has left at its output, temporary files included."""
    if out is None:
        return []
    goal = Path(out)
    names = [entry.name for entry in goal.parent.iterdir() if entry.name.startswith(f".{goal.name}.")]
    if kind != "accepted" and (goal.exists() or goal.is_symlink()):
        names.append(goal.name)
    for name in {goal.name, *names}:
        with contextlib.suppress(OSError):
            shutil.rmtree(goal.parent / name) if (goal.parent / name).is_dir() else (goal.parent / name).unlink()
    return names


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return bytes with one to four small changes, of kinds that parsers stumble over."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, kind = rng.randrange(len(data) + 1), rng.randrange(9)
        end = min(len(data), at + rng.randrange(1, 24))
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = data[at:end]
        elif kind == 3:
            data[at:at] = rng.choice(TOKENS)
        elif kind == 4:
            data[at:end] = rng.choice(TOKENS)
        elif kind == 5:
            del data[at:]
        elif kind == 6 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 7:
            numbers = list(re.finditer(rb"-?\d+", data))
            if numbers:
                found = rng.choice(numbers)
                data[found.start() : found.end()] = rng.choice(NUMBERS)
        else:
            other = rng.randrange(len(data) + 1)
            data[at:end] = data[other : other + end - at]
    return bytes(data)


NUMBERS = [
    b"-1",
    b"0",
    b"1",
    b"99",
    b"4294967296",
    b"-9223372036854775809",
    b"1e999",
    b"1" + b"0" * 40,
    b"nan",
    b"1e300",
]
TOKENS = [
    *(
        b"\n",
        b"\r\n",
        b"\0",
        b",",
        b";",
        b'"',
        b"'",
        b"[",
        b"]",
        b"{",
        b"}",
        b"\xff",
        b"\xef\xbb\xbf",
        b"null",
        b"true",
    ),
    *(b"NaN", b"-Infinity", b"[/b]", b"\x1b[2J", b"=1+1", b"<b>", b"1e400", b"\xe2\x80\xae", b" ", b"\t", b":", b"#"),
    *(b"$$$$\n", b"M  END\n", b"C1", b"((", b"[Xx]", b"%", b"[[[[[[[[", b"PK\x03\x04", b"\x93NUMPY"),
]


def _mutants(request: Request, folder: Path) -> Iterator[Outcome]:
    """Read mutants of one file of a base; the first number that is not done yet is in ``first``."""
    base, file = Path(request["base"]), request["file"]
    goal = folder / base.name
    if goal.exists() or goal.is_symlink():
        shutil.rmtree(goal) if goal.is_dir() else goal.unlink()
    shutil.copytree(base, goal) if base.is_dir() else shutil.copy(base, goal)
    sound = (base / file if file else base).read_bytes()
    place = goal / file if file else goal
    for number in range(request["first"], request["last"]):
        content = mutated(sound, random.Random(f"{base.name}/{file}/{number}"))
        place.write_bytes(content)
        began = processor_seconds()
        kind, text = classify(lambda: read_any(str(goal)))
        unchanged = content == sound
        seconds = processor_seconds() - began
        yield {"kind": "sound" if unchanged else kind, "text": text, "seconds": seconds, "number": number}


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def spent_by(process: int) -> float:
    """Return the processor time of a process so far."""
    with contextlib.suppress(psutil.Error):
        had = psutil.Process(process).cpu_times()
        return float(had.user + had.system)
    return 0.0


def waits_for_a_processor(process: int, seconds: float) -> bool:
    """Whether a process has not had its seconds, and wants them: the machine is busy."""
    with contextlib.suppress(psutil.Error):
        status = psutil.Process(process).status()
        return spent_by(process) < seconds and status in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    return False


def peak_mib() -> float:
    """Return the largest resident memory of this process since :func:`forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def forget_peak() -> None:
    """Begin to measure anew."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _work(requests: Sequence[Request], folder: Path, write: int) -> None:
    """The forked process: do all requests."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 2)
    for number, request in enumerate(requests):
        forget_peak()
        before = peak_mib()
        _tell(write, {"at": number})
        for outcome in act(request, folder):
            _tell(write, {"of": number, **outcome, "mib": peak_mib() - before})
    _tell(write, {"end": True})


def _tell(write: int, message: dict[str, Any]) -> None:
    os.write(write, json.dumps(message).encode() + b"\n")


def serve(folder: Path) -> None:
    """The warm process: fork for each list of requests, watch, and fork again after a crash or a hang."""
    import gcaps
    from gcaps.serve.handler import Handler
    from gcaps.serve.limits import Limits
    from tests.faults.processes import import_verbs

    import_verbs()

    _PROBE.append(gcaps.load(str(folder / "bases" / "tu")))
    for name in ("molecules", "network"):
        _HANDLERS[name] = Handler(gcaps.load_model(folder / "bases" / f"{name}.model"), name, Limits())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    scratch = Path(tempfile.mkdtemp(dir=folder))
    for line in sys.stdin:
        requests = json.loads(line)
        for outcome in _watched(requests, scratch):
            answers.write(json.dumps(outcome) + "\n")
            answers.flush()
        answers.write("null\n")
        answers.flush()


def _watched(requests: list[Request], folder: Path) -> Iterator[Outcome]:
    done = 0
    while done < len(requests):
        reading, writing = os.pipe()
        process = os.fork()
        if not process:
            os.close(reading)
            try:
                os.setsid()
                _work(requests[done:], folder, writing)
            except BaseException:
                import traceback

                _tell(writing, {"broken": traceback.format_exc()})
            os._exit(0)
        os.close(writing)
        tally: Counter[str] = Counter()
        slowest = most = spent = 0.0
        at, began, ended, left, progress = 0, time.perf_counter(), False, b"", None
        while not ended:
            ready = select.select([reading], [], [], TIMEOUT)[0]
            waited = time.perf_counter() - began
            if not ready and waited < PATIENCE and waits_for_a_processor(process, spent + TIMEOUT):
                continue
            part = os.read(reading, 1 << 16) if ready else b""
            left += part
            *lines, left = left.split(b"\n")
            for message in map(json.loads, lines):
                if tally and ("at" in message or "end" in message):
                    yield {"of": done + at, "kind": "tally", "tally": dict(tally), "seconds": slowest, "mib": most}
                    tally, slowest, most = Counter(), 0.0, 0.0
                if "at" in message:
                    at, progress = message["at"], None
                elif "end" in message:
                    ended = True
                elif "number" in message and message["kind"] in ("sound", "accepted", "refused"):
                    progress = message["number"]
                    tally[message["kind"]] += 1
                    slowest, most = max(slowest, message["seconds"]), max(most, message["mib"])
                elif "broken" in message:
                    raise RuntimeError(message["broken"])
                else:
                    progress = message.get("number")
                    yield {**message, "of": done + message["of"]}
                began, spent = time.perf_counter(), spent_by(process)
            if not part:
                break
        with contextlib.suppress(OSError):
            os.killpg(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        os.close(reading)
        if ended:
            return
        if tally:
            yield {"of": done + at, "kind": "tally", "tally": dict(tally), "seconds": slowest, "mib": most}
        seconds = time.perf_counter() - began
        hang = seconds >= TIMEOUT
        text = f"no answer in {TIMEOUT:.0f} s" if hang else f"ended with status {status}"
        found = {"of": done + at, "kind": "hang" if hang else "crash", "text": text, "seconds": seconds, "mib": 0.0}
        request = requests[done + at]
        if request["do"] == "mutants":
            bad = request["first"] if progress is None else progress + 1
            yield {**found, "number": bad}
            requests[done + at] = {**request, "first": bad + 1}
            done += at + (bad + 1 >= request["last"])
        else:
            yield {**found, "partial": leftovers(request.get("out"), "crash")}
            done += at + 1


def run(requests: Sequence[Request], folder: Path, jobs: int = 2) -> Iterator[tuple[Request, Outcome]]:
    """Run all requests in ``jobs`` warm processes; yield each with its outcomes, in any order."""
    size = max(1, min(40, -(-len(requests) // (4 * jobs))))
    chunks: queue.SimpleQueue[list[Request]] = queue.SimpleQueue()
    for i in range(0, len(requests), size):
        chunks.put(list(requests[i : i + size]))
    found: queue.SimpleQueue[tuple[Request, Outcome] | Exception | None] = queue.SimpleQueue()
    threads = [threading.Thread(target=_ask, args=(chunks, found, folder), daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    left = jobs
    while left:
        one = found.get()
        if isinstance(one, Exception):
            raise one
        if one is None:
            left -= 1
        else:
            yield one


def _ask(chunks: queue.SimpleQueue[list[Request]], found: queue.SimpleQueue[Any], folder: Path) -> None:
    """Hand chunks to a warm process until there are none."""
    environment = os.environ | {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    environment |= {"GCAPS_JOBS": "1", "GCAPS_CACHE": str(folder / "cache"), "COLUMNS": "200"}
    command = [sys.executable, "-m", "tests.faults.runner", str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            while not chunks.empty():
                with contextlib.suppress(queue.Empty):
                    chunk = chunks.get_nowait()
                    process.stdin.write(json.dumps(chunk) + "\n")
                    process.stdin.flush()
                    while (line := process.stdout.readline()) != "null\n":
                        if not line:
                            raise RuntimeError("the warm process has ended")
                        outcome = json.loads(line)
                        found.put((chunk[outcome["of"]], outcome))
            process.stdin.close()
        except Exception as error:
            process.kill()
            found.put(error)
    found.put(None)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

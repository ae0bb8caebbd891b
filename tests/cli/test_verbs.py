"""The verbs as a user types them, in processes of their own."""

import csv
import os
import re
import subprocess
import sys

import pytest

import gcaps
from gcaps.cli.options import with_config
from gcaps.config import CONFIGS, Config

SMALL = ["--epochs", "2", "--layers", "1", "--hidden", "4", "--rank", "4", "--fc", "8"]


def run(*arguments, check=True, cwd=None, **environment):
    found = subprocess.run(
        [sys.executable, "-m", "gcaps", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"COLUMNS": "100"} | environment,
    )
    if check:
        assert found.returncode == 0, found.stderr
    return found


def test_help_names_every_verb_without_importing_torch():
    code = (
        "import sys; from gcaps.cli.app import main; main(['--help']);"
        "print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.endswith("False False\n")
    for verb in ("demo", "data", "train", "predict", "evaluate"):
        assert f"\n  {verb} " in found


@pytest.mark.parametrize("verb", ["demo", "train", "predict", "evaluate"])
def test_every_verb_explains_itself_with_an_example(verb):
    found = run(verb, "--help").stdout
    assert f"gcaps {verb}" in found


def test_every_setting_is_an_option_of_train():
    found = run("train", "--help", COLUMNS="200").stdout
    assert "N|auto" in found, "what an option takes, not what Python calls it"
    for name in Config.model_fields:
        assert "--" + name.replace("_", "-") in found


def test_train_then_predict(tmp_path):
    run("train", "MUTAG", "-o", tmp_path / "m", *SMALL, cwd=tmp_path)
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == ["model.json", "model.safetensors"]
    said = run("predict", tmp_path / "m", "MUTAG", "-o", tmp_path / "p.csv", cwd=tmp_path)
    rows = list(csv.reader((tmp_path / "p.csv").read_text().splitlines()))
    assert rows[0] == ["graph", "class", "p(-1)", "p(1)"]
    assert len(rows) == 189
    assert "on 188 graphs with targets" in said.stderr
    assert run("predict", tmp_path / "m", "MUTAG").stdout == (tmp_path / "p.csv").read_text()


@pytest.mark.parametrize("method", ["wl", "capsule-svm", "fgsd", "gin"])
def test_any_method_is_trained_saved_and_predicts(method, tmp_path):
    small = {"gin": ["--epochs", 2], "fgsd": ["--n-estimators", 5]}.get(method, [])
    said = run("train", "MUTAG", "--method", method, "-o", tmp_path / "m", *small, cwd=tmp_path)
    assert "188 graphs, 2 classes" in said.stdout
    found = run("predict", tmp_path / "m", "MUTAG", cwd=tmp_path)
    assert found.stdout.startswith("graph,class,p(-1),p(1)\n")
    accuracy = 100 * float(found.stderr.split()[1].rstrip(","))
    assert accuracy > 66, "better than the majority class on its own training graphs"


def test_an_ensemble_says_what_becomes_of_its_members(tmp_path):
    said = run("train", "MUTAG", "--method", "ensemble", "--methods", "wl,sp", "--time-limit", "10m", "--memory-limit",
               "8G", "--jobs", 1, "-o", tmp_path / "m", cwd=tmp_path)  # fmt: skip
    assert "wl: inner accuracy 0." in said.stderr
    assert "inner accuracy" in said.stdout
    assert "× an SVM on ShortestPath" in said.stdout
    assert not (tmp_path / "m.checkpoint").exists()
    found = run(
        "evaluate", "MUTAG", "--method", "ensemble", "--methods", "wl,sp", "--folds", 2, "--jobs", 1, cwd=tmp_path
    )
    assert "mean weight" in found.stdout


def test_train_says_what_auto_became(tmp_path):
    said = run("train", "MUTAG", "-o", tmp_path / "m", *SMALL).stderr
    assert "dropout = 0.0 (auto: 188 training graphs, fewer than 750)" in said
    assert "features = labels (auto: nodes have labels)" in said


def test_evaluate_is_the_same_for_one_and_two_threads_and_jobs(tmp_path):
    for name, threads, jobs in (("a", "1", 1), ("b", "2", 2)):
        run("evaluate", "MUTAG", "-o", tmp_path / f"{name}.json", "--folds", 3, "--jobs", jobs, *SMALL,
            cwd=tmp_path, OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads)  # fmt: skip
    first, second = (gcaps.Result.read(tmp_path / f"{n}.json").folds for n in "ab")
    for a, b in zip(first, second, strict=True):
        assert a.predictions == b.predictions
        assert a.scores == b.scores
        assert a.train_loss == b.train_loss


def test_evaluate_writes_json_and_html(tmp_path):
    found = run("evaluate", "families", "-o", tmp_path / "r.json", "--html", tmp_path / "r.html", "--folds", 2, *SMALL)
    assert "honest" in found.stdout
    result = gcaps.Result.read(tmp_path / "r.json")
    assert result.command.startswith("gcaps evaluate families")
    assert "<html" in (tmp_path / "r.html").read_text()


@pytest.mark.slow
def test_demo_leaves_a_comparison_a_report_and_a_model(tmp_path):
    found = run("demo", "-o", tmp_path / "d", "--epochs", 1)
    written = ["explanation.html", "known.gset", "model", "new.gset", "report.html", "run"]
    assert sorted(p.name for p in (tmp_path / "d").iterdir()) == written
    assert "with 90% confidence its class is" in found.stdout
    assert "Done in" in found.stdout
    assert found.stdout.count("gcaps train ") == 2, "for these graphs, and for one's own"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["evaluate", "NOSUCHSET"], 3, "NOSUCHSET"),
        (["train", "MUTAG", "-o", "{tmp}/m", "--hidden", "0"], 4, "hidden"),
        (["train", "MUTAG", "-o", "{tmp}/m", "--filter", "magic"], 4, "filter"),
        (["train", "MUTAG", "-o", "{tmp}/m", "--config", "{tmp}/none.toml"], 4, "none.toml"),
        (["train", "MUTAG", "-o", "{tmp}/m", "--patience", "3"], 4, "patience and refit"),
        (["predict", "{tmp}/nothing", "MUTAG"], 6, "not a saved model"),
        (["evaluate", "MUTAG", "--method", "magic"], 4, "magic"),
        (["evaluate", "MUTAG", "--method", "gin", "--rank", "3"], 4, "gin has no setting --rank; it has --features"),
        (["evaluate", "MUTAG", "--method=dcnn", "--hops", "-1"], 4, "hops"),
        (["evaluate", "MUTAG", "--folds", "1000"], 3, "188 graphs cannot be divided into 1000 folds"),
        (["train", "MUTAG", "-o", "{tmp}/m", "--decay", "0.5"], 4, "decay has no effect under schedule = cosine"),
        (
            ["train", "MUTAG", "-o", "{tmp}/m", "--method", "wl", "--hidden", "3"],
            4,
            "wl has no setting --hidden; it has",
        ),
        (
            ["train", "MUTAG", "-o", "{tmp}/m", "--metod", "wl"],
            4,
            "gcaps has no setting --metod; did you mean --method?",
        ),
        (["train", "MUTAG", "-o", "{tmp}/m", "--method", "WL"], 4, "there is no method 'WL'; did you mean wl?"),
        (["nonsense"], 2, "no verb 'nonsense'"),
    ],
)
def test_mistakes_are_one_line_and_an_exit_code(arguments, code, words, tmp_path):
    found = run(*(a.format(tmp=tmp_path) for a in arguments), check=False, cwd=tmp_path)
    assert found.returncode == code
    assert "Traceback" not in found.stderr
    last = found.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert words in last
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_options_win_over_the_file_and_the_file_over_defaults(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("hidden = 7\nrank = 3\nfeatures = ['degree']\n")
    got = []

    @with_config
    def command(*, config):
        got.append(config)

    none = dict.fromkeys(Config.model_fields)
    command(config_file=file, **(none | {"rank": "none", "root": False}))
    assert got == [Config(hidden=7, rank=None, root=False, features=("degree",))]


@pytest.mark.parametrize("method", ["gin", "wl"])
def test_every_setting_of_a_method_is_an_option_of_evaluate(method):
    kind = CONFIGS[method]
    found = run("evaluate", "--method", method, "--help", COLUMNS="200").stdout
    for name in kind.model_fields:
        assert "--" + name.replace("_", "-") in found
    assert "--rank" not in found


def test_evaluate_takes_the_settings_of_the_method(tmp_path):
    arguments = ["--method", "gin", "--folds", 2, "--jobs", 1, "--epochs", 1, "--layers", 2, "--hidden", 4]
    run("evaluate", "MUTAG", "-o", tmp_path / "r.json", *arguments)
    result = gcaps.Result.read(tmp_path / "r.json")
    assert result.method == "gin"
    assert (result.config["layers"], result.config["hidden"], result.config["lr"]) == (2, 4, 0.01)


def test_lists_of_numbers_are_joined_with_commas():
    got = []

    def command(*, config):
        got.append(config)

    kind = CONFIGS["wl"]
    with_config(command, kind)(config_file=None, **(dict.fromkeys(kind.model_fields) | {"n_iter": "1,3", "C": "0.1"}))
    assert got == [kind(n_iter=(1, 3), C=(0.1,))]


def test_evaluate_says_task_metric_and_folds_with_their_reasons(tmp_path):
    pytest.importorskip("rdkit")
    rows = [f"{'C' * n}{tail},{n + len(tail)}.5" for n in range(1, 9) for tail in ("", "O", "N", "S")]
    rows[0] = "C,"
    (tmp_path / "m.csv").write_text("smiles,weight\n" + "\n".join(rows) + "\n")
    found = run("evaluate", tmp_path / "m.csv", "--method", "fgsd", "--n-estimators", 5, "--folds", 2, "--jobs", 1,
                "-o", tmp_path / "r.json", "--html", tmp_path / "r.html").stdout  # fmt: skip
    assert "task = regression of weight (auto: its values are numbers that are not integers)" in found
    assert "metric = rmse (default of regression, lower is better)" in found
    assert "folds = 2 random folds, seed 0" in found
    assert "1 graph has no target and is left out" in found
    for name in ("RMSE", "MAE", "R²", "Spearman's ρ"):
        assert name in found
    assert "standard deviation over the folds (divided by n)" in found
    assert gcaps.Result.read(tmp_path / "r.json").metric == "rmse"
    assert "Predicted and true values" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--metric", "rmse"], 4, "rmse is no metric of classification; there are accuracy"),
        (["--metric", "auk"], 4, "there is no metric 'auk'"),
        (["--split", "scaffold"], 3, "scaffolds need SMILES"),
        (["--split", "scafold"], 4, "did you mean scaffold?"),
        (["--split", "scaffold-balanced:x"], 4, "is written scaffold-balanced"),
        (["--metric", "enrichment"], 4, "enrichment is a metric of two classes, not of 4"),
        (["--train-sizes", "10,many"], 4, "--train-sizes: '10,many' is not a list of numbers such as 100,300"),
        (["--train-sizes", "10,900"], 4, "less than the 216 training graphs of a fold"),
        (["--train-sizes", "10", "--learning-curve", "3"], 4, "give --learning-curve or --train-sizes, not both"),
        (["--split", "group"], 4, "is written group:COLUMN"),
        (["--splits", "nothing.json"], 3, "the folds are not here"),
        (["--task", "ranking"], 4, "there is no task 'ranking'"),
    ],
)
def test_a_wrong_choice_of_metric_split_or_task_is_one_line(options, code, message):
    found = run("evaluate", "families", "--method", "fgsd", *options, check=False)
    assert (found.returncode, found.stderr.count("\n")) == (code, 1)
    assert message in found.stderr


MOLECULES = ["C" * n + tail for n in range(1, 9) for tail in ("O", "N", "c1ccccc1", "C1CCCC1", "c1ccncc1", "C1CC1")]


@pytest.fixture
def molecules(tmp_path):
    pytest.importorskip("rdkit")
    path = tmp_path / "m.csv"
    path.write_text("smiles,active\n" + "\n".join(f"{s},{'N' in s.upper():d}" for s in MOLECULES) + "\n")
    return path


def test_evaluate_says_what_a_random_split_of_molecules_leaks(molecules, tmp_path):
    options = ["--method", "fgsd", "--n-estimators", 5, "--jobs", 1]
    found = run("evaluate", molecules, *options, "--folds", 3, "--html", tmp_path / "r.html").stdout
    assert "of the test molecules share their scaffold with training molecules" in found
    assert "--split scaffold-balanced tests on new scaffolds" in found
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "same scaffold in training" in page
    assert "Activity cliffs" in page
    found = run("evaluate", molecules, *options, "--split", "scaffold-balanced", "--folds", 1, "--repeats", 3,
                "--metric", "enrichment", "-o", tmp_path / "r.json").stdout  # fmt: skip
    assert "share their scaffold" not in found
    assert "folds = 1 scaffold-balanced fold, seed 0, 3 repetitions" in found
    assert "honest EF 1 %" in found
    result = gcaps.Result.read(tmp_path / "r.json")
    assert len({tuple(fold.test) for fold in result.folds}) > 1, "repetitions have other divisions"
    found = run("evaluate", molecules, *options, "--split", "scaffold", "--folds", 1, "--repeats", 2).stdout
    assert "scaffold-balanced draws another division for each" in " ".join(found.split())


def test_evaluate_draws_a_learning_curve(tmp_path):
    found = run("evaluate", "families", "--method", "fgsd", "--n-estimators", 5, "--folds", 2, "--jobs", 1,
                "--learning-curve", 3, "-o", tmp_path / "r.json", "--html", tmp_path / "r.html").stdout  # fmt: skip
    lines = [line.split() for line in found.splitlines()]
    at = lines.index(["training", "graphs", "families,", "accuracy,", "%"])
    assert [line[0] for line in lines[at + 1 : at + 4]] == ["30", "60", "120"]
    assert [size for size, _ in gcaps.Result.read(tmp_path / "r.json").learning_curve] == [30, 60, 120]
    assert "Number of training graphs" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [50, 80, 160])
def test_help_fills_the_width_of_the_terminal(width):
    """The source's own line breaks made short lines among full ones."""
    found = run("predict", "--help", COLUMNS=str(width)).stdout
    text = found.partition("Rows come in the order")[2].partition("Example")[0]
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    following = [line.split()[0] for line in lines[1:]]
    assert all(len(line) + 1 + len(word) >= width - 1 for line, word in zip(lines[1:-1], following[1:], strict=True))


@pytest.mark.parametrize("verb", [["predict"], ["train"], ["report"], ["demo"], ["tasks", "links"], ["compare"]])
def test_help_speaks_of_no_python_types(verb):
    found = run(*verb, "--help").stdout
    assert not [line for line in found.splitlines() if re.search(r"<\w", line)]


def test_help_of_tasks_does_not_speak_of_a_method_option():
    assert "--method" not in run("tasks", "nodes", "--help", COLUMNS="200").stdout


def test_model_and_data_in_the_wrong_order_are_told_apart(tmp_path):
    gcaps.estimators.make_estimator("wl").fit("MUTAG").save(tmp_path / "m")
    (tmp_path / "new.csv").write_text("smiles\nCCO\n")
    for verb in ("predict", "explain", "embed"):
        found = run(verb, tmp_path / "new.csv", tmp_path / "m", "-o", tmp_path / "o.html", check=False)
        assert found.returncode == 4
        assert "give the model first, then the data" in found.stderr

"""Tests `lisp_task` with real models: tasks in words over the quickstart's upstreams, by model, catalog mode and case.

    planner.py PTC_COMPILE OUTPUT [--models a,b] [--catalog-modes inline,lazy] [--case NAME]... [--runs N]
               [--turns N] [--retries N] [--base-url URL] [--fail-on-skip]

Writes OUTPUT/report.json and OUTPUT/report.md. The key is in PLANNER_KEY, or in the variable of the provider (OPENROUTER_API_KEY for
aliases). A model without a key is skipped; with --fail-on-skip the exit code is then 1. Each cell has a separate server. A check of the
structured result and of the calls decides whether an answer is right, never a model."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

KEYS = {
    "openrouter": "OPENROUTER_API_KEY",
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "groq": "GROQ_API_KEY",
    "ollama": None,
}


def numbers(value):
    """Returns every number in a result, at any depth."""
    if isinstance(value, bool):
        return []
    if isinstance(value, (int, float)):
        return [value]
    if isinstance(value, str):
        words = value.replace(",", " ").replace(".", " ").split()
        return [int(word) for word in words if word.isdigit()]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [number for item in items for number in numbers(item)]


def calls(answer, tool):
    return [call for call in answer.get("upstream_calls", []) if call["tool"] == tool and call["status"] == "ok"]


# These programs query the upstream without a model. The answers of models are compared with their results.
TRUTH = {
    "notes": '(map :name (:value (tool/call {:server "notes" :tool "list_notes"})))',
    "longest": '(count (first (sort-by (comp - count) (map #(:value (tool/call {:server "notes" :tool "read_note" :args {:name '
    '(:name %)}})) (:value (tool/call {:server "notes" :tool "list_notes"}))))))',
}


def cases(truth):
    """Returns the cases: name, task, other arguments, and a function that checks an answer."""
    names, longest = truth["notes"], truth["longest"]
    return [
        (
            "count",
            "How many notes are there? Answer with the number alone.",
            {},
            lambda a: len(names) in numbers(a["structured_result"]) and calls(a, "list_notes"),
        ),
        (
            "names",
            "List the names of all notes as a list of strings.",
            {},
            lambda a: sorted(map(str, a["structured_result"])) == sorted(names) if isinstance(a["structured_result"], list) else False,
        ),
        (
            "join",
            "Read every note and tell how many characters the longest text has. Answer with the number alone.",
            {},
            lambda a: longest in numbers(a["structured_result"]) and len(calls(a, "read_note")) >= len(names),
        ),
        (
            "context",
            "Add up the numbers of the context. Answer with the sum alone.",
            {"context": {"numbers": list(range(1, 101))}},
            lambda a: 5050 in numbers(a["structured_result"]),
        ),
        (
            "at_most_two",
            "List the names of all notes.",
            {"constraints": {"max_items": 2}},
            lambda a: isinstance(a["structured_result"], list) and len(a["structured_result"]) == 2,
        ),
    ]


def impossible(answer):
    """Checks that a task which no tool can do has failed, and that its answer is not invented."""
    return answer["status"] == "error" and answer["reason"] == "agent_failed"


class Server:
    """A server with a planner, on pipes."""

    def __init__(self, command, folder, environment):
        self.log = open(folder / "log.jsonl", "a")
        self.child = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        self.id = 0

    def call(self, name, arguments):
        self.id += 1
        params = {"name": name, "arguments": arguments}
        frame = {"jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": params}
        self.child.stdin.write(json.dumps(frame) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            self.log.flush()
            said = pathlib.Path(self.log.name).read_text().splitlines()[-5:]
            raise SystemExit("the server ended:\n" + "\n".join(said))
        return json.loads(line)["result"]

    def end(self):
        self.child.stdin.close()
        self.child.wait(timeout=30)
        self.log.close()


def options():
    parser = argparse.ArgumentParser()
    for place in ["compiler", "output"]:
        parser.add_argument(place)
    parser.add_argument("--models", default="gemini-flash-lite")
    parser.add_argument("--catalog-modes", default="inline,lazy")
    parser.add_argument("--case", action="append")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--retries", type=int, default=1)
    parser.add_argument("--base-url")
    parser.add_argument("--fail-on-skip", action="store_true")
    return parser.parse_args()


def key(model, base_url):
    """Returns the name of the variable that holds the key, None if no key is needed, or False if the variable is not set."""
    provider = "openrouter" if ":" not in model else model.split(":")[0]
    if base_url or os.environ.get("PLANNER_KEY"):
        return "PLANNER_KEY" if os.environ.get("PLANNER_KEY") else None
    variable = KEYS.get(provider)
    if variable and not os.environ.get(variable):
        print(f"skipped: {model} needs {variable} (or PLANNER_KEY, or --base-url)", file=sys.stderr)
        return False
    return variable


def row(cell):
    tokens = cell["planner"].get("tokens") or {}
    told = [cell["model"], cell["mode"], cell["case"], "yes" if cell["passed"] else "NO", cell["reason"] or "",
            cell["turns"], cell["calls"], tokens.get("input", "-"), tokens.get("output", "-"), cell["planner"].get("prompt_bytes", 0),
            cell["milliseconds"]]
    return "| " + " | ".join(str(value) for value in told) + " |"


def report(cells):
    head = "| model | catalog | case | passed | reason | turns | calls | tokens in | tokens out | prompt bytes | ms |"
    lines = ["# Tasks in words, by real models", "", head, "|" + "---|" * 11, *map(row, cells), ""]
    models = sorted({cell["model"] for cell in cells})
    for model in models:
        mine = [cell for cell in cells if cell["model"] == model]
        lines.append(f"- {model}: {sum(cell['passed'] for cell in mine)} of {len(mine)} passed")
    wrong = [cell for cell in cells if not cell["passed"]]
    for cell in wrong:
        lines += ["", f"## {cell['model']} {cell['mode']} {cell['case']}", "", "```clojure", cell["program"] or "; no program", "```",
                  "", f"{cell['said']}"]
    return "\n".join(lines) + "\n"


def main():
    given = options()
    compiler = str(pathlib.Path(given.compiler).absolute())
    output = pathlib.Path(given.output).absolute()
    output.mkdir(parents=True, exist_ok=True)
    cells = []
    variables = {model: key(model, given.base_url) for model in given.models.split(",")}
    skipped = [model for model, variable in variables.items() if variable is False]
    variables = {model: variable for model, variable in variables.items() if variable is not False}
    failed = bool(skipped) and given.fail_on_skip
    if not variables:
        return 1 if failed else 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        notes = {"transport": "mcp_stdio", "description": "Notes of the clinic.", "command": compiler, "args": ["demo", "--stdio"]}
        config = {"upstreams": {"notes": notes}, "credentials": {"planner": {"source": "env", "var": "PLANNER_KEY"}}}
        (folder / "upstreams.json").write_text(json.dumps(config))
        truth = {}
        for what, program in TRUTH.items():
            command = [compiler, "repl", "upstreams.json", "--display", "json", "-e", program]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"{what}: {done.stderr}")
            truth[what] = json.loads(done.stdout)
        every = cases(truth)
        every.append(("impossible", "Delete the note about the watchlist.", {}, impossible))
        chosen = [case for case in every if not given.case or case[0] in given.case]
        for model, variable in variables.items():
            for mode in given.catalog_modes.split(","):
                command = [compiler, "run", "upstreams.json", "--agentic", "--aggregator-read-only", "--agentic-model", model,
                           "--catalog-mode", mode, "--agentic-max-turns", str(given.turns), "--agentic-retry-turns", str(given.retries),
                           "--agentic-planner-timeout-ms", "60000", "--agentic-task-timeout-ms", "180000"]
                command += ["--agentic-base-url", given.base_url] if given.base_url else []
                command += ["--agentic-credential", "planner"] if variable == "PLANNER_KEY" else []
                server = Server(command, folder, os.environ)
                for case, task, more, right in chosen * given.runs:
                    began = time.monotonic()
                    answer = server.call("lisp_task", {"task": task, **more})["structuredContent"]
                    told = answer["status"] == "ok" or right is impossible
                    cell = {
                        "model": model, "mode": mode, "case": case, "passed": bool(told and right(answer)),
                        "reason": answer.get("reason"), "said": answer.get("answer") or answer.get("message"),
                        "program": answer.get("program"), "planner": answer["planner"], "turns": answer["execution"]["turn_count"],
                        "calls": len(answer["upstream_calls"]), "milliseconds": round((time.monotonic() - began) * 1000),
                    }
                    cells.append(cell)
                    print(row(cell), flush=True)
                server.end()
    if not cells:
        print("no case of that name", file=sys.stderr)
        return 2
    (output / "report.json").write_text(json.dumps(cells, indent=2) + "\n")
    (output / "report.md").write_text(report(cells))
    print(f"{output}/report.md")
    return 0 if all(cell["passed"] for cell in cells) and not failed else 1


if __name__ == "__main__":
    sys.exit(main())

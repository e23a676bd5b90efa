"""Measures how much a program saves: three questions to real upstreams, answered by direct tool calls and by one program each.

    payload.py PTC_COMPILE NODE_MODULES PYTHON

Counts for both ways every byte that a model would read: the list of tools, and the results. Tokens are estimated as bytes / 4."""

import json
import pathlib
import subprocess
import sys
import tempfile


class Server:
    """An MCP server on pipes."""

    def __init__(self, command, cwd):
        self.child = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.id = 0
        client = {"name": "payload", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self.send({"method": "notifications/initialized"})

    def send(self, frame):
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
        self.child.stdin.flush()

    def ask(self, method, params):
        self.id += 1
        self.send({"id": self.id, "method": method, "params": params})
        for line in self.child.stdout:
            frame = json.loads(line)
            if frame.get("id") == self.id and "method" not in frame:
                return frame["result"]
        raise SystemExit(f"no answer to {method}")

    def call(self, name, arguments):
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise SystemExit(f"{name}: {result}")
        # `structuredContent` repeats the content, so it is not counted.
        return result["content"]

    def end(self):
        self.child.stdin.close()
        self.child.wait(timeout=30)


def size(value):
    """Returns the size in bytes as compact JSON, as it is sent."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def world(folder):
    """Writes a folder with a month of orders in thirty files, and a repository of forty commits."""
    for day in range(1, 31):
        rows = [
            {"id": day * 100 + n, "customer": f"customer-{(day * 7 + n) % 12}", "total": (day * 31 + n * 17) % 200 + 1,
             "status": ["paid", "open", "refunded"][(day + n) % 3], "note": "delivered to the front door, signed by a neighbour"}
            for n in range(20)
        ]
        (folder / f"orders-{day:02}.json").write_text(json.dumps(rows))
    git = ["git", "-C", str(folder), "-c", "user.email=ann@example.com"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for n in range(40):
        (folder / "notes.txt").write_text(f"note {n}\n")
        who = ["Ann", "Ben", "Cy"][n % 3]
        subprocess.run([*git, "add", "notes.txt"], check=True)
        message = f"{['fix', 'feature', 'docs'][n % 3]}: change {n} of the notes"
        subprocess.run([*git, "-c", f"user.name={who}", "commit", "--quiet", "-m", message], check=True)


def main():
    compiler, modules, python = (str(pathlib.Path(arg).absolute()) for arg in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        world(folder)
        commands = {
            "files": ["node", f"{modules}/@modelcontextprotocol/server-filesystem/dist/index.js", str(folder)],
            "git": [python, "-m", "mcp_server_git", "--repository", str(folder)],
        }
        config = {
            "upstreams": {
                name: {"transport": "mcp_stdio", "command": command[0], "args": command[1:], "handshake_timeout_ms": 60000}
                for name, command in commands.items()
            }
        }
        (folder / "upstreams.json").write_text(json.dumps(config))
        direct = {name: Server(command, folder) for name, command in commands.items()}
        program = Server([compiler, "run", "upstreams.json", "--log-level", "error"], folder)
        listed = sum(size(server.ask("tools/list", {})["tools"]) for server in direct.values())
        ours = size(program.ask("tools/list", {})["tools"])
        files = [str(folder / f"orders-{day:02}.json") for day in range(1, 31)]
        read = [("files", "read_text_file", {"path": path}) for path in files]
        text = '(:value (tool/call {:server "files" :tool "read_text_file" :args {:path p}}))'
        log = '(tool/call {:server "git" :tool "git_log" :args {:repo_path "%s" :max_count 40}})' % folder
        questions = [
            ("revenue of a month by customer, top 3", read,
             f'(defn rows [day] (let [p (str "{folder}/orders-" (if (< day 10) "0" "") day ".json") r {text}]'
             ' (json/parse-string (get r "content"))))'
             '(->> (apply concat (pmap rows (range 1 31))) (filter #(= "paid" (:status %))) (group-by :customer)'
             ' (map (fn [[k v]] [k (reduce + (map :total v))])) (sort-by (comp - second)) (take 3))'),
            ("who committed how often", [("git", "git_log", {"repo_path": str(folder), "max_count": 40})],
             f'(frequencies (map second (re-seq #"Author: .*?(Ann|Ben|Cy)" (str (:value {log})))))'),
            ("largest file", [("files", "list_directory_with_sizes", {"path": str(folder), "sortBy": "size"})],
             '(let [r (:value (tool/call {:server "files" :tool "list_directory_with_sizes" :args {:path "%s" :sortBy "size"}}))'
             ' text (if (map? r) (get r "content") r)] (first (re-seq #"orders\\S+\\s+\\S+ \\S+" text)))' % folder),
        ]
        print(f"tools/list: {listed} bytes of {len(commands)} servers directly, {ours} bytes of one with programs")
        total = [listed, ours]
        for what, calls, source in questions:
            # With direct calls a model reads every result, and writes every call.
            by_tools = sum(size(direct[server].call(tool, args)) + size(args) for server, tool, args in calls)
            answer = program.call("lisp_eval", {"program": source})
            by_program = size(answer) + size({"program": source})
            total = [total[0] + by_tools, total[1] + by_program]
            print(f"{what}: {len(calls)} calls {by_tools} bytes, about {by_tools // 4} tokens; "
                  f"one program {by_program} bytes, about {by_program // 4} tokens; {by_tools / by_program:.1f} times less")
            print(f"    {answer[0]['text']}")
        print(f"with the lists: {total[0]} bytes, about {total[0] // 4} tokens; {total[1]} bytes, about {total[1] // 4} tokens; "
              f"{total[0] / total[1]:.1f} times less")
        for server in [*direct.values(), program]:
            server.end()


main()

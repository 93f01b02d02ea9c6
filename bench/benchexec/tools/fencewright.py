"""BenchExec's tool-info module for Fencewright.

The property file of a task says what is asked, in one line: `safe under sc`, `safe under tso`, `safe under pso`, `robust against tso` or
`free of triangular races`. The options of its task definition say the rest: `property` (the one to check, otherwise all), `define` (a list
of `NAME=VALUE`, as with -D) and `format`. `fencewright-bench tasks DIR` writes such tasks.

Results are `true`, `false(PROPERTY)`, `unknown`, and for runs that say nothing about the program `TIMEOUT`, `OUT OF MEMORY` and `ERROR (...)`.
BenchExec counts as unknown only what is spelt `unknown`: the reason is a column of its own (`<column title="reason">reason</column>`).
"""

import json

import benchexec.result as result
import benchexec.tools.template
from benchexec.tools.template import UnsupportedFeatureException

QUESTIONS = {
    "safe under sc": ["check", "--model", "sc"],
    "safe under tso": ["check", "--model", "tso"],
    "safe under pso": ["check", "--model", "pso"],
    "robust against tso": ["robust"],
    "free of triangular races": ["robust", "--notion", "triangular"],
}
"""What a property file asks, and the command that answers it."""

ROBUST = {True: "safe", False: "unsafe", None: "unknown"}
"""What `robust --json` says, in the words of `check --json`."""

MOST_CHARACTERS = 60
"""Longer messages are cut: they are cells of a table."""


class Tool(benchexec.tools.template.BaseTool2):
    """Fencewright: verifies concurrent programs on relaxed memory."""

    def name(self):
        return "Fencewright"

    def executable(self, tool_locator):
        return tool_locator.find_executable("fencewright")

    def version(self, executable):
        return self._version_from_tool(executable, line_prefix="fencewright")

    def cmdline(self, executable, options, task, rlimits):
        command, *question = _question(task.property_file)
        arguments = [executable, command, "--json", *question]
        asked = dict(task.options or {})
        if command == "check" and asked.get("property"):
            arguments += ["--property", str(asked["property"])]
        for define in asked.get("define") or []:
            arguments += ["-D", str(define)]
        if asked.get("format"):
            arguments += ["--format", str(asked["format"])]
        arguments += _limits(options, rlimits)
        # Paths that begin with a dash are files all the same.
        return [*arguments, *options, "--", task.single_input_file]

    def determine_result(self, run):
        if run.exit_code.signal is not None:
            # BenchExec adds why.
            return result.RESULT_ERROR
        answers = _answers(run.output)
        status = run.exit_code.value
        violated = [answer for answer in answers if answer["verdict"] == "unsafe"]
        # The status and what is printed must agree: a program without properties, say, is nothing that was proved.
        if status == 0 and answers and all(answer["verdict"] == "safe" for answer in answers):
            return result.RESULT_TRUE_PROP
        if status == 1 and violated:
            return f"{result.RESULT_FALSE_PROP}({_property(violated[0])})"
        if status == 3:
            return _unknown(answers)
        if status == 2:
            return f"{result.RESULT_ERROR} ({_complaint(run.output)})"
        return f"{result.RESULT_ERROR} (status {status} with {len(answers)} verdicts)"

    def get_value_from_output(self, output, identifier):
        """`engine`, `reason`, `states`, `seconds`, `check_seconds`, `memory_mib`, `checked` of the answers, each value once."""
        values = []
        for answer in _answers(output):
            value = answer.get(identifier)
            if value is not None and not isinstance(value, (list, dict)):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                values += [] if text in values else [text]
        return _escaped(", ".join(values)) if values else None


def _question(property_file):
    if property_file is None:
        # The command's own default is TSO.
        return ["check"]
    try:
        with open(property_file, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except OSError as error:
        raise UnsupportedFeatureException(f"{property_file}: {error.strerror}") from error
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) != 1 or lines[0] not in QUESTIONS:
        known = ", ".join(f"`{question}`" for question in QUESTIONS)
        raise UnsupportedFeatureException(f"{property_file}: expected one line, one of {known}")
    return QUESTIONS[lines[0]]


def _limits(options, rlimits):
    """The limits of the run, for the tool: then it stops by itself, and says what it had."""
    given = {option.split("=")[0] for option in options}
    limits = []
    seconds = [limit for limit in (rlimits.walltime, rlimits.cputime) if limit is not None]
    if seconds and "--timeout" not in given:
        limits += ["--timeout", f"{min(seconds)}s"]
    if rlimits.memory is not None and "--memory" not in given:
        # The system counts the program itself and its stacks, too.
        limits += ["--memory", str(rlimits.memory * 95 // 100)]
    if rlimits.cpu_cores is not None and "--jobs" not in given:
        limits += ["--jobs", str(rlimits.cpu_cores)]
    return limits


def _answers(output):
    """The answers among the lines of an output: a run that was killed may have left half a line."""
    answers = []
    for line in output:
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if isinstance(answer, dict) and "robust" in answer:
            answer["verdict"] = ROBUST.get(answer["robust"], "unknown")
        if isinstance(answer, dict) and isinstance(answer.get("verdict"), str):
            answers.append(answer)
    return answers


def _property(answer):
    """What is violated, as the table shows it."""
    name = answer.get("property") or "robustness"
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in str(name))[:MOST_CHARACTERS]


def _unknown(answers):
    """The tool's own limits are limits of resources; everything else is an answer that it does not know."""
    reasons = [str(answer.get("reason")) for answer in answers if answer["verdict"] == "unknown"]
    if any(reason.startswith("no answer within") and reason.endswith("of memory") for reason in reasons):
        return "OUT OF MEMORY"
    if any(reason.startswith("no answer within") for reason in reasons):
        return result.RESULT_TIMEOUT
    return result.RESULT_UNKNOWN


def _complaint(output):
    """What is wrong, as the tool says it: in JSON, or in plain words about its arguments."""
    plain = ""
    for line in output:
        try:
            said = json.loads(line)
        except ValueError:
            plain = plain or line
            continue
        if isinstance(said, dict) and isinstance(said.get("error"), str):
            return _short(said["error"])
    return _short(plain) or "status 2"


def _short(text):
    line = " ".join(text.split())
    return "".join(c for c in line if c.isprintable() and c not in "<>&")[:MOST_CHARACTERS]


def _escaped(text):
    """Values are shown as HTML, and reasons quote the program."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

"""BenchExec's tool-info module for Fencewright.

The property file of a task contains one line, one of QUESTIONS. The task definition has further options: `property` (the one to check, by default all),
`define` (a list of `NAME=VALUE`, as with -D), `format`, and `fences` (for each question about fences, by the name of its property file, the number of
fences in a cheapest set). `fencewright-bench tasks DIR` writes such tasks.

Results are `true`, `false(PROPERTY)`, `unknown`, and for runs without an answer `TIMEOUT`, `OUT OF MEMORY` and `ERROR (...)`.
BenchExec counts only the exact result `unknown` as unknown, so the reason is in a separate column (`<column title="reason">reason</column>`).
"""

import json
import os

import benchexec.result as result
import benchexec.tools.template
from benchexec.tools.template import UnsupportedFeatureException

QUESTIONS = {
    "safe under sc": ["check", "--model", "sc"],
    "safe under tso": ["check", "--model", "tso"],
    "safe under pso": ["check", "--model", "pso"],
    "robust against tso": ["robust"],
    "free of triangular races": ["robust", "--notion", "triangular"],
    "made safe under tso by fences": ["fences", "--model", "tso"],
    "made safe under pso by fences": ["fences", "--model", "pso"],
    "made robust against tso by fences": ["fences", "--goal", "robustness"],
    "made free of triangular races by fences": ["fences", "--goal", "triangular"],
}
"""The possible contents of a property file, each with the command that answers the question."""

ROBUST = {True: "safe", False: "unsafe", None: "unknown"}
"""The values of `robust` in the output of `robust --json`, as verdicts of `check --json`."""

FENCES = {"already-safe": "safe", "fixed": "safe", "unfixable": "unsafe", "unknown": "unknown"}
"""The verdicts of `fences --json`, as verdicts of `check --json`."""

EXECUTIONS = [',"trace":[', ',"witness":[', ',"fences":[']
"""The keys at which the executions begin in the line of an answer."""

MOST_CHARACTERS = 60
"""Maximum length of a message, because it is a cell of a table."""


class Tool(benchexec.tools.template.BaseTool2):
    """Fencewright: verifies concurrent programs on relaxed memory."""

    def __init__(self):
        # The expected number of fences for each command line, to be compared with the output.
        self._expected_fences = {}

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
        if command in ("check", "fences") and asked.get("property"):
            arguments += ["--property", str(asked["property"])]
        for define in asked.get("define") or []:
            arguments += ["-D", str(define)]
        if asked.get("format"):
            arguments += ["--format", str(asked["format"])]
        arguments += _limits(command, options, rlimits)
        # A path may begin with a dash.
        arguments += [*options, "--", task.single_input_file]
        if command == "fences":
            self._expected_fences[tuple(arguments)] = _fences(asked, task.property_file)
        return arguments

    def determine_result(self, run):
        if run.exit_code.signal is not None:
            # BenchExec adds the reason.
            return result.RESULT_ERROR
        answers = _answers(run.output)
        status = run.exit_code.value
        violated = [answer for answer in answers if answer["verdict"] == "unsafe"]
        expected = self._expected_fences.get(tuple(run.cmdline))
        if status == 0 and answers and expected is not None:
            return _counted(answers[0], expected)
        # The exit status and the output must agree: a program without properties, for example, proves nothing.
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
        """`engine`, `reason`, `states`, `seconds`, `check_seconds`, `memory_mib`, `checked`, `count`: distinct texts joined, and the maximum of numbers."""
        values = [answer.get(identifier) for answer in _answers(output)]
        values = [value for value in values if value is not None and not isinstance(value, (list, dict))]
        if values and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            # With several properties, figures are cumulative, so the largest is the total; only the checks of properties are separate.
            return str(sum(values) if identifier == "check_seconds" else max(values))
        texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
        return _escaped(", ".join(dict.fromkeys(texts))) if texts else None


def _question(property_file):
    if property_file is None:
        # Use the default model of the command, which is TSO.
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


def _limits(command, options, rlimits):
    """Options that set slightly smaller limits than those of the run, so that the tool stops by itself and reports what it has found."""
    given = {option.split("=")[0] for option in options}
    limits = []
    seconds = [limit for limit in (rlimits.walltime, rlimits.cputime) if limit is not None]
    if seconds and "--timeout" not in given:
        limits += ["--timeout", f"{int(min(seconds) * 950)}ms"]
    if rlimits.memory is not None and "--memory" not in given:
        # The limit of the run also includes the executable and its stacks.
        limits += ["--memory", str(rlimits.memory * 95 // 100)]
    if command != "fences" and rlimits.cpu_cores is not None and "--jobs" not in given:
        limits += ["--jobs", str(rlimits.cpu_cores)]
    return limits


def _answers(output):
    """The answers among the lines of an output; the last line may be incomplete if the run was killed."""
    answers = []
    for line in output:
        answer = _answer(line)
        if isinstance(answer, dict) and "robust" in answer:
            answer["verdict"] = ROBUST.get(answer["robust"], "unknown")
        elif isinstance(answer, dict) and "goal" in answer:
            answer["verdict"] = FENCES.get(answer.get("verdict"), "unknown")
        if isinstance(answer, dict) and isinstance(answer.get("verdict"), str):
            answers.append(answer)
    return answers


def _answer(line):
    """The object of a line, without its executions: they come last, may be a hundred megabytes long, and each column parses the output again."""
    # Quotes within strings are escaped, so these matches are keys.
    ends = [end for end in map(line.find, EXECUTIONS) if end >= 0]
    try:
        return json.loads(line[: min(ends)] + "}" if ends else line)
    except ValueError:
        return None


def _fences(asked, property_file):
    """The number of fences that the task definition expects, or None."""
    counts = asked.get("fences")
    question = os.path.splitext(os.path.basename(property_file or ""))[0]
    return counts.get(question) if isinstance(counts, dict) else None


def _counted(answer, expected):
    """The result of a question about fences with an expected number of fences."""
    count = answer.get("count")
    if count == expected:
        return result.RESULT_TRUE_PROP
    if answer.get("optimal") is True or not isinstance(count, int) or count < expected:
        return f"{result.RESULT_FALSE_PROP}({count}_fences)"
    # More fences than expected, but the answer does not claim to be optimal.
    return result.RESULT_UNKNOWN


def _property(answer):
    """The violated property, as a part of the result."""
    name = answer.get("property") or answer.get("goal") or "robustness"
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in str(name))[:MOST_CHARACTERS]


def _unknown(answers):
    """TIMEOUT or OUT OF MEMORY if a limit of the tool was reached, otherwise unknown."""
    unknown = [answer for answer in answers if answer["verdict"] == "unknown"]
    reasons = [str(answer.get("reason")) for answer in unknown]
    # If no property has a limit as its reason, one of the attempted engines may.
    tried = [attempt for answer in unknown for attempt in answer.get("tried") or [] if isinstance(attempt, dict)]
    for said in (reasons, [str(attempt.get("reason")) for attempt in tried]):
        limits = [reason for reason in said if "no answer within" in reason]
        if any("of memory" in reason for reason in limits):
            return "OUT OF MEMORY"
        if limits:
            return result.RESULT_TIMEOUT
    return result.RESULT_UNKNOWN


def _complaint(output):
    """The error message of the tool: from JSON, or plain text if the arguments are invalid."""
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
    """Escapes a value for HTML, because reasons quote the program."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

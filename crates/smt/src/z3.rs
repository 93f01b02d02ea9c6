//! Tier 3: Z3 over a pipe, if installed. Never needed, and never trusted without evidence: a model is evaluated here, and `unsat` is passed on as an
//! opinion ([`Answer::UnsatUnproved`]).
//!
//! One process lives as long as the solver and is replaced if it dies or does not answer in time. Each query is one `push` and `pop` around
//! declarations and assertions in SMT-LIB; a marker with the number of the query ends its answer. A thread reads the output of the process, so that
//! an unresponsive process costs no more than the time limit.

use crate::formula::Formula;
use crate::integer::Int;
use crate::solver::{Answer, Budget, Model, Reason, Solver};
use crate::term::{Atom, Linear, Relation, Var};
use num_bigint::BigInt;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The interval at which a wait for Z3 checks whether the query was cancelled.
const PATIENCE: Duration = Duration::from_millis(10);

/// Maximum length of a line that is read from the process.
const LONGEST_LINE: u64 = 1 << 24;

/// Z3 as a separate process.
pub struct Z3 {
    program: PathBuf,
    process: Option<Process>,
    /// Time limit per query: 10 seconds unless it is changed.
    pub time_limit: Duration,
    questions: u64,
}

struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already; failures are ignored.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Z3 {
    /// The program named by `FENCEWRIGHT_Z3` or, without that variable, `z3` on the search path; `None` if it does not start or does not answer.
    pub fn find() -> Option<Z3> {
        let named = std::env::var_os("FENCEWRIGHT_Z3").filter(|name| !name.is_empty());
        Z3::at(Path::new(&named.unwrap_or_else(|| "z3".into())))
    }

    /// Starts this program as a solver; `None` if it does not start or does not answer a first query.
    pub fn at(program: &Path) -> Option<Z3> {
        let process = Process::start(program).ok()?;
        let time_limit = Duration::from_secs(10);
        let mut solver =
            Z3 { program: program.to_path_buf(), process: Some(process), time_limit, questions: 0 };
        let soon = Budget { deadline: Some(Instant::now() + Duration::from_secs(2)), ..Budget::default() };
        solver.check(&[], &soon).is_sat().then_some(solver)
    }

    /// Sends a query, and returns the output of the process up to the marker.
    fn ask(&mut self, question: &str, budget: &Budget) -> Result<Vec<String>, Reason> {
        let external = |error: std::io::Error| Reason::External(error.to_string());
        self.questions += 1;
        let marker = format!("end-{}", self.questions);
        let mut process = match self.process.take() {
            Some(process) => process,
            None => Process::start(&self.program).map_err(external)?,
        };
        let limit = Instant::now() + self.time_limit;
        let deadline = budget.deadline.map_or(limit, |deadline| deadline.min(limit));
        let text = format!("{question}(echo \"{marker}\")\n");
        process.input.write_all(text.as_bytes()).and_then(|()| process.input.flush()).map_err(external)?;
        let mut answer = Vec::new();
        loop {
            budget.look()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Reason::Deadline);
            }
            match process.lines.recv_timeout(left.min(PATIENCE)) {
                Ok(line) if line.trim().trim_matches('"') == marker => break,
                Ok(line) => answer.push(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Reason::External("the process ended".into()));
                }
            }
        }
        // Only a process that answered in full is kept. Any other process has been dropped, which kills it.
        self.process = Some(process);
        Ok(answer)
    }
}

impl Process {
    fn start(program: &Path) -> std::io::Result<Process> {
        let mut child = Command::new(program)
            .args(["-in", "-smt2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("no pipe to the process"));
        };
        let (sender, lines) = channel();
        std::thread::Builder::new().spawn(move || {
            let mut reader = BufReader::new(output);
            loop {
                let mut line = String::new();
                match reader.by_ref().take(LONGEST_LINE).read_line(&mut line) {
                    Ok(length) if length > 0 && sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        })?;
        Ok(Process { child, input, lines })
    }
}

impl Solver for Z3 {
    fn check(&mut self, assertions: &[Formula], budget: &Budget) -> Answer {
        let mut variables: Vec<Var> = assertions.iter().flat_map(Formula::variables).collect();
        variables.sort_unstable();
        variables.dedup();
        let mut question = String::from("(push 1)\n");
        for var in &variables {
            let _ = writeln!(question, "(declare-const v{} Int)", var.0);
        }
        for assertion in assertions {
            question.push_str("(assert ");
            write_formula(&mut question, assertion);
            question.push_str(")\n");
        }
        question.push_str("(check-sat)\n");
        let verdict = match self.ask(&question, budget) {
            Ok(lines) => lines.concat().trim().to_string(),
            Err(reason) => return Answer::Unknown(reason),
        };
        let answer = match verdict.as_str() {
            "unsat" => Answer::UnsatUnproved,
            "sat" => match self.model(&variables, budget) {
                Ok(model) if assertions.iter().all(|assertion| model.satisfies(assertion)) => {
                    Answer::Sat(model)
                }
                Ok(_) => Answer::Unknown(Reason::External("the model is wrong".into())),
                Err(reason) => Answer::Unknown(reason),
            },
            other => Answer::Unknown(Reason::External(other.chars().take(200).collect())),
        };
        // If the `pop` fails, `ask` drops the process, and the next query starts another process.
        if self.process.is_some() {
            let _ = self.ask("(pop 1)\n", &Budget::default());
        }
        answer
    }
}

impl Z3 {
    fn model(&mut self, variables: &[Var], budget: &Budget) -> Result<Model, Reason> {
        if variables.is_empty() {
            return Ok(Model::new(Vec::new()));
        }
        let mut question = String::from("(get-value (");
        for var in variables {
            let _ = write!(question, " v{}", var.0);
        }
        question.push_str("))\n");
        let text = self.ask(&question, budget)?.concat();
        parse_values(&text).ok_or_else(|| Reason::External("the model cannot be read".into()))
    }
}

/// Parses `((v0 5) (v1 (- 3)))`.
fn parse_values(text: &str) -> Option<Model> {
    let mut values = Vec::new();
    let mut var = None;
    let mut negative = false;
    for word in
        text.split(|c: char| c.is_whitespace() || c == '(' || c == ')').filter(|word| !word.is_empty())
    {
        if let Some(number) = word.strip_prefix('v') {
            var = Some(Var(number.parse().ok()?));
            negative = false;
        } else if word == "-" {
            negative = true;
        } else {
            let size = Int::from(word.parse::<BigInt>().ok()?);
            values.push((var.take()?, if negative { -&size } else { size }));
        }
    }
    Some(Model::new(values))
}

/// Writes a formula in SMT-LIB, without recursion.
fn write_formula(out: &mut String, formula: &Formula) {
    enum Piece<'a> {
        Formula(&'a Formula),
        Close,
    }
    let mut work = vec![Piece::Formula(formula)];
    while let Some(piece) = work.pop() {
        let (word, parts) = match piece {
            Piece::Close => {
                out.push(')');
                continue;
            }
            Piece::Formula(Formula::True) => {
                out.push_str(" true");
                continue;
            }
            Piece::Formula(Formula::False) => {
                out.push_str(" false");
                continue;
            }
            Piece::Formula(Formula::Atom(atom)) => {
                write_atom(out, atom);
                continue;
            }
            Piece::Formula(Formula::And(parts)) => (" (and", parts),
            Piece::Formula(Formula::Or(parts)) => (" (or", parts),
        };
        out.push_str(word);
        work.push(Piece::Close);
        work.extend(parts.iter().rev().map(Piece::Formula));
    }
}

fn write_atom(out: &mut String, atom: &Atom) {
    let (before, after) = match atom.relation() {
        Relation::Le => (" (<= ", " 0)"),
        Relation::Eq => (" (= ", " 0)"),
        Relation::Ne => (" (not (= ", " 0))"),
    };
    out.push_str(before);
    write_linear(out, atom.linear());
    out.push_str(after);
}

fn write_linear(out: &mut String, linear: &Linear) {
    out.push_str("(+ ");
    write_number(out, linear.constant_part());
    for (var, factor) in linear.terms() {
        out.push_str(" (* ");
        write_number(out, factor);
        let _ = write!(out, " v{})", var.0);
    }
    out.push(')');
}

fn write_number(out: &mut String, value: &Int) {
    let _ = if value.is_negative() { write!(out, "(- {})", value.abs()) } else { write!(out, "{value}") };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let model = parse_values("((v0 5)\n (v12 (- 3)) (v3 123456789012345678901234567890))").unwrap();
        assert_eq!(model.value(Var(12)), Int::from(-3));
        assert_eq!(model.value(Var(3)).to_string(), "123456789012345678901234567890");
        assert_eq!(parse_values("(error \"no\")"), None);
        assert_eq!(parse_values("((v0 5.5))"), None);
    }

    #[test]
    fn formulas_are_written_in_prefix_form() {
        let mut text = String::new();
        let formula = Formula::or([
            Formula::le(Var(0), -2),
            Formula::and([Formula::ne(Var(1), 1), Formula::eq(Var(2), 0)]),
        ]);
        write_formula(&mut text, &formula);
        let expected =
            " (or (<= (+ 2 (* 1 v0)) 0) (and (not (= (+ (- 1) (* 1 v1)) 0)) (= (+ 0 (* 1 v2)) 0)))";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_program_that_is_no_solver_is_not_used() {
        assert!(Z3::at(Path::new("/nonexistent/z3")).is_none());
    }
}

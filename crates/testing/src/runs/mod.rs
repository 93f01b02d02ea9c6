//! Random C programs of one thread, to be compared with what a compiler makes of them.
//!
//! A [`Run`] is a function of a small number that records results. Its values come from variables, members, arrays, allocations and arrays of lengths
//! that depend on the number; it calls functions by name, through pointers to them, and functions that call themselves; it jumps, and it has assembly
//! and futexes. Some programs have a second file, in which static names have other meanings. Every variable is initialised, and the order of
//! evaluation never matters, so a run has one outcome: its results, or a mistake that the sanitizers of a compiler find.

mod expressions;
mod files;
mod functions;
mod futexes;
mod statements;

use std::fmt::Write;

use fencewright_generate::Random;

/// The number of different arguments of a run, which are the numbers from 0 on.
pub const ARGUMENTS: usize = 4;
/// The number of results that a run records.
pub const RESULTS: usize = 6;

/// A random program of one thread.
#[derive(Clone, Debug)]
pub struct Run {
    /// The declarations. The function `NAME_run` takes the argument as an `int`, and writes the results to the array `NAME_out`.
    pub text: String,
    /// The second file, if the program has one. Its static names and some types are those of the first file, with other meanings.
    pub other: Option<String>,
    /// The start of all names of the program, without the underscore.
    pub name: String,
}

/// The headers and macros that the text of a run needs.
pub const HEADERS: &str = "#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
";

/// A random program whose names start with `name`.
pub fn run(random: &mut Random, name: &str) -> Run {
    let other = random.one_in(3).then(|| Writer::new(random, name, true).second_file());
    let mut writer = Writer::new(random, name, false);
    writer.declarations();
    if other.is_some() {
        writer.of_second_file();
    }
    for _ in 0..2 + writer.random.below(4) {
        writer.function();
    }
    if other.is_some() {
        writer.for_second_file();
    }
    writer.higher_order();
    writer.tables();
    writer.has_tables = true;
    writer.start();
    Run { text: writer.text, other, name: name.into() }
}

/// Writes a program.
struct Writer<'r> {
    random: &'r mut Random,
    name: String,
    text: String,
    /// The scalar variables that can be read and written here.
    variables: Vec<String>,
    /// The functions written so far that take two numbers and return one.
    functions: Vec<String>,
    /// Number of names used so far.
    fresh: usize,
    /// Whether the tables of functions and the functions that use them are declared.
    has_tables: bool,
    /// Nesting depth of statements.
    depth: usize,
    /// How many statements the current function may still have.
    budget: usize,
    /// Whether this is the second file of the program.
    is_second: bool,
}

impl<'r> Writer<'r> {
    fn new(random: &'r mut Random, name: &str, is_second: bool) -> Self {
        Writer {
            random,
            name: name.into(),
            text: String::new(),
            variables: Vec::new(),
            functions: Vec::new(),
            fresh: 0,
            has_tables: false,
            depth: 0,
            budget: 0,
            is_second,
        }
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }

    /// A new name.
    fn name(&mut self, stem: &str) -> String {
        self.fresh += 1;
        format!("{stem}{}", self.fresh)
    }

    /// The types and variables with static storage.
    fn declarations(&mut self) {
        let n = self.name.clone();
        self.line(&format!("typedef int (*{n}_F)(int, int);"));
        self.line(&format!("struct {n}_ops {{ int tag; {n}_F first, second; }};"));
        self.line(&format!("struct {n}_hook {{ {n}_F call; int count; }};"));
        self.line(&format!(
            "struct {n}_device {{ int kind; struct {n}_hook hook; struct {n}_ops *ops; int value; }};"
        ));
        self.line(&format!("struct {n}_derived {{ struct {n}_hook base; {n}_F other; int extra; }};"));
        self.line(&format!("struct {n}_node {{ struct {n}_node *next; int value; }};"));
        self.line(&format!("struct {n}_row {{ int length; int cells[]; }};"));
        self.line(&format!("struct {n}_pair {{ int a; unsigned char b; }};"));
        let storage = if self.is_second { "extern " } else { "" };
        self.line(&format!("{storage}int {n}_out[{RESULTS}];"));
        let word = self.random.below(3);
        self.line(&format!("static int {n}_word = {word}, {n}_other_word;"));
        for (number, ty) in ["int", "unsigned", "unsigned char", "short", "long"].iter().enumerate() {
            let start = self.random.below(5);
            self.line(&format!("static {ty} {n}_g{number} = {start};"));
            self.variables.push(format!("{n}_g{number}"));
        }
        self.line(&format!("static int {n}_array[4] = {{ 3, 1, 2 }};"));
        self.line(&format!("static struct {n}_pair {n}_pair = {{ 1, 2 }};"));
        self.line(&format!("static struct {n}_device {n}_devices[2];"));
        self.line(&format!("static struct {n}_derived {n}_derived;"));
        self.variables.extend([format!("{n}_pair.a"), format!("{n}_pair.b"), format!("{n}_array[2]")]);
    }

    /// The function `NAME_run`, which is called with the argument.
    fn start(&mut self) {
        let n = self.name.clone();
        self.line(&format!("void {n}_run(int in)\n{{"));
        let outer = self.variables.len();
        self.line("int x = in, y = 1;");
        self.variables.extend(["x".into(), "y".into()]);
        self.budget = 9;
        let count = 4 + self.random.below(4);
        self.block_of(count);
        for result in 0..RESULTS {
            let value = match result {
                0 => "x".into(),
                1 => format!("(int)({n}_g{})", self.random.below(5)),
                2 => format!("{n}_array[0] + 3 * {n}_array[1] + 5 * {n}_array[3]"),
                3 => format!("{n}_pair.a"),
                _ => self.number(1),
            };
            self.line(&format!("{n}_out[{result}] = {value};"));
        }
        self.variables.truncate(outer);
        self.line("}");
    }
}

//! No input makes an importer panic, hang or exhaust memory.

use fencewright_lang::ast::{Block, Expr, ExprKind, File, Item, Statement, StatementKind};
use fencewright_lang::diagnostic::Diagnostic;
use fencewright_lang::front_end::{Parsed, detect};
use fencewright_lang::import::{litmus, rmm, trencher};
use fencewright_lang::{export, lower};
use fencewright_program::{Program, Span};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const PETERSON: &str = "/* Peterson */ forbidden CS CS; * CS data turn = * : [0:1]\n\
    macro lock(mine, other) process data flag = 0 : [0:1] registers $r = * : [0:1] $s = -1\n\
    text L0: write: flag[my] := 1; write: turn := other;\n\
    L1: either { read: flag[0] = 0 or read: turn = mine; nop or goto L0 or { L2: nop } };\n\
    while $r = 1 && [not $s < 2 || true] do { read: $r := flag[0] }; if $r != $s + 1 - (2) then goto L1 else nop;\n\
    locked { read: turn = 1; $r := 0 or write: turn := 0 }; cas([0], $r, 1); slocked write: [$r] := 1;\n\
    locked write: turn := 1; fence; ssfence; assume: $r >= 0;\n\
    CS: write: flag[my] := 0; goto L0 endmacro lock(0, 1) lock(1, 0)";

const AUTOMATA: &str = "# comment\nthread t0 initial q0 transition q0 q1 write 1 + 2 r transition q1 q2 read r 5\n\
    transition q1 q0 check && == r 1x ! < s -3 transition q2 q3 local s & * r 2 s transition q3 q4 lock\n\
    transition q4 q5 unlock transition q5 q6 mfence transition q6 q7 noop end\nthread t1 initial a end";

const TEST: &str = "X86_64 SB+all (old) \"doc\"\nOrig=x {\n{ x=1; 0:EAX=2; int y = 0x3; [z]=-1; uint64_t w; int8_t a[2]={1,-2}; 0:rdi=x; 0:rsi=a; uint8_t 1:rax; }\n\
    P0 | P1 ;\n MOV [x],$1 | movl $1,(y) ;\n L0: | LOCK ; incl x(%rip) ;\n XCHG [y],EAX | INC [x] ;\n\
    CMP EBX,$-1 | LOCK CMPXCHG [x],ECX ;\n JNE L0 | lock xaddl %edx,(x) ;\n movl $1,(%rdi) | cmovbe (y),%edx ;\n\
    movq $0xffffffffffffffff,(w) | setg %dl ;\n movb 1(%rsi),%cl | movsbl %dl,%ebx ;\n MFENCE | (* none *) ;\n notb %ch | ret ;\n\
    locations [x;0:EAX;a[1];0:rdi;]\nfilter x=1\n~exists (0:EAX=1 /\\ ~(y<>2 \\/ [z]=0x1) => 1:RBX=[x] /\\ 0:rdi=x);\nwith\ntso: x;\n<< show >>";

fn all(text: &str) {
    detect("", text);
    for (name, import) in [("rmm", rmm as Importer), ("trencher", trencher), ("litmus", litmus)] {
        match import(text) {
            Ok(imported) => {
                spans_of(&imported.file).iter().for_each(|s| inside(*s, text, name));
                let lowered = lower::lower(&imported.file, &[]);
                let program = lowered.unwrap_or_else(|e| panic!("{name}: {e:?}\n{text}"));
                export_all(&program, text);
            }
            Err(diagnostics) => {
                assert!(!diagnostics.is_empty(), "{name}: an error without a message");
                diagnostics.iter().for_each(|d| inside(d.span, text, name));
            }
        }
    }
}

/// Checks that every exported text can be imported.
fn export_all(program: &Program, text: &str) {
    let exported = [
        (export::rmm(program), rmm as Importer),
        (export::trencher(program), trencher),
        (export::litmus(program, "t"), litmus),
    ];
    for (exported, import) in exported {
        let Ok(exported) = exported else { continue };
        assert!(import(&exported).is_ok(), "{:?}\n{exported}\n{text}", import(&exported).err());
    }
}

type Importer = fn(&str) -> Result<Parsed, Vec<Diagnostic>>;

/// Checks that a span is valid, because code that shows source lines relies on it.
fn inside(span: Span, text: &str, name: &str) {
    let range = span.range();
    assert!(text.get(range.clone()).is_some(), "{name}: span {range:?} of a text of {} bytes", text.len());
}

fn spans_of(file: &File) -> Vec<Span> {
    let mut spans = Vec::new();
    for item in &file.items {
        match item {
            Item::Thread(thread) => {
                spans.push(thread.span);
                in_block(&thread.body, &mut spans);
            }
            Item::Property(property) => {
                spans.push(property.span);
                in_expr(&property.formula, &mut spans);
            }
            Item::Shared(declarators) => spans.extend(declarators.iter().map(|d| d.span)),
            other => panic!("no importer makes {other:?}"),
        }
    }
    spans
}

fn in_block(block: &Block, spans: &mut Vec<Span>) {
    spans.push(block.span);
    block.statements.iter().for_each(|s| in_statement(s, spans));
}

fn in_statement(statement: &Statement, spans: &mut Vec<Span>) {
    spans.push(statement.span);
    spans.extend(statement.labels.iter().map(|l| l.span));
    match &statement.kind {
        StatementKind::Assign(place, value) => {
            spans.push(place.name.span);
            in_expr(value, spans);
        }
        StatementKind::Expr(e) | StatementKind::Assume(e) | StatementKind::Await(e) => in_expr(e, spans),
        StatementKind::Atomic(b)
        | StatementKind::Snapshot(b)
        | StatementKind::Block(b)
        | StatementKind::Steps(b) => in_block(b, spans),
        StatementKind::While(e, b) => {
            in_expr(e, spans);
            in_block(b, spans);
        }
        StatementKind::If(e, then, otherwise) => {
            in_expr(e, spans);
            in_block(then, spans);
            otherwise.iter().for_each(|b| in_block(b, spans));
        }
        StatementKind::Choose(blocks) => blocks.iter().for_each(|b| in_block(b, spans)),
        _ => {}
    }
}

fn in_expr(expr: &Expr, spans: &mut Vec<Span>) {
    spans.push(expr.span);
    match &expr.kind {
        ExprKind::Unary(_, operand) | ExprKind::Swap(_, operand) | ExprKind::FetchAdd(_, operand) => {
            in_expr(operand, spans);
        }
        ExprKind::Binary(_, left, right) => {
            in_expr(left, spans);
            in_expr(right, spans);
        }
        _ => {}
    }
}

/// Random words of all three formats, some of them malformed.
fn soup() -> impl Strategy<Value = String> {
    let words: Vec<&str> = [PETERSON, AUTOMATA, TEST].iter().flat_map(|t| t.split_whitespace()).collect();
    let more = [
        "process(2)",
        "process(999999999999)",
        "$r",
        "99999999999999999999",
        "-",
        "(*",
        "*)",
        "/*",
        "é",
        "\u{feff}",
        "forbidden",
        "X86",
        "thread",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "|",
        ";\n",
        ":",
        "exists",
        "macro",
        "endmacro",
        "$",
        "LOCK",
        "0:rdi=x;",
        "(%rdi)",
        "8(%rdi,%rax,4)",
        "-1(%rsi)",
        "%ah",
        "cmovnaeq",
        "setnle",
        "movzbl",
        "x(%rip)",
        "int16_t a[3]={1,2,3};",
        "DWORD",
        "PTR",
        "18446744073709551615",
        "-9223372036854775808",
        "locations",
        "filter",
        "a[99999999999]",
    ];
    let words: Vec<String> = words.into_iter().chain(more).map(str::to_owned).collect();
    let start =
        prop_oneof![Just(""), Just("forbidden CS process text "), Just("thread t "), Just("X86 t\n{}\nP0;")];
    (start, prop::collection::vec(prop::sample::select(words), 0..60))
        .prop_map(|(s, w)| s.to_owned() + &w.join(" "))
}

/// One of the samples with a few bytes changed, removed or duplicated.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0..4_u8, any::<u8>());
    let sample = prop::sample::select(vec![PETERSON, AUTOMATA, TEST]);
    (sample, prop::collection::vec(edit, 1..6)).prop_map(|(sample, edits)| {
        let mut bytes = sample.as_bytes().to_vec();
        for (index, action, byte) in edits {
            let at = index.index(bytes.len());
            match action {
                0 => bytes[at] = byte,
                1 => bytes.truncate(at.max(1)),
                2 => drop(bytes.splice(at..(at + 7).min(bytes.len()), [])),
                _ => {
                    let piece = bytes[at..(at + 30).min(bytes.len())].to_vec();
                    drop(bytes.splice(at..at, piece));
                }
            }
            if bytes.is_empty() {
                bytes.push(b' ');
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        all(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_words(text in soup()) {
        all(&text);
    }

    #[test]
    fn samples_with_mistakes(text in mutated()) {
        all(&text);
    }
}

#[test]
fn the_samples_are_right() {
    assert!(rmm(PETERSON).is_ok(), "{:?}", rmm(PETERSON));
    assert_eq!(rmm(PETERSON).unwrap().file.items.len(), 5);
    assert!(trencher(AUTOMATA).is_ok(), "{:?}", trencher(AUTOMATA));
    assert!(litmus(TEST).is_ok(), "{:?}", litmus(TEST));
    for text in [PETERSON, AUTOMATA, TEST] {
        all(text);
    }
}

fn message(result: Result<Parsed, Vec<Diagnostic>>) -> String {
    result.err().map_or("no error".to_owned(), |d| d[0].message.clone())
}

#[test]
fn deep_nesting_is_an_error() {
    const DEEP: usize = 200_000;
    let process = |text: &str| format!("forbidden * process registers $r = 0 text {text}");
    let check = |text: String| assert_eq!(message(rmm(&process(&text))), "nested too deeply");
    check("{".repeat(DEEP));
    check("either {".repeat(DEEP));
    check("if true then ".repeat(DEEP));
    check(format!("$r := {}", "(".repeat(DEEP)));
    check(format!("$r := {}", "-".repeat(DEEP)));
    check(format!("assume: {}", "[".repeat(DEEP)));
    check(format!("locked {{ {}", "{".repeat(DEEP)));
    let long = process(&format!("$r := {} 1", "1 + ".repeat(DEEP)));
    assert_eq!(message(rmm(&long)), "the expression is too long");
    let broad_and_deep = format!("{}1{}", "(1 + 1 + 1 + 1 + ".repeat(99), ")".repeat(99));
    assert!(rmm(&process(&format!("$r := {broad_and_deep}"))).is_ok());
    let chain = vec!["$r = 0"; 10_000].join(" && ");
    assert!(rmm(&process(&format!("assume: {chain}"))).is_ok());

    let deep = format!("thread t initial q transition q q check {}", "! ".repeat(DEEP));
    assert_eq!(message(trencher(&deep)), "nested too deeply");

    let test = |condition: String| message(litmus(&format!("X86 t\n{{}}\nP0;\nexists {condition}")));
    assert_eq!(test("(".repeat(DEEP)), "nested too deeply");
    assert_eq!(test("~".repeat(DEEP)), "nested too deeply");
    assert_eq!(test("x=1 => ".repeat(DEEP)), "nested too deeply");
    assert_eq!(test(vec!["x=1"; 10_000].join(" /\\ ")), "no error");
    assert_eq!(message(litmus(&format!("X86 t {}", "(*".repeat(DEEP)))), "this comment is never closed");
}

#[test]
fn bombs_are_errors() {
    let mut bomb = "forbidden * process text macro m0() nop; endmacro ".to_owned();
    for level in 1..60 {
        bomb += &format!("macro m{level}() m{0}() m{0}() endmacro ", level - 1);
    }
    assert_eq!(message(rmm(&(bomb + "m59() nop"))), "macros expand to more than 1000000 tokens");

    let many = "forbidden * process(999999999) text nop";
    assert_eq!(message(rmm(many)), "more than 1000 processes, or 1000000 tokens in all of them");

    let globals: String = (0..20_000).map(|k| format!("g{k} = 0 ")).collect();
    let pointers = vec!["write: [$r] := 1"; 1_000].join(";");
    let pointers = format!("forbidden * data {globals} process registers $r = 0 text {pointers}");
    assert_eq!(message(rmm(&pointers)), "pointers make more than 1000000 tokens of this program");
}

#[test]
fn large_inputs_take_linear_time() {
    let transitions: String =
        (0..50_000).map(|k| format!("transition {k} {} read r{k} + r{k} é{k}\n", k + 1)).collect();
    assert!(trencher(&format!("thread t initial 0 {transitions} end")).is_ok());
    let counting: String =
        (0..2_000).map(|k| format!("transition {k} {} local r + r {k}\n", k + 1)).collect();
    let counting =
        format!("thread t initial 0 {counting} transition 0 0 read x r transition 0 0 write x r end");
    assert_eq!(trencher(&counting).unwrap().notes.len(), 1);
    let rows = "MOV [x],$1 | MOV EAX,[x] ;\n".repeat(50_000);
    assert!(litmus(&format!("X86 t\n{{}}\nP0 | P1;\n{rows}exists x=1")).is_ok());
    let statements = vec!["write: x := 1"; 50_000].join(";\n");
    assert!(rmm(&format!("forbidden * data x = 0 process text {statements}")).is_ok());
}

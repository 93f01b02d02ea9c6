//! What litmus tests become.

use fencewright_lang::{fw, import};

/// The import of `test` is the same program as `expected`.
fn check(test: &str, expected: &str) {
    let imported = import::litmus(test).unwrap_or_else(|e| panic!("{e:?}\n{test}"));
    let (expected, errors) = fw::parse(expected);
    assert_eq!(errors, []);
    assert_eq!(fw::print(&imported.file), fw::print(&expected), "{test}");
}

/// One thread with these rows has these declarations and this body.
fn check_code(rows: &str, shared: &str, registers: &str, body: &str) {
    check(
        &format!("X86 t\n{{}}\nP0 ;\n{rows}\nexists true"),
        &format!("{shared} thread P0 {{ {registers} {body} }} finally condition: exists true;"),
    );
}

/// The condition of a test with two threads and nothing else becomes this property.
fn check_condition(condition: &str, expected: &str) {
    check(
        &format!("X86 t\n{{ x=0; y=0; 0:EAX=0; 1:EAX=0; }}\nP0 | P1 ;\n{condition}"),
        &format!(
            "shared x, y; thread P0 {{ var EAX; }} thread P1 {{ var EAX; }} finally condition: {expected};"
        ),
    );
}

/// The import fails with this message, at this piece of the text.
fn check_error(test: &str, message: &str, place: &str) {
    let error = import::litmus(test).expect_err(test).remove(0);
    let at = &test[error.span.start as usize..error.span.end as usize];
    assert_eq!((error.message.as_str(), at), (message, place), "{test}");
}

fn check_code_error(rows: &str, message: &str, place: &str) {
    check_error(&format!("X86 t\n{{}}\nP0 ;\n{rows}\nexists true"), message, place);
}

#[test]
fn store_buffering() {
    let text = "X86 SB+mfence (old name) \"doc (* string\"\nOrig=PodWR {x}\n(* comment (* nested *) *)\n{ x=0; y=2; 0:EBX=3; }\n\
        P0          | P1          ;\n MOV [x],$1  | mov [y], 1  ;\n MFENCE      |             ;\n MOV EAX,[y] | MOV EAX,[x] ;\n\
        locations [x; 0:EAX;]\nexists (0:EAX=0 /\\ 1:EAX=0)";
    check(
        text,
        "shared x, y = 2; thread P0 { var EBX = 3, EAX; x = 1; fence; EAX = y; } thread P1 { var EAX; y = 1; EAX = x; }
         finally condition: exists P0.EAX == 0 && P1.EAX == 0;",
    );
    assert_eq!(import::litmus(text).unwrap().name.as_deref(), Some("SB+mfence"));
}

#[test]
fn initial_states() {
    check(
        "X86 t\n{int x = 3; [y]=-1; uint64_t z; unsigned int w=0x10; int 0:RAX=5; P0:EBX = 6};\nP0;\nforall true;\nwith\nx: y;",
        "shared x = 3, y = -1, z, w = 16; thread P0 { var RAX = 5, EBX = 6; } finally condition: forall true;",
    );
}

#[test]
fn moves() {
    check_code("MOV [x],$0x2 ;", "shared x;", "", "x = 2;");
    check_code("MOV DWORD PTR [x],-1 ;", "shared x;", "", "x = -1;");
    check_code("mov eax,[x] ;", "shared x;", "var EAX;", "EAX = x;");
    check_code(
        "MOV EAX,$1 ; MOV EBX,RAX ; MOV [x],R8D ;",
        "shared x;",
        "var EAX, EBX, R8D;",
        "EAX = 1; EBX = EAX; x = R8D;",
    );
    check_code("movl $1,(x) ; movq (x),%rax ;", "shared x;", "var RAX;", "x = 1; RAX = x;");
}

#[test]
fn fences_and_nothing() {
    check_code("MFENCE ; SFENCE ; LFENCE ; NOP ; ;", "", "", "fence; sfence; skip; skip;");
}

#[test]
fn exchanges() {
    check_code("XCHG [x],EAX ;", "shared x;", "var EAX;", "EAX = swap(x, EAX);");
    check_code("xchg EAX,[x] ;", "shared x;", "var EAX;", "EAX = swap(x, EAX);");
    check_code("LOCK XCHG EAX,[x] ;", "shared x;", "var EAX;", "EAX = swap(x, EAX);");
    check_code("XCHG EAX,EBX ;", "", "var EAX, EBX, tmp;", "tmp = EAX; EAX = EBX; EBX = tmp;");
    check_code("LOCK XADD [x],EAX ;", "shared x;", "var EAX;", "EAX = fetch_add(x, EAX);");
    check_code("XADD [x],EAX ;", "shared x;", "var EAX, tmp;", "tmp = x; x = tmp + EAX; EAX = tmp;");
    check_code("XADD EAX,EBX ;", "", "var EAX, EBX, tmp;", "tmp = EAX + EBX; EBX = EAX; EAX = tmp;");
    check_code(
        "LOCK CMPXCHG [x],EBX ;",
        "shared x;",
        "var EBX, EAX, tmp;",
        "atomic { tmp = x; if tmp == EAX { x = EBX; } else { EAX = tmp; } }",
    );
    check_code(
        "MOV RAX,$1 ; CMPXCHG [x],EBX ;",
        "shared x;",
        "var RAX, EBX, tmp;",
        "RAX = 1; tmp = x; if tmp == RAX { x = EBX; } else { RAX = tmp; }",
    );
}

#[test]
fn arithmetic() {
    check_code("INC EAX ; SUB EAX,$2 ;", "", "var EAX;", "EAX = EAX + 1; EAX = EAX - 2;");
    check_code("ADD EAX,[x] ; XOR EAX,EAX ;", "shared x;", "var EAX;", "EAX = EAX + x; EAX = EAX ^ EAX;");
    check_code("DEC [x] ;", "shared x;", "var tmp;", "tmp = x; x = tmp - 1;");
    check_code("LOCK INC [x] ; LOCK DEC [x] ;", "shared x;", "", "fetch_add(x, 1); fetch_add(x, -1);");
    check_code("LOCK ; SUB [x],EAX ;", "shared x;", "var EAX;", "fetch_add(x, -EAX);");
    check_code("LOCK AND [x],$6 ;", "shared x;", "var tmp;", "atomic { tmp = x; x = tmp & 6; }");
    check_code(
        "addl $2,%eax ; NEG EAX ; OR EAX,EBX ;",
        "",
        "var EAX, EBX;",
        "EAX = EAX + 2; EAX = -EAX; EAX = EAX | EBX;",
    );
}

#[test]
fn jumps() {
    check_code(
        "L0: MOV EAX,[x] ; CMP EAX,$0 ; JE L0 ; JMP end ; end: ;",
        "shared x;",
        "var EAX, flags_left, flags_right;",
        "L0: EAX = x; flags_left = EAX; flags_right = 0; if flags_left == flags_right { goto L0; } goto end_; end_:",
    );
    check_code(
        "L: ; LOCK DEC [x] ; JGE L ; TEST EAX,EAX ; JNZ L ;",
        "shared x;",
        "var tmp, flags_left, flags_right, EAX;",
        "L: tmp = fetch_add(x, -1); flags_left = tmp + -1; flags_right = 0; if flags_left >= flags_right { goto L; }
         flags_left = EAX & EAX; flags_right = 0; if flags_left != flags_right { goto L; }",
    );
    check_code(
        "L: LOCK CMPXCHG [x],EBX ; JNE L ;",
        "shared x;",
        "var EBX, EAX, tmp, flags_left, flags_right;",
        "L: atomic { tmp = x; flags_left = EAX; flags_right = tmp; if tmp == EAX { x = EBX; } else { EAX = tmp; } }
         if flags_left != flags_right { goto L; }",
    );
}

#[test]
fn conditions() {
    check_condition("exists x=1 /\\ y=2 \\/ 0:EAX=3", "exists x == 1 && y == 2 || P0.EAX == 3");
    check_condition("~exists (P0:EAX = 1 /\\ [x]=0x10);", "never P0.EAX == 1 && x == 16");
    check_condition("~ exists x<>1", "never x != 1");
    check_condition("not exists x!=1", "never x != 1");
    check_condition("forall ~(x=1 \\/ not y==-1) /\\ true", "forall !(x == 1 || !(y == -1)) && true");
    check_condition("final (1:eax = 1);\nwith\ntso: ~exists;\n<<\nshow 0\n>>", "exists P1.EAX == 1");
    check_condition("forall (x=1 => y=1)", "forall !(x == 1) || y == 1");
    check_condition("locations [x;[y];]\nfilter (x=1)\nexists y=1", "exists x == 1 && y == 1");
    check_condition("filter x=1\nforall y=1", "forall !(x == 1) || y == 1");
}

#[test]
fn what_only_the_condition_mentions_is_zero() {
    check(
        "X86 t\n{}\nP0 ;\n MOV [x],$1;\nexists (0:RBX=0 /\\ z=0)",
        "shared x, z; thread P0 { var RBX; x = 1; } finally condition: exists P0.RBX == 0 && z == 0;",
    );
}

#[test]
fn names_that_are_not_allowed_are_changed() {
    check_code(
        "MOV [lock],$1 ; MOV [tmp],$1 ; MOV [P0],$1 ; MOV [a.b],$1 ;",
        "shared lock_, tmp_, P0_, a_b;",
        "",
        "lock_ = 1; tmp_ = 1; P0_ = 1; a_b = 1;",
    );
}

#[test]
fn a_test_may_have_no_condition() {
    let imported = import::litmus("X86 t\n{}\nP0 ;\nMFENCE ;\nlocations [x;]").unwrap();
    assert_eq!(imported.notes, ["the test has no condition"]);
}

#[test]
fn errors() {
    check_error("", "expected `X86` or `X86_64`, found the end", "");
    check_error("PPC t", "expected `X86` or `X86_64`, found `PPC`", "PPC");
    check_error("X86 t", "the test has no initial state `{ ... }`", "");
    check_error("X86 t\n{ x=1;", "this brace is never closed", "{");
    check_error("X86 t\n{}", "no program follows the initial state", "{");
    check_error("X86 t\n{}\nP0 | Q1 ;", "expected the name of a thread like `P0`, found `Q1`", "Q1");
    check_error("X86 t\n{}\nP0 | P0 ;", "thread `P0` is there twice", "P0");
    check_error("X86 t\n{}\nP0 | P1 ;\n NOP ;", "this row has 1 columns, but there are 2 threads", "NOP ");
    check_error("X86 t\n{}\nP0 ;\n NOP", "this row of the program has no `;` at its end", "NOP");
    check_error("X86 t\n{ 0:RAX=x; }\nP0;", "addresses as values are not supported", "x");
    check_error("X86 t\n{ int *p; }\nP0;", "pointers are not supported", "*");
    check_error("X86 t\n{ int a[2]; }\nP0;", "arrays are not supported", "[");
    check_error("X86 t\n{ 3:EAX=1; }\nP0;", "no thread `3`", "3");
    check_error("X86 t\n{}\nP0;\nexists 1:EAX=0", "no thread `1`", "1");
    check_error("X86 t\n{}\nP0;\nexists x=y", "addresses as values are not supported", "y");
    check_error("X86 t\n{}\nP0;\nexists x=1 x=2", "expected the end of the condition, found `x`", "x");
    check_error("X86 t\n{}\nP0;\n~forall x=1", "expected `exists`, found `forall`", "forall");
    check_code_error("MOVNTI [x],EAX ;", "instruction `MOVNTI` is not supported", "MOVNTI");
    check_code_error("MOV AL,$1 ;", "the parts of registers (8 and 16 bits) are not supported", "AL");
    check_code_error("MOV BYTE PTR [x],$1 ;", "accesses of 8 and 16 bits are not supported", "BYTE");
    check_code_error("MOV EAX,[EBX] ;", "computed addresses are not supported", "[EBX");
    check_code_error("MOV EAX,[x+4] ;", "computed addresses are not supported", "[x");
    check_code_error("MOV [x],[y] ;", "an instruction cannot have two operands in memory", "MOV [x],[y]");
    check_code_error("MOV $1,EAX ;", "MOV does not take these operands", "MOV $1,EAX");
    check_code_error("INC $1 ;", "a number cannot be changed", "INC $1");
    check_code_error("LOCK MOV [x],$1 ;", "this instruction cannot have a `LOCK` prefix", "LOCK");
    check_code_error("LOCK INC EAX ;", "this instruction cannot have a `LOCK` prefix", "LOCK");
    check_code_error("LOCK ;", "no instruction follows this `LOCK`", "LOCK");
    check_code_error("JE L9 ;", "no label `L9` in this thread", "L9");
    check_code_error("L: ; L: ;", "label `L` is defined twice", "L");
    check_code_error(
        "MOV EAX,x ;",
        "expected a register, a number or a location in brackets, found `x`",
        "x",
    );
}

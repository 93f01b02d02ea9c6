//! The import of litmus tests.

use fencewright_lang::import;

use crate::imports;

/// Checks that the import of `text` is the same program as `expected`.
fn check(text: &str, expected: &str) {
    imports::check(import::litmus(text), text, expected);
}

/// Checks the declarations and the body of a thread with these rows.
fn check_code(rows: &str, shared: &str, registers: &str, body: &str) {
    check(
        &format!("X86 t\n{{}}\nP0 ;\n{rows}\nexists true"),
        &format!("{shared} thread P0 {{ {registers} {body} }} finally condition: exists true;"),
    );
}

/// Checks the property that is made from the condition of a test with two empty threads.
fn check_condition(condition: &str, expected: &str) {
    check(
        &format!("X86 t\n{{ x=0; y=0; 0:EAX=0; 1:EAX=0; }}\nP0 | P1 ;\n{condition}"),
        &format!(
            "shared x, y; thread P0 {{ var EAX; }} thread P1 {{ var EAX; }} finally condition: {expected};"
        ),
    );
}

/// Checks that the import fails with this message, at this part of the text.
fn check_error(text: &str, message: &str, place: &str) {
    imports::check_error(import::litmus(text), message, text, place);
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
        "shared x = 3, y = -1, z, w = 16; thread P0 { var EAX = 5, EBX = 6; } finally condition: forall true;",
    );
    check(
        "X86 t\n{ x=0xffffffff; uint8_t y=255; int64_t z=0xffffffff; int16_t 0:AX=-32769; }\nP0;\nforall true",
        "shared x = -1, y = -1, z = 4294967295; thread P0 { var AX = 32767; } finally condition: forall true;",
    );
    check(
        "X86_64 t\n{ int a[2]={1,2}; 0:rdi=a; }\nP0;\nmovl 4(%rdi),%eax ; movl $1,(a) ;\nexists a[1]=2",
        "shared a_0 = 1, a_1 = 2; thread P0 { var EAX; EAX = a_1; a_0 = 1; } finally condition: exists a_1 == 2;",
    );
}

#[test]
fn moves() {
    check_code("MOV [x],$0x2 ;", "shared x;", "", "x = 2;");
    check_code("MOV DWORD PTR [x],-1 ;", "shared x;", "", "x = -1;");
    check_code("mov eax,[x] ;", "shared x;", "var EAX;", "EAX = x;");
    check_code(
        "MOV EAX,$1 ; MOV EBX,EAX ; MOV [x],R8D ;",
        "shared x;",
        "var EAX, EBX, R8D;",
        "EAX = 1; EBX = EAX; x = R8D;",
    );
    check_code("movq $1,(x) ; movq (x),%rax ;", "shared x;", "var RAX;", "x = 1; RAX = x;");
    check_code("movl $1,x(%rip) ; movl x(%rip),%eax ;", "shared x;", "var EAX;", "x = 1; EAX = x;");
}

#[test]
fn fences_and_nothing() {
    check_code("MFENCE ; SFENCE ; LFENCE ; NOP ; ;", "", "", "fence; sfence; skip; skip;");
    check_code("endbr64 ; PAUSE ; ret ;", "", "", "skip; skip; stop;");
}

#[test]
fn exchanges() {
    check_code("XCHG [x],EAX ;", "shared x;", "var EAX;", "EAX = swap(x, EAX);");
    check_code("xchg EAX,[x] ;", "shared x;", "var EAX;", "EAX = swap(x, EAX);");
    check_code("LOCK XCHG EAX,[x] ;", "shared x;", "var EAX;", "EAX = swap(x, EAX);");
    check_code("XCHG EAX,EBX ;", "", "var EAX, EBX, tmp;", "tmp = EAX; EAX = EBX; EBX = tmp;");
    check_code("LOCK XADD [x],EAX ;", "shared x;", "var EAX;", "EAX = fetch_add(x, EAX);");
    check_code(
        "XADD [x],EAX ;",
        "shared x;",
        "var EAX, tmp, tmp2;",
        "tmp2 = EAX; tmp = x; x = tmp + tmp2; EAX = tmp;",
    );
    check_code(
        "XADD EAX,EBX ;",
        "",
        "var EAX, EBX, tmp, tmp2;",
        "tmp2 = EBX; tmp = EAX; EBX = tmp; EAX = tmp + tmp2;",
    );
    check_code(
        "LOCK CMPXCHG [x],EBX ;",
        "shared x;",
        "var EBX, EAX, tmp;",
        "atomic { tmp = x; if tmp == EAX { x = EBX; } else { EAX = tmp; } }",
    );
    check_code(
        "MOV EAX,$1 ; CMPXCHG [x],EBX ;",
        "shared x;",
        "var EAX, EBX, tmp;",
        "EAX = 1; tmp = x; if tmp == EAX { x = EBX; } else { EAX = tmp; }",
    );
}

#[test]
fn arithmetic() {
    check_code("INC EAX ; SUB EAX,$2 ;", "", "var EAX;", "EAX = EAX + 1; EAX = EAX - 2;");
    check_code(
        "ADD EAX,[x] ; XOR EAX,EAX ;",
        "shared x;",
        "var EAX, tmp;",
        "tmp = x; EAX = EAX + tmp; EAX = EAX ^ EAX;",
    );
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
        "var EAX, ZF;",
        "L0: EAX = x; ZF = EAX == 0; if ZF { goto L0; } goto end_; end_:",
    );
    // Labels in the style of compilers.
    check_code(
        ".L2: movl (x),%eax ; testl %eax,%eax ; je .L2 ; jmp .LBB0_1 ; .LBB0_1: ;",
        "shared x;",
        "var EAX, ZF;",
        "_L2: EAX = x; ZF = (EAX & EAX) == 0; if ZF { goto _L2; } goto _LBB0_1; _LBB0_1:",
    );
    check_code(
        "LOCK DEC [x] ; JGE L ; TEST EAX,EAX ; JNZ L ; L: ;",
        "shared x;",
        "var EAX, tmp, ZF, LF;",
        "tmp = fetch_add(x, -1); ZF = tmp == 1; LF = tmp < 1; if !LF { goto L; }
         ZF = (EAX & EAX) == 0; LF = (EAX & EAX) < 0; if !ZF { goto L; } L:",
    );
    check_code(
        "L: LOCK CMPXCHG [x],EBX ; JNE L ;",
        "shared x;",
        "var EBX, EAX, tmp, ZF;",
        "L: atomic { tmp = x; ZF = EAX == tmp; if tmp == EAX { x = EBX; } else { EAX = tmp; } } if !ZF { goto L; }",
    );
    check_code(
        "cmpl $2,%eax ; jbe L ; cmovs (x),%ebx ; L: setg %cl ;",
        "shared x;",
        "var EAX, EBX, CL, ZF, SF, CF, LF, tmp;",
        "ZF = EAX == 2; SF = EAX - 2 < 0; CF = EAX < 2; LF = EAX < 2; if CF || ZF { goto L; }
         tmp = x; if SF { EBX = tmp; } L: CL = !(LF || ZF);",
    );
}

/// A value that exceeds its width wraps around, and a write to a part of a register preserves the other bits.
#[test]
fn widths() {
    check_code(
        "MOV EAX,$0x7fffffff ; INC EAX ;",
        "",
        "var EAX;",
        "EAX = 2147483647; EAX = (EAX + 1 & 4294967295 ^ 2147483648) - 2147483648;",
    );
    check_code(
        "L: LOCK DEC [x] ; JGE L ;",
        "shared x;",
        "var tmp, LF;",
        "L: atomic { tmp = x; x = (tmp - 1 & 4294967295 ^ 2147483648) - 2147483648; } LF = tmp < 1; if !LF { goto L; }",
    );
    check_code("movl $-1,%eax ; movq %rax,(x) ;", "shared x;", "var RAX;", "RAX = 4294967295; x = RAX;");
    check_code(
        "movl $1,%eax ; movb $2,%al ; movb $3,%ah ;",
        "",
        "var EAX;",
        "EAX = 1; EAX = EAX & -256 | 2;
         EAX = ((EAX & -65281 | 3 * 256) & 4294967295 ^ 2147483648) - 2147483648;",
    );
    check_code(
        "movb $-1,(x) ; movb (x),%al ; movzbl %al,%ebx ; movsbl %al,%ecx ;",
        "shared x;",
        "var AL, EBX, ECX;",
        "x = -1; AL = x; EBX = AL & 255; ECX = AL;",
    );
    check_code("movq $0xffffffffffffffff,%rax ; incq %rax ;", "", "var RAX;", "RAX = -1; RAX = RAX + 1;");
}

#[test]
fn conditions() {
    check_condition("exists x=1 /\\ y=2 \\/ 0:EAX=3", "exists x == 1 && y == 2 || P0.EAX == 3");
    check_condition("~exists (P0:EAX = 1 /\\ [x]=0x10);", "never P0.EAX == 1 && x == 16");
    check_condition("~ exists x<>1", "never x != 1");
    check_condition("not exists x!=1", "never x != 1");
    check_condition("forall ~(x=1 \\/ not y==-1) /\\ true", "forall !(x == 1 || y != -1) && true");
    check_condition("final (1:eax = 1);\nwith\ntso: ~exists;\n<<\nshow 0\n>>", "exists P1.EAX == 1");
    check_condition("forall (x=1 => y=1)", "forall !(x == 1) || y == 1");
    check_condition("locations [x;[y];]\nfilter (x=1)\nexists y=1", "exists x == 1 && y == 1");
    check_condition("filter x=1\nforall y=1", "forall !(x == 1) || y == 1");
    check_condition("exists 0:EAX=[x] /\\ 0:EAX<>1:EAX", "exists P0.EAX == x && P0.EAX != P1.EAX");
    check_condition("exists x=4294967295 /\\ 0:EAX=0x80000000", "exists x == -1 && P0.EAX == -2147483648");
}

#[test]
fn locations_only_in_the_condition_start_at_zero() {
    check(
        "X86 t\n{}\nP0 ;\n MOV [x],$1;\nexists (0:RBX=0 /\\ z=0)",
        "shared x, z; thread P0 { var EBX; x = 1; } finally condition: exists P0.EBX == 0 && z == 0;",
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
    check_error("X86 t\n{ x=y; }\nP0;", "addresses as values are not supported", "y");
    check_error("X86 t\n{ int *p; }\nP0;", "pointers in memory are not supported", "*");
    check_error("X86 t\n{ int a[0]; }\nP0;", "an array has between 1 and 1000 elements", "0");
    check_error("X86 t\n{ int a[2]; a=1; }\nP0;", "`a` is declared twice", "a");
    check_error("X86 t\n{ float x; }\nP0;", "the type `float` is not supported", "float");
    check_error("X86 t\n{ int a[2]; }\nP0;\nexists a=1", "`a` is an array: name an element", "a");
    check_error("X86 t\n{ int a[2]; }\nP0;\nexists a[2]=1", "there is no element 2 of this location", "a[2]");
    check_error(
        "X86 t\n{ 0:EDI=x; }\nP0;\nexists 0:EDI=1",
        "an address cannot be compared with a number",
        "1",
    );
    check_error("X86 t\n{ 3:EAX=1; }\nP0;", "no thread `3`", "3");
    check_error("X86 t\n{}\nP0;\nexists 1:EAX=0", "no thread `1`", "1");
    check_error("X86 t\n{}\nP0;\nexists x=y", "addresses as values are not supported", "y");
    check_error("X86 t\n{}\nP0;\nexists x=1 x=2", "expected the end of the condition, found `x`", "x");
    check_error("X86 t\n{}\nP0;\n~forall x=1", "expected `exists`, found `forall`", "forall");
    check_code_error(
        "MOVNTI [x],EAX ;",
        "instruction `MOVNTI` is not supported: it is not ordered as other stores are",
        "MOVNTI",
    );
    check_code_error("CPUID ;", "instruction `CPUID` is not supported", "CPUID");
    check_code_error("MOV AL,EBX ;", "this operand has 32 bits, the instruction 8", "EBX");
    check_code_error("movw %eax,(x) ;", "this operand has 32 bits, the instruction 16", "%eax");
    check_code_error(
        "MOV BYTE PTR [x],$1 ; MOV EAX,[x] ;",
        "this access has 32 bits, but an earlier one of `x` 8",
        "[x]",
    );
    check_error(
        "X86 t\n{ uint8_t x; }\nP0;\nMOV EAX,[x];",
        "this access has 32 bits, but the type of `x` 8",
        "[x]",
    );
    check_code_error("MOV EAX,[EBX] ;", "no address is known to be in `EBX`", "EBX");
    check_error("X86 t\n{ 0:EBX=x; }\nP0;\nMOV EAX,EBX;", "this register holds the address of `x`", "EBX");
    check_code_error("MOV EAX,[x+4] ;", "there is no location 4 bytes behind `x`", "[x+4]");
    check_code_error("MOV EAX,[x+EBX] ;", "computed addresses are not supported", "[x+EBX");
    check_code_error("movl (%rax,%rbx,4),%eax ;", "no address is known to be in `RAX`", "%rax");
    check_error(
        "X86_64 t\n{}\nP0;\nmov eax,[x];",
        "which operand is the target cannot be told",
        "mov eax,[x]",
    );
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

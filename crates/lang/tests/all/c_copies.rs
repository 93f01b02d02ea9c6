//! Copies between ranges that overlap.

use crate::verdicts::{assertions, memory};

fn main_with(work: &str) -> String {
    format!(
        "#include <string.h>\nint a[6] = {{ 1, 2, 3, 4, 5, 6 }}; struct s {{ int v, w; }} s, many[4]; struct outer {{ int k; int in[4]; }} o;
         int main(void) {{ {work} return 0; }}"
    )
}

#[test]
fn memcpy_between_ranges_that_overlap() {
    let any = "int i = __VERIFIER_nondet_bool() + 2 * __VERIFIER_nondet_bool(), j = __VERIFIER_nondet_bool() + 2 * __VERIFIER_nondet_bool();";
    for (work, verdict) in [
        ("memcpy(a, a + 1, 3 * sizeof *a);", "uuu"),
        ("memcpy(&a[2], &a[1], 2 * sizeof *a);", "uuu"),
        ("memcpy(a, a + 3, 3 * sizeof *a); assert(a[2] == 6);", "sss"),
        ("memcpy(a, a, sizeof a);", "uuu"),
        ("memcpy(&s, &s, sizeof s);", "uuu"),
        ("memcpy(&many[0], &many[1], 2 * sizeof s);", "uuu"),
        ("memcpy(&many[0], &many[2], 2 * sizeof s);", "sss"),
        ("memcpy(&o.in[1], &o.in[0], 2 * sizeof(int));", "uuu"),
        ("memcpy(a, a + 1, 0);", "sss"),
        ("memmove(a, a + 1, 3 * sizeof *a); assert(a[2] == 4);", "sss"),
        ("s = s;", "sss"),
        ("int *p = malloc(4 * sizeof *p); p[0] = p[1] = p[2] = 1; memcpy(p + 1, p, 2 * sizeof *p);", "uuu"),
        ("int *p = malloc(4 * sizeof *p); p[0] = p[1] = 1; memcpy(p + 2, p, 2 * sizeof *p);", "sss"),
    ] {
        let text = main_with(work);
        assertions(&text, verdict);
        memory(&text, "sss");
    }
    let copy = format!("{any} memcpy(a + i, a + j, 2 * sizeof *a);");
    assertions(&main_with(&copy), "uuu");
    for apart in ["i - j >= 2 || j - i >= 2", "i == 3 && j == 1", "i == 0 && j == 2"] {
        assertions(&main_with(&copy.replace("memcpy", &format!("if ({apart}) memcpy"))), "sss");
    }
    let through =
        "int *p = a; while (__VERIFIER_nondet_bool() && p < a + 2) p++; memcpy(p, p + 1, N * sizeof *p);";
    assertions(&main_with(&through.replace('N', "2")), "uuu");
    assertions(&main_with(&through.replace('N', "1")), "sss");
}

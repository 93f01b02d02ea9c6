//! Programs with executions that leave the modelled part of C, because calls are nested too deeply or an allocation has a size that is not modelled.
//! They are never `safe`, but a violation in another execution is found.

use std::time::Duration;

use fencewright_engines::explicit::{Explicit, Options};
use fencewright_engines::{Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_lang::load;
use fencewright_program::{MemoryModel, Property};

/// The verdict on the assertions: `s`, `u`, or the reason why it is unknown.
fn verdict(thread: &str, globals: &str, model: MemoryModel) -> String {
    let text = format!(
        "#include <pthread.h>\n#include <assert.h>\n#include <stdlib.h>\n#include <stdatomic.h>
         unsigned char __VERIFIER_nondet_uchar(void); atomic_int v; {globals}
         void *w(void *p) {{ int n = __VERIFIER_nondet_uchar() % 32; {thread} return p; }} void *other(void *p) {{ v = 1; return p; }}
         int main(void) {{ pthread_t t, u; pthread_create(&t, 0, w, 0); pthread_create(&u, 0, other, 0); pthread_join(t, 0); }}"
    );
    let loaded = load("test.c", text.as_bytes(), None, &[])
        .unwrap_or_else(|e| panic!("{}\n{text}", e.sources.render(&e.diagnostics, false)));
    let asserts: Vec<Property> =
        loaded.program.properties.iter().filter(|p| p.name == "assertions").cloned().collect();
    let task = Task::new(&loaded.program, model, asserts);
    let engine = Explicit { options: Options { workers: 1, ..Options::default() } };
    let limits = Limits::starting_now(Some(Duration::from_secs(20)), Some(1 << 30), Default::default());
    let found = check(&engine, &task, &limits, &Progress::default(), Confirm::NOTHING);
    match found[0].verdict() {
        Verdict::Safe => "s".into(),
        Verdict::Unsafe => "u".into(),
        Verdict::Unknown(why) => format!("{why:?}"),
    }
}

#[test]
fn a_violation_is_found_although_the_model_ends_elsewhere() {
    let even = "int odd(int n); int even(int n) { if (n == 0) return 1; int r = odd(n - 1); return r; }
        int odd(int n) { if (n == 0) return 0; int r = even(n - 1); return r; }";
    let sized = "int *a = malloc((n + v) * sizeof *a);";
    for model in MemoryModel::ALL {
        let of = |thread: &str| verdict(thread, even, model);
        assert_eq!(of("if (n < 8) assert(even(n) == (n % 2 == 0));"), "s");
        assert_eq!(of("assert(even(n) || n != 3);"), "u");
        for unknown in ["assert(even(n) == (n % 2 == 0));", "even(n);"] {
            assert!(!["s", "u"].contains(&&*of(unknown)), "{unknown}");
        }
        assert_eq!(of(&format!("assert(n != 3); {sized}")), "u");
        assert!(!["s", "u"].contains(&&*of(sized)), "{model:?}");
    }
}

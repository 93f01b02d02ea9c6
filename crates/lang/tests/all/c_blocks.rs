//! Checks in atomic steps: random programs whose calls access possibly invalid places have the same verdicts as programs that check each index before
//! the call.

use fencewright_lang::options::Options;
use fencewright_testing::{Random, programs_or};

use crate::verdicts::{assertions, memory, verdicts};

/// Three versions of a program: the original, which claims facts with `assert`; one that asserts that indices are valid and assumes the claims; and
/// one that assumes that indices are valid and asserts the claims.
const DIRECT: &str = "
    #define AT(k) k
    #define CLAIM(c) assert(c)
    ";
const INDICES: &str = "
    int at(int k) { assert(0 <= k && k < 2); return k; }
    #define AT(k) at(k)
    #define CLAIM(c) __VERIFIER_assume(c)
    ";
const CLAIMS: &str = "
    int at(int k) { __VERIFIER_assume(0 <= k && k < 2); return k; }
    #define AT(k) at(k)
    #define CLAIM(c) assert(c)
    ";

const GLOBALS: &str = "
    #include <semaphore.h>
    pthread_mutex_t locks[2];
    sem_t posts[2];
    pthread_cond_t conditions[2];
    atomic_int cells[2], x, i = 1;
    int expected[2];
    ";

fn statement(random: &mut Random, depth: usize) -> String {
    let number = random.below(4);
    match random.below(if depth == 0 { 11 } else { 14 }) {
        0 => format!("atomic_store_explicit(&i, {}, memory_order_relaxed);", number.min(2)),
        1 => "k = i;".to_owned(),
        2 => format!("atomic_store_explicit(&x, {number}, memory_order_relaxed);"),
        3 => format!("r = x; CLAIM(r != {number});"),
        4 => format!(
            "pthread_mutex_lock(&locks[AT(k)]); atomic_store_explicit(&x, {number}, memory_order_relaxed); pthread_mutex_unlock(&locks[AT(k)]);"
        ),
        5 => "if (pthread_mutex_trylock(&locks[AT(k)]) == 0) { x = 2; pthread_mutex_unlock(&locks[AT(k)]); }"
            .to_owned(),
        6 => "sem_post(&posts[AT(k)]);".to_owned(),
        7 => format!("if (sem_trywait(&posts[AT(k)]) == 0) CLAIM(x != {number});"),
        8 => "pthread_cond_signal(&conditions[AT(k)]);".to_owned(),
        9 => format!("r = atomic_fetch_add(&cells[AT(k)], 1); CLAIM(r != {number});"),
        10 => format!(
            "if (atomic_compare_exchange_strong(&cells[AT(k)], &expected[AT({})], 1)) x = 3;",
            number.min(2)
        ),
        11 | 12 => format!(
            "if (k {} {}) {{ {} }}",
            random.pick(&["==", "!=", "<"]),
            number.min(2),
            block(random, depth - 1)
        ),
        _ => format!(
            "for (int n = 0; n < 2; n++) {{ k += n; {} if (k > 1) break; }}",
            block(random, depth - 1)
        ),
    }
}

fn block(random: &mut Random, depth: usize) -> String {
    (0..random.between(1, 2)).map(|_| statement(random, depth)).collect::<Vec<_>>().join(" ")
}

#[test]
fn checks_in_indivisible_steps_are_checks_before_them() {
    let programs = programs_or(60);
    let mut found = [0; 4];
    for seed in 0..programs as u64 {
        let random = &mut Random::new(seed);
        let mut body = || format!("int k = i, r; {} {}", block(random, 1), block(random, 1));
        let (thread, main) = (body(), body());
        let text = |macros: &str| {
            format!(
                "{GLOBALS}{macros}
                 void *thread(void *argument) {{ {thread} return 0; }}
                 int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); {main} return 0; }}"
            )
        };
        let verdict = |macros, property| verdicts(&text(macros), &Options::default(), property);
        let (memory, assertions) = (verdict(DIRECT, "memory"), verdict(DIRECT, "assertions"));
        assert_eq!(memory, verdict(INDICES, "assertions"), "seed {seed}: memory\n{}", text(DIRECT));
        assert_eq!(assertions, verdict(CLAIMS, "assertions"), "seed {seed}: assertions\n{}", text(DIRECT));
        found[2 * usize::from(memory == "sss") + usize::from(assertions == "sss")] += 1;
    }
    assert!(found.iter().all(|&found| found > programs / 30), "{found:?}");
}

/// Control never continues after a call in which a check fails.
#[test]
fn control_does_not_continue_after_a_failing_check() {
    let bodies = [
        "for (;;) { if (pthread_mutex_trylock(&locks[k])) goto out; assert(k != 2); break; } out: assert(k != 2);",
        "if (sem_trywait(&posts[k]) == 0 || k == 2) assert(k != 2);",
        "while (!atomic_compare_exchange_weak(&cells[k], &expected[0], 1)) if (k == 2) break; assert(k != 2);",
        "switch (atomic_fetch_add(&cells[k], 1)) { case 0: break; default: return 0; } assert(k != 2);",
        "for (int n = 0; n < 2; n++) { pthread_mutex_lock(&locks[k + n - 1]); pthread_mutex_unlock(&locks[k + n - 1]); } assert(k < 2);",
    ];
    for body in bodies {
        let text = format!(
            "{GLOBALS}
             void *thread(void *argument) {{ i = 2; return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); int k = i; {body} return 0; }}"
        );
        memory(&text, "uuu");
        assertions(&text, "sss");
    }
}

//! Grace periods and read-side critical sections of RCU: litmus tests with known answers, by exploring the reference semantics. Outcomes that the
//! Linux kernel memory model forbids are unreachable, and those that it allows and a machine with store buffers shows are reachable.

use crate::verdicts::{assertions, memory};

/// A program whose threads have these bodies. An outcome is asked for when all of them have ended.
fn litmus(globals: &str, threads: &[&str], outcome: &str) -> String {
    let functions = threads
        .iter()
        .enumerate()
        .map(|(n, body)| format!("void *p{n}(void *unused) {{ {body} return 0; }}\n"));
    let create = (0..threads.len()).map(|n| format!("pthread_create(&t[{n}], 0, p{n}, 0);"));
    let join = (0..threads.len()).map(|n| format!("pthread_join(t[{n}], 0);"));
    format!(
        "#include <linux/rcupdate.h>\n{globals}\n{}int main(void) {{ pthread_t t[{}]; {} {} assert(!({outcome})); }}",
        functions.collect::<String>(),
        threads.len(),
        create.collect::<String>(),
        join.collect::<String>(),
    )
}

/// Checks that an outcome is unreachable under SC, TSO and PSO.
#[track_caller]
fn never(globals: &str, threads: &[&str], outcome: &str) {
    assertions(&litmus(globals, threads, outcome), "sss");
}

/// Checks under which models an outcome is unreachable (`s`) or reachable (`u`).
#[track_caller]
fn outcome(globals: &str, threads: &[&str], outcome: &str, expected: &str) {
    assertions(&litmus(globals, threads, outcome), expected);
}

const VARIABLES: &str = "int x, y, z, a, b, c, d;";

fn read_side(body: &str) -> String {
    format!("rcu_read_lock(); {body} rcu_read_unlock();")
}

const UPDATE: &str = "WRITE_ONCE(y, 1); synchronize_rcu(); WRITE_ONCE(x, 1);";

#[test]
fn a_section_is_before_or_after_a_grace_period() {
    // Message passing, in both directions.
    let reader = read_side("a = READ_ONCE(x); b = READ_ONCE(y);");
    never(VARIABLES, &[&reader, UPDATE], "a == 1 && b == 0");
    let reader = read_side("WRITE_ONCE(x, 1); WRITE_ONCE(y, 1);");
    let update = "a = READ_ONCE(x); synchronize_rcu(); b = READ_ONCE(y);";
    never(VARIABLES, &[&reader, update], "a == 1 && b == 0");
    // Load buffering, and outcomes that store buffers would allow without the grace period.
    let reader = read_side("a = READ_ONCE(x); WRITE_ONCE(y, 1);");
    let update = "b = READ_ONCE(y); synchronize_rcu(); WRITE_ONCE(x, 1);";
    never(VARIABLES, &[&reader, update], "a == 1 && b == 1");
    let reader = read_side("a = READ_ONCE(x); b = READ_ONCE(y);");
    never(VARIABLES, &[&reader, UPDATE], "a == 1 && b == 0");
    let reader = read_side("a = READ_ONCE(y); WRITE_ONCE(x, 1);");
    let update = "WRITE_ONCE(y, 1); synchronize_rcu(); b = READ_ONCE(x);";
    never(VARIABLES, &[&reader, update], "a == 0 && b == 0");
    let reader = read_side("WRITE_ONCE(x, 1); a = READ_ONCE(y);");
    never(VARIABLES, &[&reader, update], "a == 0 && b == 0");
}

#[test]
fn without_a_section_or_a_grace_period_nothing_waits() {
    let store_first = "WRITE_ONCE(x, 1); a = READ_ONCE(y);";
    let update = "WRITE_ONCE(y, 1); synchronize_rcu(); b = READ_ONCE(x);";
    outcome(VARIABLES, &[store_first, update], "a == 0 && b == 0", "suu");
    let reader = read_side(store_first);
    let barrier = "WRITE_ONCE(y, 1); smp_mb(); b = READ_ONCE(x);";
    outcome(VARIABLES, &[&reader, barrier], "a == 0 && b == 0", "suu");
    let reader = read_side("a = READ_ONCE(x); b = READ_ONCE(y);");
    outcome(
        VARIABLES,
        &[&reader, "WRITE_ONCE(x, 1); smp_mb(); WRITE_ONCE(y, 1);"],
        "a == 0 && b == 1",
        "uuu",
    );
    // A grace period is a full fence for its caller.
    let update = "WRITE_ONCE(y, 1); synchronize_rcu(); b = READ_ONCE(x);";
    never(VARIABLES, &["WRITE_ONCE(x, 1); smp_mb(); a = READ_ONCE(y);", update], "a == 0 && b == 0");
    never(
        VARIABLES,
        &["WRITE_ONCE(x, 1); synchronize_rcu_expedited(); a = READ_ONCE(y);", update],
        "a == 0 && b == 0",
    );
}

#[test]
fn sections_order_nothing_by_themselves() {
    // Neither the beginning nor the end of a section is a fence, although there are grace periods elsewhere.
    let other = "WRITE_ONCE(y, 1); smp_mb(); b = READ_ONCE(x);";
    let late = "synchronize_rcu();";
    for body in [
        "WRITE_ONCE(x, 1); rcu_read_lock(); a = READ_ONCE(y); rcu_read_unlock();",
        "rcu_read_lock(); WRITE_ONCE(x, 1); rcu_read_unlock(); a = READ_ONCE(y);",
        "rcu_read_lock(); rcu_read_unlock(); WRITE_ONCE(x, 1); rcu_read_lock(); a = READ_ONCE(y); rcu_read_unlock();",
        "rcu_read_lock(); WRITE_ONCE(x, 1); rcu_read_unlock(); rcu_read_lock(); a = READ_ONCE(y); rcu_read_unlock();",
    ] {
        outcome(VARIABLES, &[body, other, late], "a == 0 && b == 0", "suu");
    }
    // A store after the section is not part of it.
    let after = "rcu_read_lock(); rcu_read_unlock(); WRITE_ONCE(x, 1); a = READ_ONCE(y);";
    let update = "WRITE_ONCE(y, 1); synchronize_rcu(); b = READ_ONCE(x);";
    outcome(VARIABLES, &[after, update], "a == 0 && b == 0", "suu");
    let before = "WRITE_ONCE(x, 1); a = READ_ONCE(y); rcu_read_lock(); rcu_read_unlock();";
    outcome(VARIABLES, &[before, update], "a == 0 && b == 0", "suu");
}

#[test]
fn a_grace_period_waits_only_for_earlier_sections() {
    let inside = "rcu_read_lock(); a = READ_ONCE(y); b = READ_ONCE(x); rcu_read_unlock();";
    outcome(VARIABLES, &[inside, UPDATE], "a == 1 && b == 1", "uuu");
}

#[test]
fn sections_nest() {
    let reader = "rcu_read_lock(); a = READ_ONCE(x); rcu_read_lock(); rcu_read_unlock(); b = READ_ONCE(y); rcu_read_unlock();";
    never(VARIABLES, &[reader, UPDATE], "a == 1 && b == 0");
    let reader = "rcu_read_lock(); a = READ_ONCE(y); rcu_read_lock(); rcu_read_unlock(); b = READ_ONCE(x); rcu_read_unlock();";
    never(VARIABLES, &[reader, UPDATE], "a == 0 && b == 1");
    let split = "rcu_read_lock(); a = READ_ONCE(y); rcu_read_unlock(); rcu_read_lock(); b = READ_ONCE(x); rcu_read_unlock();";
    outcome(VARIABLES, &[split, UPDATE], "a == 0 && b == 1", "uuu");
    let unbalanced = "rcu_read_lock(); rcu_read_unlock(); rcu_read_unlock();";
    outcome(VARIABLES, &[unbalanced, "synchronize_rcu();"], "0", "uuu");
    let inside = read_side("synchronize_rcu();");
    outcome(VARIABLES, &[&inside], "0", "uuu");
}

const NODE: &str = "struct node { int value; struct rcu_head rcu; }; struct node first, *shared = &first;
    void reclaim(struct rcu_head *head) { free(container_of(head, struct node, rcu)); }";

/// A reader of a node, and an update that replaces the node and then reclaims the old one.
fn replaced(reclaim: &str) -> String {
    let reader = "rcu_read_lock(); struct node *n = rcu_dereference(shared); int v = n->value; rcu_read_unlock(); assert(v == 0);";
    format!(
        "#include <linux/rcupdate.h>\n{NODE}
         void *reader(void *unused) {{ {reader} return 0; }}
         int main(void) {{
             struct node *old = malloc(sizeof *old); old->value = 0; shared = old;
             pthread_t t; pthread_create(&t, 0, reader, 0);
             rcu_assign_pointer(shared, &first);
             {reclaim}
             pthread_join(t, 0);
             return 0;
         }}"
    )
}

#[test]
fn memory_is_reclaimed_after_a_grace_period() {
    memory(&replaced("synchronize_rcu(); free(old);"), "sss");
    memory(&replaced("free(old);"), "uuu");
    memory(&replaced("free(old); synchronize_rcu();"), "uuu");
    memory(&replaced("call_rcu(&old->rcu, reclaim);"), "sss");
    memory(&replaced("kfree_rcu(old, rcu);"), "sss");
    memory(&replaced("call_rcu(&old->rcu, reclaim); rcu_barrier(); shared = 0;"), "uuu");
    memory(&replaced("synchronize_rcu(); old->value = 1; free(old);"), "sss");
    assertions(&replaced("synchronize_rcu(); old->value = 1; free(old);"), "sss");
    assertions(&replaced("old->value = 1; synchronize_rcu(); free(old);"), "uuu");
}

#[test]
fn a_null_pointer_is_published_without_a_fence() {
    let program = |value: &str| {
        let globals = "int x, a, b, data, *p = &data, one;";
        let writer = format!("WRITE_ONCE(x, 1); rcu_assign_pointer(p, {value});");
        litmus(globals, &[&writer, "a = rcu_dereference(p) != &data; b = READ_ONCE(x);"], "a == 1 && b == 0")
    };
    assertions(&program("&one"), "sss");
    assertions(&program("NULL"), "ssu");
}

#[test]
fn main_waits_and_reads_too() {
    let threads = |reader: &str, main: &str| {
        format!(
            "#include <linux/rcupdate.h>
             int x, y; void *p(void *unused) {{ {reader} return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, p, 0); {main} pthread_join(t, 0); return 0; }}"
        )
    };
    let reader = "rcu_read_lock(); WRITE_ONCE(x, 1); WRITE_ONCE(y, 1); rcu_read_unlock();";
    let main =
        "synchronize_rcu(); int a = READ_ONCE(x); synchronize_rcu(); assert(a == 0 || READ_ONCE(y) == 1);";
    assertions(&threads(reader, main), "sss");
    let main = "synchronize_rcu(); int a = READ_ONCE(x); assert(a == 0 || READ_ONCE(y) == 1);";
    assertions(&threads(reader, main), "uuu");
    let main =
        "rcu_read_lock(); int a = READ_ONCE(x); assert(a == 0 || READ_ONCE(y) == 1); rcu_read_unlock();";
    assertions(&threads("WRITE_ONCE(y, 1); synchronize_rcu(); WRITE_ONCE(x, 1);", main), "sss");
    assertions(&threads("WRITE_ONCE(x, 1); synchronize_rcu(); WRITE_ONCE(y, 1);", main), "uuu");
    let forever = "rcu_read_lock(); assert(READ_ONCE(x) == 0);";
    assertions(&threads("synchronize_rcu(); WRITE_ONCE(x, 1);", forever), "uuu");
}

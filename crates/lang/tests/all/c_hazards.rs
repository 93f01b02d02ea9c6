//! Hazard pointers of `<genmc.h>`: correct programs, and programs with each mistake. Verdicts are found by exploring the reference semantics.

use fencewright_executions::oracle::{Incomplete, explore};
use fencewright_lang::load;
use fencewright_program::MemoryModel;

use crate::verdicts::{HEADERS, assertions, memory};

/// Checks that the model ends in some execution under TSO.
#[track_caller]
fn ends(text: &str) {
    ends_under(MemoryModel::Tso, text);
}

#[track_caller]
fn ends_under(model: MemoryModel, text: &str) {
    let text = format!("{HEADERS}{text}");
    let program = load("test.c", text.as_bytes(), None, &[]).expect("it is a program").program;
    let explored = explore(&program, model, 200_000, &mut || false);
    assert_eq!(explored.err(), Some(Incomplete::Limit), "{text}");
}

/// A program in which a thread reads a shared node, and `main` replaces the node and disposes of the old one.
fn replaced(reader: &str, replace: &str) -> String {
    format!(
        "#include <genmc.h>
         struct node {{ int value; }};
         _Atomic(struct node *) shared, copy;
         atomic_int x, y;
         void *reader(void *u) {{ int value; {reader} return 0; }}
         int main(void) {{
             pthread_t t;
             struct node *first = malloc(sizeof *first), *second = malloc(sizeof *second), *old;
             first->value = 1;
             second->value = 2;
             shared = first;
             pthread_create(&t, 0, reader, 0);
             {replace}
             return 0;
         }}"
    )
}

const PROTECT: &str =
    "__VERIFIER_hp_t *hp = __VERIFIER_hp_alloc(); struct node *n = __VERIFIER_hp_protect(hp, &shared);";
const SWAP: &str = "old = atomic_exchange(&shared, second); __VERIFIER_hp_retire(old);";
const CHECK: &str = "assert(value == 1 || value == 2);";

#[test]
fn protected_nodes_are_not_freed() {
    let read = format!("{PROTECT} value = n->value; {CHECK} __VERIFIER_hp_free(hp);");
    // A plain store in place of the exchange: the flag of the retired node follows it in the buffer.
    let store = "atomic_store_explicit(&shared, second, memory_order_release); __VERIFIER_hp_retire(first);";
    // The retiring thread may protect the node itself.
    let own = format!(
        "__VERIFIER_hp_t *mine = __VERIFIER_hp_alloc(); __VERIFIER_hp_protect(mine, &shared); {SWAP} \
                       assert(old->value == 1); __VERIFIER_hp_clear(mine); __VERIFIER_hp_retire(0);"
    );
    for replace in [SWAP, store, &own] {
        let text = replaced(&read, replace);
        memory(&text, "sss");
        assertions(&text, "sss");
    }
}

#[test]
fn retired_nodes_are_freed() {
    let read = "value = n->value; assert(value == 1 || value == 2);";
    let readers = [
        // Reads of a node without protection, after its end, after the hazard pointer protects another node, and after the hazard pointer was freed.
        format!("struct node *n = shared; {read}"),
        format!("{PROTECT} __VERIFIER_hp_clear(hp); {read}"),
        format!("{PROTECT} __VERIFIER_hp_protect(hp, &copy); {read}"),
        format!("{PROTECT} __VERIFIER_hp_free(hp); {read}"),
        // A protection that begins when the node may have been retired, of a pointer that was read before.
        format!(
            "__VERIFIER_hp_t *hp = __VERIFIER_hp_alloc(); copy = shared; struct node *n = __VERIFIER_hp_protect(hp, &copy); {read}"
        ),
    ];
    for reader in readers {
        memory(&replaced(&reader, SWAP), "uuu");
    }
    let read = format!("{PROTECT} {read}");
    // A node that is retired before it is unlinked, used after it was retired, retired twice, retired and freed, or only freed.
    for replace in [
        "__VERIFIER_hp_retire(first); shared = second;",
        "shared = second; __VERIFIER_hp_retire(first); assert(first->value == 1);",
        "shared = second; __VERIFIER_hp_retire(first); __VERIFIER_hp_retire(first);",
        "shared = second; __VERIFIER_hp_retire(first); free(first);",
        "shared = second; free(first);",
    ] {
        memory(&replaced(&read, replace), "uuu");
    }
}

/// Only the thread that takes the first node out may find version 0 afterwards: the address of the first node must not come back.
fn versions(read: &str) -> String {
    format!(
        "#include <genmc.h>
         struct node {{ int value; }};
         _Atomic(struct node *) shared;
         atomic_int version;
         void *thread(void *u) {{
             {read}
             if (a && version == 0 && atomic_compare_exchange_strong(&shared, &a, 0))
                 assert(version == 0);
             return 0;
         }}
         int main(void) {{
             pthread_t t;
             shared = malloc(sizeof(struct node));
             pthread_create(&t, 0, thread, 0);
             struct node *old = atomic_exchange(&shared, 0);
             if (old) {{
                 __VERIFIER_hp_retire(old);
                 struct node *new = malloc(sizeof *new);
                 version = 1;
                 shared = new;
             }}
             return 0;
         }}"
    )
}

#[test]
fn addresses_come_back_unless_they_are_protected() {
    assertions(&versions("struct node *a = shared;"), "uuu");
    let protect =
        "__VERIFIER_hp_t *hp = __VERIFIER_hp_alloc(); struct node *a = __VERIFIER_hp_protect(hp, &shared);";
    assertions(&versions(protect), "sss");
    memory(&versions(protect), "sss");
}

#[test]
fn protection_behind_buffered_stores() {
    let after = |fence: &str| {
        let store = "atomic_store_explicit(&x, 1, memory_order_relaxed);";
        replaced(
            &format!("{store} {fence} {PROTECT} value = n->value; __VERIFIER_hp_clear(hp);"),
            &format!("{SWAP} assert(x < 2);"),
        )
    };
    // An implementation of the protection may or may not drain the buffer; where this makes a difference, the execution leaves the modelled part.
    ends(&after(""));
    memory(&after("atomic_thread_fence(memory_order_seq_cst);"), "sss");
    // Neither retiring nor the end of a protection drains the buffer.
    let buffering = |clear: &str, retire: &str| {
        format!(
            "#include <genmc.h>
             struct node {{ int value; }};
             _Atomic(struct node *) shared;
             atomic_int x, y;
             int one = 1, other = 1;
             void *thread(void *u) {{
                 __VERIFIER_hp_t *hp = __VERIFIER_hp_alloc();
                 __VERIFIER_hp_protect(hp, &shared);
                 atomic_store_explicit(&x, 1, memory_order_relaxed);
                 {clear}
                 one = y;
                 return 0;
             }}
             int main(void) {{
                 pthread_t t;
                 struct node *node = malloc(sizeof *node);
                 pthread_create(&t, 0, thread, 0);
                 atomic_store_explicit(&y, 1, memory_order_relaxed);
                 {retire}
                 other = x;
                 pthread_join(t, 0);
                 assert(one || other);
                 return 0;
             }}"
        )
    };
    let (clear, retire) = ("__VERIFIER_hp_clear(hp);", "__VERIFIER_hp_retire(node);");
    assertions(&buffering(clear, retire), "suu");
    assertions(&buffering("__VERIFIER_hp_free(hp);", ""), "suu");
    assertions(&buffering("atomic_thread_fence(memory_order_seq_cst);", retire), "suu");
    assertions(&buffering(clear, "atomic_thread_fence(memory_order_seq_cst);"), "suu");
}

#[test]
fn local_hazard_pointers_are_refused() {
    let reader =
        "__VERIFIER_hp_t hp = {0}; struct node *n = __VERIFIER_hp_protect(&hp, &shared); value = n->value;";
    let text = format!("{HEADERS}{}", replaced(reader, SWAP));
    let Err(error) = load("test.c", text.as_bytes(), None, &[]) else { panic!("it is read") };
    assert!(error.diagnostics[0].message.contains("local variable"), "{:?}", error.diagnostics);
}

/// The memory of a retired object may be in use again when a store that another store has overtaken reaches it, also if no pointers are compared.
#[test]
fn late_stores_to_retired_objects() {
    let text = "#include <genmc.h>
         struct node { int value; };
         struct other { long value; };
         struct node *shared;
         atomic_int done;
         void *thread(void *u) {
             shared->value = 5;
             atomic_store_explicit(&done, 1, memory_order_relaxed);
             return 0;
         }
         int main(void) {
             pthread_t t;
             shared = malloc(sizeof *shared);
             pthread_create(&t, 0, thread, 0);
             while (!done);
             __VERIFIER_hp_retire(shared);
             TYPE *new = malloc(sizeof *new);
             new->value = 1;
             pthread_join(t, 0);
             assert(new->value == 1);
             return 0;
         }";
    for ty in ["struct node", "struct other"] {
        ends_under(MemoryModel::Pso, &text.replace("TYPE", ty));
    }
}

/// The same where another thread protects the object when it is retired, and until an allocation of another size uses its memory.
#[test]
fn late_stores_to_objects_that_were_protected_when_they_were_retired() {
    let text = "#include <genmc.h>
         struct node { int value; };
         struct other { long value; };
         struct node *_Atomic shared;
         atomic_int done, protected, retired;
         void *writer(void *u) {
             shared->value = 5;
             atomic_store_explicit(&done, 1, ORDER);
             return 0;
         }
         void *holder(void *u) {
             __VERIFIER_hp_t *hp = __VERIFIER_hp_alloc();
             __VERIFIER_hp_protect(hp, &shared);
             protected = 1;
             while (!retired);
             __VERIFIER_hp_clear(hp);
             return 0;
         }
         int main(void) {
             pthread_t t, h;
             shared = malloc(sizeof *shared);
             pthread_create(&t, 0, writer, 0);
             pthread_create(&h, 0, holder, 0);
             while (!done || !protected);
             __VERIFIER_hp_retire(shared);
             retired = 1;
             pthread_join(h, 0);
             struct other *new = malloc(sizeof *new);
             new->value = 1;
             pthread_join(t, 0);
             assert(new->value == 1);
             return 0;
         }";
    let relaxed = text.replace("ORDER", "memory_order_relaxed");
    ends_under(MemoryModel::Pso, &relaxed);
    for model in [&relaxed, &text.replace("ORDER", "memory_order_release")] {
        let program = format!("{HEADERS}{model}");
        let program = load("test.c", program.as_bytes(), None, &[]).expect("it is a program").program;
        assert!(explore(&program, MemoryModel::Tso, 300_000, &mut || false).is_ok());
    }
    memory(&text.replace("ORDER", "memory_order_release"), "sss");
}

/// <genmc.h> declares no more of <stdlib.h> than it needs, as that of GenMC.
#[test]
fn programs_may_use_names_of_the_library() {
    let text = "#include <genmc.h>\n_Atomic int rand; int main(void) { rand = 1; return rand - 1; }";
    assert!(load("test.c", text.as_bytes(), None, &[]).is_ok());
}

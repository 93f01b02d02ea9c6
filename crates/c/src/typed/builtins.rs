//! The types of functions that are known by name, in a table of names and types. Crate `c-model` defines their meaning.
//!
//! A function that the program or a model header declares has the declared type (most library functions are declared by a model header). The table
//! covers names that are usually not declared: generic functions, whose types depend on an argument; compiler builtins; and functions of Linux and of
//! verifiers that are often used without a header.
//!
//! A type is written `result (parameter, parameter)`, with these words:
//!
//! - `T*`: a pointer, whose pointee type is `T`; the argument keeps its type, including qualifiers. Arguments for further `T*` are converted to
//!   pointers to unqualified `T`.
//! - `&T`: a place, passed by address, whose type is `T`.
//! - `T`: a value of type `T`, without qualifiers. `N`: likewise, but the operation is arithmetic, so `T` must be an integer type.
//! - `any`: any value, promoted; as a result, the type of the first argument. `any*`: any pointer, which keeps its type.
//! - `void`, `bool`, `char`, `uchar`, `short`, `ushort`, `int`, `uint`, `long`, `ulong`, `char*`, `void*`: these types. `order`: an `int` that is a
//!   memory order.
//! - `...`: variable arguments.

use super::tree::{Type, TypeKind};
use super::types::{CHAR, LONG, UNSIGNED, UNSIGNED_LONG};
use crate::arithmetic::Arithmetic;

/// Names that share a type, and that type.
const TABLE: &[(&[&str], &str)] = &[
    // C11 (7.17).
    (&["atomic_init"], "void (T*, T)"),
    (&["atomic_load"], "T (T*)"),
    (&["atomic_load_explicit"], "T (T*, order)"),
    (&["atomic_store"], "void (T*, T)"),
    (&["atomic_store_explicit"], "void (T*, T, order)"),
    (&["atomic_exchange"], "T (T*, T)"),
    (&["atomic_exchange_explicit"], "T (T*, T, order)"),
    (&["atomic_compare_exchange_strong", "atomic_compare_exchange_weak"], "bool (T*, T*, T)"),
    (
        &["atomic_compare_exchange_strong_explicit", "atomic_compare_exchange_weak_explicit"],
        "bool (T*, T*, T, order, order)",
    ),
    (
        &["atomic_fetch_add", "atomic_fetch_sub", "atomic_fetch_or", "atomic_fetch_xor", "atomic_fetch_and"],
        "T (T*, N)",
    ),
    (
        &[
            "atomic_fetch_add_explicit",
            "atomic_fetch_sub_explicit",
            "atomic_fetch_or_explicit",
            "atomic_fetch_xor_explicit",
            "atomic_fetch_and_explicit",
        ],
        "T (T*, N, order)",
    ),
    (&["atomic_flag_test_and_set"], "bool (any*)"),
    (&["atomic_flag_test_and_set_explicit"], "bool (any*, order)"),
    (&["atomic_flag_clear"], "void (any*)"),
    (&["atomic_flag_clear_explicit"], "void (any*, order)"),
    (&["atomic_thread_fence", "atomic_signal_fence"], "void (order)"),
    (&["atomic_is_lock_free"], "bool (any*)"),
    // GNU C, since gcc 4.7.
    (&["__atomic_load_n"], "T (T*, order)"),
    (&["__atomic_load"], "void (T*, T*, order)"),
    (&["__atomic_store_n"], "void (T*, T, order)"),
    (&["__atomic_store"], "void (T*, T*, order)"),
    (&["__atomic_exchange_n"], "T (T*, T, order)"),
    (&["__atomic_exchange"], "void (T*, T*, T*, order)"),
    (&["__atomic_compare_exchange_n"], "bool (T*, T*, T, bool, order, order)"),
    (&["__atomic_compare_exchange"], "bool (T*, T*, T*, bool, order, order)"),
    (
        &[
            "__atomic_add_fetch",
            "__atomic_sub_fetch",
            "__atomic_and_fetch",
            "__atomic_xor_fetch",
            "__atomic_or_fetch",
            "__atomic_nand_fetch",
            "__atomic_fetch_add",
            "__atomic_fetch_sub",
            "__atomic_fetch_and",
            "__atomic_fetch_xor",
            "__atomic_fetch_or",
            "__atomic_fetch_nand",
        ],
        "T (T*, N, order)",
    ),
    (&["__atomic_test_and_set"], "bool (any*, order)"),
    (&["__atomic_clear"], "void (any*, order)"),
    (&["__atomic_thread_fence", "__atomic_signal_fence"], "void (order)"),
    (&["__atomic_always_lock_free", "__atomic_is_lock_free"], "bool (ulong, void*)"),
    // Clang's names for the functions of C11.
    (&["__c11_atomic_init"], "void (T*, T)"),
    (&["__c11_atomic_load"], "T (T*, order)"),
    (&["__c11_atomic_store"], "void (T*, T, order)"),
    (&["__c11_atomic_exchange"], "T (T*, T, order)"),
    (
        &["__c11_atomic_compare_exchange_strong", "__c11_atomic_compare_exchange_weak"],
        "bool (T*, T*, T, order, order)",
    ),
    (
        &[
            "__c11_atomic_fetch_add",
            "__c11_atomic_fetch_sub",
            "__c11_atomic_fetch_and",
            "__c11_atomic_fetch_or",
            "__c11_atomic_fetch_xor",
        ],
        "T (T*, N, order)",
    ),
    (&["__c11_atomic_thread_fence", "__c11_atomic_signal_fence"], "void (order)"),
    // GNU C, the older builtins. Their variable arguments list the variables that the implied barrier protects. gcc ignores this list and protects
    // all variables.
    (
        &[
            "__sync_fetch_and_add",
            "__sync_fetch_and_sub",
            "__sync_fetch_and_or",
            "__sync_fetch_and_and",
            "__sync_fetch_and_xor",
            "__sync_fetch_and_max",
            "__sync_fetch_and_min",
            "__sync_fetch_and_umax",
            "__sync_fetch_and_umin",
            "__sync_fetch_and_nand",
            "__sync_add_and_fetch",
            "__sync_sub_and_fetch",
            "__sync_or_and_fetch",
            "__sync_and_and_fetch",
            "__sync_xor_and_fetch",
            "__sync_nand_and_fetch",
        ],
        "T (T*, N, ...)",
    ),
    (&["__sync_bool_compare_and_swap"], "bool (T*, T, T, ...)"),
    (&["__sync_val_compare_and_swap"], "T (T*, T, T, ...)"),
    (&["__sync_synchronize"], "void (...)"),
    (&["__sync_lock_test_and_set", "__sync_swap"], "T (T*, T, ...)"),
    (&["__sync_lock_release"], "void (T*, ...)"),
    // GNU C, other builtins.
    (&["__builtin_unreachable", "__builtin_trap", "__builtin_abort", "__builtin_ia32_pause"], "void ()"),
    (&["__builtin_ia32_mfence", "__builtin_ia32_sfence", "__builtin_ia32_lfence"], "void ()"),
    (&["__builtin_clz", "__builtin_ctz", "__builtin_popcount", "__builtin_parity"], "int (uint)"),
    (
        &[
            "__builtin_clzl",
            "__builtin_ctzl",
            "__builtin_popcountl",
            "__builtin_parityl",
            "__builtin_clzll",
            "__builtin_ctzll",
            "__builtin_popcountll",
            "__builtin_parityll",
        ],
        "int (ulong)",
    ),
    (&["__builtin_ffs"], "int (int)"),
    (&["__builtin_ffsl", "__builtin_ffsll"], "int (long)"),
    (&["__builtin_bswap32"], "uint (uint)"),
    (&["__builtin_bswap64"], "ulong (ulong)"),
    (&["__builtin_add_overflow", "__builtin_sub_overflow", "__builtin_mul_overflow"], "bool (any, any, T*)"),
    (&["__builtin_prefetch"], "void (void*, ...)"),
    (&["__builtin_object_size"], "ulong (void*, int)"),
    (&["__builtin_assume_aligned"], "void* (void*, ulong, ...)"),
    // Intel's names.
    (&["_mm_mfence", "_mm_sfence", "_mm_lfence", "_mm_pause"], "void ()"),
    // Functions of the C library, for programs that call them without including a header.
    (&["__fencewright_assert", "assert"], "void (any)"),
    (&["__assert_fail"], "void (char*, char*, uint, char*)"),
    (&["abort"], "void ()"),
    (&["exit", "_exit", "_Exit", "__builtin_exit"], "void (int)"),
    (&["malloc", "alloca", "__builtin_alloca", "__builtin_malloc"], "void* (ulong)"),
    (&["calloc"], "void* (ulong, ulong)"),
    (&["realloc"], "void* (void*, ulong)"),
    (&["free", "__builtin_free"], "void (void*)"),
    (&["memset", "__builtin_memset"], "void* (void*, int, ulong)"),
    (&["memcpy", "memmove", "__builtin_memcpy", "__builtin_memmove"], "void* (void*, void*, ulong)"),
    // C11, Annex K, which few libraries implement.
    (&["memset_s"], "int (void*, ulong, int, ulong)"),
    (&["memcpy_s", "memmove_s"], "int (void*, ulong, void*, ulong)"),
    (&["memcmp", "__builtin_memcmp"], "int (void*, void*, ulong)"),
    (&["printf", "__builtin_printf"], "int (char*, ...)"),
    (&["puts"], "int (char*)"),
    (&["putchar", "rand", "sched_yield"], "int (...)"),
    (&["usleep", "sleep"], "int (uint)"),
    // SV-COMP.
    (&["__VERIFIER_nondet_int"], "int ()"),
    (&["__VERIFIER_nondet_uint", "__VERIFIER_nondet_unsigned", "__VERIFIER_nondet_u32"], "uint ()"),
    (&["__VERIFIER_tid"], "uint ()"),
    (&["__VERIFIER_nondet_long", "__VERIFIER_nondet_longlong"], "long ()"),
    (&["__VERIFIER_nondet_ulong", "__VERIFIER_nondet_ulonglong", "__VERIFIER_nondet_size_t"], "ulong ()"),
    (&["__VERIFIER_nondet_bool", "__VERIFIER_nondet__Bool"], "bool ()"),
    (&["__VERIFIER_nondet_char"], "char ()"),
    (&["__VERIFIER_nondet_uchar", "__VERIFIER_nondet_u8"], "uchar ()"),
    (&["__VERIFIER_nondet_short"], "short ()"),
    (&["__VERIFIER_nondet_ushort", "__VERIFIER_nondet_u16"], "ushort ()"),
    (&["__VERIFIER_nondet_pointer"], "void* ()"),
    (&["__VERIFIER_assume", "__VERIFIER_assert", "assume", "__builtin_assume"], "void (any)"),
    (&["__VERIFIER_error", "reach_error"], "void ()"),
    (&["__VERIFIER_atomic_begin", "__VERIFIER_atomic_end"], "void ()"),
    (&["__VERIFIER_loop_begin", "__VERIFIER_loop_end", "__VERIFIER_spin_start"], "void ()"),
    (&["__VERIFIER_spin_end", "__VERIFIER_loop_bound"], "void (any)"),
    // ESBMC.
    (&["__ESBMC_assume", "__ESBMC_cover"], "void (any)"),
    (&["__ESBMC_assert"], "void (any, ...)"),
    (&["__ESBMC_atomic_begin", "__ESBMC_atomic_end", "__ESBMC_yield"], "void ()"),
    // CBMC.
    (&["__CPROVER_assume"], "void (any)"),
    (&["__CPROVER_assert"], "void (any, ...)"),
    (&["__CPROVER_atomic_begin", "__CPROVER_atomic_end"], "void ()"),
    (&["__CPROVER_fence"], "void (...)"),
    // Linux.
    (&["smp_load_acquire"], "T (T*)"),
    (&["smp_store_release"], "void (T*, T)"),
    (&["smp_store_mb", "set_mb"], "void (&T, T)"),
    (
        &[
            "smp_mb",
            "smp_rmb",
            "smp_wmb",
            "mb",
            "rmb",
            "wmb",
            "barrier",
            "cpu_relax",
            "smp_mb__before_atomic",
            "smp_mb__after_atomic",
            "smp_mb__after_spinlock",
            "smp_mb__after_unlock_lock",
            "smp_acquire__after_ctrl_dep",
            "smp_read_barrier_depends",
            "dma_rmb",
            "dma_wmb",
            "virt_mb",
            "virt_rmb",
            "virt_wmb",
            "cond_resched",
            "schedule",
            "preempt_enable",
            "preempt_disable",
            "rcu_read_lock",
            "rcu_read_lock_bh",
            "rcu_read_lock_sched",
            "rcu_read_unlock",
            "rcu_read_unlock_bh",
            "rcu_read_unlock_sched",
            "synchronize_rcu",
            "synchronize_rcu_bh",
            "synchronize_rcu_expedited",
            "synchronize_sched",
        ],
        "void ()",
    ),
    (&["xchg", "xchg_relaxed", "xchg_acquire", "xchg_release"], "T (T*, T)"),
    (
        &["cmpxchg", "cmpxchg_relaxed", "cmpxchg_acquire", "cmpxchg_release", "cmpxchg_local", "cmpxchg64"],
        "T (T*, T, T)",
    ),
    (
        &["try_cmpxchg", "try_cmpxchg_relaxed", "try_cmpxchg_acquire", "try_cmpxchg_release"],
        "bool (T*, T*, T)",
    ),
    (&["xadd"], "T (T*, N)"),
    (&["local_irq_disable", "local_irq_enable"], "void ()"),
    (&["udelay", "ndelay", "msleep"], "void (ulong)"),
    (&["printk", "pr_info", "pr_err", "pr_warn", "panic"], "int (char*, ...)"),
    (&["BUG"], "void ()"),
    (&["BUG_ON"], "void (any)"),
    (&["WARN_ON", "WARN_ON_ONCE"], "bool (any)"),
];

/// One word in the notation for types that the head of this file defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A fixed type.
    Known(Type),
    /// `T*`.
    Pointer,
    /// `&T`.
    Place,
    /// `T`.
    Value,
    /// `N`.
    Number,
    /// `any`.
    Any,
    /// `any*`.
    AnyPointer,
}

/// The type of a function in the table.
#[derive(Debug)]
pub(super) struct Signature {
    pub result: Word,
    pub parameters: Vec<Word>,
    /// Whether further arguments may follow.
    pub variadic: bool,
}

/// The type of the function with this name; `None` if the name is not in the table.
pub(super) fn signature(name: &str) -> Option<Signature> {
    let (_, text) = TABLE.iter().find(|(names, _)| names.contains(&name))?;
    let (result, parameters) = text.trim_end_matches(')').split_once(" (")?;
    let words = parameters.split(", ").filter(|word| !word.is_empty() && *word != "...");
    Some(Signature {
        result: word(result),
        parameters: words.map(word).collect(),
        variadic: parameters.ends_with("..."),
    })
}

/// All names in the table, from which the nearest is suggested for an undeclared name.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|(names, _)| names.iter().copied())
}

fn word(word: &str) -> Word {
    use crate::ast::{Integer, Rank};
    let small = |rank, signed| Arithmetic::Integer(Integer { rank, signed }).into();
    Word::Known(match word {
        "T*" => return Word::Pointer,
        "&T" => return Word::Place,
        "T" => return Word::Value,
        "N" => return Word::Number,
        "any" => return Word::Any,
        "any*" => return Word::AnyPointer,
        "bool" => Arithmetic::Bool.into(),
        "int" | "order" => Type::int(),
        "uint" => UNSIGNED.into(),
        "long" => LONG.into(),
        "ulong" => UNSIGNED_LONG.into(),
        "char" => CHAR.into(),
        "uchar" => small(Rank::Char, false),
        "short" => small(Rank::Short, true),
        "ushort" => small(Rank::Short, false),
        "void*" => Type::void().pointer(),
        "char*" => Type::from(CHAR).pointer(),
        _ => TypeKind::Void.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::{TABLE, Word, signature};

    #[test]
    fn the_builtin_table_parses() {
        let mut seen = std::collections::BTreeSet::new();
        for (names, text) in TABLE {
            for name in *names {
                assert!(seen.insert(name), "{name} is there twice");
                let found = signature(name).unwrap_or_else(|| panic!("{text}"));
                let void = |word: &Word| matches!(word, Word::Known(ty) if ty.is_void());
                assert_eq!(void(&found.result), text.starts_with("void ("), "{text}");
                assert!(!found.parameters.iter().any(void), "a word of {text} is not known");
            }
        }
    }
}

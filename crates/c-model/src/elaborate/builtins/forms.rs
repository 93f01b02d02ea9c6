//! How the memory orders of operations are written, by the names of the functions: what [`orders`](crate::orders) needs to weaken them.

use fencewright_front_end::orders::Operation;

use super::atomics::{self, Convention, Order};
use super::{fences, linux};

/// The form in which a function states its memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// By its last argument.
    Argument(Operation),
    /// C11 without an order: sequentially consistent. The function with an order is called `..._explicit`.
    Implicit(Operation),
    /// `__sync_lock_release`: a release store of 0.
    LockRelease,
    /// By its name, with a pointer to the place as an argument. The relaxed operation, named here, takes the place itself: `WRITE_ONCE(x, 1)`.
    Pointer(Operation, &'static str),
    /// By its name. The relaxed operation, named here, has the same arguments.
    Renamed(Operation, &'static str),
    /// A read-modify-write, of any order.
    Modify,
    /// A full fence, with the corresponding store-store fence.
    Full(&'static str),
    /// A store-store fence.
    Stores,
    /// A fence that has no weaker form except none at all: it has no effect under TSO and PSO, or is described by strings (`__CPROVER_fence`).
    Weak,
}

impl Form {
    /// Whether the function is a fence.
    pub(crate) fn is_fence(self) -> bool {
        matches!(self, Form::Argument(Operation::Fence) | Form::Full(_) | Form::Stores | Form::Weak)
    }
}

/// The form of the function with this name; `None` if it has no memory order or is relaxed.
pub(crate) fn form(name: &str) -> Option<Form> {
    if let Some((operation, convention)) = atomics::named(name) {
        return of_atomic(operation, convention);
    }
    if let Some(operation) = linux::named(name) {
        return of_linux(operation, name);
    }
    Some(match fences::named(name)? {
        fences::Fence::Ordered => Form::Argument(Operation::Fence),
        fences::Fence::Full => Form::Full(match name {
            "smp_mb" => "smp_wmb()",
            "mb" => "wmb()",
            "virt_mb" => "virt_wmb()",
            "_mm_mfence" => "_mm_sfence()",
            "__builtin_ia32_mfence" => "__builtin_ia32_sfence()",
            _ => "__atomic_thread_fence(__ATOMIC_RELEASE)",
        }),
        fences::Fence::Stores => Form::Stores,
        fences::Fence::Described => Form::Weak,
        // Fences for compilers only, pauses, and fences beside read-modify-writes are left alone.
        fences::Fence::Nothing => match name {
            "smp_rmb" | "rmb" | "dma_rmb" | "virt_rmb" | "_mm_lfence" | "__builtin_ia32_lfence" => Form::Weak,
            _ => return None,
        },
    })
}

fn of_atomic(operation: atomics::Operation, convention: Convention) -> Option<Form> {
    use atomics::Operation as Atomic;
    let operation = match operation {
        Atomic::Load => Operation::Load,
        Atomic::Store | Atomic::Clear => Operation::Store,
        Atomic::Init | Atomic::IsLockFree => return None,
        _ => return Some(Form::Modify),
    };
    Some(match convention {
        Convention::Implicit => Form::Implicit(operation),
        Convention::Explicit | Convention::Gnu | Convention::Indirect => Form::Argument(operation),
        Convention::Sync => Form::LockRelease,
    })
}

fn of_linux(operation: linux::Operation, name: &str) -> Option<Form> {
    use linux::Operation as Linux;
    match operation {
        Linux::Load | Linux::Store(Order::Release | Order::Sequential) => Some(match name {
            "smp_load_acquire" => Form::Pointer(Operation::Load, "READ_ONCE"),
            "smp_store_release" => Form::Pointer(Operation::Store, "WRITE_ONCE"),
            "smp_store_mb" | "set_mb" => Form::Renamed(Operation::Store, "WRITE_ONCE"),
            "atomic_read_acquire" => Form::Renamed(Operation::Load, "atomic_read"),
            "atomic64_read_acquire" => Form::Renamed(Operation::Load, "atomic64_read"),
            "atomic_long_read_acquire" => Form::Renamed(Operation::Load, "atomic_long_read"),
            "atomic_set_release" => Form::Renamed(Operation::Store, "atomic_set"),
            "atomic64_set_release" => Form::Renamed(Operation::Store, "atomic64_set"),
            "atomic_long_set_release" => Form::Renamed(Operation::Store, "atomic_long_set"),
            _ => return None,
        }),
        Linux::Exchange
        | Linux::CompareExchange
        | Linux::TryCompareExchange
        | Linux::Modify { .. }
        | Linux::AddUnless { .. }
        | Linux::DecrementIfPositive => Some(Form::Modify),
        Linux::Store(_) | Linux::BugOn | Linux::WarnOn | Linux::Nothing => None,
    }
}

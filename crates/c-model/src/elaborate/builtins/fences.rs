//! Fences of C11, gcc, x86 intrinsics, Linux and CBMC.

use super::super::{Elaborator, Result};
use super::atomics::Order;
use super::{BuiltinCall, strings};
use fencewright_code::core::StmtKind;
use fencewright_code::numbers::Operand;
use fencewright_program::Span;

/// Which accesses a fence keeps in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fence {
    /// All accesses.
    Full,
    /// Stores with respect to other stores: a store-store fence.
    Stores,
    /// No accesses beyond those that both TSO and PSO keep in order anyway, so the fence has no effect.
    Nothing,
    /// The accesses depend on the memory order given as argument.
    Ordered,
    /// The accesses depend on the strings given as arguments.
    Described,
}

/// The fence of a function, by its name; `None` if the function is not a fence.
pub(super) fn named(name: &str) -> Option<Fence> {
    Some(match name {
        "atomic_thread_fence" | "__atomic_thread_fence" | "__c11_atomic_thread_fence" => Fence::Ordered,
        "__sync_synchronize" | "_mm_mfence" | "__builtin_ia32_mfence" => Fence::Full,
        "_mm_sfence" | "__builtin_ia32_sfence" => Fence::Stores,
        "_mm_lfence" | "__builtin_ia32_lfence" => Fence::Nothing,
        "smp_mb" | "mb" | "virt_mb" => Fence::Full,
        "smp_wmb" | "wmb" | "dma_wmb" | "virt_wmb" => Fence::Stores,
        "smp_rmb" | "rmb" | "dma_rmb" | "virt_rmb" | "barrier" | "smp_read_barrier_depends" => Fence::Nothing,
        "smp_acquire__after_ctrl_dep" => Fence::Nothing,
        // These fences stand next to read-modify-writes, which drain the store buffer anyway, so they have no effect.
        "smp_mb__before_atomic" | "smp_mb__after_atomic" | "smp_mb__after_spinlock" => Fence::Nothing,
        "smp_mb__after_unlock_lock" | "smp_mb__before_spinlock" => Fence::Nothing,
        "atomic_signal_fence" | "__atomic_signal_fence" | "__c11_atomic_signal_fence" => Fence::Nothing,
        "cpu_relax" | "_mm_pause" | "__builtin_ia32_pause" | "__pause" => Fence::Nothing,
        "__CPROVER_fence" => Fence::Described,
        _ => return None,
    })
}

impl Elaborator<'_> {
    pub(super) fn called_fence(&mut self, fence: Fence, call: BuiltinCall) -> Result<Operand> {
        let fence = match fence {
            Fence::Ordered => {
                let argument = self.argument(call, 0)?;
                match self.order_of(argument)? {
                    Order::Sequential => Fence::Full,
                    Order::Release | Order::AcquireRelease => Fence::Stores,
                    Order::Acquire | Order::Relaxed => Fence::Nothing,
                }
            }
            Fence::Described => {
                let texts: Vec<String> =
                    call.arguments.iter().filter_map(|argument| strings::text(self.unit, argument)).collect();
                let orders = |kind: &str| texts.iter().any(|text| text.starts_with(kind));
                match (orders("WR"), orders("WW")) {
                    (true, _) => Fence::Full,
                    (false, true) => Fence::Stores,
                    (false, false) => Fence::Nothing,
                }
            }
            other => other,
        };
        self.fence(fence, call.span);
        Ok(Operand::number(0))
    }

    /// Emits a full or store-store fence; emits no statement for the other kinds.
    pub(super) fn fence(&mut self, fence: Fence, span: Span) {
        match fence {
            Fence::Full => self.emit(StmtKind::Fence, span),
            Fence::Stores => self.emit(StmtKind::StoreFence, span),
            Fence::Nothing | Fence::Ordered | Fence::Described => {}
        }
    }
}

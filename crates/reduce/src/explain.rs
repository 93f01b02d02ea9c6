//! The comment at the head of a printed `P_M`: the meaning of its names, and what verdicts about it imply for the original program.

use fencewright_program::{MemoryModel, Program};

use crate::bounds::Bounds;
use crate::map::Reduced;
use crate::queues::Queues;

impl Reduced {
    /// The lines that go before the text of `P_M`: its origin, the meaning of its names, and what verdicts about it imply.
    pub fn explanation(&self, original: &Program, name: &str) -> Vec<String> {
        let model = self.model.name().to_uppercase();
        let figures = if self.forgets { "FENCES12, Fig. 5" } else { "EXTRA13, Fig. 5 and 12" };
        let mut lines = vec![
            format!("{name} under {model}, as a program for SC: store buffers are variables ({figures})."),
            self.sizes(original),
            String::new(),
        ];
        let (count, seen) = match self.model {
            MemoryModel::Pso => (
                "x_cnt: how many stores to x the thread has buffered; x_1, x_2, ...: their values, the oldest first.",
                true,
            ),
            _ => (
                "cnt: how many stores the thread has buffered; lhs_i, rhs_i: memory cell and value of the i-th, the oldest first.",
                false,
            ),
        };
        lines.push(count.into());
        if !seen {
            let cells = original.variables.iter().map(|v| match v.indices {
                None => format!("{} {}", v.base, v.name),
                Some(_) => format!("{} {}", v.base, original.cell_name(v.base)),
            });
            lines.push(format!("Memory cells: {}.", cells.collect::<Vec<_>>().join(", ")));
        }
        let epochs = (0..self.program.threads.len()).any(|t| {
            matches!(self.queues(fencewright_program::ThreadId(t as u32)), Queues::Pso { epoch: Some(_), .. })
        });
        if epochs {
            lines.push("x_epoch_i: how many sfences stand before the i-th store; epoch: how many before the next one.".into());
        }
        if self.forgets {
            lines.extend([
                "x_more: whether later stores to x are forgotten; x_last: the newest value among them. What they write to memory before that is arbitrary.".to_string(),
                String::new(),
                "holds:     so it does in the original program, with buffers of any size.".into(),
                "violated:  nothing is known: stores in an order, or with values, that the original program does not have may be to blame.".into(),
                "The other way round for `finally exists`, which fails for certain if it fails here. Freedom from deadlock cannot be asked for.".into(),
            ]);
            return lines;
        }
        lines.push(String::new());
        if self.may_overflow() {
            lines.extend([
                "A store into a full buffer takes its thread to the label overflow, for good. Properties look at what happens before that only.".into(),
                "violated:  the original program violates the property, whatever the property overflow says.".to_string(),
                "holds:     so it does in the original program, with buffers of any size, if the property overflow holds too.".into(),
                "           Otherwise nothing is known: try larger buffers.".into(),
                "The other way round for `finally exists`, which holds for certain if it holds here.".into(),
            ]);
        } else {
            lines.push("No buffer can overflow, so a property holds here exactly if it holds of the original program.".into());
        }
        lines
    }

    fn sizes(&self, original: &Program) -> String {
        match &self.bounds {
            bounds if self.forgets => {
                let k = bounds.largest();
                let of = if self.model == MemoryModel::Pso { " to each memory cell" } else { "" };
                format!("Of the stores that a thread buffers, the {k} oldest{of} are kept in order.")
            }
            Bounds::PerThread(k) => format!("Each thread buffers at most {k} {}.", stores(*k)),
            Bounds::PerVariable(each) => {
                let all_alike = each.windows(2).all(|pair| pair[0] == pair[1]);
                match each.first() {
                    Some(k) if all_alike => {
                        format!("Each thread buffers at most {k} {} to each memory cell.", stores(*k))
                    }
                    _ => {
                        let sizes = original.variables.iter().zip(each);
                        let sizes: Vec<String> = sizes.map(|(v, k)| format!("{} {k}", v.name)).collect();
                        format!(
                            "Stores that each thread buffers at most, to each memory cell: {}.",
                            sizes.join(", ")
                        )
                    }
                }
            }
        }
    }
}

fn stores(k: u32) -> &'static str {
    if k == 1 { "store" } else { "stores" }
}

//! Minimises programs that show a difference.

use fencewright_lang::ast::*;

use super::generate::Generated;

/// Removes items and statements, and unwraps compound statements, as long as `fails` is true of the result.
pub fn shrink(generated: &Generated, fails: &dyn Fn(&Generated) -> bool) -> Generated {
    let mut smallest = generated.clone();
    let mut number = 0;
    while let Some(smaller) = reduction(&smallest, number) {
        match fails(&smaller) {
            true => smallest = smaller,
            false => number += 1,
        }
    }
    smallest
}

/// The program without its `number`-th part; `None` if it has fewer parts.
fn reduction(generated: &Generated, number: usize) -> Option<Generated> {
    let mut smaller = generated.clone();
    let mut left = number;
    for n in 0..smaller.file.items.len() {
        if left == 0 {
            smaller.file.items.remove(n);
            return Some(smaller);
        }
        left -= 1;
        if let Item::Thread(thread) = &mut smaller.file.items[n]
            && reduce(&mut thread.body, &mut left)
        {
            return Some(smaller);
        }
    }
    None
}

/// Removes the part with number `left`, which is decreased for each part before it. Returns whether the block had such a part.
fn reduce(block: &mut Block, left: &mut usize) -> bool {
    for n in 0..block.statements.len() {
        if *left == 0 {
            block.statements.remove(n);
            return true;
        }
        *left -= 1;
        if !block.statements[n].labels.is_empty() && block.statements[n].kind != StatementKind::Empty {
            if *left == 0 {
                block.statements[n].labels.clear();
                return true;
            }
            *left -= 1;
        }
        let inner = inner_blocks_mut(&mut block.statements[n]);
        if !inner.is_empty() && *left == 0 {
            let inside =
                inner.into_iter().flat_map(|b| std::mem::take(&mut b.statements)).collect::<Vec<_>>();
            block.statements.splice(n..=n, inside);
            return true;
        }
        *left -= usize::from(!inner.is_empty());
        for inner in inner_blocks_mut(&mut block.statements[n]) {
            if reduce(inner, left) {
                return true;
            }
        }
    }
    false
}

pub fn inner_blocks_mut(statement: &mut Statement) -> Vec<&mut Block> {
    match &mut statement.kind {
        StatementKind::Atomic(block)
        | StatementKind::Snapshot(block)
        | StatementKind::Block(block)
        | StatementKind::Loop(block)
        | StatementKind::While(_, block)
        | StatementKind::For(_, _, block) => vec![block],
        StatementKind::If(_, then, otherwise) => std::iter::once(then).chain(otherwise).collect(),
        StatementKind::Choose(blocks) => blocks.iter_mut().collect(),
        _ => Vec::new(),
    }
}

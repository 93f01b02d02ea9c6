//! Refinement by a spurious path: rows for sums, or a larger clip constant.

use fencewright_memory::linear::Linear;

use super::super::SpuriousPath;
use super::{MOST_CLIP, Zones, forms};

impl Zones {
    /// Adds rows for the sums that the path depends on, if that excludes the path. Otherwise raises the clip constant to the least value that
    /// excludes it, alone or, failing that, together with such rows.
    pub(super) fn refine_clip(&self, path: &mut dyn SpuriousPath<Self>) -> Result<Self, String> {
        let candidates = forms::joined(&self.forms, path.sums().iter().filter_map(forms::form_of));
        let candidates: Vec<Linear> = candidates.difference(&self.forms).cloned().collect();
        let all = self.with_forms(candidates.iter().cloned());
        if !candidates.is_empty() && !path.is_feasible(&mut all.clone()) {
            return Ok(self.with_fewest(candidates, path));
        }
        let enough = |domain: &Zones, path: &mut dyn SpuriousPath<Self>| {
            (self.clip + 1..=MOST_CLIP).find(|&more| !path.is_feasible(&mut domain.clipped(more)))
        };
        match enough(self, path) {
            Some(more) if self.fixed => {
                Err(format!("it takes clip = {more}, and clip is fixed at {}", self.clip))
            }
            Some(more) => Ok(self.clipped(more)),
            None if self.fixed || candidates.is_empty() => Err("no clip constant rules it out".into()),
            None => match enough(&all, path) {
                Some(more) => Ok(self.clipped(more).with_fewest(candidates, path)),
                None => Err("no clip constant and no sum of the path rules it out".into()),
            },
        }
    }

    /// Adds a subset of these sums that excludes a path, given that all of them do: removes one sum after the other, long sums first, as long as the
    /// rest can be shown to exclude the path. Each sum that remains costs time in every step before or after which all its cells are live.
    fn with_fewest(&self, mut sums: Vec<Linear>, path: &mut dyn SpuriousPath<Self>) -> Self {
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.terms.len()));
        let mut n = 0;
        while n < sums.len() {
            let without = sums.iter().enumerate().filter(|(m, _)| *m != n).map(|(_, sum)| sum.clone());
            match path.is_feasible(&mut self.with_forms(without)) {
                true => n += 1,
                false => _ = sums.remove(n),
            }
        }
        self.with_forms(sums)
    }
}

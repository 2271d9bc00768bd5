//! Maps unpacked positions to the members of a compressed file.

use std::collections::VecDeque;

/// A range of compressed bytes that can be unpacked on its own.
#[derive(Debug)]
struct UnpackableRange {
    /// Number of unpacked bytes before it.
    from: u64,
    /// Number of compressed bytes before it.
    offset: u64,
    /// The same two numbers for its end.
    end: Option<(u64, u64)>,
}

/// Members in order; no two start at the same unpacked position. Lookup is by binary search.
#[derive(Debug, Default)]
pub(super) struct UnpackableRanges(VecDeque<UnpackableRange>);

impl UnpackableRanges {
    /// Notes the start of a member.
    pub(super) fn start(&mut self, from: u64, offset: u64) {
        // Members without content are useless, and there may be many.
        if self.0.back().is_some_and(|member| member.from == from) {
            self.0.pop_back();
        }
        self.0.push_back(UnpackableRange { from, offset, end: None });
    }

    /// Notes the end of the last member.
    pub(super) fn end(&mut self, to: u64, offset: u64) {
        if let Some(member) = self.0.back_mut() {
            member.end = Some((to, offset));
        }
    }

    /// Returns start and offset of the member at a position, if the file has members.
    pub(super) fn at(&self, position: u64) -> Option<(u64, u64)> {
        let after = self.0.partition_point(|member| member.from <= position);
        self.0.get(after.checked_sub(1)?).map(|member| (member.from, member.offset))
    }

    /// Returns the start of the first member after a position.
    pub(super) fn start_after(&self, position: u64) -> Option<u64> {
        let after = self.0.partition_point(|member| member.from <= position);
        self.0.get(after).map(|member| member.from)
    }

    /// Returns the end of the last member that ends at or before a position, as position and offset.
    pub(super) fn ended(&self, position: u64) -> Option<(u64, u64)> {
        let ended = self.0.partition_point(|member| member.end.is_some_and(|(end, _)| end <= position));
        self.0.get(ended.checked_sub(1)?)?.end
    }

    /// Returns start and offset of the last member, if its end is not known yet.
    pub(super) fn unfinished(&self) -> Option<(u64, u64)> {
        self.0.back().filter(|member| member.end.is_none()).map(|member| (member.from, member.offset))
    }

    /// Forgets the members before the one at a position.
    pub(super) fn forget_before(&mut self, position: u64) {
        let is_before = |member: &UnpackableRange| member.end.is_some_and(|(end, _)| end < position);
        while self.0.len() > 1 && self.0.front().is_some_and(is_before) {
            self.0.pop_front();
        }
    }

    /// Forgets all members.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

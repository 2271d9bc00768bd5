//! Where the members of a file lie in what it unpacks to.

use std::collections::VecDeque;

/// A stretch of compressed bytes that unpacks on its own.
#[derive(Debug)]
struct Member {
    /// Unpacked bytes before it.
    from: u64,
    /// Compressed bytes before it.
    offset: u64,
    /// The same two numbers for its end.
    end: Option<(u64, u64)>,
}

/// Members in their order, of which no two start at the same unpacked position. Each is found by halving, however many
/// there are.
#[derive(Debug, Default)]
pub(super) struct Members(VecDeque<Member>);

impl Members {
    /// A member starts.
    pub(super) fn start(&mut self, from: u64, offset: u64) {
        // Members without content say nothing, however many there are.
        if self.0.back().is_some_and(|member| member.from == from) {
            self.0.pop_back();
        }
        self.0.push_back(Member { from, offset, end: None });
    }

    /// The last member ends.
    pub(super) fn end(&mut self, to: u64, offset: u64) {
        if let Some(member) = self.0.back_mut() {
            member.end = Some((to, offset));
        }
    }

    /// Start and offset of the member that holds a position, if the file has members.
    pub(super) fn at(&self, position: u64) -> Option<(u64, u64)> {
        let after = self.0.partition_point(|member| member.from <= position);
        self.0.get(after.checked_sub(1)?).map(|member| (member.from, member.offset))
    }

    /// Where the first member starts after a position.
    pub(super) fn start_after(&self, position: u64) -> Option<u64> {
        let after = self.0.partition_point(|member| member.from <= position);
        self.0.get(after).map(|member| member.from)
    }

    /// End and offset of the end of the last member that ends up to a position.
    pub(super) fn ended(&self, position: u64) -> Option<(u64, u64)> {
        let ended = self.0.partition_point(|member| member.end.is_some_and(|(end, _)| end <= position));
        self.0.get(ended.checked_sub(1)?)?.end
    }

    /// Start and offset of the last member, if its end has not come.
    pub(super) fn unfinished(&self) -> Option<(u64, u64)> {
        self.0.back().filter(|member| member.end.is_none()).map(|member| (member.from, member.offset))
    }

    /// Forgets the members before the one that a position is in or after.
    pub(super) fn forget_before(&mut self, position: u64) {
        let is_before = |member: &Member| member.end.is_some_and(|(end, _)| end < position);
        while self.0.len() > 1 && self.0.front().is_some_and(is_before) {
            self.0.pop_front();
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

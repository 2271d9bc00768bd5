//! Rows on which records decide: those of many rows are read ahead, side by side.

use super::Error;
use super::expr::Expr;
use super::filter::Filter;
use super::plan::Plan;
use super::rows::{Row, RowsError};
use super::subject::World;

/// Rows whose records are read side by side.
const RECORDS_TOGETHER: usize = 1024;

impl Plan {
    /// Passes rows to a function. Where records decide which of them match, or in which group they are, those of many rows are read side
    /// by side: not of rows that something cheaper rules out.
    pub(super) fn with_records(
        &self,
        world: &World<'_>,
        mut rows: impl Iterator<Item = Result<Row, RowsError>>,
        look: &mut dyn FnMut(Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let parts = self.filter.as_ref().map_or(&[][..], Filter::parts);
        let (read, cheap): (Vec<&Filter>, Vec<&Filter>) =
            parts.iter().partition(|part| part.has(Expr::is_of_record));
        let keys = self.groups.iter().flat_map(|groups| &groups.keys);
        let keys: Vec<&Expr> = keys.filter(|key| key.has(Expr::is_of_record)).collect();
        if read.is_empty() && keys.is_empty() {
            return rows.try_for_each(|row| look(row?));
        }
        loop {
            let together: Vec<Row> = rows.by_ref().take(RECORDS_TOGETHER).collect::<Result<_, _>>()?;
            if together.is_empty() {
                return Ok(());
            }
            let mut are_read = Vec::with_capacity(together.len());
            for row in &together {
                let subject = world.subject(row);
                if cheap
                    .iter()
                    .try_fold(true, |holds, part| Ok::<_, RowsError>(holds && part.holds(&subject)?))?
                {
                    are_read.push(row);
                }
            }
            world.read_records(|| {
                are_read.iter().map(|row| world.subject(row)).try_for_each(|subject| {
                    let mut asked = Ok(());
                    let mut ask = |part: &Expr| {
                        if part.is_of_record() {
                            asked = part.value(&subject).map(drop);
                        }
                        asked.is_err()
                    };
                    let _ = read.iter().any(|part| part.any(&mut ask))
                        || keys.iter().any(|key| key.any(&mut ask));
                    asked
                })
            })?;
            together.into_iter().try_for_each(&mut *look)?;
        }
    }
}

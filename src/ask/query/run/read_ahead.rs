//! Reads records or documents ahead and in parallel, for many rows at once, where they decide on rows.

use crate::query::language::{Error, Filter, Found, Plan, PlannedExpr, RowsError, Subject};
use crate::query::rows::{Row, World};

/// Initial number of rows whose records are read in parallel: a few may be all that is needed.
const ROWS_TOGETHER: usize = 32;
/// Maximum number of rows whose records are read in parallel.
const ROWS_TOGETHER_MAX: usize = 1024;
/// The same where whole payloads are needed: a text may have half a megabyte.
const PAYLOADS_TOGETHER_MAX: usize = 128;

impl Plan {
    /// Passes rows to a function. If records or the validity of documents decide which rows match, or their groups,
    /// those of many rows are read in parallel, except for rows that cheaper conditions exclude.
    pub(crate) fn with_records(
        &self,
        world: &World<'_>,
        mut rows: impl Iterator<Item = Found<Row>>,
        look: &mut dyn FnMut(Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let parts = self.filter.as_ref().map_or(&[][..], Filter::parts);
        let (read, cheap): (Vec<&Filter>, Vec<&Filter>) =
            parts.iter().partition(|part| part.has(PlannedExpr::is_read_ahead));
        let keys = self.groups.iter().flat_map(|groups| &groups.keys);
        let keys: Vec<&PlannedExpr> = keys.filter(|key| key.has(PlannedExpr::is_read_ahead)).collect();
        if read.is_empty() && keys.is_empty() {
            return rows.try_for_each(|row| look(row?));
        }
        let has_payloads = read.iter().any(|part| part.has(PlannedExpr::is_of_payload))
            || keys.iter().any(|key| key.has(PlannedExpr::is_of_payload));
        let most = if has_payloads { PAYLOADS_TOGETHER_MAX } else { ROWS_TOGETHER_MAX };
        let mut count = ROWS_TOGETHER;
        loop {
            let together: Vec<Row> = rows.by_ref().take(count).collect::<Result<_, _>>()?;
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
            world.read_ahead(|| {
                are_read.iter().map(|row| world.subject(row)).try_for_each(|subject| {
                    read.iter().try_for_each(|part| ask(part, &subject))?;
                    let mut asked = Ok(());
                    let _ = keys.iter().any(|key| key.any(&mut |part| asks(part, &subject, &mut asked)));
                    asked
                })
            })?;
            together.into_iter().try_for_each(&mut *look)?;
            count = most.min(2 * count);
        }
    }
}

/// Asks for what a filter reads of a row, unless cheaper conditions beside it decide.
fn ask(filter: &Filter, subject: &dyn Subject) -> Found<()> {
    let (parts, deciding) = match filter {
        Filter::All(parts) => (parts, false),
        Filter::Any(parts) => (parts, true),
        Filter::Not(part) => return ask(part, subject),
        own => {
            let mut asked = Ok(());
            own.any(&mut |part| asks(part, subject, &mut asked));
            return asked;
        }
    };
    for part in parts {
        if part.has(PlannedExpr::is_read_ahead) {
            ask(part, subject)?;
        } else if part.holds(subject)? == deciding {
            return Ok(());
        }
    }
    Ok(())
}

/// Asks for the value of an expression if it is read ahead; whether that failed.
fn asks(part: &PlannedExpr, subject: &dyn Subject, asked: &mut Found<()>) -> bool {
    if part.is_read_ahead() {
        *asked = part.value(subject).map(drop);
    }
    asked.is_err()
}

//! Calls and lists with many tools, servers, variants, principals or connections: series in which each size is twice the
//! one before. The rows of a series take turns, so that other work on the machine affects all of them equally.

use super::{Row, kind_of};
use crate::load::{Era, Method};
use crate::subject::Subject;
use crate::upstream::Transport;

/// What there is much of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Dimension {
    /// Of one server.
    Tools,
    /// With ten tools each.
    Servers,
    /// Each with a view of its own. Modern clients select all of them, legacy clients have the first.
    Variants,
    /// API keys, each with a session, and an access rule for every four.
    Principals,
    /// Each with a session, idle but for one request before and after the measurement; sixteen more are in use.
    Connections,
}

impl Dimension {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Servers => "servers",
            Self::Variants => "variants",
            Self::Principals => "principals",
            Self::Connections => "connections",
        }
    }

    /// Whether a list grows with it.
    pub(crate) const fn is_listed(self) -> bool {
        matches!(self, Self::Tools | Self::Servers)
    }

    const fn sizes(self) -> [usize; 3] {
        match self {
            Self::Tools | Self::Principals => [250, 500, 1000],
            Self::Servers => [12, 25, 50],
            Self::Variants => [25, 50, 100],
            Self::Connections => [2500, 5000, 10_000],
        }
    }
}

/// The rows of all series, those of a series one after the other.
pub(super) fn rows() -> Vec<Row> {
    let all = [
        (Dimension::Tools, Era::Legacy),
        (Dimension::Servers, Era::Legacy),
        (Dimension::Variants, Era::Legacy),
        (Dimension::Variants, Era::Modern),
        (Dimension::Principals, Era::Legacy),
        (Dimension::Connections, Era::Legacy),
    ];
    let series = all.into_iter().flat_map(|(dimension, era)| {
        [Method::Call, Method::List].map(|method| (dimension, era, method))
    });
    let sized = series.flat_map(|(dimension, era, method)| {
        let sizes = dimension.sizes();
        sizes.map(|size| Row::with_many(dimension, size, era, method))
    });
    sized.collect()
}

impl Row {
    /// Whether `other` is a row of the same series.
    pub(crate) fn is_in_series_of(&self, other: &Self) -> bool {
        let of = |row: &Self| Some((row.many?.0, row.era, row.method));
        of(self).is_some() && of(self) == of(other)
    }

    /// Whether it is the first row of a series, or not in one.
    pub(crate) fn is_smallest(&self) -> bool {
        let first = |(dimension, size): (Dimension, usize)| dimension.sizes()[0] == size;
        self.many.is_none_or(first)
    }

    fn with_many(dimension: Dimension, size: usize, era: Era, method: Method) -> Self {
        let mut row = Self::call(era, Transport::Http, kind_of(era, Transport::Http));
        if method == Method::List {
            row = row.into_list();
        }
        let client = super::named(era);
        row.name = format!(
            "many {}: {}, {client} client, {size}",
            dimension.name(),
            method.noun()
        );
        let count = match dimension {
            Dimension::Tools => &mut row.behind.tools,
            Dimension::Servers => &mut row.behind.servers,
            Dimension::Variants => &mut row.behind.alike,
            Dimension::Principals => &mut row.behind.principals,
            Dimension::Connections => &mut row.behind.idle,
        };
        *count = size;
        row.behind.idle = row.behind.idle.max(row.behind.principals);
        row.subjects = vec![Subject::Vary];
        row.bar = None;
        row.many = Some((dimension, size));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_doubles_to_its_largest_size() {
        let rows = rows();
        let series: Vec<_> = rows.chunk_by(Row::is_in_series_of).collect();
        assert_eq!(series.len(), 12);
        for series in series {
            let sizes: Vec<_> = series.iter().filter_map(|row| row.many).collect();
            let doubles = |two: &[(Dimension, usize)]| two[1].1 / two[0].1 == 2;
            assert!(sizes.windows(2).all(doubles), "{sizes:?}");
            let smallest = series.iter().filter(|row| row.is_smallest());
            assert_eq!(smallest.count(), 1);
        }
    }
}

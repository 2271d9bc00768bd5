//! Names and times have codes up to a limit, and files that make no sense are refused.

use super::*;

fn noted(answers: &[(String, Option<u64>)]) -> Noted {
    let mut noted = Noted::default();
    for (id, (fields, response_ms)) in (0..).zip(answers) {
        let head = HttpHead::parse(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").as_bytes());
        let time = response_ms.map(|time| (FIELD_FETCH_MS.to_owned(), time.to_string()));
        noted.add(CaptureId(id), CaptureKind::Response, &head, time.as_slice());
    }
    noted
}

fn servers(names: impl IntoIterator<Item = String>) -> Vec<u16> {
    let answers: Vec<_> = names.into_iter().map(|name| (format!("Server: {name}"), None)).collect();
    let noted = noted(&answers);
    (0..answers.len() as u32).map(|id| noted.row(id).unwrap()[0]).collect()
}

#[test]
fn only_so_many_names_and_none_that_is_too_long_get_a_code() {
    let [most, ..] = NAMES_MAX;
    let codes = servers((0..=most).chain([0, most - 1]).map(|number| format!("s{number}")));
    assert_eq!(codes[..2], [FIRST, FIRST + 1]);
    assert_eq!(codes[most - 1..], [FIRST + most as u16 - 1, UNKNOWN, FIRST, FIRST + most as u16 - 1]);
    let lengths = [NAME_BYTES_MAX, NAME_BYTES_MAX + 1, 0];
    assert_eq!(servers(lengths.map(|bytes| "x".repeat(bytes))), [FIRST, UNKNOWN, ABSENT]);
    // Bytes count, not characters.
    assert_eq!(servers([NAME_BYTES_MAX / 2, NAME_BYTES_MAX / 2 + 1].map(|count| "é".repeat(count))), [2, 0]);
}

#[test]
fn charsets_and_times_have_limits_too() {
    let [_, most, ..] = NAMES_MAX;
    let answers: Vec<_> =
        (0..=most).map(|number| (format!("Content-Type: a/b; CHARSET=C{number}"), None)).collect();
    let codes = noted(&answers);
    let charset = |id: usize| codes.row(id as u32).unwrap()[1];
    assert_eq!([charset(0), charset(most - 1), charset(most)], [FIRST, FIRST + most as u16 - 1, UNKNOWN]);
    assert_eq!(codes.names[1].names[0], "c0");
    let longest = u64::from(u16::MAX - FIRST);
    let times = [None, Some(0), Some(longest), Some(longest + 1), Some(u64::MAX)];
    let times = noted(&times.map(|time| (String::new(), time)));
    let codes: Vec<Row> = (0..5).map(|id| *times.row(id).unwrap()).collect();
    assert_eq!(
        codes.iter().map(|[.., time]| *time).collect::<Vec<_>>(),
        [ABSENT, FIRST, u16::MAX, UNKNOWN, UNKNOWN]
    );
    assert!(codes.iter().all(|[names @ .., _]| names == &[ABSENT; NAMES]));
}

#[test]
fn hops_and_failures_are_those_of_the_last_line() {
    let mut noted = Noted::default();
    let line = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let lines = [line(FIELD_HOPS, "L"), line(FIELD_ERROR, "timed out"), line(FIELD_HOPS, "LE")];
    noted.add(CaptureId(0), CaptureKind::Failed, &HttpHead::parse(&[]), &lines);
    assert_eq!(noted.row(0), Some(&[ABSENT, ABSENT, FIRST, FIRST, ABSENT]));
    assert_eq!(
        (&noted.names[2].names, &noted.names[3].names),
        (&vec!["LE".into()], &vec!["timed out".into()])
    );
}

/// As many names as there may be, all as long as they may be, are read back, and nothing that is not written so.
#[test]
fn names_are_read_as_they_were_written() {
    let mut names = <[Names; NAMES]>::default();
    for (names, most) in names.iter_mut().zip(NAMES_MAX) {
        for number in 0..most {
            assert_ne!(names.code(Some(&format!("{number:0NAME_BYTES_MAX$}")), most), UNKNOWN);
        }
    }
    let bytes = texts(&names);
    assert!(bytes.len() as u64 <= TEXTS_BYTES_MAX);
    assert_eq!(names_of(&bytes).unwrap(), names.map(|names| names.names));
    // Of the first column, and no names in the others.
    let first = |bytes: &[u8]| names_of(&[bytes, &[0; 2 * (NAMES - 1)]].concat());
    for broken in [&bytes[1..], &bytes[..bytes.len() - 1], &[0; 2 * NAMES - 1], &[0; 2 * NAMES + 1]] {
        assert_eq!(names_of(broken), None);
    }
    for broken in [&[1, 0, 0][..], &[1, 0, 1, 0xff]] {
        assert_eq!(first(broken), None);
    }
    let many = |count: usize| [&(count as u16).to_le_bytes()[..], &[1, b'x'].repeat(count)].concat();
    let long = |bytes: usize| [&[1, 0, bytes as u8][..], &vec![b'x'; bytes]].concat();
    assert!(first(&many(NAMES_MAX[0])).is_some() && first(&many(NAMES_MAX[0] + 1)).is_none());
    assert!(first(&long(NAME_BYTES_MAX)).is_some() && first(&long(NAME_BYTES_MAX + 1)).is_none());
}

//! CodeNames and times get codes up to a limit, and invalid files are refused.

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
    (0..answers.len() as u32).map(|id| noted.row(id)[0]).collect()
}

#[test]
fn only_so_many_names_and_none_that_is_too_long_get_a_code() {
    let [Most { count: most, bytes, .. }, ..] = MOST;
    let codes = servers((0..=most).chain([0, most - 1]).map(|number| format!("s{number}")));
    assert_eq!(codes[..2], [FIRST, FIRST + 1]);
    assert_eq!(codes[most - 1..], [FIRST + most as u16 - 1, UNKNOWN, FIRST, FIRST + most as u16 - 1]);
    let lengths = [bytes, bytes + 1, 0];
    assert_eq!(servers(lengths.map(|bytes| "x".repeat(bytes))), [FIRST, UNKNOWN, ABSENT]);
    // Bytes count, not characters.
    assert_eq!(servers([bytes / 2, bytes / 2 + 1].map(|count| "é".repeat(count))), [2, 0]);
}

#[test]
fn charsets_and_times_have_limits_too() {
    let [_, Most { count: most, .. }, ..] = MOST;
    let answers: Vec<_> =
        (0..=most).map(|number| (format!("Content-Type: a/b; CHARSET=C{number}"), None)).collect();
    let codes = noted(&answers);
    let charset = |id: usize| codes.row(id as u32)[1];
    assert_eq!([charset(0), charset(most - 1), charset(most)], [FIRST, FIRST + most as u16 - 1, UNKNOWN]);
    assert_eq!(codes.names[1].names[0], "c0");
    let longest = u64::from(u16::MAX - FIRST);
    let times = [None, Some(0), Some(longest), Some(longest + 1), Some(u64::MAX)];
    let times = noted(&times.map(|time| (String::new(), time)));
    let codes: Vec<CodeRow> = (0..5).map(|id| times.row(id)).collect();
    assert_eq!(
        codes.iter().map(|[.., time]| *time).collect::<Vec<_>>(),
        [ABSENT, FIRST, u16::MAX, UNKNOWN, UNKNOWN]
    );
    assert!(codes.iter().all(|[names @ .., _, _]| names == &[ABSENT; CHECKED]));
}

#[test]
fn hops_and_failures_are_those_of_the_last_line() {
    let mut noted = Noted::default();
    let line = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let lines = [line(FIELD_HOPS, "L"), line(FIELD_ERROR, "timed out"), line(FIELD_HOPS, "LE")];
    noted.add(CaptureId(0), CaptureKind::Failed, &HttpHead::parse(&[]), &lines);
    assert_eq!(noted.row(0), [ABSENT, ABSENT, FIRST, FIRST, ABSENT, UNKNOWN, ABSENT]);
    assert_eq!(
        (&noted.names[2].names, &noted.names[3].names),
        (&vec!["LE".into()], &vec!["timed out".into()])
    );
}

/// Notes heads with a date and a number each, and returns what is known about them.
fn heads(answers: usize) -> Noted {
    let answer = |number: usize| {
        let lines = format!("Date: {number}\r\nX-Powered-By: PHP/{}\r\nDATE: x\r\nEmpty:", number % 2);
        (lines, None)
    };
    noted(&(0..answers).map(answer).collect::<Vec<_>>())
}

#[test]
fn headers_with_too_many_values_are_known_by_name_alone() {
    let most = heads::VALUES_MAX;
    let noted = heads(most + 3);
    let head = |id: usize| {
        let code = noted.row(id as u32)[HEADS];
        noted.names[HEADS].names[usize::from(code - FIRST)].as_str()
    };
    assert_eq!(head(1), "date:1\nx-powered-by:PHP/1\nempty:\n");
    assert_eq!(header(head(most - 1), "DATE"), Some(Some(format!("{}", most - 1).as_str())));
    assert_eq!(head(most), "date\nx-powered-by:PHP/0\nempty:\n");
    assert_eq!([header(head(most), "date"), header(head(most), "empty")], [Some(None), Some(Some(""))]);
    assert_eq!(header(head(most), "x"), None);
    // The file keeps no value that turned out to vary, even if that shows only together with earlier values.
    let mut names = <[CodeNames; NAMES]>::default();
    let codes = codes_of(&noted, &mut names);
    assert_eq!(names[HEADS].names, [head(most), head(most + 1)]);
    assert_eq!(codes[HEADS][..4], [UNKNOWN, ABSENT, FIRST, FIRST + 1]);
    let mut names = <[CodeNames; NAMES]>::default();
    codes_of(&heads(most), &mut names);
    assert_eq!(names[HEADS].names.len(), most);
    let many = |number: usize| (format!("Date: later{number}"), None);
    codes_of(&super::tests::noted(&(0..9).map(many).collect::<Vec<_>>()), &mut names);
    assert_eq!(names[HEADS].names[most..], ["date\n"]);
}

#[test]
fn heads_that_are_too_long_or_too_many_are_unknown() {
    let line = |bytes: usize| (format!("a: {}", "x".repeat(bytes - "a:\n".len())), None);
    let noted = noted(&[line(HEAD_BYTES_MAX), line(HEAD_BYTES_MAX + 1), (String::new(), None)]);
    assert_eq!([0, 1, 2].map(|id| noted.row(id)[HEADS]), [FIRST, UNKNOWN, ABSENT]);
    let (mut names, most) = (CodeNames::default(), MOST[HEADS]);
    let codes = |number: usize| names.code(Some(&format!("{number:0HEAD_BYTES_MAX$}")), most);
    let known = (0..most.count).map(codes).take_while(|code| *code != UNKNOWN).count();
    assert_eq!(known, most.all_bytes / HEAD_BYTES_MAX);
}

/// The maximum number of names, each of maximum length, is read back; bytes in any other form are refused.
#[test]
fn names_are_read_as_they_were_written() {
    let mut names = <[CodeNames; NAMES]>::default();
    for (names, most) in names.iter_mut().zip(MOST) {
        let width = most.bytes.min(most.all_bytes / most.count);
        for number in 0..most.count {
            assert_ne!(names.code(Some(&format!("{number:0width$}")), most), UNKNOWN);
        }
    }
    let bytes = texts(&names);
    assert!(bytes.len() as u64 <= TEXTS_BYTES_MAX);
    assert_eq!(names_of(&bytes).unwrap(), names.map(|names| names.names));
    // Of the first column; the others have no names.
    let first = |bytes: &[u8]| names_of(&[bytes, &[0; 2 * (NAMES - 1)]].concat());
    for broken in [&bytes[1..], &bytes[..bytes.len() - 1], &[0; 2 * NAMES - 1], &[0; 2 * NAMES + 1]] {
        assert_eq!(names_of(broken), None);
    }
    for broken in [&[1, 0, 0, 0][..], &[1, 0, 1, 0, 0xff]] {
        assert_eq!(first(broken), None);
    }
    let many = |count: usize| [&(count as u16).to_le_bytes()[..], &[1, 0, b'x'].repeat(count)].concat();
    let long = |bytes: usize| [&[1, 0, bytes as u8, 0][..], &vec![b'x'; bytes]].concat();
    let Most { count, bytes, .. } = MOST[0];
    assert!(first(&many(count)).is_some() && first(&many(count + 1)).is_none());
    assert!(first(&long(bytes)).is_some() && first(&long(bytes + 1)).is_none());
}

//! Rewriting of scripts: where the word `location` is an identifier, it is replaced with one of ours, which
//! `static/replay.js` defines. Browsers do not allow `location` to be overridden, and a script that reads it would see
//! the archive's address.
//!
//! The rewriter knows tokens and brackets, but no grammar. All other bytes are preserved, and so is the word in
//! doubtful cases: as a property name in an object or class, after an expression that is hardly a window, in a string.
//! A script with unbalanced brackets is not changed.

mod tokens;

#[cfg(test)]
mod tests;

use std::ops::Range;

use memchr::memmem;

use self::tokens::{
    after_blank, ends_property, expression_end, is_before_object, is_before_operand, is_of_word, is_word,
    line_end, may_be_window, string_end, word_at,
};

pub(super) const WORD: &str = "location";
const NAME: &str = "_archive_location";

/// `postMessage` names a target origin, but all windows have the archive's origin: so its arguments pass through a
/// function of ours.
const SENDER: &str = "postMessage";
const SENT: &str = "..._archive_sent(";

/// Maximum nesting depth of brackets; a deeper script is not changed.
pub(super) const BRACKETS_MAX: usize = 10_000;

/// A range of a script, and its replacement.
pub(super) type Edit = (Range<usize>, &'static str);

/// Rewrites a script; `None` if nothing changes.
pub(in super::super) fn rewrite(script: &[u8]) -> Option<Vec<u8>> {
    let edits = edits(script);
    let added: usize = edits.iter().map(|(_, with)| with.len()).sum();
    let (mut new, mut from) = (Vec::with_capacity(script.len() + added), 0);
    for (place, with) in &edits {
        new.extend_from_slice(&script[from..place.start]);
        new.extend_from_slice(with.as_bytes());
        from = place.end;
    }
    new.extend_from_slice(&script[from..]);
    (!edits.is_empty()).then_some(new)
}

/// As [`rewrite`], for a text.
pub(super) fn rewrite_text(script: &str) -> Option<String> {
    // Insertions are ASCII, at ASCII boundaries.
    rewrite(script.as_bytes()).and_then(|new| String::from_utf8(new).ok())
}

/// Rewrites a `javascript:` URL, provided that it has no escapes.
pub(super) fn rewrite_url(url: &str) -> Option<String> {
    const SCHEME: &str = "javascript:";
    let start = url.len() - url.trim_start().len();
    let script = start + SCHEME.len();
    let is_script = url.get(start..script).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
    if !is_script || url.contains('%') {
        return None;
    }
    Some(url[..script].to_owned() + &rewrite_text(&url[script..])?)
}

/// The changes to a script, in order.
pub(super) fn edits(script: &[u8]) -> Vec<Edit> {
    if [WORD, SENDER].iter().all(|word| memmem::find(script, word.as_bytes()).is_none()) {
        return Vec::new();
    }
    let mut reader = ScriptScanner::new(script);
    if reader.read().is_none() {
        return Vec::new();
    }
    if reader.is_exported {
        // The name that other modules import.
        reader.edits.push((script.len()..script.len(), "\nexport{_archive_location as location};"));
    }
    reader.edits.retain(|(_, with)| *with != WORD);
    reader.edits
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ScriptTokenKind {
    /// Statements, including the script itself.
    #[default]
    Block,
    /// An object literal or a destructuring pattern.
    Object,
    Class,
    /// The names of an import or export.
    Import,
    Export,
    /// Parentheses such as those of `if (…)`, after which a statement begins.
    Head,
    Group,
    Index,
    /// `${…}`
    Substitution,
}

/// An open bracket.
#[derive(Debug, Default)]
struct OpenBracket {
    kind: ScriptTokenKind,
    /// Number of question marks that wait for their colons.
    conditions: u32,
    /// Whether the next brace starts the body of a class.
    is_class_next: bool,
    has_rest: bool,
    is_sent: bool,
    /// Number of edits before it.
    edits: usize,
    /// Indices of edits that are its property names.
    keys: Vec<usize>,
}

struct ScriptScanner<'a> {
    text: &'a [u8],
    at: usize,
    open: Vec<OpenBracket>,
    /// The last tokens, newest first.
    last: [&'a [u8]; 3],
    /// Whether the last token ends an operand, so that a slash means division.
    is_operand: bool,
    is_after_line: bool,
    is_label_colon: bool,
    is_import: bool,
    is_deleting: bool,
    is_exported: bool,
    edits: Vec<Edit>,
}

impl<'a> ScriptScanner<'a> {
    fn new(text: &'a [u8]) -> Self {
        let mut reader = Self {
            text,
            at: 0,
            open: Vec::new(),
            last: [b""; 3],
            is_operand: false,
            is_after_line: true,
            is_label_colon: false,
            is_import: false,
            is_deleting: false,
            is_exported: false,
            edits: Vec::new(),
        };
        reader.open(ScriptTokenKind::Block);
        reader
    }

    /// Reads the whole script; `None` if it is not well-formed.
    fn read(&mut self) -> Option<()> {
        if self.text.starts_with(b"#!") {
            self.at = line_end(self.text, 0);
        }
        loop {
            (self.at, self.is_after_line) = after_blank(self.text, self.at);
            let start = self.at;
            let Some(&byte) = self.text.get(start) else { break };
            let next = self.text.get(start + 1).copied().unwrap_or_default();
            match byte {
                b'"' | b'\'' => {
                    self.at = string_end(self.text, start)?;
                    self.is_import = false;
                    self.token(start, true);
                }
                b'`' => self.template(start + 1)?,
                b'/' if !self.is_operand => {
                    self.at = expression_end(self.text, start)?;
                    self.token(start, true);
                }
                b'0'..=b'9' => self.number(start),
                b'.' if next.is_ascii_digit() => self.number(start),
                _ if is_of_word(byte) || byte == b'#' => self.word(start),
                b'(' | b'[' | b'{' => self.begin(byte)?,
                b')' | b']' | b'}' => self.end(byte)?,
                _ => self.operator(start, byte),
            }
        }
        (self.open.len() == 1).then_some(())
    }

    fn open(&mut self, kind: ScriptTokenKind) {
        let edits = self.edits.len();
        self.open.push(OpenBracket { kind, edits, ..OpenBracket::default() });
    }

    /// Records a token that ends here.
    fn token(&mut self, start: usize, is_operand: bool) {
        let token = &self.text[start..self.at];
        self.is_deleting &= is_word(token) || matches!(token, b"." | b"?.");
        self.last = [token, self.last[0], self.last[1]];
        self.is_operand = is_operand;
    }

    fn is_after_dot(&self) -> bool {
        matches!(self.last[0], b"." | b"?.")
    }

    fn number(&mut self, start: usize) {
        let digits = |at: usize| at + self.text[at..].iter().take_while(|byte| is_of_word(**byte)).count();
        self.at = digits(start);
        if self.text.get(self.at) == Some(&b'.') {
            self.at = digits(self.at + 1);
        }
        self.token(start, true);
    }

    fn operator(&mut self, start: usize, byte: u8) {
        let rest = &self.text[start..];
        let is_optional = rest.starts_with(b"?.") && !rest.get(2).is_some_and(u8::is_ascii_digit);
        let known: [&[u8]; 5] = [b"=>", b"...", b"++", b"--", b"??"];
        let length = match known.iter().find(|operator| rest.starts_with(operator)) {
            Some(operator) => operator.len(),
            None => 1 + usize::from(is_optional),
        };
        self.at = start + length;
        self.is_import &= byte != b';';
        match (byte, length, self.open.last_mut()) {
            (b'?', 1, Some(top)) => top.conditions += 1,
            (b':', _, Some(top)) => {
                let is_condition = top.conditions > 0;
                top.conditions -= u32::from(is_condition);
                self.is_label_colon = !is_condition && top.kind != ScriptTokenKind::Object;
            }
            (b'.', 3, Some(top)) => top.has_rest = true,
            (b';', _, Some(top)) => top.conditions = 0,
            _ => {}
        }
        self.token(start, matches!(&self.text[start..self.at], b"++" | b"--"));
    }

    /// Reads a template literal up to its end or the next `${`.
    fn template(&mut self, mut at: usize) -> Option<()> {
        loop {
            match self.text.get(at)? {
                b'\\' => at += 2,
                b'`' => {
                    self.at = at + 1;
                    self.token(at, true);
                    return Some(());
                }
                b'$' if self.text.get(at + 1) == Some(&b'{') => {
                    self.at = at + 2;
                    self.token(at, false);
                    return self.nest(ScriptTokenKind::Substitution);
                }
                _ => at += 1,
            }
        }
    }

    fn nest(&mut self, kind: ScriptTokenKind) -> Option<()> {
        (self.open.len() <= BRACKETS_MAX).then(|| self.open(kind))
    }

    fn begin(&mut self, byte: u8) -> Option<()> {
        let kind = match byte {
            b'[' => ScriptTokenKind::Index,
            b'{' => self.brace(),
            _ => {
                let of = if self.last[0] == b"await" { 1 } else { 0 };
                let is_head = matches!(self.last[of], b"if" | b"while" | b"for" | b"with");
                if is_head && self.last[of + 1] != b"." {
                    ScriptTokenKind::Head
                } else {
                    ScriptTokenKind::Group
                }
            }
        };
        let is_sent =
            self.last[0] == SENDER.as_bytes() && matches!(self.last[1], b"." | b"?.") && byte == b'(';
        self.nest(kind)?;
        self.at += 1;
        self.token(self.at - 1, false);
        if let Some(top) = self.open.last_mut().filter(|_| is_sent) {
            top.is_sent = true;
            self.edits.push((self.at..self.at, SENT));
        }
        Some(())
    }

    /// The kind of a brace that opens here.
    fn brace(&mut self) -> ScriptTokenKind {
        if self.open.last_mut().is_some_and(|top| std::mem::take(&mut top.is_class_next)) {
            return ScriptTokenKind::Class;
        }
        let is_plain_word = !matches!(self.last[1], b"." | b"?.");
        match self.last[0] {
            _ if self.is_import => ScriptTokenKind::Import,
            b"export" if is_plain_word => ScriptTokenKind::Export,
            b":" if self.is_label_colon => ScriptTokenKind::Block,
            b"" | b")" | b"]" | b"}" | b";" | b"{" | b"=>" => ScriptTokenKind::Block,
            word if is_word(word) && is_plain_word && (is_before_operand(word) || is_before_object(word)) => {
                ScriptTokenKind::Object
            }
            word if is_word(word) || self.is_operand => ScriptTokenKind::Block,
            _ => ScriptTokenKind::Object,
        }
    }

    fn end(&mut self, byte: u8) -> Option<()> {
        // The script itself is not a bracket.
        let open = self.open.pop().filter(|_| !self.open.is_empty())?;
        let closes = match open.kind {
            ScriptTokenKind::Head | ScriptTokenKind::Group => b')',
            ScriptTokenKind::Index => b']',
            _ => b'}',
        };
        if closes != byte {
            return None;
        }
        if open.is_sent {
            self.edits.push((self.at..self.at, ")"));
        }
        self.at += 1;
        if open.kind == ScriptTokenKind::Substitution {
            return self.template(self.at);
        }
        let (next, _) = after_blank(self.text, self.at);
        match open.kind {
            ScriptTokenKind::Object if !open.has_rest && self.is_of_window(next) => {
                for key in open.keys {
                    self.edits[key].1 = NAME;
                }
            }
            // The names belong to another script.
            ScriptTokenKind::Export if word_at(self.text, next) == b"from" => {
                for edit in &mut self.edits[open.edits..] {
                    edit.1 = WORD;
                }
            }
            _ => {}
        }
        let is_operand =
            matches!(open.kind, ScriptTokenKind::Group | ScriptTokenKind::Index | ScriptTokenKind::Object);
        self.token(self.at - 1, is_operand);
        Some(())
    }

    /// Whether `= window` or the like follows, so that a window's properties are destructured.
    fn is_of_window(&self, at: usize) -> bool {
        if self.text.get(at) != Some(&b'=') {
            return false;
        }
        let (mut at, _) = after_blank(self.text, at + 1);
        loop {
            let name = word_at(self.text, at);
            at += name.len();
            match self.text.get(at) {
                Some(b'.') if !name.is_empty() => at += 1,
                next => return !name.is_empty() && next != Some(&b'(') && may_be_window(name),
            }
        }
    }

    fn word(&mut self, start: usize) {
        let is_private = self.text[start] == b'#';
        let word = word_at(self.text, start + usize::from(is_private));
        self.at = start + usize::from(is_private) + word.len();
        // `\u{61}`
        while self.text[start..self.at].ends_with(b"\\u") && self.text.get(self.at) == Some(&b'{') {
            self.at += 1 + word_at(self.text, self.at + 1).len();
            self.at += usize::from(self.text.get(self.at) == Some(&b'}'));
            self.at += word_at(self.text, self.at).len();
        }
        let is_name = self.is_after_dot() || is_private;
        let word = &self.text[start..self.at];
        let (next, _) = after_blank(self.text, self.at);
        if word == WORD.as_bytes() {
            self.rename(start, next);
        }
        let is_operand = is_name || !(is_before_operand(word) || matches!(word, b"else" | b"do"));
        self.token(start, is_operand);
        let next = self.text.get(next).copied().unwrap_or_default();
        match word {
            _ if is_name => {}
            b"import" => self.is_import = !matches!(next, b'(' | b'.' | b':' | b',' | b'}'),
            b"delete" => self.is_deleting = true,
            b"class" if next == b'{' || is_of_word(next) => {
                if let Some(top) = self.open.last_mut() {
                    top.is_class_next = true;
                }
            }
            _ => {}
        }
    }

    /// Decides whether to replace the word that begins here. `next` is the start of the next token.
    fn rename(&mut self, start: usize, next: usize) {
        let edits = self.edits.len();
        let (with, is_key) = self.replacement(next);
        let Some(with) = with else { return };
        self.edits.push((start..start + WORD.len(), with));
        if let Some(top) = self.open.last_mut().filter(|_| is_key) {
            top.keys.push(edits);
        }
    }

    /// The replacement for the word, and whether the word is a property name in an object.
    fn replacement(&mut self, next: usize) -> (Option<&'static str>, bool) {
        let plain = |with| (with, false);
        let [last, before, first] = self.last;
        if self.is_after_dot() {
            return plain((!self.is_deleting && may_be_window(before)).then_some(NAME));
        }
        let rest = &self.text[next..];
        let is_as = word_at(self.text, next) == b"as";
        let Some(top) = self.open.last() else { return plain(None) };
        let (kind, conditions) = (top.kind, top.conditions);
        let is_first = matches!(last, b"{" | b",");
        let is_method = is_first || matches!(last, b"get" | b"set" | b"async" | b"static" | b"*");
        match kind {
            ScriptTokenKind::Class if self.begins_member(rest) => return plain(None),
            ScriptTokenKind::Import if last == b"as" => {}
            ScriptTokenKind::Import if is_first && is_as => return plain(None),
            ScriptTokenKind::Import if is_first => return plain(Some("location as _archive_location")),
            ScriptTokenKind::Export if last == b"as" => return plain(None),
            ScriptTokenKind::Export if is_as => {}
            ScriptTokenKind::Export => return plain(Some("_archive_location as location")),
            ScriptTokenKind::Object if is_method && rest.starts_with(b"(") => return plain(None),
            ScriptTokenKind::Object if is_first && rest.starts_with(b":") => return (Some(WORD), true),
            ScriptTokenKind::Object if is_first && ends_property(rest) => {
                return (Some("location: _archive_location"), true);
            }
            // A label.
            ScriptTokenKind::Block
                if conditions == 0 && rest.starts_with(b":") && self.begins_statement() =>
            {
                return plain(None);
            }
            _ => {}
        }
        let is_label = matches!(last, b"break" | b"continue") && !self.is_after_line;
        if is_label || last == b"as" && before == b"*" && !self.is_import {
            return plain(None);
        }
        let is_declared = matches!(last, b"const" | b"let" | b"var" | b"function" | b"class" | b"*");
        let is_exported =
            before == b"export" || matches!(before, b"function" | b"async") && first == b"export";
        self.is_exported |= is_declared && is_exported && self.open.len() == 1;
        plain(Some(NAME))
    }

    /// Whether a class member begins here.
    fn begins_member(&self, rest: &[u8]) -> bool {
        match self.last[0] {
            b"{" | b";" | b"}" | b"get" | b"set" | b"static" | b"async" | b"accessor" => true,
            b"*" => rest.starts_with(b"("),
            _ => self.is_after_line && self.is_operand,
        }
    }

    fn begins_statement(&self) -> bool {
        match self.last[0] {
            b"" | b"{" | b"}" | b";" | b")" => true,
            b":" => self.is_label_colon,
            _ => self.is_after_line && self.is_operand,
        }
    }
}

//! Parameters of URLs that often identify the visitor, or where they came from, and not the page.
//!
//! A name proves nothing: `?sid=12` is a section of one site and a session of another. So the canonical form keeps all
//! parameters, and a crawl drops one only where it saw that a host gives the same page without it. [`PARAMETERS`] says
//! which ones are worth that test.

use url::Url;

use super::canonical::canonical;
use super::parameters::DroppedValues::{Any, Token};
use super::parameters::ParameterName::{Exact, Prefix};

/// Name of a session in the path of cookieless ASP.NET, which has none: `/(S(lit3py55t21z5v55vlm25s55))/page.aspx`.
const SEGMENT: &str = "(S(...))";

/// Path parameters that hold a session, in lower case.
const SESSION_PATH_PARAMETERS: &[&str] = &["jsessionid", "phpsessid"];

/// A parameter of a URL: `name=value` in its query, `;name=value` in a segment of its path, or a whole segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// Its name as spelled.
    pub name: &'a str,
    /// Its value; empty if it has none.
    pub value: &'a str,
    is_in_path: bool,
}

impl<'a> Parameter<'a> {
    fn of(pair: &'a str, is_in_path: bool) -> Self {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Self { name, value, is_in_path }
    }

    fn of_segment(segment: &'a str) -> Option<Self> {
        is_session_segment(segment).then_some(Self { name: SEGMENT, value: segment, is_in_path: true })
    }

    fn is_listed(&self, is_met: impl Fn(DroppedValues) -> bool) -> bool {
        let same_name = |listed: &ParameterName| match listed {
            Exact(listed) => self.name.eq_ignore_ascii_case(listed),
            Prefix(listed) => {
                self.name.get(..listed.len()).is_some_and(|start| start.eq_ignore_ascii_case(listed))
            }
        };
        may_be_listed(self.name.as_bytes())
            && PARAMETERS.iter().any(|(name, value)| same_name(name) && is_met(*value))
    }
}

/// Whether it is worth finding out if the page is the same without a parameter: by its name, or because its value looks
/// generated.
#[must_use]
pub fn is_suspect(parameter: &Parameter<'_>) -> bool {
    parameter.name == SEGMENT || parameter.is_listed(|_| true) || is_token(parameter.value)
}

/// Whether archives of earlier versions have URLs without a parameter.
#[must_use]
pub fn was_dropped(parameter: &Parameter<'_>) -> bool {
    if !parameter.is_in_path {
        return parameter.is_listed(|value| value == Any || is_token(parameter.value));
    }
    let is_session = |listed: &&str| parameter.name.eq_ignore_ascii_case(listed);
    parameter.name == SEGMENT || SESSION_PATH_PARAMETERS.iter().any(is_session)
}

/// Whether a URL may have parameters, by one look at its bytes.
#[must_use]
pub fn may_have_parameters(url: &str) -> bool {
    memchr::memchr3(b'?', b';', b'(', url.as_bytes()).is_some()
}

/// The parameters of a canonical URL.
pub fn parameters(url: &str) -> impl Iterator<Item = Parameter<'_>> {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let in_path = path.split('/').skip(3).flat_map(|segment| {
        let pairs = segment.split(';').skip(1).map(|pair| Parameter::of(pair, true));
        Parameter::of_segment(segment).into_iter().chain(pairs)
    });
    let in_query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| Parameter::of(pair, false));
    in_path.chain(in_query)
}

/// Returns a canonical URL without the parameters that `is_dropped`, again canonical; `None` if it has none of them.
pub fn without_parameters(url: &str, is_dropped: impl Fn(&Parameter<'_>) -> bool) -> Option<String> {
    let mut without = without_once(url, &is_dropped)?;
    // What is left of a segment may be a parameter itself; each turn makes the URL shorter.
    while let Some(shorter) = without_once(&without, &is_dropped) {
        without = shorter;
    }
    Some(without)
}

fn without_once(url: &str, is_dropped: impl Fn(&Parameter<'_>) -> bool) -> Option<String> {
    if !may_have_parameters(url) || !parameters(url).any(|parameter| is_dropped(&parameter)) {
        return None;
    }
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let mut kept = String::with_capacity(url.len());
    for (place, segment) in path.split('/').enumerate() {
        let is_host = place < 3;
        if !is_host && Parameter::of_segment(segment).is_some_and(|parameter| is_dropped(&parameter)) {
            continue;
        }
        if place > 0 {
            kept.push('/');
        }
        for (number, piece) in segment.split(';').enumerate() {
            if number == 0 || is_host || !is_dropped(&Parameter::of(piece, true)) {
                kept.push_str(if number == 0 { "" } else { ";" });
                kept.push_str(piece);
            }
        }
    }
    let is_kept = |pair: &&str| pair.is_empty() || !is_dropped(&Parameter::of(pair, false));
    let query: Vec<&str> = query.split('&').filter(is_kept).collect();
    if !query.is_empty() {
        kept.push('?');
        kept.push_str(&query.join("&"));
    }
    Url::parse(&kept).ok().map(|url| canonical(&url))
}

/// How a parameter's name is compared, ignoring ASCII case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParameterName {
    /// The whole name.
    Exact(&'static str),
    /// The beginning of the name.
    Prefix(&'static str),
}

/// Values with which earlier versions dropped a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DroppedValues {
    /// Any value, including none.
    Any,
    /// At least [`TOKEN_BYTES_MIN`] letters, digits, `-`, `_`, `.`, `,` or `%`, with a digit among them: `sid=3` is a
    /// section, `sid=d41d8cd98f00b204e980` is a session.
    Token,
}

/// Minimum length of a session token in bytes.
const TOKEN_BYTES_MIN: usize = 16;

/// Parameters that are worth a test. First come those that identify a visit, so
/// that each visit sees different URLs for the same pages, then those that show the site's statistics where the visitor
/// came from.
const PARAMETERS: &[(ParameterName, DroppedValues)] = &[
    (Exact("phpsessid"), Any),         // PHP
    (Exact("jsessionid"), Any),        // Java servlets, when not a path parameter
    (Prefix("aspsessionid"), Any),     // classic ASP: ASPSESSIONIDQQSCATDS
    (Exact("asp.net_sessionid"), Any), // ASP.NET
    (Exact("cfid"), Any),              // ColdFusion, always beside cftoken
    (Exact("cftoken"), Any),
    (Exact("oscsid"), Any),       // osCommerce
    (Exact("zenid"), Any),        // Zen Cart
    (Exact("xtcsid"), Any),       // xt:Commerce
    (Exact("sessionid"), Token),  // home-made ones: only when the value looks like one
    (Exact("session_id"), Token), //
    (Exact("sessid"), Token),     //
    (Exact("session"), Token),    //
    (Exact("sid"), Token),        //
    (Prefix("utm_"), Any),        // Urchin, Google Analytics
    (Exact("gclid"), Any),        // Google Ads
    (Exact("gclsrc"), Any),
    (Exact("dclid"), Any),
    (Exact("gbraid"), Any),
    (Exact("wbraid"), Any),
    (Exact("srsltid"), Any), // Google Merchant Center
    (Exact("_ga"), Any),     // Google Analytics cross-domain linker
    (Exact("_gl"), Any),
    (Exact("fbclid"), Any),    // Facebook
    (Exact("igshid"), Any),    // Instagram
    (Exact("msclkid"), Any),   // Microsoft Advertising
    (Exact("twclid"), Any),    // X
    (Exact("ttclid"), Any),    // TikTok
    (Exact("li_fat_id"), Any), // LinkedIn
    (Exact("yclid"), Any),     // Yandex
    (Exact("ysclid"), Any),
    (Exact("_openstat"), Any),
    (Exact("mc_cid"), Any), // Mailchimp
    (Exact("mc_eid"), Any),
    (Exact("_hsenc"), Any), // HubSpot
    (Exact("_hsmi"), Any),
    (Exact("hsctatracking"), Any),
    (Exact("mkt_tok"), Any),    // Marketo
    (Exact("vero_id"), Any),    // Vero
    (Exact("oly_enc_id"), Any), // Omeda
    (Exact("oly_anon_id"), Any),
    (Prefix("pk_"), Any),    // Matomo, older: pk_campaign, pk_kwd
    (Prefix("mtm_"), Any),   // Matomo
    (Prefix("piwik_"), Any), // Matomo, oldest
];

/// Checks the first byte only, which is cheap: hardly any parameter is listed.
fn may_be_listed(name: &[u8]) -> bool {
    /// The first letters of all listed names, in lower and upper case.
    const FIRST_LETTERS: [bool; 256] = {
        let mut table = [false; 256];
        let mut rule = 0;
        while rule < PARAMETERS.len() {
            let (Exact(name) | Prefix(name)) = PARAMETERS[rule].0;
            table[name.as_bytes()[0] as usize] = true;
            table[name.as_bytes()[0].to_ascii_uppercase() as usize] = true;
            rule += 1;
        }
        table
    };
    name.first().is_some_and(|&first| FIRST_LETTERS[usize::from(first)])
}

fn is_token(value: &str) -> bool {
    let shaped = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b',' | b'%');
    value.len() >= TOKEN_BYTES_MIN
        && value.bytes().all(shaped)
        && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether a segment is a session: a letter and 24 letters or digits in two pairs of brackets, or several of these in
/// the outer pair.
fn is_session_segment(segment: &str) -> bool {
    const SESSION_CHARACTERS: usize = 24;
    let Some(mut inside) = segment.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    if inside.is_empty() {
        return false;
    }
    while !inside.is_empty() {
        let bytes = inside.as_bytes();
        let whole = bytes.len() >= SESSION_CHARACTERS + 3
            && bytes[0].is_ascii_alphabetic()
            && bytes[1] == b'('
            && bytes[2..2 + SESSION_CHARACTERS].iter().all(u8::is_ascii_alphanumeric)
            && bytes[2 + SESSION_CHARACTERS] == b')';
        if !whole {
            return false;
        }
        inside = &inside[SESSION_CHARACTERS + 3..];
    }
    true
}

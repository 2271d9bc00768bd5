//! Query parameters that identify the visitor or where they came from, not the page.
//!
//! Add a line to [`PARAMETERS`] to drop another one from canonical URLs. A line that is wrong for one site loses pages
//! there, so only names without any other use belong here; a doubtful name gets a value pattern.

use super::parameters::Name::{Exact, Prefix};
use super::parameters::Value::{Any, Token};

/// Why a parameter is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It identifies a visit: each visit sees different URLs for the same pages.
    Session,
    /// It shows the site's statistics where the visitor came from.
    Tracking,
}

/// How a parameter's name is compared, ignoring ASCII case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The whole name.
    Exact(&'static str),
    /// The beginning of the name.
    Prefix(&'static str),
}

/// Values with which a parameter is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Any value, including none.
    Any,
    /// At least [`TOKEN_BYTES_MIN`] letters, digits, `-`, `_`, `.`, `,` or `%`, with a digit among them: `sid=3` is a
    /// section, `sid=d41d8cd98f00b204e980` is a session.
    Token,
}

/// Minimum length of a session token in bytes.
pub const TOKEN_BYTES_MIN: usize = 16;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterRule {
    /// Name of the parameter.
    pub name: Name,
    /// Values with which it is dropped.
    pub value: Value,
    /// Why it is dropped.
    pub why: Why,
}

const fn session(name: Name, value: Value) -> ParameterRule {
    ParameterRule { name, value, why: Why::Session }
}

const fn tracking(name: Name) -> ParameterRule {
    ParameterRule { name, value: Any, why: Why::Tracking }
}

/// The parameters dropped from every canonical URL.
pub const PARAMETERS: &[ParameterRule] = &[
    session(Exact("phpsessid"), Any),         // PHP
    session(Exact("jsessionid"), Any),        // Java servlets, when not a path parameter
    session(Prefix("aspsessionid"), Any),     // classic ASP: ASPSESSIONIDQQSCATDS
    session(Exact("asp.net_sessionid"), Any), // ASP.NET
    session(Exact("cfid"), Any),              // ColdFusion, always beside cftoken
    session(Exact("cftoken"), Any),
    session(Exact("oscsid"), Any),       // osCommerce
    session(Exact("zenid"), Any),        // Zen Cart
    session(Exact("xtcsid"), Any),       // xt:Commerce
    session(Exact("sessionid"), Token),  // home-made ones: only when the value looks like one
    session(Exact("session_id"), Token), //
    session(Exact("sessid"), Token),     //
    session(Exact("session"), Token),    //
    session(Exact("sid"), Token),        //
    tracking(Prefix("utm_")),            // Urchin, Google Analytics
    tracking(Exact("gclid")),            // Google Ads
    tracking(Exact("gclsrc")),
    tracking(Exact("dclid")),
    tracking(Exact("gbraid")),
    tracking(Exact("wbraid")),
    tracking(Exact("srsltid")), // Google Merchant Center
    tracking(Exact("_ga")),     // Google Analytics cross-domain linker
    tracking(Exact("_gl")),
    tracking(Exact("fbclid")),    // Facebook
    tracking(Exact("igshid")),    // Instagram
    tracking(Exact("msclkid")),   // Microsoft Advertising
    tracking(Exact("twclid")),    // X
    tracking(Exact("ttclid")),    // TikTok
    tracking(Exact("li_fat_id")), // LinkedIn
    tracking(Exact("yclid")),     // Yandex
    tracking(Exact("ysclid")),
    tracking(Exact("_openstat")),
    tracking(Exact("mc_cid")), // Mailchimp
    tracking(Exact("mc_eid")),
    tracking(Exact("_hsenc")), // HubSpot
    tracking(Exact("_hsmi")),
    tracking(Exact("hsctatracking")),
    tracking(Exact("mkt_tok")),    // Marketo
    tracking(Exact("vero_id")),    // Vero
    tracking(Exact("oly_enc_id")), // Omeda
    tracking(Exact("oly_anon_id")),
    tracking(Prefix("pk_")),    // Matomo, older: pk_campaign, pk_kwd
    tracking(Prefix("mtm_")),   // Matomo
    tracking(Prefix("piwik_")), // Matomo, oldest
];

/// Whether `name=value` is a parameter to drop.
pub(super) fn is_dropped(pair: &str) -> bool {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    if !may_be_listed(name.as_bytes()) {
        return false;
    }
    PARAMETERS.iter().any(|rule| {
        let same_name = match rule.name {
            Exact(listed) => name.eq_ignore_ascii_case(listed),
            Prefix(listed) => {
                name.get(..listed.len()).is_some_and(|start| start.eq_ignore_ascii_case(listed))
            }
        };
        same_name && (rule.value == Any || is_token(value))
    })
}

/// Checks the first byte only, which is cheap: hardly any parameter is listed.
fn may_be_listed(name: &[u8]) -> bool {
    /// The first letters of all listed names, in lower and upper case.
    const FIRST_LETTERS: [bool; 256] = {
        let mut table = [false; 256];
        let mut rule = 0;
        while rule < PARAMETERS.len() {
            let (Exact(name) | Prefix(name)) = PARAMETERS[rule].name;
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

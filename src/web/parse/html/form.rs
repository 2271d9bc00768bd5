//! Reads the forms of a page by which people log in: those with a field for a password.

use std::borrow::Cow;

use url::Url;

use super::{HtmlElement, HtmlTag, Markup, decode_entities, value};

/// Maximum number of such forms of a page, and of fields of each; others are not read.
const FORMS_MAX: usize = 16;
const FORM_FIELDS_MAX: usize = 256;

/// What a person is asked for in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormFieldKind {
    /// A line of text, such as a name or an address.
    Line,
    /// A password.
    Password,
    /// Nothing: it is sent as it is.
    Fixed,
}

/// A field that a form sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormField {
    /// Its name.
    pub name: String,
    /// Its value as the page gives it.
    pub value: String,
    /// What is asked for.
    pub kind: FormFieldKind,
}

/// A form with a field for a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordForm {
    /// Where it is sent.
    pub action: Url,
    /// Whether it is sent by POST.
    pub is_post: bool,
    /// Its fields, in order.
    pub fields: Vec<FormField>,
}

impl PasswordForm {
    /// Number of fields for passwords: whoever signs up has to repeat one.
    #[must_use]
    pub fn passwords(&self) -> usize {
        self.fields.iter().filter(|field| field.kind == FormFieldKind::Password).count()
    }
}

/// Returns the forms of a page with a field for a password. What only scripts do is not known; what stands in `noscript`
/// counts.
#[must_use]
pub fn password_forms(html: &str, page: &Url) -> Vec<PasswordForm> {
    let (mut forms, mut open, mut base) = (Vec::new(), None::<PasswordForm>, page.clone());
    let mut markup = Markup::of(html);
    while let Some(tag) = markup.next_tag() {
        let (element, is_end) = (HtmlElement::of(tag.name), tag.is_end);
        match element {
            HtmlElement::Base if !is_end => {
                let href =
                    value(tag.attributes, "href").and_then(|href| page.join(&decode_entities(href)).ok());
                base = href.unwrap_or(base);
            }
            // A form in a form does not begin.
            HtmlElement::Form if !is_end && open.is_none() => open = begin(&tag, &base),
            HtmlElement::Form if is_end => forms.extend(open.take()),
            HtmlElement::Input | HtmlElement::Button if !is_end => {
                let form = open.as_mut().filter(|form| form.fields.len() < FORM_FIELDS_MAX);
                if let Some((form, field)) =
                    form.and_then(|form| field(&tag, element, form).map(|field| (form, field)))
                {
                    form.fields.push(field);
                }
            }
            _ => {}
        }
        if !is_end && element != HtmlElement::NoScript {
            markup.raw_text_of(element);
        }
        if forms.len() == FORMS_MAX {
            break;
        }
    }
    forms.extend(open);
    forms.retain(|form| form.passwords() > 0);
    forms
}

fn begin(tag: &HtmlTag<'_, '_>, base: &Url) -> Option<PasswordForm> {
    let action = value(tag.attributes, "action").map(|action| decode_entities(action.trim()));
    let action = base.join(action.as_deref().unwrap_or_default()).ok()?;
    let is_post =
        value(tag.attributes, "method").is_some_and(|method| method.trim().eq_ignore_ascii_case("post"));
    Some(PasswordForm { action, is_post, fields: Vec::new() })
}

/// Returns what a field sends, if it sends something. Of the buttons, the first is pressed.
fn field(tag: &HtmlTag<'_, '_>, element: HtmlElement, form: &PasswordForm) -> Option<FormField> {
    let get = |name| value(tag.attributes, name).map(decode_entities);
    let own = get("type").map(|kind| kind.trim().to_ascii_lowercase());
    let own = own.as_deref().unwrap_or(if element == HtmlElement::Button { "submit" } else { "text" });
    let name = get("name").filter(|name| !name.is_empty())?.into_owned();
    let is_off = get("disabled").is_some();
    let text = get("value").map(Cow::into_owned);
    let kind = match own {
        "password" => FormFieldKind::Password,
        "checkbox" | "radio" if get("checked").is_none() => return None,
        "submit" if form.fields.iter().any(|field| field.name == name) => return None,
        "hidden" | "checkbox" | "radio" | "submit" => FormFieldKind::Fixed,
        "button" | "reset" | "image" | "file" => return None,
        _ => FormFieldKind::Line,
    };
    let usual = if matches!(own, "checkbox" | "radio") { "on" } else { "" };
    (!is_off).then(|| FormField { name, value: text.unwrap_or_else(|| usual.to_owned()), kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(html: &str) -> Vec<PasswordForm> {
        password_forms(html, &"https://a.test/login?next=1".parse().unwrap())
    }

    #[test]
    fn forms_are_read_as_browsers_send_them() {
        let found = forms(
            "<form action=/search><input name=q></form><script>'<form><input type=password name=p>'</script>\
             <FORM method=POST action='/session?a=1&amp;b=2'><input type=hidden name=csrf value='x&quot;y'>\
             <label>Name <input name=user></label><input type=PassWord name=pass><input type=checkbox name=stay checked>\
             <input type=checkbox name=no><input name=off disabled><button name=go value=in>In</button>\
             <input type=submit name=go value=twice></form>",
        );
        let [form] = &found[..] else { panic!("{found:?}") };
        assert_eq!((form.action.as_str(), form.is_post), ("https://a.test/session?a=1&b=2", true));
        let fields: Vec<_> =
            form.fields.iter().map(|field| (&*field.name, &*field.value, field.kind)).collect();
        let fixed = FormFieldKind::Fixed;
        let expected = [
            ("csrf", "x\"y", fixed),
            ("user", "", FormFieldKind::Line),
            ("pass", "", FormFieldKind::Password),
            ("stay", "on", fixed),
            ("go", "in", fixed),
        ];
        assert_eq!(fields, expected);
        let found = forms("<base href='/x/'><noscript><form action=in><input type=password name=p>");
        assert_eq!((found[0].action.as_str(), found[0].is_post), ("https://a.test/x/in", false));
        assert!(forms("<input type=password name=p>").is_empty());
    }

    #[test]
    fn forms_and_fields_are_bounded() {
        let many = "<form><input type=password name=p></form>".repeat(FORMS_MAX + 1);
        assert_eq!(forms(&many).len(), FORMS_MAX);
        let long = format!("<form><input type=password name=p>{}", "<input name=a>".repeat(FORM_FIELDS_MAX));
        assert_eq!(forms(&long)[0].fields.len(), FORM_FIELDS_MAX);
    }
}

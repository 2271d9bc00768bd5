//! Log-ins by a form: what is filled in, and what shows that it worked.

use serde::{Deserialize, Serialize};
use url::Url;
use url::form_urlencoded::Serializer;

use crate::parse::html::{FormFieldKind, PasswordForm};

/// Maximum number of further fields that a log-in fills in.
const FILLED_MAX: usize = 64;

/// A form that is filled in at the start of a run, and again when its session has ended.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginForm {
    /// URL of the page that has it.
    pub page: String,
    /// The name; it goes to the field before the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The password.
    pub password: String,
    /// Name of the password's field; `None` for the form's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Further fields and their values, in the place of those that the page gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// What the answer to the form says if it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_text: Option<String>,
    /// The status of that answer, after redirects; `None` for one below 400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_status: Option<u16>,
    /// Name of a cookie that is there as long as the session is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_cookie: Option<String>,
    /// What a page says to those who are not logged in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_text: Option<String>,
}

impl LoginForm {
    /// Checks that it can be sent; without TLS only if that is allowed.
    pub(super) fn check(&self, is_plain: bool) -> Result<(), &'static str> {
        let page = Url::parse(&self.page).map_err(|_| "the page with the form has to be a URL")?;
        if !may_send(&page, is_plain) {
            return Err("the page with the form has to begin with https://, or the host with http://");
        }
        if self.password.is_empty() {
            return Err("the password is empty");
        }
        if self.fields.len() > FILLED_MAX || self.fields.iter().any(|(name, _)| name.is_empty()) {
            return Err("a form is given at most 64 fields, each with a name");
        }
        let texts = [&self.check_text, &self.check_cookie, &self.out_text];
        if texts.into_iter().flatten().any(String::is_empty) {
            return Err("an empty text checks nothing");
        }
        Ok(())
    }

    /// Chooses the form of a page: one that has the fields that are named, and as few passwords as possible.
    pub(super) fn choose(&self, forms: Vec<PasswordForm>) -> Option<PasswordForm> {
        let named = self.secret.iter().chain(self.fields.iter().map(|(name, _)| name));
        let missing = |form: &PasswordForm| {
            named.clone().filter(|name| !form.fields.iter().any(|field| field.name == **name)).count()
        };
        forms.into_iter().min_by_key(|form| (missing(form), form.passwords()))
    }

    /// Returns the encoded fields of a form as they are sent.
    pub(super) fn fill(&self, form: &PasswordForm) -> Result<String, &'static str> {
        let fields = &form.fields;
        let is_secret = |name: &str| self.secret.as_deref().is_some_and(|secret| secret == name);
        let password = fields.iter().position(|field| match self.secret {
            Some(_) => is_secret(&field.name),
            None => field.kind == FormFieldKind::Password,
        });
        let password = password.ok_or("the form has no field of the name that --secret gives")?;
        let name = fields[..password].iter().rposition(|field| field.kind == FormFieldKind::Line);
        if self.name.is_some() && name.is_none() {
            return Err("the form has no field before the password that takes a name");
        }
        let mut out = Serializer::new(String::new());
        for (place, field) in fields.iter().enumerate() {
            let given = self.fields.iter().find(|(name, _)| *name == field.name).map(|(_, value)| value);
            let named = self.name.as_ref().filter(|_| Some(place) == name);
            let value = if place == password { Some(&self.password) } else { given.or(named) };
            out.append_pair(&field.name, value.unwrap_or(&field.value));
        }
        for (name, value) in &self.fields {
            if !fields.iter().any(|field| field.name == *name) {
                out.append_pair(name, value);
            }
        }
        Ok(out.finish())
    }
}

/// Whether secrets may be sent to a URL.
pub(super) fn may_send(url: &Url, is_plain: bool) -> bool {
    url.scheme() == "https" || is_plain && url.scheme() == "http"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::html::password_forms;

    fn form() -> LoginForm {
        LoginForm {
            page: "https://a.test/login".to_owned(),
            name: Some("anna".to_owned()),
            password: "s&cret".to_owned(),
            ..LoginForm::default()
        }
    }

    fn read(html: &str) -> Vec<PasswordForm> {
        password_forms(html, &"https://a.test/login".parse().unwrap())
    }

    #[test]
    fn a_form_is_filled_in_as_a_person_would() {
        let html = "<form><input name=q><input name=mail><input type=password name=p1><input type=password name=p2></form>\
                    <form><input type=hidden name=csrf value=x><input name=other><input type=email name=user>\
                    <input type=password name=pass></form>";
        let chosen = form().choose(read(html)).unwrap();
        assert_eq!(form().fill(&chosen).unwrap(), "csrf=x&other=&user=anna&pass=s%26cret");
        let named = LoginForm {
            secret: Some("p2".to_owned()),
            name: None,
            fields: vec![("q".to_owned(), "é".to_owned()), ("more".to_owned(), "1".to_owned())],
            ..form()
        };
        let chosen = named.choose(read(html)).unwrap();
        assert_eq!(named.fill(&chosen).unwrap(), "q=%C3%A9&mail=&p1=&p2=s%26cret&more=1");
        let bare = read("<form><input type=password name=p></form>").remove(0);
        assert!(form().fill(&bare).unwrap_err().contains("takes a name"));
        assert!(
            LoginForm { secret: Some("x".to_owned()), ..form() }
                .fill(&bare)
                .unwrap_err()
                .contains("--secret")
        );
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        assert_eq!(form().check(false), Ok(()));
        for (page, is_plain, is_fine) in [
            ("http://a.test/login", false, false),
            ("http://a.test/login", true, true),
            ("ftp://a.test/", true, false),
            ("login", true, false),
        ] {
            let given = LoginForm { page: page.to_owned(), ..form() };
            assert_eq!(given.check(is_plain).is_ok(), is_fine, "{page} {is_plain}");
        }
        let field = ("a".to_owned(), String::new());
        for (count, is_fine) in [(FILLED_MAX, true), (FILLED_MAX + 1, false)] {
            let given = LoginForm { fields: vec![field.clone(); count], ..form() };
            assert_eq!(given.check(false).is_ok(), is_fine);
        }
        assert!(LoginForm { password: String::new(), ..form() }.check(false).is_err());
        assert!(LoginForm { out_text: Some(String::new()), ..form() }.check(false).is_err());
    }
}

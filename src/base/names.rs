//! Names of the variants of an enum, said once.

/// Gives each variant of an enum without fields its name; `EACH` has all variants in this order.
///
/// ```
/// #[derive(Clone, Copy)]
/// pub enum Colour {
///     Red,
///     Blue,
/// }
/// archive_base::names! { Colour: Red "red", Blue "blue" }
///
/// assert_eq!(Colour::EACH.map(Colour::name), ["red", "blue"]);
/// ```
#[macro_export]
macro_rules! names {
    ($kind:ident: $($variant:ident $name:literal),+) => {
        impl $kind {
            /// Each of them.
            pub const EACH: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name in data and commands.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}

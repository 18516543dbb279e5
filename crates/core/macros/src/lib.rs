//! Attributes of the types that are stored in records.

#![forbid(unsafe_code)]

use proc_macro::{Delimiter, Group, Spacing, TokenStream, TokenTree};

/// Derives what every stored type has, and the traits of the argument: `#[stored(Copy, Eq)]`.
///
/// Stored types are shown, cloned, compared, written and read. With the feature `schema` of their
/// crate they have a JSON schema, too.
#[proc_macro_attribute]
pub fn stored(traits: TokenStream, item: TokenStream) -> TokenStream {
    let derives = format!(
        "#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize, {traits})]
         #[cfg_attr(feature = \"schema\", derive(::schemars::JsonSchema))]"
    );
    let mut output = tokens(&derives);
    output.extend(item);

    output
}

/// Leaves the fields out of the text that are `None`.
///
/// A field with a `serde` attribute of its own is written as that one says.
#[proc_macro_attribute]
pub fn sparse(_: TokenStream, item: TokenStream) -> TokenStream {
    with_optional_fields(item)
}

fn with_optional_fields(item: TokenStream) -> TokenStream {
    let mut output = TokenStream::new();
    // Everything since the last comma: a field from its attributes on.
    let mut field = Vec::new();
    for token in item {
        match token {
            // The fields of a struct, and those of a variant within the body of an enum.
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                let body = Group::new(Delimiter::Brace, with_optional_fields(body.stream()));
                field.push(body.into());
            }
            TokenTree::Punct(comma) if comma.as_char() == ',' => {
                field.push(comma.into());
                output.extend(field.drain(..));
            }
            token => {
                if is_option(&field, &token) && !has_serde(&field) {
                    output.extend(tokens(
                        "#[serde(default, skip_serializing_if = \"Option::is_none\")]",
                    ));
                }

                field.push(token);
            }
        }
    }

    output.extend(field);
    output
}

/// True if a token begins the type of an optional field: `name: Option`.
fn is_option(field: &[TokenTree], token: &TokenTree) -> bool {
    let [.., TokenTree::Ident(_), TokenTree::Punct(colon)] = field else {
        return false;
    };
    colon.as_char() == ':'
        && colon.spacing() == Spacing::Alone
        && matches!(token, TokenTree::Ident(name) if name.to_string() == "Option")
}

fn has_serde(field: &[TokenTree]) -> bool {
    field.iter().any(|token| {
        let TokenTree::Group(attribute) = token else {
            return false;
        };
        let name = attribute.stream().into_iter().next();
        attribute.delimiter() == Delimiter::Bracket
            && name.is_some_and(|name| name.to_string() == "serde")
    })
}

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("the text is Rust")
}

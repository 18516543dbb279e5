//! Attributes of the types that are stored in records.

#![forbid(unsafe_code)]

use proc_macro::{Delimiter, Group, Spacing, TokenStream, TokenTree};

/// Derives what every stored type has, and the traits of the argument: `#[stored(Copy, Eq)]`.
///
/// Stored types are shown, cloned, compared, written and read. With the feature `schema` of their
/// crate they have a JSON schema, too. Variants are written in snake case, unless the enumeration
/// has a `serde` attribute of its own.
#[proc_macro_attribute]
pub fn stored(traits: TokenStream, item: TokenStream) -> TokenStream {
    let derives = format!(
        "#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize, {traits})]
         #[cfg_attr(feature = \"schema\", derive(::schemars::JsonSchema))]"
    );
    let mut output = tokens(&derives);
    let item: Vec<TokenTree> = item.into_iter().collect();
    let is_enum = item.iter().any(|token| token.to_string() == "enum");
    if is_enum && !has_serde(&item) {
        output.extend(tokens("#[serde(rename_all = \"snake_case\")]"));
    }

    output.extend(item);
    output
}

/// Leaves the fields out of the text that are `None`, and empty ones of the types of the argument:
/// `#[sparse(Vec)]`.
///
/// A field with a `serde` attribute of its own is written as that one says.
#[proc_macro_attribute]
pub fn sparse(types: TokenStream, item: TokenStream) -> TokenStream {
    let types: Vec<String> = types.into_iter().map(|token| token.to_string()).collect();
    with_optional_fields(item, &types)
}

fn with_optional_fields(item: TokenStream, types: &[String]) -> TokenStream {
    let mut output = TokenStream::new();
    // Everything since the last comma: a field from its attributes on.
    let mut field = Vec::new();
    for token in item {
        match token {
            // The fields of a struct, and those of a variant within the body of an enum.
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                let fields = with_optional_fields(body.stream(), types);
                field.push(Group::new(Delimiter::Brace, fields).into());
            }
            TokenTree::Punct(comma) if comma.as_char() == ',' => {
                field.push(comma.into());
                output.extend(field.drain(..));
            }
            token => {
                if begins_type(&field) && !has_serde(&field) {
                    output.extend(omission(&token.to_string(), types));
                }

                field.push(token);
            }
        }
    }

    output.extend(field);
    output
}

/// True if the next token begins the type of a field: it follows `name:`.
fn begins_type(field: &[TokenTree]) -> bool {
    let [.., TokenTree::Ident(_), TokenTree::Punct(colon)] = field else {
        return false;
    };
    colon.as_char() == ':' && colon.spacing() == Spacing::Alone
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

/// The attribute of a field whose type begins with a name.
fn omission(name: &str, types: &[String]) -> Option<TokenStream> {
    let is_absent = match name {
        "Option" => "is_none",
        _ if types.iter().any(|listed| listed == name) => "is_empty",
        _ => return None,
    };
    let attribute = format!("#[serde(default, skip_serializing_if = \"{name}::{is_absent}\")]");
    Some(tokens(&attribute))
}

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("the text is Rust")
}

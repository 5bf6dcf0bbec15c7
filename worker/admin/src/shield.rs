//! The modes of the shield in a request, for a tenant, a server or a tool.

use gateward_core::shield::Modes;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::fmt;

/// For the field `shield` of a request. Outer `None`, from `default`: left out. Inner `None`: null.
pub(super) fn modes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<Modes>>, D::Error> {
    deserializer.deserialize_any(ModesOrNull).map(Some)
}

/// The derived `Deserialize` would also read an array, as the modes in the order of the struct.
struct ModesOrNull;

impl<'de> Visitor<'de> for ModesOrNull {
    type Value = Option<Modes>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object from categories to modes, or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let modes = Modes::deserialize(MapAccessDeserializer::new(map))?;
        match modes.unredactable() {
            None => Ok(Some(modes)),
            Some(category) => Err(A::Error::custom(format!(
                "`{}` cannot have the mode `redact`: only `secret` and `personal_data` can",
                category.as_str()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateward_core::field::parse;
    use gateward_core::shield::Mode;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        #[serde(default, deserialize_with = "modes")]
        shield: Option<Option<Modes>>,
    }

    #[test]
    fn modes_are_left_out_or_null_or_an_object() {
        let secret = Modes { secret: Some(Mode::Redact), ..Modes::default() };
        for (body, expected) in [
            ("{}", None),
            (r#"{"shield":null}"#, Some(None)),
            (r#"{"shield":{}}"#, Some(Some(Modes::default()))),
            (r#"{"shield":{"secret":"redact","path_traversal":null}}"#, Some(Some(secret))),
        ] {
            assert_eq!(parse::<Body>(body.as_bytes()).unwrap().shield, expected, "{body}");
        }
    }

    #[test]
    fn what_is_no_mode_is_refused_with_the_category() {
        let redact = "cannot have the mode `redact`: only `secret` and `personal_data` can";
        for (shield, field, detail) in [
            (r#"{"secret":"on"}"#, "shield.secret", "unknown variant, expected one of `off`, "),
            (r#"{"sql":"off"}"#, "shield.sql", "unknown field `sql`, expected one of `command_"),
            (r#"["off"]"#, "shield", "invalid type: sequence, expected an object from categories"),
            (r#""off""#, "shield", "invalid type: string, expected an object from categories"),
            ("true", "shield", "invalid type: boolean, expected an object from categories"),
            (r#"{"sql_injection":"redact"}"#, "shield", &format!("`sql_injection` {redact}")),
        ] {
            let body = format!(r#"{{"shield":{shield}}}"#);
            let problem = parse::<Body>(body.as_bytes()).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some(field), "{shield}: {}", problem.detail);
            let start = format!("`{field}`: {detail}");
            assert!(problem.detail.starts_with(&start), "{shield}: {}", problem.detail);
        }
    }
}

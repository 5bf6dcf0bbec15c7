//! Checks that a request to the policies conforms to the schema that the build validated them against. Then no policy has
//! a type error, which in the Wasm would trap: Cedar's message about it needs a parser
//! (docs/decisions/0034-policy-parser.md).

use std::sync::{Arc, LazyLock};

use cedar_policy_core::ast::{Context, EntityUID, Request, ValueKind};
use cedar_policy_core::entities::conformance::EntitySchemaConformanceChecker;
use cedar_policy_core::entities::{Dereference, Entities};
use cedar_policy_core::extensions::Extensions;
use cedar_policy_core::validator::{CoreSchema, ValidatorSchema};
use gateward_core::policy::bundle::{ArgumentType, RecordType};
use gateward_core::policy::{CallEntities, Value};

static SCHEMA: LazyLock<ValidatorSchema> = LazyLock::new(|| {
    let extensions = Extensions::all_available();
    ValidatorSchema::from_cedarschema_str(gateward_policies::schema(), extensions).unwrap().0
});

pub fn conforms(call: &CallEntities<'_>, entities: &Entities, context: &Context) {
    let extensions = Extensions::all_available();
    let uid = |kind: &str, id: &str| EntityUID::with_eid_and_type(kind, id).unwrap();
    let (agent, server) = (uid("Agent", call.agent), uid("Server", call.server));
    let schema = CoreSchema::new(&SCHEMA);
    for entity in [&agent, &server] {
        let Dereference::Data(entity) = entities.entity(entity) else { panic!("no {entity}") };
        let checker = EntitySchemaConformanceChecker::new(&schema, extensions);
        checker.validate_entity(entity).unwrap_or_else(|error| panic!("{error}"));
    }

    let Context::Value(fields) = context else { panic!("part of the context is unknown") };
    let mut fields = (**fields).clone();
    let tools = gateward_policies::bundle().tools;
    let described = tools.iter().find(|tool| tool.id == call.tool).map(|tool| &tool.input);
    if let Some(input) = fields.get_mut("input") {
        // A canary quarantines whatever its arguments are, so it may lack some.
        if call.canary && *input == Value::empty_record(None) {
            return;
        }
        *input = named(input, described.unwrap_or(&RecordType { fields: &[], open: true }));
    }
    // Policies on a tool that is not described are validated as those on the groups of its action.
    let kind = if call.mutates || call.egress { "write" } else { "read" };
    let groups = [(kind, true), ("egress", call.egress), ("canary", call.canary), ("call", true)];
    let actions: Vec<&str> = match described {
        Some(_) => vec![call.tool],
        None => groups.iter().filter(|(_, is_in)| *is_in).map(|(group, _)| *group).collect(),
    };
    for action in actions {
        let (agent, action, server) = (agent.clone(), uid("Action", action), server.clone());
        let context = Context::Value(Arc::new(fields.clone()));
        Request::new(
            (agent, None),
            (action, None),
            (server, None),
            context,
            Some(&*SCHEMA),
            extensions,
        )
        .unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The arguments that the description names: policies cannot name others.
fn named(value: &Value, types: &RecordType) -> Value {
    let ValueKind::Record(fields) = &value.value else { return value.clone() };
    let known = types
        .fields
        .iter()
        .filter_map(|field| Some((field.name, typed(fields.get(field.name)?, &field.kind))));
    Value::record(known, None)
}

fn typed(value: &Value, kind: &ArgumentType) -> Value {
    match (kind, &value.value) {
        (ArgumentType::Record(types), _) => named(value, types),
        (ArgumentType::Set(inner), ValueKind::Set(items)) => {
            Value::set(items.iter().map(|item| typed(item, inner)), None)
        }
        _ => value.clone(),
    }
}

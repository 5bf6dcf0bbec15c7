//! What several statements ask about administrators: whether an administrator is left who can change the tenant, and
//! which administrators are members of a group.

/// Whether a credential `c` is an administrator's, is active, and has the scope.
macro_rules! administers {
    ($scope:literal, $now:literal) => {
        concat!(
            "c.administrator IS NOT NULL AND c.status = 'active' AND coalesce(c.expires_at_ms > ",
            $now,
            ", true) AND EXISTS (SELECT 1 FROM json_each(c.scopes) WHERE value = '",
            $scope,
            "')"
        )
    };
}

/// Whether the end of the tenant `?1`'s credentials `c` that match a condition leaves the tenant
/// without an administrator who can change it, and the worker without an operator.
macro_rules! last {
    ($ended:literal, $now:literal) => {
        concat!(
            "'last_administrator', json(iif(EXISTS (SELECT 1 FROM credentials c \
               WHERE c.tenant = ?1 AND ",
            $ended,
            " AND ",
            administers!("registry:write", $now),
            ") AND NOT EXISTS (SELECT 1 FROM credentials c \
               INDEXED BY credentials_by_administrator WHERE c.tenant = ?1 AND NOT (",
            $ended,
            ") AND ",
            administers!("registry:write", $now),
            "), 'true', 'false')), 'last_operator', json(iif(EXISTS (SELECT 1 FROM credentials c \
               WHERE c.tenant = ?1 AND ",
            $ended,
            " AND ",
            administers!("tenants:admin", $now),
            ") AND NOT EXISTS (SELECT 1 FROM credentials c \
               INDEXED BY credentials_by_administrator JOIN tenants t USING (tenant) \
               WHERE t.status <> 'deleted' AND NOT (c.tenant = ?1 AND ",
            $ended,
            ") AND ",
            administers!("tenants:admin", $now),
            "), 'true', 'false'))"
        )
    };
}

/// The administrators who are members of a group, counted up to the quorum of a protected group.
macro_rules! administrators_of {
    ($group:literal) => {
        concat!(
            "(SELECT count(*) FROM (SELECT 1 FROM group_members a WHERE a.tenant = ?1 \
               AND a.group_name = ",
            $group,
            " AND a.kind = 'administrator' LIMIT 2))"
        )
    };
}

/// The protected groups that an administrator is a member of.
macro_rules! protected_groups_of {
    ($administrator:literal) => {
        concat!(
            "json((SELECT json_group_array(json_object('group', g.group_name, 'administrators', ",
            administrators_of!("g.group_name"),
            ")) FROM group_members m JOIN groups g USING (tenant, group_name) \
               WHERE m.tenant = ?1 AND m.kind = 'administrator' AND m.member = ",
            $administrator,
            " AND g.protected AND g.deleted_at_ms IS NULL))"
        )
    };
}

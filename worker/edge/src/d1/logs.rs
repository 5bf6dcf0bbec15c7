//! The transparency logs: the tables `log_checkpoints` and `log_tiles`.

use std::collections::HashMap;

use gateward_core::lane::{LogName, TreeHead, Unpublished, decode_hashes};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::receipt::RegistryEvent;
use gateward_core::sql::d1::{
    COSIGN, EPOCH, FLUSH_ROWS, LAST_RECEIPT, LOG_CHECKPOINT, LOG_IS_PUBLIC, LOG_LEAVES, LOG_ROOTS,
    PUBLISH, REGISTRY_EVENTS, WRITE_TILES,
};
use gateward_core::tlog::tile::nodes_of;
use gateward_core::tlog::{Hash, Layer, TILE_HEIGHT, TILE_WIDTH, TilePath};
use js_sys::Array;
use serde::Deserialize;
use serde_json::value::RawValue;
use wasm_bindgen::JsValue;
use worker::{Env, Result};

use super::{number, query, read, read_all, read_within, rows, statement};
use crate::app::App;
use crate::limits::{D1_BACKGROUND_MS, D1_READ_MS};

/// The newest checkpoint of a log.
#[derive(Deserialize)]
pub struct StoredCheckpoint {
    /// The size of the tree in the note; 0 if the note is not a checkpoint.
    #[serde(skip)]
    pub size: u64,
    pub note: String,
    /// The number of the receipt that is the first leaf.
    pub first: u64,
    leaves: String,
    /// Lines of witnesses.
    pub cosignatures: String,
    /// The newest checkpoint with cosignatures, while witnesses are asked about a newer one; otherwise empty.
    pub cosigned: String,
}

#[derive(Deserialize)]
struct LeavesRow {
    leaves: Option<String>,
}

#[derive(Deserialize)]
struct RootRow {
    number: u64,
    root: String,
}

fn key(log: &LogName) -> [JsValue; 2] {
    [log.tenant.as_str().into(), number(log.lane.into())]
}

/// The newest checkpoint; `None` if the log has none.
pub async fn checkpoint(env: &Env, log: &LogName) -> Result<Option<StoredCheckpoint>> {
    let rows: Vec<StoredCheckpoint> =
        read_within(env, LOG_CHECKPOINT, &key(log), D1_READ_MS).await?;
    Ok(rows.into_iter().next().map(|mut stored| {
        stored.size = TreeHead::of_note(&stored.note).map_or(0, |tree| tree.size);
        stored
    }))
}

/// Whether anybody may read the tenant's logs.
pub async fn is_public(app: &App, tenant: &str) -> std::result::Result<bool, Problem> {
    let rows: Vec<serde::de::IgnoredAny> = read(app, LOG_IS_PUBLIC, &[tenant.into()]).await?;
    Ok(!rows.is_empty())
}

/// Writes full tiles: a JSON array, as [`gateward_core::lane::Lane::next_tiles`] returns it.
pub async fn write_tiles(env: &Env, log: &LogName, tiles: &str) -> Result<()> {
    let [tenant, lane] = key(log);
    let tiles = statement(WRITE_TILES, &[tenant, lane, tiles.into()]);
    query(env, &[tiles], D1_BACKGROUND_MS).await.map(drop)
}

/// Publishes a checkpoint with its last full tiles. Returns false if D1's checkpoint has another note than `read`, or if D1
/// lacks the last receipt; then nothing was published.
pub async fn publish(
    env: &Env,
    log: &LogName,
    tiles: Option<&str>,
    (tree, note, read): (&Unpublished, &str, Option<&str>),
) -> Result<bool> {
    let [tenant, lane] = key(log);
    let mut statements = Vec::new();
    if let Some(tiles) = tiles {
        statements.push(statement(WRITE_TILES, &[tenant.clone(), lane.clone(), tiles.into()]));
    }
    let values = [
        tenant,
        lane,
        note.into(),
        number(tree.first),
        tree.leaves.as_str().into(),
        read.map_or(JsValue::NULL, JsValue::from),
        tree.last.map_or(JsValue::NULL, number),
    ];
    statements.push(statement(PUBLISH, &values));
    let answered = query(env, &statements, D1_BACKGROUND_MS).await?;
    let published: Vec<serde::de::IgnoredAny> = rows(answered.last().map(Box::as_ref))?;
    Ok(!published.is_empty())
}

/// Stores the cosignatures of a checkpoint, unless D1 now has another checkpoint.
pub async fn cosign(env: &Env, log: &LogName, note: &str, lines: &str) -> Result<()> {
    let [tenant, lane] = key(log);
    let cosign = statement(COSIGN, &[tenant, lane, note.into(), lines.into()]);
    query(env, &[cosign], D1_BACKGROUND_MS).await.map(drop)
}

/// Writes journal rows again, and reads nothing back. Writing a row again is a no-op.
pub async fn write_rows(env: &Env, log: &LogName, rows: &str) -> Result<()> {
    let [tenant, lane] = key(log);
    let again = statement(FLUSH_ROWS, &[tenant, lane, rows.into(), JsValue::NULL]);
    query(env, &[again], D1_BACKGROUND_MS).await.map(drop)
}

/// The newest receipt that D1 has up to a number; 0 if it has none.
pub async fn last_receipt(env: &Env, log: &LogName, through: u64) -> Result<u64> {
    #[derive(Deserialize)]
    struct Row {
        seq: u64,
    }
    let [tenant, lane] = key(log);
    let newest = statement(LAST_RECEIPT, &[tenant, lane, number(through)]);
    let answered = query(env, &[newest], D1_BACKGROUND_MS).await?;
    let found: Vec<Row> = rows(answered.first().map(Box::as_ref))?;
    Ok(found.first().map_or(0, |row| row.seq))
}

/// Reads the events of a tenant's registry after the epoch `after`, at most [`MAX_EVENTS`] epochs at a time. Returns
/// the events, the epoch up to which they are complete, and the registry's current epoch.
pub async fn registry_events(
    env: &Env,
    tenant: &str,
    after: u64,
    limit_ms: u32,
) -> Result<(Vec<RegistryEvent>, u64, u64)> {
    #[derive(Deserialize)]
    struct EpochRow {
        epoch: u64,
    }
    let statements = [
        statement(EPOCH, &[tenant.into()]),
        statement(REGISTRY_EVENTS, &[tenant.into(), number(after)]),
    ];
    let answered = query(env, &statements, limit_ms).await?;
    let mut answered = answered.iter().map(Box::as_ref);
    let epochs: Vec<EpochRow> = rows(answered.next())?;
    let events = rows(answered.next())?;
    let epoch = epochs.first().map_or(0, |row| row.epoch);
    Ok((events, epoch.min(after.saturating_add(MAX_EVENTS)).max(after), epoch))
}

/// Epochs that [`registry_events`] looks at.
pub const MAX_EVENTS: u64 = 100;

/// Hashes of a tree by height and index.
pub type Nodes = HashMap<(u8, u64), Hash>;

/// What one read of D1 gets of a tree.
enum Part {
    /// The leaves of the last tile, which come with the checkpoint.
    Last,
    /// The leaves of a full tile.
    Leaves(u64),
    /// Roots of full tiles that follow each other.
    Roots { level: u8, first: u64, count: u64 },
}

fn part_of(size: u64, height: u8, index: u64) -> Part {
    let (level, inside) = (height / TILE_HEIGHT, height % TILE_HEIGHT);
    let first = index << inside;
    match level {
        0 if first / TILE_WIDTH == size / TILE_WIDTH => Part::Last,
        0 => Part::Leaves(first / TILE_WIDTH),
        _ => Part::Roots { level: level - 1, first, count: 1 << inside },
    }
}

fn read_part(log: &LogName, part: &Part) -> Option<Array> {
    let [tenant, lane] = key(log);
    match part {
        Part::Last => None,
        Part::Leaves(tile) => Some(statement(LOG_LEAVES, &[tenant, lane, number(*tile)])),
        Part::Roots { level, first, count } => {
            let values = [tenant, lane, number((*level).into()), number(*first), number(*count)];
            Some(statement(LOG_ROOTS, &values))
        }
    }
}

fn hashes_of(
    checkpoint: &StoredCheckpoint,
    part: &Part,
    answer: Option<&RawValue>,
) -> Result<Vec<Hash>> {
    let decoded = |text: &str| decode_hashes(text).unwrap_or_default();
    Ok(match part {
        Part::Last => decoded(&checkpoint.leaves),
        Part::Leaves(_) => {
            let found: Vec<LeavesRow> = rows(answer)?;
            let leaves = found.into_iter().next().and_then(|row| row.leaves);
            leaves.map(|leaves| decoded(&leaves)).unwrap_or_default()
        }
        Part::Roots { first, .. } => {
            let found: Vec<RootRow> = rows(answer)?;
            let in_order = found.iter().zip(*first..).take_while(|(row, at)| row.number == *at);
            in_order.filter_map(|(row, _)| decoded(&row.root).first().copied()).collect()
        }
    })
}

/// The hashes of perfect subtrees that D1 has, in one round trip.
pub async fn nodes(
    app: &App,
    log: &LogName,
    checkpoint: &StoredCheckpoint,
    needed: &[(u8, u64)],
) -> std::result::Result<Nodes, Problem> {
    let parts: Vec<Part> =
        needed.iter().map(|(height, index)| part_of(checkpoint.size, *height, *index)).collect();
    let statements: Vec<Array> = parts.iter().filter_map(|part| read_part(log, part)).collect();
    let collect = |answered: &[Box<RawValue>]| {
        let mut answers = answered.iter().map(Box::as_ref);
        let mut nodes = Nodes::new();
        for (part, (height, index)) in parts.iter().zip(needed) {
            let answer = if matches!(part, Part::Last) { None } else { answers.next() };
            let hashes = hashes_of(checkpoint, part, answer)?;
            let inside = height % TILE_HEIGHT;
            let index_in_part = match part {
                Part::Roots { .. } => 0,
                _ => index % (TILE_WIDTH >> inside),
            };
            if let Some(hash) = nodes_of(&hashes, inside, index_in_part) {
                nodes.insert((*height, *index), hash);
            }
        }
        Ok(nodes)
    };
    match statements.is_empty() {
        true => collect(&[]).map_err(|_: worker::Error| super::unavailable()),
        false => read_all(app, &statements, collect).await,
    }
}

/// The hashes of a tile; `None` if D1 does not have all of them.
pub async fn tile(
    app: &App,
    log: &LogName,
    checkpoint: &StoredCheckpoint,
    path: &TilePath,
) -> std::result::Result<Option<Vec<Hash>>, Problem> {
    let Layer::Hashes(level) = path.layer else { return Ok(None) };
    let width = u64::from(path.width);
    let first = path.number.checked_mul(TILE_WIDTH);
    let end = first.and_then(|first| first.checked_add(width)).ok_or_else(no_tile)?;
    let first = end - width;
    let has = match level.checked_mul(TILE_HEIGHT) {
        Some(shift @ 0..64) => checkpoint.size >> shift,
        _ => 0,
    };
    if end > has {
        return Ok(None);
    }
    let part = match level {
        0 => part_of(checkpoint.size, 0, first),
        _ => Part::Roots { level: level - 1, first, count: width },
    };
    let answered: Vec<Hash> = match read_part(log, &part) {
        None => hashes_of(checkpoint, &part, None).map_err(|_| super::unavailable())?,
        Some(statement) => {
            let first = |answered: &[Box<RawValue>]| {
                hashes_of(checkpoint, &part, answered.first().map(Box::as_ref))
            };
            read_all(app, &[statement], first).await?
        }
    };
    Ok(answered.get(..usize::from(path.width)).map(<[Hash]>::to_vec))
}

/// The problem for a tile that does not exist, or was deleted.
pub fn no_tile() -> Problem {
    Problem::new(ProblemCode::NotFound, "the log does not have this tile, or has deleted it")
}

//! The Lua scripts of the steps. Redis runs each script atomically.
//!
//! `KEYS` are the session, the lease to evaluate in it, the owner's list of sessions, and the list of all sessions. The first
//! arguments are the session's id, the owner, the idle timeout in milliseconds, and the maximum size of a stored state in bytes.
//! Lists of sessions are sorted sets, ordered by the time at which a session ends. Ended sessions stay in the owner's list for
//! `REMEMBERED` milliseconds, so that the owner learns that the session was closed. Times are those of the server in microseconds.
//! Lua's numbers represent them exactly, but its default number format does not.

use std::ops::Deref;
use std::sync::LazyLock;

use ptc_runtime::session::Fault;
use redis::{Script, Value};

/// A script of one step.
pub(crate) struct Step(LazyLock<Script>);

impl Deref for Step {
    type Target = Script;

    fn deref(&self) -> &Script {
        &self.0
    }
}

/// The common beginning of all scripts. A session is forgotten `REMEMBERED` milliseconds after its end. The lists expire after a
/// day, the maximum lifetime of a session, and that time.
const PRELUDE: &str = r"
local session, right, own, all = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, owner, idle, largest = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local REMEMBERED, LONGEST, MOST_REMEMBERED, LARGEST_FIELD = 3600000, 90000000, 1000, 4096
local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)
local function text(number) return string.format('%.0f', number) end

-- Lets the session live on after a use, for `more` milliseconds beyond what idleness allows.
local function used(more)
  local ends = math.min(math.floor(tonumber(redis.call('HGET', session, 'expires')) / 1000), now + idle + more)
  redis.call('PEXPIREAT', session, text(ends))
  redis.call('ZADD', own, text(ends), id)
  redis.call('ZADD', all, text(ends), id)
  redis.call('PEXPIRE', own, LONGEST)
  redis.call('PEXPIRE', all, LONGEST)
end

local function append_metadata(out, id, session, right)
  local held = redis.call('HMGET', session, 'title', 'created', 'updated', 'expires', 'turn', 'bindings', 'bytes')
  if not held[2] then return end
  -- This server writes no such field: the reply must not become large.
  for at = 1, 7 do
    if held[at] and #held[at] > LARGEST_FIELD then held[at] = '' end
  end
  out[#out + 1] = id
  for at = 1, 7 do out[#out + 1] = held[at] or '' end
  out[#out + 1] = redis.call('EXISTS', right)
end

local function find_error()
  local whose = redis.call('HGET', session, 'owner')
  if whose == owner then return nil end
  if not whose and redis.call('ZSCORE', own, id) then return {'closed'} end
  return {'missing'}
end
";

/// Finds the session, or ends the script with the reason why there is none.
const FIND: &str = "local why = find_error(); if why then return why end\n";

/// Like [`FIND`]. Ends the script also if the state is larger than a server stores one, so that no server allocates it.
const FIND_STATE: &str = r"
local why = find_error(); if why then return why end
local size = redis.call('HSTRLEN', session, 'image')
if size > largest then return {'too large', size} end
";

macro_rules! step {
    ($find:expr, $body:literal) => {
        Step(LazyLock::new(|| Script::new(&[PRELUDE, $find, $body].concat())))
    };
}

/// Further arguments: maximum lifetime, maximum number of the owner's sessions, maximum number of all sessions, the sealed
/// title.
pub(crate) static START: Step = step!(
    "",
    r"
redis.call('ZREMRANGEBYSCORE', all, '-inf', text(now))
redis.call('ZREMRANGEBYSCORE', own, '-inf', text(now - REMEMBERED))
local out = {'ok'}
if redis.call('EXISTS', session) == 0 then
  local mine = redis.call('ZCOUNT', own, '(' .. text(now), '+inf')
  if mine >= tonumber(ARGV[6]) then return {'full for owner'} end
  if redis.call('ZCARD', all) >= tonumber(ARGV[7]) then return {'full'} end
  redis.call('ZREMRANGEBYRANK', own, 0, -(mine + MOST_REMEMBERED + 1))
  redis.call('HSET', session, 'owner', owner, 'title', ARGV[8], 'created', text(micros), 'updated', text(micros),
    'expires', text(micros + ARGV[5] * 1000), 'turn', 0, 'bindings', 0, 'bytes', 0, 'fence', 0)
  used(0)
end
append_metadata(out, id, session, right)
return out"
);

pub(crate) static LIST: Step = step!(
    "",
    r"
local out = {'ok'}
-- KEYS[1] and KEYS[2] are made for an empty id here. With an id appended they are the keys of that session.
for _, each in ipairs(redis.call('ZRANGEBYSCORE', own, '(' .. text(now), '+inf')) do
  append_metadata(out, each, session .. each, right .. each)
end
return out"
);

pub(crate) static LOOK: Step = step!(
    FIND_STATE,
    r"
local running = redis.call('EXISTS', right) == 1
if not running then used(0) end
local out = {'ok'}
append_metadata(out, id, session, right)
out[#out + 1] = redis.call('HGET', session, 'image') or ''
return out"
);

pub(crate) static CLOSE: Step = step!(
    FIND,
    r"
redis.call('DEL', session, right)
redis.call('ZADD', own, text(now), id)
redis.call('ZREM', all, id)
return {'ok'}"
);

/// Further arguments: the holder, and the duration of the lease in milliseconds.
pub(crate) static BEGIN: Step = step!(
    FIND_STATE,
    r"
local holder = redis.call('GET', right)
if holder and holder ~= ARGV[5] then return {'busy'} end
redis.call('SET', right, ARGV[5], 'PX', ARGV[6])
local fence = redis.call('HINCRBY', session, 'fence', 1)
used(tonumber(ARGV[6]))
return {'ok', fence, redis.call('HGET', session, 'image') or ''}"
);

/// Further arguments: the holder, its fencing token, and the duration of the lease in milliseconds. An expired lease is renewed
/// if no later lease exists and its evaluation has not ended: a renewal can arrive after the end, and would block the session.
pub(crate) static RENEW: Step = step!(
    FIND,
    r"
if redis.call('HGET', session, 'fence') ~= ARGV[6] then return {'lost'} end
if redis.call('HGET', session, 'done') == ARGV[6] then return {'ended'} end
redis.call('SET', right, ARGV[5], 'PX', ARGV[7])
used(tonumber(ARGV[7]))
return {'ok'}"
);

/// Further arguments: the holder and its fencing token. If a state is to be stored, they are followed by 1 for an evaluation, the
/// number of bindings, their bytes, and the state.
pub(crate) static END: Step = step!(
    FIND,
    r"
local again = redis.call('HGET', session, 'done') == ARGV[6]
if not again then
  if redis.call('HGET', session, 'fence') ~= ARGV[6] then return {'lost'} end
  redis.call('HSET', session, 'done', ARGV[6])
  if ARGV[7] then
    redis.call('HSET', session, 'updated', text(micros), 'bindings', ARGV[8], 'bytes', ARGV[9], 'image', ARGV[10])
    -- Fields of earlier versions.
    redis.call('HDEL', session, 'prints', 'calls')
    redis.call('HINCRBY', session, 'turn', ARGV[7])
  end
end
if redis.call('GET', right) == ARGV[5] then redis.call('DEL', right) end
used(0)
local out = {'ok'}
append_metadata(out, id, session, right)
return out"
);

/// Returns the number of open sessions.
pub(crate) static COUNT: Step = step!("", "return {'ok', redis.call('ZCOUNT', all, '(' .. text(now), '+inf')}");

/// The reply of a script: a word, and then its parts in order.
pub(crate) struct Reply {
    word: String,
    parts: std::vec::IntoIter<Value>,
}

impl Reply {
    pub(crate) fn new(parts: Vec<Value>) -> Reply {
        let mut reply = Reply { word: String::new(), parts: parts.into_iter() };
        reply.word = reply.text().unwrap_or_default();
        reply
    }

    pub(crate) fn word(&self) -> &str {
        &self.word
    }

    /// Returns the bytes of its remaining parts.
    pub(crate) fn len(&self) -> usize {
        let bytes = |part: &Value| if let Value::BulkString(bytes) = part { bytes.len() } else { 0 };
        self.parts.as_slice().iter().map(bytes).sum()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.parts.len() == 0
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Fault> {
        match self.parts.next() {
            Some(Value::BulkString(bytes)) => Ok(bytes),
            Some(Value::Int(number)) => Ok(number.to_string().into_bytes()),
            _ => Err(unexpected()),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String, Fault> {
        String::from_utf8(self.bytes()?).map_err(|_| unexpected())
    }

    pub(crate) fn number(&mut self) -> Result<u64, Fault> {
        self.text()?.parse().map_err(|_| unexpected())
    }
}

/// Returns the error for data that this version did not write.
pub(crate) fn unexpected() -> Fault {
    Fault::Unavailable("the session store holds something that this version of the server did not write".into())
}

-- The queue's state changes, as a Redis function library. Each change is atomic. A worker's changes are
-- fenced: they act only while (consumer, delivery count) still holds the entry, since Redis' own XACK and
-- XCLAIM do not check the owner.
--
-- queue/store.c puts a head in front, with `local library`, the library's name: the digest of this text.
-- Programs of different versions can share a server, and none runs another's code. The first argument of
-- every function, q, is the beginning of all keys, "{NAME.VERSION}:". The keys:
--   s:CLASS, u:CLASS  streams of waiting and leased jobs (u: urgent); fields key, body
--   j:KEY             hash of a job: st queued|done|dead, id, s (its stream), kin, res; body and cl (its
--                     class) when dead
--   out               stream of finished keys, trimmed: it only wakes submitters
--   dead, classes     sets
--   stat              hash of counters
--   pause             exists while the queue is paused
--   turn:CLASS        the worker that takes several jobs, for two seconds at most
--   d:CLASS           hash of the devices that serve the class: uuid to "since until", milliseconds
--   sick              hash of the devices out of service: host and device to three lines (class, unix time,
--                     reason)
--
-- A finished job's entry is deleted. XLEN therefore counts waiting and leased jobs, and the streams need no
-- MAXLEN, which would drop jobs. `pairs`, redis.call and others do not exist while a library loads (Redis
-- 7.0).

-- A wrapper, since redis.call does not exist while the library loads.
local function call(...) return redis.call(...) end

-- The consumer "-" owns entries that were handed back. They look idle for a day, so they are taken over like
-- expired leases.
local GROUP, UNOWNED, DAY_MS = 'workers', '-', 86400000

local function exists(key) return call('EXISTS', key) == 1 end

local function now_ms()
    local t = call('TIME')
    return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function count(q, what, class, n) call('HINCRBY', q .. 'stat', what .. ':' .. class, n) end

-- ---- entries of streams ----

local function class_of(stream) return string.match(stream, '}:[su]:(.*)$') end

local function ensure(stream)
    if not exists(stream) then call('XGROUP', 'CREATE', stream, GROUP, '0', 'MKSTREAM') end
end

local function drop(stream, id)
    call('XACK', stream, GROUP, id)
    call('XDEL', stream, id)
end

local function add(q, stream, key, body, kin)
    ensure(stream)
    local id = call('XADD', stream, '*', 'key', key, 'body', body)
    call('HSET', q .. 'j:' .. key, 'st', 'queued', 'id', id, 's', stream, 'kin', kin)
end

local function holds(stream, id, who, delivery)
    if not exists(stream) then return false end
    local p = call('XPENDING', stream, GROUP, id, id, 1)
    return #p == 1 and p[1][2] == who and p[1][4] == tonumber(delivery)
end

-- Consumer NAME+N holds jobs that wait for NAME. No work was tried, so the end of such a lease does not
-- count as a delivery.
local function waits(who) return string.find(who, '%+%d+$') ~= nil end

-- The entry is available at once, in its old place.
local function free(stream, id, deliveries)
    call('XCLAIM', stream, GROUP, UNOWNED, 0, id, 'IDLE', DAY_MS, 'RETRYCOUNT', deliveries, 'JUSTID')
end

-- ---- submitters ----

-- Returns queued, dup, done, dead or full. A job in state queued whose entry is gone (its stream was deleted
-- by hand) is put back.
local function enqueue(q, kind, class, key, body, limit, kin)
    local stream = q .. kind .. ':' .. class
    local h = call('HMGET', q .. 'j:' .. key, 'st', 'id', 's')
    if h[1] == 'done' or h[1] == 'dead' then return h[1] end
    if h[1] == 'queued' and #call('XRANGE', h[3], h[2], h[2]) == 1 then return 'dup' end
    if call('XLEN', stream) >= tonumber(limit) then return 'full' end
    add(q, stream, key, body, kin)
    call('SADD', q .. 'classes', class)
    return 'queued'
end

-- Returns 1 when the job is removed or absent, 0 when it is leased or finished.
local function withdraw(q, key, lease_ms)
    local job = q .. 'j:' .. key
    local h = call('HMGET', job, 'st', 'id', 's')
    if not h[1] then return 1 end
    if h[1] ~= 'queued' then return 0 end
    if exists(h[3]) then
        local p = call('XPENDING', h[3], GROUP, h[2], h[2], 1)
        if #p == 1 and p[1][2] ~= UNOWNED and p[1][3] < tonumber(lease_ms) then return 0 end
        drop(h[3], h[2])
    end
    call('DEL', job)
    return 1
end

-- The stored result of a finished job is malformed: this one takes its place. Returns 1 when the job is dead,
-- 0 when it is not finished.
local function refuse(q, class, key, body, result)
    local job = q .. 'j:' .. key
    local state = call('HGET', job, 'st')
    if state ~= 'done' and state ~= 'dead' then return 0 end
    call('HSET', job, 'st', 'dead', 'res', result, 'body', body, 'cl', class)
    call('PERSIST', job)
    call('SADD', q .. 'dead', key)
    count(q, state, class, -1)
    count(q, 'dead', class, 1)
    count(q, 'malformed', class, 1)
    return 1
end

-- ---- workers: take ----

-- An entry with other fields gets an empty key: the worker discards it.
local function job(i, entry, delivery)
    local f = entry[2]
    if #f ~= 4 or f[1] ~= 'key' or f[3] ~= 'body' then return {i, entry[1], '', '', delivery} end
    return {i, entry[1], f[2], f[4], delivery}
end

-- An entry that this consumer holds already: its reply was lost with a connection.
local function own(stream, i, who)
    local p = call('XPENDING', stream, GROUP, '-', '+', 1, who)
    if #p == 0 then return nil end
    local e = call('XCLAIM', stream, GROUP, who, 0, p[1][1], 'RETRYCOUNT', p[1][4])
    if #e == 1 then return job(i, e[1], p[1][4]) end
end

local function expired(stream, i, who, lease_ms)
    local p = call('XPENDING', stream, GROUP, 'IDLE', lease_ms, '-', '+', 1)
    if #p == 0 then return nil end
    local n = p[1][4]
    if not waits(p[1][2]) then n = n + 1 end
    local e = call('XCLAIM', stream, GROUP, who, lease_ms, p[1][1], 'RETRYCOUNT', n)
    if #e == 1 then return job(i, e[1], n) end
end

-- Delete consumers that hold nothing and were idle for ten minutes. Redis creates a consumer again when it
-- comes back.
local function reap(stream)
    for _, c in ipairs(call('XINFO', 'CONSUMERS', stream, GROUP)) do
        if c[4] == 0 and c[6] > 600000 then call('XGROUP', 'DELCONSUMER', stream, GROUP, c[2]) end
    end
end

-- Whether the next new entry of the stream is of that kin; nil: there is none.
local function next_is(q, stream, kin)
    for _, flat in ipairs(call('XINFO', 'GROUPS', stream)) do
        local group = {}
        for i = 1, #flat, 2 do group[flat[i]] = flat[i + 1] end
        if group['name'] == GROUP then
            local e = call('XRANGE', stream, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)
            if #e == 0 then return nil end
            return call('HGET', q .. 'j:' .. tostring(e[1][2][2]), 'kin') == kin
        end
    end
end

-- Returns {number of the stream, id, key, body, delivery}, 'paused' or nil. Earlier streams have strict
-- priority. scan: look for expired leases; fresh: the first call on this connection; kin: where it is not
-- empty, a new entry is taken only when it is of that kin.
local function take(q, who, lease_ms, scan, fresh, kin, ...)
    local streams = {...}
    if exists(q .. 'pause') then return 'paused' end
    for _, s in ipairs(streams) do ensure(s) end
    for i, s in ipairs(fresh == '1' and streams or {}) do
        local j = own(s, i - 1, who)
        if j then return j end
        reap(s)
    end
    for i, s in ipairs(scan == '1' and streams or {}) do
        local j = expired(s, i - 1, who, lease_ms)
        if j then return j end
    end
    for i, s in ipairs(streams) do
        if kin ~= '' and next_is(q, s, kin) == false then return false end
        local r = call('XREADGROUP', 'GROUP', GROUP, who, 'COUNT', 1, 'STREAMS', s, '>')
        if r then return job(i - 1, r[1][2][1], 1) end
    end
    return false
end

-- One worker at a time takes several jobs of a class: else those of all would lie between one another's.
-- Returns 1 when it is this one's turn, also when the call is repeated. ms 0: its turn is over.
local function turn(q, class, who, ms)
    local key = q .. 'turn:' .. class
    local own = call('GET', key) == who
    if ms == '0' then
        if own then call('DEL', key) end
        return 1
    end
    return (own or call('SET', key, who, 'NX', 'PX', ms)) and 1 or 0
end

-- ---- workers: a leased entry (stream, id, consumer, delivery). Each returns 0 when the lease is lost. ----

-- With `other`, that consumer holds the entry from now on. It holds it already when the call is repeated
-- after a lost reply.
local function renew(q, stream, id, who, delivery, other)
    other = other or who
    if not holds(stream, id, who, delivery) and not holds(stream, id, other, delivery) then return 0 end
    call('XCLAIM', stream, GROUP, other, 0, id, 'JUSTID')
    return 1
end

local function finish(q, stream, id, key, state, result)
    call('HSET', q .. 'j:' .. key, 'st', state, 'res', result)
    count(q, state, class_of(stream), 1)
    call('XADD', q .. 'out', 'MAXLEN', '~', 10000, '*', 'key', key)
    drop(stream, id)
    return 1
end

-- A worker repeats a call whose reply was lost, when it no longer holds the entry. The same result stored
-- already is success.
local function same(q, key, state, result)
    local h = call('HMGET', q .. 'j:' .. key, 'st', 'res')
    if h[1] == state and h[2] == result then return 1 end
    return 0
end

local function complete(q, stream, id, who, delivery, key, result, ttl_s)
    if not holds(stream, id, who, delivery) then return same(q, key, 'done', result) end
    finish(q, stream, id, key, 'done', result)
    if tonumber(ttl_s) > 0 then call('EXPIRE', q .. 'j:' .. key, ttl_s) end
    return 1
end

-- Keeps the body, for retry.
local function bury(q, stream, id, who, delivery, key, result)
    if not holds(stream, id, who, delivery) then return same(q, key, 'dead', result) end
    local e = call('XRANGE', stream, id, id)
    if #e == 1 then call('HSET', q .. 'j:' .. key, 'body', e[1][2][4], 'cl', class_of(stream)) end
    call('SADD', q .. 'dead', key)
    return finish(q, stream, id, key, 'dead', result)
end

-- The entry is no job.
local function discard(q, stream, id, who, delivery)
    if not holds(stream, id, who, delivery) then return 0 end
    drop(stream, id)
    count(q, 'malformed', class_of(stream), 1)
    return 1
end

-- counted: 1 when the delivery counts, else 0.
local function hand_back(q, stream, id, who, delivery, counted)
    if not holds(stream, id, who, delivery) then return 0 end
    free(stream, id, delivery - 1 + counted)
    return 1
end

-- ---- devices ----

-- The time since which a device serves, or nil when its record has expired.
local function serving(value, now)
    local since, till = string.match(value or '', '^(%d+) (%d+)$')
    if till and tonumber(till) > now then return tonumber(since) end
end

-- A device whose record has not expired keeps its `since`.
local function announce(q, class, uuid, lease_ms)
    local devices, now = q .. 'd:' .. class, now_ms()
    local since = serving(call('HGET', devices, uuid), now) or now
    return call('HSET', devices, uuid, string.format('%.0f %.0f', since, now + lease_ms))
end

-- Returns the number of other devices, and the milliseconds for which this one has served.
local function others(q, class, uuid)
    local devices, now, n, served = q .. 'd:' .. class, now_ms(), 0, 0
    local all = call('HGETALL', devices)
    for i = 1, #all, 2 do
        local since = serving(all[i + 1], now)
        if not since then call('HDEL', devices, all[i])
        elseif all[i] == uuid then served = now - since
        else n = n + 1 end
    end
    return {n, served}
end

-- ---- administration ----

-- The streams of a class that exist.
local function streams_of(q, class)
    local list = {}
    for _, kind in ipairs({'u:', 's:'}) do
        local stream = q .. kind .. class
        if exists(stream) then list[#list + 1] = stream end
    end
    return list
end

local function belongs(holder, who)
    return who == '' or holder == who or (waits(holder) and string.gsub(holder, '%+%d+$', '') == who)
end

-- Frees all leases of one consumer, those under NAME+N included, or of all consumers (''), and returns how
-- many. The caller knows that the holders have ended.
local function release(q, who, counted)
    local n = 0
    for _, class in ipairs(call('SMEMBERS', q .. 'classes')) do
        for _, stream in ipairs(streams_of(q, class)) do
            for _, p in ipairs(call('XPENDING', stream, GROUP, '-', '+', 1000000)) do
                if p[2] ~= UNOWNED and belongs(p[2], who) then
                    local one = waits(p[2]) and 0 or counted
                    free(stream, p[1], math.max(p[4] - 1 + one, 0))
                    n = n + 1
                end
            end
        end
    end
    return n
end

local function leased(stream)
    local n = 0
    for _, c in ipairs(call('XPENDING', stream, GROUP)[4] or {}) do
        if c[1] ~= UNOWNED then n = n + tonumber(c[2]) end
    end
    return n
end

-- Returns {class, waiting, leased, done, dead, oldest in milliseconds, malformed} of each class.
local function status(q)
    local out, now = {}, now_ms()
    local classes = call('SMEMBERS', q .. 'classes')
    table.sort(classes)
    for _, class in ipairs(classes) do
        local length, held, first = 0, 0, now
        for _, stream in ipairs(streams_of(q, class)) do
            length = length + call('XLEN', stream)
            held = held + leased(stream)
            local e = call('XRANGE', stream, '-', '+', 'COUNT', 1)
            if #e == 1 then first = math.min(first, tonumber(string.match(e[1][1], '^%d+'))) end
        end
        local n = call('HMGET', q .. 'stat', 'done:' .. class, 'dead:' .. class, 'malformed:' .. class)
        out[#out + 1] = {class, length - held, held, tonumber(n[1] or 0), tonumber(n[2] or 0), now - first,
                         tonumber(n[3] or 0)}
    end
    return out
end

-- Puts at most `limit` dead jobs back on their streams, and returns how many.
local function retry(q, limit)
    local n = 0
    for _, key in ipairs(call('SPOP', q .. 'dead', limit)) do
        local job = q .. 'j:' .. key
        local h = call('HMGET', job, 'st', 'body', 'cl', 'kin')
        if h[1] == 'dead' then
            call('HDEL', job, 'res', 'body', 'cl')
            add(q, q .. 's:' .. h[3], key, h[2], h[4] or '')
            count(q, 'dead', h[3], -1)
            n = n + 1
        end
    end
    return n
end

-- One function of Redis, with the name of the library: key q, arguments NAME ARGUMENT...
local functions = {
    enqueue = enqueue, withdraw = withdraw, refuse = refuse, take = take, turn = turn, renew = renew,
    complete = complete, bury = bury, discard = discard, hand_back = hand_back, announce = announce,
    others = others, release = release, status = status, retry = retry
}
redis.register_function(library, function(keys, args)
    return functions[args[1]](keys[1], unpack(args, 2))
end)

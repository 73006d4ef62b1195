/* The queue's state changes, as a Redis function library in Lua. Each change is atomic. A worker's
 * changes are fenced: they act only while (consumer, delivery count) still holds the entry, since
 * Redis' own XACK and XCLAIM do not check the owner.
 *
 * The library's name is the digest of this text (queue/store.c). Programs of different versions can
 * share a server, and none runs another's code. Keys, all under the tag {NAME.VERSION}:
 *   s:CLASS, u:CLASS  streams of waiting and leased jobs (u: urgent); fields key, body
 *   j:KEY             hash of a job: st queued|done|dead, id, s (its stream), res; body and cl when
 *                     dead
 *   out               stream of finished keys, trimmed: it only wakes submitters
 *   dead, classes     sets
 *   stat              hash of counters
 *   pause             exists while the queue is paused
 *   d:CLASS           hash of the devices that serve the class: uuid to "since until", milliseconds
 *   sick              hash of the devices out of service: host and device to three lines (class,
 *                     unix time, reason)
 *
 * A finished job's entry is deleted. XLEN therefore counts waiting and leased jobs, and the streams
 * need no MAXLEN, which would drop jobs. `pairs`, redis.call and others do not exist while a
 * library loads (Redis 7.0). */
#ifndef QUEUE_QUEUE_LUA_H
#define QUEUE_QUEUE_LUA_H

#define LUA(...) #__VA_ARGS__ "\n"

static const char queue_library[] =
    /* A wrapper, since redis.call does not exist while the library loads. */
    LUA(local function call(...) return redis.call(...) end)

    /* The consumer "-" owns entries that were handed back. They look idle for a day, so they are
     * taken over like expired leases. */
    LUA(local GROUP = 'workers' local UNOWNED = '-' local DAY_MS = 86400000)

    LUA(local function held(s, id, who, n)
            if call('EXISTS', s) == 0 then return false end
            local p = call('XPENDING', s, GROUP, id, id, 1)
            return #p == 1 and p[1][2] == who and p[1][4] == tonumber(n)
        end)

    LUA(local function ensure(s)
            if call('EXISTS', s) == 0 then call('XGROUP', 'CREATE', s, GROUP, '0', 'MKSTREAM') end
        end)

    LUA(local function drop(s, id)
            call('XACK', s, GROUP, id)
            call('XDEL', s, id)
        end)

    LUA(local function add(s, j, key, body)
            ensure(s)
            local id = call('XADD', s, '*', 'key', key, 'body', body)
            call('HSET', j, 'st', 'queued', 'id', id, 's', s)
        end)

    /* The comments below give: keys | arguments -> results. */

    /* job stream classes | key body class limit -> queued dup done dead full. A job in state queued
     * whose entry is gone (its stream was deleted by hand) is put back. */
    LUA(local function enqueue(k, a)
            local h = call('HMGET', k[1], 'st', 'id', 's')
            if h[1] == 'done' or h[1] == 'dead' then return h[1] end
            if h[1] == 'queued' and #call('XRANGE', h[3], h[2], h[2]) == 1 then return 'dup' end
            if call('XLEN', k[2]) >= tonumber(a[4]) then return 'full' end
            add(k[2], k[1], a[1], a[2])
            call('SADD', k[3], a[3])
            return 'queued'
        end)

    /* An entry with other fields gets an empty key: the worker discards it. */
    LUA(local function job(i, e, n)
            local f = e[2]
            if #f ~= 4 or f[1] ~= 'key' or f[3] ~= 'body' then return {i, e[1], '', '', n} end
            return {i, e[1], f[2], f[4], n}
        end)

    LUA(local function now_ms()
            local t = call('TIME')
            return t[1] * 1000 + math.floor(t[2] / 1000)
        end)

    LUA(local function serving(value, now)
            local since, till = string.match(value or '', '^(%d+) (%d+)$')
            if till and tonumber(till) > now then return tonumber(since) end
        end)

    /* devices | uuid lease. A device whose record has not expired keeps its `since`. */
    LUA(local function announce(k, a)
            local now = now_ms()
            local since = serving(call('HGET', k[1], a[1]), now) or now
            return call('HSET', k[1], a[1], string.format('%.0f %.0f', since, now + a[2]))
        end)

    /* devices | uuid -> number of other devices, milliseconds for which this one has served */
    LUA(local function others(k, a)
            local now = now_ms() local n = 0 local served = 0
            local all = call('HGETALL', k[1])
            for i = 1, #all, 2 do
                local since = serving(all[i + 1], now)
                if not since then call('HDEL', k[1], all[i])
                elseif all[i] == a[1] then served = now - since
                else n = n + 1 end
            end
            return {n, served}
        end)

    /* job | lease -> 1 removed or absent, 0 leased or finished */
    LUA(local function withdraw(k, a)
            local h = call('HMGET', k[1], 'st', 'id', 's')
            if not h[1] then return 1 end
            if h[1] ~= 'queued' then return 0 end
            if call('EXISTS', h[3]) == 1 then
                local p = call('XPENDING', h[3], GROUP, h[2], h[2], 1)
                if #p == 1 and p[1][2] ~= UNOWNED and p[1][3] < tonumber(a[1]) then return 0 end
                drop(h[3], h[2])
            end
            call('DEL', k[1])
            return 1
        end)

    /* An entry that this consumer holds already: its reply was lost with a connection. */
    LUA(local function own(s, i, who)
            local p = call('XPENDING', s, GROUP, '-', '+', 1, who)
            if #p == 0 then return nil end
            local e = call('XCLAIM', s, GROUP, who, 0, p[1][1], 'RETRYCOUNT', p[1][4])
            if #e == 1 then return job(i, e[1], p[1][4]) end
        end)

    /* Consumer NAME+N holds jobs that wait for NAME. No work was tried, so the end of such a lease
     * does not count as a delivery. */
    LUA(local function waits(who) return string.find(who, '%+%d+$') ~= nil end)

    LUA(local function expired(s, i, who, lease)
            local p = call('XPENDING', s, GROUP, 'IDLE', lease, '-', '+', 1)
            if #p == 0 then return nil end
            local n = p[1][4]
            if not waits(p[1][2]) then n = n + 1 end
            local e = call('XCLAIM', s, GROUP, who, lease, p[1][1], 'RETRYCOUNT', n)
            if #e == 1 then return job(i, e[1], n) end
        end)

    /* Delete consumers that hold nothing and were idle for ten minutes. Redis creates a consumer
     * again when it comes back. */
    LUA(local function reap(s)
            for _, c in ipairs(call('XINFO', 'CONSUMERS', s, GROUP)) do
                if c[4] == 0 and c[6] > 600000 then
                    call('XGROUP', 'DELCONSUMER', s, GROUP, c[2])
                end
            end
        end)

    /* pause stream... | who lease scan fresh -> {index id key body delivery}, 'paused' or nil.
     * Earlier streams have strict priority. fresh: the first call on this connection. */
    LUA(local function take(k, a)
            if call('EXISTS', k[1]) == 1 then return 'paused' end
            for i = 2, #k do ensure(k[i]) end
            if a[4] == '1' then
                for i = 2, #k do
                    local j = own(k[i], i - 2, a[1])
                    if j then return j end
                    reap(k[i])
                end
            end
            if a[3] == '1' then
                for i = 2, #k do
                    local j = expired(k[i], i - 2, a[1], a[2])
                    if j then return j end
                end
            end
            for i = 2, #k do
                local r = call('XREADGROUP', 'GROUP', GROUP, a[1], 'COUNT', 1, 'STREAMS', k[i], '>')
                if r then return job(i - 2, r[1][2][1], 1) end
            end
            return false
        end)

    /* stream | id who n [other] -> 1 held, 0 lost. With `other`, that consumer holds the entry from
     * now on. It holds it already when the call is repeated after a lost reply. */
    LUA(local function renew(k, a)
            local who = a[4] or a[2]
            if not held(k[1], a[1], a[2], a[3]) and not held(k[1], a[1], who, a[3]) then
                return 0
            end
            call('XCLAIM', k[1], GROUP, who, 0, a[1], 'JUSTID')
            return 1
        end)

    LUA(local function finish(k, a, state)
            call('HSET', k[2], 'st', state, 'res', a[6])
            call('HINCRBY', k[4], state .. ':' .. a[4], 1)
            call('XADD', k[3], 'MAXLEN', '~', 10000, '*', 'key', a[5])
            drop(k[1], a[1])
        end)

    /* A worker repeats a call whose reply was lost, when it no longer holds the entry. The same
     * result stored already is success. */
    LUA(local function same(k, a, state)
            local h = call('HMGET', k[2], 'st', 'res')
            if h[1] == state and h[2] == a[6] then return 1 end
            return 0
        end)

    /* stream job out stat | id who n class key result ttl -> 1 done, 0 lost */
    LUA(local function complete(k, a)
            if not held(k[1], a[1], a[2], a[3]) then return same(k, a, 'done') end
            finish(k, a, 'done')
            if tonumber(a[7]) > 0 then call('EXPIRE', k[2], a[7]) end
            return 1
        end)

    /* stream job out stat dead | id who n class key result -> 1 buried, 0 lost. Keeps the body, for
     * retry. */
    LUA(local function bury(k, a)
            if not held(k[1], a[1], a[2], a[3]) then return same(k, a, 'dead') end
            local e = call('XRANGE', k[1], a[1], a[1])
            if #e == 1 then call('HSET', k[2], 'body', e[1][2][4], 'cl', a[4]) end
            call('SADD', k[5], a[5])
            finish(k, a, 'dead')
            return 1
        end)

    /* stream stat | id who n class -> 1 discarded, 0 lost. The entry is no job. */
    LUA(local function discard(k, a)
            if not held(k[1], a[1], a[2], a[3]) then return 0 end
            drop(k[1], a[1])
            call('HINCRBY', k[2], 'malformed:' .. a[4], 1)
            return 1
        end)

    /* job stat dead | class key body result -> 1 dead, 0 not finished. The result that is stored is
     * malformed: this one takes its place. */
    LUA(local function refuse(k, a)
            local st = call('HGET', k[1], 'st')
            if st ~= 'done' and st ~= 'dead' then return 0 end
            call('HSET', k[1], 'st', 'dead', 'res', a[4], 'body', a[3], 'cl', a[1])
            call('PERSIST', k[1])
            call('SADD', k[3], a[2])
            call('HINCRBY', k[2], st .. ':' .. a[1], -1)
            call('HINCRBY', k[2], 'dead:' .. a[1], 1)
            call('HINCRBY', k[2], 'malformed:' .. a[1], 1)
            return 1
        end)

    /* stream | id who n counted -> 1 handed back, 0 lost. The entry is available at once, in its
     * old place. */
    LUA(local function hand_back(k, a)
            if not held(k[1], a[1], a[2], a[3]) then return 0 end
            call('XCLAIM', k[1], GROUP, UNOWNED, 0, a[1], 'IDLE', DAY_MS,
                 'RETRYCOUNT', a[3] - 1 + a[4], 'JUSTID')
            return 1
        end)

    LUA(local function belongs(holder, who)
            return holder == who or (waits(holder) and string.gsub(holder, '%+%d+$', '') == who)
        end)

    /* classes | prefix who counted -> how many were freed: all leases of one consumer, those under
     * NAME+N included, or of all consumers (''). The caller knows that the holders have ended. */
    LUA(local function release(k, a)
            local n = 0
            for _, class in ipairs(call('SMEMBERS', k[1])) do
                for _, kind in ipairs({'u:', 's:'}) do
                    local s = a[1] .. kind .. class
                    local list = {}
                    if call('EXISTS', s) == 1 then
                        list = call('XPENDING', s, GROUP, '-', '+', 1000000)
                    end
                    for _, p in ipairs(list) do
                        if p[2] ~= UNOWNED and (a[2] == '' or belongs(p[2], a[2])) then
                            local counted = a[3]
                            if waits(p[2]) then counted = 0 end
                            call('XCLAIM', s, GROUP, UNOWNED, 0, p[1], 'IDLE', DAY_MS,
                                 'RETRYCOUNT', math.max(p[4] - 1 + counted, 0), 'JUSTID')
                            n = n + 1
                        end
                    end
                end
            end
            return n
        end)

    LUA(local function leased(s)
            local n = 0
            local by = call('XPENDING', s, GROUP)[4] or {}
            for _, c in ipairs(by) do
                if c[1] ~= UNOWNED then n = n + tonumber(c[2]) end
            end
            return n
        end)

    /* classes stat | prefix -> {class waiting leased done dead oldest_ms malformed}... */
    LUA(local function status(k, a)
            local out = {}
            local now = now_ms()
            local classes = call('SMEMBERS', k[1])
            table.sort(classes)
            for _, class in ipairs(classes) do
                local len = 0 local held_now = 0 local first = now
                for _, kind in ipairs({'u:', 's:'}) do
                    local s = a[1] .. kind .. class
                    if call('EXISTS', s) == 1 then
                        len = len + call('XLEN', s)
                        held_now = held_now + leased(s)
                        local e = call('XRANGE', s, '-', '+', 'COUNT', 1)
                        if #e == 1 then
                            first = math.min(first, tonumber(string.match(e[1][1], '^%d+')))
                        end
                    end
                end
                local n = call('HMGET', k[2], 'done:' .. class, 'dead:' .. class, 'malformed:' .. class)
                out[#out + 1] = {class, len - held_now, held_now, tonumber(n[1] or 0),
                                 tonumber(n[2] or 0), now - first, tonumber(n[3] or 0)}
            end
            return out
        end)

    /* dead stat | prefix limit -> how many dead jobs were put back on their streams */
    LUA(local function retry(k, a)
            local n = 0
            for _, key in ipairs(call('SPOP', k[1], a[2])) do
                local j = a[1] .. 'j:' .. key
                local h = call('HMGET', j, 'st', 'body', 'cl')
                if h[1] == 'dead' then
                    call('HDEL', j, 'res', 'body', 'cl')
                    add(a[1] .. 's:' .. h[3], j, key, h[2])
                    call('HINCRBY', k[2], 'dead:' .. h[3], -1)
                    n = n + 1
                end
            end
            return n
        end)

    /* PREFIX stands for the library's name. */
    LUA(redis.register_function('PREFIX_enqueue', enqueue)
        redis.register_function('PREFIX_announce', announce)
        redis.register_function('PREFIX_others', others)
        redis.register_function('PREFIX_withdraw', withdraw)
        redis.register_function('PREFIX_take', take)
        redis.register_function('PREFIX_renew', renew)
        redis.register_function('PREFIX_complete', complete)
        redis.register_function('PREFIX_bury', bury)
        redis.register_function('PREFIX_discard', discard)
        redis.register_function('PREFIX_refuse', refuse)
        redis.register_function('PREFIX_hand_back', hand_back)
        redis.register_function('PREFIX_release', release)
        redis.register_function('PREFIX_status', status)
        redis.register_function('PREFIX_retry', retry));

#undef LUA

#endif

-- The ledger in Valkey or Redis; `valkey.py` runs it. One script, so that what is one operation there is one step here.
--
-- ARGV: operation, now, cutoff (both seconds since 1970), grain (seconds), life of a value (ms), cap (bytes), overhead
-- of an entry (bytes), then what the operation takes. It answers {bytes, conversations, what the operation gives}.
--
-- e:TENANT:KIND:KEY         hash   v value, o conversation that added it last, n claims, k 1 when confirmed; expires
-- h:TENANT:KIND:KEY         set    conversations that hold it
-- m:TENANT:CONVERSATION     hash   KIND:KEY -> bytes of its value
-- used, started             TENANT:CONVERSATION -> seconds since 1970
-- bytes                     of all values, each with its overhead
--
-- What else there is is found and removed by these; only values expire by themselves, in case no proxy comes back.

local P = 'edgewise:'
local OP, NOW, CUTOFF, GRAIN = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local LIFE, CAP, OVERHEAD = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local FIRST = 8 -- of the operation's own arguments
local call = redis.call

local function bytes() return tonumber(call('GET', P .. 'bytes') or '0') end
local function at_entry(tenant, member) return P .. 'e:' .. tenant .. ':' .. member end
local function at_holders(tenant, member) return P .. 'h:' .. tenant .. ':' .. member end
local function at_members(tenant, name) return P .. 'm:' .. tenant .. ':' .. name end

-- Written down again only when it is late: then every value of the conversation gets its whole life anew.
local function use(tenant, name, create)
  local talk = tenant .. ':' .. name
  local used = call('ZSCORE', P .. 'used', talk)
  if not used and not create then return end
  if not used then call('HSET', P .. 'started', talk, NOW) end
  if not used or tonumber(used) < tonumber(NOW) - GRAIN then
    call('ZADD', P .. 'used', NOW, talk)
    for _, member in ipairs(call('HKEYS', at_members(tenant, name))) do
      call('PEXPIRE', at_entry(tenant, member), LIFE)
    end
  end
end

local function erase(tenant, member, size)
  call('DEL', at_entry(tenant, member), at_holders(tenant, member))
  call('DECRBY', P .. 'bytes', size + OVERHEAD)
end

local function release(tenant, name, member)
  local holders, size = at_holders(tenant, member), call('HGET', at_members(tenant, name), member)
  call('SREM', holders, name)
  call('HDEL', at_members(tenant, name), member)
  local next_one = call('SMEMBERS', holders)
  if #next_one == 0 then
    erase(tenant, member, tonumber(size))
  elseif call('HGET', at_entry(tenant, member), 'o') == name then
    table.sort(next_one)
    call('HSET', at_entry(tenant, member), 'o', next_one[1])
  end
end

-- At most `most` entries of one conversation; whether it is gone.
local function shrink(talk, most)
  local tenant, name = string.match(talk, '^([^:]*):(.*)$')
  for _, member in ipairs(call('HRANDFIELD', at_members(tenant, name), most)) do release(tenant, name, member) end
  if call('HLEN', at_members(tenant, name)) > 0 then return false end
  call('ZREM', P .. 'used', talk)
  call('HDEL', P .. 'started', talk)
  return true
end

-- One conversation that has expired, or a part of it; whether there was one.
local function sweep()
  local oldest = call('ZRANGEBYSCORE', P .. 'used', '-inf', CUTOFF, 'LIMIT', 0, 1)[1]
  if oldest then shrink(oldest, 200) end
  return oldest ~= nil
end

local function check_room(growth)
  local room = CAP - growth
  while growth > 0 and bytes() > room and sweep() do end
  return growth <= 0 or bytes() <= room
end

local function growth_of(tenant, kind, key, value)
  local stands = call('HSTRLEN', at_entry(tenant, kind .. ':' .. key), 'v')
  if stands == 0 and call('EXISTS', at_entry(tenant, kind .. ':' .. key)) == 0 then return #value + OVERHEAD end
  return OP == 'put' and math.max(0, #value - stands) or 0
end

-- What stood there before; nil: nothing.
local function insert(tenant, kind, key, name, value)
  local member = kind .. ':' .. key
  local entry, members = at_entry(tenant, member), at_members(tenant, name)
  local stands, is_known = call('HGET', entry, 'v'), call('EXISTS', at_holders(tenant, member)) == 1
  call('SADD', at_holders(tenant, member), name)
  call('HSETNX', members, member, stands and #stands or #value)
  if stands then
    call('HSET', entry, 'o', name)
    call('HINCRBY', entry, 'n', 1)
  else
    if not is_known then call('INCRBY', P .. 'bytes', #value + OVERHEAD) end
    call('HSET', entry, 'v', value, 'o', name, 'n', 1)
  end
  call('PEXPIRE', entry, LIFE)
  return stands
end

local DO = {}

-- tenant, kind, keys -> value or nil for each
function DO.get()
  local found, owners, tenant, kind = {}, {}, ARGV[FIRST], ARGV[FIRST + 1]
  for at = FIRST + 2, #ARGV do
    local entry = call('HMGET', at_entry(tenant, kind .. ':' .. ARGV[at]), 'v', 'o')
    found[#found + 1] = entry[1]
    if entry[2] then owners[entry[2]] = true end
  end
  for name in pairs(owners) do use(tenant, name, false) end
  return found
end

-- tenant, then kind, key, conversation, value of each -> what stood there before, or nil, for each
function DO.add()
  local tenant, growth, stood = ARGV[FIRST], 0, {}
  for at = FIRST + 1, #ARGV, 4 do growth = growth + growth_of(tenant, ARGV[at], ARGV[at + 1], ARGV[at + 3]) end
  if not check_room(growth) then return redis.error_reply('FULL') end
  for at = FIRST + 1, #ARGV, 4 do
    use(tenant, ARGV[at + 2], true)
    stood[#stood + 1] = insert(tenant, ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]) or false
  end
  return stood
end

-- as add, for one
function DO.put()
  local stood = DO.add()
  if stood.err or not stood[1] then return stood end
  local tenant, member, value = ARGV[FIRST], ARGV[FIRST + 1] .. ':' .. ARGV[FIRST + 2], ARGV[FIRST + 4]
  call('HSET', at_entry(tenant, member), 'v', value)
  call('INCRBY', P .. 'bytes', #value - #stood[1])
  for _, name in ipairs(call('SMEMBERS', at_holders(tenant, member))) do
    call('HSET', at_members(tenant, name), member, #value)
  end
  return {}
end

-- tenant, kind, keys
function DO.confirm()
  for at = FIRST + 2, #ARGV do
    local entry = at_entry(ARGV[FIRST], ARGV[FIRST + 1] .. ':' .. ARGV[at])
    if call('EXISTS', entry) == 1 then call('HSET', entry, 'k', 1) end
  end
  return {}
end

-- tenant, kind, keys
function DO.withdraw()
  local tenant = ARGV[FIRST]
  for at = FIRST + 2, #ARGV do
    local member = ARGV[FIRST + 1] .. ':' .. ARGV[at]
    local entry = call('HMGET', at_entry(tenant, member), 'v', 'k')
    if entry[1] and not entry[2] and call('HINCRBY', at_entry(tenant, member), 'n', -1) <= 0 then
      for _, name in ipairs(call('SMEMBERS', at_holders(tenant, member))) do
        call('HDEL', at_members(tenant, name), member)
      end
      erase(tenant, member, #entry[1])
    end
  end
  return {}
end

-- tenant, conversation -> KIND:KEY, bytes, 1 when confirmed, of each
function DO.held()
  local held, tenant = {}, ARGV[FIRST]
  local flat = call('HGETALL', at_members(tenant, ARGV[FIRST + 1]))
  for at = 1, #flat, 2 do
    held[#held + 1] = flat[at]
    held[#held + 1] = flat[at + 1]
    held[#held + 1] = call('HGET', at_entry(tenant, flat[at]), 'k') or '0'
  end
  return held
end

-- TENANT:CONVERSATION -> entries, bytes of their values, started
function DO.weigh()
  local tenant, name = string.match(ARGV[FIRST], '^([^:]*):(.*)$')
  local size, sizes = 0, call('HVALS', at_members(tenant, name))
  for _, one in ipairs(sizes) do size = size + tonumber(one) end
  return {#sizes, size, call('HGET', P .. 'started', ARGV[FIRST])}
end

-- TENANT:CONVERSATION, how many entries -> 1 when it is gone, 0 when it has to be called again
function DO.shrink() return {shrink(ARGV[FIRST], tonumber(ARGV[FIRST + 1])) and 1 or 0} end

function DO.size() return {} end

sweep()
local given = DO[OP]()
if given.err then return given end
return {bytes(), call('ZCARD', P .. 'used'), given}

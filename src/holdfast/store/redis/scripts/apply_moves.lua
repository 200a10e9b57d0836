-- Writes down what became of seats and places, for one organization. A key of the wrong type is not ours and gives way.
--
-- ARGV[1], packed: { lease_end_ms, now_unix, now_iso (without its Z), bitmap_ttl_s, moved, events }. After lease_end_ms by
-- this server's clock somebody else may be writing, and nothing is done (0: no lease). `moved`: seats have moved, so what
-- was counted is out of date; otherwise holds are put where they belong, and that is all.
-- An event: { event, runs }; a run: { kind, header, values }, of one of four kinds:
--   1 ended   values: hold, seat, ordinal, bit, version, …   (ordinal -1: leave the bit; hold '': no hold was there)
--   2 seats   header: held_until, score, expiry_unix, ttl_ms, created_at, source, hold_type, extended (2: or shortened,
--             so that an end which is written down and lies later is none)
--             values: hold, seat, user, ordinal, version, …
--   3 places  header: as of seats, and zone_no (-1: unknown)   values: hold, user, quantity, …
--   4 seats of holds that began together
--             header: as of seats, and where in a line the meta's key, the seat's key and what stands in that end
--             values: lines, ordinals, versions   (behind those three a line has the hold's member)

local lease_end, now_unix, now_iso, bitmap_ttl, moved, events = unpack(cmsgpack.unpack(ARGV[1]))

if lease_end > 0 then
  local time = redis.call('TIME')
  if time[1] * 1000 + time[2] / 1000 > lease_end then
    return 0
  end
end

local call, pcall = redis.call, redis.pcall
local NO_ID = ('0'):rep(36)

local function text_of(key)
  local found = pcall('GET', key)
  if type(found) == 'table' then
    call('DEL', key)
    return nil
  end
  return found or nil
end

local function fields_of(key, ...)
  local found = pcall('HMGET', key, ...)
  if found.err then
    call('DEL', key)
    return {}
  end
  return found
end

local function require_type(key, wanted)
  local found = call('TYPE', key).ok
  if found ~= wanted and found ~= 'none' then
    call('DEL', key)
  end
end

-- One command for many: what is gathered in a list is passed on together, for each command has its price.
local function call_with(list, name, key)
  if #list > 0 then
    if key then
      call(name, key, unpack(list))
    else
      call(name, unpack(list))
    end
  end
end

local function is_later(one, other) -- an empty end is none at all
  if one == other or other == '' then
    return false
  end
  return one == '' or one:sub(1, -2) > other:sub(1, -2)
end

-- Gathers what is to be removed of a hold, but for its seat's key, which may be another's by now.
local function gather(hold, seat, members, keys)
  local key = meta_key(hold)
  local meta = fields_of(key, 'seat_id', 'user_id', 'held_until')
  if meta[3] then
    members[#members + 1] = (seat ~= '' and seat or meta[1] or '') .. ':' .. hold .. ':' .. (meta[2] or '') .. ':' .. meta[3]
    keys[#keys + 1] = key
  end
  return seat ~= '' and seat or meta[1] or ''
end

-- Whether the hold in a seat's key is of this event and newer than the version. An older one is over: the seat moved on.
local function is_newer(event, holds_key, hold, seat, version)
  local meta = fields_of(meta_key(hold), 'event_id', 'version')
  if meta[1] ~= event then
    return false
  end
  if version > 0 and (tonumber(meta[2]) or 0) > version then
    return true
  end
  local members, keys = {}, { seat_key(seat) }
  gather(hold, seat, members, keys)
  call_with(members, 'ZREM', holds_key)
  call_with(keys, 'DEL')
  return false
end

local function set_bit(bits, ordinal, bit)
  local n = #bits
  bits[n + 1], bits[n + 2], bits[n + 3], bits[n + 4] = 'SET', 'u1', ordinal, bit
end

local function end_holds(event, holds_key, values, bits)
  local members, keys = {}, {}
  for i = 1, #values, 5 do
    local hold, seat, ordinal, bit, version = unpack(values, i, i + 4)
    if hold ~= '' then
      seat = gather(hold, seat, members, keys)
    end
    local held = seat ~= '' and text_of(seat_key(seat))
    local other = held and held:sub(1, 36)
    if other and other == hold then
      keys[#keys + 1] = seat_key(seat)
      other = nil
    end
    if ordinal >= 0 and not (other and is_newer(event, holds_key, other, seat, version)) then
      set_bit(bits, ordinal, bit)
    end
  end
  call_with(members, 'ZREM', holds_key)
  call_with(keys, 'DEL')
end

local function finish_meta(key, created_at, ttl_ms)
  if created_at ~= '' then
    call('HSET', key, 'created_at', created_at)
  end
  if ttl_ms > 0 then
    call('PEXPIRE', key, ttl_ms)
  else
    call('PERSIST', key)
  end
end

local function write_meta(key, seat, user, event, version, header)
  local held_until, _, _, ttl_ms, created_at, source, hold_type = unpack(header)
  require_type(key, 'hash')
  call('HSET', key, 'seat_id', seat, 'user_id', user, 'event_id', event, 'held_until', held_until,
    'status', 'active', 'source', source, 'hold_type', hold_type, 'version', version)
  finish_meta(key, created_at, ttl_ms)
end

local function begin_seat_holds(event, holds_key, header, values, bits)
  local held_until, score, expiry, ttl_ms, _, _, _, extended = unpack(header)
  local members = {}
  for i = 1, #values, 5 do
    local hold, seat, user, ordinal, version = unpack(values, i, i + 4)
    local place, key = seat_key(seat), meta_key(hold)
    local held = text_of(place)
    local other = held and held:sub(1, 36)
    local outdated = false
    if other == hold or extended > 0 then
      local was = fields_of(key, 'held_until', 'user_id')
      outdated = extended < 2 and version > 0 and was[1] and is_later(was[1], held_until)
      if was[1] and not outdated and (was[1] ~= held_until or was[2] ~= user) then
        call('ZREM', holds_key, seat .. ':' .. hold .. ':' .. (was[2] or '') .. ':' .. was[1])
      end
    end
    if other and other ~= hold and not outdated then
      outdated = is_newer(event, holds_key, other, seat, version)
    end
    if not outdated then
      local n = #members
      members[n + 1], members[n + 2] = score, seat .. ':' .. hold .. ':' .. user .. ':' .. held_until
      write_meta(key, seat, user, event, version, header)
      if ttl_ms > 0 then
        call('SET', place, hold .. ':' .. user .. ':' .. expiry, 'PX', ttl_ms)
      else
        call('SET', place, hold .. ':' .. user .. ':' .. expiry)
      end
      if ordinal >= 0 then
        set_bit(bits, ordinal, 1)
      end
    end
  end
  call_with(members, 'ZADD', holds_key)
end

local function set_all(pairs_of, ttl_ms)
  if #pairs_of == 0 then
    return
  end
  if ttl_ms <= 0 then
    call('MSET', unpack(pairs_of))
    return
  end
  local list = { unpack(pairs_of) }
  list[#list + 1], list[#list + 2] = 'PX', ttl_ms
  local done = pcall('MSETEX', #pairs_of / 2, unpack(list))
  if type(done) == 'table' then -- a server that does not know the command
    for i = 1, #pairs_of, 2 do
      call('SET', pairs_of[i], pairs_of[i + 1], 'PX', ttl_ms)
    end
  end
end

-- Almost always nobody has the seats and nothing is known of the holds, so little is asked. Their metas differ in three
-- fields: one is put together, and copied with its end.
local function begin_together(event, holds_key, header, values, bits)
  local _, score, _, ttl_ms, _, _, _, _, meta_end, place_end, value_end = unpack(header)
  local lines, ordinals, versions = unpack(values)
  local width = #lines / #ordinals
  local places, members, taken, rest = {}, {}, {}, {}
  for n = 1, #ordinals do
    local at = (n - 1) * width
    places[n] = lines:sub(at + meta_end + 1, at + place_end)
  end
  local holders = call('MGET', unpack(places))
  local common = versions[1]
  call('DEL', template_key)
  write_meta(template_key, NO_ID, NO_ID, event, common, header) -- as long as what takes their places
  for n, place in ipairs(places) do
    local at = (n - 1) * width
    local key, listed = lines:sub(at + 1, at + meta_end), at + value_end
    local seat, user = lines:sub(listed + 1, listed + 36), lines:sub(listed + 75, listed + 110)
    if holders[n] or call('COPY', template_key, key) == 0 then
      local m = #rest
      rest[m + 1], rest[m + 2], rest[m + 3] = lines:sub(listed + 38, listed + 73), seat, user
      rest[m + 4], rest[m + 5] = ordinals[n], versions[n]
    else
      local m = #members
      if versions[n] == common then
        call('HSET', key, 'seat_id', seat, 'user_id', user)
      else
        call('HSET', key, 'seat_id', seat, 'user_id', user, 'version', versions[n])
      end
      members[m + 1], members[m + 2] = score, lines:sub(listed + 1, at + width)
      taken[m + 1], taken[m + 2] = place, lines:sub(at + place_end + 1, listed)
      set_bit(bits, ordinals[n], 1)
    end
  end
  call('DEL', template_key)
  set_all(taken, ttl_ms)
  call_with(members, 'ZADD', holds_key)
  begin_seat_holds(event, holds_key, header, rest, bits)
end

local function begin_place_holds(event, header, values)
  local held_until, _, _, ttl_ms, created_at, source, hold_type, extended, zone_no = unpack(header)
  for i = 1, #values, 3 do
    local hold, user, quantity = unpack(values, i, i + 2)
    local key = meta_key(hold)
    local was = fields_of(key, 'held_until')[1]
    -- Without its zone only a hold that is known already can be continued.
    if not (extended < 2 and was and is_later(was, held_until)) and (was or zone_no >= 0) then
      call('HSET', key, 'quantity', quantity, 'user_id', user, 'event_id', event, 'held_until', held_until,
        'status', 'active', 'source', source, 'hold_type', hold_type)
      if zone_no >= 0 then
        call('HSET', key, 'zone_no', zone_no)
      end
      finish_meta(key, created_at, ttl_ms)
    end
  end
end

-- Holds that lapsed by themselves took their metas along, which would have told their members.
local function drop_lapsed(holds_key)
  call('ZREMRANGEBYSCORE', holds_key, '-inf', '(' .. now_unix)
  for _, member in ipairs(call('ZRANGEBYSCORE', holds_key, now_unix, now_unix)) do
    local held_until = member:match('^[^:]*:[^:]*:[^:]*:(.*)Z$')
    if not held_until or held_until <= now_iso then
      call('ZREM', holds_key, member)
    end
  end
end

for _, entry in ipairs(events) do
  local event, runs = unpack(entry)
  local holds_key, bits = seat_holds_key(event), {}
  require_type(holds_key, 'zset')
  for _, run in ipairs(runs) do
    local kind, header, values = unpack(run)
    if kind == 1 then
      end_holds(event, holds_key, values, bits)
    elseif kind == 2 then
      begin_seat_holds(event, holds_key, header, values, bits)
    elseif kind == 4 then
      begin_together(event, holds_key, header, values, bits)
    else
      begin_place_holds(event, header, values)
    end
  end
  if #bits > 0 then
    require_type(bitmap_key(event), 'string')
    call_with(bits, 'BITFIELD', bitmap_key(event))
    call('EXPIRE', bitmap_key(event), bitmap_ttl)
  end
  if moved == 1 then
    drop_lapsed(holds_key)
    call('DEL', occupancy_key(event))
  end
end
return 1

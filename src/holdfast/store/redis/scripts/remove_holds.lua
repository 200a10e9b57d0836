-- Removes holds exactly as they are described: what has been written over them since stays.
-- ARGV[1], packed: { event, hold, seat, user, held_until, … }; the seat is '' for places in a GA zone.
local values = cmsgpack.unpack(ARGV[1])

for i = 1, #values, 5 do
  local event, hold, seat, user, held_until = unpack(values, i, i + 4)
  local key = meta_key(hold)
  local meta = redis.pcall('HMGET', key, 'event_id', 'held_until')
  local unknown = meta.err or not meta[2]
  local described = not unknown and meta[1] == event and meta[2] == held_until
  if described or meta.err then
    redis.call('DEL', key)
  end
  if seat ~= '' then
    redis.pcall('ZREM', seat_holds_key(event), seat .. ':' .. hold .. ':' .. user .. ':' .. held_until)
    local held = redis.pcall('GET', seat_key(seat))
    if (described or unknown) and type(held) == 'string' and held:sub(1, 36) == hold then
      redis.call('DEL', seat_key(seat))
    end
  end
end
return 1

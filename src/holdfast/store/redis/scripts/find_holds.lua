-- What stands in the keys of these seats: for each the hold and its meta, or nothing.
-- ARGV[1], packed: the seats.
local found = {}
for i, seat in ipairs(cmsgpack.unpack(ARGV[1])) do
  local held = redis.pcall('GET', seat_key(seat))
  found[i] = false
  if type(held) == 'string' then
    local meta = redis.pcall('HMGET', meta_key(held:sub(1, 36)),
      'event_id', 'seat_id', 'user_id', 'held_until', 'created_at', 'source', 'hold_type', 'version')
    if not meta.err then
      found[i] = { held, meta }
    end
  end
end
return found

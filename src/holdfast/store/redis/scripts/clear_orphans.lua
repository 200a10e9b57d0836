-- Seats' keys that name a hold of which nothing else is known: both are written in one go and live equally long, so such a
-- key was not written by us. Answers how many there are.
-- ARGV[1], packed: whether to remove them, then the seats.
local asked = cmsgpack.unpack(ARGV[1])
local orphans = 0
for i = 2, #asked do
  local key = seat_key(asked[i])
  local held = redis.pcall('GET', key)
  if type(held) ~= 'string' then
    if type(held) == 'table' and held.err then
      orphans = orphans + 1
      if asked[1] then redis.call('DEL', key) end
    end
  elseif redis.call('EXISTS', meta_key(held:sub(1, 36))) == 0 then
    orphans = orphans + 1
    if asked[1] then redis.call('DEL', key) end
  end
end
return orphans

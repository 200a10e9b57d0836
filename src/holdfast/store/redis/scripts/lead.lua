-- Takes or keeps the writer's lease. KEYS: the writer, the cursor. ARGV: who asks, for how many milliseconds.
-- Answers { whether it is theirs, the cursor, when the lease ends by this server's clock (unix, ms) }.
local function text_of(key)
  local found = redis.pcall('GET', key)
  return type(found) == 'string' and found or nil
end

local holder = text_of(KEYS[1])
local mine = 0
if not holder or holder == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  mine = 1
end
local time = redis.call('TIME')
return { mine, text_of(KEYS[2]) or false, time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2] }

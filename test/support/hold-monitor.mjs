// Preloaded by tests: measures how long the event loop is held at a time. On SIGUSR2 it writes the
// longest hold in ms to the file in HOLD_FILE, and begins anew.
import { writeFileSync } from 'node:fs'

const INTERVAL_MS = 2

let longest = 0
let last = performance.now()
let used = process.threadCpuUsage()

// Time on the processor, so that other processes of the machine do not count. Work on other threads
// does not hold the loop.
setInterval(() => {
  const now = performance.now()
  const { user, system } = process.threadCpuUsage(used)
  longest = Math.max(longest, Math.min(now - last, (user + system) / 1_000))
  last = now
  used = process.threadCpuUsage()
}, INTERVAL_MS).unref()

process.on('SIGUSR2', () => {
  writeFileSync(process.env.HOLD_FILE, String(longest))
  longest = 0
})

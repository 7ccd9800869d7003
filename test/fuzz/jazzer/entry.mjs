// Jazzer.js calls `fuzz` of this module, as it loads no TypeScript by name. EV_FUZZ_TARGET is the
// path of the target. With EV_FUZZ_SELECTED each input that reaches code which neither the seeds nor
// an earlier input reached is appended to that file, one per line in base64.
import { appendFileSync } from 'node:fs'

const { EV_FUZZ_TARGET, EV_FUZZ_SELECTED } = process.env
const { target } = await import(EV_FUZZ_TARGET)

const reached = new Set()
if (EV_FUZZ_SELECTED !== undefined) {
  for await (const seed of target.seeds()) {
    await target.fuzz(Buffer.from(seed))
    markReached()
  }
}

/** Counters are reset before each input. Returns whether one is new. */
function markReached() {
  const before = reached.size
  const { coverageMap, moduleCounters } = globalThis.Fuzzer.coverageTracker
  for (const [i, counters] of [coverageMap, ...moduleCounters].entries()) {
    for (let at = counters.findIndex(count => count > 0); at >= 0; at = findNext(counters, at)) {
      reached.add(`${i} ${at}`)
    }
  }
  return reached.size > before
}

function findNext(counters, after) {
  for (let at = after + 1; at < counters.length; at += 1) if (counters[at] > 0) return at
  return -1
}

function select(bytes) {
  if (markReached()) appendFileSync(EV_FUZZ_SELECTED, `${bytes.toString('base64')}\n`)
}

const isAsync = target.fuzz.constructor.name === 'AsyncFunction'
export const fuzz =
  EV_FUZZ_SELECTED === undefined
    ? bytes => target.fuzz(bytes)
    : isAsync
      ? bytes => target.fuzz(bytes).then(() => select(bytes))
      : bytes => {
          target.fuzz(bytes)
          select(bytes)
        }

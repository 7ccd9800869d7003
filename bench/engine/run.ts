// One measured process: reads an errand from standard input, says in one line of JSON what it cost.
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { exists } from './scenario.ts'
import type { Errand, Run, Told } from './scenario-run.ts'

const errand: Errand = JSON.parse(await text(process.stdin))
const told = new Map<string, (boolean | null)[]>()
let lastToldAt = 0
const ask = await way(errand)
const busyBeforeMs = busyMs()
const startedAt = performance.now()
// When the last connection is closed: farewells cost too, though nobody waits for them.
process.once('beforeExit', () => process.stdout.write(`${JSON.stringify(report())}\n`))
await ask((address, deliverable) => {
  told.set(address, [...(told.get(address) ?? []), deliverable])
  lastToldAt = performance.now()
})

function report(): Run {
  const results = errand.addresses.map(address => ({ address, all: told.get(address) ?? [] }))
  return {
    seconds: (lastToldAt - startedAt) / 1_000,
    cpuMs: busyMs() - busyBeforeMs,
    peakRssMiB: peakRssMiB(),
    missing: results.filter(({ all }) => all.length === 0).length,
    repeated: results.filter(({ all }) => all.length > 1).length,
    wrong: results.filter(({ address, all }) => all.some(one => one !== exists(address))).length,
  }
}

/** Loaded before the clock starts, and only the one that is measured. */
async function way(errand: Errand): Promise<(tell: Told) => Promise<void>> {
  if (errand.way === 'ours') {
    const { askEngine } = await import('./ours.ts')
    return tell => askEngine(errand, tell)
  }
  const { askNaively } = await import('./naive.ts')
  return tell => askNaively(errand, errand.way === 'naive', tell)
}

/** User and system time of this process so far. */
function busyMs(): number {
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  return (userCPUTime + systemCPUTime) / 1_000
}

/** Linux hands the peak of `getrusage` down from parent to child; the kernel's own figure is of this process alone. */
function peakRssMiB(): number {
  try {
    const [, kib] = /^VmHWM:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    if (kib !== undefined) return Number(kib) / 1_024
  } catch {
    // No Linux.
  }
  return process.resourceUsage().maxRSS / 1_024
}

// One measured process: reads an errand from standard input, says in one line of JSON what it cost.
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { Errand, Run, Told } from './errand.ts'
import { exists } from './scenario.ts'

const errand: Errand = JSON.parse(await text(process.stdin))
const told = new Map<string, (boolean | null)[]>()
const ask = await way(errand)
const cpuBefore = process.resourceUsage()
const begunAt = performance.now()
await ask((address, deliverable) => {
  told.set(address, [...(told.get(address) ?? []), deliverable])
})
const seconds = (performance.now() - begunAt) / 1_000
const cpuAfter = process.resourceUsage()
const results = errand.addresses.map(address => ({ address, all: told.get(address) ?? [] }))
const run: Run = {
  seconds,
  cpuMs: (busyMicroseconds(cpuAfter) - busyMicroseconds(cpuBefore)) / 1_000,
  peakRssMiB: peakRssMiB(),
  missing: results.filter(({ all }) => all.length === 0).length,
  repeated: results.filter(({ all }) => all.length > 1).length,
  wrong: results.filter(({ address, all }) => all.some(one => one !== exists(address))).length,
}
process.stdout.write(`${JSON.stringify(run)}\n`)

/** Loaded before the clock starts, and only the one that is measured. */
async function way(errand: Errand): Promise<(tell: Told) => Promise<void>> {
  if (errand.way === 'ours') {
    const { askEngine } = await import('./ours.ts')
    return tell => askEngine(errand, tell)
  }
  const { askNaively } = await import('./naive.ts')
  return tell => askNaively(errand, errand.way === 'naive', tell)
}

function busyMicroseconds({ userCPUTime, systemCPUTime }: NodeJS.ResourceUsage): number {
  return userCPUTime + systemCPUTime
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

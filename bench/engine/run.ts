// The measured process. Reads its options from stdin and prints the measurements as JSON.
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { OnResult, Run, RunOptions } from './run-options.ts'
import { exists } from './scenario.ts'

const options: RunOptions = JSON.parse(await text(process.stdin))
const resultsByAddress = new Map<string, (boolean | null)[]>()
let lastResultAt = 0
const verify = await loadVariant(options)
const cpuBeforeMs = getCpuMs()
const startedAt = performance.now()
// Reports when the last connection is closed, so that the CPU time includes QUIT.
process.once('beforeExit', () => process.stdout.write(`${JSON.stringify(report())}\n`))
await verify((address, deliverable) => {
  resultsByAddress.set(address, [...(resultsByAddress.get(address) ?? []), deliverable])
  lastResultAt = performance.now()
})

function report(): Run {
  const results = options.addresses.map(address => ({
    address,
    all: resultsByAddress.get(address) ?? [],
  }))
  return {
    seconds: (lastResultAt - startedAt) / 1_000,
    cpuMs: getCpuMs() - cpuBeforeMs,
    peakRssMiB: peakRssMiB(),
    missing: results.filter(({ all }) => all.length === 0).length,
    repeated: results.filter(({ all }) => all.length > 1).length,
    wrong: results.filter(({ address, all }) => all.some(one => one !== exists(address))).length,
  }
}

/** Loads only the measured variant, before the clock starts. */
async function loadVariant(options: RunOptions): Promise<(onResult: OnResult) => Promise<void>> {
  if (options.variant === 'ours') {
    const { verifyWithEngine } = await import('./ours.ts')
    return onResult => verifyWithEngine(options, onResult)
  }
  const { verifyNaively } = await import('./naive.ts')
  return onResult => verifyNaively(options, options.variant === 'naive', onResult)
}

/** Returns the user and system time of this process, in ms. */
function getCpuMs(): number {
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  return (userCPUTime + systemCPUTime) / 1_000
}

/**
 * Returns the peak memory from the kernel, as a child process inherits the peak of `getrusage` from
 * its parent on Linux.
 */
function peakRssMiB(): number {
  try {
    const [, kib] = /^VmHWM:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    if (kib !== undefined) return Number(kib) / 1_024
  } catch {
    // Not on Linux.
  }
  return process.resourceUsage().maxRSS / 1_024
}

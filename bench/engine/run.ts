// The measured process. Reads its options from stdin and prints the measurements as JSON.
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { OnResult, Run, RunOptions } from './run-options.ts'
import { findFaults } from './scenario.ts'

const options: RunOptions = JSON.parse(await text(process.stdin))
const results: [address: string, deliverable: boolean | null][] = []
let lastResultAt = 0
const verify = await loadProgram(options)
const cpuBeforeMs = getCpuMs()
const startedAt = performance.now()
// Reports when the last connection is closed, so that the CPU time includes QUIT.
process.once('beforeExit', () => process.stdout.write(`${JSON.stringify(report())}\n`))
await verify((address, deliverable) => {
  results.push([address, deliverable])
  lastResultAt = performance.now()
})

function report(): Run {
  return {
    seconds: (lastResultAt - startedAt) / 1_000,
    cpuMs: getCpuMs() - cpuBeforeMs,
    peakRssMiB: peakRssMiB(),
    ...findFaults(options.addresses, results),
  }
}

/** Loads only the measured program, before the clock starts. */
async function loadProgram(options: RunOptions): Promise<(onResult: OnResult) => Promise<void>> {
  if (options.program === 'engine') {
    const { verifyWithEngine } = await import('./ours.ts')
    return onResult => verifyWithEngine(options, onResult)
  }
  const { BareProbe } = await import('./bare-probe.ts')
  return onResult => new BareProbe(options, onResult).run()
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

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { cpuMsOfExited, watchPeakRss } from './process-usage.ts'
import type { Run, RunOptions } from './run-options.ts'
import { DELIVERABLE_BY_REASON, findFaults, LIMITS } from './scenario.ts'

const EV = join(import.meta.dirname, '../../bin/ev.js')

/** Runs `ev bulk` over a list on disk, from the start of the process to its exit. */
export async function runBulk({ addresses, dnsAddress, smtpPort }: RunOptions): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'ev-bulk-'))
  const [list, output] = [join(folder, 'list.csv'), join(folder, 'out.csv')]
  const settings = {
    'data-dir': join(folder, 'data'),
    dns: dnsAddress,
    'smtp-port': smtpPort,
    'allow-ranges': '127.0.0.0/8',
    helo: 'probe.example.com',
    concurrency: LIMITS.concurrency,
    'sessions-per-operator': LIMITS.sessionsPerHost,
    'sessions-per-second': LIMITS.sessionsPerSecond,
    'recipients-per-session': LIMITS.recipientsPerSession,
    cache: 'off',
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
  try {
    writeFileSync(list, ['email', ...addresses, ''].join('\n'))
    const cpuBeforeMs = cpuMsOfExited()
    const startedAt = performance.now()
    const child = spawn(
      process.execPath,
      [EV, 'bulk', list, '-o', output, '--quiet', '--special-domains', ...flags],
      // No settings of the user's environment.
      { stdio: ['ignore', 'inherit', 'inherit'], env: { PATH: process.env.PATH, HOME: folder } },
    )
    const peakRss = watchPeakRss(child)
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`ev bulk ended with ${code}.`)
    return {
      seconds: (performance.now() - startedAt) / 1_000,
      cpuMs: cpuMsOfExited() - cpuBeforeMs,
      peakRssMiB: peakRss.bytes / 2 ** 20,
      ...findFaults(addresses, readResults(output)),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function readResults(file: string): [address: string, deliverable: boolean | null][] {
  const rows: { email: string; ev_reason: string }[] = parse(readFileSync(file), { columns: true })
  return rows.map(row => [row.email, DELIVERABLE_BY_REASON[row.ev_reason] ?? null])
}

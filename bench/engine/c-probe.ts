import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Run, RunOptions } from './run-options.ts'
import { findFaults, LIMITS } from './scenario.ts'

const SOURCE = join(import.meta.dirname, 'bare-probe.c')

/** The bare probe in C, compiled for this machine. */
export type CProbe = {
  run(options: RunOptions): Promise<Run>
  /** Deletes the program. */
  close(): void
}

/** Compiles the bare probe in C; returns null without a C compiler or outside of Linux. */
export function compileCProbe(): CProbe | null {
  if (process.platform !== 'linux' || spawnSync('cc', ['--version']).status !== 0) return null
  const folder = mkdtempSync(join(tmpdir(), 'ev-bare-probe-'))
  const program = join(folder, 'bare-probe')
  const { status, stderr } = spawnSync('cc', ['-O2', '-o', program, SOURCE], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`cc does not compile ${SOURCE}:\n${stderr}`)
  return {
    run: options => run(program, options),
    close: () => rmSync(folder, { recursive: true }),
  }
}

async function run(program: string, { addresses, dnsAddress, smtpPort }: RunOptions): Promise<Run> {
  const args = [...dnsAddress.split(':'), smtpPort, LIMITS.concurrency].map(String)
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(`${addresses.join('\n')}\n`)
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  if (code !== 0) throw new Error(`The bare probe in C ended with ${code}.`)
  const lines = output.trimEnd().split('\n')
  const [seconds = 0, cpuMs = 0, peakKib = 0] = lines.pop()?.split(' ').map(Number) ?? []
  const results = lines.map(line => [line.slice(2), EXISTS[line[0] ?? ''] ?? null] as const)
  return { seconds, cpuMs, peakRssMiB: peakKib / 1_024, ...findFaults(addresses, results) }
}

const EXISTS: Readonly<Record<string, boolean>> = { 1: true, 0: false }

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { EvError } from '../platform/error.ts'
import { countersFromJson, type SimulatorCounters } from './counters.ts'
import type { Scenario } from './scenario.ts'

/** A mail world in a process of its own, so that its work is not counted as ours. */
export type SimulatorProcess = {
  readonly dnsAddress: string
  readonly smtpPort: number
  readonly pid: number
  counters(): Promise<SimulatorCounters>
  reset(): Promise<void>
  /** Ends the process; twice does no harm. */
  close(): Promise<void>
}

/** Starts a world from a JSON file; throws `bad_input` or `io` with what the world said on its way out. */
export async function startSimulatorProcess(scenarioFile: string): Promise<SimulatorProcess> {
  // Beside this file: main.ts in src, main.js in dist.
  const main = fileURLToPath(import.meta.resolve(`./main${import.meta.url.slice(-3)}`))
  const child = spawn(process.execPath, [main, scenarioFile], { stdio: ['pipe', 'pipe', 'pipe'] })
  const ended = once(child, 'exit')
  const ask = requester(child)
  const { dnsAddress, smtpPort } = JSON.parse(await ask(null))
  return {
    dnsAddress,
    smtpPort,
    pid: child.pid ?? 0,
    counters: async () => countersFromJson(await ask('counters')),
    reset: async () => void (await ask('reset')),
    async close() {
      child.stdin?.end()
      await ended
    },
  }
}

/** Starts a world from a scenario; throws as `startWorldProcess` does. */
export async function startScenarioProcess(scenario: Scenario): Promise<SimulatorProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'ev-world-'))
  try {
    const file = join(folder, 'world.json')
    writeFileSync(file, JSON.stringify(scenario))
    return await startSimulatorProcess(file)
  } finally {
    // The child has read it.
    rmSync(folder, { recursive: true })
  }
}

/** One line asked, one line answered, in order; with nothing asked, the next line. */
function requester(child: ChildProcess): (question: string | null) => Promise<string> {
  const waiting: { resolve(line: string): void; reject(error: unknown): void }[] = []
  let complaint = ''
  let gone = false
  const lost = () => new EvError('io', `The mail world has ended. ${complaint}`.trim())
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-COMPLAINT_MAX)
  })
  if (child.stdout) {
    createInterface({ input: child.stdout }).on('line', line => waiting.shift()?.resolve(line))
  }
  child.stdin?.on('error', () => {}) // It is gone: 'close' tells the askers.
  child.on('error', () => child.emit('close'))
  child.on('close', () => {
    gone = true
    for (const { reject } of waiting.splice(0)) reject(lost())
  })
  return question =>
    new Promise((resolve, reject) => {
      if (gone) return reject(lost())
      waiting.push({ resolve, reject })
      if (question !== null) child.stdin?.write(`${question}\n`)
    })
}

/** Characters kept of what a failing world says. */
const COMPLAINT_MAX = 2_000

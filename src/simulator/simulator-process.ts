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

/** A simulator in its own process, which keeps its CPU and memory out of measurements. */
export type SimulatorProcess = {
  readonly dnsAddress: string
  readonly smtpPort: number
  readonly pid: number
  counters(): Promise<SimulatorCounters>
  reset(): Promise<void>
  /** Stops the process; can be called twice. */
  close(): Promise<void>
}

/** Starts the simulator from a JSON file; throws `bad_input` or `io` with its error output. */
export async function startSimulatorProcess(scenarioFile: string): Promise<SimulatorProcess> {
  // The entry point beside this file: main.ts in src, main.js in dist.
  const main = fileURLToPath(new URL(`./main${import.meta.url.slice(-3)}`, import.meta.url))
  const child = spawn(process.execPath, [main, scenarioFile], { stdio: ['pipe', 'pipe', 'pipe'] })
  const exited = once(child, 'exit')
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
      await exited
    },
  }
}

/** Starts the simulator from a scenario; throws as `startSimulatorProcess` does. */
export async function startScenarioProcess(scenario: Scenario): Promise<SimulatorProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'ev-simulator-'))
  try {
    const file = join(folder, 'scenario.json')
    writeFileSync(file, JSON.stringify(scenario))
    return await startSimulatorProcess(file)
  } finally {
    // The child has already read the file.
    rmSync(folder, { recursive: true })
  }
}

/**
 * Creates a function that sends a line and returns the line of output that answers it, in order;
 * null sends nothing and returns the next line.
 */
function requester(child: ChildProcess): (command: string | null) => Promise<string> {
  const pending: { resolve(line: string): void; reject(error: unknown): void }[] = []
  let errorOutput = ''
  let hasExited = false
  const exitError = () => new EvError('io', `The simulator has exited. ${errorOutput}`.trim())
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errorOutput = (errorOutput + text).slice(-ERROR_OUTPUT_MAX)
  })
  if (child.stdout) {
    createInterface({ input: child.stdout }).on('line', line => pending.shift()?.resolve(line))
  }
  // The 'close' event rejects pending requests.
  child.stdin?.on('error', () => {})
  child.on('error', () => child.emit('close'))
  child.on('close', () => {
    hasExited = true
    for (const { reject } of pending.splice(0)) reject(exitError())
  })
  return command =>
    new Promise((resolve, reject) => {
      if (hasExited) return reject(exitError())
      pending.push({ resolve, reject })
      if (command !== null) child.stdin?.write(`${command}\n`)
    })
}

/** Characters of error output kept for the error message. */
const ERROR_OUTPUT_MAX = 2_000

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { SimulatorCounters } from '../../src/simulator/counters.ts'
import {
  type SimulatorProcess,
  startScenarioProcess,
} from '../../src/simulator/simulator-process.ts'
import type { Run, RunOptions, Variant } from './run-options.ts'
import { addressesOf, type Shape, scenarioFor } from './scenario.ts'

/** One run of a variant over a shape of list, with the counters of the simulator. */
export type Measured = Run & {
  readonly variant: Variant
  readonly addresses: number
  readonly counters: SimulatorCounters
  /** CPU time of the simulator. Near 1,000 ms per second, the simulator is the bottleneck. */
  readonly simulatorCpuMs: number
}

/** A simulator with the scenario of a shape, for runs one after another. */
export class TestBed {
  readonly #shape: Shape
  readonly #simulator: SimulatorProcess

  private constructor(shape: Shape, simulator: SimulatorProcess) {
    this.#shape = shape
    this.#simulator = simulator
  }

  static async open(shape: Shape, roundTripMs: number): Promise<TestBed> {
    return new TestBed(shape, await startScenarioProcess(scenarioFor(shape, roundTripMs)))
  }

  /** Measures a variant in a separate process over the first `count` addresses. */
  async measure(variant: Variant, count: number): Promise<Measured> {
    const { sessionsPerHost, recipientsPerSession, concurrency } = this.#shape
    const { dnsAddress, smtpPort, pid } = this.#simulator
    const pressure = { sessionsPerHost, recipientsPerSession, concurrency }
    const addresses = addressesOf(this.#shape).slice(0, count)
    await this.#simulator.reset()
    const simulatorBefore = cpuMsOf(pid)
    const run = await runInProcess({ variant, addresses, dnsAddress, smtpPort, ...pressure })
    const simulatorCpuMs = cpuMsOf(pid) - simulatorBefore
    return {
      ...run,
      variant,
      addresses: count,
      simulatorCpuMs,
      counters: await this.#simulator.counters(),
    }
  }

  close(): Promise<void> {
    return this.#simulator.close()
  }
}

async function runInProcess(options: RunOptions): Promise<Run> {
  const program = join(import.meta.dirname, 'run.ts')
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(JSON.stringify(options))
  const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  if (code !== 0) throw new Error(`The measured process ended with ${code}.`)
  return JSON.parse(stdout)
}

/** Returns the user and system time of a process, in ms; 0 where the system does not report it. */
function cpuMsOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK
  } catch {
    return 0
  }
}

/** The clock tick of Linux is 10 ms on all platforms of Node. */
const MS_PER_TICK = 10

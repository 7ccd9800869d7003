import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { SimulatorCounters } from '../../src/simulator/counters.ts'
import {
  type SimulatorProcess,
  startScenarioProcess,
} from '../../src/simulator/simulator-process.ts'
import { runBulk } from './bulk-run.ts'
import type { CProbe } from './c-probe.ts'
import { cpuMsOf } from './process-usage.ts'
import type { Program, Run, RunOptions } from './run-options.ts'
import { addressesOf, type Shape, scenarioFor } from './scenario.ts'

/** One run of a program over a shape of list, with the counters of the simulator. */
export type Measured = Run & {
  readonly program: Program
  readonly addresses: number
  readonly counters: SimulatorCounters
  /** CPU time of the simulator. Near 1,000 ms per second, the simulator is the bottleneck. */
  readonly simulatorCpuMs: number
}

/** A simulator with the scenario of a shape, for runs one after another. */
export class TestBed {
  readonly #addresses: readonly string[]
  readonly #simulator: SimulatorProcess
  readonly #cProbe: CProbe | null

  private constructor(shape: Shape, simulator: SimulatorProcess, cProbe: CProbe | null) {
    this.#addresses = addressesOf(shape)
    this.#simulator = simulator
    this.#cProbe = cProbe
  }

  /** `cProbe` is needed only to measure it. */
  static async open(
    shape: Shape,
    roundTripMs: number,
    cProbe: CProbe | null = null,
  ): Promise<TestBed> {
    const simulator = await startScenarioProcess(scenarioFor(shape, roundTripMs))
    return new TestBed(shape, simulator, cProbe)
  }

  /** Measures a program in a separate process over the whole list. */
  async measure(program: Program): Promise<Measured> {
    const { dnsAddress, smtpPort, pid } = this.#simulator
    const addresses = this.#addresses
    const options = { program, addresses, dnsAddress, smtpPort }
    await this.#simulator.reset()
    const simulatorBeforeMs = cpuMsOf(pid)
    const run = await this.#run(options)
    const simulatorCpuMs = cpuMsOf(pid) - simulatorBeforeMs
    const counters = await this.#simulator.counters()
    return { ...run, program, addresses: addresses.length, simulatorCpuMs, counters }
  }

  #run(options: RunOptions): Promise<Run> {
    if (options.program === 'bulk') return runBulk(options)
    if (options.program !== 'c') return runInProcess(options)
    if (this.#cProbe === null) throw new Error('The bare probe in C is not compiled.')
    return this.#cProbe.run(options)
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

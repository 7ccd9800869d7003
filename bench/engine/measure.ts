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
import { addressesOf, type Shape, worldOf } from './scenario.ts'
import type { Errand, Run, Way } from './scenario-run.ts'

/** One run of one way over one shape of list, with what the world saw of it. */
export type Measured = Run & {
  readonly way: Way
  readonly addresses: number
  readonly seen: SimulatorCounters
  /** What the world itself cost meanwhile: near 1,000 a second it is the world that is measured. */
  readonly worldCpuMs: number
}

/** A shape of list in its own world, where runs are measured one after another. */
export class Track {
  readonly #shape: Shape
  readonly #world: SimulatorProcess

  private constructor(shape: Shape, world: SimulatorProcess) {
    this.#shape = shape
    this.#world = world
  }

  static async open(shape: Shape, roundTripMs: number): Promise<Track> {
    return new Track(shape, await startScenarioProcess(worldOf(shape, roundTripMs)))
  }

  /** Measures the way in a process of its own, over `count` addresses of the list. */
  async measure(way: Way, count: number): Promise<Measured> {
    const { sessionsPerHost, recipientsPerSession, concurrency } = this.#shape
    const { dnsAddress, smtpPort, pid } = this.#world
    const pressure = { sessionsPerHost, recipientsPerSession, concurrency }
    const addresses = addressesOf(this.#shape).slice(0, count)
    await this.#world.reset()
    const worldBefore = cpuMsOf(pid)
    const run = await runAlone({ way, addresses, dnsAddress, smtpPort, ...pressure })
    const worldCpuMs = cpuMsOf(pid) - worldBefore
    return { ...run, way, addresses: count, worldCpuMs, seen: await this.#world.counters() }
  }

  close(): Promise<void> {
    return this.#world.close()
  }
}

async function runAlone(errand: Errand): Promise<Run> {
  const program = join(import.meta.dirname, 'run.ts')
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(JSON.stringify(errand))
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  if (code !== 0) throw new Error(`The measured process ended with ${code}.`)
  return JSON.parse(said)
}

/** User and system time of another process; 0 where the system does not tell. */
function cpuMsOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK
  } catch {
    return 0
  }
}

/** Linux counts in hundredths of a second on all machines that Node runs on. */
const MS_PER_TICK = 10

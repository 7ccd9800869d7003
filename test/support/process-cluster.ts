import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { EvClient } from '../../src/client/client.ts'
import type { Scenario } from '../../src/simulator/scenario.ts'
import {
  type SimulatorProcess,
  startScenarioProcess,
} from '../../src/simulator/simulator-process.ts'
import { ask } from './postgres-server.ts'

/** This version of ev. During development, EV_SOURCES=1 runs src/ without a build. */
export const PROGRAM = join(
  import.meta.dirname,
  process.env.EV_SOURCES === '1' ? '../../src/cli/main.ts' : '../../bin/ev.js',
)

export type Role = 'serve' | 'worker'

/** A process of ev. */
export type Unit = {
  readonly role: Role
  readonly name: string
  readonly child: ChildProcess
  /** Returns its log so far. */
  log(): string
  /** Returns the URL of a server from its log; empty before it listens. */
  url(): string
  /** Sends a signal and resolves when the process has ended. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

export type ProcessClusterOptions = {
  readonly scenario: Scenario
  /** Options of all processes. */
  readonly args?: readonly string[]
  /** Options of servers only. */
  readonly serverArgs?: readonly string[]
  /** Content of the config file of all processes. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Returns the program of a process by its name; default: this version of ev. */
  readonly programOf?: (name: string) => string
}

/** Servers and workers of ev that share one database and one simulator. */
export class ProcessCluster {
  readonly databaseUrl: string
  readonly world: SimulatorProcess
  readonly home: string
  readonly #options: ProcessClusterOptions
  readonly #units = new Set<Unit>()
  #key = ''

  private constructor(
    databaseUrl: string,
    world: SimulatorProcess,
    home: string,
    options: ProcessClusterOptions,
  ) {
    this.databaseUrl = databaseUrl
    this.world = world
    this.home = home
    this.#options = options
  }

  /** With an empty URL each server has its own SQLite file, as without a cluster. */
  static async open(databaseUrl: string, options: ProcessClusterOptions): Promise<ProcessCluster> {
    const { scenario, config = {} } = options
    const home = mkdtempSync(join(tmpdir(), 'ev-cluster-'))
    writeFileSync(join(home, 'ev.config.json'), JSON.stringify(config))
    return new ProcessCluster(databaseUrl, await startScenarioProcess(scenario), home, options)
  }

  /** The first API key, printed by the server that started first. */
  get key(): string {
    return this.#key
  }

  get units(): readonly Unit[] {
    return [...this.#units]
  }

  /** Starts a process without waiting for it. */
  begin(
    role: Role,
    name: string,
    args: readonly string[] = [],
    databaseUrl = this.databaseUrl,
  ): Unit {
    const { args: common = [], serverArgs = [], programOf = () => PROGRAM } = this.#options
    const listen = ['--listen', '127.0.0.1:0', '--base-url', BASE_URL]
    const own = role === 'serve' ? [...listen, ...serverArgs] : []
    const data = join(this.home, name)
    mkdirSync(data, { recursive: true })
    const all = [role, '--data-dir', data, ...own, ...this.#simulatorArgs(), ...common, ...args]
    const child = spawn(process.execPath, [programOf(name), ...all], {
      cwd: this.home,
      env: {
        PATH: process.env.PATH,
        HOME: this.home,
        EV_SECRET: SECRET,
        ...(databaseUrl === '' ? {} : { EV_DATABASE: databaseUrl }),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const output = { log: '' }
    child.stdout.setEncoding('utf8').on('data', text => {
      if (/^ev_live_/.test(text)) this.#key = String(text).trim()
    })
    child.stderr.setEncoding('utf8').on('data', text => {
      output.log = (output.log + text).slice(-LOG_MAX)
    })
    const ended = once(child, 'close')
    const unit: Unit = {
      role,
      name,
      child,
      log: () => output.log,
      url: () => /listening on (\S+?)"/.exec(output.log)?.[1] ?? '',
      end: async signal => {
        child.kill(signal)
        return (await ended)[0] as number | null
      },
    }
    this.#units.add(unit)
    void ended.then(() => this.#units.delete(unit))
    return unit
  }

  /** Starts a process and waits until it is ready. */
  async start(
    role: Role,
    name: string,
    args: readonly string[] = [],
    databaseUrl?: string,
  ): Promise<Unit> {
    const members = role === 'worker' ? await this.#members() : 0
    const unit = this.begin(role, name, args, databaseUrl)
    const isUp = async () =>
      role === 'serve'
        ? unit.log().includes('API documentation:') && this.#key !== ''
        : (await this.#members()) > members
    while (!(await isUp())) {
      if (unit.child.exitCode !== null) throw new Error(`ev ${role} ended: ${unit.log()}`)
      await wait(50)
    }
    return unit
  }

  client(server: Unit): EvClient {
    return new EvClient({ apiKey: this.#key, baseUrl: server.url() })
  }

  /** Executes a statement in the shared database. */
  ask<Row extends Record<string, unknown>>(
    statement: string,
    values: unknown[] = [],
  ): Promise<Row[]> {
    return ask<Row>(this.databaseUrl, statement, values)
  }

  /** Ends all processes, and returns the logs of those that failed. */
  async close(): Promise<string[]> {
    const faults: string[] = []
    await Promise.all(
      this.units.map(async unit => {
        const code = await unit.end('SIGTERM')
        // A process that has not started yet is terminated by the signal itself.
        const hasStarted = unit.log() !== ''
        if (code !== 0 && hasStarted) faults.push(`${unit.name} ended with ${code}: ${unit.log()}`)
      }),
    )
    await this.world.close()
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 })
    return faults
  }

  async #members(): Promise<number> {
    const [row] = await this.ask<{ count: string }>('select count(*) as count from member')
    return Number(row?.count ?? 0)
  }

  #simulatorArgs(): string[] {
    const { dnsAddress, smtpPort } = this.world
    return [
      ...['--dns', dnsAddress, '--smtp-port', `${smtpPort}`, '--allow-ranges', '127.0.0.0/8'],
      ...['--helo', 'probe.example.com', '--special-domains', '--log-format', 'json'],
    ]
  }
}

const BASE_URL = 'https://ev.example.com'
/** A secret of sufficient length. */
const SECRET = 'f'.repeat(64)
const LOG_MAX = 200_000

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from './free-port.ts'
import { waitUntil } from './wait.ts'

type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

type TerminalOptions = {
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
}

/**
 * The terminal of a person who follows the documentation: variables that were exported and keys
 * that were printed are there for later commands, and servers run until it is closed. The ports of
 * the documentation are replaced by free ones.
 */
export class Terminal {
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
  readonly #ports: ReadonlyMap<string, number>
  /** The key that was printed last, by its prefix. */
  readonly #keys = new Map<string, string>()
  /** Commands that set the exported variables of the last command. */
  #exports = ''
  readonly #children: ChildProcess[] = []

  private constructor(options: TerminalOptions, ports: ReadonlyMap<string, number>) {
    this.folder = options.folder
    this.environment = { ...options.environment, EV_LISTEN: `127.0.0.1:${ports.get('8080')}` }
    this.#ports = ports
  }

  static async open(options: TerminalOptions): Promise<Terminal> {
    const ports = new Map<string, number>()
    for (const port of DOCUMENTED_PORTS) ports.set(port, await freePort())
    return new Terminal(options, ports)
  }

  /** The secret API key that was printed last. */
  get key(): string {
    return this.#keys.get('ev_live_') ?? ''
  }

  /** Replaces the ports and the placeholders of a text by those of this terminal. */
  withValues(text: string): string {
    let replaced = text
    for (const [port, free] of this.#ports)
      replaced = replaced.replaceAll(new RegExp(`\\b${port}\\b`, 'g'), String(free))
    for (const [prefix, key] of this.#keys) replaced = replaced.replaceAll(`${prefix}…`, key)
    return replaced
  }

  /** Runs commands to their end. */
  async run(text: string): Promise<Ran> {
    const child = this.#spawn(`${this.#exports}\n${this.withValues(text)}\nexport -p >&3`)
    const output = this.#collect(child)
    let exports = ''
    child.stdio[3]?.on('data', (chunk: Buffer) => {
      exports += chunk
    })
    const [code] = await once(child, 'close')
    if (code === 0) this.#exports = exports
    return { code, ...output }
  }

  /** Starts a server, and resolves when it has printed that it is ready. */
  async start(text: string, ready: RegExp): Promise<void> {
    const child = this.#spawn(this.withValues(text))
    const output = this.#collect(child)
    await waitUntil(() => {
      if (child.exitCode !== null) throw new Error(`${text} ended: ${output.stderr}`)
      return ready.test(output.stdout + output.stderr)
    })
  }

  /** Stops the servers, and commands that have not ended, with all their processes. */
  async close(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) continue
      const closed = once(child, 'close')
      process.kill(-child.pid, 'SIGTERM')
      await closed
    }
  }

  #spawn(script: string): ChildProcess {
    const child = spawn('bash', ['--norc', '-e', '-o', 'pipefail', '-c', script], {
      cwd: this.folder,
      env: this.environment,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    })
    this.#children.push(child)
    return child
  }

  #collect(child: ChildProcess) {
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]?.setEncoding('utf8').on('data', (chunk: string) => {
        output[name] += chunk
        for (const [key, prefix = ''] of output[name].matchAll(/\b(ev_live_|ev_pub_)\w{30,}/g))
          this.#keys.set(prefix, key)
      })
    }
    return output
  }
}

/** The ports of the examples: of the service, and of the DNS and mail servers of the simulator. */
const DOCUMENTED_PORTS = ['8080', '5300', '2525']

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Scenario } from '../../src/simulator/scenario.ts'
import { startScenarioProcess } from '../../src/simulator/simulator-process.ts'
import { freePort } from '../../test/support/free-port.ts'

/** A service process that probes a simulator. */
export type Served = {
  readonly url: string
  readonly key: string
  /** Current and peak resident memory, in MiB. */
  memory(): { readonly now: number; readonly peak: number }
  close(): Promise<void>
}

/** Limits that are never reached, so that counting is measured and not refusals. */
const CONFIG = {
  plans: { bench: { requests: 1_000_000, per: 'second' } },
  'ip-limits': { 'single-per-minute': 1_000_000, 'bulk-per-hour': 1_000_000 },
  plan: 'bench',
}

/**
 * Starts `ev serve` with a simulator of this scenario. `root` is the directory of a built copy of
 * ev.
 */
export async function startService(
  scenario: Scenario,
  root = join(import.meta.dirname, '../..'),
): Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), 'ev-bench-'))
  const file = (name: string, content: unknown) => {
    writeFileSync(join(folder, name), JSON.stringify(content))
    return join(folder, name)
  }
  const simulator = await startScenarioProcess(scenario)
  const port = await freePort()
  const child = spawn(
    process.execPath,
    [
      ...[join(root, 'bin/ev.js'), 'serve', '--listen', `127.0.0.1:${port}`],
      ...['--data-dir', join(folder, 'data'), '--config', file('config.json', CONFIG)],
      ...[
        '--dns',
        simulator.dnsAddress,
        '--smtp-port',
        `${simulator.smtpPort}`,
        '--special-domains',
      ],
      ...['--allow-ranges', '127.0.0.0/8', '--helo', 'probe.example.com', '--log', 'warn'],
      ...['--sessions-per-second', '1000'],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const key = await firstKey(child)
  return {
    url: `http://127.0.0.1:${port}`,
    key,
    memory: () => memoryOf(child.pid ?? 0),
    async close() {
      child.kill('SIGTERM')
      await once(child, 'exit')
      await simulator.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Starts a program of this folder that the service is compared with. */
export async function startBare(
  program: 'bare.ts' | 'refusing.ts',
): Promise<Pick<Served, 'url' | 'close'>> {
  const child = spawn(process.execPath, [join(import.meta.dirname, program)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [port] = await once(createInterface({ input: child.stdout }), 'line')
  return {
    url: `http://127.0.0.1:${port}/`,
    async close() {
      child.kill()
      await once(child, 'exit')
    },
  }
}

/** Reads the key from stdout, which has it once the service listens. */
async function firstKey(child: ChildProcess): Promise<string> {
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', text => {
    errors += text
  })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`ev serve ended with ${code}: ${errors}`)
  })
  ended.catch(() => {})
  const line = once(createInterface({ input: child.stdout as Readable }), 'line')
  const [key] = await Promise.race([line, ended])
  return key
}

function memoryOf(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mib = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1_024
  return { now: mib('VmRSS'), peak: mib('VmHWM') }
}

import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { inject } from 'vitest'
import { onFileFinished } from './cleanup.ts'
import type { Ran } from './home.ts'

export { emptyFolder, folderWith, type Ran, simulatorFlags } from './home.ts'

/** During development, EV_SOURCES=1 runs src/ without a build. */
const isFromSources = process.env.EV_SOURCES === '1'
/** The launcher that users start. */
export const EV = join(
  import.meta.dirname,
  isFromSources ? '../../src/cli/main.ts' : '../../bin/ev.js',
)

export type EvOptions = {
  /** Working directory of the command, and its home directory. */
  readonly home: string
  readonly stdin?: string | Uint8Array
  /** Keeps stdin open for more input. */
  readonly stdinOpen?: boolean
  readonly environment?: Readonly<Record<string, string>>
  /** Path of another Node. */
  readonly node?: string
  /** The launcher of another installation. */
  readonly launcher?: string
  /** File descriptors for its output. */
  readonly stdout?: number
  readonly stderr?: number
  /** DNS lookups and connections end the process. */
  readonly offline?: boolean
}

export type Running = {
  readonly child: ChildProcess
  readonly ended: Promise<Ran>
  /** Resolves when the output contains the text; rejects when the process ends without it. */
  printed(text: string, on?: 'stdout' | 'stderr'): Promise<void>
}

const NO_NETWORK = join(import.meta.dirname, 'no-network.mjs')

/** Runs `ev` to its end, without the settings of this machine. */
export const runEv = (args: readonly string[], options: EvOptions): Promise<Ran> =>
  startEv(args, options).ended

/** Starts `ev`; the process is killed at the end of the test file. */
export function startEv(args: readonly string[], options: EvOptions): Running {
  const fault = inject('buildFault')
  if (fault !== '' && !isFromSources) throw new Error(fault)
  const { home, environment, node = process.execPath, launcher = EV } = options
  const { stdout = 'pipe', stderr = 'pipe' } = options
  const preload = options.offline === true ? ['--import', NO_NETWORK] : []
  const child = spawn(node, [...preload, launcher, ...args], {
    cwd: home,
    env: { PATH: process.env.PATH, HOME: home, ...environment },
    stdio: ['pipe', stdout, stderr],
  })
  onFileFinished(() => child.kill('SIGKILL'))
  child.stdin?.on('error', () => {}) // The process may end before it has read everything.
  if (options.stdin !== undefined) child.stdin?.write(options.stdin)
  if (options.stdinOpen !== true) child.stdin?.end()
  return { child, ...listen(child) }
}

function listen(child: ChildProcess): Pick<Running, 'ended' | 'printed'> {
  const output = { stdout: '', stderr: '' }
  let watchers: (() => void)[] = []
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
      for (const check of watchers) check()
    })
  }
  const ended = new Promise<Ran>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, ...output }))
  })
  const printed = (text: string, on: 'stdout' | 'stderr' = 'stdout') =>
    new Promise<void>((resolve, reject) => {
      const check = () => {
        if (!output[on].includes(text)) return
        watchers = watchers.filter(other => other !== check)
        resolve()
      }
      watchers.push(check)
      check()
      const onEnded = () => reject(new Error(`ev ended without printing ${text}: ${output.stderr}`))
      ended.then(onEnded, reject)
    })
  return { ended, printed }
}

import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { inject } from 'vitest'
import { onFileFinished } from './cleanup.ts'
import type { Ran } from './home.ts'

export { emptyFolder, type Ran, towards } from './home.ts'

/** While somebody works on it, EV_SOURCES=1 runs what is in src/, built or not. */
const isFromSources = process.env.EV_SOURCES === '1'
/** The launcher that people start. */
export const EV = join(
  import.meta.dirname,
  isFromSources ? '../../src/cli/main.ts' : '../../bin/ev.js',
)

export type EvOptions = {
  /** Folder to run in, which is its home too. */
  readonly home: string
  readonly stdin?: string | Uint8Array
  /** More may follow on stdin. */
  readonly stdinOpen?: boolean
  readonly environment?: Readonly<Record<string, string>>
  /** Another Node. */
  readonly node?: string
  /** Where stdout goes instead: a file descriptor. */
  readonly stdout?: number
  /** Any lookup and any connection end the process. */
  readonly offline?: boolean
}

export type Running = {
  readonly child: ChildProcess
  readonly ended: Promise<Ran>
  /** Resolves when what was printed holds the text; rejects when ev ends before it does. */
  printed(text: string, on?: 'stdout' | 'stderr'): Promise<void>
}

const NO_NETWORK = join(import.meta.dirname, 'no-network.mjs')

/** Runs `ev` to its end, in an environment without any settings of this machine. */
export const runEv = (args: readonly string[], options: EvOptions): Promise<Ran> =>
  startEv(args, options).ended

/** Starts `ev`; whatever becomes of its test, the child does not outlive the file. */
export function startEv(args: readonly string[], options: EvOptions): Running {
  const fault = inject('buildFault')
  if (fault !== '' && !isFromSources) throw new Error(fault)
  const { home, environment, node = process.execPath, stdout = 'pipe' } = options
  const preload = options.offline === true ? ['--import', NO_NETWORK] : []
  const child = spawn(node, [...preload, EV, ...args], {
    cwd: home,
    env: { PATH: process.env.PATH, HOME: home, ...environment },
    stdio: ['pipe', stdout, 'pipe'],
  })
  onFileFinished(() => child.kill('SIGKILL'))
  child.stdin?.on('error', () => {}) // It may end without reading all.
  if (options.stdin !== undefined) child.stdin?.write(options.stdin)
  if (options.stdinOpen !== true) child.stdin?.end()
  return { child, ...listen(child) }
}

function listen(child: ChildProcess): Pick<Running, 'ended' | 'printed'> {
  const heard = { stdout: '', stderr: '' }
  let watchers: (() => void)[] = []
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      heard[name] += text
      for (const look of watchers) look()
    })
  }
  const ended = new Promise<Ran>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, ...heard }))
  })
  const printed = (text: string, on: 'stdout' | 'stderr' = 'stdout') =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!heard[on].includes(text)) return
        watchers = watchers.filter(other => other !== look)
        resolve()
      }
      watchers.push(look)
      look()
      const late = () => reject(new Error(`ev ended without printing ${text}: ${heard.stderr}`))
      ended.then(late, reject)
    })
  return { ended, printed }
}

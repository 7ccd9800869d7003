import { readFileSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { ExternalDeps } from '../compose/engine.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Random } from '../platform/random.ts'

/** A stream that input is read from: `process.stdin` in production. */
export type CliInput = Readable & {
  readonly isTTY?: boolean | undefined
  /** File descriptor; none: the stream is in memory. */
  readonly fd?: number | undefined
  /** Whether each key is read at once; only terminals have this. */
  readonly setRawMode?: ((mode: boolean) => unknown) | undefined
}

/** A stream that output is written to: `process.stdout` or `process.stderr` in production. */
export type CliOutput = Writable & {
  readonly isTTY?: boolean | undefined
  /** Width of the terminal, in characters. */
  readonly columns?: number | undefined
  /** File descriptor; none: the stream is in memory. */
  readonly fd?: number | undefined
}

export type CliSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'
type CliFault = 'uncaughtException' | 'unhandledRejection'

/** Signals and faults of the process: `process` in production, an EventEmitter in tests. */
export interface CliSignals {
  on(signal: CliSignal, listener: (signal: NodeJS.Signals) => void): unknown
  on(fault: CliFault, listener: (error: unknown) => void): unknown
  once(signal: CliSignal, listener: (signal: NodeJS.Signals) => void): unknown
  off(signal: CliSignal, listener: (signal: NodeJS.Signals) => void): unknown
  off(fault: CliFault, listener: (error: unknown) => void): unknown
  /** Sends a signal to this process. */
  raise(signal: CliSignal): void
}

/** The terminal that the process was started in. */
export interface CliTerminal {
  /** Whether stdin, stdout or stderr is a terminal. */
  isAttached(): boolean
  /** Whether the process still has a controlling terminal. */
  isOpen(): boolean
  /** Whether this process is in the foreground; false if that is not known. */
  isForeground(): boolean
  /** Signals the processes in the foreground, as the terminal does after Ctrl-C. */
  sendSignal(signal: 'SIGINT' | 'SIGQUIT' | 'SIGTSTP'): void
}

type CliConsole = Pick<Console, 'log' | 'info' | 'debug' | 'warn' | 'error'>

/** All that the command line takes from the process that it runs in. */
export interface CliContext {
  readonly stdin: CliInput
  readonly stdout: CliOutput
  readonly stderr: CliOutput
  readonly env: Readonly<Record<string, string | undefined>>
  /**
   * Folder that relative paths start from. `.` is the current folder of the process: paths then
   * stay as they were given, and so do messages that name them.
   */
  readonly cwd: string
  readonly signals: CliSignals
  readonly terminal: CliTerminal
  /** Where libraries print; `ev serve` and `ev worker` replace its methods by their log. */
  readonly console: CliConsole
  readonly clock: Clock
  readonly random: Random
  /** Test doubles of DNS, outgoing connections, webhook requests and mail. */
  readonly externalDeps?: Partial<Pick<ExternalDeps, 'resolver' | 'dial' | 'transport' | 'notify'>>
  /** Ends the process at once. */
  exit(code: number): never
  /** Whether a process with that ID is running. */
  isRunning(pid: number): boolean
}

/** Sets the code that `run` returns; 0 if it is not called. */
export type SetExitCode = (code: number) => void

/** A path that can be opened, from one that may be relative to `cwd`. */
export function inCwd({ cwd }: Pick<CliContext, 'cwd'>, path: string): string {
  return cwd === '.' || isAbsolute(path) ? path : resolveIn(cwd, path)
}

/** Keeps a slash at the end, which marks a folder and which `resolve` would remove. */
function resolveIn(cwd: string, path: string): string {
  return path.endsWith('/') ? `${resolve(cwd, path)}/` : resolve(cwd, path)
}

/** The external dependencies of an engine or a service that runs in this context. */
export const externalDepsFrom = (
  { clock, random, externalDeps }: CliContext,
  log: Log,
): ExternalDeps => ({
  clock,
  random,
  log,
  ...externalDeps,
})

/** The flags that print the version, as commander takes them. */
export const VERSION_FLAGS = '-V, --version'

/** Returns the version in package.json. */
export const version = (): string =>
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version

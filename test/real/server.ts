import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isFree } from '../support/free-port.ts'

/** A real mail or DNS server from its Debian package on loopback. */
export type RealServer = {
  readonly name: string
  /** The domains that it accepts, with the loopback address of their exchanger `mx.<domain>`. */
  readonly domains: Readonly<Record<string, string>>
  /** Returns why it cannot run here, or null. */
  missing(): string | null
  /** Resolves when it is ready; rejects with its log if it fails. */
  start(env: ServerEnvironment): Promise<void>
  stop(): Promise<void>
}

/** The environment of a server. */
export type ServerEnvironment = {
  /** An empty folder that every user can enter. */
  readonly dir: string
  /** The SMTP port, the same for all servers, which have different loopback addresses. */
  readonly port: number
  /** The address of a resolver on port 53 that knows all names of the tables. */
  readonly nameServer: string
}

/** Root of the tree into which `tools/install-mail-servers.sh` unpacks the packages. */
export const INSTALLED = process.env.EV_MAIL_SERVERS || '/opt/ev-mail-servers'
const HOW_TO_INSTALL = 'run: sudo bash tools/install-mail-servers.sh'

/** Returns the path of a package file, such as `usr/sbin/nsd`. */
export const installed = (path: string) => join(INSTALLED, path)

/** Returns why a server with these files cannot run here, or null. */
export function missingFiles(name: string, ...paths: string[]): string | null {
  const absent = paths.find(path => !existsSync(installed(path)))
  if (absent !== undefined) return `${name} is not installed: ${HOW_TO_INSTALL}`
  // They switch users and listen on port 53.
  return process.getuid?.() === 0 ? null : `${name} runs only as root: sudo npm test`
}

/** Environment that lets the daemons find their libraries. */
export const ENVIRONMENT = {
  PATH: `${installed('usr/sbin')}:${installed('usr/bin')}:/usr/sbin:/usr/bin:/sbin:/bin`,
  LD_LIBRARY_PATH: [
    'usr/lib/postfix',
    `usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`,
    `lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`,
  ]
    .map(installed)
    .join(':'),
}

export type Daemon = {
  /** Returns its output so far. */
  log(): string
  /** Rejects when the daemon ends without `stop`. */
  readonly ended: Promise<never>
  /** Stops it with its child processes. */
  stop(): Promise<void>
}

export type DaemonOptions = {
  readonly name: string
  readonly dir: string
  /** Path within the packages, or an absolute one. */
  readonly command: string
  readonly args: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

/**
 * Starts a daemon in the foreground as the leader of a process group, with its output in
 * `<dir>/<name>.log`.
 */
export function startDaemon(options: DaemonOptions): Daemon {
  const { name, dir, command, args } = options
  const file = join(dir, `${name}.log`)
  const program = command.startsWith('/') ? command : installed(command)
  const child = spawn('/bin/sh', ['-c', RUN_UNTIL_TESTS_END, 'sh', program, ...args], {
    detached: true,
    cwd: dir,
    env: { ...ENVIRONMENT, ...options.environment },
    stdio: 'pipe',
  })
  const logStream = createWriteStream(file)
  child.stdout.pipe(logStream, { end: false })
  child.stderr.pipe(logStream, { end: false })
  const log = () => (existsSync(file) ? readFileSync(file, 'utf8') : '')
  const exited = new Promise<string>(resolve => {
    child.once('error', error => resolve(error.message))
    child.once('exit', (code, signal) => resolve(`ended with ${signal ?? code}`))
  })
  const ended = exited.then(how => {
    throw new Error(`${name} ${how}:\n${log()}`)
  })
  ended.catch(() => {})
  return {
    log,
    ended,
    async stop() {
      kill(child, 'SIGTERM')
      const killTimer = setTimeout(() => kill(child, 'SIGKILL'), STOP_MS)
      await exited
      clearTimeout(killTimer)
      // Child processes that outlive the master.
      kill(child, 'SIGKILL')
      logStream.end()
    },
  }
}

/** Executes the daemon beside a process that terminates the group when the tests end in any way. */
const RUN_UNTIL_TESTS_END =
  'exec 3<&0; (cat <&3 > /dev/null; kill -TERM 0) & exec "$@" < /dev/null 3<&-'

/** Time for a daemon to end after SIGTERM. */
const STOP_MS = 3_000

function kill({ pid }: ChildProcess, signal: NodeJS.Signals) {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {
    // It has already exited.
  }
}

/** Time for a daemon to become ready. */
const START_MS = 20_000
const POLL_MS = 50

/**
 * Resolves when all addresses accept connections; rejects with the log when the daemon ends or
 * times out.
 */
export async function untilListening(
  daemon: Daemon,
  addresses: readonly string[],
  port: number,
): Promise<void> {
  const all = Promise.all(addresses.map(address => untilConnects(address, port)))
  const stopWaiting = new AbortController()
  const limit = sleep(START_MS, undefined, { signal: stopWaiting.signal }).then(() => {
    throw new Error(`It does not listen on port ${port}:\n${daemon.log()}`)
  })
  limit.catch(() => {})
  await Promise.race([all, daemon.ended, limit]).finally(() => stopWaiting.abort())
}

async function untilConnects(host: string, port: number): Promise<void> {
  for (let waited = 0; waited < START_MS; waited += POLL_MS) {
    if (await connects(host, port)) return
    await sleep(POLL_MS)
  }
}

/** Differs from the address of the engine, as servers count connections by client. */
const POLL_ADDRESS = '127.0.9.9'

async function connects(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port, localAddress: POLL_ADDRESS })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** Returns the first of 127.0.1.53 … 127.0.1.99 with a free port 53. */
export async function freeNameServer(): Promise<string> {
  for (let last = 53; last < 100; last++) {
    const address = `127.0.1.${last}`
    if (await isFree(53, address)) return address
  }
  throw new Error('Port 53 is taken on 127.0.1.53 and all addresses after it.')
}

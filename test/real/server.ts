import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, existsSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A mail or DNS server that others wrote, run from its Debian package on loopback. */
export type RealServer = {
  readonly name: string
  /** The domains it takes mail for, each with the loopback address of its exchanger `mx.<domain>`. */
  readonly domains: Readonly<Record<string, string>>
  /** Why it cannot run here, or null. */
  missing(): string | null
  /** Resolves when it serves; rejects with its log when it does not. */
  start(place: Place): Promise<void>
  stop(): Promise<void>
}

/** Where a server runs. */
export type Place = {
  /** A folder of its own, empty, which every user may enter. */
  readonly dir: string
  /** The SMTP port, the same for all servers: each has loopback addresses of its own. */
  readonly port: number
  /** The address of a resolver, port 53, that knows all names of the tables. */
  readonly nameServer: string
}

/** Where `tools/install-mail-servers.sh` unpacks the packages: the root of a tree with usr/, etc/ and so on. */
export const INSTALLED = process.env.EV_MAIL_SERVERS || '/opt/ev-mail-servers'
const HOW_TO_INSTALL = 'run: sudo bash tools/install-mail-servers.sh'

/** A file of the packages, such as `usr/sbin/nsd`. */
export const installed = (path: string) => join(INSTALLED, path)

/** Why a server of these files cannot run here, or null. */
export function missingFiles(name: string, ...paths: string[]): string | null {
  const absent = paths.find(path => !existsSync(installed(path)))
  if (absent !== undefined) return `${name} is not installed: ${HOW_TO_INSTALL}`
  // They change to users of their own and listen on port 53.
  return process.getuid?.() === 0 ? null : `${name} runs only as root: sudo npm test`
}

/** What every daemon of the packages needs to find its libraries. */
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
  /** What it wrote so far. */
  log(): string
  /** Rejects when the daemon ends before it was told to. */
  readonly ended: Promise<never>
  /** Ends it with all its children. */
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

/** Starts a daemon in the foreground, at the head of a process group; what it writes goes to `<dir>/<name>.log`. */
export function startDaemon(options: DaemonOptions): Daemon {
  const { name, dir, command, args } = options
  const file = join(dir, `${name}.log`)
  const program = command.startsWith('/') ? command : installed(command)
  const child = spawn('/bin/sh', ['-c', MORTAL, 'sh', program, ...args], {
    detached: true,
    cwd: dir,
    env: { ...ENVIRONMENT, ...options.environment },
    stdio: 'pipe',
  })
  const kept = createWriteStream(file)
  child.stdout.pipe(kept, { end: false })
  child.stderr.pipe(kept, { end: false })
  const log = () => (existsSync(file) ? readFileSync(file, 'utf8') : '')
  const over = new Promise<string>(resolve => {
    child.once('error', error => resolve(error.message))
    child.once('exit', (code, signal) => resolve(`ended with ${signal ?? code}`))
  })
  const ended = over.then(how => {
    throw new Error(`${name} ${how}:\n${log()}`)
  })
  ended.catch(() => {})
  return {
    log,
    ended,
    async stop() {
      kill(child, 'SIGTERM')
      const late = setTimeout(() => kill(child, 'SIGKILL'), STOP_MS)
      await over
      clearTimeout(late)
      // Children that outlive their master.
      kill(child, 'SIGKILL')
      kept.end()
    },
  }
}

/** Becomes the daemon; beside it somebody listens for the end of the tests, however they end, and ends the whole group. */
const MORTAL = 'exec 3<&0; (cat <&3 > /dev/null; kill -TERM 0) & exec "$@" < /dev/null 3<&-'

/** How long a daemon may take to end by itself. */
const STOP_MS = 3_000

function kill({ pid }: ChildProcess, signal: NodeJS.Signals) {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {
    // It is gone already.
  }
}

/** How long a daemon may take to serve. */
const START_MS = 20_000
const POLL_MS = 50

/** Resolves when something listens on all these addresses; rejects with the log when the daemon ends or is late. */
export async function untilListening(
  daemon: Daemon,
  addresses: readonly string[],
  port: number,
): Promise<void> {
  const all = Promise.all(addresses.map(address => untilConnects(address, port)))
  const late = new AbortController()
  const limit = sleep(START_MS, undefined, { signal: late.signal }).then(() => {
    throw new Error(`It does not listen on port ${port}:\n${daemon.log()}`)
  })
  limit.catch(() => {})
  await Promise.race([all, daemon.ended, limit]).finally(() => late.abort())
}

async function untilConnects(host: string, port: number): Promise<void> {
  for (let waited = 0; waited < START_MS; waited += POLL_MS) {
    if (await connects(host, port)) return
    await sleep(POLL_MS)
  }
}

/** Not the address that the engine comes from: servers count connections by client. */
const KNOCKER = '127.0.9.9'

async function connects(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port, localAddress: KNOCKER })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** A port that is free on every loopback address. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '0.0.0.0')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** The first of 127.0.1.53 … 127.0.1.99 on which port 53 is free. */
export async function freeNameServer(): Promise<string> {
  for (let last = 53; last < 100; last++) {
    const address = `127.0.1.${last}`
    const server = createServer()
    const isFree = await new Promise<boolean>(resolve => {
      server.once('error', () => resolve(false))
      server.listen(53, address, () => resolve(true))
    })
    server.close()
    if (isFree) return address
  }
  throw new Error('Port 53 is taken on 127.0.1.53 and all addresses after it.')
}

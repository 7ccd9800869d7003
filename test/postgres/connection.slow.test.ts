import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { openDatabase, write } from '../../src/db/database.ts'
import { inspectServer } from '../../src/db/postgres/inspect.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { missingFiles, startDaemon } from '../real/server.ts'
import { type CertificateKind, certificateOf, testAuthority } from '../support/certificate.ts'
import { emptyDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { ask, NOBODY_UID, startPostgres } from '../support/postgres-server.ts'
import { REQUIRED } from '../support/real-servers.ts'

const refused = (url: string, about: RegExp) =>
  expect(openDatabase(url, systemClock)).rejects.toThrow(
    expect.objectContaining({ code: 'io', message: expect.stringMatching(about) }),
  )

/** Creates a folder that the servers, which run as nobody, can read. */
function openFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ev-connection-'))
  chmodSync(folder, 0o755)
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const missing = missingFiles('PgBouncer', 'usr/sbin/pgbouncer')

describe.skipIf(missing !== null && !REQUIRED)('through PgBouncer', () => {
  /** Starts PgBouncer in front of an empty database and returns the URL of the database. */
  async function pooled(mode: 'session' | 'transaction'): Promise<string> {
    const server = new URL(inject('postgres'))
    const url = new URL(await emptyDatabase())
    const dir = openFolder()
    const port = await freePort()
    const users = join(dir, 'users.txt')
    writeFileSync(users, '"ev" ""\n')
    const config = join(dir, 'pgbouncer.ini')
    writeFileSync(
      config,
      `[databases]
* = host=${server.hostname} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = ${mode}
`,
    )
    const args = ['-u', 'nobody', config]
    const daemon = startDaemon({ name: 'pgbouncer', dir, command: 'usr/sbin/pgbouncer', args })
    onTestFinished(() => daemon.stop())
    url.port = String(port)
    await expect.poll(() => ask(url.href, 'select 1').catch(() => null)).not.toBeNull()
    return url.href
  }

  test('in session mode: the settings of a connection apply', async () => {
    const url = await pooled('session')
    const database = await openDatabase(url, systemClock)
    onTestFinished(() => database.close())
    const settings = await write(database, async trx => {
      const { rows } = await sql<{ name: string; setting: string }>`
        select name, setting from pg_settings where name in
          ('statement_timeout', 'idle_in_transaction_session_timeout', 'synchronous_commit')
        order by name`.execute(trx)
      return rows.map(({ setting }) => setting)
    })
    expect(settings).toEqual(['10000', '10000', 'on'])
    const { rows } = await sql`show synchronous_commit`.execute(database.asyncDb)
    expect(rows).toEqual([{ synchronous_commit: 'off' }])
    expect(await inspectServer(url, systemClock)).toMatchObject({ isPooled: false })
  })

  test('in transaction mode: it is refused, and nothing is created', async () => {
    const url = await pooled('transaction')
    await refused(
      url,
      /cannot be used: a pooler shares its connections between transactions\. Set pool_mode = session in PgBouncer, or connect to the server directly\.$/,
    )
    expect(await ask(url, "select 1 from pg_tables where schemaname = 'public'")).toEqual([])
    expect(await inspectServer(url, systemClock)).toMatchObject({ isPooled: true })
  })
})

describe('with TLS', () => {
  async function withTls(kind: CertificateKind, settings: Readonly<Record<string, string>> = {}) {
    const folder = openFolder()
    const { key, cert } = writeCertificate(folder, kind)
    if (process.getuid?.() === 0) chownSync(key, NOBODY_UID, NOBODY_UID)
    const authority = writeAuthority(folder)
    const server = await startPostgres({
      settings: { ssl: 'on', ssl_cert_file: cert, ssl_key_file: key, ...settings },
    })
    onTestFinished(() => server.stop())
    return { url: `${server.url()}?sslmode=verify-full`, authority }
  }

  /** Writes a certificate and its key, and returns the files. */
  function writeCertificate(folder: string, kind: CertificateKind) {
    const { key, cert } = certificateOf(kind, 'localhost', '127.0.0.1')
    const files = { key: join(folder, 'key.pem'), cert: join(folder, 'cert.pem') }
    writeFileSync(files.cert, cert)
    writeFileSync(files.key, key, { mode: 0o600 })
    return files
  }

  function writeAuthority(folder: string): string {
    const file = join(folder, 'authority.pem')
    writeFileSync(file, testAuthority().cert)
    return file
  }

  test('a certificate of the given authority is accepted, of another one not', async () => {
    const { url, authority } = await withTls('right')
    const database = await openDatabase(`${url}&sslrootcert=${authority}`, systemClock)
    const { rows } = await sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`.execute(
      database.db,
    )
    await database.close()
    expect(rows).toEqual([{ ssl: true }])
    await refused(url, /cannot be used: .*certificate.*\. Connect to a name in the certificate/)
    expect(await inspectServer(url, systemClock)).toMatchObject({
      kind: 'unreachable',
      remedy: expect.stringContaining('sslrootcert=FILE'),
    })
    await refused(
      `${url}&sslrootcert=${authority}.none`,
      /cannot be used: no such file or directory\. Correct the path .*authority\.pem\.none in sslrootcert/,
    )
  })

  test('a certificate for another name is refused', async () => {
    const { url, authority } = await withTls('other-name')
    await refused(
      `${url}&sslrootcert=${authority}`,
      /cannot be used: Hostname\/IP does not match .*\. Connect to a name in the certificate/,
    )
  })

  test('a client certificate that the server does not accept is refused', async () => {
    const folder = openFolder()
    const access = join(folder, 'pg_hba.conf')
    const lines = [
      'hostnossl all all 127.0.0.1/32 trust',
      'hostssl all all 127.0.0.1/32 trust clientcert=verify-ca',
    ]
    writeFileSync(access, lines.join('\n'))
    const server = await withTls('right', {
      hba_file: access,
      ssl_ca_file: writeAuthority(folder),
    })
    const url = `${server.url}&sslrootcert=${server.authority}`
    await refused(url, /valid client certificate\. Set sslcert and sslkey in --database/)
    // It may only authenticate servers.
    const { cert, key } = writeCertificate(openFolder(), 'right')
    await refused(
      `${url}&sslcert=${cert}&sslkey=${key}`,
      /: SSL routines: .*alert.*\. Set sslcert and sslkey/,
    )
    await refused(
      `${url}&sslcert=${access}&sslkey=${key}`,
      /: PEM routines: no start line\. Set sslcert and sslkey/,
    )
  })

  test('a certificate of an unknown authority is accepted only in the modes of the documentation', async () => {
    const { url } = await withTls('right')
    const warned = vi.fn()
    process.on('warning', warned)
    onTestFinished(() => void process.off('warning', warned))
    const [address] = url.split('?')
    // pg gives these modes the meaning of verify-full, which is stricter than in psql.
    for (const mode of ['prefer', 'require', 'verify-ca']) {
      await refused(`${address}?sslmode=${mode}`, /cannot be used: .*certificate/)
    }
    for (const mode of ['require&uselibpqcompat=true', 'no-verify']) {
      const database = await openDatabase(`${address}?sslmode=${mode}`, systemClock)
      const { rows } = await sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`.execute(
        database.db,
      )
      await database.close()
      expect(rows, mode).toEqual([{ ssl: true }])
    }
    await refused(
      `${address}?sslmode=verify-ca&uselibpqcompat=true`,
      /requires specifying a CA .* set sslrootcert=FILE in --database/,
    )
    expect(warned).not.toHaveBeenCalled()
  })

  test('a server without TLS is refused', async () => {
    await refused(
      `${inject('postgres')}postgres?sslmode=verify-full`,
      /cannot be used: .*does not support SSL connections\. Turn on ssl in the server/,
    )
  })
})

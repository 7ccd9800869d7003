import {
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import SqliteDatabase from 'better-sqlite3'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder, runEv, startEv } from '../support/cli.ts'
import { startEv as startProcess } from '../support/ev-process.ts'
import { restoreSqlite } from '../support/released-database.ts'

let recipient: string
let identity: string
/** A folder with a service that has a webhook, and its backups. */
let source: string

const DATA = ['--data-dir', 'data']
const ev = (home: string, ...args: string[]) => runEv([...args, ...DATA], { home })

async function succeed(home: string, ...args: string[]) {
  const ran = await ev(home, ...args)
  expect(ran.code, ran.stderr).toBe(0)
  return ran
}

const webhooksIn = async (home: string) =>
  JSON.parse((await succeed(home, 'webhooks', '--json')).stdout)

/** Creates a folder with copies of the backups. */
function target(): string {
  const home = emptyFolder()
  for (const name of ['ev.age', 'ev.sqlite', 'key.txt']) {
    copyFileSync(join(source, name), join(home, name))
  }
  return home
}

/** The data directory without the files of locks and the journals of open connections. */
const dataOf = (home: string) =>
  readdirSync(join(home, 'data'))
    .filter(name => name !== 'locks' && !/\.sqlite-(wal|shm)$/.test(name))
    .sort()

const RESTORE = ['restore', 'ev.age', '--identity', 'key.txt']

beforeAll(async () => {
  identity = await generateX25519Identity()
  recipient = await identityToRecipient(identity)
  source = emptyFolder()
  writeFileSync(join(source, 'key.txt'), `# created: 2026-11-28\n# public key: x\n${identity}\n`)
  await succeed(source, 'accounts', 'create', '--name', 'Shop')
  const webhook = ['--url', 'https://127.0.0.1/shop', '--events', 'batch.completed']
  const allowed = ['--webhook-allow-ranges', '127.0.0.1']
  await succeed(source, 'webhooks', 'create', ...webhook, ...allowed)
  await succeed(source, 'backup', 'ev.sqlite')
  await succeed(source, 'backup', 'ev.age', '--recipient', recipient)
})

describe('ev backup', () => {
  test('with a recipient encrypts the database and the secret into an age file', async () => {
    const home = target()
    const text = readFileSync(join(home, 'ev.age'))
    expect(text.toString('latin1', 0, 40)).toMatch(/^age-encryption\.org\/v1\n-> X25519 /)
    expect(statSync(join(source, 'ev.age')).mode & 0o777).toBe(0o600)
    expect(text.includes('127.0.0.1/shop')).toBe(false)
    expect(readFileSync(join(home, 'ev.sqlite')).includes('127.0.0.1/shop')).toBe(true)
    expect(dataOf(source)).toEqual(['ev.sqlite', 'secret'])
  })

  test('without encryption has no secret, and says so', async () => {
    const { stderr } = await succeed(source, 'backup', 'plain', '--force')
    expect(stderr).toMatch(
      /^warning: The backup does not have the secret .*, because it is not encrypted\./,
    )
    const secret = readFileSync(join(source, 'data/secret'), 'utf8').trim()
    expect(readFileSync(join(source, 'plain')).includes(secret)).toBe(false)
  })

  test.each([
    [['--encrypt'], {}, 'asks for a passphrase, which needs a terminal'],
    [['--recipient', 'age1x'], {}, '--recipient takes a public key of age'],
    [['--recipient', 'age1x', '--encrypt'], {}, 'with a passphrase or for recipients, not both'],
    [[], { EV_BACKUP_PASSPHRASE: 'too short' }, 'has 9 characters; it takes at least 12'],
    [['--passphrase-file', 'none'], {}, '--passphrase-file is none, which cannot be read'],
  ])('%j with %j is refused, and no copy is written', async (args, environment, message) => {
    const home = emptyFolder()
    const all = ['backup', join(home, 'copy'), '--data-dir', join(source, 'data'), ...args]
    const { code, stderr } = await runEv(all, { home, environment })
    expect(code).toBeGreaterThan(60)
    expect(stderr).toContain(message)
    expect(readdirSync(home)).toEqual(['data'])
  })

  test('stops at once with Ctrl-C, and leaves no file', async () => {
    const folder = emptyFolder()
    const args = ['backup', join(folder, 'copy.age'), '--recipient', recipient, ...DATA]
    const running = startEv(args, { home: source })
    while (!existsSync(join(source, 'data/ev.sqlite.backup'))) await turn()
    running.signal('SIGINT')
    expect(running.stderr).toContain('Stopping: removing the unfinished copy.')
    expect(await running.ended).toMatchObject({ code: 130 })
    expect(running.stderr).toMatch(/\nStopped: no backup was written\.\n$/)
    expect([readdirSync(folder), dataOf(source)]).toEqual([['data'], ['ev.sqlite', 'secret']])
  })
})

describe('ev restore', () => {
  test('restores the database and the secret on another machine', async () => {
    const home = target()
    const { stdout } = await succeed(home, ...RESTORE)
    expect(stdout).toContain(`Restored ${home}/data/ev.sqlite`)
    expect(stdout).toContain('1 account with 0 keys and 1 webhook')
    expect(stdout).toContain(`The secret is in ${home}/data/secret.`)
    expect(await webhooksIn(home)).toEqual(await webhooksIn(source))
    const secret = (folder: string) => readFileSync(join(folder, 'data/secret'), 'utf8')
    expect(secret(home)).toBe(secret(source))
    for (const name of ['ev.sqlite', 'secret']) {
      expect(statSync(join(home, 'data', name)).mode & 0o777).toBe(0o600)
    }
    expect(dataOf(home)).toEqual(['ev.sqlite', 'secret'])
    // The secret is stored in the backup only.
    expect(readFileSync(join(home, 'data/ev.sqlite')).includes(secret(home).trim())).toBe(false)
  })

  test('migrates the database of an earlier version', async () => {
    const home = target()
    restoreSqlite(join(home, 'released.sqlite'))
    await succeed(home, 'restore', 'released.sqlite', '--without-secret')
    const { stdout } = await succeed(home, 'jobs', '--json')
    expect(JSON.parse(stdout)).toHaveLength(3)
  })

  test('replaces a database only with --force, and keeps the earlier one and its secret', async () => {
    const home = target()
    await succeed(home, 'accounts', 'create', '--name', 'Before')
    const before = `${'b'.repeat(50)}\n`
    writeFileSync(join(home, 'data/secret'), before)
    const refused = await ev(home, ...RESTORE)
    expect(refused).toMatchObject({ code: 73, stderr: expect.stringContaining('add --force') })
    expect(dataOf(home)).toEqual(['ev.sqlite', 'secret'])
    const forced = await succeed(home, ...RESTORE, '--force', '--json')
    const { earlier_database, earlier_secret } = JSON.parse(forced.stdout)
    expect(readFileSync(earlier_secret, 'utf8')).toBe(before)
    expect(accountsIn(earlier_database)).toEqual(['Before'])
    expect(accountsIn(join(home, 'data/ev.sqlite'))).toEqual(['Shop'])
    expect(dataOf(home)).toHaveLength(4)
  })

  test.each<[string, string[], RegExp]>([
    ['an encrypted backup without a key', ['ev.age'], /encrypted for a recipient\. Set --identity/],
    [
      'a plain copy whose secret is missing',
      ['ev.sqlite'],
      /does not have the secret .*--without-secret/s,
    ],
    ['no file', ['none.age'], /The backup .*none\.age does not exist/],
    ['another file', ['key.txt'], /is not a backup of ev/],
    ['the key of somebody else', ['ev.age', '--identity', 'other.txt'], /No identity .* decrypts/],
    ['a key file that is none', ['ev.age', '--identity', 'ev.sqlite'], /is not an identity of age/],
  ])('refuses %s, and changes nothing', async (_, args, message) => {
    const home = target()
    writeFileSync(join(home, 'other.txt'), await generateX25519Identity())
    const { code, stderr } = await ev(home, 'restore', ...args)
    expect(code).toBeGreaterThan(60)
    expect(stderr).toMatch(message)
    expect(dataOf(home)).toEqual([])
  })

  test('restores a plain copy beside its secret, or without it', async () => {
    const home = target()
    await succeed(home, 'restore', 'ev.sqlite', '--without-secret')
    expect(dataOf(home)).toEqual(['ev.sqlite'])
    const other = target()
    copyFileSync(join(source, 'data/secret'), join(other, 'data/secret'))
    await succeed(other, 'restore', 'ev.sqlite')
    expect(await webhooksIn(other)).toEqual(await webhooksIn(source))
  })

  test('refuses a different EV_SECRET, and a newer version', async () => {
    const home = target()
    const options = { home, environment: { EV_SECRET: 'x'.repeat(50) } }
    const { code, stderr } = await runEv([...RESTORE, ...DATA], options)
    expect({ code, stderr }).toEqual({
      code: 78,
      stderr: expect.stringContaining('Remove EV_SECRET from the environment'),
    })
    const sqlite = new SqliteDatabase(join(home, 'ev.sqlite'))
    sqlite.exec("insert into kysely_migration values ('9999_later', '2030-01-01')")
    sqlite.close()
    const newer = await ev(home, 'restore', 'ev.sqlite')
    expect(newer).toMatchObject({
      code: 74,
      stderr: expect.stringContaining('newer version of ev'),
    })
    expect(dataOf(home)).toEqual([])
  })

  /** An age file has a header, a nonce of 16 bytes, and chunks of 64 KiB with a tag of 16 bytes. */
  const CHUNK = 65_552
  const withoutHeader = (file: Buffer) => file.indexOf('\n', file.indexOf('\n--- ') + 1) + 1 + 16
  test.each<[string, (file: Buffer) => Buffer]>([
    ['cut in the header', file => file.subarray(0, 100)],
    ['cut in a chunk', file => file.subarray(0, file.length - 1)],
    ['cut after a chunk', file => file.subarray(0, withoutHeader(file) + 2 * CHUNK)],
    ['with a changed byte', file => changed(file, withoutHeader(file) + CHUNK + 5)],
    ['with a changed header', file => changed(file, 60)],
    ['with two chunks exchanged', file => exchanged(file, withoutHeader(file))],
    ['with more bytes at the end', file => Buffer.concat([file, Buffer.from('x')])],
  ])('a backup %s is refused, and changes nothing', async (_, damage) => {
    const home = target()
    await succeed(home, 'accounts', 'create', '--name', 'Before')
    writeFileSync(join(home, 'ev.age'), damage(readFileSync(join(home, 'ev.age'))))
    const { code, stderr } = await ev(home, ...RESTORE, '--force')
    expect(code, stderr).toBeOneOf([64, 65])
    expect(stderr).toMatch(/ is damaged|No identity/)
    expect(dataOf(home)).toEqual(['ev.sqlite'])
    expect(accountsIn(join(home, 'data/ev.sqlite'))).toEqual(['Before'])
  })

  const changed = (file: Buffer, at: number) => {
    file[at] = (file[at] ?? 0) ^ 1
    return file
  }
  const exchanged = (file: Buffer, from: number) =>
    Buffer.concat([
      file.subarray(0, from),
      file.subarray(from + CHUNK, from + 2 * CHUNK),
      file.subarray(from, from + CHUNK),
      file.subarray(from + 2 * CHUNK),
    ])

  test('a damaged copy that is not encrypted is refused', async () => {
    const home = target()
    const copy = readFileSync(join(home, 'ev.sqlite'))
    writeFileSync(join(home, 'ev.sqlite'), copy.fill(7, 8_192, 40_960))
    const { code, stderr } = await ev(home, 'restore', 'ev.sqlite')
    expect(code, stderr).toBe(65)
    expect(stderr).toContain('ev.sqlite is damaged. Use another backup.')
    expect(dataOf(home)).toEqual([])
  })

  test('refuses a database that is in use, by a service or another connection', async () => {
    const home = target()
    const args = ['serve', ...DATA, '--port', '0', '--log', 'silent', '--helo', 'probe.example.com']
    const service = startEv(args, { home, columns: 80 })
    await service.printed('API documentation:', 'stderr')
    const refused = { code: 74, stderr: expect.stringContaining('is in use. Stop "ev serve"') }
    expect(await ev(home, ...RESTORE, '--force')).toMatchObject(refused)
    service.signal('SIGTERM')
    await service.ended
    const other = new SqliteDatabase(join(home, 'data/ev.sqlite'))
    onTestFinished(() => void other.close())
    other.exec('select 1 from account')
    expect(await ev(home, ...RESTORE, '--force')).toMatchObject(refused)
  })

  test('a killed restore is repeated: its files are replaced, and the earlier database has one name again', async () => {
    const home = target()
    await succeed(home, 'accounts', 'create', '--name', 'Before')
    const database = join(home, 'data/ev.sqlite')
    linkSync(database, `${database}.replaced-2026-11-28T14-30-00Z`)
    for (const end of ['', '-wal']) writeFileSync(`${database}.restore${end}`, 'unfinished')
    await succeed(home, ...RESTORE, '--force')
    expect(accountsIn(database)).toEqual(['Shop'])
    const [kept = '', ...others] = dataOf(home).filter(name => name.includes('.replaced-'))
    expect([accountsIn(join(home, 'data', kept)), others]).toEqual([['Before'], []])
    expect(dataOf(home)).toEqual(['ev.sqlite', kept, 'secret'])
  })

  test('a damaged database is replaced together with its journal', async () => {
    const home = target()
    for (const end of ['', '-wal']) writeFileSync(join(home, `data/ev.sqlite${end}`), 'damaged')
    await succeed(home, ...RESTORE, '--force')
    expect(accountsIn(join(home, 'data/ev.sqlite'))).toEqual(['Shop'])
    expect(existsSync(join(home, 'data/ev.sqlite-wal'))).toBe(false)
    const [kept = ''] = dataOf(home).filter(name => name.includes('.replaced-'))
    expect(readFileSync(join(home, 'data', kept), 'utf8')).toBe('damaged')
  })

  test('leaves the earlier database or the new one when it is killed at any time', async () => {
    const home = target()
    await succeed(home, 'accounts', 'create', '--name', 'Before')
    const database = join(home, 'data/ev.sqlite')
    for (let delayMs = 100; delayMs <= 1_000; delayMs += 150) {
      const running = startProcess([...RESTORE, '--force', ...DATA], { home })
      await setTimeout(delayMs)
      running.child.kill('SIGKILL')
      await running.ended
      expect([['Before'], ['Shop']]).toContainEqual(accountsIn(database))
    }
    await succeed(home, ...RESTORE, '--force')
    expect(accountsIn(database)).toEqual(['Shop'])
    expect(dataOf(home).filter(name => name.includes('.restore'))).toEqual([])
  })

  test('with the passphrase of a file, of the environment or of the terminal; a wrong one is named', async () => {
    const home = target()
    const passphrase = 'correct horse battery staple'
    writeFileSync(join(home, 'pass.txt'), `${passphrase}\n`)
    const data = ['--data-dir', join(source, 'data')]
    const all = ['backup', 'pass.age', '--passphrase-file', 'pass.txt', ...data]
    expect(await runEv(all, { home })).toMatchObject({ code: 0, stderr: '' })
    const restore = ['restore', 'pass.age', ...DATA]
    const wrong = await runEv(restore, { home, environment: { EV_BACKUP_PASSPHRASE: 'wrong' } })
    expect(wrong).toMatchObject({ code: 64, stderr: expect.stringContaining('does not decrypt') })
    const none = await runEv(restore, { home })
    expect(none.stderr).toContain('is encrypted with a passphrase. Set --passphrase-file')
    const environment = { EV_BACKUP_PASSPHRASE: passphrase }
    expect(await runEv(restore, { home, environment })).toMatchObject({ code: 0 })
    const asked = startEv([...restore, '--force'], { home, columns: 80, stdinOpen: true })
    await asked.printed('Passphrase: ', 'stderr')
    asked.stdin.write(`${passphrase}\r`)
    expect((await asked.ended).code, asked.stderr).toBe(0)
    expect(asked.stderr + asked.stdout).not.toContain('correct horse')
    expect(await webhooksIn(home)).toEqual(await webhooksIn(source))
  })
})

function accountsIn(file: string): unknown[] {
  const sqlite = new SqliteDatabase(file, { readonly: true })
  try {
    return sqlite.prepare('select name from account').pluck().all()
  } finally {
    sqlite.close()
  }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

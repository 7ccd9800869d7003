import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createAccount } from '../../../src/accounts/account-store.ts'
import { COMMAND_LINE } from '../../../src/audit.ts'
import { checkSharedSecret, ensureSharedSecret } from '../../../src/cli/service-secret.ts'
import { ensureSetting, getSetting } from '../../../src/cluster/cluster-settings.ts'
import { deregister, register } from '../../../src/cluster/members.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { serverNow } from '../../../src/db/server-time.ts'
import { fingerprint } from '../../../src/db/service-secret.ts'
import { releaseClaims } from '../../../src/jobs/member-claims.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { type Log, silentLog } from '../../../src/platform/log.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import { createSecretBox } from '../../../src/platform/secret-box.ts'
import { createUncheckedWebhook } from '../../../src/webhooks/endpoints.ts'
import { tempDatabase, tempFolder } from '../../support/database.ts'

const secretOptions = (secret: string | null = null) => ({
  secret,
  secretFile: null,
  dataDir: tempFolder(),
})
const [OURS, OTHER] = ['a'.repeat(32), 'b'.repeat(32)]

/** Creates a database whose service started with this secret long ago and has stopped. */
async function databaseWithSecret(): Promise<Database> {
  const database = await tempDatabase()
  await ensureSharedSecret({ random: systemRandom }, database, secretOptions(OURS), silentLog)
  await ensureSetting(database, 'secret-begun-at', '0')
  return database
}

const getStoredFingerprint = (database: Database) => getSetting(database, 'secret-mark')

test('adopts the secret of the first service, even if generated in its data directory', async () => {
  const database = await tempDatabase()
  const first = secretOptions()
  await ensureSharedSecret({ random: systemRandom }, database, first, silentLog)
  expect(existsSync(join(first.dataDir, 'secret'))).toBe(true)
  await ensureSharedSecret({ random: systemRandom }, database, first, silentLog)
  await expect(
    ensureSharedSecret({ random: systemRandom }, database, secretOptions(OTHER), silentLog),
  ).rejects.toThrow(expect.objectContaining({ code: 'bad_config' }))
  await checkSharedSecret({ random: systemRandom }, database, first)
  await expect(
    checkSharedSecret({ random: systemRandom }, database, secretOptions(OTHER)),
  ).rejects.toThrow(/^The secret in EV_SECRET/)
})

test('starts only one of several services that start concurrently with different secrets', async () => {
  const database = await tempDatabase()
  const all = await Promise.allSettled(
    Array.from({ length: 5 }, () =>
      ensureSharedSecret({ random: systemRandom }, database, secretOptions(), silentLog),
    ),
  )
  expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

test('generates no secret if the database has one; a worker runs without a secret', async () => {
  const database = await databaseWithSecret()
  await ensureSetting(database, 'secret-begun-at', `${Number.MAX_SAFE_INTEGER}`)
  const noSecret = secretOptions()
  await expect(
    ensureSharedSecret({ random: systemRandom }, database, noSecret, silentLog),
  ).rejects.toThrow(/^This process does not have the secret of the service/)
  await checkSharedSecret({ random: systemRandom }, database, noSecret)
  expect(existsSync(join(noSecret.dataDir, 'secret'))).toBe(false)
  writeFileSync(join(noSecret.dataDir, 'secret'), OTHER)
  await expect(checkSharedSecret({ random: systemRandom }, database, noSecret)).rejects.toThrow(
    /^The secret in the data directory/,
  )
})

test('lets a service, but no other command, replace a secret that is no longer in use', async () => {
  const database = await databaseWithSecret()
  await expect(
    ensureSharedSecret({ random: systemRandom }, database, secretOptions(OTHER), null),
  ).rejects.toThrow(/is not the secret of/)
  const lines: string[] = []
  const log: Log = { ...silentLog, warn: message => void lines.push(message) }
  await ensureSharedSecret({ random: systemRandom }, database, secretOptions(OTHER), log)
  expect(await getStoredFingerprint(database)).toBe(fingerprint(OTHER))
  expect(lines).toMatchObject([expect.stringContaining('replaced the secret of the cluster')])
})

test('lets only one of several services replace the secret concurrently', async () => {
  const database = await databaseWithSecret()
  const all = await Promise.allSettled(
    Array.from({ length: 5 }, () =>
      ensureSharedSecret({ random: systemRandom }, database, secretOptions(), silentLog),
    ),
  )
  expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

test('keeps a secret that a webhook, a live member or a service that just started needs', async () => {
  const database = await databaseWithSecret()
  const refused = () =>
    expect(
      ensureSharedSecret({ random: systemRandom }, database, secretOptions(OTHER), silentLog),
    ).rejects.toThrow(/is not the secret of/)

  const member = { role: 'serve' as const, name: 'a', version: '1', egresses: [] }
  await register(database, { ...member, id: 'mem_a' })
  await refused()
  await deregister(database, 'mem_a', releaseClaims)

  const now = database.clock.now()
  const account = { id: 'acc_a', name: 'Shop', plan: 'free', now }
  await write(database, trx => createAccount(trx, account))
  const options = { url: 'https://hook.example/', events: [], active: true, description: null }
  const secretBox = createSecretBox(OURS, systemRandom)
  const { webhook } = await createUncheckedWebhook(
    { database, clock: database.clock, random: systemRandom, origin: COMMAND_LINE, secretBox },
    {
      ...options,
      accountId: 'acc_a',
    },
  )
  await refused()
  await database.db.deleteFrom('webhook').where('id', '=', webhook.id).execute()

  const at = await serverNow(database)
  await ensureSetting(database, 'secret-begun-at', `${at - MINUTE / 2}`)
  await refused()
  await ensureSetting(database, 'secret-begun-at', `${at - 2 * MINUTE}`)
  await ensureSharedSecret({ random: systemRandom }, database, secretOptions(OTHER), silentLog)
  expect(await getStoredFingerprint(database)).toBe(fingerprint(OTHER))
})

import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createAccount } from '../../../src/accounts/account-store.ts'
import { checkSharedSecret, ensureSharedSecret } from '../../../src/cli/serve/shared-secret.ts'
import { ensureSetting, getSetting } from '../../../src/cluster/cluster-settings.ts'
import { deregister, register, serverNow } from '../../../src/cluster/members.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { fingerprint } from '../../../src/db/service-secret.ts'
import { releaseClaims } from '../../../src/jobs/member-claims.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { type Log, silentLog } from '../../../src/platform/log.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import { createSecretBox } from '../../../src/platform/secret-box.ts'
import { createUncheckedWebhook } from '../../../src/webhooks/endpoints.ts'
import { tempDatabase, tempFolder } from '../../support/database.ts'

const place = (secret: string | null = null) => ({
  ...{ secret, secretFile: null, dataDir: tempFolder() },
})
const [OURS, OTHER] = ['a'.repeat(32), 'b'.repeat(32)]

/** A service began with our secret, some time ago, and is at work no more. */
async function started(): Promise<Database> {
  const database = await tempDatabase()
  await ensureSharedSecret({ random: systemRandom }, database, place(OURS), silentLog)
  await ensureSetting(database, 'secret-begun-at', '0')
  return database
}

const heldIn = (database: Database) => getSetting(database, 'secret-mark')

test('the secret of the first service holds, also where it makes one in its data directory', async () => {
  const database = await tempDatabase()
  const first = place()
  await ensureSharedSecret({ random: systemRandom }, database, first, silentLog)
  expect(existsSync(join(first.dataDir, 'secret'))).toBe(true)
  await ensureSharedSecret({ random: systemRandom }, database, first, silentLog)
  await expect(
    ensureSharedSecret({ random: systemRandom }, database, place(OTHER), silentLog),
  ).rejects.toThrow(expect.objectContaining({ code: 'bad_config' }))
  await checkSharedSecret({ random: systemRandom }, database, first)
  await expect(checkSharedSecret({ random: systemRandom }, database, place(OTHER))).rejects.toThrow(
    /^The secret in EV_SECRET/,
  )
})

test('of services that begin at once with different secrets one begins', async () => {
  const database = await tempDatabase()
  const all = await Promise.allSettled(
    Array.from({ length: 5 }, () =>
      ensureSharedSecret({ random: systemRandom }, database, place(), silentLog),
    ),
  )
  expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

test('whoever has none makes none where one holds; a worker does without', async () => {
  const database = await started()
  await ensureSetting(database, 'secret-begun-at', `${Number.MAX_SAFE_INTEGER}`)
  const without = place()
  await expect(
    ensureSharedSecret({ random: systemRandom }, database, without, silentLog),
  ).rejects.toThrow(/^This process does not have the secret of the service/)
  await checkSharedSecret({ random: systemRandom }, database, without)
  expect(existsSync(join(without.dataDir, 'secret'))).toBe(false)
  writeFileSync(join(without.dataDir, 'secret'), OTHER)
  await expect(checkSharedSecret({ random: systemRandom }, database, without)).rejects.toThrow(
    /^The secret in the data directory/,
  )
})

test('one that nobody needs any more is replaced by a service, and by no other command', async () => {
  const database = await started()
  await expect(
    ensureSharedSecret({ random: systemRandom }, database, place(OTHER), null),
  ).rejects.toThrow(/is not the secret of/)
  const lines: string[] = []
  const log: Log = { ...silentLog, warn: message => void lines.push(message) }
  await ensureSharedSecret({ random: systemRandom }, database, place(OTHER), log)
  expect(await heldIn(database)).toBe(fingerprint(OTHER))
  expect(lines).toMatchObject([expect.stringContaining('replaced the secret of the cluster')])
})

test('of services that replace one at once one does', async () => {
  const database = await started()
  const all = await Promise.allSettled(
    Array.from({ length: 5 }, () =>
      ensureSharedSecret({ random: systemRandom }, database, place(), silentLog),
    ),
  )
  expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

test('one that a webhook needs, or somebody at work, or who has just begun, is not replaced', async () => {
  const database = await started()
  const refused = () =>
    expect(
      ensureSharedSecret({ random: systemRandom }, database, place(OTHER), silentLog),
    ).rejects.toThrow(/is not the secret of/)

  const member = { role: 'serve' as const, name: 'a', version: '1', egresses: [] }
  await register(database, { ...member, id: 'mem_a' })
  await refused()
  await deregister(database, 'mem_a', releaseClaims)

  const now = database.clock.now()
  const account = { id: 'acc_a', name: 'Shop', plan: 'free', now }
  await write(database, trx => createAccount(trx, account))
  const wish = { url: 'https://hook.example/', events: [], active: true, description: null }
  const secretBox = createSecretBox(OURS, systemRandom)
  const { webhook } = await createUncheckedWebhook(
    { database, clock: database.clock, random: systemRandom, secretBox },
    {
      ...wish,
      accountId: 'acc_a',
    },
  )
  await refused()
  await database.db.deleteFrom('webhook').where('id', '=', webhook.id).execute()

  const at = await serverNow(database)
  await ensureSetting(database, 'secret-begun-at', `${at - MINUTE / 2}`)
  await refused()
  await ensureSetting(database, 'secret-begun-at', `${at - 2 * MINUTE}`)
  await ensureSharedSecret({ random: systemRandom }, database, place(OTHER), silentLog)
  expect(await heldIn(database)).toBe(fingerprint(OTHER))
})

import { createAccount } from '../../src/accounts/account-store.ts'
import type { Verification } from '../../src/accounts/credits/history.ts'
import { newSecret, type Secret } from '../../src/accounts/key.ts'
import { type ApiKey, createKey, type NewKey } from '../../src/accounts/key-store.ts'
import { type Database, write } from '../../src/db/database.ts'
import { systemRandom } from '../../src/platform/random.ts'

export const addAccount = (database: Database, id = 'acc_a', plan = 'free') =>
  write(database, trx =>
    createAccount(trx, { id, name: `Name of ${id}`, plan, now: database.clock.now() }),
  )

/** A row of the history: a good address that was verified as a single one. */
export const verificationRow = (given: Partial<Verification> = {}): Verification => ({
  id: 'ver_1',
  account_id: 'acc_1',
  key_id: 'key_1',
  email: 'ann@a.test',
  valid: 1,
  deliverable: 1,
  risk_level: 'low',
  reason: 'accepted_email',
  class: 'deliverable',
  cached: 0,
  source: 'single',
  job_id: null,
  sandbox: 0,
  created_at: 1,
  ...given,
})

/** Adds a key with all scopes and a secret of its own. */
export async function addKey(
  database: Database,
  facts: Partial<NewKey> = {},
): Promise<{ key: ApiKey; secret: Secret }> {
  const secret = newSecret(systemRandom, 'live')
  const { text: _, ...kept } = secret
  const key = await write(database, trx =>
    createKey(trx, {
      id: 'key_a',
      accountId: 'acc_a',
      name: 'CI',
      scopes: ['*'] as const,
      allowedIps: [],
      allowedDomains: [],
      rateLimitPerMinute: null,
      expiresAt: null,
      secret: kept,
      now: database.clock.now(),
      ...facts,
    }),
  )
  return { key, secret }
}

import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createAccount } from '../../src/accounts/account-store.ts'
import { newSecret } from '../../src/accounts/key.ts'
import { createKey, type NewKey } from '../../src/accounts/key-store.ts'
import type { ClientOptions } from '../../src/client/client.ts'
import { type ExternalDeps, listFiles } from '../../src/compose/engine.ts'
import { composeService } from '../../src/compose/service.ts'
import type { Timings } from '../../src/compose/timings.ts'
import { toConfig } from '../../src/config/config.ts'
import { write } from '../../src/db/database.ts'
import { openLists } from '../../src/engine/lists.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { tempFolder, tempSqlite } from './database.ts'
import { FAST_TIMINGS } from './fast-timings.ts'
import { unlimitedKey } from './service.ts'

type WiredServiceOptions = Partial<ExternalDeps> & {
  /** Default: a new SQLite file with all tables. */
  readonly databaseUrl?: string
  readonly baseUrl?: string
  readonly settings?: Readonly<Record<string, string>>
  /** Content of the config file. */
  readonly file?: Readonly<Record<string, unknown>>
  /** A key that the database has already. Default: the one of a new account. */
  readonly key?: string | undefined
  readonly timings?: Partial<Timings>
}

/**
 * Creates the complete service, which processes jobs, without a port, and the key of an account.
 */
export async function createWiredService({
  databaseUrl,
  baseUrl = 'https://ev.example.com',
  settings = {},
  file = {},
  key,
  timings = {},
  ...deps
}: WiredServiceOptions = {}) {
  const { clock = systemClock } = deps
  const dataDir = tempFolder()
  const config = toConfig({
    flags: { dataDir, ...settings },
    environment: {},
    file: { path: 'ev.config.json', values: file },
  })
  const services = await composeService(
    config,
    { log: silentLog, ...deps },
    {
      databaseUrl: databaseUrl ?? tempSqlite(join(dataDir, 'ev.sqlite')),
      baseUrl,
      version: '0.0.0',
      timings: { ...FAST_TIMINGS, ...timings },
      lists: openLists(listFiles(config)),
    },
  )
  let closed: Promise<void> | null = null
  const close = () => {
    closed ??= services.close()
    return closed
  }
  onTestFinished(close)
  /** Creates an account and returns the secret of its key. */
  async function addAccount(accountId: string, rights: Partial<NewKey> = {}): Promise<string> {
    const secret = newSecret(systemRandom, 'live')
    const now = clock.now()
    await write(services.service.database, async trx => {
      await createAccount(trx, { id: accountId, name: 'test', plan: 'enterprise', now })
      const id = `key_of_${accountId}`
      await createKey(trx, { ...unlimitedKey(), accountId, id, secret, now, ...rights })
    })
    return secret.text
  }
  const fetch: NonNullable<ClientOptions['fetch']> = async (url, init) =>
    services.app.fetch(new Request(url, init), {
      incoming: { socket: { remoteAddress: '127.0.0.1' } },
    })
  return { ...services, key: key ?? (await addAccount('acc_1')), addAccount, fetch, close }
}

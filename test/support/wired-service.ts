import { onTestFinished } from 'vitest'
import { createAccount } from '../../src/accounts/account-store.ts'
import { newSecret } from '../../src/accounts/key.ts'
import { createKey } from '../../src/accounts/key-store.ts'
import type { ClientOptions } from '../../src/client/client.ts'
import { type ExternalDeps, listFiles } from '../../src/compose/engine.ts'
import { composeService } from '../../src/compose/service.ts'
import { toConfig } from '../../src/config/config.ts'
import { write } from '../../src/db/database.ts'
import { openLists } from '../../src/engine/lists.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { tempFolder } from './database.ts'
import { unlimitedKey } from './service.ts'

/**
 * Creates the complete service, which processes jobs, without a port, and the key of an account.
 */
export async function createWiredService(deps: Pick<ExternalDeps, 'freeBytes'> = {}) {
  const dataDir = tempFolder()
  const config = toConfig({ flags: { dataDir }, environment: {}, file: null })
  const services = await composeService(
    config,
    { log: silentLog, ...deps },
    {
      databaseUrl: `sqlite:${dataDir}/ev.sqlite`,
      baseUrl: 'https://ev.example.com',
      version: '0.0.0',
      lists: openLists(listFiles(config)),
    },
  )
  onTestFinished(() => services.close())
  const secret = newSecret(systemRandom, 'live')
  const now = systemClock.now()
  await write(services.service.database, async trx => {
    await createAccount(trx, { id: 'acc_1', name: 'test', plan: 'enterprise', now })
    await createKey(trx, {
      ...unlimitedKey(),
      ...{ id: 'key_1', secret, now },
    })
  })
  const fetch: NonNullable<ClientOptions['fetch']> = async (url, init) =>
    services.app.fetch(new Request(url, init), {
      incoming: { socket: { remoteAddress: '127.0.0.1' } },
    })
  return { key: secret.text, fetch }
}

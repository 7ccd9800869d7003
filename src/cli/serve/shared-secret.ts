import { listAccounts } from '../../accounts/account-store.ts'
import {
  ensureSetting,
  getSetting,
  replaceSetting,
  setIfAbsent,
} from '../../cluster/cluster-settings.ts'
import { serverNow } from '../../cluster/members.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { fingerprint, needsSecret, readSecret } from '../../db/service-secret.ts'
import { MINUTE } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { listWebhooks } from '../../webhooks/endpoint-store.ts'
import type { CliContext } from '../context.ts'
import { activeMembers } from './active-members.ts'

type SecretLocation = Pick<Config, 'secret' | 'secretFile' | 'dataDir'>

/**
 * All that share a database must seal with one secret, else nobody can sign for the webhooks of the others: the first
 * one's holds. Throws EvError('bad_config') where it is not that of `config`, and makes none then. A service, which has
 * a `log`, may put another in place of one that nobody needs.
 */
export async function agreeOnSecret(
  context: Pick<CliContext, 'random'>,
  database: Database,
  config: SecretLocation,
  log: Log | null,
): Promise<void> {
  const held = await getSetting(database, 'secret-mark')
  const isFree = log !== null && held !== null && (await isUnneeded(database))
  if (held !== null && needsSecret(config) && !isFree) throw noSecret(config)
  const mark = fingerprint(readSecret(config, context.random))
  const agreed = await setIfAbsent(database, 'secret-mark', mark)
  if (agreed !== mark) {
    const isReplaced =
      isFree && (await replaceSetting(database, 'secret-mark', { from: held, to: mark }))
    if (!isReplaced) throw otherSecret(config)
    log.warn('the secret is another than before: no webhook needs that, and nobody goes by it')
  }
  await ensureSetting(database, 'secret-begun-at', `${await serverNow(database)}`)
}

/** The same for who only works on jobs, and needs none: one that is there must be the right one. */
export async function compareSecret(
  context: Pick<CliContext, 'random'>,
  database: Database,
  config: SecretLocation,
): Promise<void> {
  if (needsSecret(config)) return
  const held = await getSetting(database, 'secret-mark')
  if (held !== null && held !== fingerprint(readSecret(config, context.random)))
    throw otherSecret(config)
}

/** Nothing that must be read again is sealed with the earlier one, and nobody goes by it, or has just begun to. */
async function isUnneeded(database: Database): Promise<boolean> {
  const startedAt = await getSetting(database, 'secret-begun-at')
  const now = await serverNow(database)
  if (startedAt === null || now - Number(startedAt) < BEGINNING_MS) return false
  if ((await activeMembers(database)).length > 0) return false
  const accounts = await listAccounts(database)
  const webhooks = await Promise.all(accounts.map(({ id }) => listWebhooks(database, id)))
  return webhooks.flat().length === 0
}

/** Longer than it takes until a service that begins is known as one that is at work. */
const BEGINNING_MS = MINUTE

const noSecret = ({ dataDir }: SecretLocation) =>
  new EvError(
    'bad_config',
    `The database belongs to a service whose secret is not here, and secrets of webhooks cannot be read without. ${remedy(dataDir)}`,
  )

const otherSecret = (config: SecretLocation) =>
  new EvError(
    'bad_config',
    `The secret in ${locationOf(config)} is not that of the service whose database this is: secrets of webhooks cannot be read with it. ${remedy(config.dataDir)}`,
  )

const remedy = (dataDir: string) =>
  `Give the same on all machines, as EV_SECRET or EV_SECRET_FILE, or copy the file “secret” of the other’s data directory to ${dataDir}. ` +
  'If it is lost for good: stop every ev on the database, and delete the webhooks (“ev webhooks delete”); then a new one holds.'

const locationOf = ({ secret, secretFile, dataDir }: SecretLocation) =>
  secret !== null ? 'EV_SECRET' : (secretFile ?? `the data directory ${dataDir}`)

import { listAccounts } from '../accounts/account-store.ts'
import {
  ensureSetting,
  getSetting,
  replaceSecretMark,
  setIfAbsent,
} from '../cluster/cluster-settings.ts'
import { activeMembers } from '../cluster/membership.ts'
import type { Config } from '../config/settings.ts'
import type { Database } from '../db/database.ts'
import { isLocked, SERVE_LOCK } from '../db/file-lock.ts'
import { serverNow } from '../db/server-time.ts'
import { canDecrypt, fingerprint, needsSecret, readSecret } from '../db/service-secret.ts'
import { MINUTE } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { createSecretBox, type SecretBox } from '../platform/secret-box.ts'
import { listWebhooks } from '../webhooks/endpoint-store.ts'
import type { CliContext } from './context.ts'
import { isShared } from './database-location.ts'
import { printMessage } from './print.ts'
import { CLI_LOG } from './telemetry.ts'

type SecretLocation = Pick<Config, 'secret' | 'secretFile' | 'dataDir'>

/**
 * Checks that this process has the secret of the cluster. All processes on a database must encrypt
 * with one secret to sign for each other's webhooks; the secret of the first one applies. Throws
 * EvError('bad_config') if `config` has another one, without creating a secret. A service, which
 * passes a `log`, replaces a secret that is not in use.
 */
export async function ensureSharedSecret(
  context: Pick<CliContext, 'random'>,
  database: Database,
  config: SecretLocation,
  log: Log | null,
): Promise<void> {
  const stored = await getSetting(database, 'secret-mark')
  const isReplaceable = log !== null && stored !== null && (await isUnused(database))
  if (stored !== null && needsSecret(config) && !isReplaceable) throw missingSecret(config)
  const own = fingerprint(readSecret(config, context.random))
  const shared = await setIfAbsent(database, 'secret-mark', own)
  const begunAt = await serverNow(database)
  if (shared === own) return ensureSetting(database, 'secret-begun-at', `${begunAt}`)
  const isReplaced =
    isReplaceable && (await replaceSecretMark(database, { from: stored, to: own, begunAt }))
  if (!isReplaced) throw differentSecret(config)
  writeLog(log, CLI_LOG.secretReplaced)
}

/**
 * Checks the secret of a worker, which may have none. Throws EvError('bad_config') if it differs.
 */
export async function checkSharedSecret(
  context: Pick<CliContext, 'random'>,
  database: Database,
  config: SecretLocation,
): Promise<void> {
  if (needsSecret(config)) return
  const stored = await getSetting(database, 'secret-mark')
  if (stored !== null && stored !== fingerprint(readSecret(config, context.random)))
    throw differentSecret(config)
}

/** Whether no webhook is encrypted with the secret and no running or starting process has it. */
async function isUnused(database: Database): Promise<boolean> {
  const startedAt = await getSetting(database, 'secret-begun-at')
  const now = await serverNow(database)
  if (startedAt === null || now - Number(startedAt) < STARTUP_MS) return false
  if ((await activeMembers(database)).length > 0) return false
  const accounts = await listAccounts(database)
  const webhooks = await Promise.all(accounts.map(({ id }) => listWebhooks(database, id)))
  return webhooks.flat().length === 0
}

/** Longer than a starting service takes to register as a member. */
const STARTUP_MS = MINUTE

const missingSecret = ({ dataDir }: SecretLocation) =>
  new EvError(
    'bad_config',
    `This process does not have the secret of the service that uses the database, which decrypts the secrets of webhooks. ${remedy(dataDir)}`,
  )

const differentSecret = (config: SecretLocation) =>
  new EvError(
    'bad_config',
    `The secret in ${secretLocation(config)} is not the secret of the service that uses the database, so it cannot decrypt the secrets of webhooks. ${remedy(config.dataDir)}`,
  )

const remedy = (dataDir: string) =>
  `Set the same EV_SECRET or EV_SECRET_FILE on all machines, or copy the file "secret" from the data directory of the service to ${dataDir}. ` +
  'If the secret is lost, stop every ev process on the database and delete all webhooks ("ev webhooks delete"); ev then accepts a new secret.'

const secretLocation = ({ secret, secretFile, dataDir }: SecretLocation) =>
  secret !== null ? 'EV_SECRET' : (secretFile ?? `the data directory ${dataDir}`)

/**
 * Returns the secret box that encrypts signing secrets. It must use the secret of the service,
 * which otherwise could not sign events. A secret that is certainly another one throws EvError, and
 * one that may be another one prints a warning.
 */
export async function serviceSecretBox(
  context: CliContext,
  config: Config,
  database: Database,
): Promise<SecretBox> {
  if (isShared(config)) await ensureSharedSecret(context, database, config, null)
  const { dataDir } = config
  if (needsSecret(config) && isLocked(dataDir, SERVE_LOCK)) {
    throw new EvError(
      'bad_config',
      `The "ev serve" that is running in ${dataDir} has its secret elsewhere. ${SAME_SECRET}`,
    )
  }
  const secretBox = createSecretBox(readSecret(config, context.random), context.random)
  if (!(await canDecrypt(database, secretBox))) {
    printMessage(
      context,
      'warning',
      `The secret that is set here cannot decrypt stored values. If "ev serve" has another secret, it cannot use what this command creates. ${SAME_SECRET}`,
    )
  }
  return secretBox
}

const SAME_SECRET =
  'Set EV_SECRET, EV_SECRET_FILE or --secret-file to the same value as for the service.'

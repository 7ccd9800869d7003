import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { canDecrypt } from '../../db/encrypted-values.ts'
import { isLocked, SERVE_LOCK } from '../../db/file-lock.ts'
import { needsSecret, readSecret } from '../../db/service-secret.ts'
import { EvError } from '../../platform/error.ts'
import { createSecretBox, type SecretBox } from '../../platform/secret-box.ts'
import type { CliContext } from '../context.ts'
import { isShared } from '../database.ts'
import { printMessage } from '../print.ts'
import { ensureSharedSecret } from '../serve/shared-secret.ts'

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

import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { canDecrypt } from '../../db/encrypted-values.ts'
import { isLocked, SERVE_LOCK } from '../../db/file-lock.ts'
import { needsSecret, readSecret } from '../../db/service-secret.ts'
import { EvError } from '../../platform/error.ts'
import { createSecretBox, type SecretBox } from '../../platform/secret-box.ts'
import type { CliContext } from '../context.ts'
import { isShared } from '../database.ts'
import { agreeOnSecret } from '../serve/shared-secret.ts'

/**
 * The seal of signing secrets. It must be that of the service: what another one sealed it cannot sign with, and each
 * event would fail. So a secret that the service cannot have is refused, and one that it may not have is told.
 */
export async function serviceSecretBox(
  context: CliContext,
  config: Config,
  database: Database,
): Promise<SecretBox> {
  if (isShared(config)) await agreeOnSecret(context, database, config, null)
  const { dataDir } = config
  if (needsSecret(config) && isLocked(dataDir, SERVE_LOCK)) {
    throw new EvError(
      'bad_config',
      `The “ev serve” that is at work in ${dataDir} seals the secrets of webhooks with a secret that is elsewhere. ${SAME_SECRET}`,
    )
  }
  const secretBox = createSecretBox(readSecret(config, context.random), context.random)
  if (!(await canDecrypt(database, secretBox))) {
    context.stderr.write(
      `ev: What was sealed before cannot be opened with the secret that is set here. If “ev serve” has another one, it cannot sign what this command made. ${SAME_SECRET}\n`,
    )
  }
  return secretBox
}

const SAME_SECRET =
  'Give the same here, with EV_SECRET, EV_SECRET_FILE or --secret-file as it is set there.'
